"""Remove rows from data files: by larger deletion vectors, or by new files without the rows.

    removed_rows = remove_rows(files, rewrite)     # files with the positions of the rows to remove -> the actions, and counts

The remaining rows keep their ids if the table tracks rows; the removed rows become change data if that is enabled.
Nothing here writes to the log; the caller commits.
Protocol: Deletion Vectors; Writer Requirement for Deletion Vectors; Add CDC File; Row Tracking.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_py.errors import DeltaError, RowCountMismatchError, UnsupportedOperationError
from delta_py.parquet.file_reader import ScanReader, read_files
from delta_py.parquet.row_counts import read_row_count
from delta_py.protocol.actions import AddFile, RemoveFile
from delta_py.protocol.deletion_vectors import (
    DeletionVectorDescriptor,
    dv_file_bytes,
    from_row_indexes,
    inline_descriptor,
    read_deletion_vector,
)
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.write_state import WriteState
from delta_py.scan.planning import ROW_ADDRESS, ScanOptions, make_state
from delta_py.scan.scan_state import ScanFile, ScanState
from delta_py.statistics.stats import parse_stats
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, StructField, StructType
from delta_py.write.data_files import (
    FileSetWriter,
    WrittenFiles,
    abandon_on_failure,
    delete_files,
    unchanged_batches,
    write_unchanged,
)
from delta_py.write.row_ids import RowIdColumns, row_id_fields
from delta_py.write.task_changes import vector_file_id

_ROW_INDEX = StructType((StructField(ROW_ADDRESS, StructType((StructField("row_index", LONG),))),))
_COPIED_TOGETHER_BYTES = 16 * 1024 * 1024  # about the most bytes of small files whose rows are copied to one new file
_VECTOR_FILE_BYTES = 16 * 1024 * 1024  # about the size of a file with many deletion vectors
_BYTES_A_ROW = 2  # about the most bytes that a row's position takes in a deletion vector, by which the file size is estimated


class Repeats(Enum):
    """What it means if an operation passes the same row of a file more than once as a row to remove. FORBIDDEN: a bug. AMBIGUOUS:
    several source rows of a MERGE match the row, which is an error. IGNORED: the row is deleted, however often it is passed."""

    FORBIDDEN = "forbidden"
    AMBIGUOUS = "ambiguous"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """How tasks remove rows from the files of a table, and how they copy rows; every task gets it.

    state: writes the rows that are copied to new files, with the columns of row ids if the table tracks rows. rows: the scan that
    reads these rows. plain, plain_rows: the same without row ids, for change data. use_deletion_vectors: otherwise files are
    rewritten. change_data: write the removed rows as change data. repeats: what it means if a row is passed more than once.
    """

    state: WriteState
    rows: ScanState
    plain: WriteState
    plain_rows: ScanState
    row_ids: RowIdColumns | None
    use_deletion_vectors: bool
    change_data: bool
    repeats: Repeats = Repeats.FORBIDDEN

    @classmethod
    def of(
        cls, config: TableConfig, state: WriteState, *, change_data: bool | None = None, repeats: Repeats = Repeats.FORBIDDEN
    ) -> Rewrite:
        """How rows are removed from the files of a table. state: writes copied rows; it has no columns of row ids yet.
        change_data: whether to write the removed rows as change data; None if rows are only deleted: then only if the table has
        no deletion vectors, which would describe the change by themselves."""
        vectors, row_ids, fields = config.enabled("deletionVectors"), RowIdColumns.of(config), config.schema.fields
        options = ScanOptions(timezone=state.time_zone, row_address=row_ids is not None, to_write=True)
        plain = make_state(config, state.store, config.schema, None, options)
        rows, state_with_ids = plain, state
        if row_ids is not None:
            scan_schema = StructType((*fields, row_id_fields()))
            rows, state_with_ids = make_state(config, state.store, scan_schema, None, options), row_ids.add_to_state(state)
        if change_data is None:
            change_data = config.enabled("changeDataFeed") and not vectors
        return cls(state_with_ids, rows, state, plain, row_ids, vectors, change_data, repeats)


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file, and the positions of the rows to remove from it, in one set for each task that reported some. deleted: rows to
    delete. updated: rows whose new versions are in other files.

    The counts are numbers of reported rows: larger than the sets if a row was reported more than once. file: with its statistics
    and the log's spelling of its path.
    """

    file: ScanFile
    deleted: tuple[DeletionVectorDescriptor, ...] = ()
    updated: tuple[DeletionVectorDescriptor, ...] = ()
    deleted_count: int = 0
    updated_count: int = 0


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """The actions that remove rows from files (written), and counts. deleted, updated: removed rows. copied: rows that were
    written unchanged to new files. vectors_added: deletion vectors of files that had none. vectors_updated: larger vectors.
    vectors_removed: vectors of files that were removed or rewritten."""

    written: WrittenFiles = field(default_factory=WrittenFiles)
    deleted: int = 0
    updated: int = 0
    copied: int = 0
    vectors_added: int = 0
    vectors_updated: int = 0
    vectors_removed: int = 0

    @classmethod
    def of_all(cls, parts: Iterable[RemovedRows]) -> RemovedRows:
        """All parts together, in their order."""
        parts = list(parts)
        counts = {name: sum(getattr(part, name) for part in parts) for name in _COUNTS}
        return cls(WrittenFiles.of_all(part.written for part in parts), **counts)


