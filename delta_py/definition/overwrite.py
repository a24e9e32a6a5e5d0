"""The rows that an overwrite replaces: all rows, the rows of a predicate, or the partitions that the new rows have.

Protocol: Add File and Remove File; Add CDC File.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from enum import Enum

from delta_py.commit.transaction import Transaction
from delta_py.definition.request import WriteRequest
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.skipping_conditions import is_exact_on_partitions
from delta_py.expressions.tree import conjuncts
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.write_state import WriteState
from delta_py.scan.file_groups import scan_files
from delta_py.scan.partition_set import PartitionSet
from delta_py.scan.planning import ScanOptions
from delta_py.scan.scan_state import ScanFile
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import (
    RemovedRows,
    Rewrite,
    find_matching_rows,
    remove_action_of,
    remove_rows,
    row_count_of,
    row_index_columns,
)


class Overwrites(Enum):
    """Which rows of a table a write replaces. NOTHING: an append. TABLE: all rows. MATCHING_ROWS: the rows of replaceWhere.
    PARTITIONS: the partitions of the new rows."""

    NOTHING = "nothing"
    TABLE = "table"
    MATCHING_ROWS = "matching rows"
    PARTITIONS = "partitions"


def choose_overwritten_rows(config: TableConfig, request: WriteRequest) -> Overwrites:
    """The rows that the write replaces. Dynamic mode has no effect on a table without partitions, as in Spark: the whole table is
    overwritten."""
    if request.save_mode != "Overwrite":
        return Overwrites.NOTHING
    if request.replace_where is not None:
        return Overwrites.MATCHING_ROWS
    if request.is_dynamic and config.partition_columns:
        return Overwrites.PARTITIONS
    return Overwrites.TABLE


def needs_change_files(config: TableConfig, request: WriteRequest) -> bool:
    """Whether rows are replaced within files that are rewritten, so that the change data feed cannot tell them from the unchanged
    rows. Then change data files must hold all changes of the commit.
    Protocol: Add CDC File; Writer Requirements for AddCDCFile.
    """
    if request.replace_where is None or not config.enabled("changeDataFeed") or config.enabled("deletionVectors"):
        return False
    partitions = frozenset((name,) for name in config.partition_columns)
    predicate = parse_predicate(request.replace_where, config.schema, session_timezone=request.time_zone)
    return not all(is_exact_on_partitions(conjunct, partitions) for conjunct in conjuncts(predicate))


def remove_replaced_rows(
    transaction: Transaction, overwrites: Overwrites, state: WriteState, written: WrittenFiles
) -> RemovedRows:
    """Remove the rows that an overwrite replaces: returns the actions, and the number of rows if a predicate selects them.
    written: the new rows. state: the one that the tasks got. The transaction records the files that were read.

    Files in which only some rows are replaced get a deletion vector, or are rewritten without them.
    """
    match overwrites:
        case Overwrites.NOTHING:
            return RemovedRows()
        case Overwrites.TABLE:
            return RemovedRows(_removes_of_all_files(transaction, state))
        case Overwrites.PARTITIONS:
            return RemovedRows(_removes_of_written_partitions(transaction, state, written))
        case Overwrites.MATCHING_ROWS:
            return _remove_matching_rows(transaction, state)


def _removes_of_all_files(transaction: Transaction, state: WriteState) -> WrittenFiles:
    """The removes of all files of the table."""
    scan = transaction.scan(options=ScanOptions(timezone=state.time_zone, keep_all=True))
    return _remove_actions_of(scan.scan_files(), state)


def _removes_of_written_partitions(transaction: Transaction, state: WriteState, written: WrittenFiles) -> WrittenFiles:
    """The removes of all files in the partitions that the write has written to. Values of partition columns are compared as Spark
    compares them: -0.0 is 0.0 and NaN is NaN, however the log spells them. delta-spark differs: it does not remove files of -0.0
    for 0.0, or the reverse.

    Raises CorruptTableError (CAST_INVALID_INPUT) if the partition of a file cannot be determined.
    """
    if not written.adds:
        return WrittenFiles()
    partitions = PartitionSet.of(transaction.config, (add.partition_values for add in written.adds), state.time_zone)
    files = transaction.files_of(partitions)
    return _remove_actions_of((file for batch in files.to_batches(max_chunksize=4096) for file in scan_files(batch)), state)


def _remove_actions_of(files: Iterable[ScanFile], state: WriteState) -> WrittenFiles:
    """The remove actions of whole files."""
    now_ms = time.time_ns() // 1_000_000
    return WrittenFiles(removes=tuple(remove_action_of(file, now_ms=now_ms, data_change=state.data_change) for file in files))


def _remove_matching_rows(transaction: Transaction, state: WriteState) -> RemovedRows:
    """Remove the rows for which replace_where is true. Files with only such rows are removed without being read."""
    assert state.replace_where is not None
    config = transaction.config
    predicate = parse_predicate(state.replace_where, config.schema, session_timezone=state.time_zone)
    options = ScanOptions(row_address=True, drop_rows=True, timezone=state.time_zone, keep_all=True)
    scan = transaction.only_deleted_rows_matter().scan(predicate, row_index_columns(), options)
    if scan.state.predicate is None:  # pruning has shown that all rows of the remaining files match
        files = list(scan.scan_files())
        removes = tuple(remove_action_of(file, data_change=state.data_change) for file in files)
        return RemovedRows(WrittenFiles(removes=removes), deleted=row_count_of(files) or 0)
    matches = (find_matching_rows(file, scan.state) for file in scan.scan_files())
    return remove_rows((file for file in matches if file is not None), Rewrite.of(config, state))


def replace_metrics(written: WrittenFiles, replaced: RemovedRows) -> dict[str, int]:
    """Metrics of an overwrite of the rows that match a predicate, under delta-spark's names and counted as delta-spark counts: a
    file with a larger deletion vector counts as written with its remaining rows, and not as removed. Row counts that statistics
    do not give are left out, and all row counts if the written files have no rows.
    """
    adds = (*written.adds, *replaced.written.adds)
    paths = {add.path for add in adds}
    removed_files = [remove for remove in replaced.written.removes if remove.path not in paths]
    metrics = {
        "numFiles": len(adds),
        "numOutputBytes": sum(add.size_bytes for add in adds),
        "numRemovedFiles": len(removed_files),
        "numRemovedBytes": sum(remove.size_bytes or 0 for remove in removed_files),
        "numAddedChangeFiles": len(written.cdc) + len(replaced.written.cdc),
    }
    copied_rows = row_count_of(replaced.written.adds)
    if copied_rows is None or written.row_count + copied_rows == 0:
        return metrics
    metrics["numOutputRows"] = written.row_count + copied_rows
    if replaced.deleted or not removed_files:
        metrics |= {"numCopiedRows": copied_rows, "numDeletedRows": replaced.deleted}
    return metrics
