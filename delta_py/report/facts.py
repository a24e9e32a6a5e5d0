"""The facts of a report about a table: frozen values, and their JSON.

Each part names its `source`: the files of the log, or the facts in them, that its numbers come from. A fact that is not known
is an Unknown with the reason, never a zero. Times are ms since 1970, sizes are bytes, shares are between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError, readable

T = TypeVar("T")
_LONG_AS_DECIMAL = pa.decimal128(19, 0)  # holds any 64-bit integer; a sum has 38 digits


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that is not known. unknown: the reason."""

    unknown: str


def known(step: Callable[[], T]) -> T | Unknown:
    """The result of the step. Unknown if the table or its storage raises an error, or the log has numbers that cannot be used in
    calculations."""
    try:
        return step()
    except DeltaError as error:
        return Unknown(error.message)
    except OSError as error:
        return Unknown(readable(str(error)))
    except (ArithmeticError, ValueError, TypeError, pa.ArrowException) as error:
        return Unknown(readable(f"the log has numbers that cannot be used in calculations: {error} ({type(error).__name__})"))


def total(values: pa.Array | pa.ChunkedArray) -> int:
    """The sum of 64-bit integers of any size, without nulls."""
    return int(pc.sum(values.cast(_LONG_AS_DECIMAL)).as_py() or 0)


@dataclass(frozen=True, slots=True)
class Identity:
    """timestamp_ms: of the version. min_reader, min_writer: versions of the protocol. columns: the number of top-level columns of
    the schema. features: named by the protocol, sorted."""

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
    """operation, user, engine: None if the commit does not name one. files_added, files_removed, bytes_added: from the commit's
    add and remove actions; None if the commit was not read. log_bytes: the size of the commit's JSON file."""

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
    """Totals of the commits of one operation that were read. files and bytes: None if those of one of them are not known."""

    operation: str | None
    commits: int
    files_added: int | None
    files_removed: int | None
    bytes_added: int | None
    last_version: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class WriterTotals:
    """Totals of the commits of one engine and user, as far as commits were read."""

    engine: str | None
    user: str | None
    commits: int
    last_version: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """in_log: commits that the log has, up to the version. commits: the newest of them, newest first. z_order: the columns of
    the newest Z-order among these. last_vacuum: the newest VACUUM END among them."""

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
    """batch: the number of its newest transaction. last_updated_ms: as the writer recorded it, or None. table_version: the
    commit with this transaction, None if it is older than the commits that were read. versions_behind, ms_behind: from that
    commit to the report's version; Unknown if the commit does not exist any more."""

    app_id: str
    batch: int
    last_updated_ms: int | None
    table_version: int | None
    versions_behind: int | Unknown
    ms_behind: int | Unknown


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """streams: those with the largest lag first. count: of all streams."""

    count: int
    streams: tuple[Stream, ...]
    source: str


# ---------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Files from low_bytes to below high_bytes; None: without a limit."""

    low_bytes: int
    high_bytes: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OptimizeDebt:
    """The work of OPTIMIZE if it ran now: the files that it would rewrite, and the number of files that it would write, one per
    bin."""

    files: int
    bytes: int
    bins: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """rows: without the rows that deletion vectors delete. small: files below target_bytes. median_bytes, largest_bytes: None
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
    about equal numbers of
    partitions. skew: the size of the largest partition divided by the median size; None without partitions, or
    if the median is 0 bytes. small_count: partitions of several files whose total is below the target file size."""

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
    """files: the number of files with a deletion vector. deleted_rows: deleted rows in these files. rows: all rows in these
    files, including deleted ones. bytes: the size of the deletion vectors. shares: (upper end, files) pairs; each counts
    the files whose share of deleted rows is above the pair before and at most this upper end.
    beyond: files whose share is above max_share, so OPTIMIZE rewrites them.
    files_without_share: files whose share cannot be computed, because the log does not have their row
    count, or has 0."""

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
    """How well queries can skip files by one column. files, with_bounds: all files, and those with a minimum and a maximum of the
    column. point_share, range_share: the share of the files that a query for one value, or for a tenth of the values, reads; None
    if unknown. queries: how many queries compared the column. advice: None if there is nothing to do. sql_name: the column's name
    as in SQL, with backticks if it needs them. role: `clustering` or `Z-order` if rows were ordered by the column, else None."""

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
    """The files as rectangles over two columns, x and y: a file covers its minimum to its maximum of each. why: the reason for
    these two columns. x_low to y_high: the ends of the axes, as text. files: the number of files in the map, which have bounds
    of both columns. without: the number of the other files. rectangles: (x0, y0, x1, y1) as shares of the axes; empty if there
    are too many files to draw. density: then the number of files over each cell of a grid, rows from low to high y; else empty.
    mean_depth: the mean number of files over a cell. mean_area: the mean area of a rectangle, as a share of the map."""

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
    """left_out: columns that may have bounds but were not examined, because there are too many."""

    columns: tuple[ColumnSkipping, ...]
    left_out: int
    map: FileMap | Unknown
    source: str


# ---------------------------------------------------------------- the log


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault as FSCK reports it. kind: commit, checkpoint, checksum, compaction, lastCheckpoint."""

    kind: str
    path: str
    version: int | None
    reason: str
    can_repair: bool


@dataclass(frozen=True, slots=True)
class LogFacts:
    """newest_version: of the log, which may be newer than the report's. earliest_version: the first that can be read.
    newest_checkpoint: up to the report's version, as are commits_since_checkpoint and the cost of loading it:
    files_to_load, bytes_to_load. checksum: of the report's version: `agrees`, `contradicts`, `damaged`, `older form`, `none`;
    checksum_detail: its fault. gaps: ranges of missing commits. last_checkpoint: the version in
    `_last_checkpoint`. faults: of the whole log."""

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
    """The files that VACUUM would delete for one reason."""

    reason: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class VacuumDebt:
    """The result of a dry run of VACUUM. bytes: as listed."""

    files: int
    bytes: int
    reasons: tuple[VacuumReason, ...]


@dataclass(frozen=True, slots=True)
class RetentionFacts:
    """tombstones: removed files that the log still contains and that are not live again. expired: those removed longer ago
    than deleted_file_ms, which VACUUM deletes if they still exist. without_size, without_time: those without this value in
    the log. last_vacuum_version: from `_last_vacuum_info`."""

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
class Commands:
    """The same command for a shell, for SQL and for Python. None if there is no safe command of that kind."""

    cli: str | None
    sql: str | None
    python: str | None


@dataclass(frozen=True, slots=True)
class Advice:
    """urgent: something is damaged. cli, sql, python: as Commands. after_dry_run: the commands that change the table, if the
    others are only a dry run."""

    title: str
    reason: str
    source: str
    cli: str | None
    sql: str | None
    python: str | None
    urgent: bool = False
    after_dry_run: Commands | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """partitions: None for a table without partition columns. generated_ms: when the facts were gathered."""

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
        """One JSON object by the names here; an unknown fact is an object `{"unknown": why}`. Whole numbers beyond 64 bits are
        floats."""
        return orjson.dumps(_without_huge_numbers(asdict(self)), option=orjson.OPT_INDENT_2).decode()


def _without_huge_numbers(value: Any) -> Any:
    """The value without numbers that JSON's readers do not represent: they become floats."""
    if isinstance(value, dict):
        return {name: _without_huge_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_huge_numbers(inner) for inner in value]
    if type(value) is int and value.bit_length() > 63:
        return float(value) if value.bit_length() < 1_000 else asdict(Unknown("a number of more than 300 digits"))
    return value
