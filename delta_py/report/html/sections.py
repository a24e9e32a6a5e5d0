"""The sections of the report's page: each shows one part of the facts, as charts, tables and words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from delta_py.report.facts import (
    ColumnSkipping,
    Commit,
    CommitFacts,
    FileFacts,
    FileMap,
    LogFacts,
    PartitionFacts,
    RetentionFacts,
    SizeBin,
    SkippingFacts,
    StreamFacts,
    TableFacts,
    Unknown,
    VectorFacts,
)
from delta_py.report.html.charts import Bar, Dot, columns, lying_bars, rectangles, timeline
from delta_py.report.html.markup import Child, Markup, data, joined, shortened, tag
from delta_py.report.html.parts import fact_table, folded, known_text, list_table, number, optional, soft, source_line, unknown
from delta_py.report.words import bytes_text, count_text, length_text, moment_text, percent_text

T = TypeVar("T")
_LANES, _NEWEST, _BARS, _GROUPS = 7, 25, 12, 12
_SHARE_TICKS = [(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")]


@dataclass(frozen=True, slots=True)
class Section:
    anchor: str
    title: str
    body: Markup


def sections(facts: TableFacts) -> tuple[Section, ...]:
    """In the page's order; the partitions section is only for a partitioned table."""
    return tuple(
        Section(anchor, title, body)
        for anchor, title, body in (
            ("commits", "Commits", _or_unknown(facts.commits, _commits)),
            ("files", "Files", _or_unknown(facts.files, _files)),
            ("skipping", "Skipping", _or_unknown(facts.skipping, _skipping)),
            ("partitions", "Partitions", None if facts.partitions is None else _or_unknown(facts.partitions, _partitions)),
            ("deleted-rows", "Deleted rows", _or_unknown(facts.vectors, _vectors)),
            ("log", "Log", _or_unknown(facts.log, _log)),
            ("retention", "Removed files", _or_unknown(facts.retention, _retention)),
            ("streams", "Streams", _or_unknown(facts.streams, _streams)),
            ("table", "Definition", _definition(facts)),
        )
        if body is not None
    )


def _or_unknown(part: T | Unknown, show: Callable[[T], Markup]) -> Markup:
    return tag("p", unknown(part)) if isinstance(part, Unknown) else show(part)


# ---------------------------------------------------------------- commits


def _commits(facts: CommitFacts) -> Markup:
    commits = facts.commits
    if not commits:
        return tag("p", "The log has no commit that can be read.")
    looked_at = count_text(len(commits), "commit")
    if facts.in_log > len(commits):
        looked_at = f"the newest {looked_at} of {facts.in_log:,}"
    missing = None
    if facts.oldest_version > 0:
        missing_note = f"Commits before version {facts.oldest_version:,} are no longer in the log"
        missing = soft(f"{missing_note}: what they did is unknown here.")
    return joined(
        [
            missing,
            _commit_timeline(facts, looked_at),
            _operations_table(facts, looked_at),
            _left_out(facts.by_operation, "operation"),
            tag("h3", "Writers"),
            _writers_table(facts, looked_at),
            _left_out(facts.by_writer, "writer"),
            folded(f"The newest {count_text(min(len(commits), _NEWEST), 'commit')}", _newest_table(facts)),
            source_line(facts.source),
        ]
    )


def _commit_timeline(facts: CommitFacts, looked_at: str) -> Markup:
    """looked_at: the commits that were read, for people."""
    commits = facts.commits
    operations = [total.operation for total in facts.by_operation][:_LANES]
    lanes = [_operation(operation) for operation in operations]
    if len(facts.by_operation) > _LANES:
        lanes.append("other operations")
    other_count = len(lanes) - 1
    place = {operation: lane for lane, operation in enumerate(operations)}
    max_bytes = max((commit.bytes_added or 0 for commit in commits), default=0) or 1
    dots = [
        Dot(
            commit.timestamp_ms,
            place.get(commit.operation, other_count),
            (commit.bytes_added or 0) / max_bytes,
            _commit_text(commit),
        )
        for commit in commits
    ]
    return timeline(
        f"Timeline of {looked_at}, one row for each operation. The tables below say the same.",
        [shortened(lane, 60) for lane in lanes],
        dots,
        f"time, UTC; the larger a dot, the more bytes its files have (largest: {bytes_text(max_bytes if max_bytes > 1 else 0)})",
    )


