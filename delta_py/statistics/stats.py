"""Per-file statistics as columns: from the JSON text of `add.stats`, a checkpoint's `stats_parsed`, or a Parquet footer.

In: statistics of many files. Out: FileStats, with one Arrow value per file for each requested leaf. A value that is missing,
damaged or of another type is null. Null means unknown, so the file is kept. Names are physical (column mapping).
Bounds are made a little wider where writers are known to cut or round them, never narrower.
stats_collector.py collects the statistics of a new file.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.statistics.bounds import widen
from delta_py.statistics.json_objects import decimal_fits, read_json_objects
from delta_py.statistics.parquet_statistics import chunk_statistics, null_count_of
from delta_py.statistics.stats_layout import read_plain_stats
from delta_py.types.arrow_values import NULL, TRUE, ZERO, all_true
from delta_py.types.nested_arrays import NestedColumns
from delta_py.types.schema import DataType, DecimalType, Path, PrimitiveType, to_arrow_type

RULES = 4
"""The version of the parsing rules. Increase it when the result for a file's statistics changes, because parsed statistics are
cached on disks."""

_PIECE_BYTES = 64 * 1024 * 1024  # more JSON text than this is divided into halves and parsed one after the other
_INTEGERS = frozenset({"long", "integer", "short", "byte"})
_FLOATS = frozenset({"float", "double"})
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})


@dataclass(frozen=True, slots=True)
class FileStats:
    """Statistics of file_count files, aligned. Arrays have the type of the leaf's rows; null is unknown.

    num_records: rows in the data file, including deleted rows. tight_bounds: never null; false means that bounds and null counts
    may include rows that a deletion vector hides. minimum, maximum: bounds, possibly wider than the values (cut strings,
    timestamps widened by 1 ms). A leaf that is not a key is unknown for every file.
    """

    file_count: int
    num_records: pa.Int64Array
    tight_bounds: pa.BooleanArray
    minimum: Mapping[Path, pa.Array] = field(default_factory=dict)
    maximum: Mapping[Path, pa.Array] = field(default_factory=dict)
    null_count: Mapping[Path, pa.Int64Array] = field(default_factory=dict)

    def filter(self, keep: pa.BooleanArray) -> FileStats:
        """The statistics of the files for which keep is true. keep must not have nulls."""
        return FileStats(
            file_count=keep.true_count,
            num_records=self.num_records.filter(keep),
            tight_bounds=self.tight_bounds.filter(keep),
            minimum={path: array.filter(keep) for path, array in self.minimum.items()},
            maximum={path: array.filter(keep) for path, array in self.maximum.items()},
            null_count={path: array.filter(keep) for path, array in self.null_count.items()},
        )


def unknown_stats(file_count: int) -> FileStats:
    """The statistics of files about which nothing is known."""
    return FileStats(file_count, pa.nulls(file_count, pa.int64()), all_true(file_count))


def concat_stats(parts: Sequence[FileStats]) -> FileStats:
    """The files of all parts in order. A leaf that a part lacks is unknown for that part's files."""

    def concat_section(section_of: Callable[[FileStats], Mapping[Path, pa.Array]]) -> dict[Path, pa.Array]:
        """One section (such as the minima) of all parts. section_of: gets it from one part."""
        types = {path: array.type for part in parts for path, array in section_of(part).items()}
        return {
            path: pa.concat_arrays([section_of(part).get(path, pa.nulls(part.file_count, kind)) for part in parts])
            for path, kind in types.items()
        }

    if not parts:
        return unknown_stats(0)
    return FileStats(
        file_count=sum(part.file_count for part in parts),
        num_records=pa.concat_arrays([part.num_records for part in parts]),
        tight_bounds=pa.concat_arrays([part.tight_bounds for part in parts]),
        minimum=concat_section(lambda part: part.minimum),
        maximum=concat_section(lambda part: part.maximum),
        null_count=concat_section(lambda part: part.null_count),
    )


# ---------------------------------------------------------------- from JSON text