_COUNTS = ("deleted", "updated", "copied", "vectors_added", "vectors_updated", "vectors_removed")


def row_index_columns() -> StructType:
    """The columns that a scan must return for find_matching_rows."""
    return _ROW_INDEX


def find_matching_rows(file: ScanFile, matching: ScanState) -> TouchedFile | None:
    """The file with the rows that the scan `matching` returns from it, as rows to delete; None if there are none.

    matching: returns row_index_columns() of exactly the rows to delete (drop_rows).
    """
    positions = BitMap64()
    for batch in read_files(matching, [file]):
        positions |= from_row_indexes(batch.column(0).field("row_index").to_numpy(zero_copy_only=False))
    return TouchedFile(file, deleted=(inline_descriptor(positions),), deleted_count=len(positions)) if positions else None


def live_batches(files: Sequence[ScanFile], rewrite: Rewrite) -> Iterator[pa.RecordBatch]:
    """The live rows of files, with their ids if the table tracks rows. write_unchanged(rewrite.state, ...) writes them."""
    return _with_row_ids(read_files(rewrite.rows, files), rewrite)


def _with_row_ids(batches: Iterator[pa.RecordBatch], rewrite: Rewrite) -> Iterator[pa.RecordBatch]:
    """The batches of the scan rewrite.rows with the columns of rewrite.state: row ids in columns of their own, if there are
    any."""
    return batches if rewrite.row_ids is None else map(rewrite.row_ids.convert_scanned, batches)


def remove_action_of(file: ScanFile, *, now_ms: int | None = None, data_change: bool = True) -> RemoveFile:
    """The action that removes the whole file from the table. now_ms: the deletion time in ms since 1970; None for the current
    time. data_change: False if the removal only moves rows to other files. Protocol: Add File and Remove File.
    """
    return RemoveFile(
        path=file.path,
        path_text=file.path_text,
        data_change=data_change,
        deletion_timestamp_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        extended_file_metadata=True,
        partition_values=dict(file.partition_values),
        size_bytes=file.size_bytes,
        tags=file.tags,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )


def row_count_of(files: Sequence[ScanFile | AddFile]) -> int | None:
    """How many rows the files have by their statistics; None if a file has no row count."""
    records = parse_stats(pa.array([file.stats for file in files], pa.string()), {}).num_records
    if records.null_count:
        return None
    deleted = sum(file.deletion_vector.cardinality for file in files if file.deletion_vector is not None)
    return (pc.sum(records).as_py() or 0) - deleted


def wrong_row_count(files: Sequence[ScanFile], rows: int) -> RowCountMismatchError | None:
    """The error if more or fewer rows were read from the files than their statistics say; None if the counts match or are
    unknown."""
    expected = row_count_of(files)
    if expected in (None, rows):
        return None
    return RowCountMismatchError(
        f"By their statistics the {len(files)} files from {files[0].path} on have {expected} rows, and {rows} were read. Nothing "
        "was committed. A file was changed or replaced since it was written: restore it from a backup.",
        path=files[0].path,
        rows=rows,
    )


