"""Read many JSON texts into columns: each text is one object, and a schema names the requested members.

    read_json_objects(texts, schema)        # one struct per text; a missing, damaged or unfit value is null

If all texts fit the schema, one reader reads them together. Otherwise, the texts that do not fit and their neighbours are decoded
one by one.
"""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.types.arrow_values import array, scalar

# Half of a surrogate pair, which a writer left when it cut a text.
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_LINE_BREAK = scalar("\n", pa.string())
_MAX_TEXTS_READ_SINGLY = 64  # number of texts: in pieces of this size or less, each text is decoded separately


def read_json_objects(json: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.StructArray:
    """The objects in the JSON texts, as one struct for each text. json: strings; a null counts as an empty object. schema: the
    requested members and their types. A member that is missing, or does not fit its type, is null."""
    texts = _braced_texts(json)
    parsed = _read_together(texts, schema) if len(json) else None
    if parsed is not None:
        return parsed
    return _read_piecewise(_replace_unreadable_parts(texts), schema)


def _braced_texts(json: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The texts, with `{}` in place of nulls and of texts that cannot be one JSON object.

    Every result begins with `{` and ends with `}`. So if n of them, with a newline after each, parse as n objects, then each text
    is one object, and no damage can move the statistics of one file to another.
    """
    one_array = json.combine_chunks() if isinstance(json, pa.ChunkedArray) else json
    if not pa.types.is_string(one_array.type):
        one_array = one_array.cast(pa.string())
    if one_array.null_count:
        one_array = one_array.fill_null("{}")
    if not _is_any_true(pc.invert(_is_braced(one_array))):
        return one_array
    trimmed = pc.ascii_trim_whitespace(one_array)
    return pc.if_else(_is_braced(trimmed), trimmed, "{}")


def _is_braced(texts: pa.Array) -> pa.Array:
    return pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))


def _is_any_true(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())


def _replace_unreadable_parts(texts: pa.Array) -> pa.Array:
    """Replace parts that some writers write but the bulk reader cannot read: NaN and infinities as text (which become unknown, in
    text columns too), and line breaks between tokens (which the reader accepts only inside a block)."""
    texts = pc.replace_substring(texts, "\n", " ")
    return pc.replace_substring_regex(texts, r':\s*"[+-]?(?:NaN|Inf|Infinity)"', ":null")


def _read_together(texts: pa.Array, schema: pa.Schema) -> pa.StructArray | None:
    """Read all texts with one JSON reader; None if any text does not fit the schema.

    This takes a quarter of the time of decoding each text separately, and the reader uses all cores.
    """
    from pyarrow import json as pyarrow_json

    count = len(texts)
    joined = pc.binary_join(pa.ListArray.from_arrays(array([0, count], pa.int32()), texts), _LINE_BREAK)[0].as_buffer()
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    options = pyarrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    # Each object must fit into one block of the reader. 1 MiB is the reader's default.
    blocks = pyarrow_json.ReadOptions(block_size=max(1 << 20, longest + 2), use_threads=True)
    try:
        table = pyarrow_json.read_json(pa.BufferReader(joined), read_options=blocks, parse_options=options)
    except pa.ArrowInvalid:
        return None
    return table.to_struct_array().combine_chunks() if table.num_rows == count else None


def _read_piecewise(texts: pa.Array, schema: pa.Schema) -> pa.StructArray:
    """Read a batch in which some texts may not fit the schema.

    If the batch cannot be read together, it is split into 16 pieces, and each piece is read in the same way. So only the
    neighbours of texts that do not fit are read one by one, which is slow.
    """
    if len(texts) <= _MAX_TEXTS_READ_SINGLY:
        return _read_singly(texts, schema)
    parsed = _read_together(texts, schema)
    if parsed is not None:
        return parsed
    step = max(_MAX_TEXTS_READ_SINGLY, -(-len(texts) // 16))
    return pa.concat_arrays([_read_piecewise(texts.slice(start, step), schema) for start in range(0, len(texts), step)])


def _read_singly(texts: pa.Array, schema: pa.Schema) -> pa.StructArray:
    """Read each text separately. A value that does not fit is null; the other values of the text count."""
    return _to_structs([_parse_object(text) for text in texts.to_pylist()], pa.struct(list(schema)))


def _parse_object(text: str) -> dict[str, Any]:
    """The object in a text; empty if the text is not a JSON object. Fractions become Decimal, so that no digit is lost."""
    try:
        value = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _to_structs(values: list[Any], kind: pa.StructType) -> pa.StructArray:
    """Decoded objects as structs. A value that is not an object counts as an empty one."""
    rows = [value if isinstance(value, dict) else {} for value in values]
    arrays = []
    for child in kind:
        child_values = [row.get(child.name) for row in rows]
        if pa.types.is_struct(child.type):
            arrays.append(_to_structs(child_values, child.type))
        else:
            arrays.append(pa.array([_fitting_value(value, child.type) for value in child_values], child.type))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _fitting_value(value: Any, kind: pa.DataType) -> Any:
    """A decoded JSON value as a value of the Arrow type; None if it has another type or does not fit."""
    is_number = isinstance(value, int | Decimal | float) and not isinstance(value, bool)
    if pa.types.is_int64(kind):
        return value if is_number and isinstance(value, int) and -(2**63) <= value < 2**63 else None
    if pa.types.is_floating(kind):
        return float(value) if is_number and abs(value) <= sys.float_info.max else None
    if pa.types.is_decimal(kind):
        decimal_value = Decimal(value) if is_number and not isinstance(value, float) else None
        return decimal_value if decimal_value is not None and decimal_fits(decimal_value, kind.precision, kind.scale) else None
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    # Arrow cannot store half of a surrogate pair as UTF-8.
    return value if isinstance(value, str) and _HALF_CHARACTER.search(value) is None else None


def decimal_fits(value: Decimal, precision: int, scale: int) -> bool:
    """Whether DECIMAL(precision, scale) can hold exactly this value; false for NaN and infinities, whose exponent is a letter."""
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    return isinstance(exponent, int) and -exponent <= scale and len(digits) + exponent <= precision - scale
