"""Data files in which one bit is flipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq


def chunk_places(file: Path) -> list[int]:
    """The positions of the bytes of a Parquet file's column chunks: its pages, each with its header."""
    metadata = pq.read_metadata(file)
    places: list[int] = []
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            places += range(start, start + chunk.total_compressed_size)
    return places


@contextmanager
def flipped(file: Path, place: int) -> Iterator[None]:
    """One bit of the byte at the place is flipped within the context; which one depends only on the place."""
    data = file.read_bytes()
    damaged = bytearray(data)
    damaged[place] ^= 1 << place % 8
    file.write_bytes(damaged)
    try:
        yield
    finally:
        file.write_bytes(data)
