"""Shallow clones: the source's rows through a log of their own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commands.clone import clone_table
from delta_py.errors import DeltaError
from delta_py.snapshot import Snapshot
from delta_py.storage.opening import open_store
from delta_py.storage.store import ObjectStore

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["mon", "mon", "a b/%"]})


@pytest.fixture
def source(tmp_path: Path) -> Snapshot:
    """Partitioned by day, rows 1 and 3; row 2 is taken out by a deletion vector; rows have ids."""
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


def test_clone_refuses_its_own_place_and_other_files(source: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    for path in (source.table_root, str(tmp_path / "full")):
        with pytest.raises(DeltaError):
            clone_table(source, open_store(path), replace_table=True)
    assert Snapshot.load(source.store).version == source.version
