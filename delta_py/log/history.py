"""Versions and times: when a version was committed, which version a time means, and the history of commits.

The time of a commit is its in-commit timestamp if the table has them, otherwise the modification time of its file. Copying a log
can shuffle file times, so they are adjusted to increase: a time that is not after its predecessor counts as 1 ms after it.
All times are ms since 1970, UTC.
Protocol: In-Commit Timestamps; Commit Provenance Information.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa

from delta_py.errors import CorruptTableError, TimestampOutOfRangeError, shown
from delta_py.log.commit_reader import CommitReader, corrupt_line, text_map
from delta_py.log.segment import LogFile, available_in, available_versions, list_commits, list_log
from delta_py.protocol.actions import CommitInfo
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore

# The structs of HISTORY_SCHEMA, and their fields, which are all texts.
_STRUCT_OF_TEXT = {
    "job": ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType"),
    "notebook": ("notebookId",),
}
_MAP = pa.map_(pa.string(), pa.string())
_LAST_MS = (2**63 - 1) // 1_000  # a later time does not fit into 64-bit microseconds
HISTORY_SCHEMA = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("userId", pa.string()),
        ("userName", pa.string()),
        ("operation", pa.string()),
        ("operationParameters", _MAP),
        ("job", pa.struct([(name, pa.string()) for name in _STRUCT_OF_TEXT["job"]])),
        ("notebook", pa.struct([(name, pa.string()) for name in _STRUCT_OF_TEXT["notebook"]])),
        ("clusterId", pa.string()),
        ("readVersion", pa.int64()),
        ("isolationLevel", pa.string()),
        ("isBlindAppend", pa.bool_()),
        ("operationMetrics", _MAP),
        ("userMetadata", pa.string()),
        ("engineInfo", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class CommitTime:
    version: int
    timestamp_ms: int


# ---------------------------------------------------------------- the time of a commit


def commit_timestamp(store: ObjectStore, commit: LogFile, config: TableConfig) -> int:
    """The time of a commit. config: of the commit's version or a later one.

    Raises CorruptTableError (DELTA_MISSING_COMMIT_INFO, DELTA_MISSING_COMMIT_TIMESTAMP) if the table has in-commit timestamps and
    the commit has none.
    """
    if commit.version < _first_in_commit_version(config):
        return commit.modification_time_ms
    return _in_commit_timestamp(CommitReader(store), commit)


def commit_times(store: ObjectStore, config: TableConfig, start: int = 0, end: int | None = None) -> list[CommitTime]:
    """The times of versions start to end (both included; None: the newest), ascending. File times are adjusted to increase."""
    first = _first_in_commit_version(config)  # earlier commits have only the times of their files
    reader = CommitReader(store)
    commits = list_commits(store, start, end)
    file_times = _increasing_times(commit for commit in commits if commit.version < first)
    in_commit_times = [
        CommitTime(commit.version, _in_commit_timestamp(reader, commit)) for commit in commits if commit.version >= first
    ]
    return file_times + in_commit_times


class CommitClock:
    """Computes the times of commits one by one. The caller passes the commits in ascending order of versions, because a file time
    is adjusted to be later than the time of the commit before. config: of the table's newest version."""

    def __init__(self, store: ObjectStore, config: TableConfig) -> None:
        self._reader, self._first_in_commit = CommitReader(store), _first_in_commit_version(config)
        self._last_ms: int | None = None

    def time_of_next(self, commit: LogFile) -> int:
        """The time of a commit, which must be later than all commits that were passed before; ms since 1970. Raises as
        commit_timestamp."""
        if commit.version >= self._first_in_commit:
            return _in_commit_timestamp(self._reader, commit)
        earliest_ms = commit.modification_time_ms if self._last_ms is None else self._last_ms + 1
        self._last_ms = max(earliest_ms, commit.modification_time_ms)
        return self._last_ms


