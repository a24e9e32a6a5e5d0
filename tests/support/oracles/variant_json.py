"""Variant columns as JSON text, so that they can be compared with the output of Spark's to_json."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql.types import VariantVal

from delta_py.types.schema import VARIANT_ARROW


def has_variant(kind: pa.DataType) -> bool:
    return kind == VARIANT_ARROW or any(has_variant(kind.field(i).type) for i in range(kind.num_fields))


def variants_as_json(table: pa.Table) -> pa.Table:
    """Each column with variants, at any depth, as canonical JSON text of the whole column."""
    for position, field in enumerate(table.schema):
        if has_variant(field.type):
            texts = [_text(_plain(value, field.type)) for value in table.column(position).to_pylist()]
            table = table.set_column(position, field.name, pa.array(texts, pa.string()))
    return table


def canonical_json(table: pa.Table, columns: list[str]) -> pa.Table:
    """JSON text in these columns, written in the same form as variants_as_json."""
    for name in columns:
        texts = [None if text is None else _text(json.loads(text)) for text in table[name].to_pylist()]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    return table


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """As to_json does: a struct leaves out its null fields, lists and maps keep their nulls."""
    if value is None:
        return None
    if kind == VARIANT_ARROW:
        return json.loads(VariantVal(value["value"], value["metadata"]).toJson())
    if pt.is_struct(kind):
        fields = {field.name: _plain(value[field.name], field.type) for field in kind}
        return {name: plain for name, plain in fields.items() if plain is not None}
    if pt.is_map(kind):
        return {str(key): _plain(item, kind.item_type) for key, item in value}
    if pt.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return value
