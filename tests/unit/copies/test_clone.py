"""Shallow clones: the source's rows in a table with its own log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.copies.clone import clone_table, shallow_clone
from delta_py.definition.create import create_table, define_table
from delta_py.errors import DeltaError
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, STRING, StructField, StructType

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["mon", "mon", "a b/%"]})


@pytest.fixture
def source(tmp_path: Path) -> Snapshot:
    """Partitioned by day, rows 1 and 3; a deletion vector deletes row 2; rows have ids."""
    path = str(tmp_path / "the source%20")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true", "team": "a"}
    write_delta(path, ROWS, partition_by=["day"], configuration=properties)
    write_delta(path, ROWS.slice(0, 0), mode="overwrite", replace_where="id = 2")
    return Snapshot.load(open_store(path))


def ids(store: ObjectStore) -> list[int]:
    return sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist())


def test_clone_reads_the_files_of_the_source_and_writes_its_own(source: Snapshot, tmp_path: Path) -> None:
    target = open_store(str(tmp_path / "clone"))
    assert clone_table(source, target, properties={"team": "b"}) == 0
    snapshot = Snapshot.load(target)
    assert ids(target) == [1, 3]
    assert (snapshot.metadata.configuration["team"], snapshot.metadata.partition_columns) == ("b", ("day",))
    assert snapshot.metadata.id != source.metadata.id
    assert [path.name for path in (tmp_path / "clone").iterdir()] == ["_delta_log"]
    entry = DeltaTable(target.root).history().to_pylist()[0]
    assert (entry["operation"], dict(entry["operationMetrics"])["sourceNumOfFiles"]) == ("CLONE", "2")
    write_delta(target.root, ROWS, mode="append")
    write_delta(target.root, ROWS.slice(0, 0), mode="overwrite", replace_where="id = 1")
    assert (ids(target), ids(source.store)) == ([2, 3, 3], [1, 3])
    Snapshot.load(target).check_integrity()


@pytest.mark.parametrize("shallow", [False, True])
def test_clone_that_is_made_again_gives_no_identity_number_twice(tmp_path: Path, shallow: bool) -> None:
    path, copy = str(tmp_path / "table"), str(tmp_path / "clone")
    metadata = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    schema = StructType((StructField("id", LONG, True, metadata), StructField("name", STRING)))
    create_table(open_store(path), define_table(schema))
    name = pa.table({"name": ["a"]})
    write_delta(path, name, mode="append")
    DeltaTable(path).clone(copy, shallow=shallow)
    write_delta(copy, name, mode="append")
    DeltaTable(path).clone(copy, shallow=shallow, replace=True)
    write_delta(copy, name, mode="append")
    assert ids(open_store(copy)) == [1, 3]


def test_clone_keeps_ids_of_rows_and_gives_none_twice(source: Snapshot, tmp_path: Path) -> None:
    target = open_store(str(tmp_path / "clone"))
    clone_table(source, target)
    assert Snapshot.load(target).domain_metadata()["delta.rowTracking"] == source.domain_metadata()["delta.rowTracking"]
    write_delta(target.root, ROWS, mode="append")
    files = Snapshot.load(target).files().to_pylist()
    assert len({file["base_row_id"] for file in files}) == len(files) == 4


def test_clone_of_an_older_version(source: Snapshot, tmp_path: Path) -> None:
    target = open_store(str(tmp_path / "clone"))
    clone_table(Snapshot.load(source.store, version=0), target)
    assert ids(target) == [1, 2, 3]


def test_clone_replaces_only_when_asked(source: Snapshot, tmp_path: Path) -> None:
    path = str(tmp_path / "clone")
    write_delta(path, pa.table({"x": [1]}), configuration={"delta.enableInCommitTimestamps": "true"})
    with pytest.raises(DeltaError) as caught:
        clone_table(source, open_store(path))
    assert caught.value.error_class == "DELTA_TABLE_ALREADY_EXISTS"
    assert clone_table(source, open_store(path), replace_table=True) == 1
    snapshot = Snapshot.load(open_store(path))
    assert (ids(snapshot.store), snapshot.config.enabled("inCommitTimestamp")) == ([1, 3], False)
    write_delta(path, ROWS, mode="append")
    assert len(DeltaTable(path).history()) == 3


def test_repeated_clone_has_no_actions_for_files_that_stay(source: Snapshot, tmp_path: Path) -> None:
    """No commit may have an add and a remove of one logical file: they have no order."""
    target = open_store(str(tmp_path / "clone"))
    clone_table(source, target)
    write_delta(source.table_root, ROWS.slice(0, 1), mode="append")
    write_delta(source.table_root, ROWS.slice(0, 0), mode="overwrite", replace_where="day = 'mon' AND id = 1")
    newest = Snapshot.load(source.store)
    result = shallow_clone(newest, target, replace_table=True)
    lines = (tmp_path / "clone" / "_delta_log" / f"{result['version']:020}.json").read_text().splitlines()
    actions = [action for line in lines for action in json.loads(line).items()]
    adds, removes = ([file_key(body) for kind, body in actions if kind == name] for name in ("add", "remove"))
    assert len(removes) == result["metrics"]["numRemovedFiles"] > 0
    assert set(adds).isdisjoint(removes) and len(adds) < newest.num_files
    assert ids(target) == ids(source.store) == [3]
    Snapshot.load(target).check_integrity()
    second_result = shallow_clone(newest, target, replace_table=True)
    assert (second_result["metrics"]["numRemovedFiles"], second_result["metrics"]["sourceNumOfFiles"]) == (0, newest.num_files)
    assert files_of(target) == files_of(source.store)


def file_key(body: dict[str, Any]) -> tuple[str, str]:
    return body["path"], json.dumps(body.get("deletionVector"))


def files_of(store: ObjectStore) -> list[tuple[str, int | None]]:
    """Each file's name and first row id."""
    files = Snapshot.load(store).files().to_pylist()
    return sorted((file["path"].rpartition("/")[2], file["base_row_id"]) for file in files)


