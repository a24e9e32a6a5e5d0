"""What files of remote stores can do beside what pyarrow knows of files.

    expect_ranges(source, [(4, 100_000), (900_000, 50_000)])    # fetched at once, then read by pyarrow in any order
    discard(sink)                                               # a file that was begun and is not to be

Files on this machine are read as they are, and closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

ByteRange = tuple[int, int]
"""(offset, length), in bytes."""

# Between two ranges so little is fetched too: it takes less time than a request of its own.
_GAP_BYTES = 256 * 1024
_LONGEST_REQUEST_BYTES = 8 * 1024 * 1024


class Prefetcher(Protocol):
    """A file object of Python's that pyarrow reads."""

    def expect(self, ranges: Sequence[ByteRange]) -> None:
        """These ranges are what is read next. What was fetched before and is in none of them may be forgotten."""


class PrefetchingFile(pa.PythonFile):  # type: ignore[misc]
    """A PythonFile over a Prefetcher."""

    prefetcher: Prefetcher

    @classmethod
    def over(cls, prefetcher: Prefetcher) -> PrefetchingFile:
        file = cls(prefetcher, mode="r")
        file.prefetcher = prefetcher
        return file


def expect_ranges(source: pa.NativeFile, ranges: Sequence[ByteRange]) -> None:
    """What of a file is read next, if that is of use to it."""
    if isinstance(source, PrefetchingFile):
        source.prefetcher.expect(ranges)


class Abortable(Protocol):
    """A file object of Python's that pyarrow writes."""

    def abort(self) -> None:
        """Nothing of the file is kept. `close` does no more than free what it holds afterwards."""


class AbortableFile(pa.PythonFile):  # type: ignore[misc]
    """A PythonFile over an Abortable."""

    output: Abortable

    @classmethod
    def over(cls, output: Abortable) -> AbortableFile:
        file = cls(output, mode="w")
        file.output = output
        return file


def discard(sink: pa.NativeFile) -> None:
    """Close a file that was begun and is not to be; where the store can, it never appears. Raises OSError."""
    if isinstance(sink, AbortableFile):
        sink.output.abort()
    sink.close()


def is_prefetching(source: pa.NativeFile) -> bool:
    return isinstance(source, PrefetchingFile)


def as_stretches(ranges: Sequence[ByteRange]) -> list[ByteRange]:
    """What is fetched for the ranges, in the order of their offsets: neighbours together, as far as one request takes them.

    Each range lies whole in one stretch, so that a stretch may be as long as the longest range, or as those that overlap.
    """
    merged: list[list[int]] = []
    for offset, length in sorted(ranges):
        if length <= 0:
            continue
        start, end = merged[-1] if merged else (0, -1 - _GAP_BYTES)
        if offset < end or (offset <= end + _GAP_BYTES and offset + length - start <= _LONGEST_REQUEST_BYTES):
            merged[-1][1] = max(end, offset + length)
        else:
            merged.append([offset, offset + length])
    return [(start, end - start) for start, end in merged]


def as_requests(stretch: ByteRange) -> list[ByteRange]:
    """The requests that fetch a stretch: a long one in several."""
    start, length = stretch
    step = -(-length // -(-length // _LONGEST_REQUEST_BYTES))
    return [(place, min(step, start + length - place)) for place in range(start, start + length, step)]