def _first_in_commit_version(config: TableConfig) -> int:
    """The first version with an in-commit timestamp; a number above every version if the table has none."""
    if not config.enabled("inCommitTimestamp"):
        return 2**63
    # The property is not set if the table had in-commit timestamps from its first version on.
    return _long_property(config, "delta.inCommitTimestampEnablementVersion") or 0


def _long_property(config: TableConfig, name: str) -> int | None:
    """A table property that is a number; None if it is not set."""
    text = config.properties.get(name)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise CorruptTableError(
            f"Table property {name} is {text!r}, which is no number. The metaData action is damaged.", name=name
        ) from None


def _increasing_times(commits: Iterable[LogFile]) -> list[CommitTime]:
    """The times of the commits, each at least 1 ms after the one before."""
    times: list[CommitTime] = []
    for commit in commits:
        earliest_ms = times[-1].timestamp_ms + 1 if times else commit.modification_time_ms
        times.append(CommitTime(commit.version, max(earliest_ms, commit.modification_time_ms)))
    return times


def _in_commit_timestamp(reader: CommitReader, commit: LogFile) -> int:
    """The in-commit timestamp in ms since 1970. Raises CorruptTableError if the commit has none."""
    info = _commit_info(reader, commit)
    if info is None:
        raise _missing_timestamp_error(commit, "has no commitInfo action", "DELTA_MISSING_COMMIT_INFO")
    timestamp_ms = info.in_commit_timestamp_ms
    if timestamp_ms is None:
        raise _missing_timestamp_error(
            commit, "has no inCommitTimestamp in its commitInfo action", "DELTA_MISSING_COMMIT_TIMESTAMP"
        )
    return timestamp_ms


def _missing_timestamp_error(commit: LogFile, fault: str, condition: str) -> CorruptTableError:
    return CorruptTableError(
        f"{commit.path} {fault}, though the table has in-commit timestamps: when it was committed is unknown. The commit was "
        "written by a writer that broke the protocol.",
        error_class=condition,
        sql_state="KD004",
        version=commit.version,
    )


def _commit_info(reader: CommitReader, commit: LogFile) -> CommitInfo | None:
    """The commitInfo action; None if the commit has none. It is nearly always the first line, so the other lines are read only if
    it is not."""
    line = reader.first_line(commit)
    if b'"commitInfo"' in line:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise corrupt_line(commit, 1, f"the line is no JSON: {error}.") from error
        if isinstance(value, dict) and isinstance(value.get("commitInfo"), dict):
            return CommitInfo.from_json(value["commitInfo"])
    return next((action for action in reader.actions(commit, "commitInfo") if isinstance(action, CommitInfo)), None)


# ---------------------------------------------------------------- the version of a time


def version_at_timestamp(
    store: ObjectStore,
    timestamp_ms: int,
    config: TableConfig,
    *,
    recreatable: bool = True,
    or_last: bool = False,
    or_earliest: bool = False,
) -> int:
    """The newest version committed at or before a time.

    config: of the newest version. recreatable: only versions whose state can be rebuilt count; otherwise every commit counts.
    or_last: a time after the last commit means the last one. or_earliest: a time before the first commit means the first one.
    Raises TimestampOutOfRangeError (DELTA_TIMESTAMP_GREATER_THAN_COMMIT, DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION).
    """
    commits = _readable_commits(store, recreatable=recreatable)
    commit = newest_commit_at(store, commits, timestamp_ms, config)
    newest = CommitTime(commits[-1].version, commit_timestamp(store, commits[-1], config))
    if commit.timestamp_ms > timestamp_ms and not or_earliest:  # the first commit, because all commits are after the time
        raise _too_early_error(store, timestamp_ms, commit)
    if commit.version == newest.version and commit.timestamp_ms < timestamp_ms and not or_last:
        raise _too_late_error(store, timestamp_ms, commit)
    return commit.version


def commit_at_timestamp(store: ObjectStore, timestamp_ms: int, config: TableConfig, *, recreatable: bool = True) -> CommitTime:
    """The newest commit at or before a time; the earliest commit if the time is before all of them."""
    return newest_commit_at(store, _readable_commits(store, recreatable=recreatable), timestamp_ms, config)


