"""One transaction: the content of its commit, other writers, and its behaviour if the result of a request is unknown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from delta_py.commit.attempts import RetryPolicy
from delta_py.commit.transaction import Transaction
from delta_py.definition.create import TableDefinition, create_table, define_table
from delta_py.errors import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    CorruptTableError,
    DeltaError,
    MetadataChangedException,
    ProtocolChangedException,
    StorageError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
)
from delta_py.log.log_writer import Outcome
from delta_py.protocol.actions import AddFile, CommitInfo, Metadata, Protocol, RemoveFile, parse_action
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, from_row_indexes, inline_descriptor
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, StructField, StructType
from delta_py.write.data_files import WrittenFiles
from tests.support.stores.memory_store import MemoryStore

SCHEMA = StructType((StructField("id", LONG),))
NO_WAIT = RetryPolicy(conflict_attempts=20, unsettled_attempts=3, first_wait_seconds=0, longest_wait_seconds=0)


class ScriptedStore(LocalStore):
    """`before_put` runs before each put of a commit; `replies` are exceptions, raised after puts that take effect."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.before_put: list[Callable[[], object]] = []
        self.replies: list[tuple[bool, BaseException] | None] = []
        self.unreadable = 0
        self.read_error: Exception = OSError("injected: cannot read")
        self.puts = 0

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        if not path.endswith(".json"):
            return super().put_if_absent(path, data, durably=durably)
        self.puts += 1
        if self.before_put:
            self.before_put.pop(0)()
        reply = self.replies.pop(0) if self.replies else None
        if reply is None or reply[0]:
            super().put_if_absent(path, data, durably=durably)
        if reply is not None:
            raise reply[1]
        return None

    def read(self, path: str) -> bytes:
        if self.unreadable and self.puts:
            self.unreadable -= 1
            raise self.read_error
        return super().read(path)


@pytest.fixture
def store(tmp_path: Path) -> ScriptedStore:
    create_table(LocalStore(str(tmp_path)), define_table(SCHEMA))
    return ScriptedStore(str(tmp_path))


def written(store: LocalStore, *names: str, rows: int = 2) -> WrittenFiles:
    """Small files with some content."""
    adds = []
    for name in names:
        with store.open_output(name) as out:
            out.write(b"data")
        adds.append(AddFile(name, {}, 4, 1000, stats=orjson.dumps({"numRecords": rows}).decode()))
    return WrittenFiles(tuple(adds), row_count=rows * len(adds), size_bytes=4 * len(adds), new_paths=names)


def transaction(store: LocalStore, **options: Any) -> Transaction:
    return Transaction(Snapshot.load(store), **{"policy": NO_WAIT, "sleep": lambda _: None, **options})


def append(store: LocalStore, name: str, **options: Any) -> int:
    return transaction(store, **options).add(written(store, name)).commit("WRITE", {"mode": "Append"})


def commit_of(store: LocalStore, version: int) -> list[Any]:
    lines = LocalStore(store.root).read(f"_delta_log/{version:020d}.json").splitlines()
    return [parse_action(line) for line in lines]


def info_of(store: LocalStore, version: int) -> dict[str, Any]:
    (first, *_) = commit_of(store, version)
    assert isinstance(first, CommitInfo)
    return dict(first.values)


def exists(store: LocalStore, name: str) -> bool:
    return (Path(store.root) / name).exists()


# ---------------------------------------------------------------- what a commit holds


def test_append_commit_has_commit_info_first_and_then_files(store: ScriptedStore) -> None:
    files = written(store, "a.parquet", "b.parquet")
    version = (
        transaction(store, clock_ms=lambda: 77)
        .add(files)
        .commit("WRITE", {"mode": "Append", "partitionBy": [], "none": None}, metrics={"numFiles": 2}, user_metadata="hi")
    )
    assert version == 1
    info, *adds = commit_of(store, 1)
    assert adds == list(files.adds)
    values = dict(info.values)
    assert len(values.pop("txnId")) == 36 and values.pop("engineInfo").startswith("pydelta/")
    assert values == {
        "timestamp": 77,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]", "none": None},
        "userMetadata": "hi",
        "readVersion": 0,
        "operationMetrics": {"numFiles": "2"},
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
    }


