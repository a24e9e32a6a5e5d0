"""Converts columns of a Parquet file to the table's types, without touching a row if the types agree.

Two steps, both done once for all files of the same schema: `match_columns` finds the columns' fields in the file, by name
or by id, and `make_converter` makes a function over arrays. A field that the file lacks is null, at any depth. None in place
of a function means that the file's array needs no conversion.
Protocol: Reader Requirements for Column Mapping; Type Widening.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.parquet.file_schema import FileField, FileSchema, Shape, SiblingFields
from delta_py.parquet.values.buffers import Ndarray, list_parts, validity
from delta_py.parquet.values.conform_values import CannotRead, value_converter
from delta_py.parquet.values.rebase import LegacyCalendar
from delta_py.protocol.column_mapping import ID as COLUMN_ID
from delta_py.types.arrow_layouts import is_list_like
from delta_py.types.schema import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    to_arrow_type,
    type_name,
)

Convert: TypeAlias = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Match:
    """A column of the table, or a value inside of it, and its field in the file.

    path: the dotted name, for errors. data_type: in the table. source: None if the file lacks the field. parts: the matches of
    the fields of a struct, the element of an array, or the key and value of a map.
    """

    path: str
    data_type: DataType
    source: FileField | None
    parts: tuple[Match, ...] = ()


# ---------------------------------------------------------------- matching


def match_columns(
    columns: Iterable[tuple[StructField, StructField] | None], schema: FileSchema, *, by_id: bool
) -> list[Match | None]:
    """Find columns in a file. columns: logical and physical field of each; None for a column that is not stored in the file.

    Raises CannotRead if a column exists twice or has another structure, or if by_id is set and the file has no ids."""
    siblings = SiblingFields(schema.fields)
    matches: list[Match | None] = []
    for column in columns:
        if column is None:
            matches.append(None)
            continue
        logical, physical = column
        if by_id and not schema.has_field_ids and COLUMN_ID in physical.metadata:
            raise CannotRead(
                "the table's columns are found by field id (column mapping mode `id`), and no column of the file has one; "
                "it was not written for this table"
            )
        matches.append(_match_field(logical.name, logical.data_type, physical, siblings, by_id))
    return matches


def _match_field(path: str, logical: DataType, physical: StructField, siblings: SiblingFields, by_id: bool) -> Match:
    """Find a column, or a field of a struct, among its siblings in the file. path: for errors. A VOID column is null everywhere,
    so a field of its name is not read."""
    source = _find_field(path, physical, siblings, by_id)
    if source is None or logical == VOID:
        return Match(path, logical, None)
    return _match_value(path, logical, physical.data_type, source, by_id)


def _find_field(path: str, physical: StructField, siblings: SiblingFields, by_id: bool) -> FileField | None:
    """The field's counterpart in the file: by id if the field has one and by_id is set; else by exact name; else by name ignoring
    case. None if the file lacks it."""
    field_id = physical.metadata.get(COLUMN_ID) if by_id else None
    return _single_candidate(path, siblings.with_name(physical.name) if field_id is None else siblings.with_id(field_id))


def _single_candidate(path: str, candidates: Sequence[FileField]) -> FileField | None:
    """The only candidate; None if there is none. Raises CannotRead if there are several."""
    if len(candidates) > 1:
        names = ", ".join(f.name for f in candidates)
        raise CannotRead(f"column {path} is in the file more than once: {names}; which one is meant cannot be told")
    return candidates[0] if candidates else None


def _match_value(path: str, logical: DataType, physical: DataType, source: FileField, by_id: bool) -> Match:
    """Match the parts of a value whose field in the file is known. path: for errors. Raises CannotRead as match_columns."""
    parts: list[Match] = []
    match logical, physical:
        case StructType(fields), StructType(physical_fields):
            _check_shape(path, logical, source, Shape.STRUCT)
            siblings = SiblingFields(source.children)
            for inner, inner_physical in zip(fields, physical_fields, strict=True):
                parts.append(_match_field(f"{path}.{inner.name}", inner.data_type, inner_physical, siblings, by_id))
        case ArrayType(element), ArrayType(physical_element):
            _check_shape(path, logical, source, Shape.LIST)
            parts.append(_match_part(f"{path}.element", element, physical_element, source.children[0], by_id))
        case MapType(key, value), MapType(physical_key, physical_value):
            _check_shape(path, logical, source, Shape.MAP)
            parts.append(_match_part(f"{path}.key", key, physical_key, source.children[0], by_id))
            parts.append(_match_part(f"{path}.value", value, physical_value, source.children[1], by_id))
        case _:
            _check_shape(path, logical, source, Shape.STRUCT if logical == VARIANT else Shape.LEAF)
    return Match(path, logical, source, tuple(parts))


def _match_part(path: str, logical: DataType, physical: DataType, source: FileField, by_id: bool) -> Match:
    """Match an element, a key or a value, whose field in the file is known."""
    return Match(path, logical, None) if logical == VOID else _match_value(path, logical, physical, source, by_id)


def _check_shape(path: str, logical: DataType, source: FileField, shape: Shape) -> None:
    """Raises CannotRead if the file's field does not have this shape."""
    if source.shape is not shape:
        kind = "a plain value" if source.shape is Shape.LEAF else f"a {source.shape.value}"
        raise CannotRead(f"column {path} is {type_name(logical)} in the table, and {kind} in the file")


