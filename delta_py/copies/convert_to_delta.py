"""CONVERT TO DELTA: turns a directory of Parquet files into a table by writing a log. No file is rewritten or moved.

    convert(store, ConvertRequest(partition_schema=StructType((StructField("day", DATE),))))     # Converted(version=0, ...)

convert lists the directory and reads the footers of the files (in threads here, or by `read` in tasks of Spark). One commit adds
all files, so a process that dies earlier leaves the directory unchanged. Memory holds the contents of the commit, and no footers.

The columns with statistics are known only after all columns are known. Most files have the same columns, so the first file
decides, and footers are read a second time only if the other files change the decision.
Protocol: Add File and Remove File; Change Metadata; Per-file Statistics; Partition Value Serialization.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.transaction import Transaction
from delta_py.copies.convert_files import find_files, partition_values
from delta_py.copies.convert_schema import MergedColumns, merge_files
from delta_py.definition.create import TableDefinition, add_properties_for_iceberg, define_table
from delta_py.definition.properties import split_configuration
from delta_py.errors import DataFileError, InvalidOptionError, UnsupportedOperationError
from delta_py.optimize.optimize import AtTable, here
from delta_py.parquet.foreign_files import FooterReading, read_footers
from delta_py.progress import part, progress, steps
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import AddFile, Metadata, Protocol
from delta_py.protocol.features import Properties
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.write_state import STRING_PREFIX
from delta_py.statistics.stats_columns import stats_columns
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType, schema_to_json
from delta_py.write.data_files import WrittenFiles

_READ_AT_ONCE = 1000  # how many files one call of read_footers gets
_MOST_NAMED_FILES = 5  # in an error
_TYPE_WIDENING = "delta.feature.typeWidening"

ReadFooters: TypeAlias = Callable[[FooterReading, pa.Table], pa.Table]
"""Runs foreign_files.read_footers on parts of the files; returns the results as one table, in their order."""


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """A request to convert a directory. partition_schema: the columns in the names of the directories, in their order; None if
    there are none. collect_stats: store statistics from the footers in the log. configuration: table properties. name,
    description: of the new table. catalog_table: the table's name in a catalog, for the history; None without a catalog.
    catalog_partitions: the directories that the catalog has for its table, as it shows them, such as `day=2024-05-01`; they must
    be the directories of the files. None: they are not compared. time_zone: of timestamps in names of directories.
    """

    partition_schema: StructType | None = None
    collect_stats: bool = True
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    catalog_table: str | None = None
    catalog_partitions: tuple[str, ...] | None = None
    time_zone: str = "UTC"

    @property
    def partitions(self) -> StructType:
        return self.partition_schema or StructType()

    def check(self) -> None:
        """Raises InvalidOptionError for properties that such files cannot have: their columns have neither ids nor physical
        names.
        """
        properties, _ = split_configuration(self.configuration)
        add_properties_for_iceberg(properties)  # it may add a column mapping mode, which is refused below
        mode = column_mapping.mode(Properties(properties))
        if mode != "none":
            raise InvalidOptionError(
                f"The property {column_mapping.MODE_PROPERTY} cannot be {mode!r} of a directory of Parquet files, and "
                "delta.enableIcebergCompatV1, V2 and V3 ask for it. Nothing was changed. Leave them out.",
                error_class="DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
                sql_state="0AKDC",
            )


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """The files of a directory as a table. adds: the files, by paths below the directory."""

    definition: TableDefinition
    adds: tuple[AddFile, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of CONVERT. version: of the commit; None if a table already existed, and nothing was done."""

    table_root: str
    version: int | None = None
    file_count: int = 0


@progress("CONVERT", "files")
def convert(
    store: ObjectStore, request: ConvertRequest, read: ReadFooters | None = None, run_at_table: AtTable = here
) -> Converted:
    """Make a table from the Parquet files below the store's root.

    Raises as read_directory; ProtocolChangedException when another writer creates a table in the meantime. Nothing is changed
    then.
    """
    table = read_directory(store, request, read or read_here, run_at_table)
    if table is None:
        return Converted(store.root)
    version = run_at_table(partial(_commit_table, store, request, table), once=True)
    return Converted(store.root, version, len(table.adds))