def remove_rows(files: Iterable[TouchedFile], rewrite: Rewrite, *, task: int = 0) -> RemovedRows:
    """Remove the rows from their files.

    Each file gives one remove. It also gives one add with a larger deletion vector (many vectors share a file), or its rows are
    copied to new files (rows of small files share one), or no row remains. Memory: a batch and a row group, the sets of one large
    or several small files, and the vectors of one deletion vector file. Raises RowCountMismatchError if the rows of a file do not
    add up, UnsupportedOperationError if a row was passed twice. Then all new files are deleted.
    """
    store = rewrite.state.store
    remover = _RowRemover(rewrite, task)
    with abandon_on_failure(store.root, remover.image_writers):
        try:
            for touched in files:
                remover.remove_from(touched)
            return remover.finish()
        except BaseException:
            delete_files(store, [path for part in remover.parts for path in part.written.new_paths])
            raise


@dataclass(frozen=True, slots=True)
class _RowSets:
    """A file's rows, as sets of positions. deleted_before: rows that the file's deletion vector deletes. deleted, updated: rows
    to remove now. row_count: the number of rows in the Parquet file, with the deleted rows."""

    row_count: int
    deleted_before: BitMap64
    deleted: BitMap64
    updated: BitMap64

    @property
    def all_deleted(self) -> BitMap64:
        return self.deleted_before | self.deleted | self.updated

    @property
    def remaining_count(self) -> int:
        return self.row_count - len(self.deleted_before) - len(self.deleted) - len(self.updated)


