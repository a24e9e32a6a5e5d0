"""OPTIMIZE: merge the rows of many small files into few large ones, and rewrite files with many deleted rows without these rows.

    done = optimize(store, OptimizeRequest("day >= date'2024-01-01'"), compact_bins)
    done.metrics()                      # the struct `metrics` of delta-spark's result

The files of each partition are packed into bins, from old to new, and each bin becomes one file. Tasks write the bins
(write/file_compaction.py), and the driver commits them in batches. A process that dies loses the batch that it was writing, and
the next run continues. A tag on each new file has the target size, so that a run without new files does nothing.

No rows change, so other writers rarely conflict: a bin is committed if its files are still in the table, on whatever version that
is. If deletion vectors have deleted rows of these files in the meantime, the rows are deleted from the new file too. If a file of
a bin was removed, the bin is dropped, and its remaining files are planned again.
Protocol: Add File and Remove File; Deletion Vectors; Row Tracking.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaConcurrentModificationException, InvalidOptionError
from delta_py.layout.row_order import PIECES, RowOrder
from delta_py.layout.spill import SpilledRows
from delta_py.log.catalog_contract import Maintenance, refuse_forbidden
from delta_py.optimize.optimize_bins import (
    DEFAULT_DELETED_RATIO,
    Bin,
    BinWriters,
    ChosenBins,
    Compaction,
    OptimizeRequest,
    batch_bins,
    estimate_row_count,
)
from delta_py.optimize.optimize_metrics import Optimized
from delta_py.optimize.optimize_ordering import choose_compaction
from delta_py.progress import part, progress, share, steps
from delta_py.protocol.actions import DomainMetadata
from delta_py.snapshot import Snapshot
from delta_py.storage.storage_errors import raises_storage_errors
from delta_py.storage.store import ObjectStore
from delta_py.threads import in_threads
from delta_py.write.arranging import (
    Arrangement,
    SampledBin,
    file_shares,
    rows_from_bytes,
    rows_to_bytes,
    sample_columns,
    split_rows,
    write_pieces,
)
from delta_py.write.data_files import WrittenFiles, delete_files_on_failure
from delta_py.write.file_compaction import compact, report_row_counts
from delta_py.write.rewrite import Rewrite

_log = logging.getLogger("delta_py")

_ROUNDS = 3  # how often files are chosen again, if other writers change them in the meantime
_THREADS = min(4, os.cpu_count() or 1)

T = TypeVar("T")


class AtTable(Protocol):
    """Runs a step in a process that has access to the table, and returns its result. once: the step must not be repeated after a
    failure."""

    def __call__(self, step: Callable[[], T], *, once: bool = False) -> T: ...


def here(step: Callable[[], T], *, once: bool = False) -> T:
    """The AtTable for a process that has access to the table itself: run the step at once."""
    return step()


@progress("OPTIMIZE", "bytes")
def optimize(
    store: ObjectStore,
    request: OptimizeRequest,
    writers: BinWriters,
    run_at_table: AtTable = here,
    kind: type[Compaction] | None = None,
) -> Optimized:
    """Rewrite files in batches. writers: does the work of tasks. run_at_table: loads versions and commits. kind: the kind of
    rewrite, such as reorg.Purge; None for OPTIMIZE.

    Raises InvalidOptionError and ExpressionError for a predicate that is not on partition columns alone; InvalidOptionError
    for columns that cannot order rows; UnsupportedOperationError for Z-order or a predicate if the table is clustered, and for
    `full` if it is not; what write_state and reading raise. Batches that were committed before stay.
    Files that other writers change again and again are left as they are, with a warning.
    """
    request.check()
    statement = "OPTIMIZE of" if kind is None else "REORG of"
    run_at_table(partial(refuse_forbidden, store, Maintenance.REORGANIZATION, statement, "Nothing was changed."))
    totals = Optimized(store.root)
    for _ in range(_ROUNDS):
        snapshot, clustering = run_at_table(partial(_load_newest, store))
        snapshot = snapshot.through(store)  # run_at_table may have loaded it in another process
        compaction = choose_compaction(snapshot, clustering, request) if kind is None else kind.of(snapshot, request)
        chosen = run_at_table(compaction.choose)
        totals.begin(compaction.kind, chosen, snapshot.config, compaction.rewrite.state.stats_columns)
        skipped_bins = _run_batches(compaction, chosen, writers, run_at_table, totals)
        if not skipped_bins:
            return totals
        _log.info("%s: other writers have changed files of %d bins, which are planned again", store.root, skipped_bins)
    _log.warning(
        "%s: other writers have changed files of %d bins again and again; they stay as they are", store.root, skipped_bins
    )
    return totals


def _run_batches(
    compaction: Compaction, chosen: ChosenBins, writers: BinWriters, run_at_table: AtTable, totals: Optimized
) -> int:
    """Write and commit the bins; returns how many were not committed because other writers had changed their files."""
    total_bytes, skipped_bins = pc.sum(chosen.files["size"]).as_py() or 0, 0
    with part(total_bytes, "bytes"):
        for bins in batch_bins(chosen.files, compaction.request.batch_bytes):
            batch = compaction.for_batch()
            with share(_total_bytes(bins) / max(1, total_bytes)):
                written = batch.write(writers, bins)
            try:
                committed = run_at_table(partial(batch.commit, bins, written), once=True)
            except (
                DeltaConcurrentModificationException
            ) as error:  # another writer was faster; the next round plans the bins again
                _log.info("%s: a batch of OPTIMIZE is planned again: %s", totals.table_root, error.message)
                skipped_bins += len(bins)
                continue
            skipped_bins += len(bins) - committed["bins"]
            totals.count(committed)
    return skipped_bins


def _total_bytes(bins: Iterable[Bin]) -> int:
    """The size of all files of the bins."""
    return sum(file.size_bytes for files in bins for file in files)


def _load_newest(store: ObjectStore) -> tuple[Snapshot, DomainMetadata | None]:
    """The newest snapshot, with the domain that names clustering columns."""
    snapshot = Snapshot.load(store)
    snapshot.check_last_commit()  # before files are written
    return snapshot, snapshot.clustering_domain()


# ---------------------------------------------------------------- without Spark


class LocalBinWriters:
    """The BinWriters that do the work of tasks in threads of this process. Rows to be sorted are spilled to this machine's
    disk."""

    def compact(self, rewrite: Rewrite, bins: Sequence[Bin]) -> list[WrittenFiles]:
        with delete_files_on_failure(rewrite.state), steps(sum(map(estimate_row_count, bins)), "rows") as count:
            return _in_threads(
                [partial(compact, files, rewrite, task=number, count_rows=count) for number, files in enumerate(bins)]
            )

    def sample(self, arrangement: Arrangement, bins: Sequence[SampledBin]) -> list[pa.Table]:
        with steps(sum(estimate_row_count(sampled.files) for sampled in bins), "rows") as count:

            def sample(sampled: SampledBin) -> pa.Table:
                """The sample of one bin; its rows count as done."""
                rows = sample_columns(sampled.files, arrangement, sampled.every)
                count(estimate_row_count(sampled.files))
                return rows

            return _in_threads([partial(sample, sampled) for sampled in bins])

    def arrange(self, arrangement: Arrangement, bins: Sequence[Bin], orders: Sequence[RowOrder | None]) -> list[WrittenFiles]:
        rows_to_count = 2 * sum(map(estimate_row_count, bins))  # each row is spilled, and then written
        with delete_files_on_failure(arrangement.rewrite.state), steps(rows_to_count, "rows") as count:
            return [
                WrittenFiles() if order is None else _write_in_order(arrangement, files, order, count)
                for files, order in zip(bins, orders, strict=True)
            ]


def _write_in_order(arrangement: Arrangement, files: Bin, order: RowOrder, count_rows: Callable[[int], None]) -> WrittenFiles:
    """Write the rows of a bin in an order: spill all of them by their pieces, and then write each file from its pieces."""
    with SpilledRows() as spilled:

        def spill(files_of_task: Bin) -> None:
            """Spill the rows of some files, by the pieces of the order that they belong to."""
            for piece, rows in split_rows(files_of_task, arrangement, order):
                spilled.put(piece, rows_to_bytes(rows))
                count_rows(rows.num_rows)

        def write(number: int) -> WrittenFiles:
            """Write a new file, by its number in the order. A file consists of PIECES pieces."""
            rows = map(rows_from_bytes, spilled.take(range(number * PIECES, (number + 1) * PIECES)))
            return write_pieces(report_row_counts(rows, count_rows), arrangement, task=number)

        _in_threads([partial(spill, files_of_task) for files_of_task in file_shares(files, _THREADS)])
        return WrittenFiles.of_all(_in_threads([partial(write, number) for number in range(order.file_count)]))


def _in_threads(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run the tasks in parallel; returns their results in order."""
    return in_threads(tasks, _THREADS, "delta_py-optimize")


