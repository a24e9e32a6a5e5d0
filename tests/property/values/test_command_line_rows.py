"""Random rows through `pydelta cat` and `pydelta load`: one reads the rows that the other wrote, in any time zone."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from delta_py import DeltaTable, write_delta
from pydelta_cli.main import app
from tests.support.runs.sampling import examples

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("y", pa.int8()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("b", pa.bool_()),
        ("n", pa.decimal128(6, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("w", pa.timestamp("us")),
        ("x", pa.binary()),
    ]
)
KEYS = ("i", "y", "s", "d", "f", "g", "b", "n", "t", "w", "x")
PAIRS = list(zip(KEYS, KEYS[::-1], strict=True))
MAPS = [(f"m{key}", pa.map_(SCHEMA.field(key).type, SCHEMA.field(value).type)) for key, value in PAIRS]
NESTED = pa.schema([("p", pa.struct(list(SCHEMA))), ("l", pa.list_(pa.timestamp("us", "UTC"))), *MAPS])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)


TIMES = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))
INSTANTS = TIMES.map(lambda time: time.replace(tzinfo=UTC))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-(2**63), 2**63 - 1),
    "y": st.integers(-128, 127),
    "s": TEXT,
    "d": st.dates(),
    "f": st.floats(),
    "g": st.floats(width=32),
    "b": st.booleans(),
    "n": st.decimals(Decimal("-9999.99"), Decimal("9999.99"), places=2),
    "t": INSTANTS,
    "w": TIMES,
    "x": st.binary(max_size=6),
}
ROW = st.fixed_dictionaries({name: st.none() | strategy for name, strategy in VALUES.items()})
ROWS = st.lists(ROW, min_size=1, max_size=8)


def pairs(key: str, value: str) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    return st.lists(st.tuples(VALUES[key], st.none() | VALUES[value]), max_size=3, unique_by=lambda pair: repr(pair[0]))


NESTED_ROW = st.fixed_dictionaries(
    {
        "p": st.none() | ROW,
        "l": st.none() | st.lists(st.none() | INSTANTS, max_size=3),
        **{f"m{key}": st.none() | pairs(key, value) for key, value in PAIRS},
    }
)
ZONES = st.sampled_from(["UTC", "Asia/Tokyo", "America/New_York", "Europe/Amsterdam", "+05:30", "Australia/Lord_Howe"])


def through(rows: pa.Table, written: pa.Schema, file_format: str, cat_zone: str, load_zone: str) -> pa.Table:
    """The rows of a table after loading the output of `cat`. written: columns of the new table, with names in another case."""
    with tempfile.TemporaryDirectory() as directory:
        first, second, file = f"{directory}/first", f"{directory}/second", Path(directory, "rows")
        write_delta(first, rows)
        write_delta(second, written.empty_table())
        result = CliRunner().invoke(app, ["cat", first, "--format", file_format, "--tz", cat_zone])
        assert result.exit_code == 0, result.stderr
        file.write_bytes(result.stdout_bytes)
        loading = ["load", second, str(file), "--format", file_format, "--mode", "append", "--tz", load_zone]
        result = CliRunner().invoke(app, loading)
        assert result.exit_code == 0, (result.stderr, file.read_text())
        return DeltaTable(second).to_arrow()


def upper(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name.upper(), field.type) for field in schema])


def comparable(value: Any) -> Any:
    """Rows with names in one case, as text in which NaN equals itself."""
    if isinstance(value, dict):
        return {name.lower(): comparable(inner) for name, inner in value.items()}
    return [comparable(inner) for inner in value] if isinstance(value, list | tuple) else repr(value)


@given(ROWS, ZONES, ZONES)
@example([dict.fromkeys(SCHEMA.names) | {"t": datetime(1880, 1, 1, tzinfo=UTC)}], "Asia/Tokyo", "UTC")  # clocks at +09:18:59
@settings(max_examples=examples(20), deadline=None)
def test_csv_of_cat_is_loaded_as_the_same_rows(rows: list[dict[str, Any]], cat_zone: str, load_zone: str) -> None:
    given_rows = pa.Table.from_pylist(rows, SCHEMA)
    loaded_rows = through(given_rows, upper(SCHEMA), "csv", cat_zone, load_zone)
    assert comparable(loaded_rows.to_pylist()) == comparable(given_rows.to_pylist())


@pytest.mark.parametrize("name", SCHEMA.names)
def test_null_of_a_table_with_one_column_is_a_row_of_its_csv(name: str) -> None:
    schema = pa.schema([SCHEMA.field(name)])
    rows = pa.Table.from_pylist([{name: None}, {name: None}], schema)
    assert through(rows, upper(schema), "csv", "UTC", "UTC").num_rows == 2


@given(st.lists(NESTED_ROW, min_size=1, max_size=5), ZONES, ZONES)
@settings(max_examples=examples(20), deadline=None)
def test_json_of_cat_is_loaded_as_the_same_rows(rows: list[dict[str, Any]], cat_zone: str, load_zone: str) -> None:
    given_rows = pa.Table.from_pylist(rows, NESTED)
    other_fields = [NESTED.field(name).with_name(name.upper()) for name in NESTED.names[1:]]
    written = pa.schema([("P", pa.struct(list(upper(SCHEMA)))), *other_fields])
    loaded_rows = through(given_rows, written, "json", cat_zone, load_zone)
    assert comparable(loaded_rows.to_pylist()) == comparable(given_rows.to_pylist())
