"""Log cleanup: what is deleted, what stays, and that every retained version reads as before."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest

from delta_py.checkpoint import checkpoint_v2, cleanup
from delta_py.checkpoint.checkpoint import write_checkpoint
from delta_py.checkpoint.cleanup import CleanedLog, clean_log
from delta_py.errors import DeltaError
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import load_segment
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, _lines, _parquet, _shape, add, remove

DAY_MS = 86_400_000
START_MS = 1_700_006_400_000  # 2023-11-15, midnight
RETENTION = {"delta.logRetentionDuration": "interval 2 days"}
V2 = {**RETENTION, "delta.checkpointPolicy": "v2"}


def make(commits: int = 12, checkpoints: tuple[int, ...] = (3, 6, 9), properties: Mapping[str, str] = RETENTION) -> TableBuilder:
    """One commit a day at noon, with checkpoints of some of them, and checksums."""
    table = TableBuilder(MemoryStore())
    features = ["v2Checkpoint"] if "delta.checkpointPolicy" in properties else None
    for version in range(commits):
        time_ms = START_MS + version * DAY_MS + DAY_MS // 2
        actions = [table.protocol(features=features), table.metadata(configuration=properties)] if version == 0 else []
        if version:
            actions.append(remove(f"f{version - 1}"))
        table.commit(*actions, add(f"f{version}"), add(f"g{version}"), time_ms=time_ms)
        table.time_ms = time_ms
        table.checksum(version)
        if version in checkpoints:
            checkpoint(table, version)
    return table


def checkpoint(table: TableBuilder, version: int) -> None:
    write_checkpoint(table.store, writer(table), load_segment(table.store, version), now_ms=table.time_ms)


def writer(table: TableBuilder) -> LogWriter:
    return LogWriter(table.store, Snapshot.load(table.store).config)


def clean(table: TableBuilder, day: float, **options: Any) -> CleanedLog:
    now_ms = int(START_MS + day * DAY_MS)
    return clean_log(table.store, writer(table), Snapshot.load(table.store).config, now_ms=now_ms, **options)


def names(table: TableBuilder, directory: str = "_delta_log") -> set[str]:
    return {info.path.rpartition("/")[2] for info in table.store.list_from(directory)}


def commits(table: TableBuilder) -> list[int]:
    return sorted(int(name[:20]) for name in names(table) if name.endswith(".json") and "c" not in name)


def state(table: TableBuilder, version: int) -> list[str]:
    return sorted(Snapshot.load(table.store, version).files()["path"].to_pylist())


def states(table: TableBuilder) -> dict[int, list[str]]:
    states_by_version = {}
    for version in range(max(table.commits) + 1):
        try:
            states_by_version[version] = state(table, version)
        except DeltaError:
            continue
    return states_by_version


def test_cleanup_deletes_all_before_the_last_needed_checkpoint() -> None:
    table = make()
    before = states(table)
    # At noon of day 11 two days are retained, from midnight of day 9: the newest commit before it is 8, its checkpoint 6.
    assert clean(table, 11.5) == CleanedLog(6, 6 + 6 + 1)
    assert commits(table) == list(range(6, 12))
    assert f"{3:020d}.checkpoint.parquet" not in names(table) and f"{6:020d}.checkpoint.parquet" in names(table)
    assert f"{5:020d}.crc" not in names(table) and f"{6:020d}.crc" in names(table)
    assert states(table) == {version: before[version] for version in range(6, 12)}
    assert clean(table, 11.5) == CleanedLog()


@pytest.mark.parametrize(("day", "first"), [(9.0, 6), (8.99, 3), (5.9, 0), (11.0, 6), (12.0, 9), (1_000.0, 9)])
def test_cut_is_at_midnight(day: float, first: int) -> None:
    table = make()
    clean(table, day)
    assert commits(table)[0] == first


def test_nothing_goes_without_a_checkpoint_at_or_before_the_cut() -> None:
    table = make(checkpoints=(10,))
    assert clean(table, 11.5) == CleanedLog()
    assert commits(table) == list(range(12))


def test_nothing_goes_where_it_is_switched_off_or_protected() -> None:
    table = make(properties={**RETENTION, "delta.enableExpiredLogCleanup": "false"})
    assert clean(table, 100) == CleanedLog()
    table = make()
    config = Snapshot.load(table.store).config
    for protected, first in ((9, 9), (10, None)):
        config.metadata.configuration["delta.requireCheckpointProtectionBeforeVersion"] = str(protected)  # type: ignore[index]
        guarded = type(config)(config.protocol, config.metadata)
        cleaned = clean_log(table.store, writer(table), guarded, now_ms=START_MS + 100 * DAY_MS)
        assert cleaned.first_version == first
        table = make()


def test_retention_of_thirty_days_is_the_default() -> None:
    table = make(properties={})
    assert clean(table, 33.9).first_version is None
    assert clean(table, 34).first_version == 3


def test_cleanup_deletes_compactions_up_to_the_kept_checkpoint() -> None:
    table = make()
    for start, end in ((1, 3), (4, 6), (6, 8), (7, 8)):
        table.compact(start, end)
    clean(table, 11.5)
    assert {name for name in names(table) if "compacted" in name} == {f"{7:020d}.{8:020d}.compacted.json"}


def test_damaged_checkpoint_is_not_relied_on(caplog: pytest.LogCaptureFixture) -> None:
    table = make()
    name = f"{6:020d}.checkpoint.parquet"
    data = bytearray(table.store.read(f"_delta_log/{name}"))
    data[40:80] = bytes(40)
    table.write(name, bytes(data))
    with caplog.at_level(logging.WARNING):
        assert clean(table, 11.5).first_version == 3
    assert "does not rely on" in caplog.text


def test_cleanup_ignores_a_checkpoint_against_its_checksum(caplog: pytest.LogCaptureFixture) -> None:
    table = make()
    table.checksum(6, numFiles=9)
    with caplog.at_level(logging.WARNING):
        assert clean(table, 11.5).first_version == 3
    assert "does not rely on" in caplog.text and "numFiles" in caplog.text


def test_commit_time_never_counts_as_before_its_predecessor() -> None:
    table = make()
    path = f"_delta_log/{10:020d}.json"
    assert isinstance(table.store, MemoryStore)
    data, _ = table.store.objects[path]
    table.store.objects[path] = (data, START_MS)  # its clock was wrong
    clean(table, 11.5)
    assert commits(table)[0] == 6


def test_log_whose_files_were_all_copied_today_is_kept() -> None:
    table = make()
    assert isinstance(table.store, MemoryStore)
    for path, (data, _) in list(table.store.objects.items()):
        table.store.objects[path] = (data, START_MS + 11 * DAY_MS)
    assert clean(table, 11.5) == CleanedLog()


def test_in_commit_timestamps_decide_where_the_table_has_them() -> None:
    table = TableBuilder(MemoryStore())
    properties = {**RETENTION, "delta.enableInCommitTimestamps": "true"}
    listed = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    for version in range(12):
        info = {"commitInfo": {"inCommitTimestamp": START_MS + version * DAY_MS + DAY_MS // 2}}
        head = [{"protocol": listed}, table.metadata(configuration=properties)] if version == 0 else []
        table.commit(info, *head, add(f"f{version}"), time_ms=START_MS + 500 * DAY_MS)
        if version in (3, 6, 9):
            checkpoint(table, version)
    assert clean(table, 11.5).first_version == 6
    assert commits(table) == list(range(6, 12))


@pytest.mark.parametrize("properties", [RETENTION, V2])
def test_cleanup_that_breaks_off_anywhere_loses_no_kept_version(properties: Mapping[str, str]) -> None:
    total = len([call for call in deletes_of(make(properties=properties))])
    assert total >= 13
    new_table = make(properties=properties)
    before = states(new_table)
    for allowed in range(total):
        table = deepcopy(new_table)
        break_off(table, allowed)
        with pytest.raises(OSError, match="injected"):
            clean(table, 11.5)
        assert isinstance(table.store, MemoryStore)
        table.store.hook = None
        states_after = states(table)
        assert all(states_after[version] == before[version] for version in states_after)
        assert set(range(6, 12)) <= states_after.keys()
        clean(table, 11.5)
        assert commits(table) == list(range(6, 12))


def deletes_of(table: TableBuilder) -> list[tuple[str, str]]:
    clean(table, 11.5)
    assert isinstance(table.store, MemoryStore)
    return [call for call in table.store.calls if call[0] == "delete"]


def break_off(table: TableBuilder, allowed: int) -> None:
    count = 0

    def hook(moment: str, name: str, path: str) -> None:
        nonlocal count
        if name == "delete" and moment == "before":
            count += 1
            if count > allowed:
                raise OSError("injected")

    assert isinstance(table.store, MemoryStore)
    table.store.hook = hook


def test_budget_ends_a_cleanup_and_the_next_goes_on() -> None:
    table, ticks = make(), iter(range(100))
    cleaned = clean(table, 11.5, clock=lambda: next(ticks))
    assert 0 < cleaned.deleted_count <= cleanup.BUDGET_SECONDS
    assert set(range(6, 12)) <= states(table).keys()
    clean(table, 11.5)
    assert commits(table) == list(range(6, 12))


# ---------------------------------------------------------------- sidecars


def test_sidecars_that_no_checkpoint_names_go_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_v2, "SIDECAR_ROWS", 1)
    table = make(properties=V2)
    assert isinstance(table.store, MemoryStore)
    before, sidecars = states(table), names(table, "_delta_log/_sidecars")
    table.write("_sidecars/lost.parquet", b"x", time_ms=START_MS)
    table.write("_sidecars/new.parquet", b"x", time_ms=START_MS + 11 * DAY_MS)
    table.write("_sidecars/thesis.doc", b"x", time_ms=START_MS)
    clean(table, 11.5)
    left = names(table, "_delta_log/_sidecars")
    assert "new.parquet" in left and "lost.parquet" not in left and "thesis.doc" in left
    assert left - {"new.parquet", "thesis.doc"} < sidecars
    assert states(table) == {version: before[version] for version in range(6, 12)}


def test_no_sidecar_goes_while_a_checkpoint_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    table = make(properties=V2)
    (name,) = [name for name in names(table) if name.startswith(f"{9:020d}.checkpoint")]
    table.write(name, b"damaged")
    before = names(table, "_delta_log/_sidecars")
    with caplog.at_level(logging.WARNING):
        assert clean(table, 11.5).first_version == 6
    assert names(table, "_delta_log/_sidecars") == before
    assert "no sidecar is deleted" in caplog.text


def test_cleanup_gives_a_v2_checkpoint_the_classic_name_first() -> None:
    table = make(properties=V2)
    assert not any(name.endswith(".checkpoint.parquet") for name in names(table))
    clean(table, 8.5)
    assert [name for name in names(table) if name.endswith(".checkpoint.parquet")] == [f"{9:020d}.checkpoint.parquet"]
    before = state(table, 10)
    (unique,) = [name for name in names(table) if name.startswith(f"{9:020d}.checkpoint.") and name.count("-")]
    table.delete(unique)
    assert state(table, 10) == before


# ---------------------------------------------------------------- what a checkpoint is compared with


def without_records(table: TableBuilder, *checksums: int) -> TableBuilder:
    """No `_last_checkpoint`, and no version checksums of these versions, or of any."""
    for name in names(table):
        if name == "_last_checkpoint" or (name.endswith(".crc") and (not checksums or int(name[:20]) in checksums)):
            table.delete(name)
    return table


def damage(table: TableBuilder, version: int, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Replace the checkpoint of a version: by sound Parquet, with other actions."""
    actions = table.replay(version)
    name = f"{version:020d}.checkpoint.parquet"
    table.write(name, _parquet(change(actions), _shape(True, None), None))