def read_directory(
    store: ObjectStore, request: ConvertRequest, read: ReadFooters, run_at_table: AtTable = here
) -> ParquetTable | None:
    """Read the Parquet files below the store's root as a table. Returns None if a table already exists. Nothing is changed.

    Raises what find_files, partition_values and merge_files raise; DataFileError (DELTA_FAILED_READ_FILE_FOOTER) naming files
    that are no Parquet; UnsupportedOperationError (DELTA_UNSUPPORTED_DATA_TYPES) for types that Delta does not have; what
    define_table raises for the columns.
    """
    request.check()
    files = run_at_table(partial(find_files, store))
    if files is None:
        return None
    values = partition_values(files, request.partitions, request.time_zone)
    _check_partitions(files, request)
    columns, footers = _columns_and_footers(store, request, files, read)
    return ParquetTable(_table_definition(request, columns), tuple(_add_actions(footers, values)))


def read_here(reading: FooterReading, files: pa.Table) -> pa.Table:
    """ReadFooters in threads of this process."""
    footers: list[pa.Table] = []
    with steps(files.num_rows, "footers") as count:
        for batch in parts_of(files, _READ_AT_ONCE):
            footers.append(read_footers(reading, batch))
            count(batch.num_rows)
    return pa.concat_tables(footers)


def parts_of(files: pa.Table, count: int) -> list[pa.Table]:
    """The files in slices of `count` rows; the last one may be shorter."""
    return [files.slice(start, count) for start in range(0, files.num_rows, count)]


# ---------------------------------------------------------------- columns and statistics


def _columns_and_footers(
    store: ObjectStore, request: ConvertRequest, files: pa.Table, read: ReadFooters
) -> tuple[MergedColumns, pa.Table]:
    """The columns of all files, and their footers (FOOTER_SCHEMA) with statistics of the table's columns."""
    first_footer = read(FooterReading(store), files.slice(0, 1))
    # If the first file cannot be read, the loop reads all footers, and _check_footers reports all such files.
    is_readable = first_footer["schema"].null_count == 0
    reading = _footer_reading(
        store, request, merge_files(first_footer, request.partitions).schema if is_readable else request.partitions
    )
    # The first file's columns say which statistics are needed, until the columns of all files are known. The loop runs at most
    # twice: the columns of the files do not depend on the statistics that are read.
    while True:
        with part(files.num_rows, "files"):
            footers = read(reading, files)
        _check_footers(store, footers)
        columns = merge_files(footers, request.partitions)
        needed_reading = _footer_reading(store, request, columns.schema)
        if needed_reading.stats_columns == reading.stats_columns:
            return columns, footers
        reading = needed_reading


def _footer_reading(store: ObjectStore, request: ConvertRequest, schema: StructType) -> FooterReading:
    """The settings for reading footers, with the statistics that a table of these columns collects; without statistics if the
    request does not collect any."""
    if not request.collect_stats:
        return FooterReading(store)
    # A preliminary configuration: only columns and properties matter for the choice of statistics. The protocol, (1,2), and the
    # rest of the definition come later.
    metadata = Metadata("", schema_to_json(schema), request.partitions.names, request.configuration)
    config = TableConfig(Protocol(1, 2), metadata)
    prefix = config.properties.integer("delta.dataSkippingStringPrefixLength", STRING_PREFIX)
    return FooterReading(store, stats_columns(config), prefix)


def _table_definition(request: ConvertRequest, columns: MergedColumns) -> TableDefinition:
    """The definition of the table. Raises InvalidOptionError for row tracking without statistics, else as define_table."""
    feature = {_TYPE_WIDENING: "supported"} if columns.widens else {}
    definition = define_table(
        columns.schema,
        partition_by=request.partitions.names,
        name=request.name,
        description=request.description,
        configuration={**request.configuration, **feature},
    )
    if definition.config.feature("rowTracking") and not request.collect_stats:
        raise InvalidOptionError(
            "Rows can be tracked (delta.enableRowTracking) only in files whose numbers of rows are known. Nothing was "
            "changed. Let statistics be collected, or leave the property out.",
            error_class="DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS",
            sql_state="22000",
        )
    return definition


