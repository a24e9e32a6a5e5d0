"""Functions on arrays, maps and structs: elements, keys, sizes, and constructors.

numpy processes lists by their offsets; an element of a null array or map is null, whatever is stored below.

A function here with the parameters (arguments, result) computes one SQL function, as `Function.run` requires. arguments: Arrow
values, and Python values where SQL requires a constant (None for null). result: the type of the result. A function with (name,
operands) decides the types, as `Function.signature` requires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ExpressionError
from delta_py.expressions.coercion import common_type, common_type_of_all, is_atomic, is_integral
from delta_py.expressions.evaluation_errors import BadRows, mismatch, not_supported, shown, wrong_argument_count
from delta_py.expressions.functions.function_types import Function, Operand, Signature, check_count
from delta_py.expressions.functions.text_growth import spend
from delta_py.types.schema import (
    BOOLEAN,
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    to_arrow_type,
    type_name,
)

_Int64 = np.ndarray[Any, np.dtype[np.int64]]
_Flags = np.ndarray[Any, np.dtype[np.bool_]]


# ---------------------------------------------------------------- lists as numpy


def _starts_and_lengths(values: Any) -> tuple[_Int64, _Int64]:
    """Where each row's elements begin among all elements, and their number; none for a null row."""
    offsets = values.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    return offsets[:-1], np.where(is_valid, np.diff(offsets), 0)


def _element_positions(starts: _Int64, lengths: _Int64) -> tuple[_Int64, _Int64]:
    """For each element of all rows: its row, and its position among all elements."""
    rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    elements_before = np.cumsum(lengths) - lengths
    return rows, np.arange(len(rows), dtype=np.int64) - elements_before[rows] + starts[rows]


def _row_values(argument: Any, row_count: int) -> Any:
    """An Array with the argument's value for each row."""
    return pa.repeat(argument, row_count) if isinstance(argument, pa.Scalar) else argument


