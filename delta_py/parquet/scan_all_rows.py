"""Reads all rows of a version once, in threads: for commands that need some fact about each row, but no row itself.

counts = map_file_groups(transaction.scan(None, ["id"]), lambda batches: sum(batch.num_rows for batch in batches))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from delta_py.parquet.file_reader import read_files
from delta_py.scan.file_groups import FileGroup
from delta_py.scan.planning import Scan
from delta_py.threads import in_threads

T = TypeVar("T")

_THREADS = 4
# The most bytes of a group of files, and the bytes that opening a file counts as.
_GROUP_BYTES, _OPEN_COST_BYTES = 128 << 20, 4 << 20


def map_file_groups(scan: Scan, step: Callable[[Iterator[pa.RecordBatch]], T]) -> list[T]:
    """The step's result for each group of files, in the plan's order. The step receives the batches of all files of the group.

    A thread holds one batch at a time. Pages are compared with their checksums, because the command stores its results in the
    table.
    """
    state = replace(scan.state, verify_checksums=True)
    groups = scan.pack(max_group_bytes=_GROUP_BYTES, open_cost_bytes=_OPEN_COST_BYTES, target_groups=_THREADS)

    def run(group: FileGroup) -> T:
        return step(read_files(state, group.scan_files()))

    return in_threads([partial(run, group) for group in groups], _THREADS, "delta_py-rows") if groups else []