def _operations_table(facts: CommitFacts, looked_at: str) -> Markup:
    return list_table(
        f"By operation, of {looked_at}",
        ("Operation", "Commits", "Files added", "Files removed", "Bytes added", "Last version", "Last time"),
        [
            (
                optional(total.operation),
                number(total.commits),
                number(total.files_added),
                number(total.files_removed),
                _bytes(total.bytes_added),
                number(total.last_version),
                _time(total.last_timestamp_ms),
            )
            for total in facts.by_operation[:_GROUPS]
        ],
        (1, 2, 3, 4, 5),
    )


def _writers_table(facts: CommitFacts, looked_at: str) -> Markup:
    return list_table(
        f"By writer, of {looked_at}",
        ("Engine", "User", "Commits", "Last version", "Last time"),
        [
            (
                optional(total.engine),
                optional(total.user),
                number(total.commits),
                number(total.last_version),
                _time(total.last_timestamp_ms),
            )
            for total in facts.by_writer[:_GROUPS]
        ],
        (2, 3),
    )


def _newest_table(facts: CommitFacts) -> Markup:
    return list_table(
        "The newest commits",
        ("Version", "Time", "Operation", "Engine", "User", "Files added", "Files removed", "Bytes added"),
        [
            (
                number(commit.version),
                _time(commit.timestamp_ms),
                optional(commit.operation),
                optional(commit.engine),
                optional(commit.user),
                number(commit.files_added),
                number(commit.files_removed),
                _bytes(commit.bytes_added),
            )
            for commit in facts.commits[:_NEWEST]
        ],
        (5, 6, 7),
    )


def _operation(operation: str | None) -> str:
    return "not said" if operation is None else operation


def _commit_text(commit: Commit) -> str:
    size = "unknown size" if commit.bytes_added is None else bytes_text(commit.bytes_added)
    return f"{commit.version}: {shortened(_operation(commit.operation), 40)}, {moment_text(commit.timestamp_ms)}, {size}"


def _left_out(groups: Sequence[object], noun: str) -> Markup | None:
    return soft(f"And {count_text(len(groups) - _GROUPS, noun)} more.") if len(groups) > _GROUPS else None


def _bytes(size: int | None) -> Markup:
    return number(None) if size is None else Markup(bytes_text(size))


def _time(timestamp_ms: int) -> Markup:
    """To the minute, because there are many."""
    text = moment_text(timestamp_ms)
    return tag("span", text[:-7] if text.endswith(" UTC") else text, class_="time")


# ---------------------------------------------------------------- files


def _files(facts: FileFacts) -> Markup:
    of_sizes, of_rows = "size of the add actions", "stats.numRecords of the add actions, less deletionVector.cardinality"
    target = known_text(facts.target_bytes, bytes_text)
    optimize = facts.optimize
    debt: Child = unknown(optimize) if isinstance(optimize, Unknown) else "nothing"
    if not isinstance(optimize, Unknown) and optimize.files:
        debt = f"{count_text(optimize.files, 'file')} ({bytes_text(optimize.bytes)}) into {optimize.bins:,}"
    rows: list[tuple[str, Child, str]] = [
        ("Files", number(facts.count), "add actions of the version"),
        ("Size", bytes_text(facts.bytes), of_sizes),
        ("Rows", known_text(facts.rows, lambda rows: f"{rows:,}"), of_rows),
    ]
    if not facts.count:
        none = tag("p", "The version has no files.")
        return joined([none, fact_table("Files of the version", rows), source_line(facts.source)])
    aimed_at = "" if isinstance(facts.target_bytes, Unknown) else f"; target size {bytes_text(facts.target_bytes)}"
    picture = columns(
        f"Histogram of {count_text(facts.count, 'file')} by size. The table below says the same.",
        [size.files for size in facts.sizes],
        [_short(size.low_bytes) for size in facts.sizes],
        [f"{size.files:,}" for size in facts.sizes],
        f"size of a file, from this on{aimed_at}",
        "number of files",
    )
    small = known_text(facts.small_count, lambda count: f"{count:,} ({percent_text(count / facts.count)} of the files)")
    small_bytes = known_text(facts.small_bytes, bytes_text)
    rows += [
        ("Median file", _bytes(facts.median_bytes), of_sizes),
        ("Largest file", _bytes(facts.largest_bytes), of_sizes),
        ("Target size", target, "delta.targetFileSize, else 1 GB"),
        ("Files below the target", small, of_sizes),
        ("Bytes of files below the target", small_bytes, of_sizes),
        ("OPTIMIZE would write", debt, "the plan that OPTIMIZE makes: sizes, tags, deletion vectors"),
    ]
    table = list_table(
        "Files by size",
        ("Size", "Files", "Bytes"),
        [(_range(size), number(size.files), bytes_text(size.bytes)) for size in facts.sizes],
        (1, 2),
    )
    shown = folded("The histogram as a table", table)
    return joined([picture, shown, fact_table("Files of the version", rows), source_line(facts.source)])