def test_checksum_after_winners_is_derived_from_their_commits(store: ScriptedStore) -> None:
    """Not from their checksums, which may not exist yet."""
    other_store = LocalStore(store.root)

    def win() -> None:
        for number in range(6):
            part = transaction(other_store).add(written(other_store, f"w{number}.parquet"))
            version = part.set_transaction("app", number).commit("WRITE", {"mode": "Append"})
            other_store.delete(f"_delta_log/{version:020d}.crc")
            other_store.delete("_delta_log/00000000000000000000.crc")

    append(store, "a.parquet")
    store.before_put = [win]
    reads: list[str] = []
    read = store.read
    store.read = lambda path: (reads.append(path), read(path))[1]  # type: ignore[method-assign]
    assert append(store, "b.parquet") == 8
    assert [path for path in reads if path.endswith(".crc")] == ["_delta_log/00000000000000000001.crc"], "of what was read"
    snapshot = Snapshot.load(other_store)
    assert snapshot.checksum is not None
    assert (snapshot.checksum.file_count, snapshot.checksum.size_bytes) == (8, 32)
    snapshot.check_integrity()
    assert {item.app_id: item.version for item in snapshot.checksum.set_transactions or ()} == {"app": 5}


def test_commit_without_files_is_a_version(store: ScriptedStore) -> None:
    assert transaction(store).commit("WRITE", {}) == 1
    assert len(commit_of(store, 1)) == 1


def test_commit_with_removes_is_no_blind_append(store: ScriptedStore) -> None:
    append(store, "a")
    transaction(store).add(WrittenFiles(removes=(RemoveFile("a", deletion_timestamp_ms=1),))).commit("DELETE", {})
    assert info_of(store, 2)["isBlindAppend"] is False
    assert Snapshot.load(store).num_files == 0


# ---------------------------------------------------------------- other writers


def test_commit_after_lost_races_takes_the_next_free_version(store: ScriptedStore) -> None:
    other = LocalStore(store.root)
    store.before_put = [lambda: append(other, "x"), lambda: append(other, "y")]
    assert append(store, "mine") == 3
    assert [len(commit_of(store, version)) for version in (1, 2, 3)] == [2, 2, 2]
    assert info_of(store, 3)["readVersion"] == 0
    assert {file["path"] for file in Snapshot.load(store).files().to_pylist()} == {"x", "y", "mine"}


def change_metadata(store: LocalStore, snapshot: Snapshot | None = None) -> int:
    snapshot = snapshot or Snapshot.load(store)
    metadata = Metadata(snapshot.metadata.id, snapshot.metadata.schema_string, configuration={"my.key": "1"})
    return Transaction(snapshot, policy=NO_WAIT).set_metadata(metadata).commit("SET TBLPROPERTIES", {})


def change_protocol(store: LocalStore) -> int:
    return Transaction(Snapshot.load(store), policy=NO_WAIT).set_protocol(Protocol(1, 2)).commit("UPGRADE", {})


@pytest.mark.parametrize(
    ("change", "conflict"),
    [
        (change_metadata, MetadataChangedException),
        (
            lambda other: Transaction(Snapshot.load(other)).set_protocol(Protocol(1, 2)).commit("UPGRADE", {}),
            ProtocolChangedException,
        ),
    ],
)
def test_commit_refused_by_a_winner_deletes_the_files_it_wrote(
    store: ScriptedStore, change: Callable[[LocalStore], int], conflict: type[DeltaError]
) -> None:
    store.before_put = [lambda: change(LocalStore(store.root))]
    with pytest.raises(conflict):
        append(store, "mine")
    assert not exists(store, "mine")
    assert Snapshot.load(store).version == 1


