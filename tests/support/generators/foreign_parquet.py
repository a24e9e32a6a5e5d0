"""Parquet files as other writers make them: one column `v` of a Delta type, stored in one of the ways that Parquet has for it.

    for number, file in foreign_files(root, "timestamp", seed, 30): ...      # file.path, file.says: how it was made, for people

A file has the columns `f`, its number, `id`, the number of the row in it, and `v`. The seed determines everything random. Some
files do not fit into a table: a reader refuses them.
"""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.generators import parquet_footers as footers
from tests.support.generators.parquet_footers import BOOL, BYTE, I32, LIST, STRUCT, Struct, binary

# Of ConvertedType in parquet.thrift.
_UTF8, _MAP_KEY_VALUE, _ENUM, _DECIMAL, _DATE, _MILLIS, _MICROS, _JSON, _BSON = 0, 2, 4, 5, 6, 9, 10, 19, 20
_UNSIGNED, _SIGNED = {8: 11, 16: 12, 32: 13, 64: 14}, {8: 15, 16: 16, 32: 17, 64: 18}
_EPOCH = dt.datetime(1970, 1, 1)
_JULIAN_DAY_OF_EPOCH = 2_440_588
_DIGITS = Context(prec=80)
_ZONE = "org.apache.spark.timeZone"
# pyarrow's order of bytes differs from that of decimals.
_OTHER_ORDER = {"write_statistics": False, "write_page_index": False}


@dataclass
class Form:
    """How a column's values are stored. annotate: sets annotations of the leaf's SchemaElement; None: those of pyarrow. options:
    of the writer."""

    name: str
    values: pa.Array
    annotate: Callable[[Struct], None] | None = None
    edit: Callable[[Struct], None] | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ForeignFile:
    path: Path
    says: str


Forms = Callable[[random.Random, list[Any]], list[Form]]


# ---------------------------------------------------------------- annotations


def _said(converted: int | None = None, logical: Struct | None = None, **numbers: int) -> Callable[[Struct], None]:
    """numbers: scale, precision."""

    def annotate(element: Struct) -> None:
        for place in (footers.CONVERTED, footers.LOGICAL, footers.SCALE, footers.PRECISION):
            element.pop(place, None)
        if converted is not None:
            element[footers.CONVERTED] = (I32, converted)
        if logical is not None:
            element[footers.LOGICAL] = (STRUCT, logical)
        for name, number in numbers.items():
            element[{"scale": footers.SCALE, "precision": footers.PRECISION}[name]] = (I32, number)

    return annotate


def _logical(number: int, fields: Struct | None = None) -> Struct:
    return {number: (STRUCT, fields or {})}


def _integer(bits: int, is_signed: bool) -> Struct:
    return _logical(10, {1: (BYTE, bits), 2: (BOOL, is_signed)})


def _time(unit: int, in_utc: bool) -> Struct:
    """unit: 1 milliseconds, 2 microseconds, 3 nanoseconds."""
    return _logical(8, {1: (BOOL, in_utc), 2: (STRUCT, {unit: (STRUCT, {})})})


def _decimal_said(precision: int, scale: int, which: str) -> Callable[[Struct], None]:
    logical = _logical(5, {1: (I32, scale), 2: (I32, precision)}) if which != "converted" else None
    return _said(None if which == "logical" else _DECIMAL, logical, scale=scale, precision=precision)


# ---------------------------------------------------------------- forms of each type


