"""Facts about commits for a report: time, operation, user, amounts; and the streams that write to the table.

Protocol: Commit Provenance Information; Transaction Identifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from delta_py.errors import CorruptTableError, LogFileNotFoundError
from delta_py.log.commit_reader import CommitReader
from delta_py.log.history import history_of
from delta_py.log.segment import LogFile, list_commits
from delta_py.protocol.actions import SetTransaction
from delta_py.protocol.paths import LOG_DIRECTORY
from delta_py.report.facts import Commit, CommitFacts, OperationTotals, Stream, StreamFacts, Unknown, WriterTotals, total
from delta_py.snapshot import Snapshot

MOST_COMMITS = 1_000
# The maximum total size in bytes of the commits whose actions are read; and the maximum number of separate groups and streams.
_MOST_READ_BYTES = 256 << 20
_MOST_GROUPS = 50
_MOST_STREAMS = 100


def commit_facts(snapshot: Snapshot, most: int = MOST_COMMITS) -> tuple[CommitFacts, StreamFacts | Unknown]:
    """Facts about the newest commits up to the snapshot's version, at most `most`, and about the streams that wrote to the table.
    Raises CorruptTableError, TableNotFoundError."""
    log_commits = list_commits(snapshot.store, 0, snapshot.version)
    reader = CommitReader(snapshot.store)
    newest_files = log_commits[-most:]
    contents = _read_contents(reader, newest_files)
    # The history has the newest commit first. It gets all commits, because their times depend on older ones.
    times_ms, history_table = history_of(reader, log_commits, most)
    history = history_table.drop_columns("timestamp").to_pylist()  # a timestamp may have a year that Python's calendar lacks
    commits = tuple(_commit(row, time_ms, contents[row["version"]]) for row, time_ms in zip(history, times_ms, strict=True))
    facts = CommitFacts(
        in_log=len(log_commits),
        oldest_version=log_commits[0].version,
        commits=commits,
        by_operation=_by_operation(commits),
        by_writer=_by_writer(commits),
        z_order=next((columns for row in history if (columns := _z_order(row))), ()),
        last_vacuum=next((commit for commit in commits if commit.operation == "VACUUM END"), None),
        source=(
            f"commitInfo, add and remove actions of the commits {newest_files[0].version} to {newest_files[-1].version} "
            f"in {LOG_DIRECTORY}"
        ),
    )
    return facts, _streams(snapshot, commits, contents)


@dataclass(slots=True)
class _CommitContent:
    """The facts that are read of a commit in addition to its commitInfo. log_bytes: the size of its file. The other values are
    None if the file was not read. streams: the application ids of its txn actions."""

    log_bytes: int
    files_added: int | None = None
    files_removed: int | None = None
    bytes_added: int | None = None
    streams: frozenset[str] | None = field(default=None)


def _read_contents(reader: CommitReader, files: Sequence[LogFile]) -> dict[int, _CommitContent]:
    """The content of each commit, by version. The newest commits are read, up to _MOST_READ_BYTES in total; the content of the
    others stays unknown. files: from old to new."""
    contents = {file.version: _CommitContent(file.size_bytes) for file in files}
    remaining_bytes, files_to_read = _MOST_READ_BYTES, []
    for file in reversed(files):
        remaining_bytes -= file.size_bytes
        if remaining_bytes < 0:
            break
        files_to_read.append(file)
    for file in reader.with_read_ahead(reversed(files_to_read)):
        content = contents[file.version]
        try:
            pieces = list(reader.file_actions(file))
            streams = frozenset(a.app_id for a in reader.actions(file, "txn") if isinstance(a, SetTransaction))
        except (CorruptTableError, LogFileNotFoundError):
            continue  # its content stays unknown; the check of the log reports it
        if file.size_bytes:  # an empty file is no valid commit: zeros would be wrong
            content.files_added = sum(piece.adds.num_rows for piece in pieces)
            content.files_removed = sum(len(piece.remove_keys) for piece in pieces)
            content.bytes_added = sum(total(piece.adds["size"]) for piece in pieces)
            content.streams = streams
    return contents


def _commit(row: dict[str, Any], timestamp_ms: int, content: _CommitContent) -> Commit:
    return Commit(
        version=row["version"],
        timestamp_ms=timestamp_ms,
        operation=row["operation"] or None,
        user=row["userName"] or row["userId"] or None,
        engine=row["engineInfo"] or None,
        files_added=content.files_added,
        files_removed=content.files_removed,
        bytes_added=content.bytes_added,
        log_bytes=content.log_bytes,
    )


def _z_order(row: dict[str, Any]) -> tuple[str, ...]:
    """The columns of an OPTIMIZE by Z-order; () for any other commit."""
    parameters = dict(row["operationParameters"] or [])
    if row["operation"] != "OPTIMIZE" or not parameters.get("zOrderBy"):
        return ()
    try:
        names = orjson.loads(parameters["zOrderBy"])
    except orjson.JSONDecodeError:
        return ()
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


# ---------------------------------------------------------------- groups


def _total(values: Iterable[int | None]) -> int | None:
    """The sum of the values; None if one of them is unknown: a partial sum would be read as the total."""
    value_list = list(values)
    return None if None in value_list else sum(value for value in value_list if value is not None)


def _by_operation(commits: Sequence[Commit]) -> tuple[OperationTotals, ...]:
    """The totals of each operation, the most frequent operation first. commits: newest first, so the first of a group is its
    last commit."""
    groups: dict[str | None, list[Commit]] = {}
    for commit in commits:
        groups.setdefault(commit.operation, []).append(commit)
    totals = [
        OperationTotals(
            operation,
            len(group),
            _total(commit.files_added for commit in group),
            _total(commit.files_removed for commit in group),
            _total(commit.bytes_added for commit in group),
            group[0].version,
            group[0].timestamp_ms,
        )
        for operation, group in groups.items()
    ]
    return tuple(sorted(totals, key=lambda total: -total.commits)[:_MOST_GROUPS])


def _by_writer(commits: Sequence[Commit]) -> tuple[WriterTotals, ...]:
    """The totals of each pair of engine and user, the most frequent pair first. commits: newest first."""
    groups: dict[tuple[str | None, str | None], list[Commit]] = {}
    for commit in commits:
        groups.setdefault((commit.engine, commit.user), []).append(commit)
    totals = [
        WriterTotals(engine, user, len(group), group[0].version, group[0].timestamp_ms)
        for (engine, user), group in groups.items()
    ]
    return tuple(sorted(totals, key=lambda total: -total.commits)[:_MOST_GROUPS])


# ---------------------------------------------------------------- streams


def _streams(snapshot: Snapshot, commits: Sequence[Commit], contents: dict[int, _CommitContent]) -> StreamFacts | Unknown:
    """The applications that wrote with transactions, and how far the newest commit of each is behind the version. commits: newest
    first. contents: by version."""
    try:
        transactions = snapshot.set_transactions()
    except CorruptTableError as error:
        return Unknown(error.message)
    newest_commits: dict[str, Commit] = {}
    is_complete = True  # whether all newer commits were read: otherwise a stream may be in one that was not read
    unread_version = None
    for commit in commits:
        streams = contents[commit.version].streams
        if streams is None:
            is_complete, unread_version = False, commit.version
            break
        for app_id in streams:
            newest_commits.setdefault(app_id, commit)  # the newest commit of the application: commits come newest first
    oldest_version = commits[-1].version if commits else snapshot.version
    oldest_read = (
        f"commit {unread_version}, which was not read"
        if not is_complete
        else f"commit {oldest_version}, the oldest that was looked at"
    )
    newest = commits[0] if commits else None

    def stream(transaction: SetTransaction) -> Stream:
        commit = newest_commits.get(transaction.app_id)
        if commit is None or newest is None:
            version_lag: int | Unknown = Unknown(f"its commit is not newer than {oldest_read}")
            return Stream(transaction.app_id, transaction.version, transaction.last_updated_ms, None, version_lag, version_lag)
        return Stream(
            transaction.app_id,
            transaction.version,
            transaction.last_updated_ms,
            commit.version,
            snapshot.version - commit.version,
            newest.timestamp_ms - commit.timestamp_ms,
        )

    sorted_streams = sorted(map(stream, transactions.values()), key=_lag, reverse=True)
    source = f"txn actions of version {snapshot.version}, and of the commits up to it"
    return StreamFacts(len(sorted_streams), tuple(sorted_streams[:_MOST_STREAMS]), source)


def _lag(stream: Stream) -> float:
    """The versions that a stream is behind, to sort by. An unknown lag counts as the largest: the stream's commit is older than
    all commits that were read."""
    return float("inf") if isinstance(stream.versions_behind, Unknown) else stream.versions_behind
