"""What a report knows of a table: frozen values, and their JSON.

Each part names its `source`: the files of the log, or the facts in them, that its numbers were taken from. What could not be told
is an Unknown with the reason, never a zero. Times are ms since 1970, sizes are bytes, shares lie between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import orjson

from delta_py.errors import DeltaError, readable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """What could not be told. unknown: why."""

    unknown: str


def known(step: Callable[[], T]) -> T | Unknown:
    """What the step gives; Unknown where the table or its storage does not let it. Mistakes of the code are raised."""
    try:
        return step()
    except DeltaError as error:
        return Unknown(error.message)
    except OSError as error:
        return Unknown(readable(str(error)))


@dataclass(frozen=True, slots=True)
class Identity:
    """timestamp_ms: of the version. columns: of the schema, at its top. features: named by the protocol, sorted."""

    root: str
    name: str | None
    description: str | None
    table_id: str
    version: int
    timestamp_ms: int | Unknown
    created_ms: int | None
    min_reader: int
    min_writer: int
    features: tuple[str, ...]
    columns: int
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...] | Unknown
    properties: dict[str, str]
    source: str


# ---------------------------------------------------------------- commits


@dataclass(frozen=True, slots=True)
class Commit:
    """operation, user, engine: None where the commit does not say. files and bytes: of its add and remove actions; None where
    they were not read. log_bytes: of the commit's own file."""

    version: int
    timestamp_ms: int
    operation: str | None
    user: str | None
    engine: str | None
    files_added: int | None
    files_removed: int | None
    bytes_added: int | None
    log_bytes: int


@dataclass(frozen=True, slots=True)
class OperationTotals:
    """Of the commits that were looked at. files and bytes: None where those of one of them are not known."""

    operation: str | None
    commits: int
    files_added: int | None
    files_removed: int | None
    bytes_added: int | None
    last_version: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class WriterTotals:
    """As OperationTotals."""

    engine: str | None
    user: str | None
    commits: int
    last_version: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """in_log: commits that the log has, up to the version. commits: the newest of them, newest first. z_order: the columns of
    the newest Z-order among these. last_vacuum: the newest end of a VACUUM among them."""

    in_log: int
    oldest_version: int
    commits: tuple[Commit, ...]
    by_operation: tuple[OperationTotals, ...]
    by_writer: tuple[WriterTotals, ...]
    z_order: tuple[str, ...]
    last_vacuum: Commit | None
    source: str


@dataclass(frozen=True, slots=True)
class Stream:
    """batch: the number of its newest transaction. last_updated_ms: as the writer noted it, or None. table_version: the
    commit that brought it, None where it is older than the commits that were looked at. versions_behind, ms_behind: from that
    commit to the report's version; Unknown where the commit is not there."""

    app_id: str
    batch: int
    last_updated_ms: int | None
    table_version: int | None
    versions_behind: int | Unknown
    ms_behind: int | Unknown


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """streams: of the largest lag first. count: of all."""

    count: int
    streams: tuple[Stream, ...]
    source: str


# ---------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Files of low_bytes up to below high_bytes; None: without a limit."""

    low_bytes: int
    high_bytes: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OptimizeDebt:
    """What OPTIMIZE would do now: files that it would write anew, and how many it would make of them, if each bin is one."""

    files: int
    bytes: int
    bins: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """rows: without those that deletion vectors take away. small: files below target_bytes. median_bytes, largest_bytes: None
    without files."""

    count: int
    bytes: int
    rows: int | Unknown
    files_without_row_count: int
    sizes: tuple[SizeBin, ...]
    median_bytes: int | None
    largest_bytes: int | None
    target_bytes: int | Unknown
    small_count: int | Unknown
    small_bytes: int | Unknown
    optimize: OptimizeDebt | Unknown
    source: str


@dataclass(frozen=True, slots=True)
class Partition:
    """values: as the log spells them, None for null."""

    values: tuple[str | None, ...]
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """largest: by bytes. profile: sizes from the largest to the smallest partition, at most 60: each the mean of a group of
    equal numbers of partitions. skew: the largest partition in sizes of the median one; None without partitions, or where
    that has 0 bytes. small_count: partitions of several files that all together are below the target file size."""

    columns: tuple[str, ...]
    count: int
    largest: tuple[Partition, ...]
    profile: tuple[float, ...]
    median_bytes: int | None
    skew: float | None
    median_files: float | None
    small_count: int | Unknown
    source: str


@dataclass(frozen=True, slots=True)
class VectorFacts:
    """files: with a deletion vector. deleted_rows: in them. rows: of these files, deleted ones included. bytes: of the
    vectors, as their descriptors say. shares: how many files have up to so large a share of deleted rows. beyond: files above
    max_share, which OPTIMIZE writes anew. files_without_share: whose number of rows is not known."""

    files: int
    deleted_rows: int
    rows: int | Unknown
    bytes: int
    shares: tuple[tuple[float, int], ...]
    max_share: float
    beyond: int
    files_without_share: int
    source: str


