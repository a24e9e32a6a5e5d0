"""A commit that is ready except for its version, and the commits that took the version it tried.

A commit is prepared once, against the version that was read. Everything that depends on the version that it gets (in-commit
timestamp, row ids, row commit versions) is computed when its actions are requested. Nothing is read or written here.
Protocol: Row Tracking; In-Commit Timestamps; Commit Provenance Information.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

import orjson

from delta_py.errors import CorruptTableError, InvalidOptionError, shown
from delta_py.log.checksum import VersionChecksum
from delta_py.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    parse_action,
)
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.scan.partition_set import PartitionSet

ROW_TRACKING_DOMAIN = "delta.rowTracking"
ROW_TRACKING_ENABLED = "delta.enableRowTracking"
ROW_TRACKING_SUSPENDED = "delta.rowTrackingSuspended"
NEW_TABLE = -1  # the read_version of a commit that creates its table
_MAX_LONG = 2**63 - 1
ROW_TRACKING_PRESERVED = "delta.rowTracking.preserved"  # tags commits that preserve all row ids: write/rewrite.py copies them
IDENTITY_TAG = "delta.identity.schemaUpdate"  # tags commits whose metadata only raises the high water marks of identity columns

# The names of these metrics in the history: of DELETE and UPDATE, and of MERGE.
_METRICS = {
    "DeletionVectorsAdded": ("numDeletionVectorsAdded", "numTargetDeletionVectorsAdded"),
    "DeletionVectorsUpdated": ("numDeletionVectorsUpdated", "numTargetDeletionVectorsUpdated"),
    "DeletionVectorsRemoved": ("numDeletionVectorsRemoved", "numTargetDeletionVectorsRemoved"),
    "FilesRemoved": ("numRemovedFiles", "numTargetFilesRemoved"),
    "BytesRemoved": ("numRemovedBytes", "numTargetBytesRemoved"),
}


class IsolationLevel(Enum):
    """The values are the names that table properties and commits use."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"

    @classmethod
    def parse(cls, text: str) -> IsolationLevel:
        """Raises InvalidOptionError for a name that is none of the three. Upper and lower case are equal."""
        for level in cls:
            if level.value.lower() == text.lower():
                return level
        raise InvalidOptionError(
            f"There is no isolation level {text!r}. Use {', '.join(level.value for level in cls)}.",
            error_class="DELTA_INVALID_ISOLATION_LEVEL",
            sql_state="25000",
            level=text,
        )


# Takes files that another writer added. Returns, for each of them, whether it may hold a row that was read.
MayMatch: TypeAlias = Callable[[Sequence[AddFile]], Sequence[bool]]


