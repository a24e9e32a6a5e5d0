"""Whether the log before a checkpoint may be deleted. After that, the checkpoint is the only copy of its state.

A checkpoint may be valid Parquet and still lack files. Once the commits before it are deleted, nobody can detect that. So the
checkpoint is compared with the best other record: the version checksum; if there is none, `_last_checkpoint` if it names this
checkpoint; otherwise the log before it. An interrupted cleanup may have deleted the start of that log. Then the checkpoint must
still contain everything that the remaining log says.
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
from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError, RequestedStats
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.checksum import VersionChecksum, read_checksum
from delta_py.log.commit_reader import CommitReader
from delta_py.log.file_keys import file_keys, path_of
from delta_py.log.last_checkpoint import read_last_checkpoint
from delta_py.log.reconciliation import (
    CheckpointFiles,
    StateWithoutFiles,
    protocol_and_metadata,
    replay,
    transactions_and_domains,
)
from delta_py.log.segment import Checkpoint, Listing, LogSegment, load_segment
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_py.storage.store import ObjectStore

# The longest time to read the log before a checkpoint: it may have very many commits, and the next cleanup may find a checksum.
COMPARE_SECONDS = 20.0
_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
# The kinds of actions other than files, with their parsers.
_PARSERS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "protocol": Protocol.from_json,
    "metaData": Metadata.from_json,
    "txn": SetTransaction.from_json,
    "domainMetadata": DomainMetadata.from_json,
}


def fault_of(store: ObjectStore, checkpoint: Checkpoint, listing: Listing, *, clock: Callable[[], float]) -> str | None:
    """Why the log before the checkpoint must not be deleted; None if it may be deleted.

    listing: the whole log up to the checkpoint. clock: the time in seconds, for the limit COMPARE_SECONDS.
    This reads the whole checkpoint except the statistics. Raises CorruptTableError if it cannot be read.
    """
    hint = read_last_checkpoint(store)
    if hint is not None and hint.version != checkpoint.version:
        hint = None
    checksum_file = listing.checksums.get(checkpoint.version)
    checkpoint_with_records = replace(checkpoint, checksum=checksum_file, hint=hint)
    reader = CheckpointReader(checkpoint_with_records, CommitReader(store, uses_cache=False))
    contents = _read_contents(reader)
    if contents.state.protocol is None or contents.state.metadata is None:
        return "it holds no protocol or no metadata"
    checksum = None if checksum_file is None else read_checksum(store, checksum_file)
    if checksum is not None:
        return _fault_by_checksum(contents, checksum)
    if hint is not None and hint.file_count is not None:
        return _fault_of_count("files", hint.file_count, contents.file_count)
    if hint is not None and hint.action_count is not None and reader.action_count is not None:
        return _fault_of_count("actions", hint.action_count, reader.action_count)
    return _fault_by_log(store, reader, contents.state, listing, clock)


def fault_by_log(store: ObjectStore, checkpoint: Checkpoint, listing: Listing, *, clock: Callable[[], float]) -> str | None:
    """Compare the checkpoint only with the log before it, and ignore the checksum and `_last_checkpoint`.

    Returns what the checkpoint lacks, or what it should not hold. Parameters and errors as in fault_of.
    """
    reader = CheckpointReader(replace(checkpoint, checksum=None, hint=None), CommitReader(store, uses_cache=False))
    contents = _read_contents(reader)
    if contents.state.protocol is None or contents.state.metadata is None:
        return "it holds no protocol or no metadata"
    return _fault_by_log(store, reader, contents.state, listing, clock)


def _fault_of_count(noun: str, recorded_count: int, actual_count: int) -> str | None:
    """The fault if the checkpoint has another count than `_last_checkpoint` says; otherwise None. noun: what is counted."""
    if recorded_count == actual_count:
        return None
    return f"it holds {actual_count} {noun}, but _last_checkpoint says {recorded_count}"


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of a checkpoint. file_count: a file that is named twice counts twice."""

    file_count: int
    size_bytes: int
    state: StateWithoutFiles


def _read_contents(reader: CheckpointReader) -> _Contents:
    """Read the whole checkpoint, without statistics."""
    file_count, size_bytes, state = 0, 0, StateWithoutFiles()
    for raw in reader.files(RequestedStats()):
        file_count += raw.files.num_rows
        size_bytes += pc.sum(raw.files["size"]).as_py() or 0
    for name, parse in _PARSERS.items():
        for row in reader.rows(name):
            state.apply_older(parse(row))
    return _Contents(file_count, size_bytes, state)


