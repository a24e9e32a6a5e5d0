"""LogWriter: three outcomes of an attempt, which the log itself distinguishes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from delta_py.errors import StorageError, UnsupportedOperationError, UnsupportedTableFeatureError
from delta_py.log.commit_reader import read_actions
from delta_py.log.log_writer import LogWriter, Outcome
from delta_py.protocol.actions import Action, AddFile, CommitInfo, Metadata, Protocol, SetTransaction
from delta_py.protocol.table_config import TableConfig
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import schema_string

CONFIG = TableConfig(Protocol(1, 2), Metadata("i", schema_string(("id", "long"))))
OURS = (CommitInfo({"txnId": "ours", "operation": "WRITE"}), AddFile("a b", {}, 1, 1))
THEIRS = (CommitInfo({"txnId": "theirs", "operation": "WRITE"}),)
NAME = f"_delta_log/{3:020d}.json"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def writer(store: MemoryStore) -> LogWriter:
    return LogWriter(store, CONFIG)


def failing(moment: str, error: Callable[[], BaseException], *names: str) -> Callable[[str, str, str], None]:
    """A hook by which calls of these names fail, before or after they are carried out."""

    def hook(when: str, name: str, path: str) -> None:
        if when == moment and name in names:
            raise error()

    return hook


def test_commit_on_a_free_version_wins_and_writes_its_lines(store: MemoryStore, writer: LogWriter) -> None:
    assert writer.put_commit(3, OURS) is Outcome.WON
    assert store.read(NAME).count(b"\n") == 2
    assert tuple(read_actions(store, 3)) == OURS


@pytest.mark.parametrize(
    "action",
    [
        AddFile("a", {}, -1, 1),
        AddFile("a", {}, 2**63, 1),
        AddFile("a", {"p": 5}, 1, 1),  # type: ignore[dict-item]
        AddFile("a", {}, 1, 1, stats=b"{}"),  # type: ignore[arg-type]
        AddFile("file:/a", {}, 1, 1),
        AddFile("\ud800", {}, 1, 1),
        SetTransaction("a", 2**63),
        Metadata("i", schema_string(("id", "long")), configuration={"a": True}),  # type: ignore[dict-item]
        CommitInfo({"inCommitTimestamp": 2**63}),
        CommitInfo({"userMetadata": "x" * (1 << 20)}),
        CommitInfo({"operationParameters": {1: "x"}}),
    ],
)
def test_commit_that_nobody_could_read_is_not_made(
    store: MemoryStore, writer: LogWriter, action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYDELTA_LOG_LIMIT_MB", "1")
    with pytest.raises(UnsupportedOperationError, match=r"No reader could read.* Nothing was committed"):
        writer.put_commit(3, [*OURS, action])
    assert not list(store.list_recursive(""))


def test_commit_on_a_taken_version_is_lost_and_changes_nothing(store: MemoryStore, writer: LogWriter) -> None:
    writer.put_commit(3, THEIRS)
    before = store.read(NAME)
    assert writer.put_commit(3, OURS) is Outcome.LOST
    assert store.read(NAME) == before


def test_commit_that_landed_and_is_refused_as_taken_is_won(store: MemoryStore, writer: LogWriter) -> None:
    """A store that repeats a request whose reply was lost finds its own object."""
    writer.put_commit(3, OURS)
    assert writer.put_commit(3, OURS) is Outcome.WON


def test_commit_whose_reply_was_lost_is_won(store: MemoryStore, writer: LogWriter) -> None:
    store.hook = failing("after", lambda: OSError("reply lost"), "put_if_absent")
    assert writer.put_commit(3, OURS) is Outcome.WON


def test_commit_that_failed_beside_another_writers_is_lost(store: MemoryStore, writer: LogWriter) -> None:
    writer.put_commit(3, THEIRS)
    store.hook = failing("before", lambda: OSError("no reply"), "put_if_absent")
    assert writer.put_commit(3, OURS) is Outcome.LOST


def test_commit_that_failed_and_is_not_there_is_unknown(
    store: MemoryStore, writer: LogWriter, caplog: pytest.LogCaptureFixture
) -> None:
    store.hook = failing("before", lambda: TimeoutError("no reply"), "put_if_absent")
    assert writer.put_commit(3, OURS) is Outcome.UNKNOWN
    assert "did not confirm commit 3" in caplog.text


@pytest.mark.parametrize("moment", ["before", "after"])
def test_failed_commit_in_an_unreadable_store_is_unknown(store: MemoryStore, writer: LogWriter, moment: str) -> None:
    store.hook = failing(moment, lambda: OSError("down"), "put_if_absent", "read")
    assert writer.put_commit(3, OURS) is Outcome.UNKNOWN


def test_failed_commit_that_the_store_hides_is_unknown(store: MemoryStore, writer: LogWriter) -> None:
    def refuse(moment: str, name: str, path: str) -> None:
        if name == "put_if_absent" and moment == "after":
            raise OSError("reply lost")
        if name == "read":
            raise StorageError("access denied")

    store.hook = refuse
    assert writer.put_commit(3, OURS) is Outcome.UNKNOWN


def test_taken_version_that_cannot_be_read_is_lost(store: MemoryStore, writer: LogWriter) -> None:
    writer.put_commit(3, THEIRS)
    store.hook = failing("before", lambda: OSError("down"), "read")
    assert writer.put_commit(3, OURS) is Outcome.LOST


def test_taken_version_with_damaged_lines_is_lost(store: MemoryStore, writer: LogWriter) -> None:
    store.put(NAME, b'{"commitInfo":{"txnId":"ours"\n{"commitInfo":[]}\n')
    assert writer.put_commit(3, OURS) is Outcome.LOST


def test_commit_without_a_txn_id_never_claims_what_it_finds(store: MemoryStore, writer: LogWriter) -> None:
    anonymous = (CommitInfo({"operation": "WRITE"}),)
    store.hook = failing("after", lambda: OSError("reply lost"), "put_if_absent")
    assert writer.put_commit(3, anonymous) is Outcome.UNKNOWN
    store.hook = None
    assert writer.put_commit(3, anonymous) is Outcome.LOST


def test_store_that_is_sure_of_its_failure_is_believed(store: MemoryStore, writer: LogWriter) -> None:
    store.hook = failing("before", lambda: StorageError("disk full"), "put_if_absent")
    with pytest.raises(StorageError):
        writer.put_commit(3, OURS)


def test_writer_refuses_a_table_with_an_unknown_feature(store: MemoryStore) -> None:
    features = frozenset({"fancyNewThing"})
    with pytest.raises(UnsupportedTableFeatureError, match="fancyNewThing"):
        LogWriter(store, TableConfig(Protocol(3, 7, frozenset(), features), CONFIG.metadata))
    assert store.objects == {}
