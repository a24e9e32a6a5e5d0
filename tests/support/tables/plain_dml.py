"""DELETE and UPDATE without Spark: rows of a table with their positions, passed on as Spark's first job passes them on.

    dml = Dml.begin(store, "DELETE", time_zone="UTC")
    rows = target_rows(dml, dml.find_candidates(None))
    run(dml, [[changed(rows, DELETED)]])

Each list of batches is one task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_py.parquet.file_reader import read_files
from delta_py.row_changes.dml import Candidates, Dml
from delta_py.scan.planning import ROW_ADDRESS, ScanOptions, plan_listed_files, row_address_column
from delta_py.types.schema import StructType
from delta_py.write.rewrite import RemovedRows, remove_rows
from delta_py.write.task_changes import CHANGE, DELETED, FILE, NEW, ROW, ROW_ID, write_changes


def target_rows(dml: Dml, candidates: Candidates) -> pa.Table:
    """The rows of the candidates, with their positions."""
    columns = StructType((*dml.snapshot.schema.fields, row_address_column().logical))
    options = ScanOptions(row_address=True)
    scan = plan_listed_files(dml.snapshot.config, dml.state.store, candidates.files.to_batches(), columns, None, options)
    batches = list(read_files(scan.state, scan.scan_files()))
    return pa.Table.from_batches(batches) if batches else pa.table({"id": pa.array([], pa.int64())})


def changed(rows: pa.Table, kind: int, set_: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> pa.RecordBatch:
    """The rows as the first job passes them on."""
    address = rows.column(ROW_ADDRESS).combine_chunks()
    arrays = {
        FILE: address.field("file_number"),
        ROW: address.field("row_index"),
        CHANGE: pa.array(np.full(rows.num_rows, kind, np.int8)),
        ROW_ID: address.field("row_id"),
    }
    if kind != DELETED:
        plain = rows.drop_columns([ROW_ADDRESS])
        new = pa.Table.from_pylist([set_(row) for row in plain.to_pylist()], plain.schema)
        arrays[NEW] = new.to_struct_array().combine_chunks()
    return pa.record_batch(arrays)


def run(dml: Dml, tasks: Sequence[Sequence[pa.RecordBatch]], workers: int = 2) -> tuple[int, dict[str, int]]:
    """The version and the metrics."""
    changes = [write_changes(dml.change_state(), batches, task=n) for n, batches in enumerate(tasks)]
    groups = dml.group_for_tasks(dml.touched_files(changes), workers)
    removed_rows = RemovedRows.of_all(remove_rows(group, dml.rewrite, task=n) for n, group in enumerate(groups))
    committed = dml.commit({"predicate": []}, changes, removed_rows)
    dml.close(changes)
    return committed
