"""Functions on arrays, maps and structs: elements, keys, sizes, and constructors.

numpy processes lists by their offsets; an element of a null array or map is null, whatever is stored below.
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
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return offsets[:-1], np.where(valid, np.diff(offsets), 0)


def _elements(starts: _Int64, lengths: _Int64) -> tuple[_Int64, _Int64]:
    """For each element of all rows: its row, and its position among all elements."""
    rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    elements_before = np.cumsum(lengths) - lengths
    return rows, np.arange(len(rows), dtype=np.int64) - elements_before[rows] + starts[rows]


def _row_values(argument: Any, row_count: int) -> Any:
    return pa.repeat(argument, row_count) if isinstance(argument, pa.Scalar) else argument


def _equal(left: Any, right: Any) -> Any:
    """NaN equals NaN; null gives null."""
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return equal


def _matches(values: Any, elements: Any, sought: Any) -> tuple[_Int64, _Int64, Any]:
    """The row and the position of each element, and whether it equals the row's wanted value (null if either is null)."""
    rows, places = _elements(*_starts_and_lengths(values))
    return rows, places, _equal(elements.take(pa.array(places)), _row_values(sought, len(values)).take(pa.array(rows)))


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
    return _of_map(*arguments) if pa.types.is_map(arguments[0].type) else _at_index(*arguments, outside=_refuse_index)


def _get(arguments: list[Any], result: DataType) -> Any:
    return _at_index(*arguments, outside=None)


def _element_at(arguments: list[Any], result: DataType) -> Any:
    """Counted from 1, or from the end with a negative index; 0 is an error."""
    if pa.types.is_map(arguments[0].type):
        return _of_map(*arguments)
    return _at_index(arguments[0], arguments[1], outside=_refuse_index, from_one=True)


def _try_element_at(arguments: list[Any], result: DataType) -> Any:
    if pa.types.is_map(arguments[0].type):
        return _of_map(*arguments)
    return _at_index(arguments[0], arguments[1], outside=None, from_one=True)


def _at_index(
    values: Any, index: Any, *, outside: Callable[[_Flags, _Int64, _Int64], None] | None, from_one: bool = False
) -> Any:
    """The element at the index of each row. outside: called for the indexes outside of a list, to raise; None: they give null."""
    starts, lengths = _starts_and_lengths(values)
    rows_index = _row_values(index, len(values))
    is_valid = pc.and_(values.is_valid(), rows_index.is_valid()).to_numpy(zero_copy_only=False)
    indexes = rows_index.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    place = indexes
    if from_one:
        if (is_valid & (indexes == 0)).any():
            raise ExpressionError(
                "The index 0 is not valid: element_at counts from 1, or from the end with a negative index.",
                error_class="INVALID_INDEX_OF_ZERO",
                sql_state="22003",
            )
        place = np.where(indexes > 0, indexes - 1, indexes + lengths)
    inside = (place >= 0) & (place < lengths)
    if outside is not None:
        outside(is_valid & ~inside, indexes, lengths)
    return values.values.take(pa.array(starts + place, mask=~(is_valid & inside)))


def _refuse_index(bad: _Flags, indexes: _Int64, lengths: _Int64) -> None:
    """Raises INVALID_ARRAY_INDEX for the first row in `bad`. lengths: the number of elements in each row."""
    if bad.any():
        row = int(np.argmax(bad))
        raise ExpressionError(
            f"The index {indexes[row]} is out of bounds: the array has {lengths[row]} elements. Use get or try_element_at, which "
            "give null then.",
            error_class="INVALID_ARRAY_INDEX",
            sql_state="22003",
        ) from BadRows(pa.array(bad))


def _of_map(values: Any, key: Any) -> Any:
    """The value of the row's key in each map; null if the map does not have the key."""
    rows, places, equal = _matches(values, values.keys, key)
    is_equal = equal.fill_null(False).to_numpy(zero_copy_only=False)
    place = np.full(len(values), -1, np.int64)
    place[rows[is_equal][::-1]] = places[is_equal][::-1]  # backwards: the first of equal keys, which should not occur, wins
    return values.items.take(pa.array(place, mask=place < 0))


def _field_signature(name: str, operands: Sequence[Operand]) -> Signature:
    struct, field = operands[0].data_type, operands[1].value
    struct_field = struct.find(field) if isinstance(struct, StructType) and isinstance(field, str) else None
    if struct_field is None:
        raise mismatch(f"The field {field}", struct)
    return Signature((struct, STRING), struct_field.data_type)