def _are_equal(left: Any, right: Any) -> Any:
    """NaN equals NaN; null gives null."""
    are_equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        are_equal = pc.or_(are_equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return are_equal


def _compare_elements(values: Any, elements: Any, searched_values: Any) -> tuple[_Int64, _Int64, Any]:
    """For each element of all rows: its row, its position among all elements, and whether it equals the row's searched value.

    The last is null if either is null. elements: those of all rows, as Arrow stores them. searched_values: the value to search in
    each row, or a Scalar for all rows.
    """
    rows, positions = _element_positions(*_starts_and_lengths(values))
    searched_by_element = _row_values(searched_values, len(values)).take(pa.array(rows))
    return rows, positions, _are_equal(elements.take(pa.array(positions)), searched_by_element)


# ---------------------------------------------------------------- one element


def _element_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """The signature of container[key]. `get` is for arrays only, and only `element` accepts long positions."""
    check_count(name, operands, 2, 2)
    container, key = operands[0].data_type, operands[1].data_type
    if isinstance(container, ArrayType):
        if not (is_integral(key) or key == VOID) or (key == LONG and name != "element"):
            raise mismatch(name, container, key)
        return Signature((container, LONG if key == LONG else INTEGER), container.element_type)
    if isinstance(container, MapType) and name != "get":
        common = common_type(container.key_type, key)
        if common != container.key_type or not is_atomic(common):
            raise mismatch(name, container, key)
        return Signature((container, container.key_type), container.value_type)
    raise mismatch(name, container, key)


def _element(arguments: list[Any], result: DataType) -> Any:
    """a[i], counted from 0; i outside the array raises. m[k]; null for a missing key."""
    if pa.types.is_map(arguments[0].type):
        return _map_value(*arguments)
    return _element_at_index(*arguments, raise_outside=_raise_for_index)


def _get(arguments: list[Any], result: DataType) -> Any:
    """a[i], counted from 0; null for an index outside of the array."""
    return _element_at_index(*arguments, raise_outside=None)


def _element_at(arguments: list[Any], result: DataType) -> Any:
    """Counted from 1, or from the end with a negative index; 0 is an error."""
    if pa.types.is_map(arguments[0].type):
        return _map_value(*arguments)
    return _element_at_index(arguments[0], arguments[1], raise_outside=_raise_for_index, from_one=True)


def _try_element_at(arguments: list[Any], result: DataType) -> Any:
    """element_at with null for an index outside of the array; 0 is an error here too."""
    if pa.types.is_map(arguments[0].type):
        return _map_value(*arguments)
    return _element_at_index(arguments[0], arguments[1], raise_outside=None, from_one=True)


def _element_at_index(
    values: Any, index: Any, *, raise_outside: Callable[[_Flags, _Int64, _Int64], None] | None, from_one: bool = False
) -> Any:
    """The element at the index of each row.

    raise_outside: gets (mask of the rows whose index is outside, indexes, lengths of the lists); None: such rows give null.
    from_one: indexes count from 1, or from the end if they are negative; otherwise from 0.
    """
    starts, lengths = _starts_and_lengths(values)
    index_of_row = _row_values(index, len(values))
    is_valid = pc.and_(values.is_valid(), index_of_row.is_valid()).to_numpy(zero_copy_only=False)
    indexes = index_of_row.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    position = indexes
    if from_one:
        if (is_valid & (indexes == 0)).any():
            raise ExpressionError(
                "The index 0 is not valid: element_at counts from 1, or from the end with a negative index.",
                error_class="INVALID_INDEX_OF_ZERO",
                sql_state="22003",
            )
        position = np.where(indexes > 0, indexes - 1, indexes + lengths)
    is_inside = (position >= 0) & (position < lengths)
    if raise_outside is not None:
        raise_outside(is_valid & ~is_inside, indexes, lengths)
    return values.values.take(pa.array(starts + position, mask=~(is_valid & is_inside)))


def _raise_for_index(is_outside: _Flags, indexes: _Int64, lengths: _Int64) -> None:
    """Raises INVALID_ARRAY_INDEX for the first row whose index is outside. lengths: the number of elements in each row."""
    if is_outside.any():
        row = int(np.argmax(is_outside))
        raise ExpressionError(
            f"The index {indexes[row]} is out of bounds: the array has {lengths[row]} elements. Use get or try_element_at, which "
            "give null then.",
            error_class="INVALID_ARRAY_INDEX",
            sql_state="22003",
        ) from BadRows(pa.array(is_outside))


def _map_value(values: Any, key: Any) -> Any:
    """The value of the row's key in each map; null if the map does not have the key."""
    rows, positions, comparison = _compare_elements(values, values.keys, key)
    is_equal = comparison.fill_null(False).to_numpy(zero_copy_only=False)
    value_position = np.full(len(values), -1, np.int64)
    # Backwards: if a map has equal keys, which should not occur, the first one wins.
    value_position[rows[is_equal][::-1]] = positions[is_equal][::-1]
    return values.items.take(pa.array(value_position, mask=value_position < 0))


def _field_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """The signature of get_field(struct, name). The name is a constant; the result has the type of this field."""
    struct, field = operands[0].data_type, operands[1].value
    struct_field = struct.find(field) if isinstance(struct, StructType) and isinstance(field, str) else None
    if struct_field is None:
        raise mismatch(f"The field {field}", struct)
    return Signature((struct, STRING), struct_field.data_type)


def _field(arguments: list[Any], result: DataType) -> Any:
    """A field of a struct. Its name ignores case, but a field with exactly this name comes first."""
    values, name = arguments
    names = [values.type.field(position).name for position in range(values.type.num_fields)]
    field_name = name if name in names else next(candidate for candidate in names if candidate.lower() == name.lower())
    return pc.struct_field(values, names.index(field_name))


# ---------------------------------------------------------------- searching


def _collection_type(name: str, operands: Sequence[Operand], *kinds: type) -> DataType:
    """The type of the only argument. Raises ExpressionError unless it is of one of the kinds."""
    check_count(name, operands, 1, 1)
    if not isinstance(operands[0].data_type, kinds):
        raise mismatch(name, operands[0].data_type)
    return operands[0].data_type


def _size_signature(name: str, operands: Sequence[Operand]) -> Signature:
    kinds = (ArrayType,) if name == "array_size" else (ArrayType, MapType)
    return Signature((_collection_type(name, operands, *kinds),), INTEGER)


def _size(arguments: list[Any], result: DataType) -> Any:
    values = arguments[0]
    _, lengths = _starts_and_lengths(values)
    return pa.array(lengths.astype(np.int32), mask=values.is_null().to_numpy(zero_copy_only=False))


def _keys_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """map_keys and map_values."""
    map_type = _collection_type(name, operands, MapType)
    assert isinstance(map_type, MapType)
    array = (
        ArrayType(map_type.key_type, False)
        if name == "map_keys"
        else ArrayType(map_type.value_type, map_type.value_contains_null)
    )
    return Signature((map_type,), array)


def _keys_or_values(values: Any, elements: Any, result: DataType) -> Any:
    """The keys or the values of each map as an array. elements: those of all maps, as Arrow stores them."""
    starts, lengths = _starts_and_lengths(values)
    _, positions = _element_positions(starts, lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    is_null = values.is_null() if values.null_count else None
    map_elements = elements.take(pa.array(positions))
    return pa.ListArray.from_arrays(pa.array(offsets), map_elements, type=to_arrow_type(result), mask=is_null)


def _contains_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """array_contains, array_position and map_contains_key: (container, value). The value is cast to the type of the elements or
    keys, which must be the common type of both."""
    check_count(name, operands, 2, 2)
    container, value_type = operands[0].data_type, operands[1].data_type
    if name == "map_contains_key" and isinstance(container, MapType):
        element_type = container.key_type
    elif name != "map_contains_key" and isinstance(container, ArrayType):
        element_type = container.element_type
    else:
        raise mismatch(name, container, value_type)
    common = common_type(element_type, value_type)
    if common != element_type or value_type == VOID or not is_atomic(element_type):
        raise mismatch(name, container, value_type)
    return Signature((container, element_type), LONG if name == "array_position" else BOOLEAN)


def _contains(arguments: list[Any], result: DataType) -> Any:
    """Null for a null array or value, and if no element is equal but one is null."""
    values, searched_values = arguments
    elements = values.keys if pa.types.is_map(values.type) else values.values
    rows, _, comparison = _compare_elements(values, elements, searched_values)
    is_contained, is_unknown = np.zeros(len(values), bool), np.zeros(len(values), bool)
    is_contained[rows[comparison.fill_null(False).to_numpy(zero_copy_only=False)]] = True
    is_unknown[rows[comparison.is_null().to_numpy(zero_copy_only=False)]] = True
    is_null = pc.or_(values.is_null(), _row_values(searched_values, len(values)).is_null()).to_numpy(zero_copy_only=False)
    return pa.array(is_contained, mask=is_null | (is_unknown & ~is_contained))


def _array_position(arguments: list[Any], result: DataType) -> Any:
    """The position of the first equal element, from 1; 0 if no element is equal."""
    values, searched_values = arguments
    rows, positions, comparison = _compare_elements(values, values.values, searched_values)
    is_equal = comparison.fill_null(False).to_numpy(zero_copy_only=False)
    starts, _ = _starts_and_lengths(values)
    first_positions = np.zeros(len(values), np.int64)
    # Backwards, so that the first equal element of a row wins.
    first_positions[rows[is_equal][::-1]] = (positions[is_equal] - starts[rows[is_equal]] + 1)[::-1]
    is_null = pc.or_(values.is_null(), _row_values(searched_values, len(values)).is_null()).to_numpy(zero_copy_only=False)
    return pa.array(first_positions, mask=is_null)


# ---------------------------------------------------------------- constructors


def _array_signature(name: str, operands: Sequence[Operand]) -> Signature:
    common = common_type_of_all(operand.data_type for operand in operands)
    if common is None:
        raise mismatch(name, *(operand.data_type for operand in operands))
    return Signature((common,) * len(operands), ArrayType(common))


def _array(arguments: list[Any], result: DataType) -> Any:
    """array(a, b, ...): the values of each row as a list."""
    if not arguments:
        return pa.array([[]], to_arrow_type(result))
    columns, count = _as_columns(arguments)
    # The largest column counts as input, and the bytes of the other columns as growth.
    sizes = [column.nbytes for column in columns]
    spend("array", sum(sizes) - max(sizes, default=0))
    return pa.ListArray.from_arrays(_equal_offsets(count, len(columns)), _interleave(columns), type=to_arrow_type(result))


def _as_columns(arguments: list[Any]) -> tuple[list[Any], int]:
    """All arguments as arrays, and their number of rows."""
    count = next(len(argument) for argument in arguments if isinstance(argument, pa.Array))
    return [_row_values(argument, count) for argument in arguments], count


def _equal_offsets(count: int, length: int) -> pa.Array:
    """Offsets of `count` lists of one length."""
    return pa.array(np.arange(0, count * length + 1, length, dtype=np.int32))


def _interleave(columns: list[Any]) -> Any:
    """Row by row, the values of all columns."""
    count = len(columns[0])
    positions = np.arange(count * len(columns)).reshape(len(columns), count).T.ravel()
    return pa.concat_arrays(columns).take(pa.array(positions))


def _map_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """map(key, value, key, value, ...): keys have one type, and so have values."""
    if not operands:
        raise not_supported("An empty map", "Its keys have no type. Cast null, or name a key.")
    if len(operands) % 2:
        raise wrong_argument_count(name, len(operands), "2, 4, 6, ...")
    keys, values = ([operand.data_type for operand in operands[start::2]] for start in (0, 1))
    key, value = _common_type_of(name, keys), _common_type_of(name, values)
    if key == VOID:
        raise _null_key_error()
    if not is_atomic(key):
        raise not_supported(f"{name} with keys of {type_name(key)}")
    return Signature((key, value) * (len(operands) // 2), MapType(key, value))


def _common_type_of(name: str, types: Sequence[DataType]) -> DataType:
    """The common type of all `types`. Raises ExpressionError if there is none. name: the function, for the message."""
    common = common_type_of_all(types)
    if common is None:
        raise mismatch(name, *types)
    return common


def _map(arguments: list[Any], result: DataType) -> Any:
    """map(key, value, key, value, ...): the values of each row as a map."""
    columns, count = _as_columns(arguments)
    # The largest column counts as input, and the bytes of the other columns as growth.
    sizes = [column.nbytes for column in columns]
    spend("map", sum(sizes) - max(sizes, default=0))
    keys, items = _interleave(columns[::2]), _interleave(columns[1::2])
    if pa.types.is_floating(keys.type):
        keys = pc.add(keys, pa.scalar(0.0, keys.type))  # -0.0 becomes 0.0, as in Spark
    _check_keys(keys, len(columns) // 2, count)
    return pa.MapArray.from_arrays(_equal_offsets(count, len(columns) // 2), keys, items, type=to_arrow_type(result))


def _check_keys(keys: Any, length: int, count: int) -> None:
    """Raises ExpressionError for a key that is null, or that occurs twice in a map.

    keys: the keys of all maps, row by row. length: the number of keys of each map. count: the number of maps.
    """
    if keys.null_count:
        raise _null_key_error()
    # Equal keys have equal codes, so that a key that occurs twice has a neighbour with its code after sorting.
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64).reshape(count, length)
    sorted_codes = np.sort(codes, axis=1)
    is_repeated = sorted_codes[:, 1:] == sorted_codes[:, :-1]
    if is_repeated.any():
        row = int(np.argmax(is_repeated.any(axis=1)))
        code = int(sorted_codes[row, 1:][is_repeated[row]][0])
        key = keys[row * length + int(np.argmax(codes[row] == code))].as_py()
        raise ExpressionError(
            f"A map would have the key {shown(str(key))} twice. Give it one value.",
            error_class="DUPLICATED_MAP_KEY",
            sql_state="23505",
            key=shown(str(key)),
        )


def _null_key_error() -> ExpressionError:
    return ExpressionError("A map cannot have null as a key. Leave such keys out.", error_class="NULL_MAP_KEY", sql_state="2200E")


def _named_struct_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """named_struct(name, value, name, value, ...): names are constants."""
    if not operands or len(operands) % 2:
        raise wrong_argument_count(name, len(operands), "2, 4, 6, ...")
    names = [operand.value for operand in operands[::2]]
    if not all(operand.is_literal and isinstance(operand.value, str) for operand in operands[::2]):
        raise not_supported(f"{name} with names that are no constants", "Write the names in quotes.")
    types = [operand.data_type for operand in operands[1::2]]
    struct = StructType(tuple(StructField(n, t) for n, t in zip(names, types, strict=True)))
    return Signature(tuple(operand.data_type for operand in operands), struct)


def _named_struct(arguments: list[Any], result: DataType) -> Any:
    """The values of each row as a struct. `result` has the names, so only the values among the arguments are used."""
    values = arguments[1::2]
    count = next((len(v) for v in values if isinstance(v, pa.Array)), 1)
    fields = list(to_arrow_type(result))
    return pa.StructArray.from_arrays([_row_values(value, count) for value in values], fields=fields)


_SECOND_ARGUMENT = frozenset({1})

NESTED: dict[str, Function] = {
    "element": Function(_element_signature, _element, can_fail=True),
    "element_at": Function(_element_signature, _element_at, can_fail=True),
    "try_element_at": Function(_element_signature, _try_element_at, can_fail=True),
    "get": Function(_element_signature, _get),
    "get_field": Function(_field_signature, _field, constants=_SECOND_ARGUMENT),
    "size": Function(_size_signature, _size),
    "array_size": Function(_size_signature, _size),
    "map_keys": Function(_keys_signature, lambda arguments, result: _keys_or_values(arguments[0], arguments[0].keys, result)),
    "map_values": Function(_keys_signature, lambda arguments, result: _keys_or_values(arguments[0], arguments[0].items, result)),
    "array_contains": Function(_contains_signature, _contains),
    "map_contains_key": Function(_contains_signature, _contains),
    "array_position": Function(_contains_signature, _array_position),
    "array": Function(_array_signature, _array),
    "map": Function(_map_signature, _map, can_fail=True),
    "named_struct": Function(_named_struct_signature, _named_struct),
}
