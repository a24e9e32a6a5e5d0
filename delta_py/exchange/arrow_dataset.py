"""A version of a table as a dataset of pyarrow, which duckdb, polars and others filter by themselves.

    arrow_dataset(snapshot).to_table(filter=ds.field("day") == 3)

Each data file is a fragment. Its guarantee holds its partition values and the bounds of its statistics, so a filter skips files
without opening them. pyarrow knows neither deletion vectors nor column mapping: the rows of a file that needs them are read into
memory when the dataset is made, by this library's own reader. That is each file with a deletion vector, and each file of a table
with column mapping or with columns whose values pyarrow reads in another form (`why_in_memory`).
Protocol: Per-file Statistics; Deletion Vectors; Column Mapping.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs

from delta_py.exchange.arrow_file_system import StoreFileSystem
from delta_py.expressions.tree import Expression
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_groups import scan_files
from delta_py.scan.file_pruner import partition_texts, typed_partition_values
from delta_py.scan.planning import Scan, ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import FileStats, parse_stats
from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.column_rules import TYPE_CHANGES
from delta_py.types.schema import (
    VARIANT,
    VOID,
    DataType,
    DecimalType,
    GeospatialType,
    PrimitiveType,
    StructField,
    to_arrow_schema,
)
from delta_py.types.type_walk import all_types

# Types whose bounds become guarantees. Bounds of floats do not: they say nothing about NaN, for which some filters are true.
# Binary values have no bounds in the log.
_BOUNDED = ("byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz")


def arrow_dataset(
    snapshot: Snapshot,
    predicate: Expression | None = None,
    *,
    timezone: str = "UTC",
    filesystem: Any = None,
    read_options: Any = None,
    schema: pa.Schema | None = None,
) -> Any:
    """A pyarrow.dataset.Dataset of the files that may hold rows for which the predicate is true; the rows are not filtered.

    timezone: the zone of partition values that are timestamps without an offset. filesystem: reads the files by their paths below
    the table's root, in place of the table's store. read_options: pyarrow's ParquetReadOptions. schema: the schema of the
    dataset, in place of the table's. Raises as plan_scan and read_files.
    """
    import pyarrow.dataset as ds  # the only module that needs it: importing it takes longer than a small read

    # keep_all: the list of files keeps all of its columns, because the guarantees below come from the statistics.
    scan = plan_scan(snapshot, None, predicate, ScanOptions(timezone=timezone, keep_all=True))
    schema = schema or to_arrow_schema(snapshot.schema)
    needs_own_reader = pa.array([why_in_memory(snapshot.config) is not None] * scan.files.num_rows, pa.bool_())
    has_vector = scan.files["deletion_vector"].is_valid().combine_chunks()
    is_read_now = pc.or_(needs_own_reader, has_vector)
    fragment_files = scan.files.filter(pc.invert(is_read_now))
    options = read_options or ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    file_format = ds.ParquetFileFormat(
        read_options=options, default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True)
    )
    schema = _with_dictionaries(schema, options.dictionary_columns or ())
    # The size in bytes of each file that becomes a fragment, by its path.
    sizes = dict(zip(fragment_files["path"].to_pylist(), fragment_files["size"].to_pylist(), strict=True))
    files = filesystem or pa_fs.PyFileSystem(StoreFileSystem(snapshot.store, sizes))
    fragments = [
        file_format.make_fragment(path, filesystem=files, partition_expression=guarantee)
        for path, guarantee in zip(sizes, _guarantees(ds, snapshot.config, fragment_files, timezone), strict=True)
    ]
    dataset = ds.FileSystemDataset(fragments, schema, file_format, files)
    if fragment_files.num_rows == scan.files.num_rows:
        return dataset
    rows = _read_rows(scan, scan.files.filter(is_read_now)).cast(schema)
    return ds.UnionDataset(schema, [dataset, ds.InMemoryDataset(rows, schema=schema)])


def why_in_memory(config: TableConfig) -> str | None:
    """Why pyarrow's own reader would give other rows than this library's for some files of the table; None if it does not."""
    if config.column_mapping_mode != "none":
        return "its columns have other names in the files (column mapping)"
    for column in config.schema.fields:
        if column.metadata.keys() & {TYPE_CHANGES, DECLARED_TYPE} or any(
            map(_is_read_in_other_form, all_types(column.data_type))
        ):
            return f"pyarrow reads values of the column {column.name} in another form"
    return None


def _is_read_in_other_form(data_type: DataType) -> bool:
    """Whether pyarrow's reader returns values of the type in another form than this library's reader."""
    return data_type in (VARIANT, VOID) or isinstance(data_type, GeospatialType)


def _with_dictionaries(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The schema with the columns that the caller reads as dictionaries."""
    for position, column in enumerate(schema):
        if column.name in names:
            schema = schema.set(position, column.with_type(pa.dictionary(pa.int32(), column.type)))
    return schema