DAMAGES: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "lacks a file of the last commit": lambda actions: [a for a in actions if a.get("add", {}).get("path") != "f6"],
    "lacks a file of the older checkpoint": lambda actions: [a for a in actions if a.get("add", {}).get("path") != "g1"],
    "holds a file that was removed": lambda actions: [*actions, add("f4")],
    "holds a file that nobody added": lambda actions: [*actions, add("x")],
    "names a file twice": lambda actions: [*actions, add("g1")],
    "names a file twice and lacks another": lambda actions: [
        *(a for a in actions if a.get("add", {}).get("path") != "g1"),
        add("g2"),
    ],
    "has another schema": lambda actions: [
        *(a for a in actions if "metaData" not in a),
        TableBuilder(MemoryStore()).metadata(("other", "long"), configuration=RETENTION),
    ],
    "lacks a transaction": lambda actions: [a for a in actions if "txn" not in a],
    "has an older transaction": lambda actions: [
        *(a for a in actions if "txn" not in a),
        {"txn": {"appId": "app", "version": 1}},
    ],
    "lacks a domain": lambda actions: [a for a in actions if "domainMetadata" not in a],
}


def with_state(**options: Any) -> TableBuilder:
    table = make(**options)
    table.commits[2] += [{"txn": {"appId": "app", "version": 7}}, {"domainMetadata": {"domain": "d", "configuration": "{}"}}]
    table.write(f"{2:020d}.json", _lines(table.commits[2]), time_ms=START_MS + 2 * DAY_MS + DAY_MS // 2)
    for version in (3, 6, 9):
        damage(table, version, lambda actions: actions)
    return table


def test_cleanup_compares_checkpoint_without_records_with_log() -> None:
    table = without_records(with_state())
    before = states(table)
    assert clean(table, 11.5).first_version == 6
    assert states(table) == {version: before[version] for version in range(6, 12)}


@pytest.mark.parametrize("what", DAMAGES)
def test_cleanup_keeps_commits_behind_an_incomplete_checkpoint(what: str, caplog: pytest.LogCaptureFixture) -> None:
    table = without_records(with_state())
    damage(table, 6, DAMAGES[what])
    with caplog.at_level(logging.WARNING):
        assert clean(table, 11.5).first_version == 3, "the checkpoint before it is right"
    assert "does not rely on the checkpoint of version 6" in caplog.text


@pytest.mark.parametrize("what", ["lacks a file of the last commit", "holds a file that was removed"])
def test_rest_of_a_log_that_has_no_beginning_speaks_for_itself(what: str) -> None:
    for is_damaged in (False, True):
        table = without_records(with_state())
        for version in range(4):  # a cleanup was interrupted
            table.delete(f"{version:020d}.json")
        table.delete(f"{3:020d}.checkpoint.parquet")
        if is_damaged:
            damage(table, 6, DAMAGES[what])
        assert clean(table, 11.5).first_version == (None if is_damaged else 6)
        assert commits(table)[0] == (4 if is_damaged else 6)


def test_cleanup_compares_no_checkpoint_with_a_damaged_older_one() -> None:
    table = without_records(with_state())
    table.write(f"{3:020d}.checkpoint.parquet", b"damaged")
    assert clean(table, 11.5).first_version == 6


def test_last_checkpoint_is_compared_where_there_is_no_checksum() -> None:
    for recorded, first in ((8, 6), (7, 3)):
        table = without_records(make())
        table.last_checkpoint(6, numOfAddFiles=recorded)
        assert len(state(table, 6)) == 8
        assert clean(table, 11.5).first_version == first


@pytest.mark.parametrize("field", ["setTransactions", "domainMetadata"])
def test_state_that_the_checksum_records_is_compared(field: str) -> None:
    table = with_state()
    records = {"setTransactions": [{"appId": "app", "version": 8}], "domainMetadata": [{"domain": "e", "configuration": "{}"}]}
    table.checksum(6, **{field: records[field]})
    assert clean(table, 11.5).first_version == 3


def test_log_that_takes_too_long_to_read_stays() -> None:
    table, ticks = without_records(make()), iter(range(0, 10_000, 10))
    assert clean(table, 11.5, clock=lambda: next(ticks)) == CleanedLog()
