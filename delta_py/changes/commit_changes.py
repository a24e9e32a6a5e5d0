"""The changes of commits, as a table of the files to read for them.

    for actions in read_actions(reader, log_files):                           # of one commit or more
        changed = CommitChanges(store, pool, times_ms, partitions).find_changed_files(actions)     # CHANGED_FILES

If a commit has change files, they are read. Otherwise its changes follow from the data files that it added and removed. If one
commit removed a file and added it again, the changed rows are those in which the file's deletion vectors differ.
A change's place is the number of its action among the commit's change files. Without change files it is the number among all adds
and removes that change data. So a place means the same after a restart, and to delta-spark's streams.
Small commits are processed many at a time: Arrow takes as long for a few rows as for thousands.
Protocol: Change Data Files; Add CDC File; Reader Requirements for AddCDCFile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_py.changes.schema_changes import why_not_found
from delta_py.changes.spilling_file_list import collect_batches
from delta_py.errors import (
    ChangeDataFeedError,
    CorruptTableError,
    DeletionVectorError,
    LogFileNotFoundError,
    VersionNotFoundError,
)
from delta_py.log.commit_reader import (
    DELETION_VECTOR_TYPE,
    FILE_SCHEMA,
    ONLY_FOR_COMMITS,
    CommitReader,
    changes_rows,
    corrupt_line,
    longs,
    text_map,
    texts,
)
from delta_py.log.segment import LogFile
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, read_deletion_vector
from delta_py.protocol.paths import decode_path
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_groups import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, SELECTION
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore

# The columns of a changed file that are read. _change_type: null for a change file, whose rows contain it. selection: if not
# null, only its rows are read. stats: the statistics of the rows that are read. place: see the module's docstring.
PLACE = "place"
_FILES = pa.schema([f for f in FILE_SCHEMA if f.name not in ONLY_FOR_COMMITS])
_CHANGE_FIELDS = (
    pa.field(SELECTION, DELETION_VECTOR_TYPE),
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(COMMIT_VERSION, pa.int64()),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")),
)
PLANNED_CHANGES = pa.schema([*_FILES, *_CHANGE_FIELDS])
CHANGED_FILES = pa.schema([*PLANNED_CHANGES, FILE_SCHEMA.field("stats"), pa.field(PLACE, pa.int64())])

Files = TypeVar("Files", pa.Table, pa.RecordBatch)

_KIND = "kind"
_ADD, _REMOVE, _CHANGE_FILE = 0, 1, 2
_ACTIONS = pa.schema([*_FILES, FILE_SCHEMA.field("stats"), pa.field(COMMIT_VERSION, pa.int64()), pa.field(_KIND, pa.int8())])
_LINES_AT_ONCE = 10_000  # about this many file actions are Python objects at a time


@dataclass(slots=True)
class CommitFacts:
    """What a commit contains other than its files. protocol, metadata: None if the commit does not change them. info: the fields
    of commitInfo; empty if the commit has none."""

    version: int
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    has_change_files: bool = False

    @property
    def is_idle_merge(self) -> bool:
        """Whether the commit is a MERGE that rewrote files without changing a row: the row counts in its metrics are 0. Then its
        adds and removes are no changes."""
        metrics = self.info.get("operationMetrics")
        if self.info.get("operation") != "MERGE" or not isinstance(metrics, dict):
            return False
        return all(str(metrics.get(f"numTargetRows{change}")) == "0" for change in ("Inserted", "Updated", "Deleted"))


@dataclass(frozen=True, slots=True)
class ChangeActions:
    """The file actions of one or several consecutive commits. If a commit changes protocol or metadata, it is the only one.
    files: for each commit, its change files or, if it has none, its adds and removes that change data, in the order of the log.
    The columns are _ACTIONS and PLACE."""

    commits: tuple[CommitFacts, ...]
    files: pa.Table

    @classmethod
    def of(cls, commits: Sequence[CommitFacts], files: pa.Table) -> ChangeActions:
        """Drop the adds and removes of commits that have change files, and give each action its place. files: _ACTIONS, with all
        file actions of the commits."""
        with_change_files = [commit.version for commit in commits if commit.has_change_files]
        if with_change_files:
            has_change_file_commit = pc.is_in(files[COMMIT_VERSION], value_set=pa.array(with_change_files, pa.int64()))
            files = files.filter(pc.or_(pc.equal(files[_KIND], _CHANGE_FILE), pc.invert(has_change_file_commit)))
        # The actions of a commit are consecutive. first[place]: for each action, the row of the first action of its commit.
        _, first, place = np.unique(files[COMMIT_VERSION].to_numpy(), return_index=True, return_inverse=True)
        places = np.arange(files.num_rows) - first[place] if files.num_rows else np.array([], np.int64)
        return cls(tuple(commits), files.append_column(PLACE, pa.array(places)))


@dataclass(frozen=True, slots=True)
class _ParsedCommit:
    """A commit before its file actions are converted to Arrow. lines: the file actions; of a large commit, a part of them."""

    file: LogFile
    facts: CommitFacts
    lines: list[_Line]


def read_actions(reader: CommitReader, files: Iterable[LogFile]) -> Iterator[ChangeActions]:
    """Yield the actions of the log files, in their order. Small commits are converted to Arrow together, because each conversion
    has a fixed cost. A commit that is large, or changes protocol or metadata, is converted alone. Raises CorruptTableError,
    LogFileNotFoundError."""
    small_commits: list[_ParsedCommit] = []
    line_count = 0
    for file in files:
        facts = CommitFacts(file.version)
        pieces = _line_pieces(reader, file, facts)
        first_piece = next(pieces, [])
        is_alone = len(first_piece) == _LINES_AT_ONCE or facts.protocol is not None or facts.metadata is not None
        if small_commits and (is_alone or line_count + len(first_piece) > _LINES_AT_ONCE):
            yield _actions_of_small_commits(reader, small_commits)
            small_commits, line_count = [], 0
        if is_alone:
            batches = (_actions_batch(reader, [_ParsedCommit(file, facts, lines)]) for lines in chain([first_piece], pieces))
            actions = collect_batches(batches, _ACTIONS)
            yield ChangeActions.of([facts], actions)
        else:
            small_commits.append(_ParsedCommit(file, facts, first_piece))
            line_count += len(first_piece)
    if small_commits:
        yield _actions_of_small_commits(reader, small_commits)


def _actions_of_small_commits(reader: CommitReader, commits: Sequence[_ParsedCommit]) -> ChangeActions:
    return ChangeActions.of(
        [parsed.facts for parsed in commits], pa.Table.from_batches([_actions_batch(reader, commits)], _ACTIONS)
    )


_Line: TypeAlias = tuple[int, dict[str, Any]]  # the kind of a file action (_ADD, _REMOVE or _CHANGE_FILE), and its JSON


def _line_pieces(reader: CommitReader, file: LogFile, facts: CommitFacts) -> Iterator[list[_Line]]:
    """The file actions in pieces of _LINES_AT_ONCE, the last one smaller. All other actions are stored in the facts. Raises
    CorruptTableError."""
    pending: list[_Line] = []
    try:
        for _, lines in reader.pieces(file):
            for line in lines:
                _add_action(line, pending, facts)
                if len(pending) == _LINES_AT_ONCE:
                    yield pending
                    pending = []
    except _MALFORMED as error:
        raise _parse_error(reader, file) from error
    if pending:
        yield pending


# What orjson, Arrow and this module raise for a line that is not an action of the form that the protocol demands.
_MALFORMED = (CorruptTableError, pa.ArrowException, AttributeError, KeyError, TypeError, ValueError, OverflowError)


def _add_action(line: bytes, actions: list[_Line], facts: CommitFacts) -> None:
    """Parse a line of a commit. Append a file action to `actions`, and store any other action in `facts`. File actions that only
    rearrange rows (dataChange is false) are left out.
    """
    if not line.strip():
        return
    action = orjson.loads(line)
    for kind, name in ((_ADD, "add"), (_REMOVE, "remove"), (_CHANGE_FILE, "cdc")):
        body = action.get(name)
        if body is not None:
            facts.has_change_files |= kind == _CHANGE_FILE
            # A change file always has changes. An add or remove without dataChange counts as one that changes rows.
            if kind == _CHANGE_FILE or "dataChange" not in body or changes_rows(body):
                actions.append((kind, body))
            return
    if "protocol" in action:
        facts.protocol = Protocol.from_json(action["protocol"])
    elif "metaData" in action:
        facts.metadata = Metadata.from_json(action["metaData"])
    elif isinstance(info := action.get("commitInfo"), dict):
        facts.info = info


def _parse_error(reader: CommitReader, file: LogFile) -> CorruptTableError:
    """The error for a commit that could not be parsed. The slower parser of single actions finds the reason."""
    try:
        for _ in reader.actions(file):
            pass
    except CorruptTableError as error:
        return error
    return corrupt_line(file, 1, "an action of the commit has another form than the protocol gives it.")


def _actions_batch(reader: CommitReader, commits: Sequence[_ParsedCommit]) -> pa.RecordBatch:
    """The file actions of the commits as one batch of _ACTIONS. Raises CorruptTableError for a damaged commit."""
    try:
        return _actions_from_lines([line for parsed in commits for line in parsed.lines], commits)
    except _MALFORMED as error:
        if len(commits) == 1:
            raise _parse_error(reader, commits[0].file) from error
    for parsed in commits:  # each one alone: this raises for the damaged commit, and names it
        _actions_batch(reader, [parsed])
    raise AssertionError("what fails together fails alone")


def _actions_from_lines(lines: Sequence[_Line], commits: Sequence[_ParsedCommit]) -> pa.RecordBatch:
    """The file actions as one batch of _ACTIONS. commits: those of the lines, in the same order. Raises ValueError if an action
    lacks a value that the protocol requires."""
    kinds, bodies = pa.array([kind for kind, _ in lines], pa.int8()), [body for _, body in lines]
    sizes, times = (longs([body.get(name) for body in bodies]) for name in ("size", "modificationTime"))
    of_add, of_remove = pc.equal(kinds, _ADD), pc.equal(kinds, _REMOVE)
    values = [body.get("partitionValues") for body in bodies]
    without_values = pa.array([value is None for value in values], pa.bool_())
    missing_columns = (
        pc.and_(sizes.is_null(), pc.invert(of_remove)),
        pc.and_(times.is_null(), of_add),
        pc.and_(without_values, pc.invert(of_remove)),
        pc.less(sizes, 0),
    )
    if any(pc.any(lacks).as_py() for lacks in missing_columns):
        raise ValueError("a size, time or partition is missing, or a size is negative")
    columns = {
        "path": pa.array([decode_path(body["path"]) for body in bodies], pa.string()),
        "partition_values": text_map([{} if value is None else value for value in values], without_values),
        "size": sizes.fill_null(0),
        "modification_time": pc.if_else(of_add, times, 0),
        "deletion_vector": pa.array([body.get("deletionVector") for body in bodies], _FILES.field("deletion_vector").type),
        "base_row_id": longs([body.get("baseRowId") for body in bodies]),
        "default_row_commit_version": longs([body.get("defaultRowCommitVersion") for body in bodies]),
        "stats": texts([body.get("stats") for body in bodies]),
        COMMIT_VERSION: pa.array([parsed.facts.version for parsed in commits for _ in parsed.lines], pa.int64()),
        _KIND: kinds,
    }
    return pa.record_batch([columns[name] for name in _ACTIONS.names], schema=_ACTIONS)


# ---------------------------------------------------------------- the files to read


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """Computes the files to read for the changes of commits. pool: threads that read deletion vectors. times_ms: the time of each
    version, in ms since 1970. partitions: physical names of the partition columns that the table has after these commits."""

    store: ObjectStore
    pool: ThreadPoolExecutor
    times_ms: Mapping[int, int]
    partitions: frozenset[str]

    def find_changed_files(self, actions: ChangeActions) -> pa.Table:
        """CHANGED_FILES, sorted by version and place.

        Raises ChangeDataFeedError (DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA,
        DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA), DeletionVectorError.
        """
        files = _last_actions(
            _drop_data_files_of(actions.files, [facts.version for facts in actions.commits if facts.is_idle_merge])
        )
        kinds = files[_KIND].to_numpy()
        change_files = files.filter(pa.array(kinds == _CHANGE_FILE))
        adds, removes = (files.filter(pa.array(kinds == kind)) for kind in (_ADD, _REMOVE))
        if self._has_same_partitions(actions.commits, removes):
            removes = self._with_null_values(removes)
        pieces = [(change_files, None, None), *self._data_file_pieces(adds, removes)]
        if any(kind == "delete" and piece.num_rows for piece, kind, _ in pieces):
            self._check_columns(actions.commits)
        changed = [self._changed_files(piece, kind, selection) for piece, kind, selection in pieces if piece.num_rows]
        if len(changed) == 1:
            return changed[0]
        order = [(COMMIT_VERSION, "ascending"), (PLACE, "ascending")]
        return pa.concat_tables([CHANGED_FILES.empty_table(), *changed]).sort_by(order)

    def _data_file_pieces(self, adds: pa.Table, removes: pa.Table) -> Iterator[tuple[pa.Table, str, pa.ChunkedArray | None]]:
        """The files to read for added and removed files: yields (files, the type of their changes, selection). selection: for
        each file a deletion vector, if only the rows in this vector changed; None if all rows of the files changed."""
        if removes.num_rows and adds.num_rows:
            keys = _file_keys(pa.concat_tables([adds, removes]))
            added_keys, removed_keys = pa.array(keys[: adds.num_rows]), pa.array(keys[adds.num_rows :])
            removed_index = pc.index_in(added_keys, value_set=removed_keys)
            readded_removes, readded_adds = removes.take(removed_index.drop_null()), adds.filter(removed_index.is_valid())
            adds, removes = (
                adds.filter(removed_index.is_null()),
                removes.filter(pc.invert(pc.is_in(removed_keys, value_set=added_keys))),
            )
            if readded_adds.num_rows:
                has_deletes, has_restores = self._vector_differences(readded_removes, readded_adds)
                # A read of the old file leaves out the rows in its own deletion vector. So the remaining rows in the new
                # vector are those that this commit deleted. The same holds for restored rows, with the vectors exchanged.
                yield (
                    self._check_readable(readded_removes.filter(has_deletes)),
                    "delete",
                    readded_adds["deletion_vector"].filter(has_deletes),
                )
                yield readded_adds.filter(has_restores), "insert", readded_removes["deletion_vector"].filter(has_restores)
        yield self._check_readable(removes), "delete", None
        yield adds, "insert", None

    def _changed_files(self, files: pa.Table, change_type: str | None, selection: pa.ChunkedArray | None) -> pa.Table:
        """CHANGED_FILES from file actions. change_type, selection: as in _with_change_columns."""
        versions, version_indexes = np.unique(files[COMMIT_VERSION].to_numpy(), return_inverse=True)
        times_us = np.array([self.times_ms[version] * 1000 for version in versions.tolist()], np.int64)[version_indexes]
        with_columns = _with_change_columns(
            files.drop_columns([COMMIT_VERSION]), change_type, files[COMMIT_VERSION], pa.array(times_us), selection
        )
        return with_columns.select(CHANGED_FILES.names)

    # ------------------------------------------------------------ columns of removed files

    def _check_columns(self, commits: Sequence[CommitFacts]) -> None:
        """Raises ChangeDataFeedError if a commit that deletes rows changed the columns so that values of the deleted rows would
        be read as null."""
        for facts in commits:
            if facts.metadata is None:
                continue
            try:
                previous_config = self._config_before(facts)
            except ChangeDataFeedError:
                if Snapshot.load(self.store).config.feature("columnMapping"):
                    raise
                continue  # without column mapping, the files name the columns as the table does
            reason = why_not_found(previous_config.metadata, facts.metadata)
            if reason is not None:
                raise ChangeDataFeedError(
                    f"Version {facts.version} replaced rows and changed the columns ({reason}), so the rows that it deleted "
                    "cannot be returned with the new columns. Leave the version out of the range.",
                    error_class="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
                    sql_state="0AKDC",
                    version=facts.version,
                    reason=reason,
                )

    def _config_before(self, facts: CommitFacts) -> TableConfig:
        """The table's configuration before a commit that removes files. Raises ChangeDataFeedError if the log does not have the
        version before any more."""
        try:
            return Snapshot.load(self.store, facts.version - 1).config
        except (VersionNotFoundError, LogFileNotFoundError) as error:
            raise ChangeDataFeedError(
                f"Version {facts.version} wrote the table's columns again and removed files. Version {facts.version - 1} has "
                f"the columns of these files, and it is no longer in the log. Start after version {facts.version}.",
                error_class="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
                sql_state="0AKDC",
                version=facts.version,
            ) from error

    # ------------------------------------------------------------ partition values of removes

    def _has_same_partitions(self, commits: Sequence[CommitFacts], removes: pa.Table) -> bool:
        """Whether the table was partitioned by the same columns before the commits. This is assumed if all removes have as many
        partition values as there are partition columns. Otherwise each commit with metadata (RESTORE always writes metadata) is
        compared with the version before it."""
        if not removes.num_rows or (_map_lengths(_in_one_piece(removes["partition_values"])) == len(self.partitions)).all():
            return True
        previous_configs = (self._config_before(facts) for facts in commits if facts.metadata is not None)
        return all(frozenset(config.physical_partition_columns) == self.partitions for config in previous_configs)

    def _with_null_values(self, removes: pa.Table) -> pa.Table:
        """The removes with null for each partition column that they leave out, because delta-spark omits null values. The
        caller does not use this for commits that change the partition columns: there a missing name may mean that the file is
        partitioned by other columns."""
        values, names = _in_one_piece(removes["partition_values"]), sorted(self.partitions)
        is_fillable = pc.and_(values.is_valid(), pa.array(self._foreign_name_counts(values) == 0))
        if not names or not pc.any(is_fillable).as_py():
            return removes
        columns = pa.concat_arrays([pc.map_lookup(values, pa.scalar(name), "first") for name in names])
        # `columns` has all values of the first name, then all of the second, ...; by_row puts the values of each row together.
        by_row = np.arange(len(columns)).reshape(len(names), len(values)).T.ravel()
        offsets = pa.array(np.arange(len(values) + 1) * len(names), pa.int32())
        complete_values = pa.MapArray.from_arrays(offsets, pa.array(names * len(values), pa.string()), columns.take(by_row))
        place = removes.schema.get_field_index("partition_values")
        return removes.set_column(place, removes.schema.field(place), pc.if_else(is_fillable, complete_values, values))

    def _check_readable(self, deleted: pa.Table) -> pa.Table:
        """Return the same removes. Raises ChangeDataFeedError for a remove whose rows cannot be read with the table's partition
        columns: a remove must have a value for each partition column, and for no other column."""
        if not deleted.num_rows:
            return deleted
        values = _in_one_piece(deleted["partition_values"])
        has_values = values.is_valid().to_numpy(zero_copy_only=False)
        is_unreadable = np.where(
            has_values,
            (_map_lengths(values) != len(self.partitions)) | (self._foreign_name_counts(values) > 0),
            bool(self.partitions),
        )
        if is_unreadable.any():
            first_index = int(np.argmax(is_unreadable))
            self._refuse_remove(
                deleted["path"][first_index].as_py(), values[first_index].as_py(), deleted[COMMIT_VERSION][first_index].as_py()
            )
        return deleted

    def _refuse_remove(self, path: str, values: list[tuple[str, str | None]] | None, version: int) -> NoReturn:
        """Raise the error for a remove whose rows cannot be read. values: its partition values; None if it has none."""
        if values is None:
            raise ChangeDataFeedError(
                f"The remove of {path} in version {version} does not say the file's partition values, so the rows that it "
                "deleted cannot be returned. Leave the version out of the range.",
                error_class="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
                sql_state="XXKDS",
                path=path,
                version=version,
            )
        raise ChangeDataFeedError(
            f"Version {version} replaced rows and changed the partition columns: {path}, which it removed, is partitioned by "
            f"({', '.join(name for name, _ in values)}), the table by ({', '.join(sorted(self.partitions))}). The rows that it "
            "deleted cannot be returned with the new columns. Leave the version out of the range.",
            error_class="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
            sql_state="0AKDC",
            path=path,
            version=version,
        )

    def _foreign_name_counts(self, values: pa.MapArray) -> Any:
        """For each map of partition values, how many of its names are not partition columns."""
        is_partition_column = pc.is_in(values.keys, value_set=pa.array(sorted(self.partitions), pa.string())).to_numpy(
            zero_copy_only=False
        )
        foreign_count = np.concatenate([[0], np.cumsum(~is_partition_column)])
        offsets = values.offsets.to_numpy()
        return foreign_count[offsets[1:]] - foreign_count[offsets[:-1]]

    # ------------------------------------------------------------ files that are removed and added again

    def _vector_differences(self, removes: pa.Table, adds: pa.Table) -> tuple[pa.Array, pa.Array]:
        """For each file that is removed and added again, whether rows were deleted (only the new deletion vector has them), and
        whether rows were restored (only the old one has them)."""

        def compare(
            old_vector: dict[str, Any] | None, new_vector: dict[str, Any] | None, path: str, version: int
        ) -> tuple[bool, bool]:
            old_rows, new_rows = self._deleted_rows(old_vector, path, version), self._deleted_rows(new_vector, path, version)
            return len(new_rows - old_rows) > 0, len(old_rows - new_rows) > 0

        columns = (removes["deletion_vector"], adds["deletion_vector"], adds["path"], adds[COMMIT_VERSION])
        differences = list(self.pool.map(compare, *(column.to_pylist() for column in columns)))
        deletes, restores = [deletes for deletes, _ in differences], [restores for _, restores in differences]
        return pa.array(deletes, pa.bool_()), pa.array(restores, pa.bool_())

    def _deleted_rows(self, vector: dict[str, Any] | None, path: str, version: int) -> BitMap64:
        """The positions of deleted rows. vector: a deletion vector's descriptor; None for no deleted rows. path: the data
        file's path."""
        try:
            return BitMap64() if vector is None else read_deletion_vector(self.store, DeletionVectorDescriptor.from_json(vector))
        except FileNotFoundError as error:
            raise DeletionVectorError(
                f"A deletion vector of data file {path}, which version {version} changed, is missing, so the rows that "
                "changed cannot be told. VACUUM may have removed it: leave the version out of the range.",
                error_class="DELTA_DELETION_VECTOR_FILE_NOT_FOUND",
                path=path,
                version=version,
            ) from error


