"""A stream that follows the changes of its table's schema: it stops once at each change, and continues with the new schema.

A batch ends before a commit that changes the schema, the properties or the protocol, at an offset of its own. When that batch
is done, the stream records the new schema in its log of schemas, and stops. After a restart it reads with the new schema. So the
rows from before and after a change are never in one batch, and each row is read with the schema of its version.

    tracker = SchemaTracker(config, log, source_path)       # config: of the newest version
    tracker.config                                          # the state that the stream reads with
    tracker.is_change(commit)                               # whether a batch must end before it
    tracker.evolve(commit)                                  # records it, raises SchemaMismatchError

Protocol: Change Metadata; Protocol Evolution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from delta_py.changes.schema_changes import why_incompatible
from delta_py.errors import SchemaMismatchError
from delta_py.log.commit_reader import CommitReader
from delta_py.log.segment import LogFile, list_log
from delta_py.protocol.actions import AddCDCFile, AddFile, Metadata, Protocol, RemoveFile
from delta_py.protocol.identity_columns import without_marks
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore
from delta_py.streaming.commits import StreamCommit
from delta_py.streaming.schema_evolution import Allowed, check_allowed, column_changes, java_hash
from delta_py.streaming.schema_log import SchemaLog, TrackedSchema
from delta_py.types.schema import StructType, parse_schema, type_name


class SchemaTracker:
    """Keeps the log of the schemas with which one stream reads. table: the state to read with while the log has no entry. log:
    the stream's log of schemas. source_path: identifies the stream (see TrackedSchema)."""

    def __init__(self, table: TableConfig, log: SchemaLog, source_path: str) -> None:
        log.check_owner(table.metadata.id, source_path)
        self._table, self._log, self._source_path = table, log, source_path

    @property
    def has_schema(self) -> bool:
        """Whether a schema was recorded: the log has an entry."""
        return self._log.newest is not None

    @property
    def config(self) -> TableConfig:
        """The state that the stream reads with."""
        return self._table if self._log.newest is None else self._log.newest.config(self._table)

    def check_allowed(self, allowed: Allowed) -> None:
        """Check that the user lets the stream continue with the newest schema. Raises as column_changes and check_allowed do."""
        newest, previous = self._log.newest, self._log.previous
        if newest is None or previous is None:
            return
        changes = column_changes(previous.metadata, newest.metadata, newest.version)
        check_allowed(changes, allowed, previous.version, newest.version, java_hash(self._source_path))

    def is_change(self, commit: StreamCommit) -> bool:
        """Whether the commit changes the state that the stream reads with."""
        newest = self._log.newest
        if newest is None or newest.version >= commit.version:
            return False
        return _is_relevant_change(self.config, commit.protocol, commit.metadata)

    def begin(self, state: TableConfig, version: int) -> None:
        """Record the schema with which the stream begins. state: of `version`.

        Raises SchemaMismatchError (DELTA_STREAMING_METADATA_EVOLUTION) if the stream was created for another schema.
        """
        is_other_schema = _is_relevant_change(self.config, state.protocol, state.metadata)
        self._record(state, version)
        if is_other_schema:
            self._stop()

    def begin_in_batch(self, states: list[tuple[int, TableConfig]], end: int) -> None:
        """Record the schema with which the stream begins, if it begins with a batch that was planned before the stream had a log
        of schemas: one schema that can read all rows of the batch, which is the newest.

        states: (version, state), ascending: the state at the first version of the batch, and then the state after each change in
        the batch. end: the last version that the batch reads.

        Raises SchemaMismatchError (DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA) if no schema fits them all.
        """
        first, last = states[0][0], states[-1][1]
        for version, state in states:
            reason = why_incompatible(state.metadata, last.metadata, widening=True)
            if reason is not None:
                raise SchemaMismatchError(
                    f"The stream was stopped in a batch with the versions {first} to {end} of the table at "
                    f"{self._log.table_root}, in which the schema changed after version {version}: {reason}. No schema reads "
                    "them all, and the batch cannot be divided. Start again with a new checkpoint.",
                    error_class="DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
                    sql_state="22000",
                    first=first,
                    last=end,
                )
        self.begin(last, end)

    def begin_again(self, state: TableConfig, version: int) -> None:
        """Record the schema again: the stream has read nothing yet, and begins with `version` now, so the recorded schema may be
        outdated.

        Raises SchemaMismatchError (DELTA_STREAMING_METADATA_EVOLUTION).
        """
        newest = self._log.newest
        assert newest is not None, "a log with entries"
        if version >= newest.version and _is_relevant_change(self.config, state.protocol, state.metadata):
            self._record(state, version, replaces_newest=True)
            self._stop()

    def evolve(self, commit: StreamCommit) -> NoReturn:
        """Record the changes of the commit. Raises SchemaMismatchError (DELTA_STREAMING_METADATA_EVOLUTION)."""
        config = self.config
        self._record(TableConfig(commit.protocol or config.protocol, commit.metadata or config.metadata), commit.version)
        self._stop()

    def _record(self, state: TableConfig, version: int, *, replaces_newest: bool = False) -> None:
        """Add an entry to the log of schemas. replaces_newest: as in SchemaLog.append."""
        self._log = self._log.append(TrackedSchema.of(state, version, self._source_path), replaces_newest=replaces_newest)

    def _stop(self) -> NoReturn:
        """Stop the query, after a change was recorded: the error says what the new columns are."""
        newest = self._log.newest
        assert newest is not None, "it was just noted"
        columns = ", ".join(f"{f.name} {type_name(f.data_type)}" for f in self.config.schema.fields)
        raise SchemaMismatchError(
            f"The schema, the properties or the protocol of the table at {self._log.table_root} changed with version "
            f"{newest.version}. The stream has read all before it, and the change is noted in its log of schemas at "
            f"{self._log.location}: load the stream again and restart the query to go on. Its columns are now: {columns}.",
            error_class="DELTA_STREAMING_METADATA_EVOLUTION",
            sql_state="22000",
            version=newest.version,
        )


