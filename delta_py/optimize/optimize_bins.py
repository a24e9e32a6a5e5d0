"""Bins of files that OPTIMIZE merges into one file each: their choice, and the commit of the new files.

    compaction = Compaction.of(snapshot, request)
    bins = compaction.choose()
    compaction.commit(bins, written)

No rows change, so other writers rarely conflict: a bin is committed if its files are still in the table, on whatever version that
is. If deletion vectors have deleted rows of these files in the meantime, the rows are deleted from the new file too.
Protocol: Add File and Remove File; Deletion Vectors; Row Tracking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.transaction import Transaction
from delta_py.errors import (
    ExpressionError,
    InvalidOptionError,
    SchemaMismatchError,
)
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.tree import Expression, columns_of
from delta_py.index_commands.index_upkeep import index_new_files
from delta_py.layout.row_order import RowOrder
from delta_py.optimize.optimize_metrics import count_changes, history_metrics
from delta_py.protocol.actions import AddFile
from delta_py.protocol.deletion_vectors import dv_file_bytes
from delta_py.row_rules.write_state import new_write_id, write_state
from delta_py.scan.file_groups import scan_files
from delta_py.scan.file_pruner import partition_texts
from delta_py.scan.packing import cut_run, equal_runs
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import parse_stats
from delta_py.types.schema import TIMESTAMP
from delta_py.write.arranging import Arrangement, SampledBin
from delta_py.write.data_files import WrittenFiles, delete_files
from delta_py.write.file_compaction import for_compaction, positions_of_new_deletions
from delta_py.write.rewrite import Rewrite, remove_action_of, row_count_of, with_vector
from delta_py.write.task_changes import vector_file_id

DEFAULT_TARGET_BYTES = 1 << 30
"""One gigabyte, from VLDB'20, section 5."""
DEFAULT_DELETED_RATIO = 0.05
# A cube is a set of files that one clustering wrote together (optimize_ordering.py).
DEFAULT_MIN_CUBE_BYTES = 100 << 30
DEFAULT_TARGET_CUBE_BYTES = 150 << 30
_ESTIMATED_ROW_BYTES = 64  # to estimate the rows of files without a row count
TARGET_TAG = "OPTIMIZE_TARGET_SIZE"  # of files that OPTIMIZE wrote: the target size in bytes

