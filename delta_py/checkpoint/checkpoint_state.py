"""The file actions of a version as rows for a checkpoint, reconciled batch by batch.

The adds of the commits come first. Then come the adds of the older checkpoint that no newer action mentions, and then the
tombstones that are not expired. Memory holds a few batches, plus the keys and tombstones of the commits after the older
checkpoint.
Protocol: Action Reconciliation; Checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader, Part
from delta_py.log.checkpoint_content.checkpoint_rows import (
    Columns,
    RowShape,
    add_rows,
    adds_from_json,
    adds_of_part,
    key_columns,
    remove_rows,
    removes_from_json,
    removes_of_part,
)
from delta_py.log.checkpoint_content.parquet_part import ParquetPart
from delta_py.log.commit_reader import CommitReader
from delta_py.log.file_keys import NO_KEYS, DuplicateFilter, intersect_masks
from delta_py.log.reconciliation import SeenKeys, replay
from delta_py.log.segment import LogSegment

# The adds of small commits are combined until a batch has so many rows.
_JOINED_ROWS = 8_192


class FileState:
    """The file actions of one version, in the form of checkpoint rows.

    Call the methods once each, in this order: commit_adds, then checkpoint_adds (or is_untouched) for each part, then removes.
    commits: reads the segment's commits. checkpoint: the older checkpoint with which the segment begins; None if it has none.
    shape: the form of the add rows. oldest_tombstone_ms: removes at or before this time (ms since 1970), and removes without a
    time, are expired.
    Methods raise CheckpointUnreadableError and CorruptTableError.
    """

    def __init__(
        self,
        segment: LogSegment,
        commits: CommitReader,
        checkpoint: CheckpointReader | None,
        shape: RowShape,
        oldest_tombstone_ms: int,
    ) -> None:
        self._segment, self._commits, self._checkpoint = segment, commits, checkpoint
        self._shape, self._oldest_tombstone_ms = shape, oldest_tombstone_ms
        self._seen: set[str] = set()  # keys of all file actions of the commits that were read, newest commit first
        self._tombstones: list[Columns] = []
        self._seen_keys = SeenKeys(self._seen)
        self._duplicate_filter = DuplicateFilter(NO_KEYS if checkpoint is None else checkpoint.repeated_keys)

    # ------------------------------------------------------------ adds

    def commit_adds(self) -> Iterator[pa.StructArray]:
        """The live adds of the commits after the older checkpoint, newest commit first. This also collects the tombstones of
        these commits, and the keys by which the other methods tell which files of the older checkpoint are live."""
        waiting_adds: list[dict[str, Any]] = []
        for file, rows in replay(self._segment, self._commits, self._commits.file_rows):
            commit_keys: set[str] = set()
            for piece in rows:
                waiting_adds += self._not_overridden(piece.adds, piece.add_keys)
                self._collect_tombstones(removes_from_json(file, self._not_overridden(piece.removes, piece.remove_keys)))
                commit_keys.update(piece.add_keys, piece.remove_keys)
                if len(waiting_adds) >= _JOINED_ROWS:
                    yield self._to_add_rows(adds_from_json(file, waiting_adds))
                    waiting_adds = []
            self._seen |= commit_keys  # only now: the pieces of one commit do not undo each other (commit_reader.py)
        if waiting_adds:
            yield self._to_add_rows(adds_from_json(self._segment.last_commit, waiting_adds))
        self._seen_keys = SeenKeys(self._seen)

    def _not_overridden(self, bodies: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
        """The actions that no newer commit overrides. keys: of the actions (file_keys)."""
        return [body for body, key in zip(bodies, keys, strict=True) if key not in self._seen]

    @property
    def parts(self) -> list[Part]:
        """The files of the older checkpoint: top level and sidecars."""
        return [] if self._checkpoint is None else [*self._checkpoint.top_parts, *self._checkpoint.sidecars]

    @property
    def sidecar_times(self) -> dict[str, int]:
        """Creation times of the older checkpoint's sidecars, by path; ms since 1970."""
        if self._checkpoint is None:
            return {}
        rows = [(self._checkpoint.sidecar_of(row).path, row.get("modificationTime")) for row in self._checkpoint.rows("sidecar")]
        return {path: time for path, time in rows if isinstance(time, int)}

    def checkpoint_adds(self, part: Part) -> Iterator[pa.StructArray]:
        """The adds of one file of the older checkpoint that are still live and were not yielded before."""
        for columns in self._part_adds(part):
            live = self._live_columns(columns, self._duplicate_filter)
            if len(live["path"]):
                yield self._to_add_rows(live)

    def _part_adds(self, part: Part) -> Iterator[Columns]:
        """The adds of one file of the older checkpoint, live or not, batch by batch."""
        if isinstance(part, ParquetPart):
            yield from adds_of_part(part, self._shape)
            return
        for rows in part.file_rows():
            yield adds_from_json(part.file, rows.adds)

    def is_untouched(self, part: ParquetPart) -> bool:
        """Whether neither a newer action nor another row of the older checkpoint mentions a file that this part adds. Then all
        its adds are still live, and a new checkpoint can name the part again."""
        leaves = [name for name in ("path", "deletionVector") if part.has_leaf("add", name)]
        for batch in part.columns("add", leaves, 65_536):
            keys = key_columns(batch)
            unseen_mask = self._seen_keys.unseen_mask([keys])
            if self._duplicate_filter.has_repeated(keys) or (unseen_mask is not None and unseen_mask.false_count):
                return False
        return True

    def _live_columns(self, columns: Columns, duplicate_filter: DuplicateFilter | None = None) -> Columns:
        """The rows that no newer action mentions. With duplicate_filter, rows that were yielded before are left out too."""
        drops_duplicates = duplicate_filter is not None and duplicate_filter.is_needed
        if not len(columns["path"]) or not (self._seen or drops_duplicates):
            return columns  # all rows are live: do not compute their keys
        keys = key_columns(columns)
        keep_mask = None if duplicate_filter is None else duplicate_filter.keep_mask(keys)
        return _filter_columns(columns, intersect_masks(self._seen_keys.unseen_mask([keys]), keep_mask))

    def _to_add_rows(self, columns: Columns) -> pa.StructArray:
        """The adds as rows of the new checkpoint."""
        return add_rows(columns, self._shape)

    # ------------------------------------------------------------ removes

    def removes(self) -> Iterator[pa.StructArray]:
        """The tombstones of the commits, then those of the older checkpoint."""
        for columns in self._tombstones:
            yield remove_rows(columns)
        for part in self.parts:
            for columns in self._part_removes(part):
                live = self._live_columns(self._drop_expired(columns))
                if len(live["path"]):
                    yield remove_rows(live)

    def _part_removes(self, part: Part) -> Iterable[Columns]:
        """The removes of one file of the older checkpoint, live or not, batch by batch."""
        if isinstance(part, ParquetPart):
            return removes_of_part(part)
        return (removes_from_json(part.file, rows.removes) for rows in part.file_rows())

    def _collect_tombstones(self, columns: Columns) -> None:
        """Keep the removes of a commit in memory until `removes` yields them. Expired ones are dropped."""
        tombstones = self._drop_expired(columns)
        if len(tombstones["path"]):
            self._tombstones.append(tombstones)

    def _drop_expired(self, columns: Columns) -> Columns:
        """The removes that are not expired. A remove without a time is expired."""
        is_unexpired = pc.fill_null(pc.greater(columns["deletionTimestamp"], self._oldest_tombstone_ms), False)
        return _filter_columns(columns, None if is_unexpired.false_count == 0 else is_unexpired)


def _filter_columns(columns: Columns, mask: pa.BooleanArray | None) -> Columns:
    """The rows for which the mask is true. None keeps all rows."""
    return columns if mask is None else {name: array.filter(mask) for name, array in columns.items()}
