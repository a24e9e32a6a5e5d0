"""Tables with columns and fields of type void, which are null in every row and absent from data files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter_columns import change_columns
from delta_py.alter.column_changes import ColumnChange
from delta_py.definition.create import define_table
from delta_py.definition.replace import build_table
from delta_py.errors import SchemaMismatchError, UnsupportedOperationError
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, STRING, VOID, ArrayType, StructField, StructType, from_arrow_type, type_name

ROWS: list[dict[str, Any]] = [
    {"i": 1, "v": None, "s": {"x": None, "y": 1, "t": {"u": None, "w": "a"}}},
    {"i": 2, "v": None, "s": None},
    {"i": 3, "v": None, "s": {"x": None, "y": 3, "t": None}},
]
INNER = pa.struct([("u", pa.null()), ("w", pa.string())])
SCHEMA = pa.schema([("i", pa.int64()), ("v", pa.null()), ("s", pa.struct([("x", pa.null()), ("y", pa.int64()), ("t", INNER)]))])


def rows(path: Path) -> list[dict[str, Any]]:
    sorted_rows: list[dict[str, Any]] = DeltaTable(str(path)).to_arrow().sort_by("i").to_pylist()
    return sorted_rows


def typed(i: int, x: int | None) -> pa.Table:
    return pa.table({"i": [i], "s": pa.array([{"x": x, "y": i}], pa.struct([("x", pa.int64()), ("y", pa.int64())]))})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": "false", "delta.enableChangeDataFeed": "true"}
    write_delta(str(path), pa.Table.from_pylist(ROWS, SCHEMA), configuration=properties)
    return path


def test_void_fields_are_read_and_not_in_files(table: Path) -> None:
    assert rows(table) == ROWS
    (file,) = table.glob("*.parquet")
    stored = pq.read_schema(file)
    assert stored == pa.schema(
        [("i", pa.int64()), ("s", pa.struct([("y", pa.int64()), ("t", pa.struct([("w", pa.string())]))]))]
    )
    (add,) = (action["add"] for action in map(orjson.loads, next(table.glob("_delta_log/*0.json")).open()) if "add" in action)
    assert orjson.loads(add["stats"])["nullCount"] == {"i": 0, "s": {"y": 1, "t": {"w": 2}}}


def test_void_fields_stay_through_changes_of_rows(table: Path) -> None:
    write_delta(str(table), pa.Table.from_pylist([{"i": 4, "s": {"y": 4}}]), mode="append")
    DeltaTable(str(table)).update({"i": "i + 10"}, predicate="s.x IS NULL AND i = 4")
    DeltaTable(str(table)).delete("i = 2")
    source = pa.Table.from_pylist([{"i": 1}, {"i": 5}])
    merge = DeltaTable(str(table)).merge(source, "t.i = s.i", "s", "t")
    merge.when_matched_update({"s.y": "100"}).when_not_matched_insert({"i": "s.i"}).execute()
    DeltaTable(str(table)).optimize.compact()
    first, third = ROWS[0]["s"], ROWS[2]
    assert rows(table) == [
        {"i": 1, "v": None, "s": {**first, "y": 100}},
        third,
        {"i": 5, "v": None, "s": None},
        {"i": 14, "v": None, "s": {"x": None, "y": 4, "t": None}},
    ]
    assert DeltaTable(str(table)).to_arrow(filter="s.x IS NOT NULL OR v = 1").num_rows == 0


def test_void_field_takes_the_type_of_data_with_merge_schema(table: Path) -> None:
    with pytest.raises(SchemaMismatchError, match=r"s\.x.*void.*mergeSchema"):
        write_delta(str(table), typed(9, 5), mode="append")
    write_delta(str(table), typed(9, 5), mode="append", merge_schema=True)
    assert [(row["i"], row["s"] and row["s"]["x"]) for row in rows(table)] == [(1, None), (2, None), (3, None), (9, 5)]
    assert DeltaTable(str(table)).to_arrow(filter="s.x = 5").column("i").to_pylist() == [9]
    assert DeltaTable(str(table)).to_arrow(filter="s.x IS NULL").num_rows == 3


def test_merge_schema_adds_void_fields(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"i": [0]}))
    write_delta(path, pa.Table.from_pylist(ROWS[:1], SCHEMA), mode="append", merge_schema=True)
    assert rows(tmp_path / "t") == [{"i": 0, "v": None, "s": None}, ROWS[0]]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_void_fields_with_column_mapping(tmp_path: Path, mode: str) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.Table.from_pylist(ROWS, SCHEMA), configuration={"delta.columnMapping.mode": mode})
    write_delta(path, typed(9, 5), mode="append", merge_schema=True)
    assert rows(tmp_path / "t")[0] == ROWS[0]
    assert rows(tmp_path / "t")[3]["s"] == {"x": 5, "y": 9, "t": None}


@pytest.mark.parametrize("widening", ["true", "false"])
def test_void_fields_take_a_type_by_alter(tmp_path: Path, widening: str) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.Table.from_pylist(ROWS, SCHEMA), configuration={"delta.enableTypeWidening": widening})
    store = LocalStore(path)
    change_columns(store, [ColumnChange("v", data_type=STRING), ColumnChange("s.x", data_type=LONG)])
    with pytest.raises(UnsupportedOperationError, match="void to struct"):
        change_columns(store, [ColumnChange("s.t.u", data_type=StructType((StructField("a", LONG),)))])
    assert rows(tmp_path / "t") == ROWS
    write_delta(path, typed(4, 5), mode="append")
    assert rows(tmp_path / "t")[3] == {"i": 4, "v": None, "s": {"x": 5, "y": 4, "t": None}}
    assert "typeChanges" not in DeltaTable(path).snapshot.metadata.schema_string


IN_COMPLEX = "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"
NO_FIELD = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS"


@pytest.mark.parametrize(
    ("column", "kind", "condition"),
    [
        ("c", pa.list_(pa.null()), IN_COMPLEX),
        ("c", pa.map_(pa.string(), pa.null()), IN_COMPLEX),
        ("c", pa.list_(pa.list_(pa.null())), IN_COMPLEX),
        ("c", pa.list_(pa.struct([("x", pa.null()), ("y", pa.int64())])), IN_COMPLEX),
        ("c", pa.map_(pa.string(), pa.struct([("x", pa.null()), ("y", pa.int64())])), IN_COMPLEX),
        ("c.a", pa.struct([("a", pa.list_(pa.null())), ("y", pa.int64())]), IN_COMPLEX),
        ("c", pa.struct([("x", pa.null())]), NO_FIELD),
        ("c.t", pa.struct([("t", pa.struct([("u", pa.null())])), ("y", pa.int64())]), NO_FIELD),
        ("c", pa.struct([]), "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_NO_FIELDS"),
    ],
)
def test_void_that_files_cannot_leave_out_is_refused(tmp_path: Path, column: str, kind: pa.DataType, condition: str) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        write_delta(str(tmp_path / "t"), pa.table({"i": [1], "c": pa.nulls(1, kind)}))
    assert caught.value.error_class == condition
    inner = kind.field(0).type if "." in column else kind
    assert f"Column {column} is {type_name(from_arrow_type(inner))}" in caught.value.message
    assert not (tmp_path / "t").exists() or not list((tmp_path / "t").rglob("*.parquet"))


@pytest.mark.parametrize("row_count", [0, 1])
def test_table_of_void_columns_alone_is_refused(tmp_path: Path, row_count: int) -> None:
    with pytest.raises(SchemaMismatchError, match="columns v, w, all of type void") as caught:
        write_delta(str(tmp_path / "t"), pa.table({"v": pa.nulls(row_count), "w": pa.nulls(row_count)}))
    assert caught.value.error_class == "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS"


def test_table_may_be_defined_with_columns_that_no_row_can_have(tmp_path: Path) -> None:
    store, kind = LocalStore(str(tmp_path)), ArrayType(VOID)
    build_table(store, "create", define_table(StructType((StructField("i", LONG), StructField("c", kind)))))
    with pytest.raises(SchemaMismatchError, match="array<void>"):
        write_delta(str(tmp_path), pa.table({"i": [1]}), mode="append")
    write_delta(str(tmp_path), pa.table({"i": [1], "c": [[2]]}), mode="append", merge_schema=True)
    assert rows(tmp_path) == [{"i": 1, "c": [2]}]


def test_rows_of_void_only_structs_can_be_moved(tmp_path: Path) -> None:
    """Other programs write such structs, with a column of nothing but nulls in the file."""
    path, kind = tmp_path / "t", pa.struct([("x", pa.null())])
    first = pa.table({"i": [1, 2, 3], "s": [{"x": 1}, None, {"x": 1}]})
    write_delta(str(path), first, configuration={"delta.enableDeletionVectors": "false"})
    (file,) = path.glob("*.parquet")
    pq.write_table(pa.table({"i": [1, 2, 3], "s": pa.array([{"x": None}, None, {"x": None}], kind)}), file)
    log = next(path.glob("_delta_log/*0.json"))
    for checksum in path.glob("_delta_log/*.crc"):
        checksum.unlink()
    lines = [orjson.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            schema = line["metaData"]["schemaString"]
            line["metaData"]["schemaString"] = schema.replace('"name":"x","type":"long"', '"name":"x","type":"void"')
        if "add" in line:
            line["add"] |= {"size": file.stat().st_size, "stats": '{"numRecords":3}'}
    log.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")
    DeltaTable(str(path)).delete("i = 1")
    assert rows(path) == [{"i": 2, "s": None}, {"i": 3, "s": {"x": None}}]
    with pytest.raises(SchemaMismatchError, match="all of type void"):
        write_delta(str(path), pa.table({"i": [4]}), mode="append")