def _integers(bits: int) -> Forms:
    def forms(rng: random.Random, values: list[Any]) -> list[Form]:
        signed = pa.array(values, pa.int64() if bits == 64 else pa.int32())
        unsigned = pa.array([None if v is None else v % 2**bits for v in values], pa.uint64() if bits == 64 else pa.uint32())
        arrow_types = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
        form_list = [
            Form("its own", pa.array(values, arrow_types)),
            Form("no annotation", signed, _said()),
            Form("converted alone", signed, _said(_SIGNED[bits])),
            Form("logical alone", signed, _said(None, _integer(bits, True))),
            Form("says unsigned", signed, _said(_UNSIGNED[bits], _integer(bits, False))),
            Form("unsigned by the converted type alone", signed, _said(_UNSIGNED[bits])),
            Form("unsigned", unsigned),
            Form("logical and converted differ", signed, _said(_UNSIGNED[bits], _integer(bits, True))),
            Form("delta", signed, options={"use_dictionary": False, "column_encoding": {"v": "DELTA_BINARY_PACKED"}}),
            Form("byte stream split", signed, options={"use_dictionary": False, "column_encoding": {"v": "BYTE_STREAM_SPLIT"}}),
            Form("of dates", signed, _said(_DATE, _logical(6))) if bits == 32 else Form("time of day", signed, _said(8)),
            Form("decimal", signed, _decimal_said(9 if bits < 64 else 18, 0, "both")),
        ]
        if bits < 64:
            form_list.append(Form("long", pa.array(values, pa.int64())))
        if bits > 8:
            form_list.append(Form("narrow", pa.array([None if v is None else v % 100 for v in values], pa.int8())))
        return form_list

    return forms


def _floats(double: bool) -> Forms:
    def forms(rng: random.Random, values: list[Any]) -> list[Form]:
        plain_array = pa.array(values, pa.float64() if double else pa.float32())
        other = pa.array(values, pa.float32())
        return [
            Form("its own", plain_array),
            Form(
                "byte stream split", plain_array, options={"use_dictionary": False, "column_encoding": {"v": "BYTE_STREAM_SPLIT"}}
            ),
            Form("without dictionary", plain_array, options={"use_dictionary": False}),
            Form("float", other),
            Form("int", pa.array([None if v is None else 7 for v in values], pa.int32())),
        ]

    return forms


def _texts(rng: random.Random, values: list[Any]) -> list[Form]:
    text, raw = pa.array(values, pa.string()), pa.array([None if v is None else v.encode() for v in values], pa.binary())
    broken = pa.array([None if v is None else v.encode() + b"\xff" for v in values], pa.binary())
    fixed = pa.array([None if v is None else v.encode().ljust(4, b" ")[:4] for v in values], pa.binary(4))
    utf8 = _said(_UTF8, _logical(1))
    return [
        Form("its own", text),
        Form("no annotation", raw),
        Form("converted alone", raw, _said(_UTF8)),
        Form("logical alone", raw, _said(None, _logical(1))),
        Form("enum", raw, _said(_ENUM, _logical(4))),
        Form("json", raw, _said(_JSON, _logical(12))),
        Form("bson", raw, _said(_BSON, _logical(13))),
        Form("no UTF-8", broken, utf8),
        Form("fixed", fixed, _said()),
        Form("fixed text", fixed, utf8),
        Form("large", text.cast(pa.large_string())),
        Form("delta lengths", text, options={"use_dictionary": False, "column_encoding": {"v": "DELTA_LENGTH_BYTE_ARRAY"}}),
        Form("delta", text, options={"use_dictionary": False, "column_encoding": {"v": "DELTA_BYTE_ARRAY"}}),
        Form("plain", text, options={"use_dictionary": False}),
        Form("small dictionary", text, options={"dictionary_pagesize_limit": 20}),
    ]


def _binaries(rng: random.Random, values: list[Any]) -> list[Form]:
    raw = pa.array(values, pa.binary())
    long = pa.array([None if v is None else v.ljust(16, b"\0")[:16] for v in values], pa.binary(16))
    return [
        Form("its own", raw),
        Form("bson", raw, _said(_BSON, _logical(13))),
        Form("json", raw, _said(_JSON, _logical(12))),
        Form("text", raw, _said(_UTF8, _logical(1))),
        Form("fixed", pa.array([None if v is None else v.ljust(5, b"\0")[:5] for v in values], pa.binary(5))),
        Form("uuid", long, _said(None, _logical(14))),
        Form("delta", raw, options={"use_dictionary": False, "column_encoding": {"v": "DELTA_BYTE_ARRAY"}}),
    ]


