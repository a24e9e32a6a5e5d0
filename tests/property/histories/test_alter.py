"""Columns added, renamed, dropped and moved between appends, in any order: each row keeps the values that were written into its
columns.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter_columns import add_columns, change_columns, drop_columns, rename_column
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG

NAMES = [f"c{number}" for number in range(5)]
KINDS = ["add", "add", "append", "append", "rename", "drop", "move"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 99), st.integers(0, 99)), max_size=10)


class Model:
    """columns: names, and a number that tells a column from an earlier one of the same name. rows: values by these numbers."""

    def __init__(self) -> None:
        self.columns: list[tuple[str, int]] = [("key", 0), ("c0", 1)]
        self.rows: list[dict[int, int]] = []
        self.next = 2

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def shown(self) -> list[tuple[int | None, ...]]:
        return sorted((tuple(row.get(number) for _, number in self.columns) for row in self.rows), key=str)


@settings(max_examples=25)
@given(STEPS, st.booleans())
def test_rows_keep_their_values_through_changes_of_columns(steps: list[tuple[str, int, int]], checkpoints: bool) -> None:
    with tempfile.TemporaryDirectory() as path:
        model = Model()
        rows = pa.table({"key": pa.array([], pa.int64()), "c0": pa.array([], pa.int64())})
        write_delta(path, rows, configuration={"delta.columnMapping.mode": "name"})
        store = LocalStore(path)
        for kind, one, other in steps:
            step(store, model, kind, one, other)
            if checkpoints:
                DeltaTable(path).checkpoint()
        table = DeltaTable(path)
        assert table.schema().names == model.names
        read_rows = table.to_arrow().to_pylist()
        assert sorted((tuple(row[name] for name in model.names) for row in read_rows), key=str) == model.shown()


def step(store: Any, model: Model, kind: str, one: int, other: int) -> None:
    free = [name for name in NAMES if name not in model.names]
    place = 1 + one % max(1, len(model.columns) - 1)
    changeable = len(model.columns) > 1
    if kind == "append":
        chosen = [column for column in model.columns if column[0] == "key" or (one >> column[1] % 7) & 1]
        write_delta(store.root, pa.table({name: [other + number] for name, number in chosen}), mode="append")
        model.rows.append({number: other + number for _, number in chosen})
    elif kind == "add" and free:
        name, after = free[one % len(free)], other % len(model.columns)
        add_columns(store, [NewColumn(name, LONG, after=model.columns[after][0])])
        model.columns.insert(after + 1, (name, model.next))
        model.next += 1
    elif kind == "rename" and free and changeable:
        name = free[other % len(free)]
        rename_column(store, model.columns[place][0], name)
        model.columns[place] = (name, model.columns[place][1])
    elif kind == "drop" and changeable:
        drop_columns(store, [model.columns.pop(place)[0]])
    elif kind == "move" and changeable:
        column = model.columns.pop(place)
        after = other % (len(model.columns) + 1)
        previous = None if after == 0 else model.columns[after - 1][0]
        change_columns(store, [ColumnChange(column[0], first=previous is None, after=previous)])
        model.columns.insert(after, column)
