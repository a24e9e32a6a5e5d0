"""Store assignment on Arrow: convert values of the data to the type of a column, as Spark 4 does when it stores rows (ANSI).

Numbers are assigned to any number type, dates and times to each other in the session's time zone, and every simple value to text.
Structs are matched by name, arrays and maps by their elements. Nothing else is converted: text does not become a number. The
results are those of Spark's CAST (expressions/value_casts.py); a value that the column cannot hold is an error, and is never
truncated or made null. spark_plugin/dml/store_assignment.py does this with Columns of Spark.
Arrow types that no column has (unsigned integers, other units of time, ...) are first converted to the type that holds them
exactly. Callers' data has the plain layout (plain_layout.py); Spark's data may have texts and lists with 64-bit offsets.
Protocol: Delta Data Type to Parquet Type Mappings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import (
    DeltaError,
    ExpressionError,
    InvariantViolationError,
    SchemaMismatchError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
)
from delta_py.expressions.coercion import may_assign
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.resolve import resolve
from delta_py.expressions.tree import Cast, Column
from delta_py.parquet.values.buffers import fixed_values
from delta_py.parquet.values.conform_values import CannotRead, floor_nanoseconds
from delta_py.parquet.values.variant import variant_converter
from delta_py.row_rules.geospatial import extension_crs, shape_converter
from delta_py.row_rules.plain_layout import with_small_offsets
from delta_py.types.column_rules import DEFAULT
from delta_py.types.nested_arrays import Converter, struct_children, with_elements, with_entries
from delta_py.types.schema import (
    BINARY,
    LONG,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    GeospatialType,
    MapType,
    StructField,
    StructType,
    from_arrow_type,
    to_arrow_type,
    type_name,
)

# Error classes of a cast for values that the target cannot hold.
_OVERFLOWS = frozenset({"CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW"})
_OPERAND = "value"


@dataclass(frozen=True, slots=True)
class TimeRules:
    """How times in the data are converted. time_zone: the session's, for conversions between texts and times.
    truncate_nanoseconds: round times down to the microsecond, as when files of other writers are read; without it a time with
    nanoseconds is refused."""

    time_zone: str = "UTC"
    truncate_nanoseconds: bool = False


_STRICT_IN_UTC = TimeRules()


def assign(array: pa.Array, target: DataType, name: str, times: TimeRules = _STRICT_IN_UTC) -> pa.Array:
    """The array in the Arrow type of `target`; `name` is the column, for messages. Raises as `converter` and its result."""
    convert = converter(array.type, target, name, times)
    return array if convert is None else convert(array)


def converter(source: pa.DataType, target: DataType, name: str, times: TimeRules = _STRICT_IN_UTC) -> Converter | None:
    """Return a function that converts arrays of an Arrow type to the column's type; None if they already have that type.

    Raises SchemaMismatchError (DELTA_FAILED_TO_MERGE_FIELDS, DELTA_METADATA_MISMATCH, DELTA_DUPLICATE_COLUMNS_FOUND) for a type
    that cannot be assigned, InvariantViolationError (DELTA_MISSING_NOT_NULL_COLUMN_VALUE) for a struct that lacks a field which
    must not be null. The returned function raises SchemaMismatchError (DELTA_CAST_OVERFLOW_IN_TABLE_WRITE) for a value that the
    column cannot hold.
    """
    unwrapped = _extension_converter(source, target, name, times)
    if unwrapped is not None:
        return unwrapped
    if isinstance(target, GeospatialType) and not pa.types.is_null(source):
        return _shape_converter(source, target, name)
    target_type = to_arrow_type(target)
    if source.equals(target_type):
        return None
    if pa.types.is_null(source):
        return lambda array: pa.nulls(len(array), target_type)
    match target:
        case StructType():
            return _struct_converter(source, target, name, times)
        case ArrayType():
            return _list_converter(source, target, name, times)
        case MapType():
            return _map_converter(source, target, name, times)
    return _variant_converter(source, name) if target == VARIANT else _simple_converter(source, target, name, times)


# ---------------------------------------------------------------- simple types


def _simple_converter(source: pa.DataType, target: DataType, name: str, times: TimeRules) -> Converter | None:
    """The conversion of values that are not nested, in two steps: without loss to the Delta type that holds the source's values,
    and then by CAST to the target. None if there is nothing to convert."""
    source_type = _type_of(source, target)
    if source_type is None or not may_assign(source_type, target):
        raise _type_mismatch(source, target, name)
    convert_exactly = _exact_converter(source, to_arrow_type(source_type), target, name)
    if pa.types.is_timestamp(source) and source.unit == "ns":
        convert_exactly = _nanosecond_converter(to_arrow_type(source_type), target, name, truncates=times.truncate_nanoseconds)
    if source_type == target:
        return convert_exactly
    return _in_sequence(convert_exactly, _cast_converter(source_type, target, name, times))


def _type_of(source: pa.DataType, target: DataType | None = None) -> DataType | None:
    """The column type that holds an Arrow type's values (a value that does not fit is an error); None if there is no such
    type."""
    # Unsigned numbers of 64 bits have up to 20 digits. For a bigint column, the larger ones are errors.
    if pa.types.is_uint64(source) and target != LONG:
        return DecimalType(20, 0)
    try:
        return from_arrow_type(source)
    except UnsupportedOperationError:
        return None


def _exact_converter(source: pa.DataType, source_type: pa.DataType, target: DataType, name: str) -> Converter | None:
    """The same values in the Arrow type `source_type`; None if they have it already. target, name: the column, for the error."""
    if source == source_type:
        return None

    def convert(array: pa.Array) -> pa.Array:
        try:
            return with_small_offsets(array).cast(source_type)
        except pa.ArrowInvalid as error:
            raise _does_not_fit(
                name, target, f"A value of type {source} is not one that the column can hold: {error}."
            ) from error

    return convert


def _nanosecond_converter(microsecond_type: pa.DataType, target: DataType, name: str, *, truncates: bool) -> Converter:
    """Convert times in nanoseconds to microseconds: the same instants, or, if `truncates`, rounded toward the past."""

    def convert(array: pa.Array) -> pa.Array:
        if not truncates:
            is_valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
            inexact_rows = np.flatnonzero((fixed_values(array, np.int64) % 1000 != 0) & is_valid)
            if len(inexact_rows):
                raise _has_nanoseconds(name, target, array[int(inexact_rows[0])])
        return floor_nanoseconds(array, microsecond_type)

    return convert


def _cast_converter(source_type: DataType, target: DataType, name: str, times: TimeRules) -> Converter:
    """The conversion by Spark's CAST. A failed cast raises the errors of a write, which name the column."""
    schema = StructType((StructField(_OPERAND, source_type),))
    try:
        expression = resolve(Cast(Column((_OPERAND,)), target), schema, times.time_zone).expression
    except ExpressionError as error:
        raise _type_mismatch(to_arrow_type(source_type), target, name, error.message) from error

    def convert(array: pa.Array) -> pa.Array:
        try:
            return evaluate(expression, pa.RecordBatch.from_arrays([array], [_OPERAND]))
        except ExpressionError as error:
            if error.error_class in _OVERFLOWS:
                raise _does_not_fit(name, target, error.message) from error
            raise _type_mismatch(to_arrow_type(source_type), target, name, error.message) from error

    return convert


