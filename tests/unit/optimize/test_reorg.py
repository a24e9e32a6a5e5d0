"""REORG APPLY (PURGE): deleted rows and dropped columns are removed from the files; files without these do not change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit.transaction import Transaction
from delta_py.definition.create import create_table, define_table
from delta_py.errors import DataFileError, InvalidOptionError
from delta_py.optimize import reorg
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import OptimizeRequest
from delta_py.optimize.reorg import Purge
from delta_py.parquet.file_reader import read_files
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, STRING, ArrayType, StructField, StructType, schema_to_json
from tests.unit.optimize.test_optimize import meanwhile

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def rows(ids: Sequence[int], part: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [part] * len(ids)})


def make(path: str, properties: dict[str, str] | None = None) -> None:
    """Files of ids 0-9 and 10-19 in partition a, 20-29 in b; vectors delete 3, 13 and 23. One more file without a vector: 30-39
    in a."""
    for start, part in ((0, "a"), (10, "a"), (20, "b"), (30, "a")):
        write_delta(
            path, rows(range(start, start + 10), part), mode="append", partition_by=["p"], configuration=properties or VECTORS
        )
    write_delta(path, rows([]), mode="overwrite", replace_where="id IN (3, 13, 23)")


LEFT = [n for n in range(40) if n not in (3, 13, 23)]


def ids(path: str, version: int | None = None) -> list[int]:
    sorted_ids: list[int] = sorted(DeltaTable(path, version=version).to_arrow()["id"].to_pylist())
    return sorted_ids


def files(path: str) -> dict[str, Any]:
    return {file["path"]: file for file in DeltaTable(path).files().to_pylist()}


def test_purge_rewrites_only_files_with_vectors(path: str) -> None:
    make(path)
    before, version = files(path), DeltaTable(path).version
    metrics = DeltaTable(path).reorg.purge()
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (3, 2)
    assert metrics["deletionVectorStats"] == {"numDeletionVectorsRemoved": 3, "numDeletionVectorRowsRemoved": 3}
    after = files(path)
    assert [file["deletion_vector"] for file in after.values()] == [None] * 3
    kept_paths = before.keys() & after.keys()
    assert len(kept_paths) == 1 and all(before[name] == after[name] for name in kept_paths)
    assert ids(path) == LEFT == ids(path, version)
    physical = [pq.read_table(Path(path) / name, columns=["id"])["id"].to_pylist() for name in after]
    assert sorted(number for part in physical for number in part) == LEFT
    DeltaTable(path).snapshot.check_integrity()


def test_history_says_what_the_reference_says(path: str) -> None:
    make(path)
    DeltaTable(path).reorg.purge("p = 'b'")
    newest = DeltaTable(path).history(1).to_pylist()[0]
    assert newest["operation"] == "REORG"
    assert dict(newest["operationParameters"]) == {"predicate": '["(p = \'b\')"]', "applyPurge": "true"}
    assert dict(newest["operationMetrics"])["numRemovedFiles"] == "1"
    assert sum(file["deletion_vector"] is not None for file in files(path).values()) == 2
    lines = (Path(path) / f"_delta_log/{newest['version']:020d}.json").read_bytes().splitlines()
    actions = [orjson.loads(line) for line in lines]
    assert not any(action[kind]["dataChange"] for action in actions for kind in ("add", "remove") if kind in action)


def test_second_purge_is_empty_and_compact_takes_small_files(path: str) -> None:
    make(path)
    DeltaTable(path).reorg.purge()
    version = DeltaTable(path).version
    assert DeltaTable(path).reorg.purge()["numFilesRemoved"] == 0
    assert DeltaTable(path).version == version
    assert DeltaTable(path).optimize.compact()["numFilesRemoved"] == 2  # the two of partition a
    assert ids(path) == LEFT


def test_large_files_are_purged_too_and_rows_keep_their_ids(path: str) -> None:
    make(path, VECTORS | {"delta.enableRowTracking": "true"})
    store = LocalStore(path)
    before = row_ids(path)
    outcome = optimize(store, OptimizeRequest(target_file_bytes=1), LocalBinWriters(), kind=Purge).metrics()
    assert (outcome["numFilesRemoved"], outcome["numFilesAdded"]) == (3, 3)
    assert ids(path) == LEFT
    assert row_ids(path) == before


def row_ids(path: str, key: str = "id") -> dict[int, tuple[int, int]]:
    scan = plan_scan(DeltaTable(path).snapshot, [key, "_metadata"], None, ScanOptions(metadata_column=True))
    rows = [row for batch in read_files(scan.state, scan.scan_files()) for row in batch.to_pylist()]
    return {row[key]: (row["_metadata"]["row_id"], row["_metadata"]["row_commit_version"]) for row in rows}


def test_only_partition_columns_may_be_asked_about(path: str) -> None:
    make(path)
    with pytest.raises(InvalidOptionError, match="DELTA_NON_PARTITION_COLUMN_REFERENCE"):
        DeltaTable(path).reorg.purge("id = 3")


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_dropped_columns_leave_the_files_at_every_depth(path: str, mode: str) -> None:
    """One file has a column and a nested field that were dropped; one was written afterwards."""
    store = LocalStore(path)
    pair = StructType((StructField("x", LONG), StructField("y", LONG)))
    schema = StructType((StructField("id", LONG), StructField("items", ArrayType(pair)), StructField("secret", STRING)))
    properties = {} if mode == "none" else {"delta.columnMapping.mode": mode}
    create_table(store, define_table(schema, configuration=properties))
    items = pa.array([[{"x": 1, "y": 2}]], pa.list_(pa.struct([("x", pa.int64()), ("y", pa.int64())])))
    write_delta(path, pa.table({"id": [1], "items": items, "secret": ["s"]}), mode="append")
    drop(store, "secret", "items.y")
    fewer = pa.array([[{"x": 3}]], pa.list_(pa.struct([("x", pa.int64())])))
    write_delta(path, pa.table({"id": [2], "items": fewer}), mode="append")
    before, expected = files(path), DeltaTable(path).to_arrow().sort_by("id")
    assert DeltaTable(path).reorg.purge()["numFilesRemoved"] == 1
    after = files(path)
    assert len(before.keys() & after.keys()) == 1
    assert DeltaTable(path).to_arrow().sort_by("id").equals(expected)
    for name in after:
        assert len(pq.read_metadata(Path(path) / name).schema) == 2
    assert DeltaTable(path).reorg.purge()["numFilesRemoved"] == 0


def drop(store: LocalStore, column: str, nested: str) -> None:
    """Remove a column, and a field of structs in lists, from the schema, as ALTER TABLE DROP COLUMN does."""
    snapshot = Snapshot.load(store)
    outer, _, inner = nested.partition(".")
    kept_fields = []
    for field in snapshot.schema.fields:
        if field.name == outer:
            assert isinstance(field.data_type, ArrayType) and isinstance(field.data_type.element_type, StructType)
            fields = tuple(f for f in field.data_type.element_type.fields if f.name != inner)
            field = replace(field, data_type=ArrayType(StructType(fields), True))
        if field.name != column:
            kept_fields.append(field)
    metadata = replace(snapshot.metadata, schema_string=schema_to_json(StructType(tuple(kept_fields))))
    Transaction(snapshot).set_metadata(metadata).commit("DROP COLUMNS", {})


def test_materialized_row_ids_are_no_dropped_columns(path: str) -> None:
    make(path, VECTORS | {"delta.enableRowTracking": "true"})
    DeltaTable(path).optimize.compact()
    assert DeltaTable(path).reorg.purge()["numFilesRemoved"] == 0


def test_file_that_is_gone_is_an_error_and_nothing_is_changed(path: str) -> None:
    make(path)
    (missing_path,) = (name for name, file in files(path).items() if file["deletion_vector"] is None)
    (Path(path) / missing_path).unlink()
    version = DeltaTable(path).version
    with pytest.raises(DataFileError, match="fsck"):
        DeltaTable(path).reorg.purge()
    (Path(path) / missing_path).write_bytes(b"no parquet")
    with pytest.raises(DataFileError, match=r"FAILED_READ_FILE\.NO_HINT"):
        DeltaTable(path).reorg.purge()
    assert DeltaTable(path).version == version


def test_deleted_rows_are_gone_from_the_disk_after_vacuum(path: str) -> None:
    make(path)
    DeltaTable(path).reorg.purge()
    time.sleep(0.01)  # the removes must be older than the cutoff
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    left = [pq.read_table(file, columns=["id"])["id"].to_pylist() for file in Path(path).glob("p=*/*.parquet")]
    assert sorted(number for part in left for number in part) == LEFT
    assert list(Path(path).rglob("deletion_vector_*")) == []
    assert ids(path) == LEFT


def test_purge_deletes_concurrently_deleted_rows_in_new_files(path: str) -> None:
    make(path)

    writers = meanwhile(lambda: write_delta(path, rows([]), mode="overwrite", replace_where="id = 5"))
    optimize(LocalStore(path), OptimizeRequest(), writers, kind=Purge)
    assert ids(path) == [n for n in LEFT if n != 5]
    assert reorg.TableReorg(LocalStore(path)).purge()["numFilesRemoved"] == 1
    assert ids(path) == [n for n in LEFT if n != 5]


def test_optimize_clusters_a_purged_table_again(path: str) -> None:
    schema = StructType((StructField("id", LONG), StructField("v", LONG)))
    create_table(LocalStore(path), define_table(schema, cluster_by=["v"], configuration=VECTORS))
    for number in range(2):
        ids_of_file = pa.array(range(10 * number, 10 * number + 10), pa.int64())
        write_delta(path, pa.table({"id": ids_of_file, "v": ids_of_file}), mode="append")
    DeltaTable(path).optimize.cluster()
    DeltaTable(path).delete("id = 3")
    assert DeltaTable(path).reorg.purge()["numFilesRemoved"] == 1
    assert sorted(DeltaTable(path).to_arrow()["id"].to_pylist()) == [*range(3), *range(4, 20)]
    assert DeltaTable(path).optimize.cluster()["numFilesAdded"] == 1
    assert sorted(DeltaTable(path).to_arrow()["id"].to_pylist()) == [*range(3), *range(4, 20)]