def parse_stats(json: pa.Array | pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> FileStats:
    """Parse the JSON statistics of many files in bulk. Only the requested leaves are read.

    json: string array, null or '' if a file has no statistics. A damaged text makes only its own file unknown.
    """
    count = len(json)
    if count > 1 and json.nbytes > _PIECE_BYTES:
        return concat_stats([parse_stats(json.slice(0, count // 2), leaves), parse_stats(json.slice(count // 2), leaves)])
    schema = _stats_schema(leaves)
    parsed = read_plain_stats(json, schema)
    return _to_file_stats(read_json_objects(json, schema) if parsed is None else parsed, leaves, count)


def _json_type(data_type: DataType) -> pa.DataType | None:
    """The Arrow type in which a bound of this type is read from JSON; None if the type has no bounds (binary, arrays, ...)."""
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


def has_bounds(data_type: DataType) -> bool:
    """Whether statistics can have bounds of this type."""
    return _json_type(data_type) is not None


def _stats_schema(leaves: Mapping[Path, DataType]) -> pa.Schema:
    """The members of `add.stats` that are read for these leaves. Bounds have the types of _json_type."""
    bounds = _nested_struct({path: kind for path, leaf in leaves.items() if (kind := _json_type(leaf)) is not None})
    counts = _nested_struct({path: pa.int64() for path in leaves})
    fields = [pa.field("numRecords", pa.int64()), pa.field("tightBounds", pa.bool_())]
    sections = (("minValues", bounds), ("maxValues", bounds), ("nullCount", counts))
    return pa.schema(fields + [pa.field(name, kind) for name, kind in sections if kind.num_fields])


def _nested_struct(types: Mapping[Path, pa.DataType]) -> pa.StructType:
    """{('a',): t, ('b','c'): u} -> struct<a: t, b: struct<c: u>>."""
    types_by_first_name: dict[str, dict[Path, pa.DataType]] = {}
    for path, kind in types.items():
        types_by_first_name.setdefault(path[0], {})[path[1:]] = kind
    fields = []
    for name, inner_types in types_by_first_name.items():  # a leaf has only the empty path below its name
        fields.append(pa.field(name, inner_types[()] if () in inner_types else _nested_struct(inner_types)))
    return pa.struct(fields)


# ---------------------------------------------------------------- stats_parsed


def stats_struct_type(leaves: Mapping[Path, DataType], *, tight_bounds: bool) -> pa.StructType:
    """The type of `stats_parsed`: bounds have the types of the leaves' rows. tight_bounds: whether it has the field tightBounds,
    as in tables with deletion vectors."""
    bounds = _nested_struct({path: to_arrow_type(kind) for path, kind in leaves.items() if _json_type(kind) is not None})
    fields = [pa.field("numRecords", pa.int64())] + ([pa.field("tightBounds", pa.bool_())] if tight_bounds else [])
    counts = _nested_struct({path: pa.int64() for path in leaves})
    sections = (("minValues", bounds), ("maxValues", bounds), ("nullCount", counts))
    return pa.struct(fields + [pa.field(name, kind) for name, kind in sections if kind.num_fields])


def json_to_struct(json: pa.Array, leaves: Mapping[Path, DataType], *, tight_bounds: bool) -> pa.StructArray:
    """The statistics in JSON texts as structs of stats_struct_type, with the bounds that the texts have: they are not widened,
    because each reader of the structs widens them. Null if a file has no statistics."""
    count = len(json)
    if count > 1 and json.nbytes > _PIECE_BYTES:
        halves = (json.slice(0, count // 2), json.slice(count // 2))
        return pa.concat_arrays([json_to_struct(half, leaves, tight_bounds=tight_bounds) for half in halves])
    return struct_to_struct(
        read_json_objects(json, _stats_schema(leaves)), leaves, tight_bounds=tight_bounds, missing=json.is_null()
    )


def struct_to_struct(
    parsed: pa.StructArray, leaves: Mapping[Path, DataType], *, tight_bounds: bool, missing: pa.BooleanArray | None = None
) -> pa.StructArray:
    """Convert structs of statistics whose bounds have other types, or that have other leaves, to stats_struct_type. Leaves that
    `parsed` lacks become null. missing: true for files without statistics, for which the result is null; None if every file has
    some."""
    fields = _fields_of(parsed)

    def build(kind: pa.StructType, path: Path) -> pa.Array:
        """The struct at a path of the result. path: () for the whole struct; otherwise a section, such as minValues, and then the
        names below it. kind: the type of this struct."""
        children = []
        for child in kind:
            child_path = (*path, child.name)
            if pa.types.is_struct(child.type):
                children.append(build(child.type, child_path))
                continue
            array, leaf = fields.find(child_path), leaves.get(child_path[1:])
            if array is not None:
                is_bound = leaf is not None and child_path[0] in ("minValues", "maxValues")
                array = _cast_to_leaf_type(array, leaf) if is_bound and leaf is not None else _cast_member(array, child.type)
            children.append(pa.nulls(len(parsed), child.type) if array is None else array)
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=missing if not path else None)

    return build(stats_struct_type(leaves, tight_bounds=tight_bounds), ())


def _cast_member(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """A column of numRecords, tightBounds or null counts in its type; None if the column is of another family of types."""
    if array.type == kind:
        return array
    return _to_counts(array) if pa.types.is_int64(kind) else None


def stats_from_struct(stats_parsed: pa.StructArray | pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> FileStats:
    """Statistics from a checkpoint's `stats_parsed`. Missing leaves or sections are unknown."""
    parsed = stats_parsed.combine_chunks() if isinstance(stats_parsed, pa.ChunkedArray) else stats_parsed
    return _to_file_stats(parsed, leaves, len(parsed))


def _to_file_stats(parsed: pa.StructArray, leaves: Mapping[Path, DataType], count: int) -> FileStats:
    """FileStats from structs with the members of `add.stats`. A member that is missing, or of another type, is unknown."""
    fields = _fields_of(parsed)

    def bounds(section: str, side: int) -> dict[Path, pa.Array]:
        arrays = {path: _to_bounds(fields.find((section, *path)), kind, side) for path, kind in leaves.items()}
        return {path: array for path, array in arrays.items() if array is not None}

    counts = {path: _to_counts(fields.find(("nullCount", *path))) for path in leaves}
    tight_bounds = fields.find(("tightBounds",))
    num_records = _to_counts(fields.find(("numRecords",)))
    return FileStats(
        file_count=count,
        num_records=pa.nulls(count, pa.int64()) if num_records is None else num_records,
        # Statistics without tightBounds are tight.
        tight_bounds=(
            all_true(count)
            if tight_bounds is None or not pa.types.is_boolean(tight_bounds.type)
            else tight_bounds.fill_null(TRUE)
        ),
        minimum=bounds("minValues", -1),
        maximum=bounds("maxValues", 1),
        null_count={path: array for path, array in counts.items() if array is not None},
    )


def _fields_of(parsed: pa.StructArray) -> NestedColumns:
    """The fields of statistics, at any depth, by their paths. A path begins with the section, such as minValues."""

    def section(name: str) -> pa.Array | None:
        return pc.struct_field(parsed, [name]) if parsed.type.get_field_index(name) >= 0 else None

    return NestedColumns(section)


def _to_counts(array: pa.Array | None) -> pa.Array | None:
    """A column of counts as int64; a count below 0 is damaged and becomes null. None if there is no column of integers."""
    if array is None or not pa.types.is_integer(array.type):
        return None
    counts = array.cast(pa.int64())
    return pc.if_else(pc.less(counts, ZERO), NULL, counts)


# ---------------------------------------------------------------- conversion of bounds to the table's type


def _to_bounds(array: pa.Array | None, data_type: DataType, side: int) -> pa.Array | None:
    """A column of bounds in the leaf's type, widened if necessary. side: -1 for minimum, 1 for maximum.

    A value that does not fit is null. None if there is no column, or if its values may have another order than the leaf's, such
    as numbers as text.
    """
    if array is None or _json_type(data_type) is None:
        return None
    bounds = _cast_to_leaf_type(array, data_type)
    return None if bounds is None else widen(bounds, data_type, side)


def _cast_to_leaf_type(array: pa.Array, data_type: DataType) -> pa.Array | None:
    """Cast the values to the leaf's type with casts that keep their order. None for a column of another family of types."""
    target, source = to_arrow_type(data_type), array.type
    if pa.types.is_dictionary(source):
        return _cast_to_leaf_type(array.dictionary_decode(), data_type)
    if source == target:
        return array
    match data_type:
        case PrimitiveType(name) if name in _INTEGERS:
            return _cast_or_null(array, target) if pa.types.is_integer(source) else None
        case PrimitiveType("float"):
            # The shortest text of a float parses as another double, so rounding to the nearest float is right.
            return array.cast(target, safe=False) if pa.types.is_floating(source) else None
        case PrimitiveType("double"):
            return _cast_or_null(array, target) if pa.types.is_floating(source) or pa.types.is_integer(source) else None
        case DecimalType():
            return _cast_or_null(array, target) if pa.types.is_decimal(source) or pa.types.is_integer(source) else None
        case PrimitiveType("string"):
            return array.cast(target) if pa.types.is_large_string(source) or pa.types.is_string_view(source) else None
        case PrimitiveType("date"):
            return _to_dates(array, target)
        case PrimitiveType(name) if name in _TIMESTAMPS:
            return _to_timestamps(array, target)
    return None


def _to_dates(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Texts or dates as dates; None for a column of another type. A text in another form than yyyy-MM-dd is null."""
    if pa.types.is_string(array.type):
        return _cast_matching(array, r"^\d{4}-\d\d-\d\d$", target)
    return _cast_or_null(array, target) if pa.types.is_date(array.type) else None


def _to_timestamps(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Instants or wall clocks as microseconds. A text with an offset is an instant; a text without one is read as UTC."""
    if pa.types.is_date(array.type):  # written before the column was widened from date
        return array.cast(pa.timestamp("us"), safe=False).cast(target)
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.int64()).cast(target)
    if not pa.types.is_string(array.type):
        return None
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        return _parse_mixed_timestamps(array).cast(target)


def _parse_mixed_timestamps(texts: pa.Array) -> pa.Array:
    """Timestamps in mixed formats as microseconds. Further digits are cut. Other texts become null."""
    # One form for all: a `T` before the time, at most six digits of a second, and no space before the offset.
    texts = pc.replace_substring_regex(texts, r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,6})?\d*\s*", r"\1T\2\3")
    instants = _cast_matching(texts, r"^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)$", pa.timestamp("us", "UTC"))
    wall_clocks = _cast_matching(texts, r"^\d{4}-\d\d-\d\d(?:T[\d:.]+)?$", pa.timestamp("us"))
    return pc.coalesce(instants.cast(pa.int64()), wall_clocks.cast(pa.int64()))


def _cast_matching(texts: pa.Array, pattern: str, target: pa.DataType) -> pa.Array:
    """Cast texts. If Arrow cannot cast all of them, texts that do not match the pattern and texts that do not fit become null."""
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:
        matching_texts = pc.if_else(pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, texts.type))
        return _cast_or_null(matching_texts, target)


def _cast_or_null(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values. A value that does not fit becomes null. The array is halved again and again to find these values, because
    Arrow's cast fails as a whole."""
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        if len(array) == 1:
            return pa.nulls(1, target)
        middle = len(array) // 2
        return pa.concat_arrays([_cast_or_null(array.slice(0, middle), target), _cast_or_null(array.slice(middle), target)])


# ---------------------------------------------------------------- from a Parquet footer

# Before these times, older writers count days in another calendar than the table, so no earlier bound is trusted.
_FIRST_SAFE_DAY = -141_427  # 1582-10-15
_FIRST_SAFE_MICROS = -2_208_988_800_000_000  # 1900-01-01T00:00Z
_MICROS_PER_DAY = 86_400_000_000
# Unit -> factor and divisor that convert a number of this unit to microseconds.
_TO_MICROS = {"milliseconds": (1_000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1_000)}


def without_old_times(array: pa.Array) -> pa.Array:
    """Replace times by null (unknown) if a writer with the old calendar may have numbered their days differently. array: a column
    of statistics, which may be a struct; columns without times do not change."""
    kind = array.type
    if pa.types.is_struct(kind):
        children = [without_old_times(array.field(index)) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        times = array.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        first_safe_micros = _FIRST_SAFE_MICROS if pa.types.is_timestamp(kind) else _FIRST_SAFE_DAY * _MICROS_PER_DAY
        return pc.if_else(pc.less(times, first_safe_micros), pa.scalar(None, kind), array)
    return array


def stats_from_parquet_footer(footer: Any, columns: Mapping[Path, int], leaves: Mapping[Path, DataType]) -> FileStats:
    """Statistics with one "file" per row group. footer: pyarrow.parquet.FileMetaData. columns: each leaf's Parquet column index.

    Raises pyarrow.ArrowInvalid for a footer that contradicts itself.
    """
    groups = range(footer.num_row_groups)
    minimum, maximum, nulls = {}, {}, {}
    for path, kind in leaves.items():
        if path not in columns:
            continue
        statistics = [chunk_statistics(footer, group, columns[path]) for group in groups]
        nulls[path] = pa.array([null_count_of(s) for s in statistics], pa.int64())
        if _json_type(kind) is not None:
            minimum[path] = _footer_bounds(statistics, kind, "min")
            maximum[path] = _footer_bounds(statistics, kind, "max")
    rows = pa.array([footer.row_group(group).num_rows for group in groups], pa.int64())
    return FileStats(
        file_count=len(groups),
        num_records=rows,
        tight_bounds=all_true(len(groups)),
        minimum=minimum,
        maximum=maximum,
        null_count=nulls,
    )


def _footer_bounds(statistics: Sequence[Any], data_type: DataType, side: str) -> pa.Array:
    """The bound of each row group in the leaf's type; null if it is unknown. statistics: of the leaf's chunk in each row group;
    None if it has none. side: "min" or "max"."""
    values = [_footer_bound(chunk, data_type, side) if chunk is not None and chunk.has_min_max else None for chunk in statistics]
    target = to_arrow_type(data_type)
    if pa.types.is_date(target):
        return pa.array(values, pa.int32()).cast(target)
    if pa.types.is_timestamp(target):
        return pa.array(values, pa.int64()).cast(target)
    return pa.array(values, target)


def _footer_bound(statistics: Any, data_type: DataType, side: str) -> Any:
    """A footer's bound as a value of the table's type (dates in days, timestamps in microseconds). None if the two types do not
    clearly agree. Raw values are used if there are any, because the other values need pandas for nanoseconds."""
    raw = getattr(statistics, f"{side}_raw")
    match data_type:
        case PrimitiveType(name) if name in _INTEGERS:
            bits = {"long": 63, "integer": 31, "short": 15, "byte": 7}[name]  # without the sign
            return raw if _is_plain_integer(statistics) and -(2**bits) <= raw < 2**bits else None
        case PrimitiveType(name) if name in _FLOATS:
            # Integers are bounds from before the column was widened. Up to 2^53, a double holds them exactly.
            is_exact = type(raw) is float or (_is_plain_integer(statistics) and abs(raw) <= 2**53)
            is_nan = raw != raw
            return float(raw) if is_exact and not is_nan else None
        case PrimitiveType("boolean"):
            return raw if type(raw) is bool else None
        case PrimitiveType("string"):
            return _decode_text(raw) if statistics.logical_type.type == "STRING" else None
        case PrimitiveType("date"):
            return raw if statistics.logical_type.type == "DATE" and raw >= _FIRST_SAFE_DAY else None
        case PrimitiveType(name) if name in _TIMESTAMPS:
            return _footer_micros(statistics, raw, side)
        case DecimalType(precision, scale):
            value = getattr(statistics, side) if statistics.logical_type.type == "DECIMAL" else None
            return value if isinstance(value, Decimal) and decimal_fits(value, precision, scale) else None
    return None


def _decode_text(raw: bytes) -> str | None:
    """The text; None if the bytes are not valid UTF-8, which texts of Spark may contain."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _is_plain_integer(statistics: Any) -> bool:
    """Whether the values are signed integers, and not unsigned integers, decimals or times that are stored as integers."""
    if statistics.physical_type not in ("INT32", "INT64"):
        return False
    logical = json.loads(statistics.logical_type.to_json())
    return bool(logical["Type"] == "None" or (logical["Type"] == "Int" and logical["isSigned"]))


def _footer_micros(statistics: Any, raw: Any, side: str) -> int | None:
    """The footer's number in microseconds: a minimum is rounded down, a maximum up. None if it is no timestamp, or may be in the
    old calendar. raw: the stored number. side: "min" or "max"."""
    if statistics.logical_type.type != "TIMESTAMP":
        return None
    unit = json.loads(statistics.logical_type.to_json())["timeUnit"]
    if unit not in _TO_MICROS:
        return None
    factor, divisor = _TO_MICROS[unit]
    micros = raw * factor // divisor if side == "min" else -(-raw * factor // divisor)
    return micros if _FIRST_SAFE_MICROS <= micros < 2**63 else None
