"""Snapshot: the state of a table at one version. All reads of a table's state go through it.

    snapshot = Snapshot.load(store)                       # the newest; or version=3; or timestamp_ms=1700000000000
    for batch in snapshot.file_batches(stats_leaves): ...

Loading reads protocol and metadata and checks that the table may be read; the list of files stays in the log until
`file_batches` streams it as Arrow. If a checkpoint cannot be read, an older one is used, with a warning.
Protocol: Action Reconciliation; Checkpoints; Version Checksum File.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.checkpoint.checkpoint_check import open_checkpoint
from delta_py.errors import CorruptTableError, LogFileNotFoundError, SchemaMismatchError
from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError, RequestedStats
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.checksum import VersionChecksum, read_checksum
from delta_py.log.commit_reader import FILE_SCHEMA, CommitReader
from delta_py.log.coordination import check_and_register
from delta_py.log.history import commit_timestamp, version_at_timestamp
from delta_py.log.reconciliation import (
    CheckpointFiles,
    FileBatch,
    StateWithoutFiles,
    commit_files,
    protocol_and_metadata,
    protocol_and_metadata_of_commits,
    transactions_and_domains,
)
from delta_py.log.segment import LONG_AGO, LogSegment, load_segment
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_py.protocol.clustering import CLUSTERING_DOMAIN
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.types.schema import DataType, Path, StructType

__all__ = ["FileBatch", "Snapshot"]

_log = logging.getLogger("delta_py")
_FRESH_SECONDS = 1.0  # how long check_log relies on the last listing of the log
T = TypeVar("T")


class Snapshot:
    """One version of a table. Immutable; pickles small (the names of the log files, protocol and metadata).

    The constructor raises UnsupportedTableFeatureError if the table may not be read. Methods that read the log
    raise CorruptTableError or one of its subclasses. Threads must not share an instance.
    """

    def __init__(
        self,
        store: ObjectStore,
        segment: LogSegment,
        protocol: Protocol,
        metadata: Metadata,
        checksum: VersionChecksum | None = None,
    ) -> None:
        self.store = store
        self.segment = segment
        self.config = TableConfig(protocol, metadata)
        self.config.require(Operation.READ)
        self._checksum = checksum
        self._log = _Log(store, segment, checksum)
        self._state_without_files_cache: StateWithoutFiles | None = None
        self._timestamp_ms: int | None = None
        self._num_files: int | None = None
        self._size_bytes: int | None = None
        self._is_last_commit_checked = False
        self._last_listed: ObjectInfo | None = segment.last_commit.info
        self._listed_at = segment.listed_at

    @classmethod
    def load(cls, store: ObjectStore, version: int | None = None, timestamp_ms: int | None = None) -> Self:
        """The snapshot of a version, or of the newest version committed at or before a time (ms since 1970), or the newest.

        Raises TableNotFoundError, VersionNotFoundError, TimestampOutOfRangeError, VersionsNotContiguousError,
        LogFileNotFoundError, CorruptTableError, UnsupportedTableFeatureError; UnsupportedOperationError for a table that is not
        opened through its coordinator.
        """
        assert version is None or timestamp_ms is None, "a version and a time"
        if timestamp_ms is None:
            return cls._load(store, version)
        newest = cls._load(store, None)
        version = version_at_timestamp(store, timestamp_ms, newest.config)
        return newest if version == newest.version else cls._load(store, version)

    @classmethod
    def _load(cls, store: ObjectStore, version: int | None) -> Self:
        """The snapshot of a version; None for the newest. Raises as load."""
        snapshot = cls.of_segment(store, load_segment(store, version))
        # True means that the table's coordinator has forgotten the table since the log was listed. Then the versions that the
        # coordinator named do not count, and the version is looked up again without the coordinator.
        if check_and_register(store, snapshot.config, snapshot.version, is_newest=version is None):
            snapshot = cls.of_segment(store, load_segment(store, version))
        return snapshot

    @classmethod
    def of_segment(cls, store: ObjectStore, segment: LogSegment) -> Self:
        """The version with these log files. Protocol and metadata come from the version checksum if there is one, which is one
        small file. Raises LogFileNotFoundError, CorruptTableError, UnsupportedTableFeatureError."""
        checksum = None if segment.checksum is None else read_checksum(store, segment.checksum)
        if checksum is not None:
            snapshot = cls(store, segment, checksum.protocol, checksum.metadata, checksum)
        else:
            log_reader = _Log(store, segment)
            protocol, metadata = log_reader.protocol_and_metadata()
            snapshot = cls(store, segment, protocol, metadata)
            snapshot._log = log_reader  # it has read the commits already
        return snapshot

    @property
    def parts(self) -> tuple[LogSegment, Protocol, Metadata, VersionChecksum | None]:
        """The values from which the snapshot can be built again, together with a store."""
        return self.segment, self.protocol, self.metadata, self._checksum

    def for_another_thread(self) -> Self:
        """A copy of the snapshot for another thread, with its own reader of the log: readers of a log must not be shared."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._log = _Log(self.store, self.segment, self._checksum)
        return copy

    def through(self, store: ObjectStore) -> Snapshot:
        """The same version, read through another store object of the same table, for example one with other options."""
        return Snapshot(store, *self.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Put the values into a separate pickle inside the pickle, so that equal snapshots have equal pickles: Spark compares
        pickles to find a part of a query that it has already read. A plain pickle records which of its values are the same
        object, and a snapshot may share objects with its holder in one case and not in another."""
        segment, *other_parts = self.parts
        return _unpickled, (pickle.dumps((self.store, replace(segment, listed_at=LONG_AGO), *other_parts)),)

    def __repr__(self) -> str:
        return f"Snapshot({self.table_root!r}, version={self.version})"

    # ------------------------------------------------------------ state

    @property
    def version(self) -> int:
        return self.segment.version

    @property
    def table_root(self) -> str:
        return self.segment.table_root

    @property
    def checksum(self) -> VersionChecksum | None:
        """The version checksum that the version's writer, or another one, recorded, if it exists and is valid."""
        return self._checksum

    @property
    def protocol(self) -> Protocol:
        return self.config.protocol

    @property
    def metadata(self) -> Metadata:
        return self.config.metadata

    @property
    def schema(self) -> StructType:
        return self.config.schema

    @property
    def timestamp_ms(self) -> int:
        """When the version was committed, ms since 1970: its in-commit timestamp, or else its file's time."""
        if self._timestamp_ms is None:
            recorded = None if self._checksum is None else self._checksum.in_commit_timestamp_ms
            in_commit = recorded if self.config.enabled("inCommitTimestamp") else None
            self._timestamp_ms = (
                in_commit if in_commit is not None else commit_timestamp(self.store, self.segment.last_commit, self.config)
            )
        return self._timestamp_ms

    # ------------------------------------------------------------ files

    def file_batches(
        self,
        stats_leaves: Mapping[Path, DataType] | None = None,
        want_whole: bool = False,
        want_records: bool = False,
    ) -> Iterator[FileBatch]:
        """The live files in batches, newest commits first; a consumed batch does not stay in memory.

        stats_leaves: physical paths (and types) of the columns whose statistics each batch must have. want_whole: fill the
        columns stats, tags and clustering_provider too. want_records: the statistics have the numbers of records, even without
        stats_leaves. If the files do not match the version checksum, a warning is logged at the end (check_integrity raises).

        Raises what check_log raises; CorruptTableError.
        """
        self.check_log()
        requested_stats = RequestedStats(dict(stats_leaves or {}), want_whole, want_records)
        file_count = size_bytes = 0
        for batch in self._log.files(requested_stats):
            file_count += batch.files.num_rows
            size_bytes += pc.sum(batch.files["size"]).as_py() or 0
            self._check_partition_values(batch.files)
            yield batch
        self._num_files, self._size_bytes = file_count, size_bytes
        if self._checksum is not None and (fault := self._checksum.files_fault(file_count, size_bytes)) is not None:
            _log.warning("%s: %s", self.table_root, fault.message)

    def check_log(self, *, accepts_recent: bool = False) -> None:
        """Check that the log is still the one that was listed. While a program holds a snapshot, the table may be deleted and
        created again at the same path, and its log files have the same names. Called before files of the version are read;
        protocol and metadata are in memory.

        Lists the log once. A listing is not repeated within a second for a remote store, or for any store with `accepts_recent`.
        A log that was copied, so that only its times differ, or that was cleaned up, counts as the same.
        Raises SchemaMismatchError (DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS) if it belongs to another table, or has another commit or
        schema; and what `load` raises for a log that is missing or cannot be read.
        """
        started_at = time.monotonic()
        if (accepts_recent or self.store.is_remote) and started_at - self._listed_at < _FRESH_SECONDS:
            return
        directory, _, name = self.segment.last_commit.path.rpartition("/")
        log_file = next(self.store.list_from(directory, name), None)
        if log_file != self._last_listed:
            if not self._is_same_table(log_file):
                raise replaced_table_error(self.table_root, f"version {self.version} was looked at")
            is_at_same_path = log_file is not None and log_file.path == self.segment.last_commit.path
            if is_at_same_path:  # the file was written again, so the commits that were read before may differ too
                self._log = _Log(self.store, self.segment, self._checksum)
                self._state_without_files_cache, self._timestamp_ms = None, None
        self._last_listed, self._listed_at = log_file, started_at

    def _is_same_table(self, log_file: ObjectInfo | None) -> bool:
        """Whether the log still belongs to the same table, although its listing differs: its files have other times, or the
        version's commit was cleaned up. log_file: the first listed file from that commit's path on; None if there is none."""
        metadata, last_commit = self.metadata, self.segment.last_commit
        if log_file is None or log_file.path != last_commit.path:
            return Snapshot.load(self.store).metadata.id == metadata.id
        current = Snapshot.load(self.store, self.version)
        is_same = (log_file.size_bytes, current.metadata.id, current.schema) == (last_commit.size_bytes, metadata.id, self.schema)
        return is_same and (current._txn_id == self._txn_id or None in (current._txn_id, self._txn_id))

    @property
    def _txn_id(self) -> str | None:
        """The txnId of the version's commit, if a version checksum contains it."""
        return None if self._checksum is None else self._checksum.txn_id

    def _check_partition_values(self, files: pa.RecordBatch) -> None:
        """Raises CorruptTableError if a file of a partitioned table has no partition values."""
        values = files["partition_values"]
        if values.null_count and self.config.partition_columns:
            path = files["path"].filter(values.is_null())[0].as_py()
            raise CorruptTableError(
                f"The add action of {path} has no partitionValues, but the table {self.table_root} is partitioned by "
                f"{', '.join(self.config.partition_columns)}: the rows' partition is unknown. The log is damaged.",
                path=path,
            )

    def files(self) -> pa.Table:
        """All live files: FILE_SCHEMA of log/commit_reader.py, with all its columns filled."""
        return pa.Table.from_batches((batch.files for batch in self.file_batches(want_whole=True)), schema=FILE_SCHEMA)

    def tombstones(self) -> pa.Table:
        """The removed files that the log still contains: TOMBSTONE_SCHEMA of checkpoint/tombstones.py. Some may be live
        again, with other deletion vectors too."""
        return self._log.tombstones()

    @property
    def num_files(self) -> int:
        """The number of live files. The first call reads the list of files, if nothing has read it before."""
        if self._num_files is None:
            for _ in self.file_batches():
                pass
        assert self._num_files is not None
        return self._num_files

    def check_last_commit(self) -> None:
        """Check the version's own commit before another commit follows it. If protocol, metadata and files come from a version
        checksum or a checkpoint, the commit itself was not read yet. This may cost one request, once per snapshot. It is no error
        if the commit does not exist any more, because log cleanup may have deleted it.

        Raises CorruptTableError if it ends within a line, or has lines that are not JSON objects.
        """
        if self._is_last_commit_checked:
            return
        try:
            self._log.check_last_commit()
        except LogFileNotFoundError:
            pass
        except CorruptTableError as error:
            raise CorruptTableError(
                f"Version {self.version} of the table at {self.table_root} cannot be followed by another: its commit is damaged. "
                f"{error.message} Nothing was committed.",
                path=self.segment.last_commit.path,
                version=self.version,
            ) from error
        self._is_last_commit_checked = True

    def check_integrity(self) -> None:
        """Compare the state rebuilt from the log with the version checksum, if the version has a valid one.

        Raises LogIntegrityError if protocol, metadata, number of files or their bytes differ.
        """
        if self._checksum is None:
            return
        protocol, metadata = self._log.protocol_and_metadata()
        fault = self._checksum.state_fault(protocol, metadata)
        if fault is None:
            file_count = self.num_files
            assert self._size_bytes is not None
            fault = self._checksum.files_fault(file_count, self._size_bytes)
        if fault is not None:
            raise fault

    # ------------------------------------------------------------ the other actions

    def set_transactions(self) -> dict[str, SetTransaction]:
        """The newest transaction identifier of each application id."""
        if self._checksum is not None and self._checksum.set_transactions is not None:
            return {transaction.app_id: transaction for transaction in self._checksum.set_transactions}
        return dict(self._state_without_files().transactions)

    def domain_metadata(self) -> dict[str, DomainMetadata]:
        """The current metadata domains by name, without removed ones."""
        if self._checksum is not None and self._checksum.domain_metadata is not None:
            return {domain.domain: domain for domain in self._checksum.domain_metadata if not domain.removed}
        return dict(self._state_without_files().domains)

    def clustering_domain(self) -> DomainMetadata | None:
        """The domain with the clustering columns; None for a table without clustering. Tables without the feature are not
        searched: without a version checksum, the search reads the whole log."""
        return self.domain_metadata().get(CLUSTERING_DOMAIN) if self.config.feature("clustering") else None

    def _state_without_files(self) -> StateWithoutFiles:
        """The transactions and metadata domains from the whole log, read at most once."""
        if self._state_without_files_cache is None:
            self._state_without_files_cache = self._log.transactions_and_domains()
        return self._state_without_files_cache


def replaced_table_error(table_root: str, since: str) -> SchemaMismatchError:
    """The error for code that has read from a table, when another table is now at the same path. since: what the code did with
    the old table, such as `version 3 was looked at`."""
    return SchemaMismatchError(
        f"Since {since}, the table at {table_root} was deleted and created again, or its log was replaced by another. "
        "The current table is not the requested one. Load it again.",
        error_class="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
        sql_state="KD007",
        path=table_root,
    )


def _unpickled(parts: bytes) -> Snapshot:
    return Snapshot(*pickle.loads(parts))


class _Log:
    """Reads the files of a segment. If a checkpoint is unreadable, it switches to an older one, or to the commits alone."""

    def __init__(self, store: ObjectStore, segment: LogSegment, checksum: VersionChecksum | None = None) -> None:
        """checksum: the checksum of the segment's version; None if it was not read."""
        self._store, self._checksum = store, checksum
        self._commits = CommitReader(store)
        self._segment = segment  # with a checkpoint that is not known to be unreadable
        self._checkpoint: CheckpointReader | None = None
        self._unusable_paths: frozenset[str] = frozenset()

    def protocol_and_metadata(self) -> tuple[Protocol, Metadata]:
        """The protocol and metadata of the version, from the commits, and from the checkpoint if these do not have both. Raises
        CorruptTableError (DELTA_STATE_RECOVER_ERROR) if the log contains no protocol or no metadata."""
        state = protocol_and_metadata_of_commits(self._segment, self._commits)
        if not state.has_protocol_and_metadata:
            state = self._read(lambda segment, checkpoint: protocol_and_metadata(segment, self._commits, checkpoint))
        if state.protocol is None:
            raise self._unrecoverable("protocol")
        if state.metadata is None:
            raise self._unrecoverable("metadata")
        return state.protocol, state.metadata

    def _unrecoverable(self, what: str) -> CorruptTableError:
        """The error for a log without this action. what: protocol or metadata."""
        return CorruptTableError(
            f"The {what} of version {self._segment.version} of the table at {self._segment.table_root} could not be recovered: "
            "neither the commits nor the checkpoint hold one. Files of the log were changed or lost; restore them from a backup.",
            version=self._segment.version,
            action=what,
        )

    def tombstones(self) -> pa.Table:
        from delta_py.checkpoint.tombstones import TOMBSTONE_SCHEMA, tombstones  # only writers need it

        return self._read(
            lambda segment, checkpoint: pa.Table.from_batches(tombstones(segment, self._commits, checkpoint), TOMBSTONE_SCHEMA)
        )

    def check_last_commit(self) -> None:
        self._commits.check_whole(self._segment.last_commit)

    def transactions_and_domains(self) -> StateWithoutFiles:
        return self._read(lambda segment, checkpoint: transactions_and_domains(segment, self._commits, checkpoint))

    def files(self, requested_stats: RequestedStats) -> Iterator[FileBatch]:
        """The live files. If a checkpoint fails in the middle, the remaining files come from an older checkpoint, or from the
        commits alone."""
        segment, checkpoint = self._open(self._segment)
        self._segment = segment
        seen: set[str] = set()  # keys of the files whose last action is known, live or removed
        while True:
            yield from commit_files(segment, self._commits, requested_stats, seen)
            if checkpoint is None:
                return
            checkpoint_files = CheckpointFiles(checkpoint, requested_stats, seen)
            try:
                yield from checkpoint_files
                return
            except CheckpointUnreadableError as error:
                # The remaining files are those that were live at the checkpoint's version and are not in seen.
                segment = self._segment_without_checkpoint(segment, error, checkpoint.checkpoint.version)
                seen |= checkpoint_files.yielded_keys(error)
                segment, checkpoint = self._open(segment)

    # ------------------------------------------------------------ checkpoints that cannot be read

    def _read(self, read: Callable[[LogSegment, CheckpointReader | None], T]) -> T:
        """The result of `read`, which gets a segment and its opened checkpoint (None if it has none). If the checkpoint cannot be
        read, `read` is called again with an older checkpoint, or without one."""
        while True:
            self._segment, checkpoint = self._open(self._segment)
            try:
                return read(self._segment, checkpoint)
            except CheckpointUnreadableError as error:
                self._segment = self._segment_without_checkpoint(self._segment, error, self._segment.version)

    def _open(self, segment: LogSegment) -> tuple[LogSegment, CheckpointReader | None]:
        """Open the segment's checkpoint, or an older one if it cannot be opened. Returns the segment that has the opened
        checkpoint, and that checkpoint; None if the version is read from commits alone. The last opened checkpoint stays open."""
        while segment.checkpoint is not None:
            if self._checkpoint is None or self._checkpoint.checkpoint != segment.checkpoint:
                try:
                    self._checkpoint = open_checkpoint(self._store, segment.checkpoint, self._commits, self._checksum)
                except CheckpointUnreadableError as error:
                    segment = self._segment_without_checkpoint(segment, error, segment.version)
                    continue
            return segment, self._checkpoint
        return segment, None

    def _segment_without_checkpoint(self, segment: LogSegment, error: CheckpointUnreadableError, version: int) -> LogSegment:
        """A segment of `version` that does not use the segment's checkpoint, which failed with this error. Raises the error if
        the version cannot be read without the checkpoint."""
        assert segment.checkpoint is not None
        self._unusable_paths |= {file.path for file in segment.checkpoint.files}
        try:
            older = load_segment(self._store, version, unusable=self._unusable_paths)
        except CorruptTableError:
            raise error from None
        _log.warning(
            "%s: the checkpoint of version %d is passed over: %s", segment.table_root, segment.checkpoint.version, error.message
        )
        return older