def _readable_commits(store: ObjectStore, *, recreatable: bool) -> list[LogFile]:
    """The commits up to the newest version, ascending. recreatable: start with the first version that can be rebuilt."""
    listing = list_log(store, 0)
    earliest, newest = available_in(store, listing)
    return listing.commits_between(earliest if recreatable else 0, newest)


def newest_commit_at(store: ObjectStore, commits: Sequence[LogFile], timestamp_ms: int, config: TableConfig) -> CommitTime:
    """The newest of some commits (ascending) at or before a time; the first of them if the time is before all of them."""
    first = _first_in_commit_version(config)
    with_file_time = [commit for commit in commits if commit.version < first]
    with_timestamp = commits[len(with_file_time) :]  # with an in-commit timestamp
    enabled_at = _long_property(config, "delta.inCommitTimestampEnablementTimestamp")
    # File times may be later than the first in-commit timestamps. So the time at which in-commit timestamps were enabled decides
    # which kind of commit is searched.
    if with_timestamp and (not with_file_time or enabled_at is None or timestamp_ms >= enabled_at):
        reader = CommitReader(store)
        return _last_at_or_before(with_timestamp, lambda commit: _in_commit_timestamp(reader, commit), timestamp_ms)
    times = _increasing_times(with_file_time)
    return times[max(0, bisect_right(times, timestamp_ms, key=lambda time: time.timestamp_ms) - 1)]


def _last_at_or_before(commits: Sequence[LogFile], time_of: Callable[[LogFile], int], timestamp_ms: int) -> CommitTime:
    """The newest of the commits at or before a time; the first commit if the time is before all of them. time_of: reads the
    commit's in-commit timestamp. This is a binary search, because each timestamp costs a read, and they increase."""
    position = max(0, bisect_right(commits, timestamp_ms, key=time_of) - 1)
    return CommitTime(commits[position].version, time_of(commits[position]))


def _too_early_error(store: ObjectStore, timestamp_ms: int, earliest: CommitTime) -> TimestampOutOfRangeError:
    return TimestampOutOfRangeError(
        f"The time {time_text(timestamp_ms)} is before the earliest version of the table at {store.root} that can be read: "
        f"version {earliest.version} of {time_text(earliest.timestamp_ms)}. Use a time at or after it.",
        error_class="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        timestamp_ms=timestamp_ms,
        earliest_version=earliest.version,
        earliest_timestamp_ms=earliest.timestamp_ms,
    )


def _too_late_error(store: ObjectStore, timestamp_ms: int, latest: CommitTime) -> TimestampOutOfRangeError:
    return TimestampOutOfRangeError(
        f"The time {time_text(timestamp_ms)} is after the latest version of the table at {store.root}: version "
        f"{latest.version} of {time_text(latest.timestamp_ms)}. Use a time at or before it.",
        timestamp_ms=timestamp_ms,
        latest_version=latest.version,
        latest_timestamp_ms=latest.timestamp_ms,
    )


def time_text(timestamp_ms: int) -> str:
    """`2024-01-31 23:59:59.000 UTC`; the number itself if Python's datetime cannot represent the year."""
    try:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return f"{moment.isoformat(' ', 'milliseconds')} UTC"


# ---------------------------------------------------------------- history


def history(store: ObjectStore, limit: int | None = None) -> pa.Table:
    """The commits that the log still has, newest first, at most `limit`: HISTORY_SCHEMA, as DESCRIBE HISTORY returns it.

    A time that does not fit into 64-bit microseconds is null. A commit without commitInfo has only a version and a time. Values
    of parameters and metrics that are not text become JSON text. Raises TableNotFoundError, CorruptTableError.
    """
    _, newest = available_versions(store)
    return history_of(CommitReader(store), list_commits(store, 0, newest), limit)[1]


