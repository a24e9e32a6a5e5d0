"""Per-file statistics: the JSON text of `add.stats`, a checkpoint's `stats_parsed`, a Parquet footer, as columns.

In: statistics of many files. Out: FileStats, one Arrow value a file for each leaf asked for. Whatever is missing,
damaged or of another type is null, which means unknown and keeps the file. Names are physical (column mapping).
What is written for a new file is collected by stats_collector.py.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.schema import DataType, DecimalType, Path, PrimitiveType, to_arrow_type

_PIECE_BYTES = 1 << 29
_MILLISECOND = pa.scalar(1_000, pa.duration("us"))
_INTEGERS = frozenset({"long", "integer", "short", "byte"})
_FLOATS = frozenset({"float", "double"})
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})


@dataclass(frozen=True, slots=True)
class FileStats:
    """Statistics of file_count files, aligned. Arrays are typed as the leaf's rows; null is unknown.

    num_records: rows in the data file, deleted ones included. tight_bounds: never null; false means that bounds and null
    counts may speak of rows that a deletion vector hides. minimum, maximum: bounds, possibly wider than the values
    (cut strings, timestamps widened by 1 ms). A leaf that is not a key is unknown for every file.
    """

    file_count: int
    num_records: pa.Int64Array
    tight_bounds: pa.BooleanArray
    minimum: Mapping[Path, pa.Array] = field(default_factory=dict)
    maximum: Mapping[Path, pa.Array] = field(default_factory=dict)
    null_count: Mapping[Path, pa.Int64Array] = field(default_factory=dict)


def unknown_stats(file_count: int) -> FileStats:
    """Nothing is known of any file."""
    return FileStats(file_count, pa.nulls(file_count, pa.int64()), _all_true(file_count))


def concat_stats(parts: Sequence[FileStats]) -> FileStats:
    """The files of all parts in order. A leaf that a part lacks is unknown for that part's files."""

    def joined(pick: Callable[[FileStats], Mapping[Path, pa.Array]]) -> dict[Path, pa.Array]:
        types = {path: array.type for part in parts for path, array in pick(part).items()}
        return {
            path: pa.concat_arrays([pick(part).get(path, pa.nulls(part.file_count, kind)) for part in parts])
            for path, kind in types.items()
        }

    if not parts:
        return unknown_stats(0)
    return FileStats(
        sum(part.file_count for part in parts),
        pa.concat_arrays([part.num_records for part in parts]),
        pa.concat_arrays([part.tight_bounds for part in parts]),
        joined(lambda part: part.minimum),
        joined(lambda part: part.maximum),
        joined(lambda part: part.null_count),
    )


# ---------------------------------------------------------------- from JSON text


