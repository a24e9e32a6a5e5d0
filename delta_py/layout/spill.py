"""Rows that wait on the disk of this machine until their file is written: a shuffle without a cluster.

    with SpilledRows() as spilled:
        spilled.put(piece, data)                # from any thread
        for data in spilled.take(range(32, 48)): ...

The file has no name and disappears with the process. Its size is that of the compressed rows.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from threading import Lock
from types import TracebackType
from typing import Self

import pyarrow as pa


class SpilledRows:
    """A temporary file with the rows of all pieces. A piece is a range in the order of the rows, and has a number; its rows
    arrive in any number of `put` calls."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="delta_py-")  # noqa: SIM115 (closed by __exit__)
        self._lock, self._end = Lock(), 0
        self._records: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._file.close()

    def put(self, piece: int, data: bytes) -> None:
        """Store rows of a piece, in any form. Threads may call it at the same time."""
        # A record: the number of bytes before compression, in 8 bytes, and the compressed data.
        compressed = pa.compress(data, codec="lz4", asbytes=True)
        record = len(data).to_bytes(8, "little") + compressed
        with self._lock:
            self._file.seek(self._end)
            self._file.write(record)
            self._records[piece].append((self._end, len(record)))
            self._end += len(record)

    def take(self, pieces: Iterable[int]) -> Iterator[pa.Buffer]:
        """Yield the data of each `put` call for these pieces, piece by piece. All calls of put must have ended."""
        with self._lock:
            self._file.flush()
        for piece in pieces:
            for start, length in self._records.get(piece, ()):
                record = os.pread(self._file.fileno(), length, start)
                yield pa.decompress(record[8:], int.from_bytes(record[:8], "little"), "lz4")
