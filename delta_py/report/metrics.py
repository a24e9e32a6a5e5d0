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
_CHECKSUM_VALUES = {"agrees": 1, "damaged": 0, "contradicts": 0}  # a checksum in another state cannot be compared


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
    lines += _lines(_unknown_samples(all_metrics), facts.identity.root)
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


def _unknown_samples(all_metrics: Sequence[Metric]) -> Metric:
    """The metric that names the samples without a known value."""
    samples = [
        ({"metric": _PREFIX + metric.name, **labels}, 1)
        for metric in all_metrics
        for labels, value in metric.samples
        if isinstance(value, Unknown)
    ]
    return Metric("unknown", "1 for each metric whose value is unknown; that metric has no sample", samples)


# ---------------------------------------------------------------- the metrics


def metrics(facts: TableFacts) -> list[Metric]:
    """The metrics in the order of the page."""
    return [
        *_version_metrics(facts),
        *_commit_metrics(facts),
        *_file_metrics(facts),
        *_skipping_metrics(facts),
        *_vector_metrics(facts),
        *_log_metrics(facts),
        *_retention_metrics(facts),
        *_stream_metrics(facts),
    ]


def _metric(name: str, help: str, value: Value) -> Metric:
    """A metric with one sample, without labels of its own."""
    return Metric(name, help, [({}, value)])


def _seconds(value: int | Unknown | None) -> Value:
    """Milliseconds as seconds. Unknown and None do not change."""
    return value / 1_000 if isinstance(value, int) else value


def _field(part: object, name: str) -> Value:
    """A field of a part of the facts, or Unknown if the part is unknown."""
    value: Value = part if isinstance(part, Unknown) else getattr(part, name)
    return value


def _version_metrics(facts: TableFacts) -> list[Metric]:
    identity = facts.identity
    return [
        _metric("version", "version that the metrics describe", identity.version),
        _metric("commit_timestamp_seconds", "time of that version's commit, since 1970", _seconds(identity.timestamp_ms)),
        _metric("reader_version", "minReaderVersion of the protocol action", identity.min_reader),
        _metric("writer_version", "minWriterVersion of the protocol action", identity.min_writer),
        _metric("advice", "pieces of advice in the report", len(facts.advice)),
    ]


def _commit_metrics(facts: TableFacts) -> list[Metric]:
    commits = facts.commits
    if isinstance(commits, Unknown):
        return [_metric("log_commits", "commits in the log, up to the version", commits)]
    by_operation = [({"operation": total.operation or ""}, total) for total in commits.by_operation]
    scope_text = "of the newest commits, by operation (commitInfo)"
    return [
        _metric("log_commits", "commits in the log, up to the version", commits.in_log),
        _metric("commits_looked_at", "newest commits that the metrics by operation describe", len(commits.commits)),
        Metric("operation_commits", f"commits {scope_text}", [(labels, total.commits) for labels, total in by_operation]),
        Metric(
            "operation_added_bytes",
            f"bytes of the add actions {scope_text}",
            [(labels, _or_unknown(total.bytes_added, "a commit was not read")) for labels, total in by_operation],
        ),
        Metric(
            "operation_last_timestamp_seconds",
            f"time of the last commit {scope_text}",
            [(labels, total.last_timestamp_ms / 1_000) for labels, total in by_operation],
        ),
    ]


def _or_unknown(value: int | None, why: str) -> Value:
    """In the facts None means that a total is not known; as a sample it would mean that the fact does not apply."""
    return Unknown(why) if value is None else value


def _file_metrics(facts: TableFacts) -> list[Metric]:
    files, partitions = facts.files, facts.partitions
    optimize = files if isinstance(files, Unknown) else files.optimize
    file_metrics = [
        _metric("files", "live files (add actions)", _field(files, "count")),
        _metric("size_bytes", "bytes of the live files (add actions: size)", _field(files, "bytes")),
        _metric("rows", "rows, without deleted rows (stats.numRecords, deletionVector.cardinality)", _field(files, "rows")),
        _metric("target_file_bytes", "file size that OPTIMIZE aims at (delta.targetFileSize)", _field(files, "target_bytes")),
        _metric("small_files", "live files below the target size", _field(files, "small_count")),
        _metric("small_files_bytes", "bytes of the live files below the target size", _field(files, "small_bytes")),
        _metric("optimize_files", "files that OPTIMIZE would rewrite now", _field(optimize, "files")),
        _metric("optimize_bytes", "bytes of the files that OPTIMIZE would rewrite now", _field(optimize, "bytes")),
    ]
    if partitions is not None:
        file_metrics += [
            _metric("partitions", "partitions with live files (partitionValues)", _field(partitions, "count")),
            _metric(
                "partition_skew_ratio",
                "bytes of the largest partition divided by those of the median",
                _field(partitions, "skew"),
            ),
        ]
    return file_metrics


