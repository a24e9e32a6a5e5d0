"""Properties, protocol versions and features of existing tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import add_feature, set_properties, unset_properties, upgrade_protocol
from delta_py.alter.alter_columns import add_columns
from delta_py.alter.column_changes import NewColumn
from delta_py.alter.feature_traces import _remove_tracking
from delta_py.commit.transaction import Transaction
from delta_py.copies.clone import clone_table
from delta_py.definition.create import create_table, define_table
from delta_py.definition.row_tracking import give_row_ids, remove_row_ids
from delta_py.errors import (
    DeltaError,
    InvalidOptionError,
    MetadataChangedException,
    SchemaMismatchError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
)
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, DataType, StructField, StructType

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["mon", "mon", "tue"], "s": [{"x": 1}, {"x": 2}, None]})


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """A table of three rows, partitioned by day, with the oldest protocol."""
    write_delta(str(tmp_path), ROWS, partition_by=["day"])
    return open_store(str(tmp_path))


def rows_of(store: ObjectStore) -> list[int]:
    return sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist())


def last_commit(store: ObjectStore) -> Mapping[str, str]:
    row = DeltaTable(store.root).history(1).to_pylist()[0]
    return {"operation": row["operation"], **dict(row["operationParameters"])}


# ---------------------------------------------------------------- properties


def test_set_properties_is_one_commit_of_metadata_alone(store: ObjectStore) -> None:
    before = Snapshot.load(store)
    assert set_properties(store, {"team": "b", "DELTA.appendonly": "true"}) == 1
    after = Snapshot.load(store)
    assert dict(after.metadata.configuration) == {"team": "b", "delta.appendOnly": "true"}
    assert (after.metadata.id, after.protocol, after.num_files) == (before.metadata.id, before.protocol, before.num_files)
    assert last_commit(store) == {"operation": "SET TBLPROPERTIES", "properties": '{"team":"b","DELTA.appendonly":"true"}'}
    with pytest.raises(DeltaError) as caught:
        write_delta(store.root, ROWS, mode="overwrite")
    assert caught.value.error_class == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


def test_set_properties_ignores_the_case_of_property_names(store: ObjectStore) -> None:
    set_properties(store, {"delta.checkpointInterval": "20"})
    set_properties(store, {"DELTA.CHECKPOINTINTERVAL": "30"})
    assert dict(Snapshot.load(store).metadata.configuration) == {"delta.checkpointInterval": "30"}


def test_set_properties_that_hold_already_commits_nothing(store: ObjectStore) -> None:
    assert set_properties(store, {"team": "b"}) == 1
    assert set_properties(store, {"team": "b"}) == 1
    assert Snapshot.load(store).version == 1


@pytest.mark.parametrize(
    ("properties", "reader", "writer", "features"),
    [
        ({"delta.enableDeletionVectors": "true"}, 3, 7, {"appendOnly", "invariants", "deletionVectors"}),
        ({"delta.enableChangeDataFeed": "true"}, 1, 7, {"appendOnly", "invariants", "changeDataFeed"}),
        ({"delta.columnMapping.mode": "name"}, 2, 7, {"appendOnly", "invariants", "columnMapping"}),
        ({"delta.checkpointPolicy": "v2"}, 3, 7, {"appendOnly", "invariants", "v2Checkpoint"}),
        ({"delta.enableTypeWidening": "true"}, 3, 7, {"appendOnly", "invariants", "typeWidening"}),
        ({"delta.feature.rowTracking": "supported"}, 1, 7, {"appendOnly", "invariants", "rowTracking", "domainMetadata"}),
        ({"delta.minWriterVersion": "4"}, 1, 4, None),
    ],
)
def test_set_properties_brings_the_features_along(
    store: ObjectStore, properties: dict[str, str], reader: int, writer: int, features: set[str] | None
) -> None:
    set_properties(store, properties)
    snapshot = Snapshot.load(store)
    assert (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version) == (reader, writer)
    assert snapshot.protocol.writer_features == (None if features is None else frozenset(features))
    write_delta(store.root, ROWS, mode="append")
    assert rows_of(store) == [1, 1, 2, 2, 3, 3]


def test_set_properties_column_mapping_keeps_names_in_files(store: ObjectStore) -> None:
    set_properties(store, {"delta.columnMapping.mode": "name"})
    snapshot = Snapshot.load(store)
    nested = snapshot.schema.fields[2].data_type.fields[0]  # type: ignore[union-attr]
    fields = [*snapshot.schema.fields, nested]
    assert [f.metadata["delta.columnMapping.physicalName"] for f in fields] == ["id", "day", "s", "x"]
    assert sorted(f.metadata["delta.columnMapping.id"] for f in fields) == [1, 2, 3, 4]
    assert snapshot.metadata.configuration["delta.columnMapping.maxColumnId"] == "4"
    assert DeltaTable(store.root).to_arrow(filter="day = 'mon' and s.x = 2")["id"].to_pylist() == [2]


def test_set_properties_row_tracking_gives_ids_to_existing_rows(store: ObjectStore) -> None:
    write_delta(store.root, ROWS, mode="append")
    assert set_properties(store, {"delta.enableRowTracking": "true", "team": "b"}) == 4
    snapshot = Snapshot.load(store)
    operations = DeltaTable(store.root).history()["operation"].to_pylist()
    assert operations[:3] == ["SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL"]
    files = snapshot.files().to_pylist()
    starts = sorted((file["base_row_id"], orjson.loads(file["stats"])["numRecords"]) for file in files)
    assert [start for start, _ in starts] == [0, *accumulate(count for _, count in starts[:-1])], "ids without overlap"
    assert all(file["default_row_commit_version"] == 3 for file in files)
    configuration = snapshot.metadata.configuration
    assert configuration["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    assert configuration["delta.rowTracking.materializedRowCommitVersionColumnName"].startswith("_row-commit-version-col-")
    snapshot.check_integrity()
    assert rows_of(store) == [1, 1, 2, 2, 3, 3]


def test_bad_property_next_to_row_tracking_changes_nothing(store: ObjectStore) -> None:
    with pytest.raises(UnsupportedOperationError):
        set_properties(store, {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "id"})
    assert Snapshot.load(store).version == 0


def test_set_properties_row_tracking_survives_concurrent_removal(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Transaction.commit

    def late(self: Transaction, operation: str, *args: Any, **kwargs: Any) -> int:
        if operation == "ROW TRACKING BACKFILL":
            monkeypatch.setattr(Transaction, "commit", commit)
            write_delta(store.root, ROWS.slice(0, 1), mode="overwrite", replace_where="day = 'mon'")
        return commit(self, operation, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    set_properties(store, {"delta.enableRowTracking": "true"})
    files = Snapshot.load(store).files().to_pylist()
    assert rows_of(store) == [1, 3]
    starts = {file["base_row_id"] for file in files}
    assert len(starts) == len(files) == 2 and None not in starts


def test_set_properties_row_tracking_needs_row_counts_of_files(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS)
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [orjson.loads(line) for line in commit.read_bytes().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    commit.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    for checksum in (tmp_path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    with pytest.raises(UnsupportedOperationError, match="statistics of 1 files"):
        set_properties(open_store(str(tmp_path)), {"delta.enableRowTracking": "true"})
    assert Snapshot.load(open_store(str(tmp_path))).version == 0


@pytest.mark.parametrize(
    ("properties", "kind", "condition"),
    [
        ({"delta.columnMapping.mode": "id"}, UnsupportedOperationError, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ({"delta.constraints.c": "id > 0"}, UnsupportedOperationError, "DELTA_ADD_CONSTRAINTS"),
        (
            {"delta.feature.redirectReaderWriter-preview": "supported"},
            UnsupportedTableFeatureError,
            "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        ),
        ({"delta.feature.catalogOwned-preview": "supported"}, UnsupportedTableFeatureError,
        "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"), ({"delta.feature.nothing": "supported"}, InvalidOptionError,
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"), ({"delta.nothing": "1"}, InvalidOptionError, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"delta.appendOnly": "yes"}, InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        (
            {"delta.enableDeletionVectors": "true", "delta.compatibility.symlinkFormatManifest.enabled": "true"},
            UnsupportedOperationError,
            "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
        ),
    ],
)
def test_set_properties_refuses_what_the_table_cannot_get(
    store: ObjectStore, properties: dict[str, str], kind: type[DeltaError], condition: str
) -> None:
    with pytest.raises(kind) as caught:
        set_properties(store, properties)
    assert caught.value.error_class == condition
    assert Snapshot.load(store).version == 0


def test_set_properties_change_feed_refuses_its_column_names(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"_change_type": [1]}))
    with pytest.raises(SchemaMismatchError, match="_change_type"):
        set_properties(open_store(str(tmp_path)), {"delta.enableChangeDataFeed": "true"})


def test_unset_properties_takes_them_back(store: ObjectStore) -> None:
    set_properties(store, {"team": "b", "delta.checkpointInterval": "20"})
    assert unset_properties(store, ["team", "DELTA.checkpointINTERVAL"]) == 2
    assert dict(Snapshot.load(store).metadata.configuration) == {}
    assert last_commit(store)["operation"] == "UNSET TBLPROPERTIES"
    with pytest.raises(InvalidOptionError) as caught:
        unset_properties(store, ["team"])
    assert caught.value.error_class == "DELTA_UNSET_NON_EXISTENT_PROPERTY"
    assert unset_properties(store, ["team"], if_exists=True) == 2


def test_unset_properties_never_takes_what_files_depend_on(store: ObjectStore) -> None:
    set_properties(store, {"delta.columnMapping.mode": "name"})
    with pytest.raises(InvalidOptionError):
        unset_properties(store, ["delta.columnMapping.maxColumnId"])
    assert Snapshot.load(store).version == 1


@pytest.mark.parametrize("raced", [False, True])
def test_set_properties_in_commit_timestamps_say_since_when(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, raced: bool
) -> None:
    commit = Transaction.commit

    def late(self: Transaction, *args: Any, **kwargs: Any) -> int:
        monkeypatch.setattr(Transaction, "commit", commit)
        write_delta(store.root, ROWS, mode="append")
        return commit(self, *args, **kwargs)

    if raced:
        monkeypatch.setattr(Transaction, "commit", late)
    first = 2 if raced else 1
    assert set_properties(store, {"delta.enableInCommitTimestamps": "true"}) == first
    configuration = Snapshot.load(store).metadata.configuration
    stamped = orjson.loads(store.read(f"_delta_log/{first:020}.json").splitlines()[0])["commitInfo"]["inCommitTimestamp"]
    assert configuration["delta.inCommitTimestampEnablementVersion"] == str(first)
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(stamped)
    write_delta(store.root, ROWS, mode="append")
    times = [row["timestamp"] for row in DeltaTable(store.root).history().to_pylist()]
    assert times == sorted(times, reverse=True) and len(times) == first + 2
    assert DeltaTable(store.root, timestamp=stamped).version == first
    set_properties(store, {"delta.enableInCommitTimestamps": "false"})
    assert dict(Snapshot.load(store).metadata.configuration) == {"delta.enableInCommitTimestamps": "false"}
    Snapshot.load(store).check_integrity()


# ---------------------------------------------------------------- protocol


def test_upgrade_protocol_raises_versions_and_never_lowers_them(store: ObjectStore) -> None:
    assert upgrade_protocol(store, 1, 3) == 1
    assert last_commit(store) == {
        "operation": "SET TBLPROPERTIES",
        "properties": '{"delta.minReaderVersion":"1","delta.minWriterVersion":"3"}',
    }
    assert upgrade_protocol(store, 1, 3) == upgrade_protocol(store, 1, 2) == 1
    with pytest.raises(InvalidOptionError) as caught:
        set_properties(store, {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"})
    assert caught.value.error_class == "DELTA_INVALID_PROTOCOL_DOWNGRADE"
    upgrade_protocol(store, 3, 7)
    protocol = Snapshot.load(store).protocol
    assert (protocol.min_reader_version, protocol.reader_features) == (3, frozenset())
    assert protocol.writer_features == frozenset({"appendOnly", "invariants", "checkConstraints"})
    for reader, writer in ((4, 7), (3, 8)):
        with pytest.raises(InvalidOptionError):
            upgrade_protocol(store, reader, writer)
    assert rows_of(store) == [1, 2, 3]


def test_upgrade_protocol_lists_features_of_legacy_versions(store: ObjectStore) -> None:
    upgrade_protocol(store, 1, 4)
    assert upgrade_protocol(store, 2, 4) == 1  # there is no such protocol, and (1,4) means the same
    upgrade_protocol(store, 3, 4)
    protocol = Snapshot.load(store).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.writer_features == frozenset(
        {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}
    )


def test_add_feature_that_is_there_commits_nothing(store: ObjectStore) -> None:
    assert add_feature(store, "deletionVectors") == 1
    assert add_feature(store, "DELETIONVECTORS") == 1
    assert add_feature(store, "typeWidening-preview") == 2
    assert set_properties(store, {"delta.enableTypeWidening": "true"}) == 3
    assert "typeWidening" not in Snapshot.load(store).config.features, "the preview stands for it"


# ---------------------------------------------------------------- other writers


OTHERS: dict[str, tuple[Callable[[ObjectStore], object], bool]] = {
    "append": (lambda store: write_delta(store.root, ROWS, mode="append"), True),
    "properties": (lambda store: set_properties(store, {"other": "1"}), False),
    "protocol": (lambda store: upgrade_protocol(store, 1, 3), False),
}


@pytest.mark.parametrize("other", OTHERS)
def test_set_properties_beside_another_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    write_delta(str(tmp_path), ROWS)
    store, (act, passes) = LocalStore(str(tmp_path)), OTHERS[other]
    commit = Transaction.commit

    def late(self: Transaction, *args: object, **kwargs: object) -> int:
        monkeypatch.setattr(Transaction, "commit", commit)
        act(store)
        return commit(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Transaction, "commit", late)
    if passes:
        assert set_properties(store, {"team": "b"}) == 2
        assert rows_of(store) == [1, 1, 2, 2, 3, 3]
    else:
        with pytest.raises((MetadataChangedException, DeltaError)) as caught:
            set_properties(store, {"team": "b"})
        assert caught.value.error_class in ("DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
        assert "team" not in Snapshot.load(store).metadata.configuration


# ---------------------------------------------------------------- row tracking that is suspended

BOTH = "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION"


def set_internal(store: ObjectStore, **properties: str) -> None:
    """Properties that no user can set, set as another client does."""
    snapshot = Snapshot.load(store)
    named = {f"delta.{name}": value for name, value in properties.items()}
    action = replace(snapshot.metadata, configuration={**snapshot.metadata.configuration, **named}).to_json()
    commit = b"\n".join(orjson.dumps(line) for line in ({"commitInfo": {"operation": "X"}}, {"metaData": action}))
    store.put_if_absent(f"_delta_log/{snapshot.version + 1:020}.json", commit)


@pytest.mark.parametrize("ids", [pa.array([1, 2, 3]), pa.array([], pa.int64())], ids=["files", "no files"])
def test_row_tracking_is_not_enabled_while_it_is_suspended(tmp_path: Path, ids: pa.Array) -> None:
    """As after a DROP FEATURE that died: no ids exist, and none are assigned."""
    write_delta(str(tmp_path), pa.table({"id": ids}), configuration={"delta.enableRowTracking": "true"})
    store = open_store(str(tmp_path))
    _remove_tracking(store)
    version = Snapshot.load(store).version
    with pytest.raises(UnsupportedOperationError, match=r"unset delta\.rowTrackingSuspended") as caught:
        set_properties(store, {"delta.enableRowTracking": "true"})
    assert (caught.value.error_class, Snapshot.load(store).version) == (BOTH, version)
    unset_properties(store, ["delta.rowTrackingSuspended"])
    set_properties(store, {"delta.enableRowTracking": "true"})
    write_delta(store.root, pa.table({"id": [4]}), mode="append")
    assert Snapshot.load(store).files()["base_row_id"].null_count == 0


def test_row_tracking_both_enabled_and_suspended_forbids_writes(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1, 2, 3]}))
    store = open_store(str(tmp_path))
    add_feature(store, "rowTracking")
    set_internal(store, enableRowTracking="true", rowTrackingSuspended="true")
    changes: tuple[Callable[[], object], ...] = (
        lambda: write_delta(store.root, pa.table({"id": [4]}), mode="append"),
        lambda: set_properties(store, {"team": "b"}),
        lambda: unset_properties(store, ["delta.rowTrackingSuspended"]),
    )
    for change in changes:
        with pytest.raises(UnsupportedOperationError) as caught:
            change()
        assert caught.value.error_class == BOTH
    set_properties(store, {"delta.enableRowTracking": "false"})
    unset_properties(store, ["delta.rowTrackingSuspended"])
    set_properties(store, {"delta.enableRowTracking": "true"})
    assert Snapshot.load(store).files()["base_row_id"].to_pylist() == [0]


def test_clone_of_a_suspended_table_is_not_enabled(tmp_path: Path) -> None:
    write_delta(str(tmp_path / "a"), pa.table({"id": [1]}), configuration={"delta.enableRowTracking": "true"})
    store = open_store(str(tmp_path / "a"))
    _remove_tracking(store)
    with pytest.raises(UnsupportedOperationError) as caught:
        clone_table(Snapshot.load(store), open_store(str(tmp_path / "b")), properties={"delta.enableRowTracking": "true"})
    assert caught.value.error_class == BOTH


@pytest.mark.parametrize(("rounds", "others_set"), [(give_row_ids, "true"), (remove_row_ids, "false")])
def test_rounds_of_row_ids_end_if_others_suspend_or_resume_them(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, rounds: Callable[[ObjectStore], object], others_set: str
) -> None:
    give_row_ids(store)
    if rounds is remove_row_ids:
        set_internal(store, rowTrackingSuspended="true")
    else:
        _remove_tracking(store)
        unset_properties(store, ["delta.rowTrackingSuspended"])
    commit = Transaction.commit

    def beside(self: Transaction, operation: str, *args: Any, **kwargs: Any) -> int:
        monkeypatch.setattr(Transaction, "commit", commit)
        version = commit(self, operation, *args, **kwargs)
        set_internal(store, rowTrackingSuspended=others_set)
        return version

    monkeypatch.setattr("delta_py.definition.row_tracking._FILES_A_COMMIT", 1)
    monkeypatch.setattr(Transaction, "commit", beside)
    with pytest.raises(UnsupportedOperationError, match=r"delta\.rowTrackingSuspended"):
        rounds(store)
    assert Snapshot.load(store).files()["base_row_id"].null_count == 1


# ---------------------------------------------------------------- schemas that speak of column mapping where there is none


@pytest.mark.parametrize("ids", [(7, 9, 8), (7, 7, 7)], ids=["ids", "the same id thrice"])
def test_column_mapping_forgets_names_that_the_files_never_had(tmp_path: Path, ids: tuple[int, int, int]) -> None:
    """The schema of another table, with its names and ids: without column mapping the files use the columns' logical names."""
    numbers = iter(ids)

    def mapped(name: str, data_type: DataType) -> StructField:
        number = next(numbers)
        metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{name}", "comment": name}
        return StructField(name, data_type, True, metadata)

    schema = StructType((mapped("id", LONG), mapped("s", StructType((mapped("x", LONG),)))))
    store = open_store(str(tmp_path))
    create_table(store, define_table(schema))
    data = pa.table({"id": [1, 2], "s": [{"x": 3}, {"x": 4}]})
    write_delta(store.root, data, mode="append")
    set_properties(store, {"delta.columnMapping.mode": "name"})
    assert DeltaTable(store.root).to_arrow().to_pylist() == data.to_pylist()
    snapshot = Snapshot.load(store)
    inner = snapshot.schema.fields[1].data_type
    assert isinstance(inner, StructType)
    fields = [*snapshot.schema.fields, *inner.fields]
    assert [f.metadata["delta.columnMapping.physicalName"] for f in fields] == ["id", "s", "x"]
    assert [f.metadata["comment"] for f in fields] == ["id", "s", "x"]
    new_ids = [f.metadata["delta.columnMapping.id"] for f in fields]
    assert len(set(new_ids)) == 3
    last = int(snapshot.metadata.configuration["delta.columnMapping.maxColumnId"])
    assert last >= max(*new_ids, *ids), "an id is never given to another column"
    add_columns(store, [NewColumn(("more",), LONG)])
    write_delta(store.root, pa.table({"id": [3], "s": [{"x": 5}], "more": [6]}), mode="append")
    assert sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist()) == [1, 2, 3]
