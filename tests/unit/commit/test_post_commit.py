"""The steps after a commit: checksums, checkpoints, compactions, cleanup; and that no step harms a commit."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import orjson
import pyarrow as pa
import pytest

from delta_py.commit.post_commit import checkpoint, run_post_commit
from delta_py.errors import CorruptTableError, DeltaError, UnsupportedTableFeatureError
from delta_py.log.log_writer import LogWriter
from delta_py.protocol.actions import parse_action
from delta_py.snapshot import Snapshot
from tests.support.runs.sampling import sampled
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add, remove

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000


@pytest.fixture
def table() -> TableBuilder:
    return TableBuilder(MemoryStore())


def commit(table: TableBuilder, *actions: Json, post: bool = True, now_ms: int = NOW_MS) -> int:
    """One commit and the steps after it, as a writer does it."""
    version = table.commit({"commitInfo": {"txnId": f"t{len(table.commits)}"}}, *actions)
    if post:
        after(table, version, now_ms=now_ms)
    return version


def after(table: TableBuilder, version: int, *, now_ms: int = NOW_MS) -> None:
    listed = [parse_action(orjson.dumps(action)) for action in table.commits[version]]
    config = Snapshot.load(table.store, version).config
    actions = [action for action in listed if action is not None]
    run_post_commit(table.store, LogWriter(table.store, config), config, version, actions, clock_ms=lambda: now_ms)


def create(table: TableBuilder, configuration: Mapping[str, str] | None = None, **options: Any) -> int:
    return commit(table, table.protocol(), table.metadata(configuration=configuration), **options)


def checksum(table: TableBuilder, version: int) -> Json:
    checksum_fields: Json = orjson.loads(table.store.read(f"_delta_log/{version:020d}.crc"))
    return checksum_fields


def names(table: TableBuilder) -> set[str]:
    return {info.path.rpartition("/")[2] for info in table.store.list_from("_delta_log")}


# ---------------------------------------------------------------- checksums


def test_checksums_follow_adds_removes_transactions_and_domains(table: TableBuilder) -> None:
    create(table)
    commit(table, add("a", size=10), add("b", size=5), {"txn": {"appId": "x", "version": 1}})
    commit(table, remove("a", size=10), {"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}})
    commit(table, {"txn": {"appId": "x", "version": 2}}, {"txn": {"appId": "y", "version": 1, "lastUpdated": 3}})
    commit(table, {"domainMetadata": {"domain": "d", "configuration": "1", "removed": True}})
    assert [(checksum(table, v)["numFiles"], checksum(table, v)["tableSizeBytes"]) for v in range(5)] == [
        (0, 0),
        (2, 15),
        (1, 5),
        (1, 5),
        (1, 5),
    ]
    assert checksum(table, 4)["setTransactions"] == [
        {"appId": "x", "version": 2},
        {"appId": "y", "version": 1, "lastUpdated": 3},
    ]
    assert [[d["domain"] for d in checksum(table, v)["domainMetadata"]] for v in (2, 3, 4)] == [["d"], ["d"], []]
    assert checksum(table, 4)["txnId"] == "t4"
    for version in range(5):
        Snapshot.load(table.store, version).check_integrity()


@pytest.mark.parametrize("is_at_hand", [False, True])
def test_checksum_is_derived_without_reading_the_log(table: TableBuilder, is_at_hand: bool) -> None:
    create(table)
    commit(table, add("a"))
    before = Snapshot.load(table.store)
    version = commit(table, remove("a", size=100), post=False)
    config = Snapshot.load(table.store).config
    actions = [action for line in table.commits[version] if (action := parse_action(orjson.dumps(line))) is not None]
    assert isinstance(table.store, MemoryStore)
    table.store.calls.clear()
    writer = LogWriter(table.store, config)
    run_post_commit(table.store, writer, config, version, actions, before=before if is_at_hand else None)
    read = [] if is_at_hand else [("read", f"_delta_log/{1:020d}.crc")]
    assert table.store.calls == [*read, ("put_if_absent", f"_delta_log/{2:020d}.crc")]
    assert (checksum(table, 2)["numFiles"], checksum(table, 2)["tableSizeBytes"]) == (0, 0)


def test_checksum_is_derived_across_commits_without_checksums(table: TableBuilder) -> None:
    create(table)
    for name in "abc":
        commit(table, add(name), post=False)
    assert isinstance(table.store, MemoryStore)
    table.store.calls.clear()
    after(table, 3)
    assert checksum(table, 3)["numFiles"] == 3
    after(table, 1)
    assert checksum(table, 1)["numFiles"] == 1


@pytest.mark.parametrize("action", [add("a", dataChange=False, tags={"x": "y"}), remove("a")])
def test_checksum_that_actions_do_not_give_comes_from_small_log(action: Json, table: TableBuilder) -> None:
    create(table)
    commit(table, add("a"), add("b"))
    commit(table, action)
    assert checksum(table, 2)["numFiles"] == (2 if "add" in action else 1)
    Snapshot.load(table.store).check_integrity()


def test_checksum_of_a_large_log_waits_for_the_checkpoint(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.commit.post_commit._SMALL_LOG_BYTES", 10)
    create(table, post=False, configuration={"delta.checkpointInterval": "6"})
    for version in range(1, 5):
        commit(table, add(f"f{version}"), post=False)
    commit(table, add("f5"))
    assert f"{5:020d}.crc" not in names(table)
    commit(table, {"txn": {"appId": "x", "version": 2}})
    assert (checksum(table, 6)["numFiles"], checksum(table, 6)["txnId"]) == (5, "t6")
    commit(table, add("f7"))
    assert checksum(table, 7)["numFiles"] == 6
    Snapshot.load(table.store).check_integrity()


def test_old_checksum_without_protocol_causes_no_warning(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    create(table, post=False)
    table.write(f"{0:020d}.crc", b'{"tableSizeBytes":0,"numFiles":0,"numMetadata":1,"numProtocol":1,"numTransactions":0}')
    with caplog.at_level(logging.INFO):
        assert Snapshot.load(table.store).version == 0
    assert caplog.text == ""


def test_long_list_of_transactions_is_left_out(table: TableBuilder) -> None:
    create(table)
    commit(table, *[{"txn": {"appId": f"a{i}", "version": 1}} for i in range(101)])
    assert "setTransactions" not in checksum(table, 1)
    commit(table, {"txn": {"appId": "a0", "version": 2}})
    assert "setTransactions" not in checksum(table, 2)
    assert Snapshot.load(table.store).set_transactions()["a0"].version == 2


# ---------------------------------------------------------------- checkpoints, compactions, cleanup


def test_checkpoints_and_compactions_come_at_their_versions(table: TableBuilder) -> None:
    create(table)
    for version in range(1, 26):
        commit(table, add(f"f{version}"), *([remove(f"f{version - 1}", size=100)] if version % 3 == 0 else []))
    file_names = names(table)
    assert {name for name in file_names if "checkpoint." in name} == {f"{v:020d}.checkpoint.parquet" for v in (10, 20)}
    assert {name for name in file_names if "compacted" in name} == {
        f"{start:020d}.{end:020d}.compacted.json" for start, end in ((1, 5), (11, 15), (21, 25))
    }
    assert "_last_checkpoint" in file_names
    for version in range(26):
        snapshot = Snapshot.load(table.store, version)
        expected = {action["path"] for action in table.live(version).values()}
        assert set(snapshot.files()["path"].to_pylist()) == expected
        snapshot.check_integrity()


@pytest.mark.parametrize(("interval", "expected"), [("3", {3, 6}), ("1", {1, 2, 3, 4, 5, 6}), ("100", set())])
def test_interval_is_the_tables(interval: str, expected: set[int], table: TableBuilder) -> None:
    create(table, {"delta.checkpointInterval": interval})
    for version in range(1, 7):
        commit(table, add(f"f{version}"))
    assert {int(name[:20]) for name in names(table) if "checkpoint." in name} == expected


@pytest.mark.usefixtures("harmless_post_commit")
@pytest.mark.parametrize("interval", ["0", "-1", "often"])
def test_interval_that_is_none_is_told_and_the_rest_is_done(
    interval: str, table: TableBuilder, caplog: pytest.LogCaptureFixture
) -> None:
    create(table, {"delta.checkpointInterval": interval})
    assert "delta.checkpointInterval" in caplog.text
    assert checksum(table, 0)["numFiles"] == 0


def test_log_is_cleaned_after_a_checkpoint(table: TableBuilder) -> None:
    create(table, {"delta.checkpointInterval": "2", "delta.logRetentionDuration": "interval 1 day"})
    for version in range(1, 6):
        commit(table, add(f"f{version}"))
    assert f"{0:020d}.json" in names(table)
    commit(table, add("late"), now_ms=table.time_ms + 3 * DAY_MS)
    assert sorted(name for name in names(table) if name.endswith(".json")) == [f"{6:020d}.json"]
    assert Snapshot.load(table.store).num_files == 6


def test_checkpoint_of_a_snapshot_is_written_on_demand(table: TableBuilder) -> None:
    create(table)
    commit(table, add("a"))
    assert checkpoint(Snapshot.load(table.store), clock_ms=lambda: NOW_MS) == 1
    snapshot = Snapshot.load(table.store)
    assert snapshot.segment.checkpoint is not None and snapshot.segment.checkpoint.version == 1
    assert checkpoint(Snapshot.load(table.store, 0), clock_ms=lambda: NOW_MS) == 0
    assert orjson.loads(table.store.read("_delta_log/_last_checkpoint"))["version"] == 1


def test_checkpoint_of_old_snapshot_cleans_by_newest_retention(table: TableBuilder) -> None:
    create(table, {"delta.checkpointInterval": "100", "delta.logRetentionDuration": "interval 1 day"})
    commit(table, add("a"))
    old = Snapshot.load(table.store)
    commit(table, table.metadata(configuration={"delta.logRetentionDuration": "interval 30 days"}))
    checkpoint(old, clock_ms=lambda: table.time_ms + 5 * DAY_MS)
    assert f"{0:020d}.json" in names(table)
    checkpoint(old, clock_ms=lambda: table.time_ms + 50 * DAY_MS)
    assert f"{0:020d}.json" not in names(table) and Snapshot.load(table.store).num_files == 1


def test_checkpoint_of_a_table_that_cannot_be_written_is_refused(table: TableBuilder) -> None:
    table.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["newThing"]}}, table.metadata())
    with pytest.raises(UnsupportedTableFeatureError):
        checkpoint(Snapshot.load(table.store))


# ---------------------------------------------------------------- what goes wrong


def busy_table() -> TableBuilder:
    """A table whose next commit has a checkpoint, a cleanup with something to delete, and an older checkpoint."""
    table = TableBuilder(MemoryStore())
    create(table, {"delta.checkpointInterval": "2", "delta.logRetentionDuration": "interval 1 day"})
    for version in range(1, 6):
        commit(table, add(f"f{version}"), *([remove(f"f{version - 1}", size=100)] if version > 2 else []))
    commit(table, add("last"), post=False)
    return table


@pytest.mark.usefixtures("harmless_post_commit")
@pytest.mark.parametrize("moment", sampled(["before", "after"], 2))
def test_any_failed_call_after_a_commit_keeps_all_versions(moment: str, caplog: pytest.LogCaptureFixture) -> None:
    table = busy_table()
    quiet = deepcopy(table)
    assert isinstance(quiet.store, MemoryStore)
    quiet.store.calls.clear()
    after(quiet, 6, now_ms=quiet.time_ms + 3 * DAY_MS)
    calls = list(quiet.store.calls)
    kinds = {name for name, _ in calls}
    assert {"put", "put_if_absent", "delete", "read", "list_from", "open_input"} <= kinds and len(calls) > 20
    snapshot_files = {version: live(table, version) for version in range(7)}
    for number in range(len(calls)):
        one_failure(deepcopy(table), snapshot_files, number, moment)
    assert "Traceback" not in caplog.text


def one_failure(table: TableBuilder, snapshot_files: dict[int, set[str] | None], number: int, moment: str) -> None:
    count = 0
    assert isinstance(table.store, MemoryStore)

    def fail(now: str, name: str, path: str) -> None:
        nonlocal count
        count += now == "before"
        if count == number + 1 and now == moment:
            raise OSError(5, "injected")

    store, time_ms = table.store, table.time_ms + 3 * DAY_MS
    config = Snapshot.load(store).config
    actions = [action for line in table.commits[6] if (action := parse_action(orjson.dumps(line))) is not None]
    store.hook = fail
    run_post_commit(store, LogWriter(store, config), config, 6, actions, clock_ms=lambda: time_ms)
    store.hook = None
    assert live(table, 6) == snapshot_files[6]
    for version in range(6):
        if f"{version:020d}.json" in names(table) and (files := live(table, version)) is not None:
            assert files == snapshot_files[version]
    commit(table, add("next"), now_ms=time_ms)
    assert live(table, 7) == (snapshot_files[6] or set()) | {"next"}


def live(table: TableBuilder, version: int) -> set[str] | None:
    """The files of a version, None if the version no longer exists."""
    try:
        return set(Snapshot.load(table.store, version).files()["path"].to_pylist())
    except DeltaError:
        return None


@pytest.mark.parametrize(
    ("asked_for", "raised"),
    [(None, ()), ("mistakes", (KeyError,)), ("all", (KeyError, OSError, CorruptTableError, pa.ArrowInvalid))],
)
@pytest.mark.parametrize("error", [KeyError("k"), OSError(5, "injected"), CorruptTableError("bad"), pa.ArrowInvalid("bad")])
def test_failure_after_the_commit_is_logged_or_raised_by_setting(
    error: Exception,
    asked_for: str | None,
    raised: tuple[type[Exception], ...],
    table: TableBuilder,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create(table)
    commit(table, add("a"), post=False)

    def fail(self: LogWriter, version: int, data: bytes) -> None:
        raise error

    monkeypatch.setattr(LogWriter, "put_checksum", fail)
    if asked_for is None:
        monkeypatch.delenv("PYDELTA_POST_COMMIT_ERRORS")
    else:
        monkeypatch.setenv("PYDELTA_POST_COMMIT_ERRORS", asked_for)
    if isinstance(error, raised):
        with pytest.raises(type(error)):
            after(table, 1)
        return
    after(table, 1)
    assert "version 1 is committed, but has no version checksum" in caplog.text
    assert ("by a mistake in pydelta" in caplog.text) == isinstance(error, KeyError)
    assert caplog.records[-1].levelno == (logging.ERROR if isinstance(error, KeyError) else logging.WARNING)
