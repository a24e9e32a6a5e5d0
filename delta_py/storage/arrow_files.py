"""Operations on files of remote stores in addition to pyarrow's own methods.

    expect_ranges(source, [(4, 100_000), (900_000, 50_000)])    # fetched at once, then read by pyarrow in any order
    discard(sink)                                               # an unfinished file that must not appear

Files on this machine are simply read and closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

ByteRange = tuple[int, int]
"""(offset, length), in bytes."""

# A gap of this size between two ranges is fetched too: that takes less time than a separate request.
_GAP_BYTES = 256 * 1024
_LONGEST_REQUEST_BYTES = 8 * 1024 * 1024


class Prefetcher(Protocol):
    """A Python file object that pyarrow reads."""

    def expect(self, ranges: Sequence[ByteRange]) -> None:
        """Announce the ranges that are read next. Data that was fetched before and is in none of them may be dropped."""


class PrefetchingFile(pa.PythonFile):  # type: ignore[misc]
    """A PythonFile over a Prefetcher."""

    prefetcher: Prefetcher

    @classmethod
    def over(cls, prefetcher: Prefetcher) -> PrefetchingFile:
        file = cls(prefetcher, mode="r")
        file.prefetcher = prefetcher
        return file


def expect_ranges(source: pa.NativeFile, ranges: Sequence[ByteRange]) -> None:
    """Announce the ranges that are read next, if the file can use that."""
    if isinstance(source, PrefetchingFile):
        source.prefetcher.expect(ranges)


class Abortable(Protocol):
    """A Python file object that pyarrow writes."""

    def abort(self) -> None:
        """Give the file up: nothing of it remains. `close` afterwards only frees resources."""


class AbortableFile(pa.PythonFile):  # type: ignore[misc]
    """A PythonFile over an Abortable."""

    output: Abortable

    @classmethod
    def over(cls, output: Abortable) -> AbortableFile:
        file = cls(output, mode="w")
        file.output = output
        return file


def discard(sink: pa.NativeFile) -> None:
    """Close an unfinished file that must not appear; it never appears if the store can prevent that. Raises OSError."""
    if isinstance(sink, AbortableFile):
        sink.output.abort()
    sink.close()


def is_prefetching(source: pa.NativeFile) -> bool:
    """Whether expect_ranges has an effect on the file."""
    return isinstance(source, PrefetchingFile)


def as_stretches(ranges: Sequence[ByteRange]) -> list[ByteRange]:
    """The stretches to fetch for the ranges, in the order of their offsets: neighbours are merged up to the length of one
    request.

    Each range lies in one stretch completely, so a stretch can be as long as the longest range, or as several overlapping ranges.
    """
    merged: list[list[int]] = []
    for offset, length in sorted(ranges):
        if length <= 0:
            continue
        # The first range is merged with none: no offset lies within the gap after this end.
        start, end = merged[-1] if merged else (0, -1 - _GAP_BYTES)
        if offset < end or (offset <= end + _GAP_BYTES and offset + length - start <= _LONGEST_REQUEST_BYTES):
            merged[-1][1] = max(end, offset + length)
        else:
            merged.append([offset, offset + length])
    return [(start, end - start) for start, end in merged]


def as_requests(stretch: ByteRange) -> list[ByteRange]:
    """The requests that fetch a stretch: a long stretch needs several."""
    start, length = stretch
    request_count = -(-length // _LONGEST_REQUEST_BYTES)  # rounded up
    request_bytes = -(-length // request_count)
    return [(offset, min(request_bytes, start + length - offset)) for offset in range(start, start + length, request_bytes)]