# ---------------------------------------------------------------- the feed's columns


def inserts_of(files: pa.RecordBatch, version: int, timestamp_ms: int) -> pa.RecordBatch:
    """PLANNED_CHANGES: all rows of files, as the inserts of a version."""
    count = files.num_rows
    with_columns = _with_change_columns(files, "insert", pa.repeat(version, count), pa.repeat(timestamp_ms * 1000, count), None)
    return with_columns.select(PLANNED_CHANGES.names)


def _with_change_columns(
    files: Files, change_type: str | None, versions: Any, times_us: Any, selection: pa.ChunkedArray | None
) -> Files:
    """The files with the columns of _CHANGE_FIELDS. change_type: the type of the changes; None if the rows contain it. times_us:
    of the commits, in microseconds since 1970. selection: a deletion vector for each file, whose rows are the only ones to read;
    None to read all rows."""
    values = {
        SELECTION: pa.nulls(files.num_rows, DELETION_VECTOR_TYPE) if selection is None else selection,
        CHANGE_TYPE: pa.repeat(pa.scalar(change_type, pa.string()), files.num_rows),
        COMMIT_VERSION: versions,
        COMMIT_TIMESTAMP: times_us,
    }
    for f in _CHANGE_FIELDS:
        files = files.append_column(f, values[f.name].cast(f.type))
    return files


