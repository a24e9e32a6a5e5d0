"""Columns whose name is the empty text: pydelta makes none, and can use tables of other writers that have one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable
from delta_py.alter.alter_columns import add_columns, change_columns, rename_column, replace_columns
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.definition.create import define_table
from delta_py.errors import SchemaMismatchError
from delta_py.row_changes.write import write_delta
from delta_py.row_rules import new_columns
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, STRING, ArrayType, MapType, StructField, StructType

NAMELESS = StructType((StructField("", LONG),))
ROWS = pa.table({"id": [1], "s": pa.array([{"x": 1}])})
MAPPED = {"delta.columnMapping.mode": "name"}
NAMELESS_ROWS = {
    "top": pa.table({"id": [1], "": [2]}),
    "struct": pa.table({"id": [1], "s": pa.array([{"": 2}], pa.struct([("", pa.int64())]))}),
    "list": pa.table({"id": [1], "s": pa.array([[{"": 2}]], pa.list_(pa.struct([("", pa.int64())])))}),
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    write_delta(str(tmp_path), ROWS, configuration=MAPPED)
    return str(tmp_path)


def refuses(change: Callable[[], object], expected_text: str = "has the empty text as its name") -> None:
    with pytest.raises(SchemaMismatchError, match=expected_text) as caught:
        change()
    assert caught.value.error_class == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"


@pytest.mark.parametrize("place", NAMELESS_ROWS)
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_create_with_an_empty_name_is_refused(tmp_path: Path, place: str, mode: str) -> None:
    configuration = {"delta.columnMapping.mode": mode}
    refuses(lambda: write_delta(str(tmp_path / "t"), NAMELESS_ROWS[place], configuration=configuration))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("schema", "expected_text"),
    [
        (NAMELESS, "A column has"),
        (StructType((StructField("m", MapType(STRING, ArrayType(NAMELESS))),)), "A field of column m.value.element has"),
        (StructType((StructField("s", NAMELESS),)), "A field of column s has"),
    ],
    ids=["top", "map of lists", "struct"],
)
def test_definition_with_an_empty_name_is_refused_by_its_place(schema: StructType, expected_text: str) -> None:
    refuses(lambda: define_table(schema, configuration=MAPPED), expected_text)


CHANGES: dict[str, Callable[[str], object]] = {
    "merge_schema": lambda table: write_delta(table, NAMELESS_ROWS["top"], mode="append", merge_schema=True),
    "merge_schema nested": lambda table: write_delta(table, NAMELESS_ROWS["struct"], mode="append", merge_schema=True),
    "overwrite_schema": lambda table: write_delta(table, NAMELESS_ROWS["top"], mode="overwrite", overwrite_schema=True),
    "add": lambda table: add_columns(LocalStore(table), [NewColumn(("",), LONG)]),
    "add nested": lambda table: add_columns(LocalStore(table), [NewColumn(("s", ""), LONG)]),
    "add a struct": lambda table: add_columns(LocalStore(table), [NewColumn(("t",), NAMELESS)]),
    "rename": lambda table: rename_column(LocalStore(table), "id", ""),
    "rename nested": lambda table: rename_column(LocalStore(table), "s.x", ""),
    "replace": lambda table: replace_columns(
        LocalStore(table), StructType((*DeltaTable(table).snapshot.schema.fields, StructField("", LONG)))
    ),
    "alter": lambda table: DeltaTable(table).alter.add_columns(pa.schema([("", pa.int64())])),
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_to_an_empty_name_is_refused(table: str, change: str) -> None:
    refuses(lambda: CHANGES[change](table))
    assert DeltaTable(table).version == 0


def test_conversion_of_a_file_with_an_empty_name_is_refused(tmp_path: Path) -> None:
    pq.write_table(NAMELESS_ROWS["top"], tmp_path / "a.parquet")
    with pytest.raises(SchemaMismatchError, match=r"a\.parquet.*has the empty text as its name"):
        DeltaTable.convert(str(tmp_path))


# ---------------------------------------------------------------- tables of other writers


@pytest.fixture(params=["none", "name"])
def foreign_table(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as patched:
        patched.setattr(new_columns, "_check_no_new_empty_names", lambda *_: None)
        write_delta(str(tmp_path), NAMELESS_ROWS["top"], configuration={"delta.columnMapping.mode": request.param})
    return str(tmp_path)


def test_table_with_an_empty_name_is_read_written_and_changed(foreign_table: str) -> None:
    rows, store = NAMELESS_ROWS["top"], LocalStore(foreign_table)
    assert DeltaTable(foreign_table).to_arrow().to_pylist() == [{"id": 1, "": 2}]
    write_delta(foreign_table, rows, mode="append")
    write_delta(foreign_table, rows.append_column("more", [[3]]), mode="append", merge_schema=True)
    DeltaTable(foreign_table).delete("more = 3")
    add_columns(store, [NewColumn(("other",), LONG)])
    change_columns(store, [ColumnChange("id", comment="number")])
    assert DeltaTable(foreign_table).to_arrow().select(["id", ""]).to_pylist() == [{"id": 1, "": 2}] * 2
    refuses(lambda: add_columns(store, [NewColumn(("t",), NAMELESS)]), "A field of column t has")
    refuses(lambda: write_delta(foreign_table, rows, mode="overwrite", overwrite_schema=True))
