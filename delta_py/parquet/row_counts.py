"""The number of rows of a data file and of its row groups, from its footer."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.storage.store import ObjectStore

_END = struct.Struct("<I4s")
"""The end of a file: the length of its footer in bytes, and the magic number."""


def read_row_count(store: ObjectStore, path: str, size_bytes: int) -> int:
    """The number of rows according to the file's footer, deleted ones included. Raises OSError, pyarrow.ArrowException."""
    with store.open_input(path, size_bytes) as source:
        return int(pq.read_metadata(source).num_rows)


def read_first_group_row_count(store: ObjectStore, path: str, size_bytes: int, *, most_bytes: int) -> int | None:
    """The number of rows of the first row group. None for a file without row groups, or with a footer of more than most_bytes,
    which is not parsed then. Raises OSError, pyarrow.ArrowException."""
    with store.open_input(path, size_bytes) as source:
        size = source.size()
        if size < _END.size:
            raise pa.ArrowInvalid(f"{path} has {size} bytes, which are no Parquet file")
        source.seek(size - _END.size)
        length, _ = _END.unpack(source.read(_END.size))
        if length > most_bytes:
            return None
        footer = pq.read_metadata(source)
        return int(footer.row_group(0).num_rows) if footer.num_row_groups else None
