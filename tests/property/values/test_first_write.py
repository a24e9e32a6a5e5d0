"""Random rows through write_delta and back: no row is lost, doubled or changed, whatever the partitioning and the limits."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.row_changes.write import WriteRequest, commit_write, plan_write
from delta_py.row_changes.write_plans import NothingToDo
from delta_py.row_rules.write_state import FileLayout
from delta_py.storage.local import LocalStore
from delta_py.table import DeltaTable
from delta_py.types.schema import from_arrow_schema
from delta_py.write.data_files import write_files
from tests.support.runs.sampling import examples

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("n", pa.decimal128(6, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("l", pa.list_(pa.field("element", pa.struct([("x", pa.int32()), ("y", pa.string())])))),
    ]
)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
ROW = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | TEXT,
        "d": st.none() | st.dates(date(1600, 1, 1), date(9999, 12, 31)),
        "f": st.none() | st.floats(),
        "b": st.none() | st.booleans(),
        "n": st.none() | st.decimals(Decimal("-9999.99"), Decimal("9999.99"), places=2, allow_nan=False),
        "t": st.none() | st.datetimes(datetime(1700, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)),
        "l": st.none()
        | st.lists(st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "y": st.none() | TEXT}), max_size=3),
    }
)
PARTITIONS = st.lists(st.sampled_from(["i", "s", "d", "f", "b", "n", "t"]), unique=True, max_size=2)


def comparable(row: dict[str, Any], partitions: list[str]) -> str:
    """A row as text in which NaN equals itself. An empty text is null in a partition column."""
    return repr([None if name in partitions and row[name] == "" else row[name] for name in SCHEMA.names])


@settings(deadline=None, max_examples=examples(40))
@given(
    rows=st.lists(ROW, max_size=25),
    partitions=PARTITIONS,
    batch_rows=st.integers(1, 9),
    mapped=st.booleans(),
    limit=st.sampled_from([1, 300, 10**9]),
)
def test_rows_written_in_any_layout_read_back_as_they_were(
    rows: list[dict[str, Any]], partitions: list[str], batch_rows: int, mapped: bool, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as root:
        store = LocalStore(root)
        request = WriteRequest("append", partitions, configuration={"delta.columnMapping.mode": "name"} if mapped else None)
        plan = plan_write(store, from_arrow_schema(SCHEMA), request)
        assert not isinstance(plan, NothingToDo)
        layout = FileLayout(buffer_bytes=limit, row_group_bytes=limit, target_file_bytes=limit, max_open_files=2)
        state = replace(plan.state, layout=layout)
        batches = pa.Table.from_pylist(rows, schema=SCHEMA).to_batches(max_chunksize=batch_rows)
        written = write_files(state, batches)
        assert written.row_count == len(rows)
        commit_write(store, plan, [written])
        read_rows = DeltaTable(root).to_arrow()
        assert read_rows.schema.names == SCHEMA.names
        expected = Counter(comparable(row, partitions) for row in pa.Table.from_pylist(rows, schema=SCHEMA).to_pylist())
        assert Counter(comparable(row, []) for row in read_rows.to_pylist()) == expected


@settings(deadline=None, max_examples=examples(40))
@given(
    rows=st.lists(ROW, min_size=1, max_size=25),
    partitions=PARTITIONS,
    column=st.sampled_from(["i", "s", "d", "n", "t", "b"]),
    pick=st.integers(0, 24),
    op=st.sampled_from(["=", "<", ">="]),
)
def test_filter_over_written_statistics_loses_no_row(
    rows: list[dict[str, Any]], partitions: list[str], column: str, pick: int, op: str
) -> None:
    bound = rows[pick % len(rows)][column]
    if bound is None or (column in partitions and bound == ""):
        return
    with tempfile.TemporaryDirectory() as root:
        store = LocalStore(root)
        plan = plan_write(store, from_arrow_schema(SCHEMA), WriteRequest("append", partitions))
        assert not isinstance(plan, NothingToDo)
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        parts = [write_files(plan.state, [batch], task=n) for n, batch in enumerate(table.to_batches(max_chunksize=5))]
        commit_write(store, plan, parts)
        values = [row[column] for row in DeltaTable(root).to_arrow().to_pylist()]
        matching_values = [row[column] for row in DeltaTable(root).to_arrow(filter=f"{column} {op} {literal(bound)}").to_pylist()]
    compare = {"=": lambda v: v == bound, "<": lambda v: v < bound, ">=": lambda v: v >= bound}[op]
    if column == "s":
        compare = {
            "=": lambda v: v == bound,
            "<": lambda v: v.encode() < bound.encode(),
            ">=": lambda v: v.encode() >= bound.encode(),
        }[op]
    assert Counter(matching_values) == Counter(value for value in values if value is not None and compare(value))


def literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value}L" if value > -(2**63) else "(-9223372036854775807L - 1L)"
        case Decimal():
            return f"{value}BD"
        case datetime():
            return f"timestamp'{value:%Y-%m-%d %H:%M:%S.%f}Z'"
        case date():
            return f"date'{value.isoformat()}'"
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in value)
    return f"'{escaped}'"
