"""The columns of a Parquet file that another program wrote, in Delta's types.

    columns = read_columns(pq.ParquetFile(source))       # columns.schema: StructType; columns.leaves: (path) -> Parquet column

A type is accepted only if every reader of Delta reads the same values. Types that Parquet has and Delta lacks (unsigned integers,
times of day, nanoseconds, UUIDs, intervals, half floats, nulls without a type) are refused by name. All columns, elements and
values are nullable, because another file may lack them. Column comments come from the schema that Spark stores in its files.
Protocol: Delta Data Type to Parquet Type Mappings; Schema Serialization Format.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.errors import CorruptTableError, UnsupportedOperationError
from delta_py.parquet.file_schema import FileField, Shape, read_file_schema
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    Path,
    StructField,
    StructType,
    parse_schema,
)
from delta_py.types.type_walk import all_types

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_COMMENT = "comment"
# The types of columns without a logical type, by physical type. Below, those of columns with a logical type without parameters.
_BY_PHYSICAL_TYPE = {
    "BOOLEAN": BOOLEAN,
    "INT32": INTEGER,
    "INT64": LONG,
    "INT96": TIMESTAMP,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "BYTE_ARRAY": BINARY,
    "FIXED_LEN_BYTE_ARRAY": BINARY,
}
_BY_LOGICAL_TYPE = {"STRING": STRING, "ENUM": STRING, "JSON": STRING, "BSON": BINARY, "DATE": DATE}
_SIGNED_BY_BITS = {8: BYTE, 16: SHORT, 32: INTEGER, 64: LONG}
_LONGEST_DECIMAL = 38


class NoDeltaType(Exception):
    """A column has a type that Delta lacks; the message follows the file's name."""


@dataclass(frozen=True, slots=True)
class ForeignColumns:
    """The columns of one file. leaves: the number of the Parquet column of each leaf outside of lists and maps, by its path of
    names."""

    schema: StructType
    leaves: dict[Path, int] = field(default_factory=dict)


def read_columns(file: pq.ParquetFile) -> ForeignColumns:
    """The columns of an open file. Raises NoDeltaType for a type that Delta does not have."""
    file_schema = read_file_schema(file)
    _refuse_durations(file.schema_arrow, ())
    leaves: dict[Path, int] = {}
    schema = StructType(tuple(_read_field(f, file_schema.parquet, (f.name,), leaves) for f in file_schema.fields))
    spark_schema = _spark_schema(file.metadata.metadata)
    return ForeignColumns(schema if spark_schema is None else _with_comments(schema, spark_schema, ()), leaves)


def _read_field(f: FileField, parquet: Any, path: Path, leaves: dict[Path, int] | None) -> StructField:
    """A column or a field of a struct. parquet: the file's ParquetSchema. leaves: see _read_type."""
    if f.shape is Shape.LEAF and leaves is not None:
        leaves[path] = f.first_leaf
    return StructField(f.name, _read_type(f, parquet, path, leaves))


def _read_type(f: FileField, parquet: Any, path: Path, leaves: dict[Path, int] | None) -> DataType:
    """The type of a field. leaves: receives the Parquet column of each leaf below the field; None inside a list or map, whose
    leaves are not collected."""
    match f.shape:
        case Shape.STRUCT:
            return StructType(tuple(_read_field(inner, parquet, (*path, inner.name), leaves) for inner in f.children))
        case Shape.LIST:
            return ArrayType(_read_type(f.children[0], parquet, (*path, "element"), None))
        case Shape.MAP:
            key, value = (
                _read_type(side, parquet, (*path, name), None) for side, name in zip(f.children, ("key", "value"), strict=True)
            )
            return MapType(key, value)
    return _leaf_type(parquet.column(f.first_leaf), path)


def _leaf_type(column: Any, path: Path) -> DataType:
    """The type of a column of a file that no Delta writer wrote. Raises NoDeltaType if Delta has no such type."""
    kind = column.logical_type.type
    if kind == "NONE":
        return _BY_PHYSICAL_TYPE[column.physical_type]
    delta_type = _BY_LOGICAL_TYPE.get(kind)
    if delta_type is not None:
        return delta_type
    details = json.loads(column.logical_type.to_json())
    match kind:
        case "INT" if details["isSigned"]:
            return _SIGNED_BY_BITS[details["bitWidth"]]
        case "DECIMAL" if details["precision"] <= _LONGEST_DECIMAL and 0 <= details["scale"] <= details["precision"]:
            return DecimalType(details["precision"], details["scale"])
        case "TIMESTAMP" if details["timeUnit"] != "nanoseconds":
            return TIMESTAMP if details["isAdjustedToUTC"] else TIMESTAMP_NTZ
        case "INT":
            name = f"an unsigned integer of {details['bitWidth']} bits"
        case "DECIMAL":
            name = f"decimal({details['precision']},{details['scale']})"
        case "TIMESTAMP":
            name = "a timestamp in nanoseconds"
        case "TIME":
            name = "a time of day"
        case "GEOMETRY" | "GEOGRAPHY":
            raise NoDeltaType(f"column {'.'.join(path)} is {kind.lower()}, which cannot be taken over")
        case "UNKNOWN":
            name = "without a type, as all its values are null"
        case _:
            name = f"{kind} of Parquet"
    raise _no_type_error(path, name)


def _no_type_error(path: Path, name: str) -> NoDeltaType:
    return NoDeltaType(f"column {'.'.join(path)} is {name}, which Delta does not have")


def _refuse_durations(fields: Any, path: Path) -> None:
    """Raises NoDeltaType for a duration at any depth. The file stores durations as plain integers, and only its Arrow schema
    shows what they are. fields: of Arrow."""
    for arrow_field in fields:
        inner_path = (*path, arrow_field.name)
        if pa.types.is_duration(arrow_field.type):
            raise _no_type_error(inner_path, "a length of time")
        _refuse_durations([arrow_field.type.field(number) for number in range(arrow_field.type.num_fields)], inner_path)


# ---------------------------------------------------------------- the schema that Spark stored in the file


def _spark_schema(footer: Any) -> StructType | None:
    """The schema that Spark stored in the footer; None if there is none, or it cannot be used. footer: the key-value metadata."""
    schema_json = None if footer is None else footer.get(_SPARK_SCHEMA)
    try:
        return None if schema_json is None else parse_schema(schema_json)
    except (CorruptTableError, UnsupportedOperationError):  # it is not needed: the file's own schema has the types
        return None


def _with_comments(schema: StructType, spark_schema: StructType, path: Path) -> StructType:
    """The schema with the comments from Spark's schema. Raises NoDeltaType for variants, which look like structs here."""
    spark_fields = {f.name: f for f in spark_schema.fields}
    return StructType(tuple(_with_comment(f, spark_fields.get(f.name), (*path, f.name)) for f in schema.fields))


def _with_comment(f: StructField, spark_field: StructField | None, path: Path) -> StructField:
    """The field with what Spark's schema in the footer adds: comments. A variant has the form of a struct in the file, so it
    is refused.
    """
    if spark_field is None:
        return f
    data_type = f.data_type
    if isinstance(data_type, StructType) and isinstance(spark_field.data_type, StructType):
        data_type = _with_comments(data_type, spark_field.data_type, path)
    elif VARIANT in all_types(spark_field.data_type):
        raise NoDeltaType(f"column {'.'.join(path)} is or holds a variant, which cannot be taken over")
    comment = spark_field.metadata.get(_COMMENT)
    metadata = {_COMMENT: comment} if isinstance(comment, str) else {}
    return replace(f, data_type=data_type, metadata=metadata)