def test_metadata_change_conflicts_only_with_metadata_changes(store: ScriptedStore) -> None:
    snapshot = Snapshot.load(store)
    append(LocalStore(store.root), "x")
    assert change_metadata(store, snapshot) == snapshot.version + 2
    with pytest.raises(MetadataChangedException):
        change_metadata(store, snapshot)


@pytest.mark.parametrize("vector", [None, inline_descriptor(from_row_indexes([0]))])
def test_commit_refused_keeps_files_that_were_there_before_it(
    store: ScriptedStore, vector: DeletionVectorDescriptor | None
) -> None:
    append(store, "a")
    same_add = AddFile("a", {}, 4, 1000, stats='{"numRecords":2}', deletion_vector=vector)
    store.before_put = [lambda: change_metadata(LocalStore(store.root))]
    with pytest.raises(MetadataChangedException):
        transaction(store).add(WrittenFiles((same_add,), (RemoveFile("a"),))).add(written(store, "new")).commit("DELETE", {})
    assert exists(store, "a") and not exists(store, "new")


def test_create_that_loses_deletes_the_files_it_wrote(tmp_path: Path) -> None:
    store = ScriptedStore(str(tmp_path))
    definition = define_table(SCHEMA)
    store.before_put = [lambda: create_table(LocalStore(store.root), definition)]
    files = written(store, "mine")
    with pytest.raises(ProtocolChangedException):
        _creation(store, definition).add(files).commit("WRITE", {})
    assert not exists(store, "mine")


def _creation(store: LocalStore, definition: TableDefinition) -> Transaction:
    creation = Transaction(None, store=store, policy=NO_WAIT)
    return creation.set_protocol(definition.protocol).set_metadata(definition.metadata)


def test_commit_gives_up_after_so_many_lost_races(store: ScriptedStore) -> None:
    other = LocalStore(store.root)
    store.before_put = [lambda n=n: append(other, f"x{n}") for n in range(5)]  # type: ignore[misc]
    with pytest.raises(ConcurrentWriteException, match="4 versions were tried up to 4") as caught:
        append(store, "mine", policy=RetryPolicy(4, 3, 0, 0))
    assert caught.value.error_class == "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"
    assert not exists(store, "mine") and Snapshot.load(other).version == 4


def test_commit_over_a_damaged_winner_fails_and_keeps_files(store: ScriptedStore) -> None:
    store.before_put = [lambda: LocalStore(store.root).put_if_absent("_delta_log/00000000000000000001.json", b'{"add":')]
    with pytest.raises(CorruptTableError):
        append(store, "mine")
    assert exists(store, "mine")


# ---------------------------------------------------------------- a store in doubt


@pytest.mark.parametrize("error", [OSError("reply lost"), FileExistsError("retried by the client library")])
def test_commit_with_a_lost_reply_is_recognised_not_repeated(store: ScriptedStore, error: BaseException) -> None:
    store.replies = [(True, error)]
    assert append(store, "mine") == 1
    assert Snapshot.load(store).version == 1 and store.puts == 1


def test_commit_with_lost_reply_is_recognised_among_later_ones(store: ScriptedStore) -> None:
    other = LocalStore(store.root)
    original = store.read

    def read(path: str) -> bytes:
        if not exists(store, "_delta_log/00000000000000000002.json") and exists(store, "_delta_log/00000000000000000001.json"):
            append(other, "theirs")
        return original(path)

    store.replies = [(True, OSError("reply lost"))]
    store.read = read  # type: ignore[method-assign]
    assert append(store, "mine") == 1
    assert Snapshot.load(other).version == 2


def test_commit_that_never_arrived_is_tried_again(store: ScriptedStore) -> None:
    store.replies = [(False, OSError("request lost")), (False, OSError("request lost"))]
    assert append(store, "mine") == 1
    assert store.puts == 3


