"""DELETE, UPDATE and MERGE in threads of this process: threads read rows, write changed rows and remove old ones, then one
commit.

    scan = plan_target_scan(dml, candidates, columns)
    metrics = change_rows(dml, scan, make_changes, parameters)      # make_changes: the scan's batches -> those of task_changes.py

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

_THREADS, _THREAD_NAME = min(4, os.cpu_count() or 1), "delta_py-rows"
# Another thread is used for each _SHARE_BYTES of files. To open a file counts like reading _OPEN_COST_BYTES.
_SHARE_BYTES = 32 * 1024 * 1024
_OPEN_COST_BYTES = 1024 * 1024

Batches: TypeAlias = Iterable[pa.RecordBatch]


def plan_target_scan(
    dml: Dml, candidates: Candidates, columns: Sequence[StructField], predicate: Expression | None = None
) -> Scan:
    """The scan of the candidates' rows. columns: the columns to read; each row's position (ROW_ADDRESS) is always read.
    predicate: the scan returns only rows for which it is true."""
    requested_schema = StructType((*columns, row_address_column().logical))
    options = ScanOptions(row_address=True, drop_rows=predicate is not None, timezone=dml.state.time_zone)
    return plan_listed_files(dml.config, dml.state.store, candidates.files.to_batches(), requested_schema, predicate, options)


def address_columns(dml: Dml, rows: pa.RecordBatch, change: int) -> dict[str, pa.Array]:
    """The columns FILE, ROW, ROW_ID and CHANGE of task_changes.py, which tell the positions of the scan's rows and how they
    change. ROW_ID only if the table tracks rows. change: DELETED or UPDATED, for all of the rows."""
    addresses = rows.column(ROW_ADDRESS)
    columns = {FILE: addresses.field("file_number"), ROW: addresses.field("row_index")}
    if dml.row_ids is not None:
        columns[ROW_ID] = addresses.field("row_id")
    return {**columns, CHANGE: pa.array(np.full(rows.num_rows, change, np.int8))}


def change_rows(
    dml: Dml,
    scan: Scan | None,
    make_changes: Callable[[Iterator[pa.RecordBatch]], Batches],
    parameters: Mapping[str, Any],
    *,
    make_inserts: Callable[[], Batches] | None = None,
    name_metrics: MetricNames | None = None,
) -> dict[str, int]:
    """Carry out the change and return its metrics.

    scan: None when no row has to be read. make_changes: makes changed rows, in the columns of task_changes.py, of the scan's
    batches. make_inserts: makes the rows to insert; called after all rows of the scan are read. parameters: those of the
    operation in the table's history. name_metrics: as in Dml.commit. Raises what these functions raise, and conflicts as
    Transaction.commit; nothing is changed then.
    """
    start = time.monotonic()
    try:
        changes = _changed_rows(dml, scan, make_changes, make_inserts)
        scan_end = time.monotonic()
        removed_rows = _remove_old_rows(dml, changes)
    except BaseException:
        dml.abort()
        raise
    times = {"scanTimeMs": round((scan_end - start) * 1000), "rewriteTimeMs": round((time.monotonic() - scan_end) * 1000)}
    try:
        _, metrics = dml.commit(parameters, changes, removed_rows, times, name_metrics=name_metrics)
    finally:
        dml.close(changes)
    return metrics


def _changed_rows(
    dml: Dml,
    scan: Scan | None,
    make_changes: Callable[[Iterator[pa.RecordBatch]], Batches],
    make_inserts: Callable[[], Batches] | None,
) -> list[TaskChanges]:
    """Make and write the changes of the scan's rows in threads, and then the inserted rows. Returns the result of each thread and
    of the inserts."""
    state = dml.change_state()
    changes: list[TaskChanges] = []
    if scan is not None:
        # Each share writes its own files, so small tables are not split. A DELETE writes no rows in this job.
        count = _THREADS if dml.operation == "DELETE" else min(_THREADS, 1 + scan.report.bytes_kept // _SHARE_BYTES)
        # 2**62: no limit for the size of a share.
        shares = scan.pack(max_group_bytes=2**62, open_cost_bytes=_OPEN_COST_BYTES, target_groups=count)

        def change(task: int) -> TaskChanges:
            return write_changes(state, make_changes(read_files(scan.state, shares[task].scan_files())), task=task)

        changes = in_threads([partial(change, task) for task in range(len(shares))], _THREADS, _THREAD_NAME)
    if make_inserts is not None:
        changes.append(write_changes(state, make_inserts(), task=len(changes)))
    return changes


def _remove_old_rows(dml: Dml, changes: Sequence[TaskChanges]) -> RemovedRows:
    """Remove the old versions of changed rows, and the deleted rows, from their files, in threads."""
    files, rewrite = dml.touched_files(changes), dml.rewrite
    threads = _THREADS
    if not rewrite.use_deletion_vectors:  # each thread writes its own files
        threads = min(_THREADS, 1 + sum(touched.file.size_bytes for touched in files) // _SHARE_BYTES)
    # If only a few small vectors are written, threads would cost more than the work itself.
    groups = [files] if files and dml.is_light(files) else dml.group_for_tasks(files, threads)
    steps = [partial(remove_rows, group, rewrite, task=task) for task, group in enumerate(groups)]
    return RemovedRows.of_all(in_threads(steps, _THREADS, _THREAD_NAME))
