"""One commit as a stream reads it: the files that it added, in their order, and reasons to stop the stream.

    commit = read_commit(reader, log_file, with_stats=False)
    check_rows_only_added(commit, rules, root)

Protocol: Add File and Remove File; Change Metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from delta_py.changes.schema_changes import why_incompatible
from delta_py.changes.spilling_file_list import collect_batches
from delta_py.errors import CorruptTableError, SchemaMismatchError, UnsupportedOperationError
from delta_py.log.commit_reader import FILE_SCHEMA, ONLY_FOR_COMMITS, CommitReader, adds_batch, changes_rows, corrupt_line
from delta_py.log.file_keys import path_and_key
from delta_py.log.segment import LogFile
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.features import check_readable
from delta_py.protocol.paths import decode_path
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.storage.store import ObjectStore

_LINES_AT_ONCE = 10_000  # adds that are converted to one Arrow batch


def stream_schema(*, with_stats: bool) -> pa.Schema:
    """The columns of files that a stream keeps in memory: FILE_SCHEMA without those that only commits need. with_stats: with the
    files' statistics."""
    dropped = ONLY_FOR_COMMITS - {"stats"} if with_stats else ONLY_FOR_COMMITS
    return pa.schema([f for f in FILE_SCHEMA if f.name not in dropped])


@dataclass(frozen=True, slots=True)
class StreamCommit:
    """What a commit means for a stream. file: the commit's log file. files: those that add rows (dataChange), in the commit's
    order: stream_schema. removed_path: the path of one file from which the commit removed rows, or None. protocol, metadata: None
    if the commit does not change it."""

    file: LogFile
    files: pa.Table
    removed_path: str | None
    protocol: Protocol | None
    metadata: Metadata | None

    @property
    def version(self) -> int:
        return self.file.version


def read_commit(reader: CommitReader, file: LogFile, *, with_stats: bool) -> StreamCommit:
    """Read a commit. with_stats: keep the statistics of the files. Raises CorruptTableError, LogFileNotFoundError."""
    parser = _CommitParser(reader, file)
    schema = stream_schema(with_stats=with_stats)
    files = collect_batches(parser.batches(schema), schema)
    return StreamCommit(
        file=file, files=files, removed_path=parser.removed_path, protocol=parser.protocol, metadata=parser.metadata
    )