def _variant_converter(source: pa.DataType, name: str) -> Converter | None:
    """Convert a struct of value and metadata, perhaps with typed_value, to variant binary."""
    if not pa.types.is_struct(source) or any(f.name in ("value", "metadata") and not _is_bytes(f.type) for f in source.fields):
        raise _type_mismatch(source, VARIANT, name)
    try:
        convert = variant_converter(name, source)
    except CannotRead as error:
        raise _type_mismatch(source, VARIANT, name, str(error)) from error
    if convert is None:
        return None

    def checked(array: pa.Array) -> pa.Array:
        try:
            variants = convert(array)
        except CannotRead as error:
            raise _type_mismatch(source, VARIANT, name, str(error)) from error
        # The second field of a variant is its metadata.
        if pc.any(pc.and_(pc.is_valid(variants), pc.is_null(variants.field(1)))).as_py():
            raise _type_mismatch(source, VARIANT, name, "A variant has no metadata.")
        return variants

    return checked


def _shape_converter(source: pa.DataType, target: GeospatialType, name: str) -> Converter:
    """The conversion of shapes to the column's WKB. Raises SchemaMismatchError for data that has no shapes."""
    convert = shape_converter(source, target, name)
    if convert is None:
        raise _type_mismatch(source, target, name)
    return convert