def combine_matches(matches: Sequence[MayMatch]) -> MayMatch | None:
    """Combine the checks of several reads into one, which tells whether a file may hold a row of any of these reads. None if
    there are no reads."""
    if not matches:
        return None
    return lambda adds: [any(answers) for answers in zip(*(match(adds) for match in matches), strict=True)]


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What a commit depends on.

    predicates: SQL of the rows that were read, for messages. may_match: for added files, whether each may hold such a row; None
    if no rows were read. paths: data files that were read. app_ids: application ids whose transaction versions were read.
    only_deleted_rows: in the files of `paths`, only the rows that the commit deletes matter. all_rows: every row of the table was
    read, in whatever file. all_files: the commit replaces every file of the table, and everything that metadata domains say about
    the files; it conflicts with any other file. timezones: for each predicate, the time zone in which partition values of
    timestamps were read. partitions: partitions whose rows were read, in addition to the rows of the predicates.
    """

    predicates: tuple[str, ...] = ()
    may_match: MayMatch | None = None
    paths: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()
    only_deleted_rows: bool = False
    all_rows: bool = False
    all_files: bool = False
    timezones: tuple[str, ...] = ()
    partitions: tuple[PartitionSet, ...] = ()

    @property
    def row_descriptions(self) -> list[str]:
        """Texts that say which rows were read, for messages: predicates and partitions."""
        return [*self.predicates, *map(str, self.partitions)]

    @property
    def is_empty(self) -> bool:
        """Whether the commit depends on no rows and no files."""
        return self.may_match is None and not self.paths and not self.all_files


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit that is ready except for its version.

    version: the one to try next. read_version: NEW_TABLE when the commit creates the table.
    commit_info: without its times. reads: what it depends on.
    in_commit_timestamps: the table has them; previous_timestamp_ms is that of version - 1, None for a new table.
    checksum: of version - 1, if it is known; its protocol and metadata are not used. row_id_high_water_mark: the highest row id
    assigned up to version - 1 (-1 if none was assigned); None when the table has no row tracking. domains: if row tracking's
    domain is among them, the commit's mark is at least as high as that one. followed_metadata: the metadata of the newest commit
    that it follows and that raised identity columns' marks; None if there is no such commit. table_id: of the table's metadata.
    shared: files whose rows must be compared (conflicts.merged_rows) before the commit may be tried. next_version_only: the
    commit says something about its version, and must not get another one.
    """

    version: int
    read_version: int
    txn_id: str
    commit_info: Mapping[str, Any]
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    cdc: tuple[AddCDCFile, ...] = ()
    transactions: tuple[SetTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    reads: ReadSet = field(default_factory=ReadSet)
    isolation: IsolationLevel = IsolationLevel.SERIALIZABLE
    in_commit_timestamps: bool = False
    previous_timestamp_ms: int | None = None
    checksum: VersionChecksum | None = None
    row_id_high_water_mark: int | None = None
    followed_metadata: Metadata | None = None
    shared: tuple[SharedFile, ...] = ()
    next_version_only: bool = False
    table_id: str = ""

    @property
    def is_blind_append(self) -> bool:
        """Whether the commit only adds files and depends on nothing that was read."""
        return not self.removes and not self.cdc and self.reads.is_empty

    def actions(self, now_ms: int) -> list[Action]:
        """The actions of the commit at its current version; commitInfo first.
        Protocol: Writer Requirements for In-Commit Timestamps; Writer Requirements for Row Tracking.
        """
        assert not self.shared, "the rows that others took out of the same files have not been compared"
        adds, domains = self._with_row_ids()
        definition = (action for action in (self.protocol, self.metadata) if action is not None)
        return [self._commit_info(now_ms), *definition, *domains, *self.transactions, *self.removes, *adds, *self.cdc]

    def _commit_info(self, now_ms: int) -> CommitInfo:
        """The commitInfo action. Its in-commit timestamp is later than that of the commit before, even if the clock is not."""
        times = {"timestamp": now_ms}
        if self.in_commit_timestamps:
            previous = self.previous_timestamp_ms
            timestamp_ms = now_ms if previous is None else max(now_ms, previous + 1)
            if timestamp_ms > _MAX_LONG:
                raise _overflow_error(f"Version {self.version - 1} has the in-commit timestamp {previous}, and a later one")
            times = {"inCommitTimestamp": timestamp_ms, **times}
        return CommitInfo({**times, **self.commit_info, "txnId": self.txn_id})

    def _with_row_ids(self) -> tuple[Iterable[AddFile], tuple[DomainMetadata, ...]]:
        """The files with row ids, and the domains, which then include row tracking's new high water mark, the highest row id that
        is assigned. If the commit assigns no row ids, both remain as they are.

        Row ids are assigned after the table's mark, the mark that `domains` requests, and the row ids that the files already
        have.
        """
        assigned_mark = self.row_id_high_water_mark
        if assigned_mark is None:
            return self.adds, self.domains
        requested_domain = next((domain for domain in self.domains if domain.domain == ROW_TRACKING_DOMAIN), None)
        mark = max(assigned_mark, row_id_high_water_mark(requested_domain), highest_row_id(self.adds))
        if mark > _MAX_LONG:
            raise _overflow_error(f"The files have row ids up to {mark}, which")
        adds = []
        for add in self.adds:
            if add.base_row_id is None:
                row_count = num_records(add)
                assert row_count is not None, "with_row_counts has counted them"
                if mark + row_count > _MAX_LONG:
                    raise _overflow_error(f"Row ids up to {mark} are given out, and {row_count} more")
                add = replace(add, base_row_id=mark + 1, default_row_commit_version=self.version)
                mark += row_count
            adds.append(add)
        domains = tuple(domain for domain in self.domains if domain.domain != ROW_TRACKING_DOMAIN)
        return adds, domains if mark == assigned_mark and requested_domain is None else (*domains, row_tracking_domain(mark))

    def with_vectors(self, vectors: Mapping[str, DeletionVectorDescriptor | None]) -> PreparedCommit:
        """Rebase the commit on those that changed the shared files. vectors: by path, for each shared file from which ours
        deletes rows: the vector of conflicts.merged_rows; None if no row remains and the file is removed."""
        changed = {file.path: file for file in self.shared if file.ours is not None}
        assert changed.keys() == vectors.keys()
        adds = (_rebased_add(changed[add.path], vectors[add.path]) if add.path in changed else add for add in self.adds)
        removes = (_rebased_remove(changed[r.path].theirs, r) if r.path in changed else r for r in self.removes)
        return replace(
            self,
            shared=(),
            adds=tuple(add for add in adds if add is not None),
            removes=tuple(removes),
            commit_info=_with_metrics_of(self.commit_info, changed.values(), vectors),
        )


def num_records(add: AddFile) -> int | None:
    """The row count that the file's statistics state (numRecords); None if they do not state one.
    Protocol: Per-file Statistics."""
    try:
        value = orjson.loads(add.stats or "{}").get("numRecords")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return value if isinstance(value, int) and value >= 0 else None


def row_id_high_water_mark(domain: DomainMetadata | None) -> int:
    """The high water mark in the row tracking domain: the highest row id that the table has assigned; -1 if it has assigned none.
    domain: None if the table does not have it. Raises CorruptTableError for a domain that is not valid."""
    if domain is None or domain.removed:
        return -1
    try:
        mark = orjson.loads(domain.configuration)["rowIdHighWaterMark"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        mark = None
    if type(mark) is not int or not -1 <= mark <= _MAX_LONG:
        raise CorruptTableError(
            f"The domain {ROW_TRACKING_DOMAIN} holds {shown(domain.configuration)}, which is no high water mark. The log is "
            "damaged."
        )
    return mark


def highest_row_id(adds: Iterable[AddFile]) -> int:
    """The highest row id of the files, from their base row ids and row counts; -1 if no file has row ids. A file without a stated
    row count counts as having one row: its first row id is certain."""
    return max((add.base_row_id + max(num_records(add) or 1, 1) - 1 for add in adds if add.base_row_id is not None), default=-1)


def row_tracking_domain(mark: int) -> DomainMetadata:
    """The domain that says that row ids up to the mark are assigned."""
    return DomainMetadata(ROW_TRACKING_DOMAIN, orjson.dumps({"rowIdHighWaterMark": mark}).decode())


def _overflow_error(what: str) -> CorruptTableError:
    """The error for a number of the log that has reached its maximum: a larger one could be written but not read. what: the start
    of the message, up to `would not fit`."""
    return CorruptTableError(
        f"{what} would not fit into 64 bits. Nothing was committed. The log is damaged, or was made so: restore the table to a "
        "version before, or write its rows into a new one."
    )


# ---------------------------------------------------------------- the commits that won


@dataclass(frozen=True, slots=True)
class WinningCommit:
    """A commit of another writer (or our own, when its confirmation was lost) after the version that was read.

    is_blind_append: as its writer says; False if it does not say. only_identity: its writer says that the metadata only has other
    high water marks of identity columns. domains: by name. timestamp_ms: the in-commit timestamp, if the commit has one.
    """

    version: int
    txn_id: str | None
    operation: str
    is_blind_append: bool = False
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    transactions: tuple[SetTransaction, ...] = ()
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    timestamp_ms: int | None = None
    only_identity: bool = False

    @classmethod
    def parse(cls, version: int, data: bytes) -> WinningCommit:
        """The content of a commit file. Raises CorruptTableError when it breaks the protocol."""
        actions = [action for line in data.split(b"\n") if line.strip() for action in [parse_action(line)]]
        info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo({}))
        removes = tuple(action for action in actions if isinstance(action, RemoveFile))
        return cls(
            version=version,
            txn_id=info.txn_id,
            operation=str(info.values.get("operation") or "an unnamed operation"),
            is_blind_append=info.values.get("isBlindAppend") is True and not removes,
            protocol=next((action for action in actions if isinstance(action, Protocol)), None),
            metadata=next((action for action in actions if isinstance(action, Metadata)), None),
            adds=tuple(action for action in actions if isinstance(action, AddFile)),
            removes=removes,
            transactions=tuple(action for action in actions if isinstance(action, SetTransaction)),
            domains={action.domain: action for action in actions if isinstance(action, DomainMetadata)},
            timestamp_ms=info.in_commit_timestamp_ms,
            only_identity=_has_identity_tag(info),
        )

    @property
    def app_ids(self) -> set[str]:
        """The applications whose transactions the commit records."""
        return {transaction.app_id for transaction in self.transactions}

    def advance_checksum(self, checksum: VersionChecksum | None) -> VersionChecksum | None:
        """The checksum of this version, computed from that of the previous version, except for protocol and metadata, which
        remain those of the previous version. None if it cannot be computed."""
        if checksum is None:
            return None
        info = CommitInfo({"inCommitTimestamp": self.timestamp_ms})
        return checksum.after_commit(None, [info, *self.domains.values(), *self.transactions, *self.removes, *self.adds])


def _has_identity_tag(info: CommitInfo) -> bool:
    """Whether the commit's writer says that its metadata only raises the high water marks of identity columns."""
    tags = info.values.get("tags")
    return isinstance(tags, dict) and str(tags.get(IDENTITY_TAG)).lower() == "true"


# ---------------------------------------------------------------- files from which both commits deleted rows


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A data file that our commit read, and whose deletion vector winners changed since then.

    before: its vector as we read it. theirs: the add action that is live after the winners; the last one to change it was
    `winner`. ours: the add action by which our commit gives it a larger vector; None if it deletes no row of it.
    """

    before: DeletionVectorDescriptor | None
    theirs: AddFile
    ours: AddFile | None
    winner: WinningCommit

    @property
    def path(self) -> str:
        return self.theirs.path


def _rebased_add(file: SharedFile, vector: DeletionVectorDescriptor | None) -> AddFile | None:
    """Our add of the file, with the attributes that it has after the winners, and a vector with the deleted rows of both sides.
    None if no row remains."""
    assert file.ours is not None
    if vector is None:
        return None
    return replace(file.theirs, deletion_vector=vector, stats=file.ours.stats, data_change=file.ours.data_change)


def _rebased_remove(theirs: AddFile, remove: RemoveFile) -> RemoveFile:
    """Our remove of the file, changed so that it removes the file with the vector and the row ids that it has after the winners.
    theirs: the add that is live after the winners. remove: as it was prepared."""
    return replace(
        remove,
        path_text=theirs.path_text,
        deletion_vector=theirs.deletion_vector,
        base_row_id=theirs.base_row_id,
        default_row_commit_version=theirs.default_row_commit_version,
    )


def _with_metrics_of(
    commit_info: Mapping[str, Any], files: Iterable[SharedFile], vectors: Mapping[str, DeletionVectorDescriptor | None]
) -> dict[str, Any]:
    """The commitInfo with corrected metrics, which count vectors and files as they are after the winners. Only metrics that the
    commitInfo already has are changed. files: the shared files from which our commit deletes rows. vectors: as in
    with_vectors."""
    change: Counter[str] = Counter()
    for file in files:
        # Both are booleans, which count as 0 or 1 below. is_removed: no row of the file remains.
        had_no_vector, is_removed = file.before is None, vectors[file.path] is None
        # The metrics were counted for the file as we read it. Since then, winners have given the file another vector, so our
        # commit replaces a vector even if the file had none.
        change["DeletionVectorsAdded"] -= is_removed
        change["DeletionVectorsUpdated"] += had_no_vector - is_removed
        change["DeletionVectorsRemoved"] += had_no_vector  # an updated vector counts as added and as removed too
        change["FilesRemoved"] += is_removed
        change["BytesRemoved"] += file.theirs.size_bytes * is_removed
    metrics = dict(commit_info.get("operationMetrics") or {})
    if commit_info.get("operation") == "UPDATE":
        del change["FilesRemoved"]  # an UPDATE already counts each file from which it deletes rows as removed
    for metric, difference in change.items():
        for name in _METRICS[metric]:
            if name in metrics:
                metrics[name] = str(int(metrics[name]) + difference)
    return {**commit_info, "operationMetrics": metrics} if metrics else dict(commit_info)
