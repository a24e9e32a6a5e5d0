"""DELETE and UPDATE with each call of the store failed in turn: the table is as before or as after, and errors leave no files."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commands.dml import Dml
from delta_py.errors import CommitOutcomeUnknownError, DeltaError
from delta_py.parquet.reader import read_files
from delta_py.protocol.schema import StructType
from delta_py.scan.planning import ROW_ADDRESS, ScanOptions, plan_given, row_address_column
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.write.rewrite import TakenOut, take_out
from delta_py.write.row_changes import CHANGE, DELETED, FILE, NEW, ROW, ROW_ID, UPDATED, write_changes
from tests.support.faulty_store import Fault, FaultyStore, Killed

ROWS = 40
CONFIGURATIONS = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "vectors and feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "rewriting": {"delta.enableRowTracking": "true"},
    "rewriting and feed": {"delta.enableChangeDataFeed": "true"},
}


def make(path: Path, configuration: dict[str, str]) -> None:
    for start in (0, ROWS // 2):
        ids = range(start, start + ROWS // 2)
        table = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([0] * len(ids), pa.int64())})
        write_delta(str(path), table, mode="append", configuration=None if start else configuration)


def rows_to_change(dml: Dml, kind: int) -> pa.RecordBatch:
    columns = StructType((*dml.snapshot.schema.fields, row_address_column().logical))
    files = dml.candidates(None).files.to_batches()
    scan = plan_given(dml.snapshot.config, dml.state.table_root, files, columns, None, ScanOptions(row_address=True))
    rows = pa.Table.from_batches(list(read_files(scan.state, scan.scan_files())))
    rows = rows.filter(pa.array([n % 4 == 1 for n in rows["id"].to_pylist()]))
    address = rows[ROW_ADDRESS].combine_chunks()
    count = rows.num_rows
    new = pa.StructArray.from_arrays([rows["id"].combine_chunks(), pa.array([1] * count, pa.int64())], ["id", "x"])
    return pa.record_batch(
        {
            FILE: address.field("file_number"),
            ROW: address.field("row_index"),
            CHANGE: pa.array([kind] * count, pa.int8()),
            NEW: new,
            ROW_ID: address.field("row_id"),
        }
    )


def change(store: ObjectStore, operation: str) -> None:
    """As spark_plugin.dml.jobs does it: two tasks, then two file tasks; what was written is deleted when one fails."""
    dml = Dml.begin(store, operation, time_zone="UTC")
    batch = rows_to_change(dml, DELETED if operation == "DELETE" else UPDATED)
    try:
        half = batch.num_rows // 2
        tasks = [batch.slice(0, half), batch.slice(half)]
        changes = [write_changes(dml.change_state(), [rows], store, task=n) for n, rows in enumerate(tasks)]
        groups = dml.groups(dml.touched_files(changes), 2)
        taken = TakenOut.of_all(take_out(store, group, dml.rewrite, task=n) for n, group in enumerate(groups))
    except Exception:
        dml.abort()
        raise
    dml.commit({"predicate": []}, changes, taken)
    dml.close(changes)


def state(path: Path) -> list[tuple[int, int]]:
    return sorted((row["id"], row["x"]) for row in DeltaTable(str(path)).to_arrow().to_pylist())


def expected(operation: str) -> list[tuple[int, int]]:
    if operation == "DELETE":
        return [(n, 0) for n in range(ROWS) if n % 4 != 1]
    return [(n, int(n % 4 == 1)) for n in range(ROWS)]


def data_files(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*") if f.is_file() and "_delta_log" not in f.parts}


@pytest.mark.parametrize("operation", ["DELETE", "UPDATE"])
@pytest.mark.parametrize("configuration", list(CONFIGURATIONS))
def test_each_call_failed_leaves_the_table_as_before_or_as_after(tmp_path: Path, configuration: str, operation: str) -> None:
    made = tmp_path / "made"
    make(made, CONFIGURATIONS[configuration])
    before, files_before = state(made), data_files(made)
    for after, killed in ((False, False), (True, False), (True, True)):
        for call in itertools.count():
            path = tmp_path / "t"
            shutil.copytree(made, path)
            store = FaultyStore(LocalStore(str(path)), Fault(call, after=after, killed=killed))
            error: BaseException | None = None
            try:
                change(store, operation)
            except (DeltaError, OSError, Killed) as raised:
                error = raised
            found = state(path)
            assert found in (before, expected(operation)), (call, store.calls[call])
            if error is None:
                assert found == expected(operation), (call, store.calls[call : call + 1])
            elif not killed and found == before and not isinstance(error, CommitOutcomeUnknownError):
                assert data_files(path) == files_before, (call, store.calls[call])
            shutil.rmtree(path)
            if call >= len(store.calls):
                assert error is None
                break
