"""Finds faults of a table's log: missing commits, checkpoints, version checksums, `_last_checkpoint`.

    check = LogCheck(store)
    check.find_faults()          # rows of FAULT_SCHEMA (file_check.py)
    check.snapshot          # the newest version by the log alone; None if it cannot be rebuilt

Checkpoints are read and compared with the version checksum. If the two contradict each other, the log before the checkpoint
decides which is right, if it still exists; else neither is changed. If only the newest checksum contradicts the log, the checksum
may be right: a repair rewrites it only if the loss of rows is allowed.
Protocol: Delta Log Entries; Checkpoints; Version Checksum File; Last Checkpoint File.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc

from delta_py.checkpoint.checkpoint_proof import fault_by_log, fault_of
from delta_py.errors import CorruptTableError, StorageError
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.checksum import VersionChecksum, damage_of, read_checksum
from delta_py.log.commit_reader import CommitReader
from delta_py.log.coordination import check_newest
from delta_py.log.last_checkpoint import LAST_CHECKPOINT_PATH, read_last_checkpoint
from delta_py.log.segment import Checkpoint, LogFile, list_log, load_segment
from delta_py.protocol.paths import LOG_DIRECTORY, checksum_file_name, commit_file_name, parse_log_name
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore

COMMIT, CHECKPOINT, CHECKSUM, LAST_CHECKPOINT, COMPACTION = "commit", "checkpoint", "checksum", "lastCheckpoint", "compaction"
_log = logging.getLogger("delta_py")
# The ends of the reasons in faults, which say what a repair does.
_MOST_HINT_BYTES = 1024 * 1024  # the file has a few hundred
_CAN_BE_REBUILT = "the log before it exists, and a repair sets it aside and writes a new one"
_ONLY_COPY = "the log before it proves nothing, so it may be the only copy of what it holds, and stays: restore it from a backup"
_BY_LOG = "The log before it agrees with the checkpoint, and a repair rewrites the checksum."


class LogCheck:
    """One check of a log. `find_faults` finds the faults, and fills the attributes that say what a repair may do: set aside the
    checkpoints in `broken_checkpoints`, the parts of the unfinished checkpoints of `incomplete_versions`, and the compactions at
    the paths `wrong_compactions`; rewrite the version checksums of `wrong_checksums`; and rewrite `_last_checkpoint` if
    `has_wrong_hint`. has_doubts: files of the log contradict each other, and it is unknown which is right; then a repair writes
    no new checkpoint.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store, self.listing = store, list_log(store, 0)
        self.snapshot: Snapshot | None = None
        self.broken_checkpoints: list[Checkpoint] = []
        self.incomplete_versions: list[int] = []
        self.wrong_checksums: list[int] = []
        self.wrong_compactions: list[str] = []
        self.has_wrong_hint = self.has_doubts = False
        self._proven: set[int] = set()  # versions of the checkpoints that a checksum or the log has confirmed
        self._kept_faulty_versions: set[int] = set()  # versions of the faulty checkpoints that a repair leaves in place

    def find_faults(self) -> list[dict[str, Any]]:
        """Read the log and find its faults, as rows of FAULT_SCHEMA. Call it once. Raises TableNotFoundError,
        UnsupportedTableFeatureError; OSError if the log cannot be read."""
        return [
            *self._find_checkpoint_faults(),
            *self._find_commit_faults(),
            *self._find_state_faults(),
            *self._find_hint_faults(),
        ]

    # ------------------------------------------------------------ commits

    def _find_commit_faults(self) -> Iterator[dict[str, Any]]:
        """Faults for gaps in the commits, and for commits of 0 bytes. Versions after a gap can be read from the next checkpoint
        on.
        """
        listing = self.listing
        checkpoints = [checkpoint.version for checkpoint in listing.checkpoints if checkpoint not in self.broken_checkpoints]
        for previous, following in pairwise(sorted(listing.commits)):
            if following == previous + 1:
                continue
            first = min((version for version in checkpoints if version >= following - 1), default=None)
            until = f"all versions from {previous + 1} on"
            if first is not None:
                until = f"versions {previous + 1} to {max(first, following) - 1}"
            yield _fault_row(
                COMMIT,
                f"{LOG_DIRECTORY}/{commit_file_name(previous + 1)}",
                previous + 1,
                f"the commits {previous + 1} to {following - 1} are missing: {until} cannot be read. Restore them from a backup",
            )
        for version, file in sorted(listing.commits.items()):
            if not file.size_bytes:
                why = "it has 0 bytes: what it did is lost, if it did anything. Restore it from a backup"
                yield _fault_row(COMMIT, file.path, version, why, size=0)

    def _find_state_faults(self) -> Iterator[dict[str, Any]]:
        """Rebuild the newest version, and yield the faults of its last commit, its compactions and its checksum."""
        try:
            self.snapshot = self.state_at(None)
            check_newest(self.store, self.snapshot.version)
        except CorruptTableError as error:
            self.snapshot = None
            path = str(error.message_parameters.get("path", LOG_DIRECTORY))
            yield _fault_row(COMMIT, path, None, f"the newest version cannot be rebuilt: {error.message}")
            return
        last_commit, version = self.snapshot.segment.last_commit, self.snapshot.version
        try:
            CommitReader(self.store, uses_cache=False).check_whole(last_commit, each_line=True)
        except CorruptTableError as error:  # of a version that a checkpoint holds
            yield _fault_row(
                COMMIT, last_commit.path, version, f"no writer follows it: {error.message}", size=last_commit.size_bytes
            )
        yield from self._find_compaction_faults(self.snapshot)
        if version not in self.wrong_checksums and self.snapshot.segment.last_commit.size_bytes:
            yield from self._find_checksum_faults(self.snapshot, self.listing.checksums.get(version))

    def state_at(self, version: int | None, without: Checkpoint | None = None) -> Snapshot:
        """Load a version (None: the newest) without using its checksum, compactions, the broken checkpoints, and the checkpoint
        `without`. Reads the version's whole list of files. Raises CorruptTableError if the version cannot be rebuilt like this.
        """
        unusable = {file.path for broken_checkpoint in self.broken_checkpoints for file in broken_checkpoint.files}
        unusable |= set() if without is None else {file.path for file in without.files}
        segment = load_segment(self.store, version, unusable=frozenset(unusable))
        snapshot = Snapshot.of_segment(self.store, replace(segment, checksum=None, compactions=()))
        _ = snapshot.num_files  # counting reads the whole list of files, so damage in the log raises here
        return snapshot

    def _find_compaction_faults(self, snapshot: Snapshot) -> Iterator[dict[str, Any]]:
        """Compare each compaction that the newest version is read from with the commits that it replaces."""
        segment, expected = load_segment(self.store), _count_files_and_bytes(snapshot)
        file = self.listing.checksums.get(snapshot.version)
        checksum = None if file is None else read_checksum(self.store, file)
        for compaction in segment.compactions:
            with_compaction = replace(segment, checksum=None, compactions=(compaction,), checkpoint=snapshot.segment.checkpoint)
            try:
                if _count_files_and_bytes(Snapshot.of_segment(self.store, with_compaction)) == expected:
                    continue
            except CorruptTableError as error:
                _log.debug("%s cannot be read: %s", compaction.path, error.message)
            can_repair = checksum is not None and _find_difference(snapshot, checksum) is None
            if can_repair:
                self.wrong_compactions.append(compaction.path)
            conclusion = "which of them is right is not known"
            if can_repair:
                conclusion = "these agree with the version checksum, and a repair puts it aside"
            why = f"it does not say what the commits say that it stands for; {conclusion}"
            yield _fault_row(COMPACTION, compaction.path, compaction.version, why, can_repair=can_repair)

    # ------------------------------------------------------------ checksums

    def _find_checksum_faults(self, snapshot: Snapshot, file: LogFile | None) -> Iterator[dict[str, Any]]:
        """The fault of the version's checksum, if it has one. file: None if the version has no checksum.

        A damaged checksum is rewritten. A sound one that contradicts the log may be right: then commits have lost rows, and their
        number is unknown.
        """
        version = snapshot.version
        path = f"{LOG_DIRECTORY}/{checksum_file_name(version)}"
        why, is_sound = None, False
        if file is None:
            if self.listing.checksums:  # else no writer writes checksums to this table
                why = "the newest version has none, as versions before have"
        elif (why := damage_of(self.store, file)) is None and (checksum := read_checksum(self.store, file)) is not None:
            why, is_sound = _find_difference(snapshot, checksum), True
        if why is None:
            return
        if is_sound and not self._can_prove_faults(snapshot):
            self.has_doubts = True
            yield _fault_row(CHECKSUM, path, version, f"{why}; which of the two is right is not known, and nothing is touched")
            return
        self.wrong_checksums.append(version)
        why = f"{why}; a repair rewrites it" + (", and gives up what commits may have lost" if is_sound else "")
        yield _fault_row(CHECKSUM, path, version, why, can_repair=True, rows_lost=None if is_sound else 0)

    # ------------------------------------------------------------ checkpoints

    def _find_checkpoint_faults(self) -> Iterator[dict[str, Any]]:
        """Faults of the checkpoints, from old to new: a newer one is compared with older ones that are already checked."""
        newest = self.listing.checkpoints[0] if self.listing.checkpoints else None
        for checkpoint in reversed(self.listing.checkpoints):
            yield from self._check_checkpoint(checkpoint, is_newest=checkpoint is newest)
        for version, part_count, count in self.listing.incomplete:
            path = f"{LOG_DIRECTORY}/{version:020d}.checkpoint"
            can_repair = self._rebuild_if_possible(version) is not None
            if can_repair:
                self.incomplete_versions.append(version)
            why = f"it has {part_count} of {count} parts; {_CAN_BE_REBUILT if can_repair else _ONLY_COPY}"
            yield _fault_row(CHECKPOINT, path, version, why, can_repair=can_repair)

    def _check_checkpoint(self, checkpoint: Checkpoint, *, is_newest: bool) -> Iterator[dict[str, Any]]:
        """Faults of one checkpoint, or of the version checksum that contradicts it. The newest checkpoint is compared with the
        log before it even if its checksum agrees with it. Two of checkpoint, checksum and log must agree to prove the third
        wrong.
        """
        version = checkpoint.version
        file = self.listing.checksums.get(checkpoint.version)
        checksum = None if file is None else read_checksum(self.store, file)
        # fault_of_record: the checkpoint's fault by the version checksum. Without a checksum, the newest checkpoint is compared
        # with _last_checkpoint or the log, and of an older one only its own content is checked. fault_of_log: the checkpoint's
        # fault by the log before it. rebuilt: the version as it is loaded without this checkpoint.
        fault_of_log, rebuilt = None, None
        try:  # the clock stands still, so that no comparison has a time limit
            if checksum is not None or is_newest:
                fault_of_record = fault_of(self.store, checkpoint, self.listing, clock=lambda: 0.0)
            else:
                fault_of_record = _find_missing_actions(self.store, checkpoint)
            if is_newest or fault_of_record is not None:
                rebuilt = self._rebuild_if_possible(version, checkpoint)
            if rebuilt is not None and self._can_prove_faults(rebuilt):
                # None: not compared. Empty: the checkpoint agrees with the log.
                fault_of_log = fault_by_log(self.store, checkpoint, self.listing, clock=lambda: 0.0) or ""
        except CorruptTableError as error:
            yield self._record_broken_checkpoint(checkpoint, error.message, can_repair=True)
            return
        if fault_of_log:
            is_confirmed = rebuilt is not None and checksum is not None and _find_difference(rebuilt, checksum) is None
            yield self._record_broken_checkpoint(checkpoint, fault_of_log, can_repair=is_confirmed)
        elif fault_of_record is not None and fault_of_log is None:  # the log before cannot confirm the fault
            yield self._record_broken_checkpoint(checkpoint, fault_of_record, can_repair=False)
        elif checksum is not None or fault_of_log is not None:
            self._proven.add(version)
            if fault_of_record is not None and checksum is not None:  # checkpoint and log agree, so the checksum is wrong
                self.wrong_checksums.append(version)
                yield _fault_row(CHECKSUM, checksum.path, version, f"{fault_of_record} {_BY_LOG}", can_repair=True)

    def _can_prove_faults(self, rebuilt: Snapshot | None) -> bool:
        """Whether a version that was rebuilt from the log can prove a file of the log that contradicts it wrong. It can if it was
        rebuilt from commits alone, or from an older checkpoint that was proven right.
        """
        if rebuilt is None:
            return False
        base = rebuilt.segment.checkpoint
        return base is None or base.version in self._proven

    def _record_broken_checkpoint(self, checkpoint: Checkpoint, why: str, *, can_repair: bool) -> dict[str, Any]:
        """Note a faulty checkpoint for the repair, and return its fault. can_repair: whether the checkpoint is proven wrong. A
        checkpoint without which its version cannot be rebuilt is never repaired: it may be the only copy."""
        path = checkpoint.files[0].path
        size = sum(file.size_bytes for file in checkpoint.files)
        if can_repair and self._rebuild_if_possible(checkpoint.version, checkpoint) is not None:
            self.broken_checkpoints.append(checkpoint)
            return _fault_row(CHECKPOINT, path, checkpoint.version, f"{why}; {_CAN_BE_REBUILT}", can_repair=True, size=size)
        self._kept_faulty_versions.add(checkpoint.version)
        self.has_doubts = True
        return _fault_row(CHECKPOINT, path, checkpoint.version, f"{why}; {_ONLY_COPY}", size=size)

    def _rebuild_if_possible(self, version: int, without: Checkpoint | None = None) -> Snapshot | None:
        """As state_at; None if the version cannot be rebuilt like this."""
        try:
            return self.state_at(version, without)
        except CorruptTableError:
            return None

    # ------------------------------------------------------------ _last_checkpoint

    def _find_hint_faults(self) -> Iterator[dict[str, Any]]:
        """The fault of _last_checkpoint, if it has one. This file is a hint for readers: it says which checkpoint is the
        newest."""
        # read_last_checkpoint returns None for a missing, an unreadable and a damaged file. This read tells them apart.
        try:
            size = len(self.store.read_range(LAST_CHECKPOINT_PATH, 0, _MOST_HINT_BYTES))
        except FileNotFoundError:
            return
        except StorageError as error:
            yield _fault_row(LAST_CHECKPOINT, LAST_CHECKPOINT_PATH, None, f"it cannot be read: {error.message}")
            return
        hint = read_last_checkpoint(self.store)
        why = None
        # A repair sets the broken checkpoints aside.
        versions = {checkpoint.version for checkpoint in self.listing.checkpoints if checkpoint not in self.broken_checkpoints}
        if hint is None:
            why = "it is damaged"
        elif hint.version not in versions:
            why = f"it points at version {hint.version}, of which there is no checkpoint that can be read"
        elif hint.file_count is not None and hint.version not in self._kept_faulty_versions:
            # The count of a faulty checkpoint that stays in place would prove nothing.
            file_count = _file_count(self.store, next(c for c in self.listing.checkpoints if c.version == hint.version))
            if file_count not in (None, hint.file_count):
                why = f"it says {hint.file_count} files, but the checkpoint of version {hint.version} has {file_count}"
        if why is not None:
            self.has_wrong_hint = True
            version = None if hint is None else hint.version
            what = f"{why}; a repair rewrites it"
            yield _fault_row(LAST_CHECKPOINT, LAST_CHECKPOINT_PATH, version, what, can_repair=True, size=size)


