"""Builds segments for the files of a table that an index does not cover yet, and merges existing segments into larger ones.

    built = IndexBuild(snapshot, definition, limits).run()
    built.definition, built.new_paths         # the index to commit; new paths, to be deleted if it is not committed

It reads only the indexed column, of all rows, also deleted ones: RESTORE may bring them back. Threads read the files; a segment
is written when it has MAX_ROWS rows, so that memory holds one segment and the few files at work.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import SchemaMismatchError
from delta_py.index.definition import IndexDefinition, Segment
from delta_py.index.hashing import Hashes, hashes, value_kind
from delta_py.index.lookup import covered_positions, warn_once
from delta_py.index.segments import FILES_SCHEMA, MAX_ROWS, OpenSegment, SegmentBuilder, UnusableSegmentError, open_segment
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.column_mapping import logical_path, physical_name
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_groups import scan_files
from delta_py.scan.packing import cut_run
from delta_py.scan.planning import ScanOptions, make_state, plan_scan
from delta_py.scan.scan_state import ScanFile, ScanState
from delta_py.snapshot import Snapshot
from delta_py.types.schema import Path, StructField, StructType, find_path
from delta_py.write.data_files import delete_files

_THREADS = 4
# Files are read in batches of _BYTES_AT_ONCE, whose hashes are in memory. The size of each file counts as at least 1 MiB, and as
# at most 16 MiB: so a batch has 64 small files, or 4 large ones.
_BYTES_AT_ONCE, _FILE_BYTES = 64 << 20, (1 << 20, 16 << 20)


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """How much work one run does. most_bytes: how many bytes of data files it reads; None for all. small_rows, merge_count:
    segments with fewer than small_rows rows are merged if there are at least merge_count of them.
    """

    most_bytes: int | None = None
    small_rows: int = MAX_ROWS // 2
    merge_count: int = 2


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """The result of an IndexBuild, not yet committed. definition: the index with the new segments. new_segments: the segments
    that were written. replaced_segments: segments of the old index that the new ones replace, or that cover no file any more."""

    definition: IndexDefinition
    new_segments: tuple[Segment, ...] = ()
    replaced_segments: tuple[Segment, ...] = ()

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.new_segments or self.replaced_segments)

    @property
    def new_paths(self) -> list[str]:
        """The paths of the new segments."""
        return [segment.path for segment in self.new_segments]

    def add_to(self, current: IndexDefinition) -> IndexDefinition | None:
        """Add the new segments to the current index, which another writer has changed. None if they do not fit: the current index
        is for another column or kind of values, or lacks a segment that the new ones replace."""
        if (current.column, current.kind) != (self.definition.column, self.definition.kind):
            return None
        if not set(self.replaced_segments) <= set(current.segments):
            return None
        remaining = tuple(segment for segment in current.segments if segment not in self.replaced_segments)
        return current.with_segments((*remaining, *self.new_segments))


def find_indexed_column(config: TableConfig, definition: IndexDefinition) -> Path | None:
    """The logical path of the indexed column; None if the table does not have the column any more."""
    return logical_path(config.schema, definition.column, lambda f: physical_name(f, config.column_mapping_mode))


def is_usable(config: TableConfig, definition: IndexDefinition) -> bool:
    """Whether the table still has the indexed column, and its values are of the index's kind."""
    path = find_indexed_column(config, definition)
    return path is not None and value_kind(find_path(config.schema, path)) == definition.kind


def open_segments(snapshot: Snapshot, definition: IndexDefinition) -> Iterator[tuple[Segment, OpenSegment | None]]:
    """Open the segments. A segment that cannot be used gives None, with a warning."""
    for segment in definition.segments:
        try:
            yield segment, open_segment(snapshot.store, definition, segment)
        except UnusableSegmentError as error:
            warn_once(snapshot.table_root, f"index {definition.name}", str(error))
            yield segment, None


def files_without_vectors(snapshot: Snapshot) -> pa.Table:
    """All files of the version, as if they had no deletion vectors: an index covers deleted rows too."""
    files = plan_scan(snapshot, None, None, ScanOptions()).files
    place = files.schema.get_field_index("deletion_vector")
    return files.set_column(place, files.schema.field(place), pa.nulls(files.num_rows, files.schema.field(place).type))


