"""Bloom filters in Parquet files, for the columns that the table's properties name as Parquet's own settings do.

    parquet.bloom.filter.enabled#user.id = true
    parquet.bloom.filter.expected.ndv#user.id = 100000     # distinct values in a row group
    parquet.bloom.filter.fpp#user.id = 0.01                # share of false answers

They are for engines that ask them when they read, such as Spark: pyarrow writes them from version 26 on, and asks none.
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

_NO_FILTER = ("boolean", "variant", "void")


def bloom_filters(config: TableConfig) -> dict[str, dict[str, int | float]]:
    """Physical columns, dotted, with pyarrow's options of their filters. A column that the table does not have is passed over: it
    may have been dropped. Raises UnsupportedOperationError where pyarrow is too old, or for a column whose type has no filters;
    InvalidOptionError for values that make no sense."""
    properties = config.metadata.configuration
    wanted: dict[str, dict[str, int | float]] = {}
    for name, value in properties.items():
        if not name.startswith(ENABLED) or value.lower() != "true":
            continue
        column = name.removeprefix(ENABLED)
        try:
            fields = find_named(config.schema, column)
        except SchemaMismatchError:
            continue
        path = tuple(f.name for f in fields)
        if path[0] not in config.partition_columns:
            _check_type(column, fields[-1].data_type)
            physical = physical_path(config.schema, path, config.column_mapping_mode)
            wanted[".".join(physical)] = _options(properties, column)
    if wanted and "bloom_filter_options" not in inspect.signature(pq.ParquetWriter.__init__).parameters:
        raise UnsupportedOperationError(
            f"The table's properties ask for Bloom filters of {', '.join(wanted)}, which this version of pyarrow cannot write. "
            f"Nothing was written. Install pyarrow 26 or newer, or take {ENABLED}... back.",
            columns=list(wanted),
        )
    return wanted


def _check_type(column: str, data_type: DataType) -> None:
    if isinstance(data_type, StructType | ArrayType | MapType) or type_name(data_type) in _NO_FILTER:
        raise UnsupportedOperationError(
            f"{ENABLED}{column}: a column of type {type_name(data_type)} has no Bloom filter in Parquet. Nothing was written. "
            "Take the property back.",
            column=column,
        )


def _options(properties: Mapping[str, str], column: str) -> dict[str, int | float]:
    options: dict[str, int | float] = {}
    count, share = properties.get(f"{DISTINCT_VALUES}{column}"), properties.get(f"{FALSE_SHARE}{column}")
    if count is not None:
        if not count.isdecimal() or not 0 < int(count) < 2**31:
            raise _senseless(f"{DISTINCT_VALUES}{column}", count, "a number of values above 0")
        options["ndv"] = int(count)
    if share is not None:
        try:
            options["fpp"] = float(share)
        except ValueError as error:
            raise _senseless(f"{FALSE_SHARE}{column}", share, "a share between 0 and 1") from error
        if not 0 < options["fpp"] < 1:
            raise _senseless(f"{FALSE_SHARE}{column}", share, "a share between 0 and 1")
    return options


def _senseless(name: str, value: str, wanted: str) -> InvalidOptionError:
    return InvalidOptionError(f"Table property {name} is {value!r}; it must be {wanted}. Nothing was written.", property=name)
