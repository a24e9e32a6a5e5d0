"""RESTORE: rows, metadata and counters of an earlier version; missing files; other writers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import add_feature, set_properties, unset_properties
from delta_py.alter.drop_feature import drop_feature
from delta_py.commit.transaction import Transaction
from delta_py.copies.clone import clone_table
from delta_py.copies.restore import Restored, restore, restore_faults
from delta_py.definition.create import create_table, define_table
from delta_py.errors import (
    ConcurrentAppendException,
    DataFileError,
    DeletionVectorError,
    TimestampOutOfRangeError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
    VersionNotFoundError,
)
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.identity_columns import identity_columns
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, STRING, StructField, StructType
from delta_py.vacuum.vacuum import VacuumRequest, vacuum
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import add_action_of
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "day": [f"d{n % 2}" for n in ids]})


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """Version 0: 1 2 3. Version 1: 4 added. Version 2: all replaced by 5, with another schema. One property at version 3."""
    path = str(tmp_path)
    write_delta(path, rows(1, 2, 3), partition_by=["day"], configuration={"delta.enableDeletionVectors": "true"})
    write_delta(path, rows(4), mode="append")
    write_delta(path, pa.table({"x": [5]}), mode="overwrite", overwrite_schema=True)
    set_properties(open_store(path), {"team": "b"})
    return open_store(path)


def ids(store: ObjectStore) -> list[int]:
    return sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist())


def test_restore_brings_rows_schema_and_partitioning_back(store: ObjectStore) -> None:
    result = restore(store, version=1)
    assert (result.version, ids(store)) == (4, [1, 2, 3, 4])
    assert (result.num_restored_files, result.num_removed_files, result.num_of_files_after_restore) == (3, 1, 3)
    metadata = DeltaTable(store.root).metadata
    assert (metadata.partition_columns, dict(metadata.configuration)) == (("day",), {"delta.enableDeletionVectors": "true"})
    entry = DeltaTable(store.root).history(1).to_pylist()[0]
    assert (entry["operation"], dict(entry["operationParameters"])) == ("RESTORE", {"version": "1", "timestamp": None})
    assert dict(entry["operationMetrics"])["numRestoredFiles"] == "3"
    Snapshot.load(store).check_integrity()


def test_restore_keeps_files_that_both_versions_have(store: ObjectStore) -> None:
    restore(store, version=1)
    result = restore(store, version=0)
    assert (result.num_restored_files, result.num_removed_files, ids(store)) == (0, 1, [1, 2, 3])


def test_restore_brings_deleted_rows_back(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_delta(path, rows(1, 2, 3), configuration={"delta.enableDeletionVectors": "true"})
    write_delta(path, rows(2).slice(0, 0), mode="overwrite", replace_where="id = 2")
    write_delta(path, rows(3).slice(0, 0), mode="overwrite", replace_where="id = 3")
    store = open_store(path)
    assert ids(store) == [1]
    for version, expected in ((1, [1, 3]), (0, [1, 2, 3]), (2, [1])):
        restore(store, version=version)
        assert ids(store) == expected


def test_restore_to_unknown_feature_is_refused_by_name() -> None:
    table = TableBuilder(MemoryStore())
    protocol_fields = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", "invariants"]}
    table.commit(
        {"protocol": {**protocol_fields, "writerFeatures": ["appendOnly", "invariants", "ofTomorrow"]}}, table.metadata()
    )
    table.commit({"protocol": protocol_fields})
    with pytest.raises(UnsupportedTableFeatureError, match="ofTomorrow"):
        restore(table.store, version=0)
    assert Snapshot.load(table.store).version == 1


def test_restore_to_a_time_takes_the_version_of_then(store: ObjectStore) -> None:
    history = DeltaTable(store.root).history().to_pylist()
    result = restore(store, timestamp_ms=int(history[-1]["timestamp"].timestamp() * 1000), timestamp="then")
    assert (result.version, ids(store)) == (4, [1, 2, 3])
    assert dict(DeltaTable(store.root).history(1).to_pylist()[0]["operationParameters"]) == {"version": None, "timestamp": "then"}
    with pytest.raises(TimestampOutOfRangeError, match="DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"):
        restore(store, timestamp_ms=0, timestamp="1970")
    with pytest.raises(VersionNotFoundError, match="DELTA_CANNOT_RESTORE_TABLE_VERSION"):
        restore(store, version=99)


def test_restore_of_the_newest_version_commits_nothing(store: ObjectStore) -> None:
    before = Snapshot.load(store)
    result = restore(store, version=3)
    size = sum(before.files()["size"].to_pylist())
    assert result == Restored(3, size, before.num_files, 0, 0, 0, 0) and size > 0
    assert restore(store, timestamp_ms=before.timestamp_ms).version == Snapshot.load(store).version == 3


def test_restore_refuses_a_version_whose_files_are_gone(store: ObjectStore, tmp_path: Path) -> None:
    missing_path = next((tmp_path / "day=d0").glob("*.parquet"))
    missing_path.unlink()
    with pytest.raises(DataFileError, match="gone, such as day=d0"):
        restore(store, version=1)
    assert Snapshot.load(store).version == 3


def test_restore_that_ignores_missing_files_restores_the_others(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    missing_path = next(path for path in Snapshot.load(store, version=0).files()["path"].to_pylist() if path.startswith("day=d0"))
    store.delete(missing_path)
    metrics = DeltaTable(store.root).restore(1, ignore_missing_files=True)
    restored = Snapshot.load(store)
    assert ids(store) == [1, 3, 4]
    assert (metrics["numRestoredFiles"], metrics["numMissingFiles"], metrics["numOfFilesAfterRestore"]) == (2, 1, 2)
    assert metrics["tableSizeAfterRestore"] == sum(restored.files()["size"].to_pylist())
    assert missing_path not in restored.files()["path"].to_pylist(), "everybody can read the table"
    assert f"restored without 1 data files that are gone, such as {missing_path}" in caplog.text
    assert dict(DeltaTable(store.root).history(1).to_pylist()[0]["operationMetrics"])["numMissingFiles"] == "1"
    restored.check_integrity()


def test_restore_without_any_file_that_is_left_empties_the_table(store: ObjectStore, tmp_path: Path) -> None:
    for file in tmp_path.glob("day=*/*.parquet"):
        file.unlink()
    result = restore(store, version=1, ignore_missing_files=True)
    assert (result.num_restored_files, result.num_missing_files, result.num_of_files_after_restore) == (0, 3, 0)
    assert DeltaTable(store.root).to_arrow().column_names == ["id", "day"] and ids(store) == []


def test_restore_never_ignores_a_missing_deletion_vector(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_delta(path, rows(*range(4000)), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(path).delete("id % 3 = 0")
    vectors = list(tmp_path.glob("deletion_vector_*"))
    assert vectors, "the vector is too large for the log"
    DeltaTable(path).delete("id % 3 = 1")
    vectors[0].unlink()
    for ignore in (False, True):
        with pytest.raises(DataFileError if not ignore else DeletionVectorError, match=vectors[0].name):
            restore(open_store(path), version=1, ignore_missing_files=ignore)
    assert Snapshot.load(open_store(path)).version == 2 and len(ids(open_store(path))) == 1333


def test_restore_does_not_take_quarantined_files_for_missing(store: ObjectStore) -> None:
    vacuum(store, VacuumRequest(retention_hours=0, check_retention=False, logs=False, quarantine=True))
    with pytest.raises(DataFileError, match=r"into quarantine, such as day=.*restore_quarantined"):
        restore(store, version=1, ignore_missing_files=True)
    assert Snapshot.load(store).version == 3
    DeltaTable(store.root).restore_quarantined()
    assert restore(store, version=1, ignore_missing_files=True).num_missing_files == 0
    assert ids(store) == [1, 2, 3, 4]


def test_restored_row_ids_of_the_files_that_are_left(tmp_path: Path) -> None:
    store = with_ids(tmp_path)
    missing_paths = Snapshot.load(store, version=0).files()["path"].to_pylist()
    write_delta(store.root, rows(9), mode="overwrite")
    store.delete(missing_paths[0])
    restore(store, version=1, ignore_missing_files=True)
    write_delta(store.root, rows(10), mode="append")
    assert (id_spans(store), ids(store)) == ([(5, 7), (9, 9)], [5, 6, 7, 10])


def test_restore_never_counts_down(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    metadata = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    schema = StructType((StructField("id", LONG, True, metadata), StructField("name", STRING)))
    properties = {"delta.columnMapping.mode": "name", "delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true"}
    create_table(store, define_table(schema, configuration=properties))
    name = pa.table({"name": ["a"]})
    write_delta(store.root, name, mode="append")
    write_delta(store.root, name.append_column("more", [[1]]), mode="append", merge_schema=True)
    mark = Snapshot.load(store).domain_metadata()["delta.rowTracking"]
    restore(store, version=0)
    snapshot = Snapshot.load(store)
    assert identity_columns(snapshot.schema)[0].mark == 2
    assert snapshot.schema.names == ("id", "name")
    assert snapshot.metadata.configuration["delta.columnMapping.maxColumnId"] == "3"
    assert snapshot.domain_metadata()["delta.rowTracking"] == mark
    write_delta(store.root, name, mode="append")
    assert ids(store) == [3]


@pytest.mark.parametrize("change", [lambda table: table.alter.rename_column("id", "key"), lambda table: unmapped(table)])
def test_restore_never_lowers_identity_marks_of_renamed_columns(
    tmp_path: Path, change: Callable[[DeltaTable], object]
) -> None:
    store = open_store(str(tmp_path))
    metadata = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    schema = StructType((StructField("id", LONG, True, metadata), StructField("name", STRING)))
    create_table(store, define_table(schema, configuration={"delta.columnMapping.mode": "name"}))
    name = pa.table({"name": ["a"]})
    write_delta(store.root, name, mode="append")
    change(DeltaTable(store.root))
    write_delta(store.root, name, mode="append")
    restore(store, version=1)
    write_delta(store.root, name, mode="append")
    assert ids(store) == [1, 3]


def unmapped(table: DeltaTable) -> int:
    return table.alter.unset_table_properties(["delta.columnMapping.mode"])


def test_restore_adds_row_counts_if_checkpoint_lacks_statistics(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    properties = {
        "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": "true",
        "delta.checkpointInterval": "3",
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpoint.writeStatsAsStruct": "false",
    }
    write_delta(path, rows(1, 2, 3), configuration=properties)
    write_delta(path, rows(4, 5), mode="append")
    DeltaTable(path).delete("id = 5")
    write_delta(path, rows(6), mode="append")
    write_delta(path, rows(9), mode="overwrite")
    clean = Snapshot.load(open_store(path))
    assert clean.segment.checkpoint is not None and clean.segment.checkpoint.version == 3
    restore(open_store(path), version=3)
    assert ids(open_store(path)) == [1, 2, 3, 4, 6]
    lines = map(json.loads, (tmp_path / f"t/_delta_log/{5:020d}.json").read_text().splitlines())
    added = {line["add"]["baseRowId"]: line["add"] for line in lines if "add" in line}
    assert {row_id: json.loads(add.get("stats") or "{}") for row_id, add in added.items()} == {0: {}, 3: {"numRecords": 2}, 5: {}}
    clone = open_store(str(tmp_path / "clone"))
    clone_table(Snapshot.load(open_store(path), version=3), clone)
    assert ids(clone) == [1, 2, 3, 4, 6]


def test_mapping_by_id_that_was_taken_away_does_not_come_back(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    write_delta(store.root, rows(1), configuration={"delta.columnMapping.mode": "id"})
    set_properties(store, {"delta.columnMapping.mode": "none"})
    with pytest.raises(UnsupportedOperationError, match="cannot change from 'none' to 'id'") as caught:
        restore(store, version=0)
    assert caught.value.error_class == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
    assert ids(store) == [1]


def test_a_version_before_column_mapping_has_no_ids(tmp_path: Path) -> None:
    table = str(tmp_path)
    write_delta(table, pa.table({"id": [1], "v": ["a"]}))
    set_properties(open_store(table), {"delta.columnMapping.mode": "name"})
    restore(open_store(table), version=0)
    configuration = Snapshot.load(open_store(table)).metadata.configuration
    assert not [name for name in configuration if name.startswith("delta.columnMapping")]
    set_properties(open_store(table), {"delta.columnMapping.mode": "name"})
    write_delta(table, pa.table({"id": [2], "v": ["b"]}), mode="append")
    assert sorted(DeltaTable(table).to_arrow()["v"].to_pylist()) == ["a", "b"]


def test_restore_beside_an_append_conflicts(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Transaction.commit

    def late(self: Transaction, *args: Any, **kwargs: Any) -> int:
        monkeypatch.setattr(Transaction, "commit", commit)
        write_delta(store.root, pa.table({"x": [6]}), mode="append")
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    with pytest.raises(ConcurrentAppendException):
        restore(store, version=0)
    assert sorted(DeltaTable(store.root).to_arrow()["x"].to_pylist()) == [5, 6]


def before_the_commit(monkeypatch: pytest.MonkeyPatch, step: Callable[[], object]) -> None:
    commit = Transaction.commit

    def stepped(self: Transaction, operation: str, *arguments: Any, **named: Any) -> int:
        if operation == "RESTORE":
            step()
        return commit(self, operation, *arguments, **named)

    monkeypatch.setattr(Transaction, "commit", stepped)


def test_vacuum_leaves_the_files_of_a_restore_that_is_under_way(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    request = VacuumRequest(retention_hours=0, check_retention=False, logs=False)
    counts: list[int] = []
    before_the_commit(monkeypatch, lambda: counts.append(vacuum(store, request).found.num_rows))
    restore(store, version=1)
    assert (counts, ids(store)) == ([0], [1, 2, 3, 4])


def test_files_that_go_while_a_restore_commits_are_told(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    missing_path = next(info.path for info in store.list_recursive("day=d0") if info.path.endswith(".parquet"))
    before_the_commit(monkeypatch, lambda: store.delete(missing_path))
    with pytest.raises(DataFileError, match=f"Version 4 .* {missing_path}, by a VACUUM .* Restore version 3") as caught:
        restore(store, version=1)
    assert caught.value.error_class == "DELTA_FILE_NOT_FOUND_DETAILED"
    monkeypatch.undo()
    restore(store, version=3)
    assert DeltaTable(store.root).to_arrow().to_pylist() == [{"x": 5}]


def test_dry_run_names_the_files_of_a_version_that_are_gone(store: ObjectStore) -> None:
    present = set(Snapshot.load(store, version=0).files()["path"].to_pylist())
    deleted = sorted(present)[0]
    store.delete(deleted)
    (row,) = restore_faults(store, version=0).to_pylist()
    assert (row["kind"], row["path"], row["version"]) == ("dataFile", deleted, 0)
    assert restore_faults(store, version=2).num_rows == 0
    with pytest.raises(DataFileError, match="1 of its files are gone"):
        restore(store, version=0)
    with pytest.raises(VersionNotFoundError, match="DELTA_CANNOT_RESTORE_TABLE_VERSION"):
        restore_faults(store, version=40)
    assert Snapshot.load(store).version == 3


# ---------------------------------------------------------------- row ids


def id_spans(store: ObjectStore) -> list[tuple[int, int]]:
    """The first and the last row id of each live file. Fails if a file has none, or two have the same."""
    files = Snapshot.load(store).files().to_pylist()
    assert all(file["base_row_id"] is not None and file["default_row_commit_version"] is not None for file in files)
    spans = sorted((f["base_row_id"], f["base_row_id"] + json.loads(f["stats"])["numRecords"] - 1) for f in files)
    assert all(last < first for (_, last), (first, _) in pairwise(spans)), spans
    return spans


def id_mark(store: ObjectStore) -> int:
    return int(json.loads(Snapshot.load(store).domain_metadata()["delta.rowTracking"].configuration)["rowIdHighWaterMark"])


def with_ids(path: Path, **properties: str) -> ObjectStore:
    """Two files of five and three rows, whose ids are 0 to 7."""
    configuration = {"delta.enableRowTracking": "true", **{name.replace("__", "."): value for name, value in properties.items()}}
    write_delta(str(path), rows(0, 1, 2, 3, 4), configuration=configuration)
    write_delta(str(path), rows(5, 6, 7), mode="append")
    return open_store(str(path))


def test_restore_before_drop_of_row_tracking_restores_row_ids(tmp_path: Path) -> None:
    store = with_ids(tmp_path)
    before = {file["path"]: file["base_row_id"] for file in Snapshot.load(store).files().to_pylist()}
    drop_feature(store, "rowTracking")
    DeltaTable(store.root).delete("id = 6")
    result = restore(store, version=1)
    assert (result.num_restored_files, result.num_removed_files, result.num_of_files_after_restore) == (1, 1, 2)
    assert {file["path"]: file["base_row_id"] for file in Snapshot.load(store).files().to_pylist()} == before
    assert (id_spans(store), id_mark(store), ids(store)) == ([(0, 4), (5, 7)], 7, list(range(8)))
    write_delta(store.root, rows(8, 9), mode="append")
    assert (id_spans(store), id_mark(store)) == ([(0, 4), (5, 7), (8, 9)], 9)
    Snapshot.load(store).check_integrity()


def test_restore_that_only_restores_row_ids_changes_no_rows(tmp_path: Path) -> None:
    store = with_ids(tmp_path, delta__enableChangeDataFeed="true")
    drop_feature(store, "rowTracking")
    result = restore(store, version=1)
    assert (result.num_restored_files, result.num_removed_files, id_spans(store)) == (0, 0, [(0, 4), (5, 7)])
    assert DeltaTable(store.root).changes(starting_version=result.version).read_all().num_rows == 0


def test_restore_over_other_ids_of_the_files_repeats_no_id(tmp_path: Path) -> None:
    store = with_ids(tmp_path, delta__enableDeletionVectors="true")
    DeltaTable(store.root).delete("id = 2")
    drop_feature(store, "rowTracking")
    write_delta(store.root, rows(*range(10, 30)), mode="append")
    set_properties(store, {"delta.enableRowTracking": "true"})
    assert id_mark(store) == 27
    restore(store, version=2)
    assert (id_spans(store), id_mark(store), ids(store)) == ([(0, 4), (5, 7)], 27, [0, 1, 3, 4, 5, 6, 7])
    write_delta(store.root, rows(100), mode="append")
    assert id_spans(store)[-1] == (28, 28)
    restore(store, version=1)
    assert (id_spans(store), ids(store)) == ([(0, 4), (5, 7)], list(range(8)))


def test_restore_of_version_without_ids_keeps_ids_of_files(tmp_path: Path) -> None:
    write_delta(str(tmp_path), rows(0, 1, 2))
    write_delta(str(tmp_path), rows(3, 4), mode="append")
    store = open_store(str(tmp_path))
    set_properties(store, {"delta.enableRowTracking": "true"})
    DeltaTable(store.root).delete("id = 3")
    mark, result = id_mark(store), restore(store, version=1)
    assert (result.num_restored_files, result.num_removed_files, ids(store)) == (1, 1, [0, 1, 2, 3, 4])
    assert len(id_spans(store)) == 2 and id_mark(store) > mark, "the one that comes back gets new ids"
    set_properties(store, {"delta.enableRowTracking": "true"})
    assert len(id_spans(store)) == 2


def test_restore_to_a_version_with_partial_ids_repeats_no_id(tmp_path: Path) -> None:
    """A DROP FEATURE died, was completed, and row tracking was enabled again since."""
    store = with_ids(tmp_path)
    set_internal(store, {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"})
    unnumber(store, 1)
    some = Snapshot.load(store)
    assert some.files()["base_row_id"].null_count == 1
    drop_feature(store, "rowTracking")
    set_properties(store, {"delta.enableRowTracking": "true"})
    restore(store, version=some.version)
    unset_properties(store, ["delta.rowTrackingSuspended"])
    set_properties(store, {"delta.enableRowTracking": "true"})
    assert len(id_spans(store)) == 2
    write_delta(store.root, rows(8), mode="append")
    assert id_spans(store)[-1][1] == id_mark(store)


def lose_mark(store: ObjectStore) -> None:
    """As another client does that restores a table."""
    log = Path(store.root) / "_delta_log"
    for checksum in log.glob("*.crc"):
        checksum.unlink()
    for commit in log.glob("*.json"):
        commit.write_text("\n".join(line for line in commit.read_text().splitlines() if "rowIdHighWaterMark" not in line))
    assert "delta.rowTracking" not in Snapshot.load(store).domain_metadata()


def test_restore_assigns_ids_above_files_if_the_mark_is_lost(tmp_path: Path) -> None:
    store = with_ids(tmp_path)
    write_delta(store.root, rows(8), mode="overwrite")
    lose_mark(store)
    restore(store, version=1)
    assert (id_spans(store), id_mark(store)) == ([(0, 4), (5, 7)], 8)


def test_append_without_a_mark_assigns_ids_above_existing_files(tmp_path: Path) -> None:
    store = with_ids(tmp_path)
    lose_mark(store)
    write_delta(store.root, rows(8), mode="append")
    assert (id_spans(store), id_mark(store)) == ([(0, 4), (5, 7), (8, 8)], 8)


def test_restore_before_a_backfill_keeps_the_backfilled_ids(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    write_delta(store.root, rows(1, 2), mode="append")
    add_feature(store, "rowTracking")
    write_delta(store.root, rows(3), mode="append")
    version = Snapshot.load(store).version
    set_properties(store, {"delta.enableRowTracking": "true"})
    spans = id_spans(store)
    restore(store, version=version)
    assert id_spans(store) == spans and len(spans) == 2


def test_restore_beside_an_append_keeps_the_higher_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blind appends do not conflict with a restore that changes no metadata, if the isolation level allows it."""
    store = with_ids(tmp_path, delta__isolationLevel="WriteSerializable")
    DeltaTable(store.root).delete("id = 6")
    commit = Transaction.commit

    def late(self: Transaction, *args: Any, **kwargs: Any) -> int:
        monkeypatch.setattr(Transaction, "commit", commit)
        write_delta(store.root, rows(10, 11, 12), mode="append")
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    restore(store, version=1)
    spans = id_spans(store)
    assert spans[:2] == [(0, 4), (5, 7)] and id_mark(store) == spans[-1][1]


def set_internal(store: ObjectStore, properties: dict[str, str]) -> None:
    """Properties that no user can set."""
    snapshot = Snapshot.load(store)
    configuration = {**snapshot.metadata.configuration, **properties}
    Transaction(snapshot).set_metadata(replace(snapshot.metadata, configuration=configuration)).commit("SET TBLPROPERTIES", {})


def unnumber(store: ObjectStore, count: int) -> None:
    """Remove the row ids of some files."""
    snapshot = Snapshot.load(store)
    files = islice(plan_scan(snapshot, None, None, ScanOptions(keep_all=True)).scan_files(), count)
    bare = (replace(add_action_of(file, data_change=False), base_row_id=None, default_row_commit_version=None) for file in files)
    Transaction(snapshot).add(WrittenFiles(adds=tuple(bare))).commit("ROW TRACKING UNBACKFILL", {})