def _short(size: int) -> str:
    return bytes_text(size) if size else "0"


def _range(size: SizeBin) -> str:
    if size.high_bytes is None:
        return f"{bytes_text(size.low_bytes)} and more"
    return f"{_short(size.low_bytes)} to {bytes_text(size.high_bytes)}"


# ---------------------------------------------------------------- skipping


def _skipping(facts: SkippingFacts) -> Markup:
    if not facts.columns:
        return joined([tag("p", "No column of the table can have minima and maxima."), source_line(facts.source)])
    columns_with_share = [column for column in facts.columns if column.point_share is not None]
    ordered = sorted(columns_with_share, key=lambda column: (column.role is None, -column.queries, column.point_share or 0.0))[
        :_BARS
    ]
    parts: list[Child] = [
        soft(
            "The share of the files that a query reads, because minima and maxima exclude the others. A small share is good. "
            "The distribution of values within a file is unknown; the estimate assumes that it is even."
        )
    ]
    if ordered:
        parts.append(
            lying_bars(
                f"Share of files read for one value and for a tenth of the values, of {count_text(len(ordered), 'column')}. "
                "The table below says the same.",
                [_skipping_bar(column, share) for column in ordered if (share := column.point_share) is not None],
                "files read, in percent: bar and first number for one value, line and second number for a tenth of the values",
                _SHARE_TICKS,
                1.0,
            )
        )
    else:
        parts.append(tag("p", "No file has minima and maxima: how well files can be skipped is unknown."))
    table = list_table(
        "How well each column lets queries skip files",
        ("Column", "Type", "Files with bounds", "One value reads", "A tenth reads", "Queries seen", "Order"),
        [_column_row(column) for column in facts.columns],
        (2, 3, 4, 5),
    )
    parts.append(folded(f"All {count_text(len(facts.columns), 'column')} as a table", table))
    if facts.left_out:
        parts.append(soft(f"{count_text(facts.left_out, 'column')} more were not looked at."))
    parts += [tag("h3", "Files over two columns"), _map(facts.map), source_line(facts.source)]
    return joined(parts)


def _skipping_bar(column: ColumnSkipping, share: float) -> Bar:
    tenth = "unknown" if column.range_share is None else percent_text(column.range_share)
    return Bar(shortened(column.column, 60), share, f"{percent_text(share)}, {tenth}", column.range_share)


def _column_row(column: ColumnSkipping) -> tuple[Child, ...]:
    return (
        data(column.column),
        column.type,
        f"{column.with_bounds:,} of {column.files:,}",
        number(None) if column.point_share is None else percent_text(column.point_share),
        number(None) if column.range_share is None else percent_text(column.range_share),
        number(column.queries),
        column.role or "",
    )


def _map(file_map: FileMap | Unknown) -> Markup:
    if isinstance(file_map, Unknown):
        return tag("p", unknown(file_map))
    kind = "the darker a place, the more files lie over it"
    if file_map.rectangles:
        kind = "each file is a rectangle from its minima to its maxima"
    mean = f"On average {file_map.mean_depth:,.1f} of {count_text(file_map.files, 'file')} overlap at a point of the map"
    picture = rectangles(
        f"Map of {count_text(file_map.files, 'file')} over two columns: {kind}. {mean}.",
        file_map.rectangles,
        file_map.density,
        (shortened(file_map.x, 60), shortened(file_map.y, 60)),
        ((file_map.x_low, file_map.x_high), (file_map.y_low, file_map.y_high)),
    )
    without = f" {count_text(file_map.without, 'file')} without bounds of both are not in it." if file_map.without else ""
    words = tag(
        "p",
        data(file_map.x),
        " to the right, ",
        data(file_map.y),
        f" upwards: {file_map.why}; {kind}. {mean}, and one covers {percent_text(file_map.mean_area)} of it.{without}",
    )
    return joined([words, picture])


