"""Copy objects byte by byte from one store to another, or by a request to the store if it can copy.

    copy_object(source_store, "part-1.parquet", target_store, "part-1.parquet", size_bytes=4_000_000)

A copy appears whole or not at all, so an object of that name is always complete, even if a process died during the copy. Memory:
two chunks.
"""

from __future__ import annotations

import errno
import os

import pyarrow as pa

from delta_py.storage.arrow_files import discard, expect_ranges
from delta_py.storage.store import ObjectStore

_CHUNK_BYTES = 8 * 1024 * 1024  # read and written at a time


class OtherSizeError(OSError):
    """The source does not have the expected size. actual: its size in bytes."""

    def __init__(self, path: str, expected: int, actual: int) -> None:
        super().__init__(f"{path} has {actual} bytes, and should have {expected}")
        self.actual = actual


def copy_object(source: ObjectStore, source_path: str, target: ObjectStore, path: str, size_bytes: int | None = None) -> int:
    """Copy an object to `path` of the target store, replacing any other object there. Returns its size in bytes.

    source_path: as the source store reads it, below its root or elsewhere. size_bytes: the expected size; None for any.
    Raises FileNotFoundError and OtherSizeError, and then creates nothing; other OSError and StorageError.
    """
    with source.open_input(source_path) as stream:
        actual_bytes = int(stream.size())
        if size_bytes is not None and size_bytes != actual_bytes:
            raise OtherSizeError(source_path, size_bytes, actual_bytes)
        if not target.copy_from(source, source_path, path, actual_bytes):
            _copy_bytes(stream, actual_bytes, source_path, target, path)
    return actual_bytes


def move_object(store: ObjectStore, path: str, new_path: str) -> None:
    """Rename an object within the store's root. If the process dies, the object is complete under the old name, the new one, or
    both.

    Raises FileExistsError if the new name is taken, and FileNotFoundError; then nothing is changed. A store without links checks
    the new name first; an object that another writer puts there right after the check is lost. Other OSError and StorageError:
    the object has one of the names, or both.
    """
    if not store.link(path, new_path):  # the store has no links
        directory, _, name = new_path.rpartition("/")
        next_object = next(store.list_from(directory, name), None)
        if next_object is not None and next_object.path == new_path:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_path)
        copy_object(store, path, store, new_path)
    store.delete(path)


def _copy_bytes(stream: pa.NativeFile, size_bytes: int, source_path: str, target: ObjectStore, path: str) -> None:
    """Copy the bytes through this process. Raises OtherSizeError if the source ends early; then nothing appears at `path`."""
    sink = target.open_atomic_output(path)
    try:
        for start in range(0, size_bytes, _CHUNK_BYTES):
            # The chunk after this one is fetched while this one is written.
            expect_ranges(stream, [(start, min(2 * _CHUNK_BYTES, size_bytes - start))])
            length = min(_CHUNK_BYTES, size_bytes - start)
            data = stream.read(length)
            if len(data) != length:
                raise OtherSizeError(source_path, size_bytes, start + len(data))
            sink.write(data)
    except BaseException:
        discard(sink)
        raise
    sink.close()
