"""Delta schema <-> Spark schema.

Both use the same JSON and differ only in metadata. A field's `delta.*` entries (column mapping, generated and identity columns,
type changes) belong to the log and stay out of a DataFrame's schema. Comments, the types of char and varchar columns, collations
and all entries of the user stay in. Nullability is the table's. Geometry and geography types that this Spark version does not
have are binary.
Protocol: Schema Serialization Format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
from pyspark.errors import PySparkException
from pyspark.sql import types as spark

from delta_py.errors import CorruptTableError, SchemaMismatchError, UnsupportedOperationError
from delta_py.types.column_rules import EXISTS_DEFAULT
from delta_py.types.schema import (
    BINARY,
    ArrayType,
    DataType,
    FieldPositions,
    GeospatialType,
    MapType,
    StructField,
    StructType,
    parse_schema,
    schema_to_json,
    type_name,
)


def with_metadata(schema: spark.StructType, key: str, value: str) -> spark.StructType:
    """Return the schema with an entry added to the metadata of every field."""
    return spark.StructType(
        [spark.StructField(f.name, f.dataType, f.nullable, {**(f.metadata or {}), key: value}) for f in schema.fields]
    )


def metadata_value(schema: spark.StructType, key: str) -> str | None:
    """Return the value under the key from the first field that has it."""
    return next((str(f.metadata[key]) for f in schema.fields if key in (f.metadata or {})), None)


def without_metadata(schema: spark.StructType, key: str) -> spark.StructType:
    """Return the schema without the entry in any field."""
    remaining_metadata = [{name: text for name, text in (f.metadata or {}).items() if name != key} for f in schema.fields]
    fields = zip(schema.fields, remaining_metadata, strict=True)
    return spark.StructType([spark.StructField(f.name, f.dataType, f.nullable, metadata) for f, metadata in fields])


class FieldsByName:
    """The fields of a struct, indexed for many lookups by name."""

    def __init__(self, schema: spark.StructType) -> None:
        self._fields = schema.fields
        self._positions = FieldPositions.of(schema.names)

    def find(self, name: str) -> spark.StructField | None:
        """Return the field with exactly this name, else one whose name differs only in case, else None."""
        position = self._positions.find(name)
        return None if position is None else self._fields[position]


def find_field(schema: spark.StructType, name: str) -> spark.StructField | None:
    """Do the same as FieldsByName.find, for one name."""
    same_name_fields = [field for field in schema.fields if field.name.lower() == name.lower()]
    return next((field for field in same_name_fields if field.name == name), same_name_fields[0] if same_name_fields else None)


def to_spark_schema(schema: StructType) -> spark.StructType:
    """Convert Delta's schema to Spark's. Raises UnsupportedOperationError, which names the column, for a column whose type Spark
    does not have."""
    try:
        return _parse(schema)
    except _UNKNOWN_TYPE_ERRORS:
        for field in schema.fields:
            _check_type(field)  # raises the error that names the column
        raise


def from_spark_schema(schema: spark.StructType) -> StructType:
    """Convert Spark's schema to Delta's. Raises UnsupportedOperationError for a type that Delta does not have (user-defined
    types, intervals)."""
    for field in schema.fields:
        _check_storable(field)
    try:
        return parse_schema(schema.json())
    except CorruptTableError as error:
        raise UnsupportedOperationError(f"The schema {schema.simpleString()} has no Delta form: {error.message}") from error


def spark_type(kind: DataType) -> spark.DataType:
    """Convert one type; raises the same as to_spark_schema."""
    return to_spark_schema(StructType((StructField("c", kind),))).fields[0].dataType


def delta_type(kind: spark.DataType) -> DataType:
    """Convert one type; raises the same as from_spark_schema."""
    return from_spark_schema(spark.StructType([spark.StructField("c", kind)])).fields[0].data_type


# What pyspark raises for a type that it does not know.
_UNKNOWN_TYPE_ERRORS = (PySparkException, ValueError, KeyError)


def _parse(schema: StructType) -> spark.StructType:
    return spark.StructType.fromJson(orjson.loads(schema_to_json(_without_log_metadata(schema))))


def _without_log_metadata(data_type: Any) -> Any:
    """Return the type as a DataFrame may have it: without the field metadata that belongs to the log, at any depth, and with
    geospatial types that this Spark has."""
    match data_type:
        case StructType(fields):
            return StructType(
                tuple(StructField(f.name, _without_log_metadata(f.data_type), f.nullable, _public_metadata(f)) for f in fields)
            )
        case ArrayType(element, contains_null):
            return ArrayType(_without_log_metadata(element), contains_null)
        case MapType(key, value, contains_null):
            return MapType(_without_log_metadata(key), _without_log_metadata(value), contains_null)
        case GeospatialType():
            return _spark_geospatial_type(data_type)
    return data_type


def _spark_geospatial_type(kind: GeospatialType) -> DataType:
    """Return the type in Spark's spelling. If this Spark has no type with this coordinate system (CRS) and algorithm, return
    binary: the values are WKB, the standard binary form of shapes."""
    algorithm = "" if kind.algorithm is None else f", {kind.algorithm.upper()}"
    text = f"{kind.kind}({kind.crs}{algorithm})"
    field = {"name": "shape", "type": text, "nullable": True, "metadata": {}}
    try:
        type_of_spark: Any = spark.StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType
    except _UNKNOWN_TYPE_ERRORS:
        return BINARY
    return replace(kind, text=text) if type_of_spark.srid == kind.srid else BINARY


def _public_metadata(field: StructField) -> dict[str, Any]:
    """Return the metadata without three kinds of entries: those that belong to the table alone; those that Spark would evaluate
    (EXISTS_DEFAULT, which is not needed: missing columns are null); and pydelta's own marks, which only this session may set."""
    return {
        key: value
        for key, value in field.metadata.items()
        if not key.startswith(("delta.", "pydelta.")) and key != EXISTS_DEFAULT
    }


