"""Values of the data in the type of a column: stored exactly or refused.

What Spark's store assignment does where no value changes: integers among themselves, to decimals and to floating point,
decimals, dates and timestamps to finer types, binary and text of any layout, structs by name. A value that the column
cannot hold exactly is an error, never rounded or cut.
Protocol: Delta Data Type to Parquet Type Mappings.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import InvariantViolationError, SchemaMismatchError, UnsupportedTableFeatureError
from delta_py.protocol.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    to_arrow_type,
    type_name,
)

_INT32_MAX = 2**31 - 1

Runs: TypeAlias = tuple[pa.Int32Array, int, int]


def assign(array: pa.Array, target: DataType, name: str) -> pa.Array:
    """The array in the Arrow type of `target`, every value kept exactly; `name` is the column for messages."""
    array = _plain(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), to_arrow_type(target))
    match target:
        case StructType():
            return _assign_struct(array, target, name)
        case ArrayType():
            return _assign_list(array, target, name)
        case MapType():
            return _assign_map(array, target, name)
    wanted = to_arrow_type(target)
    if array.type == wanted:
        return array
    if not _is_assignable(array.type, target):
        raise _type_mismatch(array.type, target, name)
    try:
        return _prepared(array, target).cast(wanted)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"Column {name} holds a value of type {array.type} that {type_name(target)} cannot hold exactly: {error}. "
            "Nothing was written. Cast or round the column before writing.",
            error_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
            sql_state="22003",
            column=name,
        ) from error


def _prepared(array: pa.Array, target: DataType) -> pa.Array:
    """The array in a form that Arrow's cast takes: integers by way of a decimal, a far slice of a large text by itself."""
    if isinstance(target, DecimalType) and pa.types.is_integer(array.type):
        return array.cast(pa.decimal128(20, 0))
    if (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)) and len(array):
        end = np.frombuffer(array.buffers()[1], np.int64)[array.offset + len(array)]
        if end > _INT32_MAX:  # the cast looks at where the values end, not at how long they are
            return array.take(pa.array(np.arange(len(array))))
    return array


