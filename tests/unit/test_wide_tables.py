"""Work on tables of many columns grows with their number, and not with its square.

Each case takes the CPU time of this thread for some number of columns and for eight times as many. A loop over the columns for
each column would then take 64 times as long. The smallest of several ratios counts, so that a busy machine fails no test.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.tree import Call, Column, Comparison, Literal
from delta_py.parquet.read_columns import plan_file
from delta_py.parquet.values.conform_batch import apply_converter, make_converter
from delta_py.parquet.values.rebase import LegacyCalendar
from delta_py.protocol.column_mapping import ID
from delta_py.row_changes.assigned_rows import AssignedPaths, resolve_assignments, updated_rows
from delta_py.row_changes.merge_clauses import SqlClause, resolved_clauses
from delta_py.row_changes.sql_scope import SOURCE, TARGET, Scope, Side
from delta_py.row_rules.not_null import check_not_null
from delta_py.row_rules.row_constraints import Clock, RowCheck, RowRule
from delta_py.scan.scan_state import ScanColumn
from delta_py.statistics.stats import json_to_struct
from delta_py.statistics.stats_collector import StatsCollector
from delta_py.types.schema import INTEGER, LONG, StructField, StructType, to_arrow_field, to_arrow_schema

Prepare: TypeAlias = Callable[[int], Callable[[], object]]
"""Makes what a case needs for a number of columns, and returns what is measured."""

_TIMES = 8
_MOST = 20.0
_ATTEMPTS = 5


def growth(prepare: Prepare, columns: int) -> float:
    few, many = prepare(columns), prepare(_TIMES * columns)
    few(), many()  # one-time work does not count
    ratio = float("inf")
    for _ in range(_ATTEMPTS):
        ratio = min(ratio, _seconds(many) / min(_seconds(few) for _ in range(3)))
        if ratio < _MOST:
            break
    return ratio


def _seconds(run: Callable[[], object]) -> float:
    start = time.thread_time()
    run()
    return time.thread_time() - start


def test_growth_tells_quadratic_work_from_linear() -> None:
    assert growth(lambda n: lambda: [None for _ in range(n) for _ in range(n)], 100) >= _MOST
    assert growth(lambda n: lambda: [None for _ in range(n * 500)], 100) < _MOST


# ---------------------------------------------------------------- what is measured


def schema_of(columns: int) -> StructType:
    return StructType(tuple(StructField(f"c{n}", LONG, metadata={ID: n + 1}) for n in range(columns)))


def rows_of(schema: StructType) -> pa.RecordBatch:
    columns = [pa.array([n, n + 1], pa.int64()) for n, _ in enumerate(schema.fields)]
    return pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(schema))


def struct_of(columns: int, *, null: bool = False) -> pa.RecordBatch:
    """One column, a struct with this number of fields. null: whether it is null in one of the rows."""
    rows = rows_of(schema_of(columns))
    mask = pa.array([False, null])
    return pa.record_batch({"s": pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=mask)})


def parquet_file(rows: pa.RecordBatch) -> pq.ParquetFile:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches([rows]), sink)
    return pq.ParquetFile(sink)


def find_every_column(columns: int) -> Callable[[], object]:
    fields = schema_of(columns).fields

    def find() -> None:
        schema = StructType(fields)
        assert all(schema.find(f.name.upper()) is f for f in fields)

    return find


def plan_a_file(columns: int, *, by_id: bool = False) -> Callable[[], object]:
    schema = schema_of(columns)
    ids = [to_arrow_field(f).with_metadata({"PARQUET:field_id": str(f.metadata[ID])}) for f in schema.fields]
    file = parquet_file(pa.RecordBatch.from_arrays(rows_of(schema).columns, schema=pa.schema(ids)))
    scanned = [ScanColumn(f, f) for f in schema.fields]

    def plan() -> None:
        plan = plan_file(file, scanned, LegacyCalendar(), by_id=by_id)
        assert [plan.position(place) for place in range(columns)] == list(range(columns))

    return plan


def read_a_struct(columns: int) -> Callable[[], object]:
    """Every field is a wider integer in the table than in the file."""
    rows = struct_of(columns)
    narrow = pa.struct([pa.field(f"c{n}", pa.int32()) for n in range(columns)])
    stored = rows.column(0).cast(narrow)
    file = parquet_file(pa.record_batch({"s": stored}))
    column = StructField("s", schema_of(columns))

    def read() -> None:
        plan = plan_file(file, [ScanColumn(column, column)], LegacyCalendar(), by_id=False)
        match = plan.matches[0]
        assert match is not None
        values = apply_converter(make_converter(match, stored.type, plan._context), stored)
        assert values.field(columns - 1)[0].as_py() == columns - 1

    return read


def resolve_a_merge(columns: int) -> Callable[[], object]:
    schema = schema_of(columns)
    clauses = [SqlClause("matched", "update"), SqlClause("not matched", "insert")]

    def resolve() -> None:
        target, source = Side(schema, "t", TARGET), Side(schema, "s", SOURCE)
        matched, _ = resolved_clauses(clauses, target, source, Clock(0))
        assert matched.rows is not None and len(matched.rows.makers) == columns

    return resolve


def update_one_field(columns: int) -> Callable[[], object]:
    rows = struct_of(columns, null=True)
    side = Side(StructType((StructField("s", schema_of(columns)),)))
    values = resolve_assignments(Scope((side,), Clock(0), "SET"), side, {"s.c1": "s.c2 + 1"}, "UPDATE")
    new_rows = updated_rows(side, values)
    return lambda: new_rows.compute(rows)


def evaluate_every_column(columns: int) -> Callable[[], object]:
    rows = rows_of(schema_of(columns))
    sums = [Call("+", (Column((name,)), Literal(1, INTEGER))) for name in rows.schema.names]
    return lambda: [evaluate(expression, rows) for expression in sums]


def evaluate_divisions(columns: int) -> Callable[[], object]:
    """Only some rows need the second operand."""
    rows = rows_of(schema_of(columns))
    names = rows.schema.names[2:]
    divided = [Call("/", (Literal(1, INTEGER), Column((name,)))) for name in names]
    first_rows = [Comparison("=", Column((name,)), Literal(n, LONG)) for n, name in enumerate(names, 2)]
    tested = [Call("if", (condition, value, value)) for condition, value in zip(first_rows, divided, strict=True)]
    return lambda: [evaluate(expression, rows) for expression in tested]


def check_rules(columns: int) -> Callable[[], object]:
    schema = schema_of(columns)
    rules = [RowRule("check", f"r{n}", f"c{n} >= 0") for n in range(0, columns, 10)]
    return lambda: [RowCheck(rule, schema, Clock(0)) for rule in rules]


def check_a_struct(columns: int) -> Callable[[], object]:
    rows = struct_of(columns)
    kind = StructType(tuple(StructField(f.name, LONG, nullable=False) for f in schema_of(columns).fields))
    return lambda: check_not_null(rows.column(0), kind, True, "s")


def collect_statistics(columns: int) -> Callable[[], object]:
    rows, schema = struct_of(columns, null=True), schema_of(columns)
    leaves = [("s", f.name) for f in schema.fields]

    def collect() -> None:
        collector = StatsCollector(StructType((StructField("s", schema),)), leaves)
        collector.update(rows)

    return collect


def parse_statistics(columns: int) -> Callable[[], object]:
    """As a checkpoint with statistics as structs does."""
    leaves = {(f.name,): LONG for f in schema_of(columns).fields}
    bounds = {name: n for n, (name,) in enumerate(leaves)}
    text = json.dumps({"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": bounds})
    return lambda: json_to_struct(pa.array([text, None]), leaves, tight_bounds=True)


def assign_every_column(columns: int) -> Callable[[], object]:
    def assign() -> None:
        paths = AssignedPaths("UPDATE")
        for n in range(columns):
            paths.add(("s", f"c{n}"))

    return assign


@pytest.mark.parametrize(
    ("prepare", "columns"),
    [
        pytest.param(find_every_column, 250, id="find"),
        pytest.param(plan_a_file, 150, id="plan by names"),
        pytest.param(lambda n: plan_a_file(n, by_id=True), 150, id="plan by ids"),
        pytest.param(read_a_struct, 150, id="read a struct"),
        pytest.param(resolve_a_merge, 20, id="merge"),
        pytest.param(update_one_field, 150, id="update a field"),
        pytest.param(evaluate_every_column, 150, id="expressions"),
        pytest.param(evaluate_divisions, 20, id="expressions of some rows"),
        pytest.param(check_rules, 60, id="rules"),
        pytest.param(check_a_struct, 150, id="not null"),
        pytest.param(collect_statistics, 150, id="statistics"),
        pytest.param(parse_statistics, 150, id="statistics of checkpoints"),
        pytest.param(assign_every_column, 250, id="assigned paths"),
    ],
)
def test_work_grows_with_the_number_of_columns(prepare: Prepare, columns: int) -> None:
    assert growth(prepare, columns) < _MOST


def test_update_copies_rows_of_small_files_into_one(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for first in (0, 10, 20):
        write_delta(path, pa.table({"a": [first, first + 1], "b": [first, first + 1]}), mode="append")
    metrics = DeltaTable(path).update({"b": "-1"}, predicate="a % 10 = 0")
    assert (metrics["numRemovedFiles"], metrics["numCopiedRows"]) == (3, 3)
    assert DeltaTable(path).files().num_rows == 2  # of the changed rows, and of the others
    rows = DeltaTable(path).to_arrow().sort_by("a").to_pydict()
    assert rows == {"a": [0, 1, 10, 11, 20, 21], "b": [-1, 1, -1, 11, -1, 21]}