def parse_stats(json: pa.Array | pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> FileStats:
    """Statistics of many files from their JSON, in bulk; only the named leaves are looked at.

    json: string array, null or '' where a file has none. One file's damaged text makes that file unknown, no other.
    """
    count = len(json)
    if count > 1 and json.nbytes > _PIECE_BYTES:
        return concat_stats([parse_stats(json.slice(0, count // 2), leaves), parse_stats(json.slice(count // 2), leaves)])
    bounded = {path: kind for path, kind in leaves.items() if _json_type(kind) is not None}
    parsed = _read_json(json, _stats_schema(bounded, leaves)) if count else None
    if parsed is None:
        parsed = _read_each(json, bounded, leaves)
    return _assemble(parsed, bounded, leaves, count)


def _json_type(data_type: DataType) -> pa.DataType | None:
    """As what a bound of this type is read from JSON; None where there are no bounds (binary, arrays, maps, ...)."""
    match data_type:
        case DecimalType():
            return to_arrow_type(data_type)
        case PrimitiveType(name) if name in _INTEGERS:
            return pa.int64()
        case PrimitiveType(name) if name in _FLOATS:
            return pa.float64()
        case PrimitiveType("boolean"):
            return pa.bool_()
        case PrimitiveType(name) if name in _TIMESTAMPS or name in ("string", "date"):
            return pa.string()
    return None


def _stats_schema(bounded: Mapping[Path, DataType], leaves: Mapping[Path, DataType]) -> pa.Schema:
    bounds = _nested({path: _json_type(kind) for path, kind in bounded.items()})
    counts = _nested({path: pa.int64() for path in leaves})
    fields = [pa.field("numRecords", pa.int64()), pa.field("tightBounds", pa.bool_())]
    named = (("minValues", bounds), ("maxValues", bounds), ("nullCount", counts))
    return pa.schema(fields + [pa.field(name, kind) for name, kind in named if kind.num_fields])


def _nested(types: Mapping[Path, pa.DataType | None]) -> pa.StructType:
    """{('a',): t, ('b','c'): u} -> struct<a: t, b: struct<c: u>>."""
    heads: dict[str, dict[Path, pa.DataType | None]] = {}
    for path, kind in types.items():
        heads.setdefault(path[0], {})[path[1:]] = kind
    return pa.struct([pa.field(name, inner[()] if () in inner else _nested(inner)) for name, inner in heads.items()])


def _read_json(json: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.StructArray | None:
    """All texts through one JSON reader as newline-joined documents; None if any of them does not fit the schema.

    A quarter of the time of decoding each text by itself, and the reader works on both cores.
    """
    lines = _as_lines(json)
    read = _try_read(lines, len(json), schema)
    if read is None:
        # NaN and infinities stand as text, which does not fit a number: unknown. A string column's own "NaN" bound goes too.
        lines = pc.replace_substring_regex(lines, r':\s*"[+-]?(?:NaN|Inf|Infinity)"', ":null")
        read = _try_read(lines, len(json), schema)
    return read


def _as_lines(json: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = json.combine_chunks() if isinstance(json, pa.ChunkedArray) else json
    if pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    if not pa.types.is_string(flat.type):
        flat = flat.cast(pa.string())
    if flat.null_count or pc.min(pc.binary_length(flat)).as_py() == 0:
        flat = pc.if_else(pc.equal(pc.binary_length(flat), 0), "{}", flat).fill_null("{}")
    if pc.any(pc.match_substring(flat, "\n")).as_py():
        flat = pc.replace_substring(flat, "\n", " ")  # outside strings it is white space; inside it is written \n
    return flat


def _try_read(lines: pa.Array, count: int, schema: pa.Schema) -> pa.StructArray | None:
    from pyarrow import json as pyarrow_json

    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), lines), "\n")[0].as_buffer()
    longest = pc.max(pc.binary_length(lines)).as_py() or 0
    options = pyarrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    # Blocks of 1 MiB are parsed on all cores; with 4 MiB the reader was measured to use one.
    blocks = pyarrow_json.ReadOptions(block_size=max(1 << 20, longest + 2), use_threads=True)
    try:
        table = pyarrow_json.read_json(pa.BufferReader(joined), read_options=blocks, parse_options=options)
    except pa.ArrowInvalid:
        return None
    return table.to_struct_array().combine_chunks() if table.num_rows == count else None


def _read_each(json: pa.Array | pa.ChunkedArray, bounded: Mapping[Path, DataType], leaves: Mapping[Path, DataType]) -> pa.StructArray:
    """Each text by itself, for batches in which some text does not fit; what does not fit is null."""
    documents = [_document(text) for text in json.to_pylist()]
    sections: dict[str, Mapping[Path, pa.DataType | None]] = {
        "minValues": {path: _json_type(kind) for path, kind in bounded.items()},
        "maxValues": {path: _json_type(kind) for path, kind in bounded.items()},
        "nullCount": {path: pa.int64() for path in leaves},
    }
    columns: dict[str, pa.Array] = {
        "numRecords": _fitting([d.get("numRecords") for d in documents], pa.int64()),
        "tightBounds": _fitting([d.get("tightBounds") for d in documents], pa.bool_()),
    }
    for section, types in sections.items():
        kind = _nested(types)
        if kind.num_fields:
            columns[section] = _section([d.get(section) for d in documents], kind)
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _document(text: str | None) -> dict[str, Any]:
    try:
        value = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _section(values: list[Any], kind: pa.StructType) -> pa.StructArray:
    rows = [value if isinstance(value, dict) else {} for value in values]
    arrays = []
    for child in kind:
        inner = [row.get(child.name) for row in rows]
        arrays.append(_section(inner, child.type) if pa.types.is_struct(child.type) else _fitting(inner, child.type))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _fitting(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([value if _fits(value, kind) else None for value in map(_number(kind), values)], kind)


def _number(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_floating(kind):
        return lambda value: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    # A decimal went through a double here and may have lost digits: only whole numbers are exact.
    if pa.types.is_decimal(kind):
        return lambda value: Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None
    return lambda value: value


def _fits(value: Any, kind: pa.DataType) -> bool:
    if pa.types.is_int64(kind):
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if pa.types.is_decimal(kind):
        return isinstance(value, Decimal) and len(value.as_tuple().digits) + kind.scale <= kind.precision
    if pa.types.is_floating(kind):
        return isinstance(value, float)
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    return isinstance(value, str)


# ---------------------------------------------------------------- from stats_parsed


def stats_from_struct(stats_parsed: pa.StructArray | pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> FileStats:
    """Statistics from a checkpoint's `stats_parsed`. Leaves or sections that it lacks are unknown."""
    flat = stats_parsed.combine_chunks() if isinstance(stats_parsed, pa.ChunkedArray) else stats_parsed
    bounded = {path: kind for path, kind in leaves.items() if _json_type(kind) is not None}
    return _assemble(flat, bounded, leaves, len(flat))


def _assemble(parsed: pa.StructArray, bounded: Mapping[Path, DataType], leaves: Mapping[Path, DataType], count: int) -> FileStats:
    def leaf(section: str, path: Path, kind: DataType, shift: Callable[[pa.Array], pa.Array]) -> pa.Array | None:
        found = _field(parsed, (section, *path))
        typed = None if found is None else _typed(found, kind)
        return shift(typed) if typed is not None and pa.types.is_timestamp(typed.type) else typed

    minimum = {path: leaf("minValues", path, kind, lambda a: pc.subtract(a, _MILLISECOND)) for path, kind in bounded.items()}
    maximum = {path: leaf("maxValues", path, kind, lambda a: pc.add(a, _MILLISECOND)) for path, kind in bounded.items()}
    counts = {path: _count(_field(parsed, ("nullCount", *path))) for path in leaves}
    tight = _field(parsed, ("tightBounds",))
    return FileStats(
        count,
        _count(_field(parsed, ("numRecords",)), count),
        _all_true(count) if tight is None or not pa.types.is_boolean(tight.type) else tight.fill_null(True),
        {path: array for path, array in minimum.items() if array is not None},
        {path: array for path, array in maximum.items() if array is not None},
        {path: array for path, array in counts.items() if array is not None},
    )


def _field(struct: pa.Array, path: Path) -> pa.Array | None:
    for name in path:
        if not pa.types.is_struct(struct.type) or struct.type.get_field_index(name) < 0:
            return None
        struct = pc.struct_field(struct, name)
    return struct


def _count(array: pa.Array | None, rows: int | None = None) -> pa.Array:
    """A count as int64, null where it is below 0; with `rows`, all null if there is none."""
    if array is None or not pa.types.is_integer(array.type):
        return None if rows is None else pa.nulls(rows, pa.int64())
    counts = array.cast(pa.int64())
    return pc.if_else(pc.less(counts, 0), pa.scalar(None, pa.int64()), counts)


def _typed(array: pa.Array, data_type: DataType) -> pa.Array | None:
    """The bound as the leaf's type; values that do not fit are null, and None if the whole column does not convert."""
    target = to_arrow_type(data_type)
    if array.type == target:
        return array
    if pa.types.is_timestamp(target) and pa.types.is_string(array.type):
        return _timestamps(array, target)
    if pa.types.is_date(target) and pa.types.is_string(array.type):
        return _matching_cast(array, r"^\d{4}-\d\d-\d\d$", target)
    if pa.types.is_integer(target) and pa.types.is_integer(array.type):
        return _in_range(array, target)
    try:
        return array.cast(target, safe=not pa.types.is_timestamp(target))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _in_range(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Integers as a narrower type. One beyond it is no bound of such a column: unknown."""
    bits = target.bit_width
    fits = pc.and_(pc.greater_equal(array, -(2 ** (bits - 1))), pc.less_equal(array, 2 ** (bits - 1) - 1))
    return pc.if_else(fits, array, pa.scalar(None, array.type)).cast(target)


def _timestamps(texts: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Timestamp texts, cut to microseconds. One with an offset is an instant; without, it is read as UTC."""
    texts = pc.replace_substring_regex(texts, r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,6})?\d*\s*", r"\1T\2\3")
    zoned = pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)$")
    plain = _matching_cast(texts, r"^\d{4}-\d\d-\d\d(?:T[\d:.]+)?$", pa.timestamp("us"))
    instants = _cast_or_none(pc.if_else(zoned, texts, pa.scalar(None, texts.type)), pa.timestamp("us", "UTC"))
    if plain is None or instants is None:
        return None
    wall = plain.cast(pa.int64())
    return pc.coalesce(instants.cast(pa.int64()), wall).cast(target)


def _matching_cast(texts: pa.Array, pattern: str, target: pa.DataType) -> pa.Array | None:
    return _cast_or_none(pc.if_else(pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, texts.type)), target)


def _cast_or_none(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        return None


# ---------------------------------------------------------------- from a Parquet footer


def stats_from_parquet_footer(footer: Any, columns: Mapping[Path, int], leaves: Mapping[Path, DataType]) -> FileStats:
    """One "file" a row group. footer: pyarrow.parquet.FileMetaData; columns: index of each leaf's Parquet column."""
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    minimum, maximum, nulls = {}, {}, {}
    for path, kind in leaves.items():
        if path not in columns:
            continue
        chunks = [group.column(columns[path]) for group in groups]
        found = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
        nulls[path] = pa.array([s.null_count if s is not None and s.has_null_count else None for s in found], pa.int64())
        if _json_type(kind) is not None:
            minimum[path] = _footer_bounds(found, kind, "min")
            maximum[path] = _footer_bounds(found, kind, "max")
    rows = pa.array([group.num_rows for group in groups], pa.int64())
    return FileStats(len(groups), rows, _all_true(len(groups)), minimum, maximum, nulls)


def _footer_bounds(found: Iterable[Any], data_type: DataType, side: str) -> pa.Array:
    values = [getattr(s, side) if s is not None and s.has_min_max else None for s in found]
    return pa.array([_footer_bound(value, data_type, 1 if side == "max" else -1) for value in values], to_arrow_type(data_type))


def _footer_bound(value: Any, data_type: DataType, side: int) -> Any:
    """A footer's bound as a value of the table's type, None where the two do not obviously agree."""
    from datetime import date, datetime, timedelta

    match data_type:
        case PrimitiveType(name) if name in _INTEGERS:
            bits = {"long": 63, "integer": 31, "short": 15, "byte": 7}[name]
            return value if type(value) is int and -(2**bits) <= value < 2**bits else None
        case PrimitiveType(name) if name in _FLOATS:
            return float(value) if type(value) in (int, float) and value == value else None
        case PrimitiveType("boolean"):
            return value if type(value) is bool else None
        case PrimitiveType("string"):
            return value if type(value) is str else None
        case PrimitiveType("date"):
            return value if type(value) is date else None
        case PrimitiveType(name) if name in _TIMESTAMPS:
            if not isinstance(value, datetime) or not 1 < value.year < 9999:
                return None
            return value + side * timedelta(milliseconds=1)
        case DecimalType(precision, scale):
            return value if isinstance(value, Decimal) and _decimal_fits(value, precision, scale) else None
    return None


def _decimal_fits(value: Decimal, precision: int, scale: int) -> bool:
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    return isinstance(exponent, int) and -exponent <= scale and len(digits) + exponent <= precision - scale


def _all_true(count: int) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(True), count)
