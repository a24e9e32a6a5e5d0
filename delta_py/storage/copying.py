"""Objects copied byte by byte, from one store to another, or by the store itself where it can.

    copy_object(source_store, "part-1.parquet", target_store, "part-1.parquet", size_bytes=4_000_000)

The copy appears whole or not at all, so an object of the name is a whole one, whoever died while it was made. Memory: two chunks.
"""

from __future__ import annotations

import errno
import os

import pyarrow as pa

from delta_py.storage.arrow_files import discard, expect_ranges
from delta_py.storage.store import ObjectStore

_CHUNK_BYTES = 8 * 1024 * 1024


class OtherSizeError(OSError):
    """The source has another size than it should. found: bytes."""

    def __init__(self, path: str, expected: int, found: int) -> None:
        super().__init__(f"{path} has {found} bytes, and should have {expected}")
        self.found = found


def copy_object(source: ObjectStore, source_path: str, target: ObjectStore, path: str, size_bytes: int | None = None) -> int:
    """Make the object at `path` of the target a copy, in the place of any other; returns its bytes.

    source_path: as the source store reads it, below its root or elsewhere. size_bytes: that it should have; None for any.
    Raises FileNotFoundError and OtherSizeError, and then nothing is there; other OSError and StorageError.
    """
    with source.open_input(source_path) as stream:
        found = int(stream.size())
        if size_bytes is not None and size_bytes != found:
            raise OtherSizeError(source_path, size_bytes, found)
        if not target.copy_from(source, source_path, path, found):
            _stream(stream, found, source_path, target, path)
    return found


def move_object(store: ObjectStore, path: str, new_path: str) -> None:
    """Give an object below the store's root another name, below it too. Whoever dies meanwhile leaves it whole under the old
    name, the new one, or both.

    Raises FileExistsError if the new name is taken, and FileNotFoundError; then nothing is changed. A store without second names
    looks first, and whoever takes the name in that moment loses it. Other OSError and StorageError: it has one name, or both.
    """
    if not store.link(path, new_path):
        directory, _, name = new_path.rpartition("/")
        taken = next(store.list_from(directory, name), None)
        if taken is not None and taken.path == new_path:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_path)
        copy_object(store, path, store, new_path)
    store.delete(path)


def _stream(stream: pa.NativeFile, size_bytes: int, source_path: str, target: ObjectStore, path: str) -> None:
    sink = target.open_whole(path)
    try:
        for start in range(0, size_bytes, _CHUNK_BYTES):
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