def _read_rows(scan: Scan, files: pa.Table) -> pa.Table:
    """The rows of these files of the scan, read by this library."""
    files_to_read = (file for batch in files.to_batches(max_chunksize=4096) for file in scan_files(batch))
    return pa.Table.from_batches(read_files(scan.state, files_to_read), schema=to_arrow_schema(scan.output_schema))


# ---------------------------------------------------------------- what is known about each file


def _guarantees(ds: Any, config: TableConfig, files: pa.Table, timezone: str) -> list[Any]:
    """For each file, an expression that is true for all of its rows."""
    columns = [f for f in config.schema.fields if _is_bounded(f) and f.name not in config.partition_columns]
    stats = parse_stats(files["stats"], {(f.name,): f.data_type for f in columns})
    facts_by_file: list[list[Any]] = [[] for _ in range(files.num_rows)]
    batches = files.combine_chunks().to_batches()  # one batch; none if there are no files
    for column in config.partition_fields if batches else ():
        values = typed_partition_values(partition_texts(batches[0], column.name), column, timezone)
        field = ds.field(column.name)
        for facts, value in zip(facts_by_file, values, strict=True):
            facts.append(field == value if value.is_valid else field.is_null())
    for column in columns:
        _add_bounds(ds.field(column.name), stats, column, facts_by_file)
    return [_conjunction(ds, facts) for facts in facts_by_file]


def _is_bounded(column: StructField) -> bool:
    """Whether the column's statistics become a part of the guarantee."""
    data_type = column.data_type
    return isinstance(data_type, DecimalType) or (isinstance(data_type, PrimitiveType) and data_type.name in _BOUNDED)


def _add_bounds(field: Any, stats: FileStats, column: StructField, facts_by_file: Sequence[list[Any]]) -> None:
    """Append what the statistics say about a column to the facts about each file.

    field: the column as an expression of pyarrow. facts_by_file: for each file, expressions that are true for all of its rows.
    """
    path = (column.name,)
    unknown_counts = pa.nulls(stats.file_count, pa.int64())
    minimum, maximum = stats.minimum.get(path), stats.maximum.get(path)
    null_counts = stats.null_count.get(path, unknown_counts).to_pylist()
    row_counts = stats.num_records.to_pylist()
    for index, facts in enumerate(facts_by_file):
        null_count, row_count = null_counts[index], row_counts[index]
        if null_count is not None and null_count == row_count:
            facts.append(field.is_null())
            continue
        if null_count == 0:
            facts.append(field.is_valid())
        for bound, is_lower in ((minimum, True), (maximum, False)):
            if bound is not None and bound[index].is_valid:
                fact = field >= bound[index] if is_lower else field <= bound[index]
                # A null is within no bounds, so it needs a condition of its own. pyarrow
                # can use the fact only if the condition for nulls comes second.
                facts.append(fact if null_count == 0 else fact | field.is_null())


def _conjunction(ds: Any, facts: Sequence[Any]) -> Any:
    """An expression of pyarrow that is true if all facts are; always true without facts. ds: the module pyarrow.dataset."""
    if not facts:
        return ds.scalar(True)
    result = facts[0]
    for fact in facts[1:]:
        result = result & fact
    return result