# ---------------------------------------------------------------- comparison with the checksum


def _fault_by_checksum(contents: _Contents, checksum: VersionChecksum) -> str | None:
    """How the checkpoint contradicts the version checksum; None if it does not."""
    assert contents.state.protocol is not None and contents.state.metadata is not None
    fault = checksum.files_fault(contents.file_count, contents.size_bytes)
    fault = fault or checksum.state_fault(contents.state.protocol, contents.state.metadata)
    if fault is not None:
        return fault.message
    transactions = {item.app_id: item for item in checksum.set_transactions or ()}
    domains = {item.domain: item for item in checksum.domain_metadata or () if not item.removed}
    return _fault_of_state(contents.state, transactions, domains, f"the version checksum {checksum.path}")


# ---------------------------------------------------------------- comparison with the log before the checkpoint


def _fault_by_log(
    store: ObjectStore, reader: CheckpointReader, state: StateWithoutFiles, listing: Listing, clock: Callable[[], float]
) -> str | None:
    """How the checkpoint contradicts the log before it; None if it does not, or if there is no such log. The log may begin
    with an older checkpoint; if that one cannot be read, the next older one is used.
    """
    deadline = clock() + COMPARE_SECONDS
    # The files of the checkpoint itself, which must not prove itself, and of older checkpoints that cannot be read.
    unusable = frozenset(file.path for file in reader.checkpoint.files)
    key_batches = [file_keys(pa.Table.from_batches([raw.files])) for raw in reader.files(RequestedStats())]
    checkpoint_keys = pa.chunked_array(key_batches, pa.large_string())
    if len(checkpoint_keys.unique()) < len(checkpoint_keys):
        return "it names files more than once"
    while True:
        segment_before = _log_before(store, reader.checkpoint, listing, unusable)
        if segment_before is None:
            return None
        segment, is_whole = segment_before
        try:
            log = _LogBefore(store, segment, is_whole, lambda: clock() > deadline)
            return log.fault_of_files(checkpoint_keys) or log.fault_of_state(state)
        except CheckpointUnreadableError:
            # Only the older checkpoint can raise this here. Without it, use the one before it, or all commits.
            assert segment.checkpoint is not None, "no other checkpoint is read"
            unusable |= {file.path for file in segment.checkpoint.files}


def _log_before(
    store: ObjectStore, checkpoint: Checkpoint, listing: Listing, unusable: frozenset[str]
) -> tuple[LogSegment, bool] | None:
    """The segment that rebuilds the checkpoint's version without the checkpoint, and whether that segment is complete.

    If the log has no beginning, the segment holds the longest run of commits without a gap that ends with the checkpoint's
    version. None if the commit of that version is deleted: then nothing shows what the checkpoint should hold.
    """
    try:
        segment = load_segment(store, checkpoint.version, unusable=unusable)
        return replace(segment, compactions=()), True  # only the commits themselves are trusted
    except CorruptTableError:  # the log has no beginning: an interrupted cleanup may have deleted it
        first = checkpoint.version
        if first not in listing.commits:
            return None
        while first - 1 in listing.commits:
            first -= 1
        commits = tuple(listing.commits[version] for version in range(first, checkpoint.version + 1))
        segment = LogSegment(
            table_root=store.root, version=checkpoint.version, checkpoint=None, commits=commits, last_commit=commits[-1]
        )
        return segment, False