# ---------------------------------------------------------------- partitions


def _partitions(facts: PartitionFacts) -> Markup:
    names = ", ".join(facts.columns)
    of_values = "partitionValues and size of the add actions"
    if not facts.count:
        return joined([tag("p", "Partitioned by ", data(names), ". The version has no files."), source_line(facts.source)])
    max_bytes = max(facts.profile) or 1.0
    grouped = facts.count > len(facts.profile)
    picture = columns(
        f"Sizes of {count_text(facts.count, 'partition')}, from the largest to the smallest. The tables below have the numbers.",
        facts.profile,
        [],
        [bytes_text(size) for size in facts.profile] if len(facts.profile) <= 8 else [],
        "partitions, from the largest to the smallest"
        + (f"; each column is the mean of about {round(facts.count / len(facts.profile)):,}" if grouped else ""),
        f"bytes of files (highest column: {bytes_text(max_bytes)})",
    )
    rows: list[tuple[str, Child, str]] = [
        ("Partitioned by", data(names), "metaData.partitionColumns"),
        ("Partitions", number(facts.count), of_values),
        ("Median partition", _bytes(facts.median_bytes), of_values),
        ("Files in the median partition", f"{facts.median_files or 0:,.3g}", of_values),
        ("Skew: largest to median", number(None) if facts.skew is None else f"{facts.skew:,.3g}", of_values),
        (
            "With several files, but below the target size",
            known_text(facts.small_count, lambda count: f"{count:,}"),
            f"{of_values}; delta.targetFileSize, else 1 GB",
        ),
    ]
    table = list_table(
        f"The largest {count_text(len(facts.largest), 'partition')}",
        (*map(str, (shortened(name, 60) for name in facts.columns)), "Files", "Bytes"),
        [
            (
                *(tag("span", "null", class_="unknown") if value is None else data(value) for value in partition.values),
                number(partition.files),
                bytes_text(partition.bytes),
            )
            for partition in facts.largest
        ],
        (len(facts.columns), len(facts.columns) + 1),
    )
    shown = folded(f"The largest {count_text(len(facts.largest), 'partition')}", table)
    return joined([picture, fact_table("Partitions of the version", rows), shown, source_line(facts.source)])


# ---------------------------------------------------------------- deleted rows


def _vectors(facts: VectorFacts) -> Markup:
    if not facts.files:
        return joined([tag("p", "No file has a deletion vector: readers drop no rows."), source_line(facts.source)])
    lows = [0.0, *(share for share, _ in facts.shares[:-1])]
    names = [f"{percent_text(low)} to {percent_text(high)}" for low, (high, _) in zip(lows, facts.shares, strict=True)]
    max_count = max(count for _, count in facts.shares) or 1
    picture = lying_bars(
        "Files with deletion vectors by the share of their rows that is deleted. The numbers are next to the bars.",
        [
            Bar(name, count, f"{count:,}", is_quiet=high <= facts.max_share)
            for name, (high, count) in zip(names, facts.shares, strict=True)
        ],
        "number of files, by the share of their rows that is deleted",
        [(0.0, "0"), (float(max_count), f"{max_count:,}")],
        float(max_count),
    )
    share = unknown(facts.rows) if isinstance(facts.rows, Unknown) else number(facts.rows)
    of_vectors = "deletionVector of the add actions"
    rows: list[tuple[str, Child, str]] = [
        ("Files with a vector", number(facts.files), of_vectors),
        ("Rows deleted in them", number(facts.deleted_rows), f"{of_vectors}: cardinality"),
        ("Rows in these files", share, "stats.numRecords"),
        ("Bytes of the vectors", bytes_text(facts.bytes), f"{of_vectors}: sizeInBytes"),
        (
            f"Files with over {percent_text(facts.max_share)} of their rows deleted",
            joined([f"{facts.beyond:,}", f", and {facts.files_without_share:,} unknown" if facts.files_without_share else None]),
            "cardinality and stats.numRecords; OPTIMIZE rewrites these",
        ),
    ]
    return joined([picture, fact_table("Deletion vectors of the version", rows), source_line(facts.source)])


