"""The facts of a table in the text format that Prometheus scrapes.

    print(metrics_text(DeltaTable("/data/sales")))
    # pydelta_table_files{table="/data/sales"} 12

An unknown fact has no sample of its own, and no zero: `pydelta_table_unknown` names it. Names contain the units.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from delta_py.report.facts import TableFacts, Unknown
from delta_py.report.gathering import ReportRequest, gather
from delta_py.snapshot import Snapshot
from delta_py.visible_text import visible

Value: TypeAlias = "int | float | Unknown | None"
_PREFIX = "pydelta_table_"
_LONGEST_LABEL = 400
_AGREES = {"agrees": 1, "damaged": 0, "contradicts": 0}  # a checksum in another state cannot be compared


class HasSnapshot(Protocol):
    """A DeltaTable."""

    @property
    def snapshot(self) -> Snapshot: ...


@dataclass(frozen=True, slots=True)
class Metric:
    """samples: labels in addition to the table's label, and the value; None if the fact does not apply, for example without a
    checkpoint."""

    name: str
    help: str
    samples: Sequence[tuple[Mapping[str, str], Value]]


def metrics_text(table: HasSnapshot, *, vacuum: bool = False, check_log: bool = True) -> str:
    """The facts of a table as text, which ends with a line end. vacuum: run VACUUM as a dry run, which lists the table's
    directories. check_log: look for faults in the log, which reads every checkpoint."""
    return text_of(gather(table.snapshot, ReportRequest(vacuum=vacuum, check_log=check_log)))


def text_of(facts: TableFacts) -> str:
    """The facts of an existing report as text. It ends with a line end."""
    all_metrics = metrics(facts)
    lines = [line for metric in all_metrics for line in _lines(metric, facts.identity.root)]
    lines += _lines(_unknown(all_metrics), facts.identity.root)
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- the text


def _lines(metric: Metric, table: str) -> list[str]:
    """The lines of a metric: its help, its type, its samples; none if no sample has a known value. table: the value of the label
    of this name."""
    samples = [(labels, value) for labels, value in metric.samples if value is not None and not isinstance(value, Unknown)]
    if not samples:
        return []
    name = _PREFIX + metric.name
    return [
        f"# HELP {name} {metric.help}",
        f"# TYPE {name} gauge",
        *(f"{name}{_labels({'table': table, **labels})} {_number(value)}" for labels, value in samples),
    ]


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_label(value)}"' for name, value in labels.items()) + "}"


def _label(text: str) -> str:
    """A label's value: invisible characters are made visible, then backslashes and quotes are escaped. If this makes two labels
    equal, or they have the same beginning, a checksum of the text keeps them apart."""
    label = visible(text)
    if len(label) > _LONGEST_LABEL:
        label = f"{label[:_LONGEST_LABEL]}…"
    if label != text:
        label += f" {zlib.crc32(text.encode(errors='backslashreplace')):08x}"
    return label.replace("\\", "\\\\").replace('"', '\\"')


def _number(value: int | float) -> str:
    """A value as Prometheus reads it. repr keeps all digits of a float."""
    return str(value) if isinstance(value, int) else repr(float(value))


def _unknown(all_metrics: Sequence[Metric]) -> Metric:
    """The metric that names the samples without a known value."""
    missing = [
        ({"metric": _PREFIX + metric.name, **labels}, 1)
        for metric in all_metrics
        for labels, value in metric.samples
        if isinstance(value, Unknown)
    ]
    return Metric("unknown", "1 for each metric whose value is unknown; that metric has no sample", missing)


# ---------------------------------------------------------------- the metrics


def metrics(facts: TableFacts) -> list[Metric]:
    """The metrics in the order of the page."""
    return [
        *_state(facts),
        *_commits(facts),
        *_files(facts),
        *_skipping(facts),
        *_vectors(facts),
        *_log(facts),
        *_retention(facts),
        *_streams(facts),
    ]


def _one(name: str, help: str, value: Value) -> Metric:
    """A metric with one sample, without labels of its own."""
    return Metric(name, help, [({}, value)])


def _seconds(value: int | Unknown | None) -> Value:
    """Milliseconds as seconds. Unknown and None do not change."""
    return value / 1_000 if isinstance(value, int) else value


def _of(part: object, name: str) -> Value:
    """A field of a part of the facts, or Unknown if the part is unknown."""
    value: Value = part if isinstance(part, Unknown) else getattr(part, name)
    return value


def _state(facts: TableFacts) -> list[Metric]:
    identity = facts.identity
    return [
        _one("version", "version that the metrics describe", identity.version),
        _one("commit_timestamp_seconds", "time of that version's commit, since 1970", _seconds(identity.timestamp_ms)),
        _one("reader_version", "minReaderVersion of the protocol action", identity.min_reader),
        _one("writer_version", "minWriterVersion of the protocol action", identity.min_writer),
        _one("advice", "pieces of advice in the report", len(facts.advice)),
    ]


def _commits(facts: TableFacts) -> list[Metric]:
    commits = facts.commits
    if isinstance(commits, Unknown):
        return [_one("log_commits", "commits in the log, up to the version", commits)]
    by_operation = [({"operation": total.operation or ""}, total) for total in commits.by_operation]
    looked_at = "of the newest commits, by operation (commitInfo)"
    return [
        _one("log_commits", "commits in the log, up to the version", commits.in_log),
        _one("commits_looked_at", "newest commits that the metrics by operation describe", len(commits.commits)),
        Metric("operation_commits", f"commits {looked_at}", [(labels, total.commits) for labels, total in by_operation]),
        Metric(
            "operation_added_bytes",
            f"bytes of the add actions {looked_at}",
            [(labels, _or_unknown(total.bytes_added, "a commit was not read")) for labels, total in by_operation],
        ),
        Metric(
            "operation_last_timestamp_seconds",
            f"time of the last commit {looked_at}",
            [(labels, total.last_timestamp_ms / 1_000) for labels, total in by_operation],
        ),
    ]


def _or_unknown(value: int | None, why: str) -> Value:
    """In the facts None means that a total is not known; as a sample it would mean that the fact does not apply."""
    return Unknown(why) if value is None else value


def _files(facts: TableFacts) -> list[Metric]:
    files, partitions = facts.files, facts.partitions
    optimize = files if isinstance(files, Unknown) else files.optimize
    file_metrics = [
        _one("files", "live files (add actions)", _of(files, "count")),
        _one("size_bytes", "bytes of the live files (add actions: size)", _of(files, "bytes")),
        _one("rows", "rows, without deleted rows (stats.numRecords, deletionVector.cardinality)", _of(files, "rows")),
        _one("target_file_bytes", "file size that OPTIMIZE aims at (delta.targetFileSize)", _of(files, "target_bytes")),
        _one("small_files", "live files below the target size", _of(files, "small_count")),
        _one("small_files_bytes", "bytes of the live files below the target size", _of(files, "small_bytes")),
        _one("optimize_files", "files that OPTIMIZE would rewrite now", _of(optimize, "files")),
        _one("optimize_bytes", "bytes of the files that OPTIMIZE would rewrite now", _of(optimize, "bytes")),
    ]
    if partitions is not None:
        file_metrics += [
            _one("partitions", "partitions with live files (partitionValues)", _of(partitions, "count")),
            _one(
                "partition_skew_ratio", "bytes of the largest partition divided by those of the median", _of(partitions, "skew")
            ),
        ]
    return file_metrics


def _skipping(facts: TableFacts) -> list[Metric]:
    skipping = facts.skipping
    if isinstance(skipping, Unknown):
        return [_one("column_point_share_ratio", "share of the files that a query for one value of a column reads", skipping)]
    why = "no file has minima and maxima of the column"

    def shares(name: str) -> list[tuple[Mapping[str, str], Value]]:
        return [
            ({"column": column.sql_name}, Unknown(why) if getattr(column, name) is None else getattr(column, name))
            for column in skipping.columns
        ]

    of_files = "of a column reads (stats.minValues, maxValues)"
    return [
        Metric("column_point_share_ratio", f"share of the files that a query for one value {of_files}", shares("point_share")),
        Metric(
            "column_range_share_ratio",
            f"share of the files that a query for a tenth of the values {of_files}",
            shares("range_share"),
        ),
    ]


def _vectors(facts: TableFacts) -> list[Metric]:
    vectors = facts.vectors
    return [
        _one("deletion_vector_files", "live files with a deletion vector", _of(vectors, "files")),
        _one("deleted_rows", "rows that deletion vectors delete (cardinality)", _of(vectors, "deleted_rows")),
        _one("mostly_deleted_files", "files with so many deleted rows that OPTIMIZE rewrites them", _of(vectors, "beyond")),
    ]


def _log(facts: TableFacts) -> list[Metric]:
    log = facts.log
    faults: list[tuple[Mapping[str, str], Value]]
    if isinstance(log, Unknown):
        faults = [({}, log)]
    elif isinstance(log.faults, Unknown):
        faults = [({}, log.faults)]
    else:
        kinds = sorted({fault.kind for fault in log.faults})
        faults = [({"kind": kind}, sum(fault.kind == kind for fault in log.faults)) for kind in kinds] or [({}, 0)]
    state: Value = log if isinstance(log, Unknown) else None
    if not isinstance(log, Unknown):
        state = log.checksum if isinstance(log.checksum, Unknown) else _AGREES.get(log.checksum)
    return [
        _one("log_bytes", "bytes of the commits in the log", _of(log, "commit_bytes")),
        _one("log_earliest_version", "oldest version that can be read", _of(log, "earliest_version")),
        _one("log_checkpoint_version", "version of the newest checkpoint, up to the version", _of(log, "newest_checkpoint")),
        _one("log_commits_since_checkpoint", "commits after the checkpoint that are read", _of(log, "commits_since_checkpoint")),
        _one("log_load_bytes", "bytes of the log's files that are read to load the version", _of(log, "bytes_to_load")),
        _one("log_gaps", "ranges of commits that are missing", log if isinstance(log, Unknown) else len(log.gaps)),
        _one("log_checksum_agrees", "whether the version checksum agrees with the log; absent without one", state),
        Metric("log_faults", "faults that FSCK finds in the log, by kind", faults),
    ]


def _retention(facts: TableFacts) -> list[Metric]:
    retention = facts.retention
    vacuum = retention if isinstance(retention, Unknown) else retention.vacuum
    return [
        _one("deleted_file_retention_seconds", "how long removed files are retained", _seconds_of(retention, "deleted_file_ms")),
        _one("log_retention_seconds", "how long commits are retained", _seconds_of(retention, "log_ms")),
        _one("tombstones", "removed files in the log (remove actions)", _of(retention, "tombstones")),
        _one("tombstones_bytes", "bytes of the removed files in the log (size)", _of(retention, "tombstone_bytes")),
        _one("tombstones_expired", "removed files in the log whose retention time has passed", _of(retention, "expired")),
        _one("vacuum_files", "files that VACUUM would delete, by a dry run", _of(vacuum, "files")),
        _one("vacuum_bytes", "bytes that VACUUM would delete, by a dry run", _of(vacuum, "bytes")),
        _one("last_vacuum_timestamp_seconds", "time of the newest VACUUM END", _seconds_of(retention, "last_vacuum_ms")),
    ]


def _seconds_of(part: object, name: str) -> Value:
    """A field in milliseconds of a part of the facts, in seconds; Unknown if the part is unknown."""
    value = _of(part, name)
    return value / 1_000 if isinstance(value, int) else value


def _streams(facts: TableFacts) -> list[Metric]:
    streams = facts.streams
    if isinstance(streams, Unknown):
        return [_one("stream_versions_behind", "commits since the newest one of a stream", streams)]
    by_app = [({"app_id": stream.app_id}, stream) for stream in streams.streams]
    return [
        Metric(
            "stream_batch",
            "newest transaction of an application that writes to the table (txn)",
            [(labels, stream.batch) for labels, stream in by_app],
        ),
        Metric(
            "stream_versions_behind",
            "commits since the newest one of a stream",
            [(labels, stream.versions_behind) for labels, stream in by_app],
        ),
        Metric(
            "stream_seconds_behind",
            "time between the newest commit of a stream and that of the table",
            [(labels, _seconds(stream.ms_behind)) for labels, stream in by_app],
        ),
    ]
