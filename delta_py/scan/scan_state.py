"""What the driver sends to an executor for a scan: one ScanState, and the ScanFiles of a partition.

Both pickle small and import little. Names inside files are physical (column mapping is resolved when a ScanState is
built); names of output columns are logical.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from delta_py.expressions.tree import Expression
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import DataType, StructField


class ColumnSource(Enum):
    """Where a column's values come from."""

    DATA = "data"  # the data file, or null if the file lacks it
    PARTITION = "partition"  # ScanFile.partition_values
    CONSTANT = "constant"  # ScanFile.constants by logical name, or the file if constants lack it (change data feed columns)
    METADATA = "metadata"  # a struct made from the file and the row's position in it: METADATA_FIELDS


METADATA_FIELDS: tuple[str, ...] = (
    "file_path",  # string: URI of the data file, percent-encoded
    "file_name",  # string: the last part of the URI
    "file_size",  # long
    "file_modification_time",  # timestamp
    "row_index",  # long: 0-based position in the file
    "row_id",  # long: row tracking's stable id, null if the table has none
    "row_commit_version",  # long: version of the commit that last changed the row, null if the table has none
)


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """One column of a scan.

    logical: name and type of the output; a struct holds only the requested nested fields.
    physical: the same structure with the names inside data files; a field's metadata holds `delta.columnMapping.id` if
        the table has ids. Equal to logical without column mapping.
    """

    logical: StructField
    physical: StructField
    source: ColumnSource = ColumnSource.DATA


@dataclass(frozen=True, slots=True)
class ScanState:
    """How to read any file of one scan.

    store: the table's store, which pickles as the table's location. table_id: from the table's metadata; None for files that
    belong to no known table.
    columns: the output, in order. filter_columns: read for the predicate only, not part of the output.
    match_by_id: columns are found in Parquet by field id (column mapping mode `id`); by name otherwise.
    predicate: over logical paths of columns and filter_columns; row groups that cannot match are skipped.
    drop_rows: rows for which the predicate is not true must be dropped (exactly); otherwise they may be dropped.
    counted: names of columns for which only the presence of a value matters; the values themselves have no meaning.
    row_id_column, row_commit_version_column: physical names of the materialized row tracking columns, or None.
    ignore_missing_files: a missing data file is skipped, with a warning. A missing deletion vector is always an
        error: otherwise deleted rows would come back.
    timezone: the session's, for partition values of timestamps without an offset, and for old files that do
        not name their writer's time zone.
    to_write: rows are read to be written again. So an invalid partition value is an error; otherwise it is read
    as null, as in delta-spark.
    verify_checksums: each decoded page is compared with its checksum, if it has one. Always true with to_write: a damaged
    value that is written again would look sound.
    batch_rows, batch_bytes: upper bounds of one batch; the first one that is reached applies.
    """

    store: ObjectStore
    columns: tuple[ScanColumn, ...]
    filter_columns: tuple[ScanColumn, ...] = ()
    match_by_id: bool = False
    predicate: Expression | None = None
    drop_rows: bool = False
    counted: frozenset[str] = frozenset()
    row_id_column: str | None = None
    row_commit_version_column: str | None = None
    ignore_missing_files: bool = False
    timezone: str = "UTC"
    to_write: bool = False
    table_id: str | None = None
    verify_checksums: bool = False
    batch_rows: int = 65_536
    batch_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ScanFile:
    """One data file to read.

    path: decoded; relative to the table's root, or an absolute path or URI.
    partition_values: physical column name -> text as in the log.
    deletion_vector: its rows are left out. selection: if set, only its rows are read (change data feed).
    constants: values of CONSTANT columns for every row, by logical name. stats, tags, clustering_provider: as in the log, and
    path_text: the log's spelling of the path, if the plan kept them. number: the file's number in a plan for DML.
    part: the byte range (first byte, length) of the row groups to read. A row group belongs to the range that holds its middle.
    None for the whole file.
    """

    path: str
    size_bytes: int
    modification_time_ms: int = 0
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    deletion_vector: DeletionVectorDescriptor | None = None
    selection: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    constants: Mapping[str, tuple[Any, DataType]] = field(default_factory=dict)
    stats: str | None = None
    path_text: str | None = None
    tags: Mapping[str, str | None] | None = None
    clustering_provider: str | None = None
    number: int | None = None
    part: tuple[int, int] | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """The same key as AddFile.key."""
        return self.path, None if self.deletion_vector is None else self.deletion_vector.unique_id