def test_late_commit_that_precedes_its_retry_is_recognised(store: ScriptedStore) -> None:
    sent: list[tuple[str, bytes]] = []
    original = LocalStore.put_if_absent

    def put(path: str, data: bytes, *, durably: bool = True) -> None:
        if not sent:
            sent.append((path, data))
            raise OSError("timed out, and still on its way")
        original(store, *sent[0])
        original(store, path, data, durably=durably)

    store.put_if_absent = put  # type: ignore[method-assign]
    assert append(store, "mine") == 1
    assert Snapshot.load(store).num_files == 1


def test_commit_in_lasting_doubt_is_unknown_and_keeps_the_files(store: ScriptedStore) -> None:
    store.replies = [(False, OSError("no answer"))] * 5
    with pytest.raises(CommitOutcomeUnknownError, match="txnId") as caught:
        append(store, "mine")
    assert caught.value.message_parameters["version"] == 1
    assert exists(store, "mine") and store.puts == NO_WAIT.unsettled_attempts


@pytest.mark.parametrize("error", [OSError("no answer"), StorageError("access denied: the token has expired")])
def test_invisible_commit_has_unknown_outcome_and_keeps_files(store: ScriptedStore, error: Exception) -> None:
    change = transaction(store).add(written(store, "mine"))
    store.replies, store.unreadable, store.read_error = [(True, OSError("reply lost"))], 99, error
    with pytest.raises(CommitOutcomeUnknownError):
        change.commit("WRITE", {})
    assert exists(store, "mine")
    assert Snapshot.load(LocalStore(store.root)).num_files == 1


def test_commit_killed_in_the_put_keeps_the_files(store: ScriptedStore) -> None:
    store.replies = [(True, KeyboardInterrupt())]
    with pytest.raises(KeyboardInterrupt):
        append(store, "mine")
    assert exists(store, "mine")


def test_waits_are_longer_with_each_attempt_and_bounded() -> None:
    policy = RetryPolicy(first_wait_seconds=0.01, longest_wait_seconds=0.1)
    assert all(0 <= policy.wait_seconds(1) <= 0.02 for _ in range(50))
    assert all(policy.wait_seconds(10_000) <= 0.1 for _ in range(50))
    assert len({policy.wait_seconds(5) for _ in range(20)}) > 10


def test_retries_of_a_remote_store_in_doubt_wait_for_seconds() -> None:
    remote, local = RetryPolicy.of(MemoryStore(is_remote=True)), RetryPolicy.of(MemoryStore(is_remote=False))
    assert max(remote.wait_seconds(14, in_doubt=True) for _ in range(50)) > 1
    assert all(local.wait_seconds(14, in_doubt=True) <= 0.03 for _ in range(50))
    assert all(remote.wait_seconds(14) <= 0.03 for _ in range(50)), "other writers are quick"


# ---------------------------------------------------------------- rules on the actions


@pytest.mark.parametrize(
    ("files", "condition"),
    [
        (WrittenFiles((AddFile("x", {}, 1, 1), AddFile("x", {}, 1, 1))), "DELTA_DUPLICATE_ACTIONS_FOUND"),
        (WrittenFiles(removes=(RemoveFile("x"), RemoveFile("x"))), "DELTA_DUPLICATE_ACTIONS_FOUND"),
    ],
)
def test_commit_that_breaks_a_rule_is_refused(store: ScriptedStore, files: WrittenFiles, condition: str) -> None:
    with pytest.raises(UnsupportedOperationError) as caught:
        transaction(store).add(files).commit("WRITE", {})
    assert caught.value.error_class == condition and store.puts == 0


def test_remove_from_an_append_only_table_is_refused(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(SCHEMA, configuration={"delta.appendOnly": "true"}))
    append(store, "a")
    with pytest.raises(UnsupportedOperationError) as caught:
        transaction(store).add(WrittenFiles(removes=(RemoveFile("a"),))).commit("DELETE", {})
    assert caught.value.error_class == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert transaction(store).add(WrittenFiles(removes=(RemoveFile("a", data_change=False),))).commit("OPTIMIZE", {}) == 2


