"""The files of a table that its shallow clones reference, for VACUUM.

    clones = Clones.read(store, now_ms)
    found = clones.drop_referenced(found, is_lite=False)    # without the files that clones reference, which is logged
    found = clones.mark_referenced(found)                   # or all of them, with the clone in the reason

Notes next to the table's log name the possible clones (checkpoint/clone_notes.py). VACUUM reads each clone: its newest version,
and the files that it removed within its own retention time, or since a version on which its readers hold a lease. These name the
table's files by absolute paths. VACUUM also reads the clones of a clone, by the notes next to the clone's log. A clone that does
not exist or cannot be read is unknown: it may have been moved, or lie on a disk that is not mounted. It may reference any file
that existed when its note was written. A note ends when all files of its clone are the clone's own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.checkpoint.clone_notes import CloneNote, UnreadableNote, list_notes, read_note
from delta_py.checkpoint.leases import Leases
from delta_py.errors import DeltaError, TableNotFoundError, shown
from delta_py.log.commit_reader import CommitReader
from delta_py.log.history import history_of
from delta_py.log.segment import list_commits
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.intervals import DELETED_FILE_RETENTION, retention_ms
from delta_py.protocol.paths import are_plain
from delta_py.snapshot import Snapshot
from delta_py.storage.addresses import can_reach, root_pattern
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.vacuum.quarantine import are_quarantined, original_paths
from delta_py.vacuum.vacuum_candidates import removed_since
from delta_py.vacuum.vacuum_paths import NeededFiles, Paths, paths_of

_log = logging.getLogger("delta_py")

_DAY_MS = 24 * 3_600_000
_MOST_NOTES = 1_000  # the limit of one VACUUM, for the table and its clones
_MOST_DEPTH = 8  # clones of clones
_NOT_YET = "it is about to be made"  # the reason why a clone is unknown if its note is young and the clone has no commit yet
_OPERATIONS_WITH_NOTES = ("CLONE", "RESTORE")  # operations whose commits write notes before they commit


@dataclass(frozen=True, slots=True)
class KnownClone:
    """A clone that VACUUM could read. root: the location of the clone. needed: the table's files that it references, by their
    paths below the table's root."""

    root: str
    needed: NeededFiles


@dataclass(frozen=True, slots=True)
class UnknownClone:
    """A clone that VACUUM could not read. note: its path. written_ms: when the note was written; files that the clone may
    reference are not younger. root: the location of the clone according to the note, if known.
    """

    note: str
    written_ms: int
    root: str | None
    reason: str

    @property
    def where(self) -> str:
        return "" if self.root is None else f"at {shown(self.root)} "