def covered_mask(covered_files: pa.Table, files: pa.Table) -> pa.Array:
    """For each file, whether the index covers it, with the same size. covered_files: the files that it covers (FILES_SCHEMA)."""
    return covered_positions(files, covered_files)[1]


class IndexBuild:
    """One run that writes new segments for an index of a table. If `run` raises, which it does as read_files, it first deletes
    the segments that it has written."""

    def __init__(self, snapshot: Snapshot, definition: IndexDefinition, limits: BuildLimits) -> None:
        self._snapshot, self._definition, self._limits = snapshot, definition, limits
        self._builder = SegmentBuilder(definition)
        self._new_segments: list[Segment] = []

    def run(self) -> BuiltIndex:
        """Write the new segments, and return the index with them. The index is not committed."""
        table_files = files_without_vectors(self._snapshot)
        segments_with_footers = list(open_segments(self._snapshot, self._definition))
        try:
            merged_segments = self._merge_segments(table_files, segments_with_footers)
            replaced_segments = {
                segment for segment, opened_segment in segments_with_footers if opened_segment is None
            } | merged_segments
            covered_files = [
                opened_segment.files
                for segment, opened_segment in segments_with_footers
                if opened_segment is not None and segment not in merged_segments
            ]
            covered = pa.concat_tables([FILES_SCHEMA.empty_table(), *covered_files, *self._merged_files])
            self._index_files(self._within_byte_limit(table_files.filter(pc.invert(covered_mask(covered, table_files)))))
            self._write_segment()
        except Exception:
            # An interrupt stops the process at once, without these requests. `refresh` deletes such segments when they are a
            # day old.
            delete_files(self._snapshot.store, [segment.path for segment in self._new_segments])
            raise
        definition = self._definition
        segments = tuple(segment for segment in definition.segments if segment not in replaced_segments)
        return BuiltIndex(
            definition.with_segments((*segments, *self._new_segments)),
            tuple(self._new_segments),
            tuple(segment for segment in definition.segments if segment in replaced_segments),
        )

    # ------------------------------------------------------------ existing segments

    def _merge_segments(
        self, table_files: pa.Table, segments_with_footers: list[tuple[Segment, OpenSegment | None]]
    ) -> set[Segment]:
        """Rewrite the small segments if there are many, and the segments that mostly cover removed files. Returns the segments
        that are rewritten.

        `self._merged_files` gets the live files of these segments, whose hashes are not computed again.
        """
        self._merged_files: list[pa.Table] = []
        usable_segments = [
            (segment, opened_segment, covered_mask(table_files, opened_segment.files))
            for segment, opened_segment in segments_with_footers
            if opened_segment is not None
        ]
        small_segments = [segment for segment, *_ in usable_segments if segment.rows < self._limits.small_rows]
        covered_files = pa.concat_tables(
            [FILES_SCHEMA.empty_table(), *(opened_segment.files for _, opened_segment, _ in usable_segments)]
        )
        covered_count = pc.sum(covered_mask(covered_files, table_files)).as_py() or 0
        adds_segment = covered_count < table_files.num_rows  # then `run` will add a segment for the files that are not covered
        segments_to_merge = (
            set(small_segments) if small_segments and len(small_segments) + adds_segment >= self._limits.merge_count else set()
        )
        segments_to_merge |= {
            segment for segment, _, is_live in usable_segments if 2 * (pc.sum(is_live).as_py() or 0) < segment.files
        }
        segments_to_merge |= {segment for segment, *_ in usable_segments if segment.files == 0}
        for segment, opened_segment, is_live in usable_segments:
            if segment not in segments_to_merge or not (pc.sum(is_live).as_py() or 0):
                continue
            try:
                segment_hashes, numbers = opened_segment.read_rows()
            except UnusableSegmentError:  # `run` reads the data files of this segment again
                continue
            is_live_file = is_live.to_numpy(zero_copy_only=False)
            new_numbers = np.cumsum(is_live_file) - 1  # by the old number of a live file: its position among the live files
            is_live_row = is_live_file[numbers]
            files = opened_segment.files.filter(is_live)
            self._add_rows(files, segment_hashes[is_live_row], new_numbers[numbers[is_live_row]])
            self._merged_files.append(files)
        return segments_to_merge

    # ------------------------------------------------------------ new files

    def _within_byte_limit(self, files: pa.Table) -> pa.Table:
        """The first of the files, up to the limit most_bytes; at least one file, so that each run makes progress."""
        if self._limits.most_bytes is None or not files.num_rows:
            return files
        ends = np.cumsum(files["size"].to_numpy())
        return files.slice(0, max(1, int(np.searchsorted(ends, self._limits.most_bytes, side="right"))))

    def _index_files(self, files: pa.Table) -> None:
        """Read the indexed column of the files in threads, and add its hashes to segments."""
        if not files.num_rows:
            return
        state, path = self._column_scan()
        with ThreadPoolExecutor(_THREADS, "delta_py-index") as pool:
            ends = np.cumsum(np.clip(files["size"].to_numpy(), _FILE_BYTES[0], _FILE_BYTES[1]))
            for start, stop in cut_run(ends, 0, files.num_rows, _BYTES_AT_ONCE):
                files_at_once = files.slice(start, stop - start)
                scanned_files = [file for batch in files_at_once.to_batches() for file in scan_files(batch)]
                file_hashes = list(pool.map(lambda file: self._hashes_of(state, path, file), scanned_files))
                numbers = np.repeat(np.arange(len(file_hashes)), [len(hashes_of_file) for hashes_of_file in file_hashes])
                self._add_rows(files_at_once.select(FILES_SCHEMA.names), np.concatenate(file_hashes), numbers)

    def _add_rows(self, files: pa.Table, values: Hashes, numbers: Any) -> None:
        """Add hashes to the current segment, and write it if it is large enough. numbers: for each hash, the position of its
        file."""
        self._builder.add(files.cast(FILES_SCHEMA), values, numbers)
        if self._builder.rows >= MAX_ROWS:
            self._write_segment()

    def _write_segment(self) -> None:
        """Write the current segment, if it covers any file, and begin the next one."""
        if not self._builder.file_count:
            return
        data, segment = self._builder.finish_segment()
        self._new_segments.append(segment)  # before the write: if its reply is lost, the segment may exist and must be deleted
        self._snapshot.store.put_if_absent(segment.path, data)

    def _column_scan(self) -> tuple[ScanState, Path]:
        """The scan state of the column, and the names of the nested fields below the top-level column."""
        config = self._snapshot.config
        path = find_indexed_column(config, self._definition)
        if path is None:
            raise SchemaMismatchError(
                f"The column {'.'.join(self._definition.column)} of the index {self._definition.name} is not in the table any "
                "more. Nothing was changed. Drop the index.",
                error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                sql_state="42703",
                column=".".join(self._definition.column),
            )
        path_fields = find_path(config.schema, path)
        column = path_fields[-1]
        for parent in reversed(path_fields[:-1]):
            column = StructField(parent.name, StructType((column,)), parent.nullable, parent.metadata)
        options = ScanOptions(verify_checksums=True)  # the index stores what is read here
        return make_state(config, self._snapshot.store, StructType((column,)), None, options), path[1:]

    def _hashes_of(self, state: ScanState, nested_path: Path, file: ScanFile) -> Hashes:
        """The distinct hashes of a file's values, also of those in deleted rows. nested_path: the names below the top-level
        column; empty if the top-level column is the indexed one."""
        hashes_by_batch: list[Hashes] = []
        for batch in read_files(state, [replace(file, deletion_vector=None)]):
            values = pc.struct_field(batch.column(0), list(nested_path)) if nested_path else batch.column(0)
            hashes_by_batch.append(np.unique(hashes(values.drop_null(), self._definition.kind)))
        return np.unique(np.concatenate(hashes_by_batch)) if hashes_by_batch else np.zeros(0, np.uint64)