def _check_type(field: StructField) -> None:
    """Raise UnsupportedOperationError, which names the column, if Spark does not have the column's type."""
    try:
        _parse(StructType((field,)))
    except _UNKNOWN_TYPE_ERRORS as error:
        raise UnsupportedOperationError(
            f"Column {field.name} has the type {type_name(field.data_type)}, which this Spark does not know. Leave it out with "
            "option('columns', '...').",
            column=field.name,
        ) from error


_NOT_STORABLE = (spark.UserDefinedType, spark.AnsiIntervalType, spark.CalendarIntervalType)


def is_storable(kind: spark.DataType) -> bool:
    """Whether a Delta table can hold values of the type."""
    return not _any_type(kind, lambda part: isinstance(part, _NOT_STORABLE))


def _check_storable(field: spark.StructField) -> None:
    if not is_storable(field.dataType):
        raise UnsupportedOperationError(
            f"Column {field.name} has the type {field.dataType.simpleString()}, which Delta tables cannot hold. "
            "Cast it before writing.",
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
            sql_state="0AKDC",
            column=field.name,
        )


def _any_type(kind: spark.DataType, test: Callable[[spark.DataType], bool]) -> bool:
    """Return whether the type, or any type inside of it, passes the test."""
    if test(kind):
        return True
    match kind:
        case spark.StructType():
            return any(_any_type(f.dataType, test) for f in kind.fields)
        case spark.ArrayType():
            return _any_type(kind.elementType, test)
        case spark.MapType():
            return _any_type(kind.keyType, test) or _any_type(kind.valueType, test)
    return False


# ---------------------------------------------------------------- a reader's requested columns


def check_requested(offered: StructType, requested: StructType) -> None:
    """Check that the offered columns can be returned as `requested`: the types must be the same, names may differ in case, and a
    column may be nullable where the table's column is nullable.

    offered: the same columns of the table, in the same order. Raises SchemaMismatchError naming the column and both types.
    """
    for offered_field, requested_field in zip(offered.fields, requested.fields, strict=True):
        if not _can_return_as(offered_field.data_type, requested_field.data_type):
            raise SchemaMismatchError(
                f"Column {requested_field.name} was asked for as {type_name(requested_field.data_type)}, and the table has it as "
                f"{type_name(offered_field.data_type)}. Leave .schema(...) out, or give the table's types, and cast "
                "after reading.",
                column=requested_field.name,
            )
        if offered_field.nullable and not requested_field.nullable:
            raise SchemaMismatchError(
                f"Column {requested_field.name} was asked for as NOT NULL, and the table allows nulls in it. "
                "Leave NOT NULL out of .schema(...).",
                column=requested_field.name,
            )


def _can_return_as(offered_type: DataType, requested_type: DataType) -> bool:
    """Whether values of the offered type can be returned as the requested type: the types are the same, except that names of
    fields may differ in case, and that the requested type may allow more nulls."""
    match offered_type, requested_type:
        case StructType(offered), StructType(requested):
            return len(offered) == len(requested) and all(
                offered_field.name.lower() == requested_field.name.lower()
                and requested_field.nullable >= offered_field.nullable
                and _can_return_as(offered_field.data_type, requested_field.data_type)
                for offered_field, requested_field in zip(offered, requested, strict=True)
            )
        case ArrayType(offered_element, offered_null), ArrayType(requested_element, requested_null):
            return requested_null >= offered_null and _can_return_as(offered_element, requested_element)
        case MapType(offered_key, offered_value, offered_null), MapType(requested_key, requested_value, requested_null):
            return (
                requested_null >= offered_null
                and _can_return_as(offered_key, requested_key)
                and _can_return_as(offered_value, requested_value)
            )
    return offered_type == requested_type
