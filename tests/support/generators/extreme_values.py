"""The extreme values of every type, and tables of several writers that hold each of them in a separate file.

    WRITERS["deltalake"](path)                    # one of pydelta, deltalake, and several by hand
    for condition in lookups("big"): ...          # SQL that compares the column with each of its values

Logs made by hand have bounds from programs that hold them in a narrower type than the column's (NARROW).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from delta_py import write_delta
from delta_py.storage.local import LocalStore
from delta_py.types.schema import from_arrow_schema, schema_to_json
from tests.support.tables.table_builder import TableBuilder, add

Cut = Callable[[str, int], str | None]
Record = Callable[[pa.Scalar, int], str | None]

LAST = "\U0010ffff"
EPOCH = datetime(1970, 1, 1)
DAY_MICROS = 86_400_000_000
_LARGEST = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)
FIRST_MICROS, END_MICROS = -719_162 * DAY_MICROS, 2_932_897 * DAY_MICROS  # of the years 1 to 9999


def _within(numbers: Iterable[int], least: int, most: int) -> list[int]:
    return sorted({number for number in numbers if least <= number <= most})


_LIMITS = [0, *(limit for bits in (8, 16, 32, 64, 65) for limit in (2 ** (bits - 1) - 1, 2 ** (bits - 1), -(2 ** (bits - 1))))]
_BEYOND = [-(2**31) - 1, -(2**63) - 1, 2**53 + 1, 2**64 + 1, 10**30, -(10**30)]


def _integers(bits: int) -> list[int]:
    return _within([*_LIMITS, *_BEYOND], -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(precision: int, scale: int) -> list[Decimal]:
    """Limits of the value, and of its digits without the point."""
    shorter = [sign * (10**digits - 1) for sign in (1, -1) for digits in (9, 18, 28, precision)]
    values = [number * 10**scale for number in (*_LIMITS, *_BEYOND)]
    units = _within([*_LIMITS, *_BEYOND, *shorter, *values], -(10**precision) + 1, 10**precision - 1)
    return [_decimal(number, scale) for number in units]


def _decimal(units: int, scale: int) -> Decimal:
    return Decimal((units < 0, tuple(map(int, str(abs(units)))), -scale))


_NANOSECOND_LIMITS = (-9_223_372_036_854_776, 9_223_372_036_854_775)
_SECOND_LIMITS = (-(2**31) * 1_000_000, (2**31 - 1) * 1_000_000)
_ENDS = [FIRST_MICROS, END_MICROS - 1, *_NANOSECOND_LIMITS, *_SECOND_LIMITS]
_TIMES = [0, -(2**63), 2**63 - 1, *(end + micros for end in _ENDS for micros in (-1_000_001, -1, 0, 1, 1_000_001))]
_DAYS = [0, *(end // DAY_MICROS + days for end in _ENDS for days in (-1, 0, 1))]
_TEXTS = ["", "a" * 31, "a" * 32, "a" * 33, "a" * 32 + "b", "a" * 70, "a" * 31 + "\U0001f600" + "b", "a" * 32 + "\uffff" * 2]
_TEXTS += ["a" * 32 + LAST, "a" * 32 + LAST * 40, "b" * 31 + "\ud7ffx", LAST * 33, LAST * 100, "\ufffd" * 40, "c" * 32 + "\x7f"]

COLUMNS: dict[str, pa.Array] = {
    "tiny": pa.array(_integers(8), pa.int8()),
    "small": pa.array(_integers(16), pa.int16()),
    "number": pa.array(_integers(32), pa.int32()),
    "big": pa.array(_integers(64), pa.int64()),
    "single": pa.array(
        [0.0, 1e-45, *(sign * most for sign in (1, -1) for most in (2.0**31, 2.0**63, _LARGEST[0], np.inf)), np.nan],
        pa.float32(),
    ),
    "double": pa.array(
        [0.0, 0.1, 5e-324, *(sign * most for sign in (1, -1) for most in (2.0**31, 2.0**63, 1e300, *_LARGEST, np.inf)), np.nan]
    ),
    **{
        f"decimal_{precision}_{scale}": pa.array(_decimals(precision, scale), pa.decimal128(precision, scale))
        for precision, scale in ((9, 2), (18, 0), (19, 0), (20, 0), (20, 2), (38, 0), (38, 18), (38, 38))
    },
    "day": pa.array(_DAYS, pa.int32()).cast(pa.date32()),
    "instant": pa.array(_TIMES, pa.int64()).cast(pa.timestamp("us", "UTC")),
    "clock": pa.array(_TIMES, pa.int64()).cast(pa.timestamp("us")),
    "text": pa.array(_TEXTS),
}
ROWS = max(map(len, COLUMNS.values()))


def rows() -> pa.Table:
    """Every value of every column, repeated in the shorter ones. `n` numbers the rows, and partitions tables."""
    columns = {name: values.take(pa.array([n % len(values) for n in range(ROWS)])) for name, values in COLUMNS.items()}
    return pa.table({"n": pa.array(range(ROWS), pa.int32()), "changed": pa.nulls(ROWS, pa.int32()), **columns})


# ---------------------------------------------------------------- lookups


def lookups(column: str, operators: Sequence[str] = ("=", "<", ">", "<=", ">=", "<>")) -> Iterator[str]:
    """Conditions that compare the column with each of its values that SQL has a literal for."""
    for literal in literals(column):
        yield from (f"{column} {operator} {literal}" for operator in operators)


def literals(column: str) -> list[str]:
    return [literal for value in COLUMNS[column] if (literal := _literal(value)) is not None]


def _literal(value: pa.Scalar) -> str | None:
    kind = value.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return format(value.as_py(), "d" if pa.types.is_integer(kind) else "f") + ("L" if kind == pa.int64() else "")
    if pa.types.is_floating(kind):
        return f"{'float' if kind == pa.float32() else 'double'}('{value.as_py()}')"
    if pa.types.is_string(kind):
        return f"'{value.as_py()}'"
    numbers = value.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(kind) else value.cast(pa.int64())
    micros = numbers.as_py() * (DAY_MICROS if pa.types.is_date(kind) else 1)
    if not FIRST_MICROS <= micros < END_MICROS:
        return None
    time = EPOCH + timedelta(microseconds=micros)
    if pa.types.is_date(kind):
        return f"DATE'{time.date()}'"
    return f"TIMESTAMP_NTZ'{time}'" if kind.tz is None else f"TIMESTAMP'{time}Z'"


# ---------------------------------------------------------------- tables


def write_by_pydelta(path: Path) -> None:
    write_delta(str(path), rows(), partition_by=["n"])


def write_by_deltalake(path: Path) -> None:
    """Without the times for which it fails or has no bounds."""
    import deltalake

    deltalake.write_deltalake(path, rows(), partition_by=["n"])


def write_by_hand(path: Path, narrow: str) -> None:
    """Each bound is recorded as by a program that holds it in a narrower type, one of NARROW; exactly, if it fits."""
    table = rows()
    path.mkdir()
    actions = []
    for n in range(ROWS):
        row = table.slice(n, 1)
        pq.write_table(row, path / f"{n}.parquet", store_decimal_as_integer=True)
        low, high = (_bounds(row, NARROW[narrow], side) for side in (-1, 1))
        nulls = json.dumps(dict.fromkeys(COLUMNS, 0))
        stats = f'{{"numRecords":1,"minValues":{low},"maxValues":{high},"nullCount":{nulls}}}'
        actions.append(add(f"{n}.parquet", size=(path / f"{n}.parquet").stat().st_size, stats=stats))
    builder = TableBuilder(LocalStore(str(path)))
    schema = from_arrow_schema(table.schema)
    columns = [(column["name"], column["type"]) for column in json.loads(schema_to_json(schema))["fields"]]
    builder.commit(builder.protocol(features=["timestampNtz"]), builder.metadata(*columns), *actions)


def _bounds(row: pa.Table, record: Record, side: int) -> str:
    texts = {name: text for name in COLUMNS if (text := record(row[name][0], side)) is not None}
    return "{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}"


def _recorded(value: pa.Scalar, side: int, *, numbers: tuple[Decimal, Decimal], micros: tuple[int, int], cut: Cut) -> str | None:
    """The JSON of a bound."""
    kind = value.type
    if pa.types.is_string(kind):
        text = cut(value.as_py(), side)
        return None if text is None else json.dumps(text)
    if pa.types.is_temporal(kind):
        return _recorded_time(value, *micros)
    if pa.types.is_floating(kind):
        number = value.as_py()
        if number != number:
            return None
        return repr(min(max(number, float(numbers[0])), float(numbers[1])))
    return format(min(max(Decimal(value.as_py()), numbers[0]), numbers[1]), "f")


def _recorded_in_short_decimals(value: pa.Scalar, side: int) -> str | None:
    """Other numbers are recorded unchanged."""
    most = Decimal(10**18 - 1) if pa.types.is_decimal(value.type) else Decimal(_LARGEST[1])
    return _recorded(value, side, numbers=(-most, most), micros=_ALL_TIMES, cut=_cut_plainly)


def _recorded_time(value: pa.Scalar, first: int, last: int) -> str | None:
    """Cut to milliseconds; None before the year 1 and after 9999."""
    is_date = pa.types.is_date(value.type)
    micros = value.cast(pa.int32()).as_py() * DAY_MICROS if is_date else value.cast(pa.int64()).as_py()
    micros = min(max(micros, first), last)
    if not FIRST_MICROS <= micros < END_MICROS:
        return None
    time = EPOCH + timedelta(microseconds=micros)
    if is_date:
        return f'"{time.date()}"'
    return f'"{time.isoformat(timespec="milliseconds")}{"Z" if value.type.tz else ""}"'


def _cut_by_utf16(text: str, side: int) -> str | None:
    """Like older versions of delta-spark: half a character becomes a question mark, and U+FFFD ends a maximum."""
    if len(text.encode("utf-16-le")) // 2 <= 32:
        return text
    cut = text.encode("utf-16-le")[:64].decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode()
    return cut if side < 0 else cut + "\ufffd"


def _cut_plainly(text: str, side: int) -> str | None:
    """A maximum is the beginning of the text, as the protocol says."""
    return text[:32]


def _cut_with_last(text: str, side: int) -> str | None:
    return text[:32] + LAST if side > 0 and len(text) > 32 else text[:32]


def _integer_range(bits: int) -> tuple[Decimal, Decimal]:
    return Decimal(-(2 ** (bits - 1))), Decimal(2 ** (bits - 1) - 1)


_ALL_TIMES = (-(2**63), 2**63 - 1)
_FLOATS, _DOUBLES = ((-Decimal(most), Decimal(most)) for most in _LARGEST)
NARROW: dict[str, Record] = {
    "64 bits": partial(_recorded, numbers=_integer_range(64), micros=_NANOSECOND_LIMITS, cut=_cut_by_utf16),
    "32 bits": partial(_recorded, numbers=_integer_range(32), micros=_SECOND_LIMITS, cut=_cut_plainly),
    "floats": partial(_recorded, numbers=_FLOATS, micros=(FIRST_MICROS, END_MICROS - 1), cut=_cut_with_last),
    "doubles": partial(_recorded, numbers=_DOUBLES, micros=_ALL_TIMES, cut=_cut_by_utf16),
    "short decimals": _recorded_in_short_decimals,
}

WRITERS: dict[str, Callable[[Path], None]] = {
    "pydelta": write_by_pydelta,
    "deltalake": write_by_deltalake,
    **{f"by hand, {narrow}": partial(write_by_hand, narrow=narrow) for narrow in NARROW},
}
