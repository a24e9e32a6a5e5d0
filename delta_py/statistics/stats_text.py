"""Convert statistics that exist only as a struct (`stats_parsed`) back to the JSON text of `add.stats`, in bulk.

Values that JSON cannot represent (NaN, infinities) and unknown values are left out.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

import orjson
import pyarrow as pa
import pyarrow.compute as pc

_CONTROLS = r"[\x00-\x1f]"


def struct_to_json(parsed: pa.StructArray) -> pa.StringArray:
    """One JSON document per file; null if the struct is null or has no values."""
    text = _to_json_objects(parsed)
    return pc.if_else(pc.and_(parsed.is_valid(), pc.not_equal(text, "{}")), text, pa.scalar(None, pa.string()))


def _to_json_objects(struct: pa.StructArray) -> pa.StringArray:
    """One JSON object for each struct, with the fields that have a value; `{}` if no field has one."""
    members = [_to_json_members(child.name, values) for child, values in zip(struct.type, struct.flatten(), strict=True)]
    if not members:
        return pa.repeat(pa.scalar("{}"), len(struct))
    member_list = pc.ascii_ltrim(pc.binary_join_element_wise(*members, ""), ",")
    return pc.binary_join_element_wise("{", member_list, "}", "")


def _to_json_members(name: str, values: pa.Array) -> pa.StringArray:
    """One member of the JSON objects, `,"name":value`; an empty text where there is no value. name: of the struct's field."""
    if pa.types.is_struct(values.type):
        objects = _to_json_objects(values)
        text = pc.if_else(pc.equal(objects, "{}"), pa.scalar(None, pa.string()), objects)
    else:
        text = _to_json_values(values)
    return pc.fill_null(pc.binary_join_element_wise(f",{orjson.dumps(name).decode()}:", text, ""), "")


def _to_json_values(values: pa.Array) -> pa.StringArray:
    """Each value as JSON; null if JSON cannot represent it, or if it is null."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _to_json_values(values.dictionary_decode())
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(values), values.cast(pa.string()), pa.scalar(None, pa.string()))
    if pa.types.is_timestamp(kind):
        return _quote(_timestamp_text(values))
    if pa.types.is_date(kind):
        return _quote(values.cast(pa.string()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _quote(_escape(values.cast(pa.string())))
    return values.cast(pa.string())  # integers, decimals, booleans


def _timestamp_text(values: pa.Array) -> pa.StringArray:
    """ISO 8601 with all digits that the struct has, and with Z for instants."""
    # Without the zone, Arrow prints the time in UTC.
    utc_times = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))
    text = pc.replace_substring(utc_times.cast(pa.string()), " ", "T")
    return text if values.type.tz is None else pc.binary_join_element_wise(text, "Z", "")


def _quote(texts: pa.StringArray) -> pa.StringArray:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _escape(texts: pa.StringArray) -> pa.StringArray:
    """The texts with backslashes, quotes and control characters escaped for JSON."""
    texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, _CONTROLS)).as_py():
        for code in range(0x20):
            texts = pc.replace_substring(texts, chr(code), f"\\u{code:04x}")
    return texts