def merge_bare_changes(log: SchemaLog, table: ObjectStore) -> SchemaLog:
    """The log of schemas, in which the newest entry also has the changes of the commits that follow its version and change only
    metadata or protocol. So the stream stops once for consecutive changes, and not at each of them. Returns the same log if these
    commits change nothing that matters."""
    newest = log.newest
    if newest is None:
        return log
    last = newest
    for file, protocol, metadata in _bare_changes(table, newest.version):
        if file.version == newest.version:
            continue
        last = replace(last, version=file.version, protocol=protocol or last.protocol)
        if metadata is not None:
            last = last.with_metadata(metadata)
    is_same = last.protocol == newest.protocol and _relevant_parts(last.metadata) == _relevant_parts(newest.metadata)
    return log if is_same else log.append(last, replaces_newest=True)


def _bare_changes(table: ObjectStore, version: int) -> Iterator[tuple[LogFile, Protocol | None, Metadata | None]]:
    """Yields (commit, protocol, metadata) for the commits from a version on that change only metadata or protocol, up to the
    first other commit. protocol, metadata: None if the commit does not change it."""
    commits, reader = list_log(table, version).commits, CommitReader(table)
    while (file := commits.get(version)) is not None:
        protocol, metadata = None, None
        for action in reader.actions(file):
            match action:
                case AddFile() | RemoveFile() | AddCDCFile():
                    return
                case Protocol():
                    protocol = action
                case Metadata():
                    metadata = action
        if protocol is None and metadata is None:
            return
        yield file, protocol, metadata
        version += 1


def reads_same_rows(first: TableConfig, second: TableConfig) -> bool:
    """Whether a stream reads the same rows with both states of the table, so that it need not stop for the change."""
    return not _is_relevant_change(first, second.protocol, second.metadata)


def _is_relevant_change(config: TableConfig, protocol: Protocol | None, metadata: Metadata | None) -> bool:
    """Whether a change of the table's protocol or metadata (None: no change) matters to a stream that reads with `config`."""
    if protocol is not None and protocol != config.protocol:
        return True
    return metadata is not None and _relevant_parts(metadata) != _relevant_parts(config.metadata)


def _relevant_parts(metadata: Metadata) -> tuple[StructType, tuple[str, ...], dict[str, str]]:
    """(schema, partition columns, properties of Delta): a stream stops only if one of these changes. The high water marks of
    identity columns are left out, because each append changes them."""
    schema = without_marks(parse_schema(metadata.schema_string))
    delta_properties = {name: value for name, value in metadata.configuration.items() if name.startswith("delta.")}
    return schema, tuple(name.lower() for name in metadata.partition_columns), delta_properties
