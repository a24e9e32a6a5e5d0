"""OPTIMIZE: the rows of many small files in few large ones, and those of files with many deleted rows without these.

    done = optimize(store, OptimizeRequest("day >= date'2024-01-01'"), compact_bins)
    done.metrics()                      # the struct `metrics` of the reference's result

The files of each partition are packed into bins, from old to new, and each bin becomes one file. Bins are written in tasks
(write/compaction.py) and committed in batches: who dies in between loses the present batch, and the next run goes on. A file that
was made so is marked by a tag with the size aimed at, so that a run without anything new does nothing.

No rows change, so other writers hardly matter: a bin is committed if its files are still the table's, on whatever version that
is. Rows that were deleted from them meanwhile by deletion vectors are deleted from the new file too. Bins of which a file has
gone are given up, and what is left of them is planned anew.
Protocol: Add File and Remove File; Deletion Vectors; Row Tracking.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from delta_py.commands.optimize_bins import DEFAULT_DELETED_RATIO, Bin, Compaction, OptimizeRequest, batches_of
from delta_py.commands.optimize_metrics import Optimized
from delta_py.errors import (
    DeltaConcurrentModificationException,
)
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.write.compaction import compact
from delta_py.write.files import WrittenFiles, delete_files
from delta_py.write.rewrite import Rewrite

_log = logging.getLogger("delta_py")

_ROUNDS = 3
_THREADS = 4

T = TypeVar("T")


class AtTable(Protocol):
    """Runs a step where the table is. once: a step that must not be repeated."""

    def __call__(self, step: Callable[[], T], *, once: bool = False) -> T: ...


CompactBins: TypeAlias = Callable[[Rewrite, Sequence[Bin]], Sequence[WrittenFiles]]
"""Runs write.compaction.compact on each bin, in parallel; nothing with the write's id stays behind if it raises."""


def here(step: Callable[[], T], *, once: bool = False) -> T:
    return step()


def optimize(store: ObjectStore, request: OptimizeRequest, compact_bins: CompactBins, at: AtTable = here) -> Optimized:
    """Raises InvalidOptionError and ExpressionError for a predicate that is not of partition columns alone;
    UnsupportedOperationError for a clustered table; what write_state and reading raise. Batches that were committed before stay.
    Files that other writers change again and again are left as they are, with a warning.
    """
    request.check()
    done = Optimized(store.root)
    for _ in range(_ROUNDS):
        snapshot = at(partial(Snapshot.load, store)).through(store)
        compaction = Compaction.of(snapshot, request)
        chosen = at(compaction.choose)
        done.begin(chosen.considered, compaction.snapshot.config, compaction.rewrite.state.stats_columns)
        left = 0
        for bins in batches_of(chosen.bins, request.batch_bytes):
            batch = compaction.for_batch()
            written = compact_bins(batch.rewrite, bins)
            try:
                committed = at(partial(batch.commit, bins, written), once=True)
            except DeltaConcurrentModificationException as error:  # in the moment between looking and committing
                _log.info("%s: a batch of OPTIMIZE is planned anew: %s", store.root, error.message)
                left += len(bins)
                continue
            left += len(bins) - committed["bins"]
            done.count(committed)
        if not left:
            return done
        _log.info("%s: other writers have changed files of %d bins, which are planned anew", store.root, left)
    _log.warning("%s: other writers have changed files of %d bins again and again; they stay as they are", store.root, left)
    return done


def compact_here(rewrite: Rewrite, bins: Sequence[Bin]) -> list[WrittenFiles]:
    """CompactBins in threads of this process."""
    done: list[WrittenFiles] = []
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1), "delta_py-optimize") as pool:
        futures = [pool.submit(compact, files, rewrite, task=number) for number, files in enumerate(bins)]
        try:
            done.extend(future.result() for future in futures)
        except BaseException:
            for future in futures:
                future.cancel()
            pool.shutdown(wait=True)
            finished = [future.result() for future in futures if not future.cancelled() and future.exception() is None]
            delete_files(rewrite.state.store, [path for part in finished for path in part.new_paths])
            raise
    return done


# ---------------------------------------------------------------- without Spark


@dataclass(frozen=True, slots=True)
class TableOptimizer:
    """`DeltaTable.optimize`: the upkeep of a table's files, on its newest version, in threads of this process."""

    store: ObjectStore
    time_zone: str = "UTC"

    def compact(
        self,
        filter: str | None = None,
        *,
        target_file_bytes: int | None = None,
        min_file_bytes: int | None = None,
        max_deleted_ratio: float = DEFAULT_DELETED_RATIO,
        batch_bytes: int | None = None,
    ) -> dict[str, Any]:
        """The rows of small files in files of about target_file_bytes; returns metrics by the reference's names.

        filter: SQL over partition columns. The others as of OptimizeRequest. Raises as `optimize`.
        """
        request = OptimizeRequest(filter, target_file_bytes, min_file_bytes, max_deleted_ratio, batch_bytes, self.time_zone)
        return optimize(self.store, request, compact_here).metrics()