@dataclass(frozen=True, slots=True)
class Clones:
    """The shallow clones of a table. table: its root. ended: paths of notes that are no longer needed."""

    table: str
    known: tuple[KnownClone, ...]
    unknown: tuple[UnknownClone, ...]
    ended: tuple[str, ...]

    @classmethod
    def read(cls, store: ObjectStore, now_ms: int) -> Clones:
        """Read the clones of a table. now_ms: since 1970. Raises OSError, StorageError if the notes cannot be listed."""
        registry = _CloneReader(store, now_ms)
        ended = [info.path for info in _newest_first(list_notes(store)) if not registry.is_note_needed(store, info)]
        return cls(store.root, tuple(registry.known), tuple(registry.unknown), tuple(ended))

    def drop_referenced(self, candidates: pa.Table, *, is_lite: bool) -> pa.Table:
        """Drop the files that a clone references or may reference. candidates: vacuum_candidates.FOUND_SCHEMA. is_lite: the times
        are removal times, so the age of the files is unknown.
        """
        table_paths = original_paths(candidates["path"])
        is_retained = pa.repeat(False, candidates.num_rows)
        for clone in self.known:
            is_referenced = clone.needed.contains(table_paths)
            is_retained = pc.or_(is_retained, is_referenced)
            self._warn_retained(is_referenced, f"stay, because the shallow clone at {shown(clone.root)} reads them")
        for unknown_clone in self.unknown:
            is_old = pc.fill_null(pc.less_equal(candidates["modification_time"], unknown_clone.written_ms), True).combine_chunks()
            is_quarantined = are_quarantined(candidates["path"]).combine_chunks()
            # The time of a file in quarantine is that of its move, which may be later than the note.
            may_be_referenced = pa.repeat(True, candidates.num_rows) if is_lite else pc.or_(is_old, is_quarantined)
            is_retained = pc.or_(is_retained, may_be_referenced)
            advice = f"may be read by it, and stay. If it is gone, delete {unknown_clone.note}"
            why = f"the shallow clone {unknown_clone.where}is not known: {unknown_clone.reason}. "
            self._warn_retained(may_be_referenced, advice, why)
        return candidates.filter(pc.invert(is_retained))

    def mark_referenced(self, candidates: pa.Table) -> pa.Table:
        """For a VACUUM that does not retain the files of clones: return the same files, and add to their reasons which clones
        read them."""
        reasons = candidates["reason"]
        for clone in self.known:
            is_referenced = clone.needed.contains(original_paths(candidates["path"]))
            text = f", and the shallow clone at {shown(clone.root)} reads it"
            reasons = pc.if_else(is_referenced, pc.binary_join_element_wise(reasons, text, ""), reasons)
            self._warn_retained(is_referenced, f"go, though the shallow clone at {shown(clone.root)} reads them")
        return candidates.set_column(3, "reason", reasons)

    def _warn_retained(self, is_meant: pa.Array, what: str, why: str = "") -> None:
        """Log how many candidates a clone references, if there are any. is_meant: for each candidate, whether the clone
        references it. what: the end of the message, which says what happens to these files. why: the beginning, a sentence about
        the clone."""
        if count := pc.sum(is_meant).as_py():
            _log.warning("%s: %s%d files that no version of this table needs %s", self.table, why, count, what)


def _newest_first(notes: list[ObjectInfo]) -> list[ObjectInfo]:
    return sorted(notes, key=lambda info: -info.modification_time_ms)


