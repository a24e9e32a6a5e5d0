"""Files of one table copied byte by byte to another, for clones (executor).

    copy_files(source_store, target_store, rows)      # of COPY_SCHEMA

A copy appears whole or not at all. Nothing here writes to the log; the caller commits.
Protocol: Data Files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import pyarrow as pa

from delta_py.errors import DataFileError
from delta_py.progress import steps
from delta_py.storage.copying import OtherSizeError, copy_object
from delta_py.storage.store import ObjectStore

# source_path: as the source's store reads it. path: below the target's root. size: the file's bytes by the log; null for a
# deletion vector file, whose size the log does not tell. least: the minimum size in bytes; the file's vectors end there.
COPY_SCHEMA = pa.schema([("source_path", pa.string()), ("path", pa.string()), ("size", pa.int64()), ("least", pa.int64())])

Copy: TypeAlias = Mapping[str, Any]
"""A row of COPY_SCHEMA."""

_COPY_THREADS = 8
_UNCHANGED_TARGET = "The target is as it was; what was copied is used by the next run."


def copy_files(source: ObjectStore, target: ObjectStore, copies: Sequence[Copy]) -> None:
    """Copy the files in several threads. Raises DataFileError for a file that is missing or does not match the log, otherwise as
    copy_object."""
    with steps(minimum_bytes(copies), "bytes") as count, ThreadPoolExecutor(_COPY_THREADS, "delta_py-clone") as pool:
        futures = [pool.submit(_copy_file, source, target, copy) for copy in copies]
        try:
            for copy, future in zip(copies, futures, strict=True):
                future.result()
                count(copy["least"])
        finally:
            for future in futures:
                future.cancel()


def minimum_bytes(copies: Sequence[Copy]) -> int:
    """The bytes that the copies have at least: the sizes by the log, and for deletion vector files those that the vectors
    need."""
    return sum(copy["least"] for copy in copies)


def _copy_file(source: ObjectStore, target: ObjectStore, copy: Copy) -> None:
    """Copy one file. Raises as copy_files."""
    path, expected = copy["source_path"], copy["least"] if copy["size"] is None else copy["size"]
    try:
        copied_bytes = copy_object(source, path, target, copy["path"], copy["size"])
        if copied_bytes < copy["least"]:
            raise OtherSizeError(path, copy["least"], copied_bytes)
    except FileNotFoundError as error:
        raise DataFileError(
            f"The file {path} of the table at {source.root} is missing, and cannot be cloned. VACUUM or another program deleted "
            f"it. {_UNCHANGED_TARGET} Clone a newer version, or look with fsck what else is missing.",
            path=path,
        ) from error
    except OtherSizeError as error:
        raise DataFileError(
            f"The file {path} of the table at {source.root} has {error.actual} bytes, and by the log it has {expected}: it was "
            f"cut short or replaced. {_UNCHANGED_TARGET} Restore it from a backup.",
            error_class="FAILED_READ_FILE.NO_HINT",
            sql_state="KD001",
            path=path,
        ) from error
