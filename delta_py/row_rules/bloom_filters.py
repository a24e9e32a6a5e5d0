"""Bloom filters in Parquet files, for the columns that the table's properties name, with the names of Parquet's own settings.

    parquet.bloom.filter.enabled#user.id = true
    parquet.bloom.filter.expected.ndv#user.id = 100000     # distinct values in a row group
    parquet.bloom.filter.fpp#user.id = 0.01                # share of false answers

They serve engines that use them when they read, such as Spark: pyarrow writes them since version 26, and does not read them.
Protocol: Data Files.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import pyarrow.parquet as pq

from delta_py.errors import InvalidOptionError, SchemaMismatchError, UnsupportedOperationError
from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.table_config import TableConfig
from delta_py.types.schema import ArrayType, DataType, MapType, StructType, find_named, type_name

ENABLED = "parquet.bloom.filter.enabled#"
DISTINCT_VALUES = "parquet.bloom.filter.expected.ndv#"
FALSE_SHARE = "parquet.bloom.filter.fpp#"

_TYPES_WITHOUT_FILTER = ("boolean", "variant", "void")


def bloom_filters(config: TableConfig) -> dict[str, dict[str, int | float]]:
    """The Bloom filters that the table's properties ask for: by physical column (its path joined by dots), pyarrow's options of
    the filter. A property for a column that the table does not have is ignored: the column may have been dropped.

    Raises UnsupportedOperationError if pyarrow is too old, or for a column whose type has no filters; InvalidOptionError for
    invalid values.
    """
    properties = config.metadata.configuration
    options_by_column: dict[str, dict[str, int | float]] = {}
    for name, value in properties.items():
        if not name.startswith(ENABLED) or value.lower() != "true":
            continue
        column = name.removeprefix(ENABLED)
        try:
            fields = find_named(config.schema, column)
        except SchemaMismatchError:
            continue
        path = tuple(f.name for f in fields)
        # The values of partition columns are in the log, and data files usually lack these columns.
        if path[0] not in config.partition_columns:
            _check_type_has_filters(column, fields[-1].data_type)
            physical = physical_path(config.schema, path, config.column_mapping_mode)
            options_by_column[".".join(physical)] = _filter_options(properties, column)
    if options_by_column and "bloom_filter_options" not in inspect.signature(pq.ParquetWriter.__init__).parameters:
        raise UnsupportedOperationError(
            f"The table's properties ask for Bloom filters of {', '.join(options_by_column)}, which this version of pyarrow "
            f"cannot write. Nothing was written. Install pyarrow 26 or newer, or remove {ENABLED}...",
            columns=list(options_by_column),
        )
    return options_by_column


def _check_type_has_filters(column: str, data_type: DataType) -> None:
    """Raise UnsupportedOperationError for a type whose values have no Bloom filter. column: dotted, as the property names it."""
    if isinstance(data_type, StructType | ArrayType | MapType) or type_name(data_type) in _TYPES_WITHOUT_FILTER:
        raise UnsupportedOperationError(
            f"{ENABLED}{column}: a column of type {type_name(data_type)} has no Bloom filter in Parquet. Nothing was written. "
            "Remove the property.",
            column=column,
        )


def _filter_options(properties: Mapping[str, str], column: str) -> dict[str, int | float]:
    """pyarrow's options of the column's filter: ndv (distinct values) and fpp (share of false answers), if the table's properties
    set them. pyarrow has defaults for both."""
    options: dict[str, int | float] = {}
    distinct_count, false_share = properties.get(f"{DISTINCT_VALUES}{column}"), properties.get(f"{FALSE_SHARE}{column}")
    if distinct_count is not None:
        if not distinct_count.isdecimal() or not 0 < int(distinct_count) < 2**31:
            raise _invalid_property(f"{DISTINCT_VALUES}{column}", distinct_count, "a number of values above 0")
        options["ndv"] = int(distinct_count)
    if false_share is not None:
        try:
            options["fpp"] = float(false_share)
        except ValueError as error:
            raise _invalid_property(f"{FALSE_SHARE}{column}", false_share, "a share between 0 and 1") from error
        if not 0 < options["fpp"] < 1:
            raise _invalid_property(f"{FALSE_SHARE}{column}", false_share, "a share between 0 and 1")
    return options


def _invalid_property(name: str, value: str, expected: str) -> InvalidOptionError:
    return InvalidOptionError(f"Table property {name} is {value!r}; it must be {expected}. Nothing was written.", property=name)
