"""Spark's short names of types (`struct<a:int,b:array<string>>`), from schema JSON and from Arrow."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from delta_py.types.schema import VARIANT_ARROW

_JSON_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_ARROW_NAMES = {
    pa.string(): "string",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.null(): "void",
    VARIANT_ARROW: "variant",
}


def json_columns(schema: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, type) of each column of a schema as JSON."""
    return [(field["name"], json_type(field["type"])) for field in schema["fields"]]


def json_type(kind: Any) -> str:
    if isinstance(kind, str):
        return _JSON_NAMES.get(kind, kind.replace(" ", ""))
    match kind["type"]:
        case "struct":
            return f"struct<{','.join(f'{name}:{text}' for name, text in json_columns(kind))}>"
        case "array":
            return f"array<{json_type(kind['elementType'])}>"
        case "map":
            return f"map<{json_type(kind['keyType'])},{json_type(kind['valueType'])}>"
        case other:
            raise AssertionError(f"no short name for {other}")


def arrow_columns(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, arrow_type(field.type)) for field in schema]


def arrow_type(kind: pa.DataType) -> str:
    if kind in _ARROW_NAMES:
        return _ARROW_NAMES[kind]
    if pt.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{arrow_type(field.type)}' for field in kind)}>"
    if pt.is_list(kind):
        return f"array<{arrow_type(kind.value_type)}>"
    if pt.is_map(kind):
        return f"map<{arrow_type(kind.key_type)},{arrow_type(kind.item_type)}>"
    raise AssertionError(f"{kind} is no type that a table's rows have in Arrow")


def without_collation(text: str) -> str:
    """Arrow has no collations: `string collate UTF8_LCASE` is `string` there."""
    return re.sub(r" collate \w+", "", text)