def _field(arguments: list[Any], result: DataType) -> Any:
    """A field of a struct. Its name ignores case, but a field with exactly this name comes first."""
    values, name = arguments
    names = [values.type.field(place).name for place in range(values.type.num_fields)]
    exact = name if name in names else next(n for n in names if n.lower() == name.lower())
    return pc.struct_field(values, names.index(exact))


# ---------------------------------------------------------------- searching


def _collection(name: str, operands: Sequence[Operand], *kinds: type) -> DataType:
    """The type of the only argument. Raises ExpressionError unless it is of one of the kinds."""
    check_count(name, operands, 1, 1)
    if not isinstance(operands[0].data_type, kinds):
        raise mismatch(name, operands[0].data_type)
    return operands[0].data_type


def _size_signature(name: str, operands: Sequence[Operand]) -> Signature:
    kinds = (ArrayType,) if name == "array_size" else (ArrayType, MapType)
    return Signature((_collection(name, operands, *kinds),), INTEGER)


def _size(arguments: list[Any], result: DataType) -> Any:
    values = arguments[0]
    _, lengths = _starts_and_lengths(values)
    return pa.array(lengths.astype(np.int32), mask=values.is_null().to_numpy(zero_copy_only=False))


def _keys_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """map_keys and map_values."""
    map_type = _collection(name, operands, MapType)
    assert isinstance(map_type, MapType)
    array = (
        ArrayType(map_type.key_type, False)
        if name == "map_keys"
        else ArrayType(map_type.value_type, map_type.value_contains_null)
    )
    return Signature((map_type,), array)


def _list_of(values: Any, elements: Any, result: DataType) -> Any:
    """The keys or the values of each map as an array. elements: those of all maps, as Arrow stores them."""
    starts, lengths = _starts_and_lengths(values)
    _, places = _elements(starts, lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    null = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), elements.take(pa.array(places)), type=to_arrow_type(result), mask=null)


def _contains_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """array_contains, array_position and map_contains_key: (container, value). The value is cast to the type of the elements or
    keys, which must be the common type of both."""
    check_count(name, operands, 2, 2)
    container, value_type = operands[0].data_type, operands[1].data_type
    if name == "map_contains_key" and isinstance(container, MapType):
        element = container.key_type
    elif name != "map_contains_key" and isinstance(container, ArrayType):
        element = container.element_type
    else:
        raise mismatch(name, container, value_type)
    common = common_type(element, value_type)
    if common != element or value_type == VOID or not is_atomic(element):
        raise mismatch(name, container, value_type)
    return Signature((container, element), LONG if name == "array_position" else BOOLEAN)


def _contains(arguments: list[Any], result: DataType) -> Any:
    """Null for a null array or value, and if no element is equal but one is null."""
    values, sought = arguments
    elements = values.keys if pa.types.is_map(values.type) else values.values
    rows, _, equal = _matches(values, elements, sought)
    contained, unknown = np.zeros(len(values), bool), np.zeros(len(values), bool)
    contained[rows[equal.fill_null(False).to_numpy(zero_copy_only=False)]] = True
    unknown[rows[equal.is_null().to_numpy(zero_copy_only=False)]] = True
    null = pc.or_(values.is_null(), _row_values(sought, len(values)).is_null()).to_numpy(zero_copy_only=False)
    return pa.array(contained, mask=null | (unknown & ~contained))


def _position(arguments: list[Any], result: DataType) -> Any:
    """From 1; 0 if no element is equal."""
    values, sought = arguments
    rows, places, equal = _matches(values, values.values, sought)
    hit = equal.fill_null(False).to_numpy(zero_copy_only=False)
    starts, _ = _starts_and_lengths(values)
    first = np.zeros(len(values), np.int64)
    # Backwards, so that the first equal element of a row wins.
    first[rows[hit][::-1]] = (places[hit] - starts[rows[hit]] + 1)[::-1]
    null = pc.or_(values.is_null(), _row_values(sought, len(values)).is_null()).to_numpy(zero_copy_only=False)
    return pa.array(first, mask=null)


# ---------------------------------------------------------------- constructors


def _array_signature(name: str, operands: Sequence[Operand]) -> Signature:
    common = common_type_of_all(operand.data_type for operand in operands)
    if common is None:
        raise mismatch(name, *(operand.data_type for operand in operands))
    return Signature((common,) * len(operands), ArrayType(common))


def _array(arguments: list[Any], result: DataType) -> Any:
    if not arguments:
        return pa.array([[]], to_arrow_type(result))
    columns, count = _columns(arguments)
    sizes = [column.nbytes for column in columns]
    spend("array", sum(sizes) - max(sizes, default=0))
    return pa.ListArray.from_arrays(_offsets(count, len(columns)), _interleaved(columns), type=to_arrow_type(result))


