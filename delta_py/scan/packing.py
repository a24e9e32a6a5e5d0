"""Groups the files of a scan by about equal bytes, one group per task."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from delta_py.scan.file_groups import bytes_to_read

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_MAX_FILE_BYTES = 1 << 38


def pack_files(files: pa.Table, max_group_bytes: int, open_cost_bytes: int, target_groups: int) -> list[pa.Table]:
    """Split a scan's files, or parts of them (Scan.cut_files), into groups of about equal bytes, in order, at least one file
    each.

    A group holds at most max_group_bytes (a larger file is a group of its own), counting open_cost_bytes for each file. If the
    table is small, the result has target_groups groups, or one group per file. [] if there is no file.
    """
    # The log may contain any size: with at most _MAX_FILE_BYTES each, the sum for ten million files fits int64.
    sizes = bytes_to_read(files).to_numpy().clip(0, _MAX_FILE_BYTES) + min(open_cost_bytes, _MAX_FILE_BYTES)
    bounds = _group_bounds(sizes, max(1, target_groups), max(1, max_group_bytes)) if len(sizes) else ()
    return [files.slice(start, stop - start) for start, stop in bounds]


def _group_bounds(sizes: Integers, group_count: int, limit: int) -> Iterator[tuple[int, int]]:
    """Where groups of neighbours begin and end (exclusive): `group_count` groups of about equal sums, or more, so that no sum
    exceeds `limit` unless the group is one element."""
    ends = np.cumsum(sizes)
    total = max(1, int(ends[-1]))
    group_count = max(group_count, -(-total // limit))  # at least as many groups as the limit demands
    # All sizes together are cut into group_count equal stretches. An element belongs to the one that contains its middle.
    numbers = ((ends - sizes / 2) * (group_count / total)).astype(np.int64)
    for start, end in equal_runs(numbers):
        yield from cut_run(ends, start, end, limit)


def equal_runs(numbers: Integers) -> Iterator[tuple[int, int]]:
    """Where runs of equal neighbours begin and end (exclusive). numbers: ascending from 0 or more."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()  # -1 differs from every number, so the first run begins at 0
    return pairwise([*starts, len(numbers)])


def cut_run(ends: Integers, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut the elements from start to end (exclusive) into runs with sums of at most `limit`, or of one element. Yields where each
    run begins and ends (exclusive). ends: cumulative sums of all elements."""
    while start < end:
        start_sum = int(ends[start - 1]) if start else 0
        stop = min(end, max(start + 1, int(np.searchsorted(ends, start_sum + limit, side="right"))))
        yield start, stop
        start = stop