def test_commit_to_unwritable_protocol_fails_and_deletes_files(store: ScriptedStore) -> None:
    change = transaction(store).add(written(store, "mine"))
    change.set_protocol(Protocol(1, 7, None, frozenset({"catalogOwned-preview"})))
    with pytest.raises(UnsupportedTableFeatureError, match="catalogOwned-preview"):
        change.commit("WRITE", {})
    assert not exists(store, "mine") and store.puts == 0


# ---------------------------------------------------------------- table features that a commit serves


def test_in_commit_timestamps_rise_although_the_clock_goes_back(tmp_path: Path) -> None:
    store = ScriptedStore(str(tmp_path))
    definition = define_table(SCHEMA, configuration={"delta.enableInCommitTimestamps": "true"})
    creation = Transaction(None, store=store, clock_ms=lambda: 5000)
    creation.set_protocol(definition.protocol).set_metadata(definition.metadata).commit("CREATE TABLE", {})
    append(store, "a", clock_ms=lambda: 100)
    store.before_put = [lambda: append(LocalStore(store.root), "b", clock_ms=lambda: 9000)]
    append(store, "c", clock_ms=lambda: 100)
    append(store, "d", clock_ms=lambda: 20_000)
    assert [info_of(store, version)["inCommitTimestamp"] for version in range(5)] == [5000, 5001, 9000, 9001, 20_000]
    assert next(iter(info_of(store, 1))) == "inCommitTimestamp"
    assert Snapshot.load(store, timestamp_ms=9500).version == 3


