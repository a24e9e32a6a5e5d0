"""Objects copied byte by byte, from one store to another, or by the store itself where it can.

    copy_object(source_store, "part-1.parquet", target_store, "part-1.parquet", size_bytes=4_000_000)

The copy appears whole or not at all, so an object of the name is a whole one, whoever died while it was made. Memory: two chunks.
"""

from __future__ import annotations

import pyarrow as pa

from delta_py.storage.files import discard, expect_ranges
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
