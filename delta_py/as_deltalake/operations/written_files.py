"""Data files that a caller has written by himself become part of a table; deletion vectors as masks of rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_py.as_deltalake.transaction import AddAction
from delta_py.commit.transaction import Transaction
from delta_py.errors import InvalidOptionError, SchemaMismatchError
from delta_py.expressions.tree import Expression
from delta_py.parquet.row_counts import read_row_count
from delta_py.protocol.actions import AddFile, RemoveFile
from delta_py.protocol.deletion_vectors import read_deletion_vector
from delta_py.protocol.paths import resolve
from delta_py.protocol.table_config import Operation
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.addresses import has_scheme
from delta_py.types.schema import StructType
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import remove_action_of

_MASKS = pa.schema([("filepath", pa.string()), ("selection_vector", pa.list_(pa.bool_()))])


def commit_files(
    snapshot: Snapshot,
    actions: Sequence[AddAction],
    mode: str,
    schema: StructType,
    partition_by: Sequence[str],
    condition: Expression | None,
) -> int:
    """Commit data files that the caller has written; returns the version. schema, partition_by: the columns and partition columns
    of the files, which must be those of the table; an empty partition_by is accepted too. mode: append; or overwrite, which
    removes the files that may hold rows for which the condition is true. Raises InvalidOptionError, SchemaMismatchError;
    conflicts as Transaction.commit."""
    config = snapshot.config
    config.require(Operation.WRITE)
    if mode not in ("append", "overwrite"):
        raise InvalidOptionError(f"Files are committed in the mode append or overwrite, not {mode!r}.", option="mode")
    if schema.names != config.schema.names or list(partition_by) not in ([], list(config.partition_columns)):
        raise SchemaMismatchError(
            f"The files have the columns ({', '.join(schema.names)}) and the partitions ({', '.join(partition_by)}), and the "
            f"table ({', '.join(config.schema.names)}) and ({', '.join(config.partition_columns)}). Nothing was committed. "
            "Name the table's."
        )
    transaction = Transaction(snapshot)
    now_ms = time.time_ns() // 1_000_000
    removes: tuple[RemoveFile, ...] = ()
    if mode == "overwrite":
        scan = transaction.scan(condition, options=ScanOptions(keep_all=True))
        removes = tuple(remove_action_of(file, now_ms=now_ms) for file in scan.scan_files())
    adds = tuple(
        AddFile(
            path=action.path.lstrip("/"),
            partition_values=dict(action.partition_values),
            size_bytes=action.size,
            modification_time_ms=action.modification_time,
            data_change=action.data_change,
            stats=action.stats or None,
        )
        for action in actions
    )
    transaction.add(WrittenFiles(adds=adds, removes=removes))
    return transaction.commit("WRITE", {"mode": mode.capitalize(), "partitionBy": list(partition_by)})


def commit_empty(snapshot: Snapshot, operation: str, parameters: Mapping[str, Any]) -> int:
    """Make a commit without changes, so that the history has an entry; returns the version. parameters: of the operation, for the
    history."""
    return Transaction(snapshot).commit(operation, parameters)


def deletion_masks(snapshot: Snapshot) -> pa.RecordBatchReader:
    """filepath (URI), selection_vector (true for a row that is live) of each file with a deletion vector."""
    return pa.RecordBatchReader.from_batches(_MASKS, _live_row_masks(snapshot))


def _live_row_masks(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """For each file with a deletion vector: its URI, and for each of its rows whether the row is live."""
    for file in plan_scan(snapshot, (), None, ScanOptions()).scan_files():
        if file.deletion_vector is not None:
            location = resolve(snapshot.table_root, file.path)
            uri = location if has_scheme(location) else f"file://{location}"
            yield pa.record_batch(
                [pa.array([uri]), pa.array([_is_live_by_row(snapshot, file)], _MASKS.field(1).type)], schema=_MASKS
            )


def _is_live_by_row(snapshot: Snapshot, file: ScanFile) -> list[bool]:
    """For each row of a file with a deletion vector, in the file's order: whether it is live."""
    assert file.deletion_vector is not None
    is_live = np.ones(read_row_count(snapshot.store, file.path, file.size_bytes), bool)
    is_live[np.asarray(read_deletion_vector(snapshot.store, file.deletion_vector), np.int64)] = False
    mask: list[bool] = is_live.tolist()
    return mask
