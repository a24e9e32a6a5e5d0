"""What shallow clones need of a table, as VACUUM asks it.

    clones = Clones.read(store, now_ms)
    found = clones.spared(found, is_lite=False)    # without the files that clones need, which is logged
    found = clones.marked(found)                   # or all of them, with the clone in the reason

Notes beside the table's log say which clones there may be (checkpoint/clone_notes.py). Each is asked: its newest version, and
what it has removed within its own retention time, or since a version of which its readers hold a lease, name the table's files by
absolute paths. So are the clones of a clone, by the notes beside its log. A clone that is not there, or that cannot be read, is
unknown and may need whatever there was when its note was written: it may have been moved, or lie on a disk that is not here now.
A note ends when its clone has files of its own alone.
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
from delta_py.storage.addresses import below, in_reach
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.vacuum.quarantine import are_quarantined, places_of
from delta_py.vacuum.vacuum_candidates import removed_since
from delta_py.vacuum.vacuum_paths import NeededFiles, Paths, paths_of

_log = logging.getLogger("delta_py")

_DAY_MS = 24 * 3_600_000
_MOST_NOTES = 1_000  # that one VACUUM reads, of the table and of its clones
_MOST_DEPTH = 8  # clones of clones
_NOT_YET = "it is about to be made"
_BRING_FILES = ("CLONE", "RESTORE")  # operations of commits that leave notes before


@dataclass(frozen=True, slots=True)
class KnownClone:
    """root: where it lies. needed: which of the table's files it needs, by their paths below the table's root."""

    root: str
    needed: NeededFiles


@dataclass(frozen=True, slots=True)
class UnknownClone:
    """note: its path. written_ms: when that was written; a file that the clone may need is not younger. root: where the clone is
    said to lie, if that is known."""

    note: str
    written_ms: int
    root: str | None
    reason: str

    @property
    def where(self) -> str:
        return "" if self.root is None else f"at {shown(self.root)} "


@dataclass(frozen=True, slots=True)
class Clones:
    """table: its root. ended: paths of notes that mean nothing any more."""

    table: str
    known: tuple[KnownClone, ...]
    unknown: tuple[UnknownClone, ...]
    ended: tuple[str, ...]

    @classmethod
    def read(cls, store: ObjectStore, now_ms: int) -> Clones:
        """Those of a table. now_ms: since 1970. Raises OSError, StorageError where the notes cannot be listed."""
        asked = _Asked(store, now_ms)
        ended = [info.path for info in _newest_first(list_notes(store)) if not asked.is_of_use(store, info)]
        return cls(store.root, tuple(asked.known), tuple(asked.unknown), tuple(ended))

    def spared(self, found: pa.Table, *, is_lite: bool) -> pa.Table:
        """Files that may go, without those that a clone needs or may need. found: vacuum_candidates.FOUND_SCHEMA. is_lite: its
        times are when files were removed, so nobody knows how old they are."""
        places = places_of(found["path"])
        stays = pa.repeat(False, found.num_rows)
        for clone in self.known:
            holds = clone.needed.hold(places)
            stays = pc.or_(stays, holds)
            self._tell(holds, f"stay, because the shallow clone at {shown(clone.root)} reads them")
        for missing in self.unknown:
            is_old = pc.fill_null(pc.less_equal(found["modification_time"], missing.written_ms), True).combine_chunks()
            is_aside = are_quarantined(found["path"]).combine_chunks()
            may_hold = pa.repeat(True, found.num_rows) if is_lite else pc.or_(is_old, is_aside)
            stays = pc.or_(stays, may_hold)
            advice = f"may be read by it, and stay. If it is gone, delete {missing.note}"
            self._tell(may_hold, advice, f"the shallow clone {missing.where}is not known: {missing.reason}. ")
        return found.filter(pc.invert(stays))

    def marked(self, found: pa.Table) -> pa.Table:
        """The same files, and the clones that read them are in their reasons."""
        reasons = found["reason"]
        for clone in self.known:
            holds = clone.needed.hold(places_of(found["path"]))
            text = f", and the shallow clone at {shown(clone.root)} reads it"
            reasons = pc.if_else(holds, pc.binary_join_element_wise(reasons, text, ""), reasons)
            self._tell(holds, f"go, though the shallow clone at {shown(clone.root)} reads them")
        return found.set_column(3, "reason", reasons)

    def _tell(self, which: pa.Array, what: str, why: str = "") -> None:
        if count := pc.sum(which).as_py():
            _log.warning("%s: %s%d files that no version of this table needs %s", self.table, why, count, what)


def _newest_first(notes: list[ObjectInfo]) -> list[ObjectInfo]:
    return sorted(notes, key=lambda info: -info.modification_time_ms)


class _Asked:
    """The clones of a table that were asked so far, by where they lie and how they spell the table's root."""

    def __init__(self, store: ObjectStore, now_ms: int) -> None:
        self._store, self._now_ms = store, now_ms
        self._read = 0
        self._answers: dict[tuple[str, str], _Answer] = {}
        self.known: list[KnownClone] = []
        self.unknown: list[UnknownClone] = []

    def is_of_use(self, holder: ObjectStore, info: ObjectInfo, source: str | None = None, depth: int = 0) -> bool:
        """Whether a note beside the log of `holder` must stay: its clone needs files of the table, or may. source: how clones of
        clones spell the table's root; None for a note of the table itself."""
        note = self._note(holder, info, depth)
        if note is None:
            return False
        path = note.path if depth == 0 else f"{holder.root}/{note.path}"
        if isinstance(note, UnreadableNote):
            self.unknown.append(UnknownClone(path, note.written_ms, None, note.reason))
            return True
        answer = self._answer(note.clone, note.source if source is None else source, depth)
        is_young = note.written_ms + _DAY_MS > self._now_ms
        reason = answer.failure
        if reason is None and is_young:
            reason = _why_not_there(answer, note.after)
        if reason is not None:
            self.unknown.append(UnknownClone(path, note.written_ms, note.clone, reason))
        return answer.is_in_use or reason is not None or is_young

    def _note(self, holder: ObjectStore, info: ObjectInfo, depth: int) -> CloneNote | UnreadableNote | None:
        self._read += 1
        if self._read > _MOST_NOTES or depth > _MOST_DEPTH:
            return UnreadableNote(info.path, info.modification_time_ms, "there are too many notes to read them all")
        note = read_note(holder, info)
        if isinstance(note, CloneNote) and not in_reach(self._store.root, note.clone):
            return UnreadableNote(info.path, info.modification_time_ms, "it names a place where VACUUM does not look")
        return note

    def _answer(self, root: str, source: str, depth: int) -> _Answer:
        if (root, source) not in self._answers:
            self._answers[root, source] = _Answer(-1)  # of a clone that is a clone of itself
            self._answers[root, source] = self._ask(root, source, depth)
        return self._answers[root, source]

    def _ask(self, root: str, source: str, depth: int) -> _Answer:
        is_clone = False

        def of_others() -> Iterator[Paths]:
            nonlocal is_clone
            for paths in paths_of(self._tables(snapshot, leased)):
                others = paths.filter(pc.invert(are_plain(paths)))
                is_clone = is_clone or len(others) > 0
                yield others

        try:
            store = open_store(root, self._store.options)
            leased = Leases.read(store, self._now_ms).version
            snapshot = Snapshot.load(store)  # behind the leases: a RESTORE has its own until its commit is there
            needed = NeededFiles(_below([self._store.root, source], of_others()))
            notes = list_notes(store)
        except TableNotFoundError:
            return _Answer(-1, failure="there is no table, as far as can be seen from here")
        except (DeltaError, OSError) as error:
            return _Answer(-1, failure=f"it cannot be read: {error}")
        if needed:
            self.known.append(KnownClone(root, needed))
        has_clones = [self.is_of_use(store, info, source, depth + 1) for info in _newest_first(notes)]
        return _Answer(snapshot.version, is_clone or any(has_clones), store=store)

    def _tables(self, clone: Snapshot, leased: int | None) -> Iterator[pa.Table]:
        """What a VACUUM of the clone would keep. Raises LogFileNotFoundError where its log does not tell what readers need."""
        cutoff_ms = self._now_ms - retention_ms(clone.config.properties, DELETED_FILE_RETENTION)
        yield from (pa.Table.from_batches([batch.files]) for batch in clone.file_batches())
        tombstones = clone.tombstones()
        yield tombstones.filter(pc.fill_null(pc.greater_equal(tombstones["deletion_timestamp"], cutoff_ms), False))
        if leased is not None:
            yield from removed_since(clone.store, leased, clone.version)


