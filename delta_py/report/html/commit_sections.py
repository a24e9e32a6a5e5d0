"""The sections Commits and Streams: who wrote to the table, when, and how much."""

from __future__ import annotations

from collections.abc import Sequence

from delta_py.report.facts import Commit, CommitFacts, StreamFacts
from delta_py.report.html.charts import Dot, timeline
from delta_py.report.html.markup import Markup, data, joined, shortened, tag
from delta_py.report.html.parts import (
    bytes_or_unknown,
    folded,
    known_text,
    list_table,
    minute,
    number,
    optional,
    soft,
    source_line,
)
from delta_py.report.words import count_text, length_text, moment_text
from delta_py.types.sizes import bytes_text

# The most operations in the timeline; the most commits, and streams, in a table; the most operations, and writers, in a table.
_MOST_LANES, _MOST_ROWS, _MOST_GROUPS = 7, 25, 12


def commits_body(facts: CommitFacts) -> Markup:
    """The section Commits. `looked_at` in its parts: the commits that were read, in words, such as `the newest 1,000 commits of
    5,200`."""
    commits = facts.commits
    if not commits:
        return tag("p", "The log has no commit that can be read.")
    looked_at = count_text(len(commits), "commit")
    if facts.in_log > len(commits):
        looked_at = f"the newest {looked_at} of {facts.in_log:,}"
    missing_note = None
    if facts.oldest_version > 0:
        missing_note = soft(f"Commits before version {facts.oldest_version:,} are no longer in the log, so they are not shown.")
    return joined(
        [
            missing_note,
            _commit_timeline(facts, looked_at),
            _operations_table(facts, looked_at),
            _left_out_note(facts.by_operation, "operation"),
            tag("h3", "Writers"),
            _writers_table(facts, looked_at),
            _left_out_note(facts.by_writer, "writer"),
            folded(f"The newest {count_text(min(len(commits), _MOST_ROWS), 'commit')}", _newest_table(facts)),
            source_line(facts.source),
        ]
    )


def _commit_timeline(facts: CommitFacts, looked_at: str) -> Markup:
    """A lane for each of the most frequent operations, and one for the others. looked_at: as in commits_body."""
    commits = facts.commits
    operations = [total.operation for total in facts.by_operation][:_MOST_LANES]
    lanes = [_operation_text(operation) for operation in operations]
    if len(facts.by_operation) > _MOST_LANES:
        lanes.append("other operations")
    last_lane = len(lanes) - 1
    lane_of_operation = {operation: lane for lane, operation in enumerate(operations)}
    max_bytes = max((commit.bytes_added or 0 for commit in commits), default=0) or 1  # 1, as a divisor, if no byte was added
    dots = [
        Dot(
            commit.timestamp_ms,
            lane_of_operation.get(commit.operation, last_lane),
            (commit.bytes_added or 0) / max_bytes,
            _commit_text(commit),
        )
        for commit in commits
    ]
    return timeline(
        f"Timeline of {looked_at}, with a row for each operation. The tables below have the same data.",
        [shortened(lane, 60) for lane in lanes],
        dots,
        f"Time in UTC. Each dot is a commit. Larger dots added more (largest: {bytes_text(max_bytes if max_bytes > 1 else 0)}).",
    )


def _operations_table(facts: CommitFacts, looked_at: str) -> Markup:
    return list_table(
        f"{_capitalized(looked_at)} by operation.",
        ("Operation", "Commits", "Files added", "Files removed", "Size added", "Last version", "Last commit"),
        [
            (
                optional(total.operation),
                number(total.commits),
                number(total.files_added),
                number(total.files_removed),
                bytes_or_unknown(total.bytes_added),
                number(total.last_version),
                minute(total.last_timestamp_ms),
            )
            for total in facts.by_operation[:_MOST_GROUPS]
        ],
        numbers=(1, 2, 3, 4, 5),
    )


def _writers_table(facts: CommitFacts, looked_at: str) -> Markup:
    return list_table(
        f"{_capitalized(looked_at)} by engine and user.",
        ("Engine", "User", "Commits", "Last version", "Last commit"),
        [
            (
                optional(total.engine),
                optional(total.user),
                number(total.commits),
                number(total.last_version),
                minute(total.last_timestamp_ms),
            )
            for total in facts.by_writer[:_MOST_GROUPS]
        ],
        numbers=(2, 3),
    )


def _newest_table(facts: CommitFacts) -> Markup:
    return list_table(
        "The newest commits.",
        ("Version", "Time", "Operation", "Engine", "User", "Files added", "Files removed", "Size added"),
        [
            (
                number(commit.version),
                minute(commit.timestamp_ms),
                optional(commit.operation),
                optional(commit.engine),
                optional(commit.user),
                number(commit.files_added),
                number(commit.files_removed),
                bytes_or_unknown(commit.bytes_added),
            )
            for commit in facts.commits[:_MOST_ROWS]
        ],
        numbers=(5, 6, 7),
    )


def _operation_text(operation: str | None) -> str:
    return "not in the log" if operation is None else operation


def _commit_text(commit: Commit) -> str:
    size = "unknown size" if commit.bytes_added is None else bytes_text(commit.bytes_added)
    return f"{commit.version}: {shortened(_operation_text(commit.operation), 40)}, {moment_text(commit.timestamp_ms)}, {size}"


def _left_out_note(groups: Sequence[object], noun: str) -> Markup | None:
    """How many groups are not in the table above; None if all are. noun: of a group."""
    return soft(f"{count_text(len(groups) - _MOST_GROUPS, f'more {noun}')} not shown.") if len(groups) > _MOST_GROUPS else None


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---------------------------------------------------------------- streams


def streams_body(facts: StreamFacts) -> Markup:
    note = soft(
        "A stream that writes to this table records each batch as a transaction in the log. A stream that reads this table has "
        "its position only in its own checkpoint, so it is not shown."
    )
    if not facts.count:
        return joined([tag("p", "No stream has written to this table."), note, source_line(facts.source)])
    table = list_table(
        f"Newest batch of {count_text(facts.count, 'application')} that wrote with transactions.",
        ("Application", "Newest batch", "Version", "Later versions", "Time to this version", "Last updated"),
        [
            (
                data(stream.app_id),
                number(stream.batch),
                tag("span", "unknown", class_="unknown") if stream.table_version is None else f"{stream.table_version:,}",
                known_text(stream.versions_behind, lambda count: f"{count:,}"),
                known_text(stream.ms_behind, length_text),
                optional(None if stream.last_updated_ms is None else moment_text(stream.last_updated_ms)),
            )
            for stream in facts.streams[:_MOST_ROWS]
        ],
        numbers=(1, 2),
    )
    more_note = (
        soft(f"{count_text(facts.count - _MOST_ROWS, 'more application')} not shown.") if facts.count > _MOST_ROWS else None
    )
    return joined([note, table, more_note, source_line(facts.source)])