def test_clone_refuses_its_own_place_and_other_files(source: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    for path in (source.table_root, str(tmp_path / "full")):
        with pytest.raises(DeltaError):
            clone_table(source, open_store(path), replace_table=True)
    assert Snapshot.load(source.store).version == source.version


@pytest.mark.parametrize(("before", "after"), [("name", "none"), ("none", "name"), ("id", "name"), ("none", "id")])
def test_clone_of_another_column_mapping_mode_is_refused(tmp_path: Path, before: str, after: str) -> None:
    """The source's files have their columns under the names of its own mode."""
    path, target = str(tmp_path / "source"), open_store(str(tmp_path / "clone"))
    write_delta(path, ROWS, configuration={"delta.columnMapping.mode": before})
    with pytest.raises(DeltaError) as refused:
        clone_table(Snapshot.load(open_store(path)), target, properties={"delta.columnMapping.mode": after})
    assert refused.value.error_class == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
    assert not (tmp_path / "clone").exists()
    clone_table(Snapshot.load(open_store(path)), target, properties={"delta.columnMapping.mode": before})
    assert ids(target) == [1, 2, 3]


def test_clone_with_row_tracking_assigns_ids_to_source_rows(tmp_path: Path) -> None:
    path, target = str(tmp_path / "source"), open_store(str(tmp_path / "clone"))
    write_delta(path, ROWS)
    clone_table(Snapshot.load(open_store(path)), target, properties={"delta.enableRowTracking": "true"})
    assert [file["base_row_id"] for file in Snapshot.load(target).files().to_pylist()] == [0]
    write_delta(target.root, ROWS, mode="append")
    DeltaTable(target.root).delete("id = 2")
    assert ids(target) == [1, 1, 3, 3]
    Snapshot.load(target).check_integrity()


@pytest.mark.parametrize(
    ("properties", "error_class"),
    [
        ({"delta.constraints.low": "id < 3"}, "DELTA_ADD_CONSTRAINTS"),
        ({"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}, "DELTA_ILLEGAL_OPTION"),
    ],
)
def test_properties_that_no_clone_can_have_are_refused(tmp_path: Path, properties: dict[str, str], error_class: str) -> None:
    path, target = str(tmp_path / "source"), open_store(str(tmp_path / "clone"))
    write_delta(path, ROWS)
    with pytest.raises(DeltaError) as refused:
        clone_table(Snapshot.load(open_store(path)), target, properties=properties)
    assert refused.value.error_class == error_class
    assert not (tmp_path / "clone").exists()
