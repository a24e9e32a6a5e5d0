"""Groups the files of a scan by about equal bytes, one group per task."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from delta_py.scan.file_groups import bytes_to_read

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_MOST_BYTES = 1 << 38


def pack_files(files: pa.Table, max_group_bytes: int, open_cost_bytes: int, target_groups: int) -> list[pa.Table]:
    """Split a scan's files, or parts of them (Scan.cut_files), into groups of about equal bytes, in order, at least one file
    each.

    A group holds at most max_group_bytes (a larger file is a group of its own), counting open_cost_bytes for each file. If the
    table is small, the result has target_groups groups, or one group per file. [] if there is no file.
    """
    # The log may contain any size: clipping keeps the sum for ten million files within int64.
    sizes = bytes_to_read(files).to_numpy().clip(0, _MOST_BYTES) + min(open_cost_bytes, _MOST_BYTES)
    bounds = _group_bounds(sizes, max(1, target_groups), max(1, max_group_bytes)) if len(sizes) else ()
    return [files.slice(start, stop - start) for start, stop in bounds]


def _group_bounds(sizes: Integers, group_count: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut positions of `group_count` runs of about equal sums, or more runs, so that no sum exceeds `limit` unless it
    is one element."""
    ends = np.cumsum(sizes)
    total = max(1, int(ends[-1]))
    group_count = max(group_count, -(-total // limit))  # at least as many groups as the limit demands
    # An element belongs to the run that contains the element's middle.
    numbers = ((ends - sizes / 2) * (group_count / total)).astype(np.int64)
    for start, last in equal_runs(numbers):
        yield from cut(ends, start, last, limit)


def equal_runs(numbers: Integers) -> Iterator[tuple[int, int]]:
    """Where runs of equal neighbours begin and end. numbers: ascending from 0 or more."""
    return pairwise([*np.flatnonzero(np.diff(numbers, prepend=-1)).tolist(), len(numbers)])


def cut(ends: Integers, start: int, last: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut the elements start to last (exclusive) into runs with sums of at most `limit`, or of one element. ends: cumulative
    sums of all elements."""
    while start < last:
        start_sum = int(ends[start - 1]) if start else 0
        stop = min(last, max(start + 1, int(np.searchsorted(ends, start_sum + limit, side="right"))))
        yield start, stop
        start = stop
