"""Fill in numRecords of files that a commit adds again and whose statistics the log has lost. Find the highest row id that a
table has assigned.

A checkpoint may hold files without statistics (delta.checkpoint.writeStatsAsJson, writeStatsAsStruct). A commit that restores,
clones or renumbers such files must still state their row counts if the protocol requires it. Their Parquet footers contain the
counts.
Protocol: Writer Requirement for Deletion Vectors; Writer Requirements for Row Tracking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import orjson
import pyarrow as pa

from delta_py.commit.prepared import ROW_TRACKING_DOMAIN, highest_row_id, num_records, row_id_high_water_mark
from delta_py.errors import DataFileError
from delta_py.parquet.row_counts import read_row_count
from delta_py.protocol.actions import AddFile
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.threads import in_threads
from delta_py.write.rewrite import add_action_of

_THREADS = 16


def with_row_counts(store: ObjectStore, adds: tuple[AddFile, ...], *, gives_row_ids: bool) -> tuple[AddFile, ...]:
    """The same files, with numRecords where the protocol requires it: in files with a deletion vector, and in files that get row
    ids.

    gives_row_ids: the commit assigns row ids to files that have none. Raises DataFileError if a footer cannot be read.
    """
    return _with_counts_of_footers(
        store, adds, [add for add in adds if _must_count(add, gives_row_ids) and num_records(add) is None]
    )


def _with_counts_of_footers(
    store: ObjectStore, adds: Sequence[AddFile], uncounted_adds: Sequence[AddFile]
) -> tuple[AddFile, ...]:
    """The adds in the same order. Those that are also in uncounted_adds get statistics with the row count of their Parquet
    footer."""
    if not uncounted_adds:
        return tuple(adds)
    row_counts = in_threads([partial(_row_count, store, add) for add in uncounted_adds], _THREADS, "delta_py-footers")
    counted_adds = zip(uncounted_adds, row_counts, strict=True)
    stats_by_path = {add.path: orjson.dumps({"numRecords": count}).decode() for add, count in counted_adds}
    return tuple(replace(add, stats=stats_by_path[add.path]) if add.path in stats_by_path else add for add in adds)


def highest_assigned_row_id(snapshot: Snapshot) -> int:
    """The highest row id that a table has assigned; -1 if none. If the table has lost its row tracking domain, for example by a
    RESTORE of another client, the row ids of its files decide. Raises DataFileError."""
    domain = snapshot.domain_metadata().get(ROW_TRACKING_DOMAIN)
    if domain is not None or not snapshot.config.feature("rowTracking"):
        return row_id_high_water_mark(domain)
    if all(batch.files["base_row_id"].null_count == len(batch.files) for batch in snapshot.file_batches()):
        return -1
    files = plan_scan(snapshot, None, None, ScanOptions(keep_all=True)).scan_files()
    adds = [add_action_of(file) for file in files if file.base_row_id is not None]
    return highest_row_id(_with_counts_of_footers(snapshot.store, adds, [add for add in adds if num_records(add) is None]))


def _must_count(add: AddFile, gives_row_ids: bool) -> bool:
    """Whether the protocol requires numRecords in the file's statistics."""
    return add.deletion_vector is not None or (gives_row_ids and add.base_row_id is None)


def _row_count(store: ObjectStore, add: AddFile) -> int:
    """The number of rows in the file's Parquet footer. Raises DataFileError if it cannot be read."""
    try:
        return read_row_count(store, add.path, add.size_bytes)
    except (OSError, pa.ArrowException) as error:
        raise DataFileError(
            f"The log does not say how many rows {add.path} of the table at {store.root} has, and the file cannot be read: "
            f"{error}. Nothing was committed. Restore the file from a backup.",
            path=add.path,
        ) from error
