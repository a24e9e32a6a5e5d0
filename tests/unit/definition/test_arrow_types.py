"""Which Arrow types `write_delta` and `merge` take, in which places and layouts: they make up the table of docs/writing.md."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from delta_py import DeltaTable
from delta_py.errors import DeltaError, ExpressionError, SchemaMismatchError, UnsupportedOperationError
from delta_py.row_changes.write import write_delta
from delta_py.transactions import append
from delta_py.types.schema import from_arrow_type, type_name
from tests.support.stores.memory_store import MemoryStore

PAGE = Path(__file__).parents[3] / "docs" / "writing.md"
HEADER = "| Arrow type | type in the table | in structs, lists, maps | partition column | MERGE key |\n|---|---|---|---|---|\n"


def extension(kind: pa.DataType, value: Any) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array([value, None], kind.storage_type))


def union(mode: str) -> pa.Array:
    numbers, kinds = pa.array([1]), pa.array([0], pa.int8())
    if mode == "sparse":
        return pa.UnionArray.from_sparse(kinds, [numbers])
    return pa.UnionArray.from_dense(kinds, pa.array([0], pa.int32()), [numbers])


NOON = dt.datetime(2024, 1, 1, 12)
# Arrays of each type, by its name on the page. All but unions have a value and a null.
TYPES: dict[str, list[pa.Array]] = {
    "`null`": [pa.nulls(2)],
    "`bool`": [pa.array([True, None])],
    "`int8`": [pa.array([1, None], pa.int8())],
    "`int16`, `uint8`": [pa.array([1, None], pa.int16()), pa.array([255, None], pa.uint8())],
    "`int32`, `uint16`": [pa.array([1, None], pa.int32()), pa.array([2**16 - 1, None], pa.uint16())],
    "`int64`, `uint32`": [pa.array([1, None], pa.int64()), pa.array([2**32 - 1, None], pa.uint32())],
    "`uint64`, up to 9223372036854775807": [pa.array([2**63 - 1, None], pa.uint64())],
    "`float16`, `float32`": [pa.array([1.5, None], pa.float16()), pa.array([1.5, None], pa.float32())],
    "`float64`": [pa.array([1.5, None])],
    "`decimal32`, `decimal64`, `decimal128`": [
        pa.array([Decimal("1.5"), None], kind(5, 1)) for kind in (pa.decimal32, pa.decimal64, pa.decimal128)
    ],
    "`decimal256`, up to 38 digits": [pa.array([Decimal("1.5"), None], pa.decimal256(50, 1))],
    "`string`, `large_string`, `string_view`": [
        pa.array(["a", None], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())
    ],
    "`binary`, `large_binary`, `binary_view`, `fixed_size_binary`": [
        pa.array([b"ab", None], kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))
    ],
    "`date32`, `date64`": [pa.array([dt.date(2024, 1, 1), None], kind) for kind in (pa.date32(), pa.date64())],
    "`timestamp` in s, ms, us; in ns without digits after microseconds": [
        pa.array([NOON, None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")
    ],
    "`timestamp` with a time zone, the same": [
        pa.array([NOON.replace(tzinfo=dt.UTC), None], pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in ("UTC", "Asia/Tokyo")
    ],
    "`list`, `large_list`, `list_view`, `large_list_view`, `fixed_size_list`": [
        pa.array([[1, 2], None], kind)
        for kind in (
            pa.list_(pa.int64()),
            pa.large_list(pa.int64()),
            pa.list_view(pa.int64()),
            pa.large_list_view(pa.int64()),
            pa.list_(pa.int64(), 2),
        )
    ],
    "`map`": [pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))],
    "`struct`": [pa.array([{"x": 1}, None])],
    "`struct` without fields": [pa.array([{}, None], pa.struct([]))],
    "`arrow.uuid`": [extension(pa.uuid(), b"0123456789abcdef")],
    "`arrow.json`": [extension(pa.json_(), "{}")],
    "`arrow.bool8`": [extension(pa.bool8(), 1)],
    "`arrow.fixed_shape_tensor`": [extension(pa.fixed_shape_tensor(pa.int64(), [2]), [1, 2])],
    "`arrow.opaque`": [extension(pa.opaque(pa.binary(), "type", "vendor"), b"ab")],
    "`arrow.opaque` of `null`": [pa.ExtensionArray.from_storage(pa.opaque(pa.null(), "type", "vendor"), pa.nulls(2))],
    "`time32`, `time64`": [
        pa.array([dt.time(1), None], kind) for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
    ],
    "`duration`": [pa.array([dt.timedelta(1), None], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")],
    "`month_day_nano_interval`": [pa.array([(1, 2, 3), None], pa.month_day_nano_interval())],
    "`sparse_union`, `dense_union`": [union("sparse"), union("dense")],
    "polars' `Object`": [],
    "pandas' `period`": [],
}
NUMBERS = itertools.count()
FRAMES: dict[str, Any] = {
    "polars' `Object`": pl.DataFrame({"c": pl.Series([{"x": 1}, (1, 2)], dtype=pl.Object)}),
    "pandas' `period`": pd.DataFrame({"c": pd.period_range("2024-01", periods=2, freq="M")}),
}


# ---------------------------------------------------------------- places


def as_dictionary(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.uint32()), values)


def as_runs(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(values) + 1), pa.int32()), values)


def as_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)


def as_views(values: pa.Array) -> pa.Array:
    ones = pa.array([1] * len(values), pa.int32())
    return pa.ListViewArray.from_arrays(pa.array(range(len(values)), pa.int32()), ones, values)


def as_map(values: pa.Array) -> pa.Array:
    keys = pa.array([str(row) for row in range(len(values))], pa.string_view())
    return pa.MapArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), keys, values)


def as_keys(values: pa.Array) -> pa.Array:
    """The null, which comes last, is not a key: its map is empty."""
    count = len(values) - values.null_count
    ends = pa.array([min(row, count) for row in range(len(values) + 1)], pa.int32())
    return pa.MapArray.from_arrays(ends, values.slice(0, count), values.slice(0, count))


def as_struct(values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values], names=["f"])


LAYOUTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "c": lambda values: values,
    "c_dictionary": as_dictionary,
    "c_runs": as_runs,
}
# Values within other values, and the form in which each is read. The null comes last.
PARTS: dict[str, tuple[Callable[[pa.Array], pa.Array], Callable[[int, Any], Any]]] = {
    "c_struct": (as_struct, lambda _, value: {"f": value}),
    "c_list": (as_list, lambda _, value: [value]),
    "c_views": (as_views, lambda _, value: [value]),
    "c_map": (as_map, lambda row, value: [(str(row), value)]),
    "c_keys": (as_keys, lambda _, value: [] if value is None else [(value, value)]),
    "c_dictionaries": (lambda values: as_list(as_dictionary(values)), lambda _, value: [value]),
    "c_struct_runs": (lambda values: as_struct(as_runs(values)), lambda _, value: {"f": value}),
}


def new_store() -> MemoryStore:
    """At a separate place, because caches of a table depend on its place."""
    return MemoryStore(f"/memory/{next(NUMBERS)}")


def is_taken(write: Callable[[], object]) -> bool:
    """Whether the write succeeds. Otherwise it is an error of pydelta that names the column, or the comparison."""
    try:
        write()
    except ExpressionError as error:
        assert "The comparison = on" in error.message
        return False
    except DeltaError as error:
        assert re.search(r"\bc(_[a-z_]+)?\b", error.message), error.message
        return False
    return True


def plain_values(values: pa.Array) -> list[Any]:
    """The values as a table returns them."""
    storage = values.storage if isinstance(values, pa.ExtensionArray) else values
    plain: list[Any] = storage.to_pylist()
    if pa.types.is_timestamp(values.type):
        plain = [value.to_pydatetime() if isinstance(value, pd.Timestamp) else value for value in plain]
        plain = [value if value is None or value.tzinfo is None else value.astimezone(dt.UTC) for value in plain]
    return plain


def written(columns: Mapping[str, pa.Array], **options: Any) -> dict[str, list[Any]] | None:
    """The values of the columns in a new table, after each row's number; None if the write is refused."""
    store, rows = new_store(), len(next(iter(columns.values())))
    data = pa.table({"row": pa.array(range(rows)), **columns})
    if not is_taken(lambda: write_delta(store.root, data, store=store, **options)):
        return None
    table = DeltaTable(store.root, store=store).to_arrow()
    return {name: column.to_pylist() for name, column in zip(table.schema.names, table.sort_by("row").columns, strict=True)}