def needed_leaves(match: Match, schema: FileSchema) -> set[int]:
    """Parquet leaf columns to decode for a value. A struct, list or map needs at least one, which contains nulls and lengths."""
    if match.source is None:
        return set()
    if not match.parts:
        # Any leaf shows where a struct without fields is null: the last line adds the cheapest. All other values without parts
        # are leaves, or variants, whose leaves are all needed.
        leaves = set() if isinstance(match.data_type, StructType) else set(match.source.leaves)
    else:
        leaves = set().union(*(needed_leaves(part, schema) for part in match.parts))
    if match.source.shape is Shape.MAP:  # Arrow builds a map only if both sides are read
        for side in match.source.children:
            if leaves.isdisjoint(side.leaves):
                leaves.add(schema.cheapest_leaf(side))
    return leaves or {schema.cheapest_leaf(match.source)}


# ---------------------------------------------------------------- converting


@dataclass(frozen=True, slots=True)
class FileContext:
    """Facts about a file that the conversion needs in addition to the types. selected: all leaf columns that are decoded."""

    schema: FileSchema
    calendar: LegacyCalendar
    selected: AbstractSet[int]

    def positions(self, fields: Sequence[FileField]) -> dict[int, int]:
        """The position of each (partly) decoded field in Arrow's result, by the field's first leaf."""
        decoded = [f for f in fields if not self.selected.isdisjoint(f.leaves)]
        return {f.first_leaf: position for position, f in enumerate(decoded)}


def make_converter(match: Match, arrow: pa.DataType, context: FileContext) -> Convert | None:
    """A function from the file's decoded array (of type `arrow`, which holds only the decoded leaves) to the table's
    type. Raises CannotRead if the types do not match."""
    if isinstance(arrow, pa.BaseExtensionType):
        inner = make_converter(match, arrow.storage_type, context)
        return (lambda array: array.storage) if inner is None else (lambda array: inner(array.storage))
    target = to_arrow_type(match.data_type)
    match match.data_type:
        case StructType():
            return _struct_converter(match, arrow, target, context)
        case ArrayType():
            return _list_converter(match, arrow, target, context)
        case MapType():
            return _map_converter(match, arrow, target, context)
    assert match.source is not None
    if match.data_type == VARIANT:
        from delta_py.parquet.values.variant import variant_converter

        return variant_converter(match.path, arrow)
    int96 = context.schema.is_int96(match.source.first_leaf)
    return value_converter(match.path, match.data_type, arrow, context.calendar, int96=int96)


def null_values(match: Match, row_count: int) -> pa.Array:
    """The values of a column or a part that the file lacks."""
    return pa.nulls(row_count, to_arrow_type(match.data_type))