class _LogBefore:
    """The log before a checkpoint, for comparison with the checkpoint.

    segment: the log's files, which may begin with an older checkpoint. is_whole: the log contains everything that the version
    holds.
    is_time_over: returns whether reading must stop now.
    """

    def __init__(self, store: ObjectStore, segment: LogSegment, is_whole: bool, is_time_over: Callable[[], bool]) -> None:
        self._segment, self._is_whole, self._is_time_over = segment, is_whole, is_time_over
        self._commits = CommitReader(store, uses_cache=False)
        older = segment.checkpoint
        self._older_checkpoint = None if older is None else open_checkpoint(store, older, self._commits)

    def fault_of_files(self, checkpoint_keys: pa.ChunkedArray) -> str | None:
        """How the checkpoint's files differ from those of the log before it; None if they do not. Raises
        CheckpointUnreadableError if the log begins with a checkpoint that cannot be read, and CorruptTableError if a commit
        cannot be read."""
        # Keys (log/file_keys.py) of logical files. The commits are read newest first.
        live: set[str] = set()  # of files that a commit added, and that no newer commit removed
        seen: set[str] = set()  # of files that any commit that was read adds or removes
        for _, pieces in replay(self._segment, self._commits, self._commits.file_actions):
            if self._is_time_over():
                return f"it has no version checksum, and reading the log before it takes more than {COMPARE_SECONDS:.0f} seconds"
            keys: set[str] = set()
            for piece in pieces:
                # A key in `seen` is not live: a newer commit removed the file, or added it again and so already counted it.
                live.update(key for key in piece.add_keys if key not in seen)
                keys.update(piece.add_keys, piece.remove_keys)
            seen |= keys
        fault = _first_fault(live, checkpoint_keys, is_present=False, text="it lacks the file {}, which a commit added")
        fault = fault or _first_fault(
            seen - live, checkpoint_keys, is_present=True, text="it holds the file {}, which a commit removed"
        )
        return fault or self._fault_of_older_files(checkpoint_keys, live, seen)

    def _fault_of_older_files(self, checkpoint_keys: pa.ChunkedArray, live: set[str], seen: set[str]) -> str | None:
        """Check the files of the older checkpoint that no commit mentions. If the log is complete, no other files may exist.

        live, seen: as in fault_of_files.
        """
        count = len(live)
        for keys in self._older_keys(seen):
            count += len(keys)
            fault = _first_fault(keys, checkpoint_keys, is_present=False, text="it lacks the file {} of the checkpoint before it")
            if fault is not None:
                return fault
        if self._is_whole and count != len(checkpoint_keys):
            return f"it holds {len(checkpoint_keys)} files, but the log before it says {count}"
        return None

    def _older_keys(self, seen: set[str]) -> Iterator[pa.Array]:
        """The keys of the older checkpoint's files that are not in `seen`, batch by batch."""
        if self._older_checkpoint is not None:
            for batch in CheckpointFiles(self._older_checkpoint, RequestedStats(), seen):
                yield file_keys(pa.Table.from_batches([batch.files]))

    def fault_of_state(self, state: StateWithoutFiles) -> str | None:
        """How the checkpoint's actions other than files contradict the log before it; None if they do not. Raises as
        fault_of_files."""
        log_state = protocol_and_metadata(self._segment, self._commits, self._older_checkpoint)
        # A log that is not whole may hold no protocol or no metadata.
        if log_state.protocol not in (None, state.protocol):
            return "its protocol is not that of the log before it"
        assert state.metadata is not None
        if log_state.metadata is not None and _compared_fields(log_state.metadata) != _compared_fields(state.metadata):
            return "its metadata is not that of the log before it"
        log_actions = transactions_and_domains(self._segment, self._commits, self._older_checkpoint)
        return _fault_of_state(state, log_actions.transactions, log_actions.domains, "the log before it")


def _first_fault(keys: Iterable[str] | pa.Array, checkpoint_keys: pa.ChunkedArray, *, is_present: bool, text: str) -> str | None:
    """The message for the first of the keys that the checkpoint has (is_present) or lacks (not is_present); None if there is no
    such key. text: the message, with {} for the key's path."""
    key_array = pa.array(keys, pa.large_string())
    position = pc.is_in(key_array, checkpoint_keys).index(is_present).as_py()
    return None if position < 0 else text.format(repr(path_of(key_array[position].as_py())))


def _compared_fields(metadata: Metadata) -> tuple[object, ...]:
    """The fields that decide how the table is read and written. The others, such as the description, do no harm if they
    differ."""
    return metadata.id, metadata.schema_string, metadata.partition_columns, dict(metadata.configuration)


def _fault_of_state(
    state: StateWithoutFiles, transactions: Mapping[str, SetTransaction], domains: Mapping[str, DomainMetadata], source: str
) -> str | None:
    """How the checkpoint's transaction identifiers and metadata domains contradict those of another record; None if they do not.

    state: of the checkpoint. transactions, domains: of the other record, by application and by name. source: the record's name
    for the message. If the table lets transaction identifiers expire, the checkpoint may lack some.
    """
    assert state.metadata is not None
    may_lack_transactions = _TRANSACTION_RETENTION in state.metadata.configuration
    for app_id, transaction in transactions.items():
        in_checkpoint = state.transactions.get(app_id)
        is_lacking = in_checkpoint is None and not may_lack_transactions
        if is_lacking or (in_checkpoint is not None and in_checkpoint.version != transaction.version):
            return f"{source} has version {transaction.version} of the transactions of {app_id!r}, but the checkpoint does not"
    for name, domain in domains.items():
        if state.domains.get(name) != domain:
            return f"{source} has another configuration of the domain {name!r}"
    return None
