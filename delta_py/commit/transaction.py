"""One optimistic transaction: what will be written, and how it becomes a version of the table.

    Transaction(snapshot).add(written).commit("WRITE", {"mode": "Append"}) -> version
    transaction.scan(predicate)        # the files that may hold the rows, remembered for the conflict check

The commit is prepared once; attempts.py brings it to a version.
Protocol: Requirements for Writers; Commit Provenance Information.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import orjson
import pyarrow as pa

from delta_py.commit.action_rules import check_actions, check_iceberg, check_row_tracking
from delta_py.commit.added_rows import ReadRows
from delta_py.commit.attempts import Attempts, RetryPolicy
from delta_py.commit.commit_settings import current_settings
from delta_py.commit.committer import commit_prepared
from delta_py.commit.post_commit import run_post_commit
from delta_py.commit.prepared import (
    IDENTITY_TAG,
    NEW_TABLE,
    ROW_TRACKING_PRESERVED,
    ROW_TRACKING_SUSPENDED,
    IsolationLevel,
    PreparedCommit,
    ReadSet,
    combine_matches,
)
from delta_py.commit.proposed_form import reads_to_json
from delta_py.commit.row_count_check import highest_assigned_row_id, with_row_counts
from delta_py.errors import CommitOutcomeUnknownError, CorruptTableError, DeltaError, UnsupportedOperationError
from delta_py.expressions.sql_text.to_sql import to_sql
from delta_py.expressions.tree import Expression
from delta_py.log.catalog_contract import check_contract
from delta_py.log.commit_reader import FILE_SCHEMA
from delta_py.log.coordination import FEATURE as COORDINATED
from delta_py.log.coordination import properties_with_coordinator
from delta_py.log.log_writer import LogWriter
from delta_py.log.reconciliation import gather_batches
from delta_py.object_stores.open_store import coordination_of, is_in_transaction
from delta_py.protocol.actions import Action, AddFile, DomainMetadata, Metadata, Protocol, SetTransaction
from delta_py.protocol.column_usage import with_usage_flag
from delta_py.protocol.identity_columns import with_marks
from delta_py.protocol.table_config import TableConfig
from delta_py.release import own_version
from delta_py.scan.partition_set import PartitionSet
from delta_py.scan.planning import Scan, ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType, schema_to_json
from delta_py.write.data_files import WrittenFiles, delete_files


class Transaction:
    """Collects what one commit depends on (its reads) and what it will hold (its actions), and commits it.

    snapshot: the version that was read; None for a new table, which then needs `store`, set_protocol and set_metadata.
    isolation: None for the table's own level (delta.isolationLevel, by default Serializable).
    clock_ms: ms since 1970; sleep: seconds. Both exist for tests and simulations.
    """

    def __init__(
        self,
        snapshot: Snapshot | None,
        *,
        store: ObjectStore | None = None,
        isolation: IsolationLevel | None = None,
        policy: RetryPolicy | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if snapshot is not None:
            store = snapshot.store
        assert store is not None, "a new table needs a store"
        self._snapshot, self._store, self._isolation = snapshot, store, isolation
        self._settings = current_settings()
        policy = policy or RetryPolicy.of(store)
        if self._settings.max_attempts is not None:
            policy = replace(policy, conflict_attempts=self._settings.max_attempts)
        self._attempts, self._clock_ms = Attempts(store, policy, clock_ms, sleep), clock_ms
        self._reads = _Reads(store)
        self._written_parts: list[WrittenFiles] = []
        self._protocol: Protocol | None = None
        self._metadata: Metadata | None = None
        self._transactions: dict[str, SetTransaction] = {}
        self._domains: dict[str, DomainMetadata] = {}
        self._is_next_required = False
        self._restored_snapshot: Snapshot | None = None

    @property
    def reads(self) -> ReadSet:
        """What the transaction has read so far."""
        return self._reads.as_read_set()

    @property
    def config(self) -> TableConfig:
        """Protocol and metadata as they will be after the commit, as far as they are known before it."""
        return self._config()

    # ------------------------------------------------------------ what the commit depends on

    def scan(
        self,
        predicate: Expression | None = None,
        columns: Sequence[str] | StructType | None = None,
        options: ScanOptions | None = None,
    ) -> Scan:
        """plan_scan of the snapshot. Its files and the rows for which the predicate is true (None: all rows) are remembered:
        another writer that removes the files or adds such rows in the meantime causes a conflict."""
        assert self._snapshot is not None, "a table that is not there has no rows"
        scan = plan_scan(self._snapshot, columns, predicate, options)
        self.read_rows(predicate, "UTC" if options is None else options.timezone)
        self.read_files(scan.paths())
        return scan

    def files_of(self, partitions: PartitionSet) -> pa.Table:
        """The files of these partitions: FILE_SCHEMA, including the columns that only commits need. The files and the partitions
        are remembered: another writer that removes the files or adds files to the partitions in the meantime causes a conflict.
        Raises as PartitionSet.has and Snapshot.file_batches."""
        assert self._snapshot is not None, "a table that is not there has no files"
        batches = gather_batches(self._snapshot.file_batches(want_whole=True), FILE_SCHEMA.names)
        matching_files = [batch.files.filter(partitions.has(batch.files)) for batch in batches]
        files = pa.Table.from_batches(matching_files, schema=FILE_SCHEMA)
        self._reads.add_partitions(partitions)
        self.read_files(files["path"].to_pylist())
        return files

    def read_rows(self, predicate: Expression | None = None, timezone: str = "UTC") -> Self:
        """The commit depends on the rows for which the predicate is true; None: on all rows. timezone: as in ScanOptions."""
        assert self._snapshot is not None, "a table that is not there has no rows"
        self._reads.add_rows(self._snapshot.config, predicate, timezone)
        return self

    def read_files(self, paths: Iterable[str]) -> Self:
        """The commit depends on the existence of these data files."""
        self._reads.paths.update(paths)
        return self

    def replaces_all_files(self, paths: Iterable[str]) -> Self:
        """Declare that the commit replaces these files, which are all files of the table, and everything that metadata domains
        say about them: files that other writers add, and domains that they set, are conflicts."""
        self._reads.all_files = True
        return self.read_files(paths)

    def only_deleted_rows_matter(self) -> Self:
        """Declare that in the files that were read, only the rows that this commit deletes matter: if other rows of these files
        had been missing, the commit would be the same. Then another writer may delete such other rows from the same files in the
        meantime, by deletion vectors, and both commits stand.

        This is true for a DELETE or UPDATE whose condition depends on the row alone. It is not true for a condition with a
        subquery on this table, nor if a row is not inserted because of an existing row.
        """
        self._reads.only_deleted_rows = True
        return self

    def must_be_next(self) -> Self:
        """Declare that the commit names its version or time: any other commit that comes first is a conflict."""
        self._is_next_required = True
        return self

    def restores(self, past: Snapshot) -> Self:
        """Declare that the table will hold the files of an earlier version, and no others. Then the configuration under which
        they were written counts, not what the table has required since then."""
        self._restored_snapshot = past
        return self

    def read_transaction(self, app_id: str) -> int | None:
        """The newest transaction version that the table has recorded for the application; None if there is none. Another writer
        that records a transaction of the application in the meantime causes a conflict."""
        self._reads.app_ids.add(app_id)
        transaction = None if self._snapshot is None else self._snapshot.set_transactions().get(app_id)
        return None if transaction is None else transaction.version

    # ------------------------------------------------------------ what the commit will hold

    def add(self, written: WrittenFiles) -> Self:
        """Add what was written for this commit: new files, the removes of the files that they replace, and change data."""
        self._written_parts.append(written)
        return self

    def set_protocol(self, protocol: Protocol) -> Self:
        self._protocol = protocol
        return self

    def set_metadata(self, metadata: Metadata) -> Self:
        self._metadata = metadata
        return self

    def set_domain(self, domain: DomainMetadata) -> Self:
        self._domains[domain.domain] = domain
        return self

    def set_transaction(self, app_id: str, version: int) -> Self:
        """Record that the application's transaction is part of this commit. If the table has already recorded this transaction,
        or a newer one of the application, `commit` does nothing.
        Protocol: Transaction Identifiers.
        """
        self._transactions[app_id] = SetTransaction(app_id, version, self._clock_ms())
        return self

    @property
    def is_named(self) -> bool:
        """Whether this commit is part of an application's transaction, as set_transaction declares."""
        return bool(self._transactions)

    @property
    def is_recorded(self) -> bool:
        """Whether the version that was read has already recorded one of this commit's application transactions. Then the commit
        was made before. As by read_transaction, another writer that records such a transaction in the meantime causes a
        conflict."""
        recorded_versions = {app_id: self.read_transaction(app_id) for app_id in self._transactions}
        return any(
            recorded_version is not None and recorded_version >= self._transactions[app_id].version
            for app_id, recorded_version in recorded_versions.items()
        )

    def commit(
        self,
        operation: str,
        parameters: Mapping[str, Any],
        *,
        metrics: Mapping[str, int] | None = None,
        user_metadata: str | None = None,
    ) -> int:
        """Make this a version of the table; returns the version. If its application transaction is already recorded, nothing is
        committed, the data files are deleted, and the version that was read is returned.

        parameters, metrics: of the operation, for the history. user_metadata: text for the history.
        Raises DeltaConcurrentModificationException if another writer's commit forbids ours, and the errors of the rules on a
        commit's actions; then the data files are deleted. Raises CommitOutcomeUnknownError if the store neither confirmed nor
        refused, and CorruptTableError if a winning commit cannot be read; then the data files are kept. Also raises
        CorruptTableError if the commit of the version that was read is damaged, and as Snapshot.check_log if the table has been
        deleted and created again since it was read; then the data files are deleted.
        """
        written = WrittenFiles.of_all(self._written_parts)
        new_paths = list(written.new_paths)  # attempts add the files that they create
        try:
            tags = self._raise_identity_marks(written)
            config = self._complete_config()
            writer = LogWriter(self._store, config)
            if self._snapshot is not None and self.is_recorded:
                delete_files(self._store, written.new_paths)
                return self._snapshot.version
            if self._snapshot is not None:
                self._snapshot.check_log(accepts_recent=True)
                self._snapshot.check_last_commit()
            info = self._commit_info(operation, parameters, metrics, user_metadata)
            if config.enabled("rowTracking"):
                tags[ROW_TRACKING_PRESERVED] = "true"
            prepared = self._prepare(config, written, {**info, "tags": tags} if tags else info)
        except (DeltaError, OSError):
            delete_files(self._store, written.new_paths)
            raise
        try:
            committed, actions = commit_prepared(self._attempts, writer, prepared, new_paths)
        except (CommitOutcomeUnknownError, CorruptTableError):  # the commit may exist, or a winner cannot be read
            raise
        except DeltaError:
            delete_files(self._store, new_paths)
            raise
        delete_files(self._store, _outdated_vectors(written, new_paths, actions))
        if committed.followed_metadata is not None:
            config = TableConfig(config.protocol, committed.followed_metadata)
        # None for a new table, and if other writers have committed since the snapshot.
        previous_snapshot = (
            self._snapshot if self._snapshot is not None and self._snapshot.version == committed.version - 1 else None
        )
        if not is_in_transaction(self._store):  # in a multi-table transaction, the version may still change
            run_post_commit(
                self._store, writer, config, committed.version, actions, before=previous_snapshot, checksum=committed.checksum
            )
        return committed.version

    def commit_nothing(self) -> None:
        """Declare that there is nothing to commit. A transaction over tables still depends on what it read: its ledger stores the
        reads, because the transaction may end in another process. Raises CoordinatorUnavailableError, TransactionEndedError."""
        coordinated = coordination_of(self._store)
        if coordinated is not None and coordinated.transaction is not None and not self.reads.is_empty:
            reads = self.reads
            if reads.only_deleted_rows:  # this commit deletes no rows, so deletions by others from the same files do not matter
                reads = replace(reads, paths=frozenset())
            coordinated.ledger.hold_reads(coordinated.transaction, coordinated.place, reads_to_json(reads))

    # ------------------------------------------------------------ prepare, once

    def _raise_identity_marks(self, written: WrittenFiles) -> dict[str, str]:
        """Put the high water marks of the identity values that tasks assigned into the metadata. Returns tags for commitInfo,
        perhaps none.

        If the commit changes nothing else in the metadata, a tag says so: other writers may then ignore the change.
        Protocol: Identity Columns.
        """
        if not written.identity_marks:
            return {}
        config = self._config()
        schema = with_marks(config.schema, written.identity_marks)
        tags = {} if self._metadata is not None else {IDENTITY_TAG: "true"}
        self._metadata = replace(config.metadata, schema_string=schema_to_json(schema))
        return tags

    def _config(self) -> TableConfig:
        """The table after the commit: the protocol and metadata that were set, or else those of the snapshot."""
        if self._snapshot is None:
            assert self._protocol is not None and self._metadata is not None, "a new table needs a protocol and metadata"
            return TableConfig(self._protocol, self._metadata)
        return TableConfig(self._protocol or self._snapshot.protocol, self._metadata or self._snapshot.metadata)

    def _complete_config(self) -> TableConfig:
        """Protocol and metadata after the commit. If the commit changes them, this first adds to the metadata what a change of
        columns must record, and the coordinator if the table has one. Raises UnsupportedOperationError if the table's catalog
        forbids the change."""
        config = self._config()
        if self._metadata is None and self._protocol is None:  # the commit changes neither
            return config
        if self._snapshot is not None:
            check_contract(self._store, self._snapshot.config, config)
        if config.feature(COORDINATED):
            table_id = (self._snapshot or config).metadata.id  # the ledger knows the table by this id
            self._metadata = replace(config.metadata, id=table_id, configuration=properties_with_coordinator(self._store, config))
            config = self._config()
        metadata = with_usage_flag(None if self._snapshot is None else self._snapshot.config, config)
        if metadata is not config.metadata:
            self._metadata = metadata
        return self._config()

    def _commit_info(
        self, operation: str, parameters: Mapping[str, Any], metrics: Mapping[str, int] | None, user_metadata: str | None
    ) -> dict[str, Any]:
        """commitInfo without times and txnId. Values of parameters and metrics are text, as other clients write them."""
        info: dict[str, Any] = {"operation": operation}
        info["operationParameters"] = {name: _parameter_text(value) for name, value in parameters.items()}
        if user_metadata is not None:
            info["userMetadata"] = user_metadata
        if self._snapshot is not None:
            info["readVersion"] = self._snapshot.version
        info["operationMetrics"] = {name: str(value) for name, value in (metrics or {}).items()}
        info["engineInfo"] = f"pydelta/{own_version()}"
        return self._with_settings(info)

    def _with_settings(self, info: dict[str, Any]) -> dict[str, Any]:
        """Add the keys of CommitSettings. The operation's own parameters are not replaced."""
        settings_info = dict(self._settings.info)
        parameters = {name: _parameter_text(value) for name, value in settings_info.pop("operationParameters", {}).items()}
        info["operation"] = self._settings.operation or info["operation"]
        return {**info, **settings_info, "operationParameters": {**parameters, **info["operationParameters"]}}

    def _app_transactions(self) -> tuple[SetTransaction, ...]:
        """The application transactions of the settings and of this commit. If both name an application, this commit's counts."""
        now_ms = self._clock_ms()
        numbers = self._settings.transactions.items()
        from_settings = {app_id: SetTransaction(app_id, number, now_ms) for app_id, number in numbers}
        return tuple({**from_settings, **self._transactions}.values())

    def _prepare(self, config: TableConfig, written: WrittenFiles, info: dict[str, Any]) -> PreparedCommit:
        """Check the rules on the whole set of actions, and build the commit to try.

        config: the table after the commit. info: commitInfo; this adds the isolation level and whether the commit is a blind
        append.
        Raises UnsupportedOperationError for a rule that is broken, and DataFileError if a row count cannot be read.
        """
        check_row_tracking(self._store.root, config.properties)
        written = replace(
            written, adds=with_row_counts(self._store, tuple(written.adds), gives_row_ids=config.feature("rowTracking"))
        )
        check_actions(self._store.root, config, written, config if self._snapshot is None else self._snapshot.config)
        check_iceberg(self._snapshot, config, written, self._restored_snapshot)
        if self._domains and not config.feature("domainMetadata"):
            raise UnsupportedOperationError(
                f"The metadata domain {min(self._domains)} was to be set, and the table does not support domain metadata. "
                "Nothing was committed. Enable the table feature domainMetadata first.",
                error_class="DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
                sql_state="0A000",
                domains=sorted(self._domains),
            )
        snapshot = self._snapshot
        read_version = NEW_TABLE if snapshot is None else snapshot.version
        prepared = PreparedCommit(
            version=read_version + 1,
            read_version=read_version,
            txn_id=str(uuid.uuid4()),
            commit_info=info,
            protocol=self._protocol,
            metadata=self._metadata,
            adds=written.adds,
            removes=written.removes,
            cdc=written.cdc,
            transactions=self._app_transactions(),
            domains=tuple(self._domains.values()),
            reads=self._reads.as_read_set(),
            isolation=self._isolation_level(config, written),
            in_commit_timestamps=config.enabled("inCommitTimestamp"),
            previous_timestamp_ms=None if snapshot is None else snapshot.timestamp_ms,
            # A commit of 0 bytes has lost its actions, and its checksum may describe them.
            checksum=None if snapshot is None or snapshot.segment.last_commit.size_bytes == 0 else snapshot.checksum,
            row_id_high_water_mark=self._row_id_mark(config),
            next_version_only=self._is_next_required,
            table_id=config.metadata.id if snapshot is None else snapshot.metadata.id,
        )
        info["isolationLevel"] = prepared.isolation.value
        info["isBlindAppend"] = prepared.is_blind_append
        return prepared

    def _isolation_level(self, config: TableConfig, written: WrittenFiles) -> IsolationLevel:
        """The level at which conflicts with other writers are judged. A commit that changes neither rows nor metadata only
        requires that the files which it replaces still exist, which the lowest level checks."""
        changes = [add.data_change for add in written.adds] + [remove.data_change for remove in written.removes]
        if changes and not any(changes) and self._metadata is None:
            return IsolationLevel.SNAPSHOT_ISOLATION
        return self._isolation or IsolationLevel.parse(config.properties.get("delta.isolationLevel") or "Serializable")

    def _row_id_mark(self, config: TableConfig) -> int | None:
        """The highest row id that was assigned so far, -1 if none was; None if the commit assigns no row ids."""
        if not config.feature("rowTracking") or config.properties.boolean(ROW_TRACKING_SUSPENDED):
            return None
        return -1 if self._snapshot is None else highest_assigned_row_id(self._snapshot)