def _skipping_metrics(facts: TableFacts) -> list[Metric]:
    skipping = facts.skipping
    if isinstance(skipping, Unknown):
        return [_metric("column_point_share_ratio", "share of the files that a query for one value of a column reads", skipping)]
    why = "no file has minima and maxima of the column"

    def shares(name: str) -> list[tuple[Mapping[str, str], Value]]:
        return [
            ({"column": column.sql_name}, Unknown(why) if getattr(column, name) is None else getattr(column, name))
            for column in skipping.columns
        ]

    query_text = "of a column reads (stats.minValues, maxValues)"
    return [
        Metric("column_point_share_ratio", f"share of the files that a query for one value {query_text}", shares("point_share")),
        Metric(
            "column_range_share_ratio",
            f"share of the files that a query for a tenth of the values {query_text}",
            shares("range_share"),
        ),
    ]


def _vector_metrics(facts: TableFacts) -> list[Metric]:
    vectors = facts.vectors
    return [
        _metric("deletion_vector_files", "live files with a deletion vector", _field(vectors, "files")),
        _metric("deleted_rows", "rows that deletion vectors delete (cardinality)", _field(vectors, "deleted_rows")),
        _metric("mostly_deleted_files", "files with so many deleted rows that OPTIMIZE rewrites them", _field(vectors, "beyond")),
    ]


def _log_metrics(facts: TableFacts) -> list[Metric]:
    log = facts.log
    fault_samples: list[tuple[Mapping[str, str], Value]]
    if isinstance(log, Unknown):
        fault_samples = [({}, log)]
    elif isinstance(log.faults, Unknown):
        fault_samples = [({}, log.faults)]
    else:
        kinds = sorted({fault.kind for fault in log.faults})
        fault_samples = [({"kind": kind}, sum(fault.kind == kind for fault in log.faults)) for kind in kinds] or [({}, 0)]
    # None, which gives no sample, for a checksum that is missing or cannot be compared.
    checksum_agrees: Value = log if isinstance(log, Unknown) else None
    if not isinstance(log, Unknown):
        checksum_agrees = log.checksum if isinstance(log.checksum, Unknown) else _CHECKSUM_VALUES.get(log.checksum)
    return [
        _metric("log_bytes", "bytes of the commits in the log", _field(log, "commit_bytes")),
        _metric("log_earliest_version", "oldest version that can be read", _field(log, "earliest_version")),
        _metric(
            "log_checkpoint_version", "version of the newest checkpoint, up to the version", _field(log, "newest_checkpoint")
        ),
        _metric(
            "log_commits_since_checkpoint", "commits after the checkpoint that are read", _field(log, "commits_since_checkpoint")
        ),
        _metric("log_load_bytes", "bytes of the log's files that are read to load the version", _field(log, "bytes_to_load")),
        _metric("log_gaps", "ranges of commits that are missing", log if isinstance(log, Unknown) else len(log.gaps)),
        _metric("log_checksum_agrees", "whether the version checksum agrees with the log; absent without one", checksum_agrees),
        Metric("log_faults", "faults that FSCK finds in the log, by kind", fault_samples),
    ]


def _retention_metrics(facts: TableFacts) -> list[Metric]:
    retention = facts.retention
    vacuum = retention if isinstance(retention, Unknown) else retention.vacuum
    return [
        _metric(
            "deleted_file_retention_seconds", "how long removed files are retained", _field_seconds(retention, "deleted_file_ms")
        ),
        _metric("log_retention_seconds", "how long commits are retained", _field_seconds(retention, "log_ms")),
        _metric("tombstones", "removed files in the log (remove actions)", _field(retention, "tombstones")),
        _metric("tombstones_bytes", "bytes of the removed files in the log (size)", _field(retention, "tombstone_bytes")),
        _metric("tombstones_expired", "removed files in the log whose retention time has passed", _field(retention, "expired")),
        _metric("vacuum_files", "files that VACUUM would delete, by a dry run", _field(vacuum, "files")),
        _metric("vacuum_bytes", "bytes that VACUUM would delete, by a dry run", _field(vacuum, "bytes")),
        _metric("last_vacuum_timestamp_seconds", "time of the newest VACUUM END", _field_seconds(retention, "last_vacuum_ms")),
    ]


def _field_seconds(part: object, name: str) -> Value:
    """A field in milliseconds of a part of the facts, in seconds; Unknown if the part is unknown."""
    value = _field(part, name)
    return value / 1_000 if isinstance(value, int) else value


def _stream_metrics(facts: TableFacts) -> list[Metric]:
    streams = facts.streams
    if isinstance(streams, Unknown):
        return [_metric("stream_versions_behind", "commits since the newest one of a stream", streams)]
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