def _columns(arguments: list[Any]) -> tuple[list[Any], int]:
    """All arguments as arrays, and their number of rows."""
    count = next(len(argument) for argument in arguments if isinstance(argument, pa.Array))
    return [_row_values(argument, count) for argument in arguments], count


def _offsets(count: int, length: int) -> pa.Array:
    """Offsets of `count` lists of one length."""
    return pa.array(np.arange(0, count * length + 1, length, dtype=np.int32))


def _interleaved(columns: list[Any]) -> Any:
    """Row by row, the values of all columns."""
    count = len(columns[0])
    places = np.arange(count * len(columns)).reshape(len(columns), count).T.ravel()
    return pa.concat_arrays(columns).take(pa.array(places))


def _map_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """map(key, value, key, value, ...): keys have one type, and so have values."""
    if not operands:
        raise not_supported("An empty map", "Its keys have no type. Cast null, or name a key.")
    if len(operands) % 2:
        raise wrong_argument_count(name, len(operands), "2, 4, 6, ...")
    keys, values = ([operand.data_type for operand in operands[first::2]] for first in (0, 1))
    key, value = _one_type(name, keys), _one_type(name, values)
    if key == VOID:
        raise _null_key()
    if not is_atomic(key):
        raise not_supported(f"{name} with keys of {type_name(key)}")
    return Signature((key, value) * (len(operands) // 2), MapType(key, value))


def _one_type(name: str, types: Sequence[DataType]) -> DataType:
    common = common_type_of_all(types)
    if common is None:
        raise mismatch(name, *types)
    return common


def _map(arguments: list[Any], result: DataType) -> Any:
    columns, count = _columns(arguments)
    # As in text_functions.spend_joined: the largest column counts as input.
    sizes = [column.nbytes for column in columns]
    spend("map", sum(sizes) - max(sizes, default=0))
    keys, items = _interleaved(columns[::2]), _interleaved(columns[1::2])
    if pa.types.is_floating(keys.type):
        keys = pc.add(keys, pa.scalar(0.0, keys.type))  # -0.0 becomes 0.0, as in Spark
    _check_keys(keys, len(columns) // 2, count)
    return pa.MapArray.from_arrays(_offsets(count, len(columns) // 2), keys, items, type=to_arrow_type(result))


def _check_keys(keys: Any, length: int, count: int) -> None:
    """Raises ExpressionError for a key that is null, or that occurs twice in a map.

    keys: of all maps, row by row. length: the number of keys of each map. count: the number of maps.
    """
    if keys.null_count:
        raise _null_key()
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64).reshape(count, length)
    ordered = np.sort(codes, axis=1)
    twice = ordered[:, 1:] == ordered[:, :-1]
    if twice.any():
        row = int(np.argmax(twice.any(axis=1)))
        code = int(ordered[row, 1:][twice[row]][0])
        key = keys[row * length + int(np.argmax(codes[row] == code))].as_py()
        raise ExpressionError(
            f"A map would have the key {shown(str(key))} twice. Give it one value.",
            error_class="DUPLICATED_MAP_KEY",
            sql_state="23505",
            key=shown(str(key)),
        )


def _null_key() -> ExpressionError:
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
    values = arguments[1::2]
    count = next((len(v) for v in values if isinstance(v, pa.Array)), 1)
    fields = list(to_arrow_type(result))
    return pa.StructArray.from_arrays([_row_values(value, count) for value in values], fields=fields)


_SECOND = frozenset({1})

NESTED: dict[str, Function] = {
    "element": Function(_element_signature, _element, can_fail=True),
    "element_at": Function(_element_signature, _element_at, can_fail=True),
    "try_element_at": Function(_element_signature, _try_element_at, can_fail=True),
    "get": Function(_element_signature, _get),
    "get_field": Function(_field_signature, _field, constants=_SECOND),
    "size": Function(_size_signature, _size),
    "array_size": Function(_size_signature, _size),
    "map_keys": Function(_keys_signature, lambda arguments, result: _list_of(arguments[0], arguments[0].keys, result)),
    "map_values": Function(_keys_signature, lambda arguments, result: _list_of(arguments[0], arguments[0].items, result)),
    "array_contains": Function(_contains_signature, _contains),
    "map_contains_key": Function(_contains_signature, _contains),
    "array_position": Function(_contains_signature, _position),
    "array": Function(_array_signature, _array),
    "map": Function(_map_signature, _map, can_fail=True),
    "named_struct": Function(_named_struct_signature, _named_struct),
}