def _outdated_vectors(written: WrittenFiles, new_paths: Sequence[str], actions: Iterable[Action]) -> set[str]:
    """The files of deletion vectors that were written for this commit and that its actions do not name, so that they can be
    deleted: a rebase has replaced them by other vectors, or removed the data file, because both commits together deleted all its
    rows.

    new_paths: all files that were created; those of `written` come first. actions: as they were committed.
    """
    # An add may also name a vector that existed before: that one is not deleted.
    written_vectors = _vector_files(written.adds) & set(written.new_paths)
    merged_vectors = set(new_paths[len(written.new_paths) :])  # attempts create only the vectors that rebases merge
    return (written_vectors | merged_vectors) - _vector_files(actions)


def _vector_files(actions: Iterable[Action]) -> set[str]:
    """The paths of the deletion vector files that the adds among the actions name."""
    vectors = (action.deletion_vector for action in actions if isinstance(action, AddFile))
    return {vector.path for vector in vectors if vector is not None and vector.path is not None}


def _parameter_text(value: Any) -> str | None:
    """A parameter as delta-spark writes it: texts unchanged, nulls as null, everything else as JSON text."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


# ---------------------------------------------------------------- what was read


class _Reads:
    """A ReadSet under construction. _predicates, _timezones and _rows have one item for each call of add_rows."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.paths: set[str] = set()
        self.app_ids: set[str] = set()
        self.only_deleted_rows = self.all_rows = self.all_files = False
        self._predicates: list[str] = []
        self._timezones: list[str] = []
        self._rows: list[ReadRows] = []
        self._partitions: list[PartitionSet] = []

    def add_rows(self, config: TableConfig, predicate: Expression | None, timezone: str) -> None:
        """The rows for which the predicate is true were read; None: all rows. config: of the version that was read."""
        self.all_rows |= predicate is None
        self._predicates.append("true" if predicate is None else to_sql(predicate))
        self._timezones.append(timezone)
        self._rows.append(ReadRows.of(self._store, config, predicate, timezone))

    def add_partitions(self, partitions: PartitionSet) -> None:
        """The rows in these partitions were read."""
        self._partitions.append(partitions)

    def as_read_set(self) -> ReadSet:
        """What was read until now, as one value that does not change."""
        checks = [*(rows.may_match for rows in self._rows), *(partitions.may_match for partitions in self._partitions)]
        return ReadSet(
            predicates=tuple(self._predicates),
            may_match=combine_matches(checks),
            paths=frozenset(self.paths),
            app_ids=frozenset(self.app_ids),
            only_deleted_rows=self.only_deleted_rows,
            all_rows=self.all_rows,
            all_files=self.all_files,
            timezones=tuple(self._timezones),
            partitions=tuple(self._partitions),
        )