Bin: TypeAlias = tuple[ScanFile, ...]


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """What a caller may request of an OPTIMIZE or REORG. predicate: SQL over partition columns; None for the whole table.
    target_file_bytes: None for delta.targetFileSize, or else DEFAULT_TARGET_BYTES. min_file_bytes: files of this size or larger
    stay as they are; None for the target. max_deleted_ratio: files with a larger share of deleted rows are rewritten whatever
    their size. batch_bytes: about the size of the files that one commit replaces; None for one commit of all. time_zone: the zone
    in which the predicate's times are read. z_order: columns, nested ones dotted, by which rows are sorted; check_z_order_stats:
    refuse columns without statistics. full: for a clustered table, also take the files that are clustered by other columns.
    min_cube_bytes: a cube (files that one clustering wrote together) of at least this size stays as it is; target_cube_bytes: the
    size of new cubes.
    """

    predicate: str | None = None
    target_file_bytes: int | None = None
    min_file_bytes: int | None = None
    max_deleted_ratio: float = DEFAULT_DELETED_RATIO
    batch_bytes: int | None = None
    time_zone: str = "UTC"
    z_order: tuple[str, ...] = ()
    check_z_order_stats: bool = True
    full: bool = False
    min_cube_bytes: int = DEFAULT_MIN_CUBE_BYTES
    target_cube_bytes: int = DEFAULT_TARGET_CUBE_BYTES

    def check(self) -> None:
        """Check the request's numbers. Raises InvalidOptionError for numbers that make no sense."""
        for name in ("target_file_bytes", "min_file_bytes", "batch_bytes", "min_cube_bytes", "target_cube_bytes"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                raise InvalidOptionError(f"{name} is {number}: give a number of bytes greater than 0.", option=name)
        if not 0 <= self.max_deleted_ratio <= 1:
            raise InvalidOptionError(
                f"max_deleted_ratio is {self.max_deleted_ratio}: give a share between 0 and 1.", option="max_deleted_ratio"
            )


@dataclass(frozen=True, slots=True)
class ChosenBins:
    """The files to rewrite, in bins. files: FILE_SCHEMA and the column `bin`, the number of the bin, sorted by this number.
    considered: the number of files that the predicate selects. clustering: the counts and sizes of existing and chosen files of a
    clustered table, by delta-spark's names; None for other tables.
    """

    files: pa.Table
    considered: int
    clustering: dict[str, Any] | None = None


class BinWriters(Protocol):
    """The work of tasks, for several bins in parallel. If a method raises, no files with the write's id remain."""

    def compact(self, rewrite: Rewrite, bins: Sequence[Bin]) -> Sequence[WrittenFiles]:
        """Run write.file_compaction.compact on each bin."""

    def sample(self, arrangement: Arrangement, bins: Sequence[SampledBin]) -> Sequence[pa.Table]:
        """Run write.arranging.sample_columns on each bin."""

    def arrange(self, arrangement: Arrangement, bins: Sequence[Bin], orders: Sequence[RowOrder | None]) -> Sequence[WrittenFiles]:
        """Write the rows of each bin in its order, by write.arranging; nothing for a bin without an order."""


class Compaction:
    """One run on a table: it chooses the bins that are worth rewriting, writes their rows to new files, and commits these. Small
    and picklable. Subclasses choose other files, sort the rows, or name another operation.

    kind: compaction, zorder or clustering, for the metrics. operation: its name in the history. predicate: over partition
    columns; None for all files. rewrite: how rows are read and written.
    """

    kind: ClassVar[str] = "compaction"
    operation: ClassVar[str] = "OPTIMIZE"

    def __init__(self, snapshot: Snapshot, request: OptimizeRequest, predicate: Expression | None, rewrite: Rewrite) -> None:
        self.snapshot, self.request, self.predicate, self.rewrite = snapshot, request, predicate, rewrite

    @classmethod
    def of(cls, snapshot: Snapshot, request: OptimizeRequest) -> Self:
        """The compaction that a request asks for, on a version of the table. Raises as optimize."""
        config = snapshot.config
        state = replace(write_state(config, snapshot.store, snapshot.version, new_rows=False), time_zone=request.time_zone)
        predicate = None if request.predicate is None else _partition_predicate(snapshot, request)
        return cls(snapshot, request, predicate, for_compaction(Rewrite.of(config, state, change_data=False)))

    def for_batch(self) -> Self:
        """A copy with a new write id, which is part of the names of its files. After a failure, the id shows which files to
        delete, without those that other batches have committed."""
        batch = copy(self)
        batch.rewrite = replace(self.rewrite, state=replace(self.rewrite.state, write_id=new_write_id()))
        return batch

    @property
    def target_bytes(self) -> int:
        """The size of new files: that of the request, of the table's property, or the default."""
        size = self.request.target_file_bytes
        return self.snapshot.config.properties.size("delta.targetFileSize", DEFAULT_TARGET_BYTES) if size is None else size

    def choose(self) -> ChosenBins:
        """Choose the files to rewrite, and divide them into bins, from old to new. Files of about the same time go to the same
        bin: rows that were written together often have close values, so the new files' minima and maxima prune as well as those
        of the old ones.

        Columnar: there may be very many files that stay as they are.
        """
        files = plan_scan(self.snapshot, None, self.predicate, self._scan_options).files
        considered = int(files.num_rows)
        files = files.filter(self._select_candidates(files, self.request.min_file_bytes or self.target_bytes))
        return ChosenBins(self._pack_bins(files), considered)

    def _pack_bins(self, files: pa.Table) -> pa.Table:
        """The files that are worth rewriting, from old to new in each partition, with the number of their bin."""
        groups, age = self._partition_numbers(files), files["modification_time"].to_numpy()
        # By partition, then from old to new. Among equal times, the file that comes last in the log is the oldest.
        order = np.lexsort((-np.arange(len(groups)), age, groups))
        files = files.take(pa.array(order))
        numbers = pack_into_bins(files["size"].to_numpy(), groups[order], self.target_bytes)
        return files.append_column("bin", pa.array(numbers)).filter(self._select_worthwhile_bins(files, numbers))

    @property
    def _scan_options(self) -> ScanOptions:
        return ScanOptions(timezone=self.request.time_zone, keep_all=True)

    def _select_candidates(self, files: pa.Table, limit: int) -> pa.ChunkedArray:
        """For each file, whether it may be worth a rewrite: its size in bytes is below the limit, or it has many deleted rows."""
        return pc.or_(pc.less(files["size"], limit), pa.chunked_array([self._has_many_deleted(files)]))

    def _has_many_deleted(self, files: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether the share of deleted rows is greater than allowed, for each file. For a file without a row count, one deleted
        row is enough.
        """
        deleted = pc.fill_null(pc.struct_field(files["deletion_vector"], "cardinality"), 0)
        records = pa.chunked_array([parse_stats(part, {}).num_records for part in files["stats"].chunks], pa.int64())
        allowed = pc.fill_null(pc.multiply(records.cast(pa.float64(), safe=False), self.request.max_deleted_ratio), 0)
        return np.asarray(pc.greater(deleted.cast(pa.float64(), safe=False), allowed))

    def _partition_numbers(self, files: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
        """A number per file, equal for files of the same partition."""
        numbers = np.zeros(files.num_rows, np.int64)
        batch = files.select(["partition_values"]).combine_chunks()
        for name in self.snapshot.config.physical_partition_columns:
            texts = partition_texts(batch, name).combine_chunks()
            codes = texts.dictionary_encode(null_encoding="encode").indices.to_numpy()
            # Number the distinct pairs of the number so far and the value of this column.
            pairs = np.stack([numbers, codes.astype(np.int64)])
            numbers = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
        return numbers

    def _select_worthwhile_bins(self, files: pa.Table, bins: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
        """For each file, whether its bin is worth rewriting: the bin has several files, and not all of them were written by an
        OPTIMIZE with the same target size; or one of its files has many deleted rows. bins: the number of each file's bin.
        """
        has_vector = files["deletion_vector"].is_valid().to_numpy()
        has_target_size = pc.equal(pc.map_lookup(files["tags"], pa.scalar(TARGET_TAG), "first"), str(self.target_bytes))
        is_new = has_vector | ~pc.fill_null(has_target_size, False).to_numpy()
        file_counts = np.bincount(bins)
        has_many_deleted = self._has_many_deleted(files)
        worth_while = ((file_counts > 1) & (np.bincount(bins, is_new) > 0)) | (np.bincount(bins, has_many_deleted) > 0)
        return pa.array(worth_while[bins])

    def write(self, writers: BinWriters, bins: Sequence[Bin]) -> Sequence[WrittenFiles]:
        """Write the rows of each bin to new files. Returns the new files of each bin, and the removes of its old ones."""
        return self._keep_old_instants(bins, writers.compact(self.rewrite, bins))

    def _keep_old_instants(self, bins: Sequence[Bin], written: Sequence[WrittenFiles]) -> list[WrittenFiles]:
        """Give the new files of the bins the texts that the old files have as partition values of timestamps: a text without a
        zone is a different instant in each session's zone, and moved rows must keep their meaning.
        """
        names = self._timestamp_column_names()
        return [
            replace(part, adds=tuple(_with_old_partition_values(files[0], add, names) for add in part.adds)) if names else part
            for files, part in zip(bins, written, strict=True)
        ]

    def _timestamp_column_names(self) -> dict[str, str]:
        """The partition columns of type timestamp: their names in the actions of old files, by which their names in the actions
        of new files are found. The two differ if column mapping is removed."""
        config = self.snapshot.config
        names = zip(config.partition_fields, config.physical_partition_columns, self._new_partition_names(), strict=True)
        return {old_name: new_name for field, old_name, new_name in names if field.data_type == TIMESTAMP}

    def _new_partition_names(self) -> Sequence[str]:
        """The names of the partition columns in the actions of new files, in order."""
        return self.snapshot.config.physical_partition_columns

    # ------------------------------------------------------------ the commit

    def commit(self, bins: Sequence[Bin], written: Sequence[WrittenFiles]) -> dict[str, Any]:
        """Commit the new files of those bins whose files are still in the table, on the newest version, and delete the other new
        files. Returns what Optimized.count takes; there may be no bins. Raises as Transaction.commit.
        """
        store = self.snapshot.store
        try:
            newest = Snapshot.load(store)
            prepared = map(self._prepare_for_commit, bins, written, self._current_files(newest, bins))
            parts = [part for part in prepared if part is not None]
        except BaseException:
            delete_files(store, [path for part in written for path in part.new_paths])
            raise
        committed_paths = {path for part in parts for path in part.new_paths}
        delete_files(store, [path for part in written for path in part.new_paths if path not in committed_paths])
        metrics = count_changes(parts)
        if parts:
            transaction, all_files = Transaction(newest), WrittenFiles.of_all(parts)
            transaction.add(all_files).read_files(path for files in bins for path in (f.path for f in files))
            metrics["version"] = transaction.commit(self.operation, self._parameters(), metrics=history_metrics(metrics))
            index_new_files(store, transaction.config, metrics["version"], all_files)
        return metrics

    def _parameters(self) -> dict[str, Any]:
        """The parameters of the operation in the table's history."""
        return {"predicate": self._predicate_texts(), "zOrderBy": [], "clusterBy": [], "auto": False}

    def _predicate_texts(self) -> list[str]:
        """The predicate for the history, in parentheses as in delta-spark; empty if there is none."""
        return [] if self.request.predicate is None else [f"({self.request.predicate})"]

    def _tags(self) -> dict[str, str]:
        """The tags of the new files."""
        return {TARGET_TAG: str(self.target_bytes)}

    def _current_files(self, newest: Snapshot, bins: Sequence[Bin]) -> list[Bin | None]:
        """The files of each bin as they are in the newest version; None for a bin that has lost a file."""
        # The metadata also differ if the path now has another table.
        if (newest.protocol, newest.metadata) != (self.snapshot.protocol, self.snapshot.metadata):
            return [None] * len(bins)
        if newest.version == self.snapshot.version:
            return list(bins)
        paths = pa.array([file.path for files in bins for file in files], pa.string())
        files = plan_scan(newest, None, self.predicate, self._scan_options).files
        files = files.filter(pc.is_in(files["path"], paths))
        live_files = {file.path: file for batch in files.to_batches() for file in scan_files(batch)}
        live_bins = [tuple(live_files[file.path] for file in files if file.path in live_files) for files in bins]
        return [live_bin if len(live_bin) == len(files) else None for live_bin, files in zip(live_bins, bins, strict=True)]

    def _prepare_for_commit(self, old_files: Bin, written: WrittenFiles, live_files: Bin | None) -> WrittenFiles | None:
        """The new files of a bin, ready to commit: with their tags, and without the rows that other writers have deleted in the
        meantime. None if they may not be committed. old_files: the files as they were read. live_files: the same files in the
        newest version; None if one of them was removed.
        """
        if live_files is None:
            return None
        adds = tuple(replace(add, tags={**(add.tags or {}), **self._tags()}) for add in written.adds)
        written = replace(written, adds=adds)
        if all(live_file.deletion_vector == file.deletion_vector for live_file, file in zip(live_files, old_files, strict=True)):
            return written
        store = self.snapshot.store
        deleted_rows = positions_of_new_deletions(store, old_files, live_files)
        if deleted_rows is None:  # another writer has restored rows, which the new file does not have
            return None
        removes = tuple(remove_action_of(file, data_change=False) for file in live_files)
        if len(deleted_rows) >= written.row_count:  # no row remains, so there is no new file to commit
            return replace(written, adds=(), removes=removes, new_paths=(), row_count=0, size_bytes=0)
        (add,) = adds  # rows are left, and a bin becomes one file
        data, (vector,) = dv_file_bytes([deleted_rows], vector_file_id(self.rewrite.state.write_id))
        assert vector.path is not None
        store.put_if_absent(vector.path, data)
        add = with_vector(add, vector, written.row_count)
        return replace(written, adds=(add,), removes=removes, new_paths=(*written.new_paths, vector.path))


def _with_old_partition_values(file: ScanFile, add: AddFile, names: Mapping[str, str]) -> AddFile:
    """The add with partition values of an old file, as the log has them. names: the columns to copy, by their names in the old
    file: their names in the new one."""
    old_values = dict(file.partition_values)
    values = {new_name: old_values[old_name] for old_name, new_name in names.items() if old_name in old_values}
    return replace(add, partition_values={**add.partition_values, **values})


def _partition_predicate(snapshot: Snapshot, request: OptimizeRequest) -> Expression:
    """Parse the request's predicate. Raises InvalidOptionError for other columns than partition columns, and ExpressionError,
    with delta-spark's error classes."""
    assert request.predicate is not None
    partitions = list(snapshot.config.partition_columns)
    try:
        predicate = parse_predicate(request.predicate, snapshot.schema, session_timezone=request.time_zone)
    except SchemaMismatchError as error:
        raise _no_partition_column(str(error.message_parameters.get("column", request.predicate)), partitions) from error
    except ExpressionError as error:
        raise ExpressionError(
            f"Cannot recognize the predicate '{request.predicate}': {error.message} Nothing was changed.",
            error_class="DELTA_FAILED_RECOGNIZE_PREDICATE",
            sql_state="42601",
            predicate=request.predicate,
        ) from error
    data_columns = sorted(".".join(path) for path in columns_of(predicate) if path[0] not in partitions)
    if data_columns:
        raise _no_partition_column(data_columns[0], partitions)
    return predicate


def _no_partition_column(column: str, partitions: Sequence[str]) -> InvalidOptionError:
    """The error for a predicate that names a column which is not a partition column. partitions: the partition columns."""
    return InvalidOptionError(
        f"Predicate references non-partition column '{column}'. Only the partition columns may be referenced: "
        f"[{', '.join(partitions)}]. Nothing was changed: files are chosen as they are, not by the rows in them.",
        error_class="DELTA_NON_PARTITION_COLUMN_REFERENCE",
        sql_state="42P10",
        column=column,
    )


def estimate_row_count(files: Bin) -> int:
    """How many rows the files have by their statistics; an estimate from their sizes if a file has no row count."""
    rows = row_count_of(files)
    return sum(file.size_bytes for file in files) // _ESTIMATED_ROW_BYTES if rows is None else rows


def pack_into_bins(
    sizes: np.ndarray[Any, np.dtype[np.int64]], groups: np.ndarray[Any, np.dtype[np.int64]], limit: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Pack files into bins, and return the number of each file's bin. A bin has files of one group that follow each other, as
    many as fit within the limit, at least one.

    sizes: the files' sizes in bytes. groups: the number of each file's group, ascending. limit: the most bytes of a bin. The
    numbers of the bins begin with 0, and ascend too.
    """
    ends, numbers = np.cumsum(sizes), np.empty(len(sizes), np.int64)
    bins = (part for first, last in equal_runs(groups) for part in cut_run(ends, first, last, limit))
    for number, (start, stop) in enumerate(bins):
        numbers[start:stop] = number
    return numbers


def batch_bins(chosen: pa.Table, batch_bytes: int | None) -> Iterator[list[Bin]]:
    """Read the bins, and group them into batches of about batch_bytes, at least one bin each; None: all in one batch. chosen: as
    ChosenBins.files."""
    batch: list[Bin] = []
    batch_size_bytes = 0
    for files in _read_bins(chosen):
        size = sum(file.size_bytes for file in files)
        if batch and batch_bytes is not None and batch_size_bytes + size > batch_bytes:
            yield batch
            batch, batch_size_bytes = [], 0
        batch.append(files)
        batch_size_bytes += size
    if batch:
        yield batch


def _read_bins(chosen: pa.Table) -> Iterator[Bin]:
    """The bins, one after another. chosen: as ChosenBins.files."""
    files = chosen.drop_columns(["bin"])
    for start, stop in equal_runs(chosen["bin"].to_numpy()):
        yield tuple(file for batch in files.slice(start, stop - start).to_batches() for file in scan_files(batch))