def commit_count(store: ObjectStore) -> int:
    """The number of commits that `history` returns without a limit. Raises TableNotFoundError."""
    _, newest = available_versions(store)
    return len(list_commits(store, 0, newest))


def commit_infos(store: ObjectStore, limit: int | None = None) -> list[tuple[int, Mapping[str, Any]]]:
    """The version and the whole commitInfo of each commit that the log still has, newest first, at most `limit`. A commit without
    commitInfo has an empty one. Raises as `history`."""
    _, newest = available_versions(store)
    reader, commits = CommitReader(store), list_commits(store, 0, newest)
    newest_first = reversed(commits if limit is None else commits[max(0, len(commits) - limit) :])
    infos = ((commit.version, _commit_info(reader, commit)) for commit in newest_first)
    return [(version, {} if info is None else info.values) for version, info in infos]


def history_of(reader: CommitReader, commits: Sequence[LogFile], limit: int | None = None) -> tuple[list[int], pa.Table]:
    """The times as ms since 1970, and the table that `history` returns, both newest first and at most `limit`. commits:
    ascending, all commits in the log up to some version, because the adjusted file time of a commit depends on the commits before
    it."""
    file_times = _increasing_times(commits)
    # The position of the oldest commit to return.
    first = 0 if limit is None else max(0, len(commits) - limit)
    rows = []
    for commit, time in reversed(list(zip(commits, file_times, strict=True))[first:]):
        info = _commit_info(reader, commit)
        in_commit = None if info is None else info.in_commit_timestamp_ms
        rows.append((commit.version, time.timestamp_ms if in_commit is None else in_commit, {} if info is None else info.values))
    table = pa.table([_history_column(field, rows) for field in HISTORY_SCHEMA], schema=HISTORY_SCHEMA)
    return [time for _, time, _ in rows], table


def _history_column(field: pa.Field, rows: Sequence[tuple[int, int, Mapping[str, Any]]]) -> pa.Array:
    """One column of the history. rows: version, time in ms since 1970, and commitInfo of each commit. Any writer may have written
    the commitInfo: in a column of booleans or numbers, a value of another type becomes null."""
    if field.name == "version":
        return pa.array([version for version, _, _ in rows], pa.int64())
    if field.name == "timestamp":
        times = [time if abs(time) <= _LAST_MS else None for _, time, _ in rows]
        return pa.array(times, pa.timestamp("ms", "UTC")).cast(field.type)
    values = [info.get(field.name) for _, _, info in rows]
    if pa.types.is_map(field.type):
        return _text_maps(values)
    if pa.types.is_struct(field.type):
        return pa.array([_text_struct(value, field.name) for value in values], field.type)
    if pa.types.is_string(field.type):
        return pa.array([_text(value) for value in values], field.type)
    if pa.types.is_boolean(field.type):
        return pa.array([value if isinstance(value, bool) else None for value in values], field.type)
    # The only other type in HISTORY_SCHEMA is int64.
    return pa.array([value if type(value) is int and -(2**63) <= value < 2**63 else None for value in values], field.type)


def _text(value: Any) -> str | None:
    """A text or null unchanged; any other value as JSON text."""
    if value is None or isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # nested more deeply than orjson can write
        return shown(value)


def _text_struct(value: Any, name: str) -> dict[str, str | None] | None:
    """The fields of a struct in HISTORY_SCHEMA, as texts; None if the value is no JSON object. name: of the struct."""
    return {field: _text(value.get(field)) for field in _STRUCT_OF_TEXT[name]} if isinstance(value, dict) else None


def _text_maps(values: Sequence[Any]) -> pa.Array:
    """A column of maps of texts. A value that is no JSON object is null."""
    maps = text_map([{name: _text(item) for name, item in value.items()} if isinstance(value, dict) else {} for value in values])
    missing = pa.array([not isinstance(value, dict) for value in values], pa.bool_())
    return pa.MapArray.from_arrays(maps.offsets, maps.keys, maps.items, mask=missing)