# ---------------------------------------------------------------- skipping


@dataclass(frozen=True, slots=True)
class ColumnSkipping:
    """A row of DeltaTable.layout. sql_name: of the column, with backticks where it needs them. role: `clustering`, `Z-order` or
    None."""

    column: str
    sql_name: str
    type: str
    files: int
    with_bounds: int
    point_share: float | None
    range_share: float | None
    queries: int
    advice: str | None
    role: str | None


@dataclass(frozen=True, slots=True)
class FileMap:
    """The files as rectangles over two columns. why: these two. low, high: the ends of each, as text. files: in the map, with
    bounds of both; without: the others. rectangles: x0, y0, x1, y1 as shares of the axes, for few files; else none, and
    density: how many files lie over each cell, rows from low to high y. mean_depth: over a cell, on average; mean_area: of a
    rectangle."""

    x: str
    y: str
    why: str
    x_low: str
    x_high: str
    y_low: str
    y_high: str
    files: int
    without: int
    rectangles: tuple[tuple[float, float, float, float], ...]
    density: tuple[tuple[int, ...], ...]
    mean_depth: float
    mean_area: float


@dataclass(frozen=True, slots=True)
class SkippingFacts:
    """left_out: columns that may have bounds and were not looked at, as there are so many."""

    columns: tuple[ColumnSkipping, ...]
    left_out: int
    map: FileMap | Unknown
    source: str


# ---------------------------------------------------------------- the log


@dataclass(frozen=True, slots=True)
class Fault:
    """As FSCK tells it. kind: commit, checkpoint, checksum, compaction, lastCheckpoint."""

    kind: str
    path: str
    version: int | None
    reason: str
    can_repair: bool


@dataclass(frozen=True, slots=True)
class LogFacts:
    """newest_version: of the log, which may be newer than the report's. earliest_version: that can be read.
    newest_checkpoint: up to the report's version, as are commits_since_checkpoint and what stands for loading it:
    files_to_load, bytes_to_load. checksum: of the report's version: `agrees`, `contradicts`, `damaged`, `older form`, `none`;
    checksum_detail: what is wrong with it. gaps: ranges of commits that are missing. last_checkpoint: the version that
    `_last_checkpoint` names. faults: of the whole log."""

    newest_version: int
    earliest_version: int | Unknown
    commits: int
    commit_bytes: int
    gaps: tuple[tuple[int, int], ...]
    checkpoints: int
    incomplete_checkpoints: int
    newest_checkpoint: int | None
    newest_checkpoint_kind: str | None
    newest_checkpoint_bytes: int | None
    checkpoint_interval: int | Unknown
    commits_since_checkpoint: int
    last_checkpoint: int | Unknown | None
    compactions: int
    compactions_in_use: int
    checksums: int
    checksum: str | Unknown
    checksum_detail: str | None
    files_to_load: int
    bytes_to_load: int
    faults: tuple[Fault, ...] | Unknown
    source: str


@dataclass(frozen=True, slots=True)
class VacuumReason:
    reason: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class VacuumDebt:
    """What a dry run of VACUUM found. bytes: as listed."""

    files: int
    bytes: int
    reasons: tuple[VacuumReason, ...]


@dataclass(frozen=True, slots=True)
class RetentionFacts:
    """tombstones: removed files that the log still knows of and that are not live again. expired: those removed longer ago
    than deleted_file_ms, which VACUUM deletes where they are still there. without_size, without_time: of which the log does
    not say it. last_vacuum_version: what `_last_vacuum_info` says."""

    deleted_file_ms: int | Unknown
    log_ms: int | Unknown
    tombstones: int | Unknown
    tombstone_bytes: int | Unknown
    without_size: int | Unknown
    without_time: int | Unknown
    expired: int | Unknown
    expired_bytes: int | Unknown
    last_vacuum_version: int | Unknown | None
    last_vacuum_ms: int | Unknown | None
    vacuum: VacuumDebt | Unknown
    source: str


# ---------------------------------------------------------------- all together


@dataclass(frozen=True, slots=True)
class Advice:
    """urgent: something is damaged. commands: None where there is none of the kind that is safe to type."""

    title: str
    reason: str
    source: str
    cli: str | None
    sql: str | None
    python: str | None
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class TableFacts:
    """partitions: None for a table without partition columns. generated_ms: when it was looked at."""

    generated_ms: int
    identity: Identity
    commits: CommitFacts | Unknown
    files: FileFacts | Unknown
    partitions: PartitionFacts | Unknown | None
    vectors: VectorFacts | Unknown
    skipping: SkippingFacts | Unknown
    log: LogFacts | Unknown
    retention: RetentionFacts | Unknown
    streams: StreamFacts | Unknown
    advice: tuple[Advice, ...] = ()

    def to_json(self) -> str:
        """One JSON object by the names here; what is unknown is an object `{"unknown": why}`."""
        return orjson.dumps(self, option=orjson.OPT_INDENT_2).decode()
