"""DELETE, UPDATE and MERGE in threads of this process: threads read rows, write changed rows and remove old ones, then one
commit.

    scan = target_rows(dml, candidates, columns)
    metrics = change_rows(dml, scan, make, parameters)      # make: batches of the scan -> the batches of task_changes.py

Each thread reads a share of the files, batch by batch. If anything fails before the commit, the written files are deleted.
Protocol: Requirements for Writers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from delta_py.expressions.tree import Expression
from delta_py.parquet.file_reader import read_files
from delta_py.row_changes.dml import Candidates, Dml, MetricNames
from delta_py.scan.planning import ROW_ADDRESS, Scan, ScanOptions, plan_listed_files, row_address_column
from delta_py.threads import in_threads
from delta_py.types.schema import StructField, StructType
from delta_py.write.rewrite import RemovedRows, remove_rows
from delta_py.write.task_changes import CHANGE, FILE, ROW, ROW_ID, TaskChanges, write_changes

_THREADS, _NAME = min(4, os.cpu_count() or 1), "delta_py-rows"
# Another thread is used for each _SHARE_BYTES of files. To open a file counts like reading _OPEN_COST_BYTES.
_SHARE_BYTES = 32 * 1024 * 1024
_OPEN_COST_BYTES = 1024 * 1024

Batches: TypeAlias = Iterable[pa.RecordBatch]


def target_rows(dml: Dml, candidates: Candidates, columns: Sequence[StructField], predicate: Expression | None = None) -> Scan:
    """The scan of the files' rows with their positions (ROW_ADDRESS). predicate: the scan returns only rows for which it is
    true."""
    requested_schema = StructType((*columns, row_address_column().logical))
    options = ScanOptions(row_address=True, drop_rows=predicate is not None, timezone=dml.state.time_zone)
    return plan_listed_files(dml.config, dml.state.store, candidates.files.to_batches(), requested_schema, predicate, options)


def address(dml: Dml, rows: pa.RecordBatch, change: int) -> dict[str, pa.Array]:
    """The columns of task_changes.py that tell the positions of rows of the scan, and how they change."""
    places = rows.column(ROW_ADDRESS)
    columns = {FILE: places.field("file_number"), ROW: places.field("row_index")}
    if dml.row_ids is not None:
        columns[ROW_ID] = places.field("row_id")
    return {**columns, CHANGE: pa.array(np.full(rows.num_rows, change, np.int8))}


def change_rows(
    dml: Dml,
    scan: Scan | None,
    make: Callable[[Iterator[pa.RecordBatch]], Batches],
    parameters: Mapping[str, Any],
    *,
    after: Callable[[], Batches] | None = None,
    named: MetricNames | None = None,
) -> dict[str, int]:
    """Carry out the change and return its metrics.

    scan: None when no row has to be read. after: makes further changed rows, called after all rows of the scan are read.
    named: as in Dml.commit. Raises what `make` and the parts raise, and conflicts as Transaction.commit; nothing is changed then.
    """
    start = time.monotonic()
    try:
        changes = _changed_rows(dml, scan, make, after)
        scan_end = time.monotonic()
        removed_rows = _removals(dml, changes)
    except BaseException:
        dml.abort()
        raise
    times = {"scanTimeMs": round((scan_end - start) * 1000), "rewriteTimeMs": round((time.monotonic() - scan_end) * 1000)}
    try:
        _, metrics = dml.commit(parameters, changes, removed_rows, times, named=named)
    finally:
        dml.close(changes)
    return metrics


def _changed_rows(
    dml: Dml, scan: Scan | None, make: Callable[[Iterator[pa.RecordBatch]], Batches], after: Callable[[], Batches] | None
) -> list[TaskChanges]:
    """Make the changes of the scan's rows in threads, and then the rows that come after them."""
    state = dml.change_state()
    changes: list[TaskChanges] = []
    if scan is not None:
        # Each share writes its own files, so small tables are not split. A DELETE writes no rows in this job.
        count = _THREADS if dml.operation == "DELETE" else min(_THREADS, 1 + scan.report.bytes_kept // _SHARE_BYTES)
        # 2**62: no limit for the size of a share.
        shares = scan.pack(max_group_bytes=2**62, open_cost_bytes=_OPEN_COST_BYTES, target_groups=count)

        def change(task: int) -> TaskChanges:
            return write_changes(state, make(read_files(scan.state, shares[task].scan_files())), task=task)

        changes = in_threads([partial(change, task) for task in range(len(shares))], _THREADS, _NAME)
    if after is not None:
        changes.append(write_changes(state, after(), task=len(changes)))
    return changes


def _removals(dml: Dml, changes: Sequence[TaskChanges]) -> RemovedRows:
    """Remove the old rows from their files, in threads."""
    files, rewrite = dml.touched_files(changes), dml.rewrite
    threads = _THREADS
    if not rewrite.use_deletion_vectors:  # each thread writes its own files
        threads = min(_THREADS, 1 + sum(touched.file.size_bytes for touched in files) // _SHARE_BYTES)
    groups = [files] if files and dml.is_light(files) else dml.groups(files, threads)
    steps = [partial(remove_rows, group, rewrite, task=task) for task, group in enumerate(groups)]
    return RemovedRows.of_all(in_threads(steps, _THREADS, _NAME))