def _booleans(rng: random.Random, values: list[Any]) -> list[Form]:
    plain_array = pa.array(values, pa.bool_())
    return [
        Form("its own", plain_array),
        Form("rle", plain_array, options={"use_dictionary": False, "column_encoding": {"v": "RLE"}}),
        Form("int", pa.array([None if v is None else int(v) for v in values], pa.int32())),
    ]


def _dates(rng: random.Random, values: list[Any]) -> list[Form]:
    days = pa.array(values, pa.date32())
    numbers = days.view(pa.int32())
    return [
        Form("its own", days),
        Form("converted alone", numbers, _said(_DATE)),
        Form("logical alone", numbers, _said(None, _logical(6))),
        Form("no annotation", numbers, _said()),
        Form("legacy", days, edit=_says({"org.apache.spark.version": "3.2.1", "org.apache.spark.legacyDateTime": ""})),
        Form("legacy int96", days, edit=_says({"org.apache.spark.version": "3.2.1", "org.apache.spark.legacyINT96": ""})),
        Form("old Spark", days, edit=_says({"org.apache.spark.version": "2.4.8"})),
        Form("Spark 3.0", days, edit=_says({"org.apache.spark.version": "3.0.1"})),
        Form("new Spark", days, edit=_says({"org.apache.spark.version": "3.5.1"})),
        Form("Spark 10", days, edit=_says({"org.apache.spark.version": "10.0.0"})),
        Form("a mark without a version", days, edit=_says({"org.apache.spark.legacyDateTime": ""})),
        Form("time", days.cast(pa.timestamp("us"))),
        Form("delta", numbers, _said(_DATE), options={"use_dictionary": False, "column_encoding": {"v": "DELTA_BINARY_PACKED"}}),
    ]