@dataclass(frozen=True, slots=True)
class _Answer:
    """version: the newest of the clone. is_in_use: whether it, or a clone of it, needs files of other tables. These may be files
    of a table of which this one is a clone, whose VACUUM comes by here. failure: why nobody knows. store: of the clone."""

    version: int
    is_in_use: bool = False
    failure: str | None = None
    store: ObjectStore | None = None


def _why_not_there(answer: _Answer, after: int) -> str | None:
    """None if a commit after a version of the clone has brought the files of which a note tells; others may have come before."""
    if answer.store is None:
        return _NOT_YET
    try:
        reader = CommitReader(answer.store, kept=False)
        for commit in list_commits(answer.store, after + 1, answer.version):
            if history_of(reader, [commit])[1]["operation"][0].as_py() in _BRING_FILES:
                return None
    except (DeltaError, OSError) as error:
        return f"it cannot be read: {error}"
    return _NOT_YET


def _below(roots: list[str], parts: Iterator[Paths]) -> Iterator[Paths]:
    """Of absolute paths those below the roots, as paths below them."""
    expressions = [below(root) for root in dict.fromkeys(roots)]
    for paths in parts:
        for expression in expressions:
            inside = paths.filter(pc.match_substring_regex(paths, expression))
            yield pc.replace_substring_regex(inside, expression, "")
