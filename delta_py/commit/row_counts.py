"""numRecords of files that a commit names again, where the log has lost their statistics.

A checkpoint may hold files without statistics (delta.checkpoint.writeStatsAsJson, writeStatsAsStruct). A commit that restores,
clones or renumbers such files still has to say how many rows they have where the protocol wants that, and their footers know.
Protocol: Writer Requirement for Deletion Vectors; Writer Requirements for Row Tracking.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import orjson
import pyarrow as pa

from delta_py.commit.prepared import num_records
from delta_py.errors import DataFileError
from delta_py.parquet.row_counts import stored_row_count
from delta_py.protocol.actions import AddFile
from delta_py.storage.store import ObjectStore
from delta_py.threads import in_threads

_AT_ONCE = 16


def counted(store: ObjectStore, adds: tuple[AddFile, ...], *, gives_row_ids: bool) -> tuple[AddFile, ...]:
    """The same files; those with a deletion vector, and those that are to get row ids, with numRecords. Raises DataFileError."""
    lacking = [add for add in adds if _must_count(add, gives_row_ids) and num_records(add) is None]
    if not lacking:
        return adds
    rows = in_threads([partial(_row_count, store, add) for add in lacking], _AT_ONCE, "delta_py-footers")
    known = {add.path: orjson.dumps({"numRecords": count}).decode() for add, count in zip(lacking, rows, strict=True)}
    return tuple(replace(add, stats=known[add.path]) if add.path in known else add for add in adds)


def _must_count(add: AddFile, gives_row_ids: bool) -> bool:
    return add.deletion_vector is not None or (gives_row_ids and add.base_row_id is None)


def _row_count(store: ObjectStore, add: AddFile) -> int:
    try:
        return stored_row_count(store, add.path, add.size_bytes)
    except (OSError, pa.ArrowException) as error:
        raise DataFileError(
            f"The log does not say how many rows {add.path} of the table at {store.root} has, and the file cannot be asked: "
            f"{error}. Nothing was committed. Restore the file from a backup.",
            path=add.path,
        ) from error