def is_merge_key(values: pa.Array, expected: list[Any]) -> bool:
    """By rows that are in the table, each once."""
    store = new_store()
    write_delta(store.root, pa.table({"row": pa.array(range(len(values))), "c": values}), store=store)
    source = pa.table({"c": as_dictionary(values)})
    merge = DeltaTable(store.root, store=store).merge(source, "t.c = s.c", "s", "t").when_matched_delete()
    rows: list[int] = []
    is_accepted = is_taken(lambda: rows.append(merge.execute()["numTargetRowsDeleted"]))
    assert not is_accepted or rows == [len(expected) - expected.count(None)]
    return is_accepted


def outcome(values: pa.Array) -> tuple[str, ...]:
    """The page's row for a type. Written values are compared with read ones."""
    expected = plain_values(values)
    top = written({name: layout(values) for name, layout in LAYOUTS.items()})
    nested = written({name: layout(values) for name, (layout, _) in PARTS.items()})
    if top is None:
        assert nested is None
        return "refused", "no", "no", "no"
    assert [top[name] for name in LAYOUTS] == [expected] * len(LAYOUTS)
    for name, (_, read) in PARTS.items():
        assert nested is None or nested[name] == [read(row, value) for row, value in enumerate(expected)], name
    parts = written({"c": as_dictionary(values)}, partition_by="c")
    assert parts is None or parts["c"] == expected
    places = (nested is not None, parts is not None, is_merge_key(values, expected))
    return f"`{type_name(from_arrow_type(values.type))}`", *("yes" if is_accepted else "no" for is_accepted in places)