def _times(in_utc: bool) -> Forms:
    def forms(rng: random.Random, values: list[Any]) -> list[Form]:
        micros = pa.array([None if v is None else (v - _EPOCH) // dt.timedelta(microseconds=1) for v in values], pa.int64())
        plain_array = micros.view(pa.timestamp("us", "UTC" if in_utc else None))
        short = [None if m is None else m // 1000 for m in micros.to_pylist()]
        nanos = [None if m is None else (m % 10**15) * 1000 + rng.randrange(1000) for m in micros.to_pylist()]
        return [
            Form("its own", plain_array),
            Form("converted alone", micros, _said(_MICROS)),
            Form("logical alone", micros, _said(None, _time(2, in_utc))),
            Form("no annotation", micros, _said()),
            Form("of the other zone", micros, _said(None, _time(2, not in_utc))),
            Form("logical and converted differ", micros, _said(_MILLIS, _time(2, in_utc))),
            Form("milliseconds", pa.array(short, pa.int64()), _said(_MILLIS, _time(1, in_utc))),
            Form("milliseconds, converted alone", pa.array(short, pa.int64()), _said(_MILLIS)),
            Form("nanoseconds", pa.array(nanos, pa.int64()), _said(None, _time(3, in_utc))),
            Form("int96", _int96(micros.to_pylist(), rng, is_odd=False), edit=_as_int96),
            Form("int96 with odd days", _int96(micros.to_pylist(), rng, is_odd=True), edit=_as_int96),
            Form("legacy", plain_array, edit=_says({"org.apache.spark.version": "3.2.1", "org.apache.spark.legacyDateTime": ""})),
            Form("old Spark", plain_array, edit=_says({"org.apache.spark.version": "2.4.8", _ZONE: "Europe/Berlin"})),
            Form("new Spark", plain_array, edit=_says({"org.apache.spark.version": "3.5.1", _ZONE: "Asia/Tokyo"})),
            Form("date", plain_array.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)),
        ]

    return forms


def _int96(micros: Sequence[int | None], rng: random.Random, *, is_odd: bool) -> pa.Array:
    def bits(value: int) -> bytes:
        day, rest = divmod(value, 86_400_000_000)
        if is_odd and rng.random() < 0.5:  # by the day before, with more nanoseconds than a day has
            return struct.pack("<qI", (rest + 86_400_000_000) * 1000 + 500, day - 1 + _JULIAN_DAY_OF_EPOCH)
        return struct.pack("<qI", rest * 1000 + rng.choice([0, 999]), day + _JULIAN_DAY_OF_EPOCH)

    return pa.array([None if value is None else bits(value) for value in micros], pa.binary(12))


def _as_int96(footer: Struct) -> None:
    for element in _leaves(footer):
        element[footers.TYPE] = (I32, 3)
        del element[footers.TYPE_LENGTH]
    for chunk in _chunks(footer):
        chunk[footers.CHUNK_TYPE] = (I32, 3)
        chunk.pop(footers.CHUNK_STATISTICS, None)


def _decimals(precision: int, scale: int) -> Forms:
    def forms(rng: random.Random, values: list[Any]) -> list[Form]:
        plain_array = pa.array(values, pa.decimal128(precision, scale))
        units = [None if v is None else int(_DIGITS.scaleb(v, scale)) for v in values]
        fixed = [length for length in range(1, 17) if precision <= _digits(length)]

        def said() -> Callable[[Struct], None]:
            return _decimal_said(precision, scale, rng.choice(["both", "logical", "converted"]))

        form_list = [
            Form("its own", plain_array),
            Form("as integers", plain_array, options={"store_decimal_as_integer": True}),
            Form("bytes", pa.array([_unscaled(u, None) for u in units], pa.binary()), said(), options=_OTHER_ORDER),
        ]
        for length in {*rng.sample(fixed, min(3, len(fixed))), fixed[0], fixed[-1]}:
            array = pa.array([_unscaled(u, length) for u in units], pa.binary(length))
            form_list.append(Form(f"fixed {length}", array, said(), options=_OTHER_ORDER))
        if precision <= 18:
            form_list.append(Form("long", pa.array(units, pa.int64()), said()))
            form_list.append(Form("long of no annotation", pa.array(units, pa.int64())))
        if precision <= 9:
            form_list.append(Form("int", pa.array(units, pa.int32()), said()))
        form_list.append(Form("wider", pa.array(values, pa.decimal128(min(38, precision + 2), scale))))
        rounded = [None if u is None else _DIGITS.scaleb(Decimal(u // 100), 1 - scale) for u in units]
        form_list.append(Form("another scale", pa.array(rounded, pa.decimal128(precision, scale - 1))))
        return form_list

    return forms


def _digits(length: int) -> int:
    return len(str(2 ** (8 * length - 1))) - 1


def _unscaled(units: int | None, length: int | None) -> bytes | None:
    if units is None:
        return None
    return units.to_bytes(length or max(1, (units.bit_length() + 8) // 8), "big", signed=True)


def _lists(rng: random.Random, values: list[Any]) -> list[Form]:
    plain_array = pa.array(values, pa.list_(pa.int32()))
    required = pa.list_(pa.field("element", pa.int32(), nullable=False))
    full = pa.array([None if v is None else [e or 0 for e in v] for v in values], required)
    return [
        Form("its own", plain_array),
        Form("named item", plain_array, options={"use_compliant_nested_type": False}),
        Form("bag and array", plain_array, edit=_renamed({"list": "bag", "element": "array"})),
        Form("bag and array_element", plain_array, edit=_renamed({"list": "bag", "element": "array_element"})),
        Form("named array", plain_array, edit=_renamed({"list": "array"})),
        Form("named v_tuple", plain_array, edit=_renamed({"list": "v_tuple"})),
        Form("two levels", full, edit=_two_levels("array")),
        Form("two levels, element", full, edit=_two_levels("element")),
        Form("two levels, v_tuple", full, edit=_two_levels("v_tuple")),
        Form("without annotation", plain_array, edit=_group_said()),
        Form("by the converted type alone", plain_array, edit=_group_said(3)),
        Form("by the logical type alone", plain_array, edit=_group_said(None, _logical(3))),
        Form("required elements", full),
        Form("longs", pa.array(values, pa.list_(pa.int64()))),
        Form("large", plain_array.cast(pa.large_list(pa.int32()))),
    ]


def _maps(rng: random.Random, values: list[Any]) -> list[Form]:
    plain_array = pa.array(values, pa.map_(pa.string(), pa.int32()))
    return [
        Form("its own", plain_array),
        Form("named map", plain_array, edit=_renamed({"key_value": "map"})),
        Form("named entries", plain_array, edit=_renamed({"key_value": "entries"})),
        Form("other keys", plain_array, edit=_renamed({"key": "k", "value": "val"})),
        Form("marked inside", plain_array, edit=_group_said(_MAP_KEY_VALUE)),
        Form("without annotation", plain_array, edit=_group_said()),
        Form("by the converted type alone", plain_array, edit=_group_said(1)),
        Form("longs", pa.array(values, pa.map_(pa.string(), pa.int64()))),
    ]


def _structs(rng: random.Random, values: list[Any]) -> list[Form]:
    both = pa.array(values, pa.struct([("x", pa.int32()), ("y", pa.string())]))
    required = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.string(), nullable=False)])
    return [
        Form("its own", both),
        Form("turned", pa.array(values, pa.struct([("y", pa.string()), ("x", pa.int32())]))),
        Form("more", pa.array(values, pa.struct([("z", pa.int64()), ("x", pa.int32()), ("y", pa.string())]))),
        Form("less", pa.array(values, pa.struct([("y", pa.string())]))),
        Form("neither", pa.array(values, pa.struct([("z", pa.string())]))),
        Form("other case", both, edit=_renamed({"x": "X"})),
        Form("twice but for case", both, edit=_renamed({"y": "X"})),
        Form("required inside", pa.array([v and {"x": v["x"] or 0, "y": v["y"] or ""} for v in values], required)),
        Form("longs", pa.array(values, pa.struct([("x", pa.int64()), ("y", pa.string())]))),
    ]


def _deep(rng: random.Random, values: list[Any]) -> list[Form]:
    kind = pa.list_(pa.struct([("u", pa.string()), ("t", pa.list_(pa.decimal128(9, 2)))]))
    plain_array = pa.array(values, kind)
    return [
        Form("its own", plain_array),
        Form("integers inside", plain_array, options={"store_decimal_as_integer": True}),
        Form("named array", plain_array, edit=_renamed({"list": "array"})),
        Form("less", pa.array(values, pa.list_(pa.struct([("u", pa.string())])))),
    ]


# ---------------------------------------------------------------- what is edited in a footer


def _of_v(footer: Struct) -> list[Struct]:
    """The elements of v: itself and those below it."""
    elements = footers.schema_elements(footer)
    place = next(i for i, element in enumerate(elements) if element[footers.NAME][1].lower() in (b"v", b"other"))
    end, open_ = place, 1
    while open_:
        open_ += elements[end].get(footers.CHILDREN, (I32, 0))[1] - 1
        end += 1
    return elements[place:end]


def _leaves(footer: Struct) -> list[Struct]:
    return [element for element in _of_v(footer) if footers.TYPE in element]


def _chunks(footer: Struct) -> list[Struct]:
    return [chunk for chunk in footers.chunks(footer) if chunk[footers.PATH_IN_SCHEMA][1][1][0].lower() in (b"v", b"other")]


def _says(facts: dict[str, str]) -> Callable[[Struct], None]:
    def edit(footer: Struct) -> None:
        pairs = [{1: binary(key.encode()), 2: binary(value.encode())} for key, value in facts.items()]
        footer[footers.KEY_VALUES] = (LIST, (STRUCT, pairs))

    return edit


def _renamed(names: dict[str, str]) -> Callable[[Struct], None]:
    """Of the fields inside v."""
    raw = {old.encode(): new.encode() for old, new in names.items()}

    def edit(footer: Struct) -> None:
        for element in _of_v(footer)[1:]:
            element[footers.NAME] = binary(raw.get(element[footers.NAME][1], element[footers.NAME][1]))
        for chunk in _chunks(footer):
            kind, path = chunk[footers.PATH_IN_SCHEMA][1]
            chunk[footers.PATH_IN_SCHEMA] = (LIST, (kind, [path[0], *(raw.get(name, name) for name in path[1:])]))

    return edit


def _group_said(converted: int | None = None, logical: Struct | None = None) -> Callable[[Struct], None]:
    return lambda footer: _said(converted, logical)(_of_v(footer)[0])


def _two_levels(name: str) -> Callable[[Struct], None]:
    def edit(footer: Struct) -> None:
        _, middle, element = _of_v(footer)
        elements = footers.schema_elements(footer)
        del elements[next(i for i, each in enumerate(elements) if each is middle)]
        element[footers.NAME], element[footers.REPETITION] = binary(name.encode()), (I32, 2)
        for chunk in _chunks(footer):
            kind, path = chunk[footers.PATH_IN_SCHEMA][1]
            chunk[footers.PATH_IN_SCHEMA] = (LIST, (kind, [path[0], name.encode()]))

    return edit


def _random_edit(rng: random.Random, says: list[str]) -> Callable[[Struct], None]:
    """Parts that may be missing or old in any footer."""
    writers = [None, b"", b"parquet-mr", b"parquet-mr version 1.6.0", b"parquet-mr version 1.8.0 (build)", b"impala version 1"]
    created_by = rng.choice(writers) if rng.random() < 0.4 else b"="
    kinds = ["none", "deprecated alone", "no null counts", "not exact", "deprecated, signed"]
    statistics = rng.choice(["as they are"] * 4 + kinds)
    no_encoding_stats, ids = rng.random() < 0.2, rng.random() < 0.2
    says.append(f"created by {created_by!r}, statistics {statistics}, encoding stats {not no_encoding_stats}, ids {ids}")

    def edit(footer: Struct) -> None:
        if created_by is None:
            footer.pop(footers.CREATED_BY)
        elif created_by != b"=":
            footer[footers.CREATED_BY] = binary(created_by)
        for chunk in footers.chunks(footer):
            _edit_statistics(chunk, statistics)
            if no_encoding_stats:
                chunk.pop(footers.ENCODING_STATS, None)
        for number, element in enumerate(footers.schema_elements(footer)[1:]):
            if ids:
                element[footers.FIELD_ID] = (I32, 100 - number)

    return edit


def _edit_statistics(chunk: Struct, how: str) -> None:
    if footers.CHUNK_STATISTICS not in chunk or how == "as they are":
        return
    statistics: Struct = chunk[footers.CHUNK_STATISTICS][1]
    match how:
        case "none":
            del chunk[footers.CHUNK_STATISTICS]
        case "no null counts":
            statistics.pop(footers.NULL_COUNT, None)
        case "deprecated alone" | "deprecated, signed":
            both = {"max": statistics.pop(footers.MAX_VALUE, None), "min": statistics.pop(footers.MIN_VALUE, None)}
            if both["max"] and both["min"]:
                if how == "deprecated, signed" and chunk[footers.CHUNK_TYPE][1] in (6, 7):
                    both = dict(zip(("min", "max"), sorted(both.values(), key=lambda bound: _signed(bound[1])), strict=True))
                statistics[footers.MAX], statistics[footers.MIN] = both["max"], both["min"]
            for place in (footers.IS_MAX_EXACT, footers.IS_MIN_EXACT):
                statistics.pop(place, None)
        case "not exact" if chunk[footers.CHUNK_TYPE][1] == 6 and footers.MAX_VALUE in statistics:
            high, low = statistics[footers.MAX_VALUE][1], statistics[footers.MIN_VALUE][1]
            statistics[footers.MAX_VALUE], statistics[footers.MIN_VALUE] = binary(high[:3] + b"\xf4"), binary(low[:1])
            statistics[footers.IS_MAX_EXACT] = statistics[footers.IS_MIN_EXACT] = (BOOL, False)


def _signed(data: bytes) -> list[int]:
    """By signed bytes, as old writers compared texts."""
    return [byte - 256 if byte > 127 else byte for byte in data]


# ---------------------------------------------------------------- values, and files


def _one_of(*values: Any) -> Callable[[random.Random], Any]:
    return lambda rng: rng.choice(values)


def _decimal_values(precision: int, scale: int) -> Callable[[random.Random], Any]:
    most = 10**precision - 1

    def value(rng: random.Random) -> Decimal:
        units = [0, 1, -1, most, -most, 128, -129, rng.randint(-most, most), rng.randint(-200, 200)]
        return _DIGITS.scaleb(Decimal(rng.choice(units)), -scale)

    return value


def _any_time(rng: random.Random) -> dt.datetime:
    days = [dt.datetime(1, 1, 1), dt.datetime(1582, 10, 15), dt.datetime(1900, 1, 1), _EPOCH, dt.datetime(2020, 1, 1)]
    last = [dt.datetime(1582, 10, 4, 23, 59, 59), dt.datetime.max, _EPOCH - dt.timedelta.resolution]
    return rng.choice([*days, *last, dt.datetime(2020, 1, 1) + dt.timedelta(microseconds=rng.randrange(10**15))])


def _any_day(rng: random.Random) -> dt.date:
    odd = [(1, 1, 1), (1582, 10, 4), (1582, 10, 10), (1500, 3, 1), (9999, 12, 31), (1970, 1, 1)]
    return rng.choice([*(dt.date(*day) for day in odd), dt.date(2020, 1, 1) + dt.timedelta(days=rng.randrange(500))])


def _integer_values(bits: int) -> Callable[[random.Random], Any]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return lambda rng: rng.choice([0, 1, -1, low, high, rng.randint(low, high), rng.randint(0, 100), rng.randint(0, 100)])


def _texts_of(rng: random.Random) -> str:
    return rng.choice(["", "a", "b", "é", "zz", "\U0001f600", "\x7f", "A", f"text {rng.randrange(50)}", "x" * rng.randrange(90)])


def _small(rng: random.Random) -> int | None:
    return rng.choice([None, 1, 2])


def _inner(rng: random.Random) -> dict[str, Any]:
    return {"u": rng.choice([None, "é"]), "t": rng.choice([None, [], [Decimal("1.25"), None]])}


@dataclass(frozen=True)
class Kind:
    """A Delta type: its name in SQL, values of it, and the ways of storing them."""

    sql: str
    value: Callable[[random.Random], Any]
    forms: Forms


_FLOATS = _one_of(0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf"), 3.0, 7.0)

KINDS: dict[str, Kind] = {
    "boolean": Kind("boolean", _one_of(True, False), _booleans),
    "byte": Kind("tinyint", _integer_values(8), _integers(8)),
    "short": Kind("smallint", _integer_values(16), _integers(16)),
    "integer": Kind("int", _integer_values(32), _integers(32)),
    "long": Kind("bigint", _integer_values(64), _integers(64)),
    "float": Kind("float", _FLOATS, _floats(double=False)),
    "double": Kind("double", _FLOATS, _floats(double=True)),
    "string": Kind("string", _texts_of, _texts),
    "binary": Kind("binary", lambda rng: _texts_of(rng).encode() + rng.choice([b"", b"\xff", b"\0"]), _binaries),
    "date": Kind("date", _any_day, _dates),
    "timestamp": Kind("timestamp", _any_time, _times(in_utc=True)),
    "timestamp_ntz": Kind("timestamp_ntz", _any_time, _times(in_utc=False)),
    "decimal(9,2)": Kind("decimal(9,2)", _decimal_values(9, 2), _decimals(9, 2)),
    "decimal(18,4)": Kind("decimal(18,4)", _decimal_values(18, 4), _decimals(18, 4)),
    "decimal(38,6)": Kind("decimal(38,6)", _decimal_values(38, 6), _decimals(38, 6)),
    "struct": Kind("struct<x:int,y:string>", lambda rng: {"x": _small(rng), "y": rng.choice([None, "", "é"])}, _structs),
    "array": Kind("array<int>", lambda rng: [_small(rng) for _ in range(rng.randrange(4))], _lists),
    "map": Kind("map<string,int>", lambda rng: [(key, _small(rng)) for key in rng.sample("abc", rng.randrange(4))], _maps),
    "deep": Kind("array<struct<u:string,t:array<decimal(9,2)>>>", lambda rng: [_inner(rng)] * rng.randrange(3), _deep),
}


def foreign_files(root: Path, name: str, seed: int, count: int) -> Iterator[ForeignFile]:
    """count files of a kind, with each form at least once if count is large enough."""
    kind = KINDS[name]
    for number in range(count):
        rng = random.Random(f"{seed}-{name}-{number}")
        yield _foreign_file(root / f"file-{number}.parquet", number, kind, rng)


def _foreign_file(path: Path, number: int, kind: Kind, rng: random.Random) -> ForeignFile:
    rows, nulls = rng.choice([0, 1, 9, 300, 300, 9000]), rng.choice([0.0, 0.2, 0.2, 1.0])
    few = [kind.value(rng) for _ in range(rng.choice([1, 3, 40]))]
    values = [None if rng.random() < nulls else rng.choice(few) for _ in range(rows)]
    forms = kind.forms(rng, values)
    form = forms[number % len(forms)]
    table, says = _table(number, form, rng)
    is_plain = form.edit is None and not pa.types.is_nested(form.values.type) and form.values.type != pa.bool_()
    options = {
        "use_dictionary": rng.random() < 0.7,
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "compression": rng.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        "write_page_index": rng.random() < 0.5,
        "write_statistics": rng.random() < 0.85,
        "row_group_size": rng.choice([3, 100, 1000, 100_000]) if rows < 1000 else rng.choice([1000, 4096, 5000, 100_000]),
        "data_page_size": rng.choice([30, 1000, 1_000_000]),
        "write_batch_size": rng.choice([2, 1024]),
        "version": rng.choice(["1.0", "2.4", "2.6"]),
        "store_schema": rng.random() < 0.3 and form.annotate is None and form.edit is None,
        "write_page_checksum": rng.random() < 0.3,
        **form.options,
    }
    if form.values.type == pa.uint32():
        options["version"] = "2.6"  # the first version has longs for it
    if rng.random() < 0.2 and is_plain and "v" in table.column_names:
        options["bloom_filter_options"] = {"v": True}
    pq.write_table(table, path, **options)
    random_edit = _random_edit(rng, says)
    with footers.rewritten(path) as footer:
        if any(name.lower() in ("v", "other") for name in table.column_names):
            if form.annotate is not None:
                for element in _leaves(footer):
                    form.annotate(element)
            if form.edit is not None:
                form.edit(footer)
        random_edit(footer)
    shown = ", ".join(f"{key}={value}" for key, value in options.items())
    return ForeignFile(path, f"{form.name}; {rows} rows, {nulls} null; {shown}; {'; '.join(says)}")


def _table(number: int, form: Form, rng: random.Random) -> tuple[pa.Table, list[str]]:
    rows = len(form.values)
    columns = {"f": pa.array([number] * rows, pa.int32()), "id": pa.array(range(rows), pa.int64()), "v": form.values}
    names, says = list(columns), []
    if rng.random() < 0.3:
        rng.shuffle(names)
        says.append(f"columns {names}")
    if rng.random() < 0.05:
        names.remove("v")
        says.append("without v")
    fields = [pa.field(name, columns[name].type) for name in names]
    arrays = [columns[name] for name in names]
    if rng.random() < 0.1 and form.values.null_count == 0 and "v" in names:
        place = names.index("v")
        fields[place] = fields[place].with_nullable(False)
        says.append("v is required")
    if rng.random() < 0.15:
        fields.insert(0, pa.field("more", pa.list_(pa.float16())))
        arrays.insert(0, pa.array([[1.0]] * rows, pa.list_(pa.float16())))
        says.append("a column more")
    if rng.random() < 0.06 and "v" in names:
        place = fields.index(next(f for f in fields if f.name == "v"))
        fields[place] = fields[place].with_name("V")
        says.append("V for v")
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), says