@raises_storage_errors(lambda optimizer: optimizer.store.root)
@dataclass(frozen=True, slots=True)
class TableOptimizer:
    """`DeltaTable.optimize`: maintenance of a table's files, on its newest version, in threads of this process."""

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
        """Merge the rows of small files into files of about target_file_bytes; returns metrics by delta-spark's names.

        filter: SQL over partition columns. The others as in OptimizeRequest. Raises as `optimize`.
        """
        request = OptimizeRequest(filter, target_file_bytes, min_file_bytes, max_deleted_ratio, batch_bytes, self.time_zone)
        return optimize(self.store, request, LocalBinWriters()).metrics()

    def z_order(
        self,
        columns: Sequence[str],
        filter: str | None = None,
        *,
        target_file_bytes: int | None = None,
        batch_bytes: int | None = None,
    ) -> dict[str, Any]:
        """Write all rows in the Z-order of the columns, partition by partition; returns metrics as compact does.

        columns: nested ones dotted. The rows of a partition are spilled to this machine's disk. Raises as `optimize`.
        """
        if not columns:
            raise InvalidOptionError("Name the columns to order the rows by.", option="columns")
        request = OptimizeRequest(
            filter,
            target_file_bytes,
            batch_bytes=batch_bytes,
            time_zone=self.time_zone,
            z_order=tuple(columns),
        )
        return optimize(self.store, request, LocalBinWriters()).metrics()

    def cluster(
        self, *, full: bool = False, target_file_bytes: int | None = None, batch_bytes: int | None = None
    ) -> dict[str, Any]:
        """Write the new rows of a clustered table along the Hilbert curve of its clustering columns; returns metrics as compact
        does.

        full: also take files that are clustered by other columns. Raises as `optimize`. A table that is not clustered is
        compacted, or refused with `full`.
        """
        request = OptimizeRequest(None, target_file_bytes, batch_bytes=batch_bytes, time_zone=self.time_zone, full=full)
        return optimize(self.store, request, LocalBinWriters()).metrics()