def lines() -> Iterator[str]:
    for name, arrays in TYPES.items():
        outcomes = set(map(outcome, arrays)) or {outcome_of_frame(FRAMES[name])}
        assert len(outcomes) == 1, (name, outcomes)
        yield f"| {name} | {' | '.join(outcomes.pop())} |\n"


def outcome_of_frame(frame: Any) -> tuple[str, ...]:
    store = new_store()
    assert not is_taken(lambda: write_delta(store.root, frame, store=store))
    return "refused", "no", "no", "no"


def test_table_of_the_page_is_what_writes_do() -> None:
    page_table = HEADER + "".join(lines())
    assert page_table in PAGE.read_text(), f"docs/writing.md lacks this table:\n{page_table}"


# ---------------------------------------------------------------- categories, as polars and pandas have them


CATEGORIES = {
    "polars Categorical": pl.DataFrame({"i": [0, 1], "c": ["a", None]}).with_columns(pl.col("c").cast(pl.Categorical)),
    "polars Enum": pl.DataFrame({"i": [0, 1], "c": ["a", None]}).with_columns(pl.col("c").cast(pl.Enum(["b", "a"]))),
    "pandas category": pd.DataFrame({"i": [0, 1], "c": pd.Categorical(["a", None], ["b", "a"])}),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_categories_are_written_as_strings_in_all_modes(tmp_path: Path, name: str) -> None:
    frame, path = CATEGORIES[name], str(tmp_path)
    write_delta(path, frame, partition_by="c")
    write_delta(path, frame, mode="append", merge_schema=True)
    write_delta(path, frame, mode="overwrite", partition_overwrite_mode="dynamic")
    write_delta(path, frame, mode="overwrite", replace_where="i >= 0")
    write_delta(path, frame, mode="overwrite", overwrite_schema=True)
    merge = DeltaTable(path).merge(frame, "t.c <=> s.c", "s", "t").when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute()["numTargetRowsUpdated"] == 2
    assert DeltaTable(path).to_arrow().to_pylist() == [{"i": 0, "c": "a"}, {"i": 1, "c": None}]


# ---------------------------------------------------------------- types without data


class Derived(pl.DataFrame):
    """As applications have them."""


OBJECTS = FRAMES["polars' `Object`"]


IN_ARRAY = OBJECTS.select(pl.col("c").reshape((2, 1)))


@pytest.mark.parametrize("frame", [OBJECTS, Derived(OBJECTS), IN_ARRAY], ids=["frame", "derived", "array"])
def test_polars_python_objects_are_refused_by_every_write(tmp_path: Path, frame: pl.DataFrame) -> None:
    path = str(tmp_path)
    write_delta(path, pa.table({"c": pa.array([b"addresses"])}))
    for write in (
        lambda: write_delta(str(tmp_path / "new"), frame),
        lambda: write_delta(path, frame, mode="append"),
        lambda: write_delta(path, frame, mode="overwrite", overwrite_schema=True),
        lambda: DeltaTable(path).merge(frame, "t.c = s.c", "s", "t").when_not_matched_insert_all().execute(),
        lambda: append(path, frame),
    ):
        with pytest.raises(UnsupportedOperationError, match=r"Column c has the polars type .*Object") as caught:
            write()
        assert caught.value.error_class == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert DeltaTable(path).to_arrow().to_pylist() == [{"c": b"addresses"}]


@pytest.mark.parametrize("kind", [pa.time32("s"), pa.duration("ns"), pa.month_day_nano_interval()], ids=str)
def test_type_that_delta_lacks_is_told_by_the_columns_path(tmp_path: Path, kind: pa.DataType) -> None:
    nested = pa.list_(pa.struct([("f", pa.map_(pa.string(), kind))]))
    with pytest.raises(UnsupportedOperationError, match=re.escape(f"Column c.element.f.value has the Arrow type {kind}")):
        write_delta(str(tmp_path / "t"), pa.table({"c": pa.array([], nested)}))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- values that do not fit

TIMES = pd.DataFrame({"t": pd.date_range("2024-01-01", "2024-01-02", periods=8, unit="ns")})
SECOND = dt.datetime(2024, 1, 1, 3, 25, 42, 857142)


def test_nanoseconds_are_refused_naming_value_and_options(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match=r"Column t .*2024-01-01 03:25:42\.857142857 has nanoseconds") as caught:
        write_delta(str(tmp_path / "t"), TIMES)
    assert caught.value.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    for name in ("truncate_nanoseconds=True", "truncateNanoseconds", "--truncate-nanoseconds"):
        assert name in caught.value.message


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_nanoseconds_are_truncated_in_all_places_on_request(tmp_path: Path, zone: str | None) -> None:
    path, frame = str(tmp_path), TIMES if zone is None else TIMES.assign(t=TIMES["t"].dt.tz_localize("UTC").dt.tz_convert(zone))
    expected = SECOND if zone is None else SECOND.replace(tzinfo=dt.UTC)
    frame = frame.assign(id=range(8), s=[{"t": time} for time in frame["t"]], p=frame["t"])
    write_delta(path, frame, partition_by="p", truncate_nanoseconds=True)
    write_delta(path, frame, mode="overwrite", replace_where="id = 1 OR id <> 1", truncate_nanoseconds=True)
    merge = DeltaTable(path).merge(frame, "t.t = s.t AND t.p = s.p", "s", "t", truncate_nanoseconds=True)
    assert merge.when_matched_update_all().execute()["numTargetRowsUpdated"] == 8
    row = DeltaTable(path).to_arrow(filter="id = 1").to_pylist()[0]
    assert row == {"t": expected, "id": 1, "s": {"t": expected}, "p": expected}
    with pytest.raises(SchemaMismatchError, match="has nanoseconds"):
        DeltaTable(path).merge(frame, "t.id = s.id", "s", "t").when_matched_update_all().execute()


def test_nanoseconds_that_are_whole_microseconds_are_taken(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pd.DataFrame({"t": pd.date_range("2024-01-01", periods=2, freq="us")}))
    assert DeltaTable(str(tmp_path)).to_arrow()["t"].to_pylist()[1] == dt.datetime(2024, 1, 1, microsecond=1)


def test_whole_numbers_beyond_bigint_are_refused_with_the_value(tmp_path: Path) -> None:
    path, data = str(tmp_path / "t"), pa.table({"n": pa.array([1, 2**64 - 1], pa.uint64())})
    with pytest.raises(SchemaMismatchError, match=r"Column n .* bigint.*18446744073709551615") as caught:
        write_delta(path, data)
    assert caught.value.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    write_delta(path, pa.table({"n": pa.array([], pa.decimal128(20, 0))}))
    write_delta(path, data, mode="append")
    assert sorted(DeltaTable(path).to_arrow()["n"].to_pylist()) == [1, 2**64 - 1]


def test_decimals_beyond_38_digits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match=r"Column n .* decimal\(38,0\)"):
        write_delta(str(tmp_path / "t"), pa.table({"n": pa.array([Decimal(10**39)], pa.decimal256(50, 0))}))