# ---------------------------------------------------------------- the commit


def _commit_table(store: ObjectStore, request: ConvertRequest, table: ParquetTable) -> int:
    """Commit version 0 with the definition and all files; returns the version."""
    definition, adds = table.definition, table.adds
    transaction = Transaction(None, store=store).set_protocol(definition.protocol).set_metadata(definition.metadata)
    transaction.add(WrittenFiles(adds=adds, size_bytes=sum(add.size_bytes for add in adds)))
    parameters: dict[str, Any] = {
        "numFiles": len(adds),
        "partitionedBy": list(request.partitions.names),
        "collectStats": request.collect_stats,
        "sourceFormat": "parquet",
    }
    if request.catalog_table is not None:
        parameters["catalogTable"] = request.catalog_table
    return transaction.commit("CONVERT", parameters, metrics={"numConvertedFiles": len(adds)})


def _add_actions(footers: pa.Table, values: pa.Table) -> Iterator[AddFile]:
    """An add action for each file. values: the partition values of the files, as texts."""
    texts: Sequence[Mapping[str, str | None]] = values.to_pylist() if values.num_columns else [{}] * footers.num_rows
    columns = (footers[name].to_pylist() for name in ("path", "size", "modification_time", "stats"))
    for *file, stats, partition in zip(*columns, texts, strict=True):
        path, size, modification_time = file
        yield AddFile(path, partition, size, modification_time, stats=stats)


# ---------------------------------------------------------------- refused files


def _check_footers(store: ObjectStore, footers: pa.Table) -> None:
    """Raises the errors of read_directory for files that cannot be used. footers: FOOTER_SCHEMA, where no_footer or no_type has
    the reason for such a file."""
    damaged, unsupported = (footers.filter(footers[name].is_valid()) for name in ("no_footer", "no_type"))
    if damaged.num_rows:
        raise DataFileError(
            f"Could not read footer for file: {_names_of(damaged)}, below {store.root}: {damaged['no_footer'][0].as_py()}. Every "
            "file whose name does not begin with _ or . must be Parquet. Nothing was changed. Move what is no data elsewhere; "
            "restore what is damaged.",
            error_class="DELTA_FAILED_READ_FILE_FOOTER",
            sql_state="KD001",
            files=damaged["path"].slice(0, _MOST_NAMED_FILES).to_pylist(),
        )
    if unsupported.num_rows:
        raise UnsupportedOperationError(
            f"Found columns using unsupported data types: in {_names_of(unsupported)}, below {store.root}, "
            f"{unsupported['no_type'][0].as_py()}. Nothing was changed. Rewrite these files with other types.",
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
            sql_state="0AKDC",
            files=unsupported["path"].slice(0, _MOST_NAMED_FILES).to_pylist(),
        )


def _names_of(files: pa.Table) -> str:
    """The names of the files, or of the first ones."""
    names = ", ".join(files["path"].slice(0, _MOST_NAMED_FILES).to_pylist())
    return names if files.num_rows <= _MOST_NAMED_FILES else f"{names} and {files.num_rows - _MOST_NAMED_FILES} more"


def _check_partitions(files: pa.Table, request: ConvertRequest) -> None:
    """Raises UnsupportedOperationError if the catalog's partitions are not the directories with files. A catalog may have fewer
    partitions than there are directories, or partitions elsewhere: then its table has other rows than the files.
    """
    if request.catalog_partitions is None:
        return
    directories = set(pc.unique(pc.replace_substring_regex(files["path"], "/?[^/]*$", "")).to_pylist())
    differences = sorted(directories ^ set(request.catalog_partitions))
    if differences:
        raise UnsupportedOperationError(
            f"The table {request.catalog_table} has other partitions in the catalog than there are directories with files, "
            f"such as {differences[0]}. Nothing was changed. Let the catalog know of all of them (MSCK REPAIR TABLE), drop "
            "those that have no files, or name the directory by its path.",
            error_class="DELTA_CONVERSION_NO_PARTITION_FOUND",
            sql_state="42KD6",
            partitions=differences[:_MOST_NAMED_FILES],
        )