def _plain(array: pa.Array) -> pa.Array:
    """The values without dictionary or run-end encoding and without an extension type around them."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return array


def _is_assignable(source: pa.DataType, target: DataType) -> bool:
    """Whether values of the Arrow type can be stored exactly, each value that does not fit being an error."""
    kinds = pa.types
    match target:
        case DecimalType():
            return bool(kinds.is_integer(source) or kinds.is_decimal(source))
        case PrimitiveType("byte" | "short" | "integer" | "long"):
            return bool(kinds.is_integer(source))
        case PrimitiveType("float"):
            return bool(kinds.is_integer(source) or kinds.is_float16(source) or kinds.is_float32(source))
        case PrimitiveType("double"):
            return bool(kinds.is_integer(source) or kinds.is_floating(source))
        case PrimitiveType("string"):
            return bool(kinds.is_string(source) or kinds.is_large_string(source) or kinds.is_string_view(source))
        case PrimitiveType("binary"):
            return bool(
                kinds.is_binary(source)
                or kinds.is_large_binary(source)
                or kinds.is_binary_view(source)
                or kinds.is_fixed_size_binary(source)
            )
        case PrimitiveType("date"):
            return bool(kinds.is_date(source))
        case PrimitiveType("timestamp"):
            return bool(kinds.is_timestamp(source)) and source.tz is not None
        case PrimitiveType("timestamp_ntz"):
            return bool(kinds.is_date(source)) or (bool(kinds.is_timestamp(source)) and source.tz is None)
    return False


def _type_mismatch(source: pa.DataType, target: DataType, name: str) -> SchemaMismatchError:
    hint = "Cast the column before writing."
    if target == PrimitiveType("timestamp") and pa.types.is_timestamp(source):
        hint = "Its times have no time zone: give them one before writing."
    return SchemaMismatchError(
        f"Column {name} of the table is {type_name(target)} and cannot take {source} from the data. Nothing was written. {hint}",
        error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        sql_state="22005",
        column=name,
        table_type=type_name(target),
        data_type=str(source),
    )


def _assign_struct(array: pa.Array, target: StructType, name: str) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise _type_mismatch(array.type, target, name)
    positions = {array.type.field(i).name.lower(): i for i in range(array.type.num_fields)}
    if len(positions) < array.type.num_fields:
        raise SchemaMismatchError(
            f"Column {name} of the data has two fields of one name (names that differ only in case are the same). Rename one.",
            error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            sql_state="42711",
            column=name,
        )
    extra = [f.name for f in array.type if target.find(f.name) is None]
    if extra:
        raise extra_columns([f"{name}.{field}" for field in extra], target.names, f"column {name} of the table")
    children = []
    for f in target.fields:
        position = positions.get(f.name.lower())
        if position is None:
            check_may_be_absent(f, f"{name}.{f.name}")
        given = pa.nulls(len(array)) if position is None else array.field(position)
        children.append(assign(given, f.data_type, f"{name}.{f.name}"))
    if not children:
        return array
    return pa.StructArray.from_arrays(children, fields=list(to_arrow_type(target)), mask=array.is_null())


def runs(array: pa.Array) -> Runs:
    """Offsets of a list or map array counted from its own first value; where those values begin; how many they are."""
    if len(array) == 0:
        return pa.array([0], pa.int32()), 0, 0
    offsets = array.offsets
    first, last = offsets[0], offsets[-1]
    return pc.subtract(offsets, first).cast(pa.int32()), first.as_py(), last.as_py() - first.as_py()


def _assign_list(array: pa.Array, target: ArrayType, name: str) -> pa.Array:
    kinds = pa.types
    if kinds.is_fixed_size_list(array.type) or kinds.is_list_view(array.type) or kinds.is_large_list_view(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if not (kinds.is_list(array.type) or kinds.is_large_list(array.type)):
        raise _type_mismatch(array.type, target, name)
    offsets, first, count = runs(array)
    values = assign(array.values.slice(first, count), target.element_type, f"{name}.element")
    return pa.ListArray.from_arrays(offsets, values, type=to_arrow_type(target), mask=array.is_null())


def _assign_map(array: pa.Array, target: MapType, name: str) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise _type_mismatch(array.type, target, name)
    offsets, first, count = runs(array)
    keys = assign(array.keys.slice(first, count), target.key_type, f"{name}.key")
    items = assign(array.items.slice(first, count), target.value_type, f"{name}.value")
    return pa.MapArray.from_arrays(offsets, keys, items, type=to_arrow_type(target), mask=array.is_null())


# ---------------------------------------------------------------- columns that one side lacks


def extra_columns(extra: list[str], names: tuple[str, ...], where: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"The data has columns that {where} lacks: {', '.join(extra)}. Known are: {', '.join(names)}. Nothing was written. "
        "Drop or rename the columns, or add them to the table first.",
        error_class="DELTA_METADATA_MISMATCH",
        sql_state="42KDG",
        columns=extra,
    )


def check_may_be_absent(missing: StructField, name: str) -> None:
    """A column that the data lacks is null, where that is lawful."""
    if "CURRENT_DEFAULT" in missing.metadata:
        raise unenforceable(
            f"a default for column {name}, which the data lacks", str(missing.metadata["CURRENT_DEFAULT"]), "allowColumnDefaults"
        )
    if not missing.nullable:
        raise InvariantViolationError(
            f"Column {name} has a NOT NULL constraint and is missing from the data. Nothing was written. Give it values.",
            error_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
            sql_state="23502",
            column=name,
        )


def unenforceable(rule: str, text: str, feature: str) -> UnsupportedTableFeatureError:
    return UnsupportedTableFeatureError(
        f"This version cannot write into a table with {rule} ({text}): it could not keep the rule for the new rows. "
        "Nothing was written. Write with a client that supports it, or drop the rule.",
        error_class="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        feature=feature,
    )