class _CloneReader:
    """Reads the clones of a table, and their clones. known, unknown: the clones that were read so far, and those that could not
    be read.

    _states: the state of each clone, by the clone's location and the clone's spelling of the table's root.
    """

    def __init__(self, store: ObjectStore, now_ms: int) -> None:
        self._store, self._now_ms = store, now_ms
        self._note_count = 0  # the number of notes that were read
        self._states: dict[tuple[str, str], _CloneState] = {}
        self.known: list[KnownClone] = []
        self.unknown: list[UnknownClone] = []

    def is_note_needed(self, note_store: ObjectStore, info: ObjectInfo, source: str | None = None, depth: int = 0) -> bool:
        """Read the clone that a note next to the log of `note_store` names, and add it to `known` or `unknown`. Returns whether
        the note must stay, because the clone references files of the table, or may do so. depth: 0 for a note of the table
        itself, 1 for a note of its clone, and so on. source: how clones of clones spell the table's root; None for a note of the
        table itself.
        """
        note = self._read_note(note_store, info, depth)
        if note is None:
            return False
        path = note.path if depth == 0 else f"{note_store.root}/{note.path}"
        if isinstance(note, UnreadableNote):
            self.unknown.append(UnknownClone(path, note.written_ms, None, note.reason))
            return True
        # A young note stays in any case: its clone may not be committed yet.
        state = self._find_state(note.clone, note.source if source is None else source, depth)
        is_young = note.written_ms + _DAY_MS > self._now_ms
        reason = state.failure
        if reason is None and is_young:
            reason = _why_not_ready(state, note.after)
        if reason is not None:
            self.unknown.append(UnknownClone(path, note.written_ms, note.clone, reason))
        return state.is_in_use or reason is not None or is_young

    def _read_note(self, note_store: ObjectStore, info: ObjectInfo, depth: int) -> CloneNote | UnreadableNote | None:
        """Read a note of a clone; None if it does not exist any more."""
        self._note_count += 1
        if self._note_count > _MOST_NOTES or depth > _MOST_DEPTH:
            return UnreadableNote(info.path, info.modification_time_ms, "there are too many notes to read them all")
        note = read_note(note_store, info)
        if isinstance(note, CloneNote) and not can_reach(self._store.root, note.clone):
            return UnreadableNote(info.path, info.modification_time_ms, "it names a place where VACUUM does not look")
        return note

    def _find_state(self, root: str, source: str, depth: int) -> _CloneState:
        """As _read_state, but each clone is read only once."""
        if (root, source) not in self._states:
            self._states[root, source] = _CloneState(-1)  # ends the recursion for a clone that is a clone of itself
            self._states[root, source] = self._read_state(root, source, depth)
        return self._states[root, source]

    def _read_state(self, root: str, source: str, depth: int) -> _CloneState:
        """Read the table at a clone's location. If it is a clone of this table, record the files that it needs. source: the
        clone's spelling of this table's root. depth: 0 for a clone of this table, 1 for a clone of that, and so on."""
        is_clone = False

        def foreign_files() -> Iterator[Paths]:
            """The paths outside of the clone's own directory. Notes in `is_clone` whether there are any."""
            nonlocal is_clone
            for paths in paths_of(self._retained_files(snapshot, leased_version)):
                foreign_paths = paths.filter(pc.invert(are_plain(paths)))
                is_clone = is_clone or len(foreign_paths) > 0
                yield foreign_paths

        try:
            store = open_store(root, self._store.options)
            leased_version = Leases.read(store, self._now_ms).version
            snapshot = Snapshot.load(store)  # after the leases: a RESTORE holds a lease until its commit is written
            # The clone may spell the table's root as VACUUM does, or as the note does.
            needed = NeededFiles(_paths_below([self._store.root, source], foreign_files()))
            notes = list_notes(store)
        except TableNotFoundError:
            return _CloneState(-1, failure="there is no table, as far as can be seen from here")
        except (DeltaError, OSError) as error:
            return _CloneState(-1, failure=f"it cannot be read: {error}")
        if needed:
            self.known.append(KnownClone(root, needed))
        has_clones = [self.is_note_needed(store, info, source, depth + 1) for info in _newest_first(notes)]
        return _CloneState(snapshot.version, is_clone or any(has_clones), store=store)

    def _retained_files(self, clone: Snapshot, leased_version: int | None) -> Iterator[pa.Table]:
        """The files that a VACUUM of the clone would retain. Raises LogFileNotFoundError if the clone's log does not show what
        readers need.
        """
        cutoff_ms = self._now_ms - retention_ms(clone.config.properties, DELETED_FILE_RETENTION)
        yield from (pa.Table.from_batches([batch.files]) for batch in clone.file_batches())
        tombstones = clone.tombstones()
        yield tombstones.filter(pc.fill_null(pc.greater_equal(tombstones["deletion_timestamp"], cutoff_ms), False))
        if leased_version is not None:
            yield from removed_since(clone.store, leased_version, clone.version)


@dataclass(frozen=True, slots=True)
class _CloneState:
    """The state of a clone, as its location shows it. version: the newest of the clone; -1 if the clone is unknown. is_in_use:
    whether the clone, or a clone of it, references files of other tables. These may be files of a table of which this table is
    itself a clone; a VACUUM of that table also reads this note. failure: why the clone is unknown. store: of the clone.
    """

    version: int
    is_in_use: bool = False
    failure: str | None = None
    store: ObjectStore | None = None


def _why_not_ready(state: _CloneState, after: int) -> str | None:
    """Why the clone may not have the files of a note yet. None if a CLONE or RESTORE was committed after version `after` of the
    clone: the note was written before that commit. Other commits may come before it.
    """
    if state.store is None:
        return _NOT_YET
    try:
        reader = CommitReader(state.store, uses_cache=False)
        for commit in list_commits(state.store, after + 1, state.version):
            if history_of(reader, [commit])[1]["operation"][0].as_py() in _OPERATIONS_WITH_NOTES:
                return None
    except (DeltaError, OSError) as error:
        return f"it cannot be read: {error}"
    return _NOT_YET


def _paths_below(roots: list[str], parts: Iterator[Paths]) -> Iterator[Paths]:
    """Select the absolute paths below the roots, as paths relative to them."""
    expressions = [root_pattern(root) for root in dict.fromkeys(roots)]
    for paths in parts:
        for expression in expressions:
            inside = paths.filter(pc.match_substring_regex(paths, expression))
            yield pc.replace_substring_regex(inside, expression, "")