# ---------------------------------------------------------------- actions on one file


def _drop_data_files_of(files: pa.Table, versions: Sequence[int]) -> pa.Table:
    """The file actions without the adds and removes of the commits of these versions. Change files remain."""
    if not versions:
        return files
    is_in_versions = pc.is_in(files[COMMIT_VERSION], value_set=pa.array(versions, pa.int64()))
    return files.filter(pc.or_(pc.equal(files[_KIND], _CHANGE_FILE), pc.invert(is_in_versions)))


def _file_keys(files: pa.Table) -> Any:
    """A number for each action. Actions have the same number if they have the same path and are in the same commit."""
    if not files.num_rows:
        return np.array([], np.int64)
    path = _in_one_piece(files["path"]).dictionary_encode()
    _, version = np.unique(files[COMMIT_VERSION].to_numpy(), return_inverse=True)
    return version.astype(np.int64) * len(path.dictionary) + path.indices.to_numpy()


def _last_actions(files: pa.Table) -> pa.Table:
    """Drop repeated actions: if a commit has several adds, or several removes, with the same path, only the last one counts. All
    change files remain."""
    kinds = files[_KIND].to_numpy()
    keys = _file_keys(files) * 2 + (kinds == _REMOVE)
    # np.unique returns the first place of each key, which in the reversed keys is the last one.
    distinct, from_the_end = np.unique(keys[::-1], return_index=True)
    if len(distinct) == len(keys):
        return files
    is_last = np.zeros(len(keys), bool)
    is_last[len(keys) - 1 - from_the_end] = True
    return files.filter(pa.array(is_last | (kinds == _CHANGE_FILE)))


def _map_lengths(values: pa.MapArray) -> Any:
    """The number of entries of each map."""
    return np.diff(values.offsets.to_numpy())


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array. If it is a map, its keys and items have no entries before the first row, so that they can be used
    with its offsets."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