def list_incomplete_parts(store: ObjectStore, version: int) -> list[str]:
    """The paths of the existing parts of a version's incomplete multi-part checkpoints."""
    complete_paths = {file.path for checkpoint in list_log(store, version, version).checkpoints for file in checkpoint.files}
    paths = []
    for info in store.list_from(LOG_DIRECTORY, f"{version:020d}.checkpoint."):
        name = parse_log_name(info.path.rpartition("/")[2])
        if name is None:  # such as one that was set aside
            continue
        if name.version != version:  # the listing is sorted: only later versions follow
            break
        if name.part is not None and info.path not in complete_paths:
            paths.append(info.path)
    return paths


def _fault_row(
    kind: str,
    path: str,
    version: int | None,
    reason: str,
    *,
    can_repair: bool = False,
    size: int | None = None,
    rows_lost: int | None = 0,
) -> dict[str, Any]:
    """A row of FAULT_SCHEMA for a fault of the log. rows_lost: None if the number of rows that a repair loses is unknown."""
    row = {"kind": kind, "path": path, "version": version, "size": size}
    return {**row, "reason": reason, "can_repair": can_repair, "rows_lost": rows_lost}


def _find_missing_actions(store: ObjectStore, checkpoint: Checkpoint) -> str | None:
    """Read all parts and sidecars of a checkpoint. Returns its fault if it has no protocol or no metadata, otherwise None. Raises
    CorruptTableError if it cannot be read.
    """
    reader = CheckpointReader(replace(checkpoint, checksum=None, hint=None), CommitReader(store, uses_cache=False))
    reader.count_files()
    lacks = [action for action in ("protocol", "metaData") if not reader.rows(action)]
    return f"it holds no {' and no '.join(lacks)}" if lacks else None