# ---------------------------------------------------------------- the log


def _log(facts: LogFacts) -> Markup:
    listing_source = "a listing of _delta_log"
    checkpoint: Child = "none"
    if facts.newest_checkpoint is not None:
        size = bytes_text(facts.newest_checkpoint_bytes or 0)
        kind = (facts.newest_checkpoint_kind or "").replace("_", " ").lower()
        checkpoint = f"of version {facts.newest_checkpoint:,}, {kind}, {size}"
    hint = facts.last_checkpoint
    checksum = known_text(facts.checksum, str)
    if facts.checksum_detail is not None:
        checksum = joined([checksum, ": ", shortened(facts.checksum_detail, 600)])
    incomplete = f", and {facts.incomplete_checkpoints:,} incomplete" if facts.incomplete_checkpoints else ""
    noted = unknown(hint) if isinstance(hint, Unknown) else "none" if hint is None else f"version {hint:,}"
    to_load = f"{count_text(facts.files_to_load, 'file')}, {bytes_text(facts.bytes_to_load)}"
    interval = known_text(facts.checkpoint_interval, lambda count: count_text(count, "commit"))
    gaps = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in facts.gaps[:10])
    rows: list[tuple[str, Child, str]] = [
        ("Newest version", number(facts.newest_version), listing_source),
        ("Oldest version that can be read", known_text(facts.earliest_version, lambda version: f"{version:,}"), listing_source),
        ("Commits", f"{facts.commits:,} ({bytes_text(facts.commit_bytes)})", listing_source),
        ("Missing commits", shortened(gaps, 300) or "none between the oldest and the newest", listing_source),
        ("Checkpoints", f"{facts.checkpoints:,}{incomplete}", listing_source),
        ("Newest checkpoint up to this version", checkpoint, listing_source),
        ("Commits after it", number(facts.commits_since_checkpoint), "the files that are read to load the version"),
        ("A checkpoint every", interval, "delta.checkpointInterval, else 10"),
        ("_last_checkpoint", noted, "_delta_log/_last_checkpoint"),
        ("Log compactions", f"{facts.compactions:,}, {facts.compactions_in_use:,} in use", listing_source),
        ("Version checksums", number(facts.checksums), listing_source),
        ("Checksum of this version", checksum, "the .crc file next to the commit, compared with the log"),
        ("Read to load this version", to_load, "the files that are read to load the version"),
    ]
    return joined([_faults(facts), fact_table("The log's health", rows), source_line(facts.source)])


def _faults(facts: LogFacts) -> Markup:
    if isinstance(facts.faults, Unknown):
        return tag("p", "Faults: ", unknown(facts.faults))
    if not facts.faults:
        return tag("p", "FSCK finds no fault in the log. Data files were not checked.")
    return list_table(
        f"{count_text(len(facts.faults), 'fault')}, as FSCK tells them",
        ("Kind", "Version", "File", "What is wrong", "A repair can fix it"),
        [
            (
                fault.kind,
                "" if fault.version is None else f"{fault.version:,}",
                data(fault.path),
                tag("bdi", shortened(fault.reason, 400)),
                "yes" if fault.can_repair else "no",
            )
            for fault in facts.faults[:_NEWEST]
        ],
        (1,),
    )