def test_commit_row_ids_are_unique_over_racing_appends(tmp_path: Path) -> None:
    store = ScriptedStore(str(tmp_path))
    create_table(store, define_table(SCHEMA, configuration={"delta.enableRowTracking": "true"}))
    other = LocalStore(store.root)
    transaction(store).add(written(store, "a", "b", rows=10)).commit("WRITE", {})
    store.before_put = [lambda: transaction(other).add(written(other, "c", rows=5)).commit("WRITE", {})]
    transaction(store).add(written(store, "d", rows=1)).commit("WRITE", {})
    snapshot = Snapshot.load(other)
    files = {f["path"]: (f["base_row_id"], f["default_row_commit_version"]) for f in snapshot.files().to_pylist()}
    assert files == {"a": (0, 1), "b": (10, 1), "c": (20, 2), "d": (25, 3)}
    assert orjson.loads(snapshot.domain_metadata()["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 25}


def test_outcomes_are_the_three_that_the_loop_knows() -> None:
    assert {outcome.name for outcome in Outcome} == {"WON", "LOST", "UNKNOWN"}


def test_permanent_storage_error_fails_commit_and_deletes_files(store: ScriptedStore) -> None:
    store.replies = [(False, StorageError("this file system cannot make hard links"))]
    with pytest.raises(StorageError):
        append(store, "mine")
    assert not exists(store, "mine")


def test_storage_error_after_a_lost_reply_leaves_outcome_unknown(store: ScriptedStore) -> None:
    change = transaction(store).add(written(store, "mine"))
    store.replies, store.unreadable = [(True, OSError("reply lost")), (False, StorageError("now it is read-only"))], 2
    with pytest.raises(CommitOutcomeUnknownError):
        change.commit("WRITE", {})
    assert exists(store, "mine") and Snapshot.load(LocalStore(store.root)).num_files == 1


# ---------------------------------------------------------------- what follows a commit


def checksum_of(store: LocalStore, version: int) -> dict[str, Any]:
    checksum_fields: dict[str, Any] = orjson.loads(LocalStore(store.root).read(f"_delta_log/{version:020d}.crc"))
    return checksum_fields


def test_commit_writes_a_checksum_derived_from_the_previous_one(store: ScriptedStore) -> None:
    transaction(store).add(written(store, "a", "b")).commit("WRITE", {})
    checksum = checksum_of(store, 1)
    assert (checksum["numFiles"], checksum["tableSizeBytes"], checksum["numMetadata"], checksum["numProtocol"]) == (2, 8, 1, 1)
    assert checksum["txnId"] == info_of(store, 1)["txnId"]
    assert checksum["domainMetadata"] == [] and checksum["setTransactions"] == []
    snapshot = Snapshot.load(store)
    assert (snapshot.version, snapshot.num_files) == (1, 2)
    assert checksum["metadata"]["id"] == snapshot.metadata.id


def test_commit_after_lost_race_derives_checksum_from_winner(store: ScriptedStore) -> None:
    store.before_put = [lambda: append(LocalStore(store.root), "x")]
    append(store, "mine")
    assert [checksum_of(store, version)["numFiles"] for version in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("{")])
def test_commit_without_a_previous_checksum_replays_a_small_log(
    store: ScriptedStore, damage: Callable[[Path], object]
) -> None:
    damage(Path(store.root) / "_delta_log/00000000000000000000.crc")
    assert append(store, "a") == 1
    assert checksum_of(store, 1)["numFiles"] == 1
    assert Snapshot.load(store).num_files == 1


@pytest.mark.parametrize("size_bytes", [4, None])
def test_commit_with_removes_has_a_checksum(store: ScriptedStore, size_bytes: int | None) -> None:
    append(store, "a")
    transaction(store).add(WrittenFiles(removes=(RemoveFile("a", size_bytes=size_bytes),))).commit("DELETE", {})
    assert (checksum_of(store, 2)["numFiles"], checksum_of(store, 2)["tableSizeBytes"]) == (0, 0)


def test_checksum_has_row_tracking_and_in_commit_timestamp(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    properties = {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}
    create_table(store, define_table(SCHEMA, configuration=properties))
    append(store, "a", clock_ms=lambda: 10**15)
    checksum = checksum_of(store, 1)
    assert checksum["inCommitTimestampOpt"] == 10**15 == info_of(store, 1)["inCommitTimestamp"]
    assert checksum["domainMetadata"] == [
        {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":1}', "removed": False}
    ]
    assert Snapshot.load(store).timestamp_ms == 10**15


@pytest.mark.usefixtures("harmless_post_commit")
def test_failed_write_of_a_checksum_does_not_fail_the_commit(store: ScriptedStore, caplog: pytest.LogCaptureFixture) -> None:
    original = store.put_if_absent

    def put(path: str, data: bytes, *, durably: bool = True) -> None:
        if path.endswith(".crc"):
            raise OSError("injected: full")
        original(path, data, durably=durably)

    store.put_if_absent = put  # type: ignore[method-assign]
    assert append(store, "a") == 1
    assert "version 1 is committed" in caplog.text


# ---------------------------------------------------------------- commits of 0 bytes


def truncate(store: LocalStore, version: int) -> None:
    (Path(store.root) / f"_delta_log/{version:020d}.json").write_bytes(b"")


def test_commit_that_loses_to_an_empty_commit_follows_it(store: ScriptedStore) -> None:
    def lose() -> None:
        truncate(store, append(LocalStore(store.root), "lost"))

    store.before_put = [lose]
    assert append(store, "mine") == 2
    assert {file["path"] for file in Snapshot.load(store).files().to_pylist()} == {"mine"}


def test_commit_behind_an_empty_commit_has_a_true_checksum(store: ScriptedStore) -> None:
    append(store, "a")
    truncate(store, append(store, "lost"))
    append(store, "b")
    assert checksum_of(store, 3)["numFiles"] == 2
    snapshot = Snapshot.load(store)
    snapshot.check_integrity()
    assert {file["path"] for file in snapshot.files().to_pylist()} == {"a", "b"}