def _file_count(store: ObjectStore, checkpoint: Checkpoint) -> int | None:
    """The number of files in a checkpoint; None if the checkpoint cannot be read."""
    try:
        commits = CommitReader(store, uses_cache=False)
        return CheckpointReader(replace(checkpoint, checksum=None, hint=None), commits).count_files()
    except CorruptTableError:
        return None


def _count_files_and_bytes(snapshot: Snapshot) -> tuple[int, int]:
    """The number of files, and their bytes."""
    sizes = [(batch.files.num_rows, pc.sum(batch.files["size"]).as_py() or 0) for batch in snapshot.file_batches()]
    return sum(count for count, _ in sizes), sum(size for _, size in sizes)


def _find_difference(snapshot: Snapshot, checksum: VersionChecksum) -> str | None:
    """The first difference between a checksum and the log, or None."""
    fault = checksum.state_fault(snapshot.protocol, snapshot.metadata)
    if fault is None:
        fault = checksum.files_fault(*_count_files_and_bytes(snapshot))
    if fault is not None:
        return fault.message
    if checksum.set_transactions is not None:
        versions = {item.app_id: item.version for item in checksum.set_transactions}
        for app_id, item in snapshot.set_transactions().items():
            if versions.get(app_id) != item.version:
                return f"it does not have the version {item.version} of the transactions of {app_id!r}"
    if checksum.domain_metadata is not None:
        domains = {item.domain: item for item in checksum.domain_metadata if not item.removed}
        if domains != snapshot.domain_metadata():
            return "it has other metadata domains than the log"
    return None