class _CommitParser:
    """Reads the actions of one commit. removed_path, protocol and metadata are complete when `batches` has been read to its end.

    If a commit adds a file more than once, the file is added once, with the values of the last action, as in the table. A commit
    is refused if it is so large that the batch with an earlier action on the file was already returned.
    """

    def __init__(self, reader: CommitReader, file: LogFile) -> None:
        self._reader, self._file = reader, file
        self._yielded_keys: set[str] = set()
        self.removed_path: str | None = None
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The files that the commit adds, in its order, with the columns of `schema`. Raises CorruptTableError."""
        adds: dict[str, dict[str, Any]] = {}  # the last add of each file, by the file's key
        try:
            for first, lines in self._reader.pieces(self._file):
                for number, line in enumerate(lines, first):
                    self._handle_line(number, line, adds)
                    if len(adds) == _LINES_AT_ONCE:
                        yield _adds_batch(adds, schema)
                        self._yielded_keys |= adds.keys()
                        adds = {}
            if adds:
                yield _adds_batch(adds, schema)
        except (pa.ArrowException, AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._find_parse_error() from error

    def _handle_line(self, number: int, line: bytes, adds: dict[str, dict[str, Any]]) -> None:
        """Add the line's add action to `adds`, or record what another action means for the stream. Actions without a meaning for
        it are ignored. number: of the line, for errors. adds: file key -> add action as JSON."""
        if not line.strip():
            return
        action = orjson.loads(line)
        add, remove = action.get("add"), action.get("remove")
        if add is not None:
            if changes_rows(add):
                key = self._key(number, add)
                if key in self._yielded_keys:
                    raise corrupt_line(self._file, number, "an action repeats another one of the same file.")
                adds[key] = add
        elif remove is not None:
            if changes_rows(remove) and self.removed_path is None:
                self.removed_path = decode_path(remove["path"])
        elif "protocol" in action:
            self.protocol = Protocol.from_json(action["protocol"])
        elif "metaData" in action:
            self.metadata = Metadata.from_json(action["metaData"])

    def _key(self, number: int, add: Any) -> str:
        """What identifies the file of an add: its path and deletion vector. number: of the line, for errors."""
        try:
            return path_and_key(add)[1]
        except CorruptTableError as error:
            raise corrupt_line(self._file, number, error.message) from error

    def _find_parse_error(self) -> CorruptTableError:
        """The error of a commit that did not parse, in words: the parser of single actions finds the reason."""
        try:
            for _ in self._reader.actions(self._file):
                pass
        except CorruptTableError as error:
            return error
        return corrupt_line(self._file, 1, "an action of the commit has another form than the protocol gives it.")


def _adds_batch(adds: dict[str, dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """The add actions as an Arrow batch with the columns of `schema`."""
    return adds_batch([*adds.values()], [decode_path(add["path"]) for add in adds.values()]).select(schema.names)


# ---------------------------------------------------------------- reasons to stop a stream


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """Changes that the reader of a stream allows. ignore_changes: rewritten files are read again as a whole; ignore_deletes:
    commits that only delete are skipped; skip_change_commits: every commit that removes rows is skipped."""

    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False


def check_rows_only_added(commit: StreamCommit, rules: ChangeRules, root: str) -> None:
    """Raise for a commit that removed rows, unless the rules allow it. A stream of added rows cannot express removed rows. root:
    of the table.

    Raises UnsupportedOperationError: DELTA_SOURCE_TABLE_IGNORE_CHANGES, DELTA_SOURCE_IGNORE_DELETE.
    """
    if commit.removed_path is None or rules.ignore_changes or rules.skip_change_commits:
        return
    if commit.files.num_rows:
        raise UnsupportedOperationError(
            f"Version {commit.version} of the table at {root} changed rows (file {commit.removed_path}, for one, was replaced), "
            "which a stream of added rows cannot tell. Set the option skipChangeCommits=true to pass over such commits, read "
            "the change feed with readChangeFeed=true, or start again with a new checkpoint.",
            error_class="DELTA_SOURCE_TABLE_IGNORE_CHANGES",
            sql_state="0A000",
            version=commit.version,
            path=commit.removed_path,
        )
    if not rules.ignore_deletes:
        raise UnsupportedOperationError(
            f"Version {commit.version} of the table at {root} deleted rows (file {commit.removed_path}, for one), which a "
            "stream of added rows cannot tell. Set the option ignoreDeletes=true or skipChangeCommits=true to pass over such "
            "commits, or read the change feed with readChangeFeed=true.",
            error_class="DELTA_SOURCE_IGNORE_DELETE",
            sql_state="0A000",
            version=commit.version,
            path=commit.removed_path,
        )


@dataclass(frozen=True, slots=True)
class ReadState:
    """The version of the table with whose schema a stream reads all rows. config: of the table at `version`. store: of the table.
    has_start: whether the user set the version or time at which the stream begins, for error messages."""

    config: TableConfig
    version: int
    store: ObjectStore
    has_start: bool = False

    @property
    def root(self) -> str:
        return self.store.root


def check_state(read_state: ReadState, protocol: Protocol | None, metadata: Metadata | None, version: int) -> None:
    """Check that the stream can return rows of the state that `version` sets.

    protocol, metadata: of this state, or only what the commit of `version` changed; None for what it did not change.
    Raises UnsupportedTableFeatureError; SchemaMismatchError: DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE,
    DELTA_SCHEMA_CHANGED_WITH_VERSION, DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS,
    DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG.
    """
    config, root = read_state.config, read_state.root
    new_config = check_table(config, protocol, metadata, version, root)
    if metadata is None:
        return
    reason = why_incompatible(metadata, config.metadata, widening=True)
    if reason is None:
        return
    older, newer = (config, new_config) if version > read_state.version else (new_config, config)
    # A restarted query reads all rows with the newest schema. That does not help if column mapping was turned off, or if columns
    # of a table with column mapping were renamed or dropped: then only a log of schemas helps.
    older_mode, newer_mode = older.column_mapping_mode, newer.column_mapping_mode
    mapping_ended = older_mode != "none" and newer_mode == "none"
    are_mapped = older_mode != "none" and newer_mode != "none"
    if mapping_ended or (are_mapped and why_incompatible(config.metadata, metadata, widening=True) is not None):
        raise SchemaMismatchError(
            f"Version {version} of the table at {root} has another schema than version {read_state.version}, for which the "
            f"stream was made, and more differs than that columns were added or widened: {reason}. Rows from before and "
            "after cannot be read with one schema. Name a directory below the checkpoint in the option schemaTrackingLocation, "
            "and the stream reads each version with its own; or start again with a new checkpoint, with startingVersion set to "
            "the version from which the schema is the new one.",
            error_class="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
            sql_state="42KD4",
            version=version,
            read_version=read_state.version,
            reason=reason,
        )
    later = f", and with a startingVersion or startingTimestamp after version {version}" if read_state.has_start else ""
    raise SchemaMismatchError(
        f"The schema of the table at {root} is different in version {version} than in version {read_state.version}, for which "
        f"the stream was made: {reason}. Restart the query, and it reads on with the new schema. If the restarted query fails "
        f"again, the change cannot be followed: start again with a new checkpoint{later}.",
        error_class="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS" if read_state.has_start else "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        sql_state="KD007",
        version=version,
        read_version=read_state.version,
        reason=reason,
    )


def check_table(
    config: TableConfig, protocol: Protocol | None, metadata: Metadata | None, version: int, root: str
) -> TableConfig:
    """Check that the state which `version` sets can be read, and is of the same table. Returns this state.

    config: the state that the stream reads with. protocol, metadata: as in check_state. Raises
    UnsupportedTableFeatureError, SchemaMismatchError (DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE)."""
    new_config = TableConfig(protocol or config.protocol, metadata or config.metadata)
    if protocol is not None and metadata is not None:
        new_config.require(Operation.READ)
    elif protocol is not None:  # it need not fit the metadata of another version
        check_readable(protocol)
    check_table_id(config.metadata.id, new_config.metadata.id, root, version)
    return new_config


def check_table_id(expected: str, found_id: str, root: str, version: int | None = None) -> None:
    """Raise SchemaMismatchError (DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE) if the ids of the tables differ: the table was
    replaced. version: where the id was found; None for the newest."""
    if expected != found_id:
        where = "" if version is None else f" in version {version}"
        raise SchemaMismatchError(
            f"The table at {root} was replaced by another one{where}: the stream began with the table of id {expected}, and "
            f"there is now one of id {found_id}. Start again with a new checkpoint, and empty what the stream has written if it "
            "shall hold the new table's rows only.",
            error_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            sql_state="55019",
            expected=expected,
            found=found_id,
        )