def _struct_converter(match: Match, arrow: pa.StructType, target: pa.DataType, context: FileContext) -> Convert | None:
    """The conversion of structs. None if the file's struct has the table's fields in the same order, and no field needs one."""
    assert match.source is not None
    positions_by_leaf = context.positions(match.source.children)
    positions = [None if part.source is None else positions_by_leaf[part.source.first_leaf] for part in match.parts]
    converters = [
        None if position is None else make_converter(part, arrow.field(position).type, context)
        for part, position in zip(match.parts, positions, strict=True)
    ]
    if arrow == target and not any(converters) and positions == list(range(len(positions))):
        return None
    part_types = [to_arrow_type(part.data_type) for part in match.parts]  # of all parts; used for those that the file lacks

    def child(array: pa.StructArray, position: int | None, inner: Convert | None, kind: pa.DataType) -> pa.Array:
        """A field of the result. position: in the file's struct, None if the file lacks it. inner: its conversion. kind: its
        type."""
        if position is None:
            return pa.nulls(len(array), kind)
        values = array.field(position)
        if inner is None:
            return values
        if array.null_count and not arrow.field(position).nullable:
            # If the file requires a value, the values below a null struct are arbitrary: their conversion must not fail.
            values = pc.if_else(pc.is_valid(array), values, pa.scalar(None, values.type))
        return inner(values)

    def convert(array: pa.StructArray) -> pa.Array:
        parts = zip(positions, converters, part_types, strict=True)
        children = [child(array, position, inner, kind) for position, inner, kind in parts]
        return pa.Array.from_buffers(target, len(array), [validity(array)], array.null_count, children=children)

    return convert


def _list_converter(match: Match, arrow: pa.DataType, target: pa.DataType, context: FileContext) -> Convert | None:
    """The conversion of lists. None if the file has plain lists, and their elements need none."""
    # Lists with other layouts (64-bit offsets, fixed size, views) are converted to plain lists first.
    if not pa.types.is_list(arrow):
        assert is_list_like(arrow)
        plain = pa.list_(arrow.value_field)
        inner = _list_converter(match, plain, target, context)
        return lambda array: apply_converter(inner, array.cast(plain))
    element = _part_converter(match.parts[0], arrow.value_type, context)
    if arrow == target and element is None:
        return None

    def convert(array: pa.ListArray) -> pa.Array:
        offsets, values = list_parts(array)
        return _make_list_or_map(target, array, offsets, apply_converter(element, values))

    return convert


def _map_converter(match: Match, arrow: pa.MapType, target: pa.MapType, context: FileContext) -> Convert | None:
    """The conversion of maps. None if neither keys nor values need one."""
    key = _part_converter(match.parts[0], arrow.key_type, context)
    value = _part_converter(match.parts[1], arrow.item_type, context)
    if arrow == target and key is None and value is None:
        return None
    entry_type = pa.struct([target.key_field, target.item_field])

    def convert(array: pa.MapArray) -> pa.Array:
        offsets, entries = list_parts(array)
        children = [apply_converter(key, entries.field(0)), apply_converter(value, entries.field(1))]
        pairs = pa.Array.from_buffers(entry_type, len(entries), [None], 0, children=children)
        return _make_list_or_map(target, array, offsets, pairs)

    return convert


def _part_converter(part: Match, arrow: pa.DataType, context: FileContext) -> Convert | None:
    """The conversion of elements, keys or values; of parts without a source, such as VOID elements, to nulls."""
    if part.source is None:
        return lambda array: null_values(part, len(array))
    return make_converter(part, arrow, context)


def apply_converter(convert: Convert | None, array: pa.Array) -> pa.Array:
    return array if convert is None else convert(array)


def _make_list_or_map(target: pa.DataType, array: pa.Array, offsets: Ndarray, values: pa.Array) -> pa.Array:
    """A list or map array of the target type, with the nulls of `array`. offsets: into `values`, from 0."""
    buffers = [validity(array), pa.py_buffer(np.ascontiguousarray(offsets))]
    return pa.Array.from_buffers(target, len(array), buffers, array.null_count, children=[values])