class _RowRemover:
    """Removes rows from one file after another. parts: the results so far.

    _image_writers: the writers of change data, by kind. _waiting_for_copy: files whose remaining rows are not copied yet.
    _waiting_for_vector: files whose larger deletion vectors are not written yet; _removed_row_count: the positions in these
    vectors.
    """

    def __init__(self, rewrite: Rewrite, task: int) -> None:
        self._store, self._rewrite, self._task = rewrite.state.store, rewrite, task
        self._image_writers: dict[str, FileSetWriter] = {}
        if rewrite.change_data:
            kinds = ("delete", "update_preimage")
            self._image_writers = {kind: FileSetWriter(rewrite.plain, task, kind) for kind in kinds}
        self._waiting_for_copy: list[tuple[ScanFile, _RowSets]] = []
        self._bytes_to_copy = 0
        self._waiting_for_vector: list[tuple[ScanFile, _RowSets]] = []
        self._removed_row_count = 0
        self.parts: list[RemovedRows] = []

    @cached_property
    def _live_rows(self) -> ScanReader:
        return ScanReader(self._rewrite.rows)

    @cached_property
    def _changed_rows(self) -> ScanReader:
        return ScanReader(self._rewrite.plain_rows)

    @property
    def image_writers(self) -> list[FileSetWriter]:
        """The writers of change data: one for deleted rows, one for the old values of updated rows; none without change data."""
        return list(self._image_writers.values())

    def remove_from(self, touched: TouchedFile) -> None:
        """Remove the rows of one file, and note its actions in `parts`. Vectors and copies of several files are written together,
        later."""
        file, rows = touched.file, _read_row_sets(self._store, touched, self._rewrite.repeats)
        if self._image_writers:
            self._write_images(file, rows.deleted, "delete")
            self._write_images(file, rows.updated, "update_preimage")
        remove = remove_action_of(file, data_change=self._rewrite.state.data_change)
        had_vector = int(file.deletion_vector is not None)
        counts = {"deleted": len(rows.deleted), "updated": len(rows.updated)}
        if rows.remaining_count == 0:
            self.parts.append(RemovedRows(WrittenFiles(removes=(remove,)), vectors_removed=had_vector, **counts))
        elif self._rewrite.use_deletion_vectors:
            vectors = {"vectors_added": 1 - had_vector, "vectors_updated": had_vector}
            self.parts.append(RemovedRows(WrittenFiles(removes=(remove,)), **vectors, **counts))
            self._add_vector_later(file, rows)
        else:
            self.parts.append(RemovedRows(WrittenFiles(removes=(remove,)), vectors_removed=had_vector, **counts))
            self._copy_later(file, rows)

    def finish(self) -> RemovedRows:
        """Write the vectors and copies that wait for more files, and return the results of all files."""
        self._write_vectors()
        self._write_copies()
        images = WrittenFiles.of_all([writer.finish() for writer in self.image_writers])
        return RemovedRows.of_all([*self.parts, RemovedRows(images)])

    # ------------------------------------------------------------ deletion vectors

    def _add_vector_later(self, file: ScanFile, rows: _RowSets) -> None:
        """Let the file wait until its vector and those of other files fill a deletion vector file."""
        self._waiting_for_vector.append((file, rows))
        self._removed_row_count += rows.row_count - rows.remaining_count
        if self._removed_row_count * _BYTES_A_ROW >= _VECTOR_FILE_BYTES:
            self._write_vectors()

    def _write_vectors(self) -> None:
        """Write one file with the vectors of all waiting files, and collect their add actions."""
        if not self._waiting_for_vector:
            return
        waiting, self._waiting_for_vector, self._removed_row_count = self._waiting_for_vector, [], 0
        data, vectors = dv_file_bytes([rows.all_deleted for _, rows in waiting], vector_file_id(self._rewrite.state.write_id))
        path = vectors[0].path
        assert path is not None
        # The path is noted before the write: its reply may be lost although the file was written.
        self.parts.append(RemovedRows(WrittenFiles(new_paths=(path,))))
        self._store.put_if_absent(path, data)
        data_change = self._rewrite.state.data_change
        adds = (
            with_vector(add_action_of(file, data_change=data_change), vector, rows.row_count)
            for (file, rows), vector in zip(waiting, vectors, strict=True)
        )
        self.parts.append(RemovedRows(WrittenFiles(adds=tuple(adds))))

    # ------------------------------------------------------------ new files

    def _copy_later(self, file: ScanFile, rows: _RowSets) -> None:
        """Let the file wait, so that the rows of small files are copied together: a new file has a high cost that does not depend
        on its rows, above all in wide tables. A large file is copied alone, so that its rows are not mixed with others."""
        if self._waiting_for_copy and self._bytes_to_copy + file.size_bytes > _COPIED_TOGETHER_BYTES:
            self._write_copies()
        self._waiting_for_copy.append((file, rows))
        self._bytes_to_copy += file.size_bytes

    def _write_copies(self) -> None:
        """Write the remaining rows of the waiting files to new ones, and check that none is missing."""
        if not self._waiting_for_copy:
            return
        files, self._waiting_for_copy, self._bytes_to_copy = self._waiting_for_copy, [], 0
        batches = (batch for file, rows in files for batch in self._remaining_rows(file, rows))
        written = write_unchanged(self._rewrite.state, _with_row_ids(batches, self._rewrite), task=self._task)
        self.parts.append(RemovedRows(written, copied=written.row_count))
        if written.row_count != sum(rows.remaining_count for _, rows in files):
            raise _row_count_error(*files[0], f"{written.row_count} rows were written of it and of {len(files) - 1} other files")

    def _remaining_rows(self, file: ScanFile, rows: _RowSets) -> Iterator[pa.RecordBatch]:
        """The file's rows that are not removed. Raises RowCountMismatchError, after the last batch, for a file that has other
        rows than expected."""
        count = 0
        for batch in self._live_rows.read(replace(file, deletion_vector=inline_descriptor(rows.all_deleted))):
            count += batch.num_rows
            yield batch
        if count != rows.remaining_count:
            raise _row_count_error(file, rows, f"{count} rows were copied")

    def _write_images(self, file: ScanFile, positions: BitMap64, change_type: str) -> None:
        """Write the rows at these positions as change data. change_type: delete or update_preimage."""
        if not positions:
            return
        count, selected_file = 0, replace(file, selection=inline_descriptor(positions))
        for conformed in unchanged_batches(self._changed_rows.read(selected_file)):
            self._image_writers[change_type].add(conformed)
            count += conformed.batch.num_rows
        if count != len(positions):
            raise RowCountMismatchError(
                f"{len(positions)} rows of data file {file.path} are removed, and {count} of them were found for the change data "
                "feed. Nothing was committed.",
                path=file.path,
            )


def _read_row_sets(store: ObjectStore, touched: TouchedFile, repeats: Repeats) -> _RowSets:
    """The file's rows by what happens to them. Raises RowCountMismatchError for positions of rows that do not exist or are
    deleted already, and as _repeated_rows_error for a row that was passed more than once."""
    file = touched.file
    assert touched.deleted_count or touched.updated_count, f"nothing is to be done to {file.path}"
    deleted, updated = _read_union(store, touched.deleted), _read_union(store, touched.updated)
    counts = (touched.deleted_count, touched.updated_count)
    is_apart = deleted.isdisjoint(updated)
    has_no_repeats = is_apart and counts == (len(deleted), len(updated))
    # Each updated row was passed once; deleted rows may have been passed more often.
    repeats_only_deletes = is_apart and touched.updated_count == len(updated)
    if not has_no_repeats and not (repeats is Repeats.IGNORED and repeats_only_deletes):
        raise _repeated_rows_error(file, sum(counts), len(deleted | updated), repeats)
    deleted_before = BitMap64() if file.deletion_vector is None else read_deletion_vector(store, file.deletion_vector)
    row_count = read_row_count(store, file.path, file.size_bytes)
    rows = _RowSets(row_count, _drop_positions_after_end(deleted_before, row_count), deleted, updated)
    removed_rows = deleted | updated
    if not removed_rows.isdisjoint(deleted_before) or removed_rows.max() >= row_count:
        raise _row_count_error(file, rows, "some of the rows to delete do not exist, or are deleted already")
    return rows


