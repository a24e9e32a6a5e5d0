"""Reading any file, in any row groups and batches, returns the rows that Python computes from the same rows."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.expressions.tree import And, Column, Comparison, Expression, IsNull, Literal, Or
from delta_py.types.schema import INTEGER, LONG, STRING, ArrayType, DataType, MapType, StructField, StructType
from tests.support.runs.sampling import examples
from tests.support.tables.data_files import column, inline_vector, read_rows, scan_state, write_file

LEAVES = [
    (pa.int32(), INTEGER, st.integers(-3, 3)),
    (pa.int64(), LONG, st.integers(-3, 3)),
    (pa.string(), STRING, st.text("ab", max_size=2)),
]


@st.composite
def columns(draw: st.DrawFn, depth: int = 2) -> tuple[pa.DataType, DataType, st.SearchStrategy[Any]]:
    """(type in the file, type in the table, values): the table may have other struct fields than the file."""
    kind = draw(st.sampled_from(["leaf", "leaf", "wider", "list", "map", "struct"][: 6 if depth else 3]))
    if kind == "leaf":
        arrow, data_type, values = draw(st.sampled_from(LEAVES))
        return arrow, data_type, st.none() | values
    if kind == "wider":
        return pa.int32(), LONG, st.none() | st.integers(-3, 3)
    arrow, data_type, values = draw(columns(depth - 1))
    if kind == "list":
        return pa.list_(arrow), ArrayType(data_type), st.none() | st.lists(values, max_size=3)
    if kind == "map":
        pairs = st.dictionaries(st.text("xy", max_size=2), values, max_size=2).map(lambda mapping: list(mapping.items()))
        return pa.map_(pa.string(), arrow), MapType(STRING, data_type), st.none() | pairs
    other = pa.struct([("other", pa.int32()), ("Kept", arrow)])
    both = st.none() | st.fixed_dictionaries({"other": st.none() | st.integers(0, 3), "Kept": values})
    return other, StructType((StructField("kept", data_type), StructField("new", STRING))), both


def as_read(value: Any, data_type: DataType) -> Any:
    """The value of the file as a read must return it."""
    if value is None:
        return None
    match data_type:
        case ArrayType(element):
            return [as_read(item, element) for item in value]
        case MapType(_, inner):
            return [(key, as_read(item, inner)) for key, item in value]
        case StructType(fields):
            return {"kept": as_read(value["Kept"], fields[0].data_type), "new": None}
    return value


@settings(max_examples=examples(80))
@given(st.data())
def test_file_read_is_what_was_written_less_the_rows_left_out(data: st.DataObject) -> None:
    shapes = data.draw(st.lists(columns(), min_size=1, max_size=3))
    count = data.draw(st.integers(0, 30))
    rows = [{f"c{i}": data.draw(values) for i, (_, _, values) in enumerate(shapes)} | {"n": n} for n in range(count)]
    schema = pa.schema([*((f"c{i}", arrow) for i, (arrow, _, _) in enumerate(shapes)), ("n", pa.int64())])
    deleted = data.draw(st.sets(st.integers(0, max(0, count - 1)))) if count else set()
    selected = data.draw(st.none() | st.sets(st.integers(0, max(0, count - 1)))) if count else None
    with tempfile.TemporaryDirectory() as root:
        file = write_file(
            Path(root),
            "a.parquet",
            pa.Table.from_pylist(rows, schema),
            row_group_size=data.draw(st.integers(1, 12)),
            use_dictionary=data.draw(st.booleans()),
        )
        file = replace(file, deletion_vector=inline_vector(deleted) if deleted else None)
        file = replace(file, selection=None if selected is None else inline_vector(selected))
        table_columns = [column(f"c{i}", data_type) for i, (_, data_type, _) in enumerate(shapes)]
        state = scan_state(
            Path(root),
            table_columns,
            batch_rows=data.draw(st.integers(1, 40)),
            batch_bytes=data.draw(st.sampled_from([64, 1 << 20])),
        )
        read_batches = read_rows(state, file)
    remaining_rows = [row for row in rows if row["n"] not in deleted and (selected is None or row["n"] in selected)]
    assert read_batches == [{f"c{i}": as_read(row[f"c{i}"], shapes[i][1]) for i in range(len(shapes))} for row in remaining_rows]


# ---------------------------------------------------------------- predicates

COMPARISONS = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def paths() -> st.SearchStrategy[tuple[str, ...]]:
    return st.sampled_from([("a",), ("b",), ("s", "x"), ("gone",)])


def predicates() -> st.SearchStrategy[Expression]:
    literal = st.integers(-1, 21).map(lambda value: Literal(value, LONG))
    compared = st.builds(
        lambda op, path, right: Comparison(op, Column(path), right), st.sampled_from(sorted(COMPARISONS)), paths(), literal
    )
    nulls = paths().map(lambda path: IsNull(Column(path)))
    parts = st.recursive(
        compared | nulls,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(lambda operands: And(tuple(operands)))
            | st.lists(inner, min_size=1, max_size=3).map(lambda operands: Or(tuple(operands)))
        ),
        max_leaves=4,
    )
    return parts


def truth(predicate: Expression, row: dict[str, Any]) -> bool | None:
    match predicate:
        case Comparison(op, Column(path), Literal(right, _)):
            left_value = lookup(row, path)
            return None if left_value is None else COMPARISONS[op](left_value, right)
        case IsNull(Column(path)):
            return lookup(row, path) is None
        case And(operands) | Or(operands):
            values = [truth(operand, row) for operand in operands]
            decisive = isinstance(predicate, Or)
            return decisive if decisive in values else None if None in values else not decisive
    raise TypeError(predicate)


def lookup(row: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = row
    for name in path:
        value = None if value is None else value.get(name)
    return value


@settings(max_examples=examples(80))
@given(st.data())
def test_rows_read_by_a_predicate_are_those_for_which_it_is_true(data: st.DataObject) -> None:
    number = st.none() | st.integers(0, 20)
    shape = st.fixed_dictionaries({"a": number, "b": st.integers(0, 20), "s": st.none() | st.fixed_dictionaries({"x": number})})
    rows = data.draw(st.lists(shape, max_size=40))
    if data.draw(st.booleans()):
        rows.sort(key=lambda row: row["b"])  # so that row groups can be skipped
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])
    predicate = data.draw(predicates())
    struct = StructType((StructField("x", LONG),))
    every = [column("a", LONG), column("b", LONG), column("s", struct), column("gone", LONG)]
    with tempfile.TemporaryDirectory() as root:
        file = write_file(
            Path(root), "a.parquet", pa.Table.from_pylist(rows, schema), row_group_size=data.draw(st.integers(1, 15))
        )
        exact = read_rows(
            scan_state(Path(root), every[:1], filter_columns=tuple(every[1:]), predicate=predicate, drop_rows=True), file
        )
        loose = read_rows(scan_state(Path(root), every, predicate=predicate), file)
    expected = [row for row in rows if truth(predicate, row)]
    assert exact == [{"a": row["a"]} for row in expected]
    assert [row for row in loose if truth(predicate, row)] == [{**row, "gone": None} for row in expected]
