"""Whether the log before a checkpoint may be given up, which was its only copy.

A checkpoint may be sound Parquet and lack files all the same, and once the commits before it are gone nobody can tell. So it is
compared with what else says what it holds: with the version checksum; where there is none, with `_last_checkpoint` if that speaks
of it; and else with the log before it. If that has no beginning any more, because a cleanup was broken off, then nothing that the
rest of it says may be missing.
Protocol: Metadata Cleanup; Action Reconciliation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.checkpoint.checkpoint_check import open_checkpoint
from delta_py.errors import CorruptTableError
from delta_py.log.checkpoint_files import CheckpointUnreadableError, StatsWanted
from delta_py.log.checkpoint_reader import CheckpointReader
from delta_py.log.checksum import VersionChecksum, read_checksum
from delta_py.log.commit_reader import CommitReader
from delta_py.log.file_keys import file_keys, path_of
from delta_py.log.reconciliation import (
    CheckpointFiles,
    SmallState,
    protocol_and_metadata,
    replay,
    transactions_and_domains,
)
from delta_py.log.segment import Checkpoint, Listing, LogSegment, load_segment, read_last_checkpoint
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_py.storage.store import ObjectStore

# How long the log before a checkpoint may be read: it may have very many commits, and the next cleanup may find a checksum.
COMPARE_SECONDS = 20.0
_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
_SMALL: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "protocol": Protocol.from_json,
    "metaData": Metadata.from_json,
    "txn": SetTransaction.from_json,
    "domainMetadata": DomainMetadata.from_json,
}


def fault_of(store: ObjectStore, checkpoint: Checkpoint, listing: Listing, *, clock: Callable[[], float]) -> str | None:
    """Why the log before the checkpoint may not be given up; None if it may be. listing: all of the log up to it. clock: seconds.

    All of the checkpoint is read, but for statistics. Raises CorruptTableError for one that cannot be read.
    """
    hint = read_last_checkpoint(store)
    known = replace(
        checkpoint,
        checksum=listing.checksums.get(checkpoint.version),
        hint=hint if hint is not None and hint.version == checkpoint.version else None,
    )
    reader = CheckpointReader(known, CommitReader(store, kept=False))
    held = _held(reader)
    if held.state.protocol is None or held.state.metadata is None:
        return "it holds no protocol or no metadata"
    checksum = None if known.checksum is None else read_checksum(store, known.checksum)
    if checksum is not None:
        return _fault_by_checksum(held, checksum)
    if known.hint is not None and known.hint.file_count is not None:
        return _unless_equal("files", known.hint.file_count, held.file_count)
    if known.hint is not None and known.hint.action_count is not None and reader.action_count is not None:
        return _unless_equal("actions", known.hint.action_count, reader.action_count)
    return _fault_by_log(store, reader, held.state, listing, clock)


def fault_by_log(store: ObjectStore, checkpoint: Checkpoint, listing: Listing, *, clock: Callable[[], float]) -> str | None:
    """What the checkpoint lacks, or holds too much, by the log before it alone, whatever is recorded beside it. As fault_of."""
    reader = CheckpointReader(replace(checkpoint, checksum=None, hint=None), CommitReader(store, kept=False))
    held = _held(reader)
    if held.state.protocol is None or held.state.metadata is None:
        return "it holds no protocol or no metadata"
    return _fault_by_log(store, reader, held.state, listing, clock)


def _unless_equal(what: str, recorded: int, found: int) -> str | None:
    return None if recorded == found else f"it holds {found} {what}, but _last_checkpoint says {recorded}"


@dataclass(frozen=True, slots=True)
class _Held:
    """What a checkpoint holds. file_count: one that is named twice counts twice."""

    file_count: int
    size_bytes: int
    state: SmallState


def _held(reader: CheckpointReader) -> _Held:
    file_count, size_bytes, state = 0, 0, SmallState()
    for raw in reader.files(StatsWanted()):
        file_count += raw.files.num_rows
        size_bytes += pc.sum(raw.files["size"]).as_py() or 0
    for name, parse in _SMALL.items():
        for row in reader.rows(name):
            state.apply_older(parse(row))
    return _Held(file_count, size_bytes, state)


# ---------------------------------------------------------------- what is recorded beside it


def _fault_by_checksum(held: _Held, checksum: VersionChecksum) -> str | None:
    assert held.state.protocol is not None and held.state.metadata is not None
    fault = checksum.files_fault(held.file_count, held.size_bytes)
    fault = fault or checksum.state_fault(held.state.protocol, held.state.metadata)
    if fault is not None:
        return fault.message
    transactions = {item.app_id: item for item in checksum.set_transactions or ()}
    domains = {item.domain: item for item in checksum.domain_metadata or () if not item.removed}
    return _fault_of_small(held.state, transactions, domains, f"the version checksum {checksum.path}")


# ---------------------------------------------------------------- the log before it


def _fault_by_log(
    store: ObjectStore, reader: CheckpointReader, state: SmallState, listing: Listing, clock: Callable[[], float]
) -> str | None:
    deadline, unusable = clock() + COMPARE_SECONDS, frozenset(file.path for file in reader.checkpoint.files)
    batches = [file_keys(pa.Table.from_batches([raw.files])) for raw in reader.files(StatsWanted())]
    held_keys = pa.chunked_array(batches, pa.large_string())
    if len(held_keys.unique()) < len(held_keys):
        return "it names files more than once"
    while True:
        before = _log_before(store, reader.checkpoint, listing, unusable)
        if before is None:
            return None
        segment, is_whole = before
        try:
            log = _Log(store, segment, is_whole, lambda: clock() > deadline)
            return log.fault_of_files(held_keys) or log.fault_of_state(state)
        except CheckpointUnreadableError:
            assert segment.checkpoint is not None, "no other checkpoint is read"
            unusable |= {file.path for file in segment.checkpoint.files}


def _log_before(
    store: ObjectStore, checkpoint: Checkpoint, listing: Listing, unusable: frozenset[str]
) -> tuple[LogSegment, bool] | None:
    """What the checkpoint's version is rebuilt from without it, and whether that is all; else the commits that are there, without
    a gap, up to it. None where its own commit is gone, and so nothing tells what it should hold."""
    try:
        segment = load_segment(store, checkpoint.version, unusable=unusable)
        return replace(segment, compactions=()), True  # the commits themselves are what is believed
    except CorruptTableError:
        first = checkpoint.version
        if first not in listing.commits:
            return None
        while first - 1 in listing.commits:
            first -= 1
        commits = tuple(listing.commits[version] for version in range(first, checkpoint.version + 1))
        return LogSegment(store.root, checkpoint.version, None, commits, commits[-1]), False


class _Log:
    """is_whole: it says all that the version holds. is_late: whether it is to be read no further."""

    def __init__(self, store: ObjectStore, segment: LogSegment, is_whole: bool, is_late: Callable[[], bool]) -> None:
        self._segment, self._is_whole, self._is_late = segment, is_whole, is_late
        self._commits = CommitReader(store, kept=False)
        older = segment.checkpoint
        self._older = None if older is None else open_checkpoint(store, older, self._commits)

    def fault_of_files(self, held_keys: pa.ChunkedArray) -> str | None:
        """Raises CheckpointUnreadableError when it begins with a checkpoint that cannot be read, CorruptTableError when a commit
        cannot be."""
        live: set[str] = set()
        seen: set[str] = set()
        for _, pieces in replay(self._segment, self._commits, self._commits.file_actions):
            if self._is_late():
                return f"it has no version checksum, and reading the log before it takes more than {COMPARE_SECONDS:.0f} seconds"
            keys: set[str] = set()
            for piece in pieces:
                live.update(key for key in piece.add_keys if key not in seen)
                keys.update(piece.add_keys, piece.remove_keys)
            seen |= keys
        fault = _first(live, held_keys, there=False, text="it lacks the file {}, which a commit added")
        fault = fault or _first(seen - live, held_keys, there=True, text="it holds the file {}, which a commit removed")
        return fault or self._fault_of_the_rest(held_keys, live, seen)

    def _fault_of_the_rest(self, held_keys: pa.ChunkedArray, live: set[str], seen: set[str]) -> str | None:
        """The files of the older checkpoint that no commit speaks of; and no others may be there, if the log is whole."""
        count = len(live)
        for keys in self._older_keys(seen):
            count += len(keys)
            fault = _first(keys, held_keys, there=False, text="it lacks the file {} of the checkpoint before it")
            if fault is not None:
                return fault
        if self._is_whole and count != len(held_keys):
            return f"it holds {len(held_keys)} files, but the log before it says {count}"
        return None

    def _older_keys(self, seen: set[str]) -> Iterator[pa.Array]:
        if self._older is not None:
            for batch in CheckpointFiles(self._older, StatsWanted(), seen):
                yield file_keys(pa.Table.from_batches([batch.files]))

    def fault_of_state(self, state: SmallState) -> str | None:
        found = protocol_and_metadata(self._segment, self._commits, self._older)
        if found.protocol not in (None, state.protocol):
            return "its protocol is not that of the log before it"
        assert state.metadata is not None
        if found.metadata is not None and _meaning(found.metadata) != _meaning(state.metadata):
            return "its metadata is not that of the log before it"
        small = transactions_and_domains(self._segment, self._commits, self._older)
        return _fault_of_small(state, small.transactions, small.domains, "the log before it")


def _first(keys: Iterable[str] | pa.Array, held_keys: pa.ChunkedArray, *, there: bool, text: str) -> str | None:
    """The text with the path of the first of the keys that is, or is not, among those held; None if none is so."""
    listed = pa.array(keys, pa.large_string())
    place = pc.is_in(listed, held_keys).index(there).as_py()
    return None if place < 0 else text.format(repr(path_of(listed[place].as_py())))


def _meaning(metadata: Metadata) -> tuple[object, ...]:
    return metadata.id, metadata.schema_string, metadata.partition_columns, dict(metadata.configuration)


def _fault_of_small(
    state: SmallState, transactions: Mapping[str, SetTransaction], domains: Mapping[str, DomainMetadata], source: str
) -> str | None:
    """Transactions that are expired may be missing."""
    assert state.metadata is not None
    may_lack = _TRANSACTION_RETENTION in state.metadata.configuration
    for app_id, transaction in transactions.items():
        found = state.transactions.get(app_id)
        if (found is None and not may_lack) or (found is not None and found.version != transaction.version):
            return f"{source} has version {transaction.version} of the transactions of {app_id!r}, and it has not"
    for name, domain in domains.items():
        if state.domains.get(name) != domain:
            return f"{source} has another configuration of the domain {name!r}"
    return None