def _is_bytes(source: pa.DataType) -> bool:
    return _type_of(source) == BINARY


def _extension_converter(source: pa.DataType, target: DataType, name: str, times: TimeRules) -> Converter | None:
    """The conversion of values in an Arrow extension type: it converts the plain array inside (their storage). None for other
    types.

    Raises SchemaMismatchError for shapes with another CRS than the column's."""
    if isinstance(source, pa.BaseExtensionType):
        if isinstance(target, GeospatialType) and extension_crs(source) not in (None, target.crs):
            raise _type_mismatch(source, target, name, f"Its CRS is {extension_crs(source)}.")
        return _in_sequence(lambda array: array.storage, converter(source.storage_type, target, name, times))
    return None


def _in_sequence(convert_first: Converter | None, convert_second: Converter | None) -> Converter | None:
    """Both conversions, one after the other. None means that there is nothing to convert."""
    if convert_first is None or convert_second is None:
        return convert_first or convert_second
    return lambda array: convert_second(convert_first(array))


# ---------------------------------------------------------------- nested types


def _struct_converter(source: pa.DataType, target: StructType, name: str, times: TimeRules) -> Converter:
    """The conversion of structs: fields are matched by name, and fields that the data lacks become null. Raises as converter."""
    if not pa.types.is_struct(source):
        raise _type_mismatch(source, target, name)
    places = _field_places(source, target, name)
    target_type = to_arrow_type(target)
    fields = list(target_type)
    converters = [
        converter(pa.null() if place is None else source.field(place).type, f.data_type, f"{name}.{f.name}", times)
        for f, place in zip(target.fields, places, strict=True)
    ]
    # StructArray.from_arrays takes the number of rows from the fields, so it cannot make a struct without fields.
    if not fields:
        return lambda array: array

    def convert(array: pa.Array) -> pa.Array:
        # struct_children makes the values below a null struct null: a failing cast of them must not fail the write.
        children_before = struct_children(array)
        columns = [pa.nulls(len(array)) if place is None else children_before[place] for place in places]
        children = [
            column if convert_field is None else convert_field(column)
            for column, convert_field in zip(columns, converters, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)

    return convert


def _field_places(source: pa.StructType, target: StructType, name: str) -> list[int | None]:
    """For each field of the column's struct, its position in the data's struct; None for a field that the data lacks."""
    positions = {source.field(i).name.lower(): i for i in range(source.num_fields)}
    if len(positions) < source.num_fields:
        raise SchemaMismatchError(
            f"Column {name} of the data has two fields of one name (names that differ only in case are the same). Rename one.",
            error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            sql_state="42711",
            column=name,
        )
    unknown_fields = [f.name for f in source.fields if target.find(f.name) is None]
    if unknown_fields:
        raise extra_columns([f"{name}.{field}" for field in unknown_fields], target.names, f"column {name} of the table")
    places = [positions.get(f.name.lower()) for f in target.fields]
    for f, place in zip(target.fields, places, strict=True):
        if place is None:
            check_may_be_absent(f, f"{name}.{f.name}")
    return places


def _list_converter(source: pa.DataType, target: ArrayType, name: str, times: TimeRules) -> Converter:
    """The conversion of arrays, element by element. Raises as converter."""
    if not (pa.types.is_list(source) or pa.types.is_large_list(source)):
        raise _type_mismatch(source, target, name)
    target_type = to_arrow_type(target)
    convert_element = converter(source.value_type, target.element_type, f"{name}.element", times)
    return lambda array: with_elements(array, convert_element, target_type)


def _map_converter(source: pa.DataType, target: MapType, name: str, times: TimeRules) -> Converter:
    """The conversion of maps, key by key and value by value. Raises as converter."""
    if not pa.types.is_map(source):
        raise _type_mismatch(source, target, name)
    target_type = to_arrow_type(target)
    convert_key = converter(source.key_type, target.key_type, f"{name}.key", times)
    convert_value = converter(source.item_type, target.value_type, f"{name}.value", times)
    return lambda array: with_entries(array, convert_key, convert_value, target_type)


# ---------------------------------------------------------------- errors


def _type_mismatch(source: pa.DataType, target: DataType, name: str, why: str = "") -> SchemaMismatchError:
    """The error for data whose type the column cannot take. name: the column's name. why: a sentence, or empty."""
    hint = (
        "Cast the column before writing." if target != VOID else "Write with the option mergeSchema to give it the data's type."
    )
    return SchemaMismatchError(
        f"Column {name} of the table is {type_name(target)} and cannot take {source} from the data. {why and why + ' '}"
        f"Nothing was written. {hint}",
        error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        sql_state="22005",
        column=name,
        table_type=type_name(target),
        data_type=str(source),
    )


def _does_not_fit(
    name: str, target: DataType, why: str, remedy: str = "Cast or round the column before writing."
) -> SchemaMismatchError:
    """The error for a value that the column cannot hold. name: the column's name. why, remedy: sentences."""
    return SchemaMismatchError(
        f"Column {name} of the table is {type_name(target)}, and the data has a value that it cannot hold. {why} "
        f"Nothing was written. {remedy}",
        error_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        sql_state="22003",
        column=name,
        table_type=type_name(target),
    )


def _has_nanoseconds(name: str, target: DataType, value: pa.Scalar) -> SchemaMismatchError:
    """The error for a time with nanoseconds in a column whose values end at microseconds."""
    zone = "" if value.type.tz is None else " in UTC"
    instant = np.datetime_as_string(np.datetime64(value.value, "ns")).replace("T", " ")
    return _does_not_fit(
        name,
        target,
        f"The value {instant}{zone} has nanoseconds, and values of the column end at microseconds.",
        "Round the column before writing. Or let pydelta cut the nanoseconds off: with truncate_nanoseconds=True of write_delta "
        "and DeltaTable.merge, the option truncateNanoseconds of a write in Spark, or --truncate-nanoseconds of `pydelta load`.",
    )


def extra_columns(unknown_columns: list[str], names: tuple[str, ...], where: str) -> SchemaMismatchError:
    """The error for columns that the table, or a struct in it, lacks. names: its columns. where: the table or struct, in
    words."""
    return SchemaMismatchError(
        f"The data has columns that {where} lacks: {', '.join(unknown_columns)}. The known columns are: {', '.join(names)}. "
        "Nothing was written. Write with the option mergeSchema set to true to add them to the table, or drop or rename them.",
        error_class="DELTA_METADATA_MISMATCH",
        sql_state="42KDG",
        columns=unknown_columns,
    )


def check_may_be_absent(missing: StructField, name: str) -> None:
    """Raise if a field that the data lacks cannot be null: it has a default or is NOT NULL. Only the defaults of columns are
    applied, not those of fields inside them. name: the dotted path of the field."""
    if DEFAULT in missing.metadata:
        raise unenforceable(
            f"a default for column {name}, which the data lacks", str(missing.metadata[DEFAULT]), "allowColumnDefaults"
        )
    if not missing.nullable:
        raise InvariantViolationError(
            f"Column {name} has a NOT NULL constraint and is missing from the data. Nothing was written. Give it values.",
            error_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
            sql_state="23502",
            column=name,
        )


def unenforceable(rule: str, text: str, feature: str, why: DeltaError | None = None) -> UnsupportedTableFeatureError:
    """The error for a rule that this version cannot enforce. rule: the rule in words. text: its SQL. feature: the table feature.
    why: the cause."""
    reason = "It could not keep the rule for the new rows." if why is None else why.message
    return UnsupportedTableFeatureError(
        f"This version cannot write into a table with {rule} ({text}). {reason} "
        "Nothing was written. Write with a client that supports it, or drop the rule.",
        error_class="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        feature=feature,
    )
