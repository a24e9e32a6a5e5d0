"""The fields of one Parquet file as a tree that maps fields to leaf columns.

Parquet's own paths are text joined with dots and so ambiguous. Here leaves are numbered by position, the form that
`ParquetReader.iter_batches(column_indices=...)` takes. Structure comes from Arrow's view of the schema (which has
already resolved legacy list and map layouts). The Parquet schema is used for facts that Arrow hides (INT96).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.types.arrow_layouts import is_list_like

_FIELD_ID = b"PARQUET:field_id"


class Shape(Enum):
    LEAF = "leaf"
    STRUCT = "struct"
    LIST = "list"  # one child: the element
    MAP = "map"  # two children: key and value


@dataclass(frozen=True, slots=True)
class FileField:
    """One field at any depth. field_id: None if the file has no id for the field. first_leaf, leaf_count: the range of its leaf
    columns, which are numbered through the whole file. children: the fields inside, as Shape says."""

    name: str
    field_id: int | None
    shape: Shape
    first_leaf: int
    leaf_count: int
    children: tuple[FileField, ...] = ()

    @property
    def leaves(self) -> range:
        return range(self.first_leaf, self.first_leaf + self.leaf_count)


class SiblingFields:
    """The fields of one struct of a file, or its columns, by id, by name and by name in lower case."""

    def __init__(self, fields: Sequence[FileField]) -> None:
        self._by_id: dict[int | None, list[FileField]] = {}
        self._by_name: dict[str, list[FileField]] = {}
        self._by_folded_name: dict[str, list[FileField]] = {}
        for f in fields:
            self._by_id.setdefault(f.field_id, []).append(f)
            self._by_name.setdefault(f.name, []).append(f)
            self._by_folded_name.setdefault(f.name.lower(), []).append(f)

    def with_id(self, field_id: int) -> Sequence[FileField]:
        """The fields with this id; several only if the file has it twice."""
        return self._by_id.get(field_id, ())

    def with_name(self, name: str) -> Sequence[FileField]:
        """Fields of exactly this name; if there are none, those whose names differ from it only in case."""
        same_name = self._by_name.get(name)
        return self._by_folded_name.get(name.lower(), ()) if same_name is None else same_name


@dataclass(frozen=True, slots=True)
class FileSchema:
    """fields: top-level, in file order. has_field_ids: whether any field, at any depth, has an id. parquet: the file's
    pyarrow.parquet.ParquetSchema, whose `column(leaf)` has the facts about a leaf column."""

    fields: tuple[FileField, ...]
    has_field_ids: bool
    parquet: Any

    def is_int96(self, leaf: int) -> bool:
        return bool(self.parquet.column(leaf).physical_type == "INT96")

    def cheapest_leaf(self, field: FileField) -> int:
        """A leaf that shows the presence and lengths of `field`: the least repeated one, of fixed width if possible."""
        return min(field.leaves, key=self._read_cost)

    def _read_cost(self, leaf: int) -> tuple[int, bool, int]:
        """(how often it is repeated, whether its width varies, its number): smaller is cheaper."""
        column = self.parquet.column(leaf)
        return column.max_repetition_level, column.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"), leaf


def read_file_schema(file: pq.ParquetFile) -> FileSchema:
    """The fields of an open file. Reads nothing but the footer, which pyarrow has already parsed."""
    arrow = file.schema_arrow
    fields = _number_fields(list(arrow), 0)
    assert _next_leaf(fields, 0) == len(file.schema), "Arrow's and Parquet's leaves disagree"
    return FileSchema(fields, any(f.field_id is not None for f in _all_fields(fields)), file.schema)


def _number_fields(arrow_fields: Sequence[pa.Field], first_leaf: int) -> tuple[FileField, ...]:
    """Number the leaves of sibling fields, from first_leaf on."""
    fields: list[FileField] = []
    for arrow in arrow_fields:
        fields.append(_number_field(arrow, _next_leaf(fields, first_leaf)))
    return tuple(fields)


def _next_leaf(fields: Sequence[FileField], start: int) -> int:
    """The number of the leaf after the last field; `start` if there is no field."""
    return fields[-1].first_leaf + fields[-1].leaf_count if fields else start


def _number_field(arrow: pa.Field, first_leaf: int) -> FileField:
    """A field with its children. first_leaf: the number of its first leaf column."""
    shape, child_fields = _shape_and_children(arrow.type)
    field_id = int(arrow.metadata[_FIELD_ID]) if arrow.metadata and _FIELD_ID in arrow.metadata else None
    if shape is Shape.LEAF:
        return FileField(arrow.name, field_id, shape, first_leaf, 1)
    children = _number_fields(child_fields, first_leaf)
    return FileField(arrow.name, field_id, shape, first_leaf, _next_leaf(children, first_leaf) - first_leaf, children)


def _shape_and_children(arrow: pa.DataType) -> tuple[Shape, list[pa.Field]]:
    """The shape of an Arrow type, and the fields inside of it."""
    if isinstance(arrow, pa.BaseExtensionType):
        return _shape_and_children(arrow.storage_type)
    if pa.types.is_struct(arrow):
        return Shape.STRUCT, list(arrow)
    if pa.types.is_map(arrow):
        return Shape.MAP, [arrow.key_field, arrow.item_field]
    if is_list_like(arrow):
        return Shape.LIST, [arrow.value_field]
    return Shape.LEAF, []


def _all_fields(fields: Sequence[FileField]) -> Iterator[FileField]:
    """The fields and all fields inside of them, at any depth."""
    for f in fields:
        yield f
        yield from _all_fields(f.children)