def _drop_positions_after_end(vector: BitMap64, row_count: int) -> BitMap64:
    """The vector without positions after the file's last row. Such vectors exist, and readers ignore these positions."""
    return vector & BitMap64(range(row_count))


def _read_union(store: ObjectStore, sets: tuple[DeletionVectorDescriptor, ...]) -> BitMap64:
    """The positions that one of the sets contains."""
    positions = BitMap64()
    for descriptor in sets:
        positions |= read_deletion_vector(store, descriptor)
    return positions


def add_action_of(file: ScanFile, *, data_change: bool = True) -> AddFile:
    """The action that adds a file of a scan again, unchanged, with everything that the log says about it: the scan must have the
    option keep_all. data_change: False if the table's rows stay the same. Protocol: Add File and Remove File.
    """
    return AddFile(
        path=file.path,
        path_text=file.path_text,
        partition_values=dict(file.partition_values),
        size_bytes=file.size_bytes,
        modification_time_ms=file.modification_time_ms,
        data_change=data_change,
        stats=file.stats,
        tags=file.tags,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
        clustering_provider=file.clustering_provider,
    )


def with_vector(add: AddFile, vector: DeletionVectorDescriptor, row_count: int) -> AddFile:
    """The same file with another deletion vector. row_count: the rows of the Parquet file, with the deleted ones."""
    return replace(add, stats=_stats_with_wide_bounds(add.stats, row_count), deletion_vector=vector)


def _stats_with_wide_bounds(stats: str | None, row_count: int) -> str:
    """The file's statistics, marked as wide bounds: after a deletion no row may have the least or greatest value any more.
    row_count: becomes numRecords, which includes the deleted rows.
    Protocol: Per-file Statistics; Writer Requirement for Deletion Vectors.
    """
    try:
        parsed_stats = orjson.loads(stats or "{}")
    # Statistics that cannot be read are replaced.
    except orjson.JSONDecodeError:
        parsed_stats = {}
    file_stats: dict[str, Any] = parsed_stats if isinstance(parsed_stats, dict) else {}
    return orjson.dumps({**file_stats, "numRecords": row_count, "tightBounds": False}).decode()


def _row_count_error(file: ScanFile, rows: _RowSets, what: str) -> RowCountMismatchError:
    """The error for a file whose rows do not add up. what: the fact that contradicts the counts, as the end of a sentence."""
    return RowCountMismatchError(
        f"The rows of data file {file.path} do not add up: of {rows.row_count} rows {len(rows.deleted_before)} were deleted "
        f"before, {len(rows.deleted)} are to be deleted and {len(rows.updated)} updated, and {what}. Nothing was committed. "
        "The file has changed since it was written, or this is an error in pydelta: please report it.",
        path=file.path,
        rows=rows.row_count,
    )


def _repeated_rows_error(file: ScanFile, count: int, distinct: int, repeats: Repeats) -> DeltaError:
    """The error for rows that were passed more than once: a bug, or, in a MERGE, several source rows that match one row. count:
    the number of passed rows. distinct: the number of different rows among them. repeats: what repeats mean."""
    if repeats is Repeats.FORBIDDEN:
        return RowCountMismatchError(
            f"{count} rows of data file {file.path} were to be changed, but these are {distinct} different rows. Nothing was "
            "committed. This is an error in pydelta: please report it.",
            path=file.path,
        )
    return multiple_matches(f"{count} changes were to be made to {distinct} rows of data file {file.path}")


def multiple_matches(matches: str) -> UnsupportedOperationError:
    """The error for rows of the table that several rows of a MERGE's source change. matches: describes the rows that several rows
    of the source match."""
    return UnsupportedOperationError(
        "Cannot perform Merge as multiple source rows matched and attempted to modify the same target row in the Delta table in "
        f"possibly conflicting ways: {matches}. Nothing was committed. Make the source have one row at most for each key.",
        error_class="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        sql_state="21506",
    )