def _retention(facts: RetentionFacts) -> Markup:
    of_removes, properties = "remove actions of the version", "table properties"
    last = facts.last_vacuum_ms
    hint = facts.last_vacuum_version
    expired: Child = known_text(facts.expired, lambda count: f"{count:,}")
    if not isinstance(facts.expired_bytes, Unknown):
        expired = joined([expired, f" ({bytes_text(facts.expired_bytes)})"])
    elif not isinstance(facts.expired, Unknown):
        expired = joined([expired, " (", unknown(facts.expired_bytes), ")"])
    without: Child = known_text(facts.without_time, lambda count: f"{count:,}")
    rows: list[tuple[str, Child, str]] = [
        (
            "Retention of removed files",
            known_text(facts.deleted_file_ms, length_text),
            f"{properties}: delta.deletedFileRetentionDuration, else a week",
        ),
        (
            "Retention of commits",
            known_text(facts.log_ms, length_text),
            f"{properties}: delta.logRetentionDuration, else 30 days",
        ),
        ("Removed files in the log", known_text(facts.tombstones, lambda count: f"{count:,}"), of_removes),
        ("Bytes of removed files", known_text(facts.tombstone_bytes, bytes_text), f"{of_removes}: size"),
        ("Removed files past their retention", expired, f"{of_removes}: deletionTimestamp; some may be deleted already"),
        ("Removed at an unknown time", without, f"{of_removes}: deletionTimestamp"),
        (
            "Newest VACUUM",
            unknown(last) if isinstance(last, Unknown) else "none" if last is None else moment_text(last),
            "VACUUM END in the commits",
        ),
        (
            "Newest commit that VACUUM covered",
            unknown(hint) if isinstance(hint, Unknown) else "not recorded" if hint is None else f"version {hint:,}",
            "_delta_log/_last_vacuum_info",
        ),
        (
            "VACUUM would delete",
            known_text(facts.vacuum, lambda debt: f"{count_text(debt.files, 'file')} ({bytes_text(debt.bytes)})"),
            "a dry run of VACUUM: the table's directories, listed",
        ),
    ]
    table: Child = None
    if not isinstance(facts.vacuum, Unknown) and facts.vacuum.reasons:
        table = list_table(
            "What VACUUM would delete",
            ("Why", "Files", "Bytes"),
            [(reason.reason, number(reason.files), bytes_text(reason.bytes)) for reason in facts.vacuum.reasons],
            (1, 2),
        )
    return joined([fact_table("Retention", rows), table, source_line(facts.source)])


# ---------------------------------------------------------------- streams and definition


def _streams(facts: StreamFacts) -> Markup:
    note = soft(
        "Streams that write to this table, by their transactions in the log. The position of a stream that reads this table is "
        "in the stream's own checkpoint, and unknown here."
    )
    if not facts.count:
        return joined([tag("p", "No stream has written to this table."), note, source_line(facts.source)])
    table = list_table(
        f"{count_text(facts.count, 'application')} that write by transactions",
        ("Application", "Batch", "Commit", "Versions since", "Time since", "Last updated"),
        [
            (
                data(stream.app_id),
                number(stream.batch),
                tag("span", "unknown", class_="unknown") if stream.table_version is None else f"{stream.table_version:,}",
                known_text(stream.versions_behind, lambda count: f"{count:,}"),
                known_text(stream.ms_behind, length_text),
                optional(None if stream.last_updated_ms is None else moment_text(stream.last_updated_ms)),
            )
            for stream in facts.streams[:_NEWEST]
        ],
        (1, 2),
    )
    more_note = soft(f"And {count_text(facts.count - _NEWEST, 'application')} more.") if facts.count > _NEWEST else None
    return joined([note, table, more_note, source_line(facts.source)])


def _definition(facts: TableFacts) -> Markup:
    identity = facts.identity
    metadata, protocol = "metaData action", "protocol action"
    clustering = identity.clustering_columns
    rows: list[tuple[str, Child, str]] = [
        ("Path", data(identity.root), "the path that the table was opened by"),
        ("Id", data(identity.table_id), metadata),
        ("Made", optional(None if identity.created_ms is None else moment_text(identity.created_ms)), f"{metadata}: createdTime"),
        ("Columns", number(identity.columns), f"{metadata}: schemaString"),
        ("Partition columns", data(", ".join(identity.partition_columns) or "none"), metadata),
        ("Clustering columns", known_text(clustering, lambda names: data(", ".join(names) or "none")), "domain delta.clustering"),
        ("Readers need version", number(identity.min_reader), protocol),
        ("Writers need version", number(identity.min_writer), protocol),
        ("Table features", data(shortened(", ".join(identity.features), 2_000) or "none named"), protocol),
    ]
    properties = sorted(identity.properties.items())
    table = list_table(
        "Table properties, from the metaData action",
        ("Property", "Value"),
        [(data(name), data(value)) for name, value in properties[:100]],
    )
    shown: Child = tag("p", "The table has no properties.", class_="soft")
    if properties:
        shown = folded(count_text(len(properties), "property").replace("propertys", "properties"), table)
    return joined([fact_table("What the table is", rows), shown, source_line(identity.source)])
