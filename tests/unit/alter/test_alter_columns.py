"""Columns added, renamed, dropped, changed, replaced; SYNC IDENTITY. tests/interop compares the commits with delta-spark's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import delta_py.alter.sync_identity as sync_identity_module
from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.alter.alter_columns import (
    add_columns,
    change_columns,
    commit_schema,
    drop_columns,
    rename_column,
    replace_columns,
)
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.alter.sync_identity import sync_identity
from delta_py.commit.transaction import Transaction
from delta_py.definition.create import create_table, define_table
from delta_py.definition.protocols import with_features
from delta_py.errors import ConcurrentAppendException, DeltaError, MetadataChangedException, UnsupportedOperationError
from delta_py.protocol import identity_columns
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
    to_arrow_type,
)
from delta_py.types.schema_edits import edit_field

NAME = {"delta.columnMapping.mode": "name"}
WIDE = {"delta.enableTypeWidening": "true"}
ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "s": [{"a": 1, "b": "x"}, None],
        "l": [[{"x": 1}], []],
        "p": pa.array([7, 8], pa.int32()),
    }
)


def made(path: Path, rows: pa.Table = ROWS, partition_by: str | None = "p", **configuration: str) -> ObjectStore:
    by = [] if partition_by is None else [partition_by]
    write_delta(str(path), rows, partition_by=by, configuration={k.replace("__", "."): v for k, v in configuration.items()})
    return LocalStore(str(path))


def mapped(path: Path, **more: str) -> ObjectStore:
    return made(path, delta__columnMapping__mode="name", **more)


def rows_of(store: ObjectStore, *columns: str) -> list[Any]:
    return DeltaTable(store.root).to_arrow(list(columns) or None).to_pylist()


def refusal(run: Callable[[], Any]) -> str | None:
    with pytest.raises(DeltaError) as caught:
        run()
    assert "Nothing was" in caught.value.message or "is not in the schema" in caught.value.message
    return caught.value.error_class


# ---------------------------------------------------------------- add


def test_added_columns_are_null_in_old_rows_and_set_in_new_rows(tmp_path: Path) -> None:
    store = made(tmp_path)
    assert add_columns(store, [NewColumn("x", LONG, after="id"), NewColumn("s.c", STRING, first=True)]) == 1
    assert DeltaTable(store.root).schema().names == ["id", "x", "s", "l", "p"]
    new = pa.table(
        {"id": pa.array([3], pa.int32()), "x": [9], "s": [{"c": "n", "a": 3, "b": "y"}], "p": pa.array([7], pa.int32())}
    )
    write_delta(store.root, new, mode="append")
    values_by_id = {row["id"]: (row["x"], row["s"]) for row in rows_of(store)}
    assert values_by_id == {1: (None, {"c": None, "a": 1, "b": "x"}), 2: (None, None), 3: (9, {"c": "n", "a": 3, "b": "y"})}


def test_added_columns_of_a_mapped_table_never_reuse_ids(tmp_path: Path) -> None:
    store = mapped(tmp_path)
    before = int(Snapshot.load(store).metadata.configuration["delta.columnMapping.maxColumnId"])
    add_columns(store, [NewColumn("x", StructType((StructField("y", LONG),)))])
    drop_columns(store, ["x"])
    add_columns(store, [NewColumn("x", LONG)])
    field = Snapshot.load(store).schema.find("x")
    assert field is not None and field.metadata["delta.columnMapping.id"] == before + 3
    assert rows_of(store, "x") == [{"x": None}, {"x": None}]


def test_add_columns_keeps_char_lengths_inside_a_struct(tmp_path: Path) -> None:
    inner = StructType((StructField("v", PrimitiveType("varchar(3)")),))
    create_table(LocalStore(str(tmp_path)), define_table(StructType((StructField("s", inner),))))
    store = LocalStore(str(tmp_path))
    add_columns(store, [NewColumn("s.w", PrimitiveType("varchar(2)")), NewColumn("t", PrimitiveType("char(4)"))])
    write_delta(store.root, pa.table({"s": [{"v": "abc", "w": "ab"}], "t": ["a"]}), mode="append")
    for bad in ({"v": "abcd", "w": "a"}, {"v": "a", "w": "abc"}):
        with pytest.raises(DeltaError) as caught:
            write_delta(store.root, pa.table({"s": [bad], "t": ["a"]}), mode="append")
        assert caught.value.error_class == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"


@pytest.mark.parametrize(
    ("column", "condition"),
    [
        (NewColumn("x", LONG, nullable=False), "DELTA_OPERATION_NOT_ALLOWED"),
        (NewColumn("x", StructType((StructField("y", LONG, False),))), "DELTA_OPERATION_NOT_ALLOWED"),
        (NewColumn("x", LONG, metadata={"delta.generationExpression": "1"}), "DELTA_OPERATION_NOT_ALLOWED"),
        (NewColumn("x", LONG, default="nope"), "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
        (NewColumn("x", LONG, default="1"), "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"),
        (NewColumn("ID", LONG), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (NewColumn("a b", LONG), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (NewColumn("x", LONG, after="nowhere"), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (NewColumn("nowhere.x", LONG), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (NewColumn("id.x", LONG), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        (NewColumn("l.x", LONG), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        (NewColumn("x", TIMESTAMP_NTZ), "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"),
    ],
)
def test_column_that_cannot_be_added_is_refused(tmp_path: Path, column: NewColumn, condition: str) -> None:
    store = made(tmp_path)
    with pytest.raises(DeltaError) as caught:
        add_columns(store, [column])
    assert caught.value.error_class == condition
    assert Snapshot.load(store).version == 0


# ---------------------------------------------------------------- rename and drop


def test_renamed_columns_keep_rows_statistics_and_partitions(tmp_path: Path) -> None:
    store = mapped(tmp_path, delta__dataSkippingStatsColumns="`id`,s.a")
    rename_column(store, "id", "key")
    rename_column(store, "p", "q")
    rename_column(store, "S.a", "x.y")
    table = DeltaTable(store.root)
    assert list(table.metadata.partition_columns) == ["q"]
    assert table.metadata.configuration["delta.dataSkippingStatsColumns"] == "key,s.`x.y`"
    assert sorted((row["key"], row["q"]) for row in rows_of(store)) == [(1, 7), (2, 8)]
    assert table.scan(filter="key = 2").files.num_rows == 1
    assert table.scan(filter="q = 7").files.num_rows == 1
    write_delta(store.root, pa.table({"key": pa.array([3], pa.int32()), "q": pa.array([7], pa.int32())}), mode="append")
    assert len(rows_of(store)) == 3


def test_change_feed_goes_on_across_a_rename(tmp_path: Path) -> None:
    store = mapped(tmp_path, delta__enableChangeDataFeed="true")
    rename_column(store, "id", "key")
    DeltaTable(store.root).delete("key = 1")
    changes = DeltaTable(store.root).changes(starting_version=1).read_all().to_pylist()
    assert [(row["key"], row["_change_type"]) for row in changes] == [(1, "delete")]


def test_dropped_columns_remain_readable_in_older_versions(tmp_path: Path) -> None:
    store = mapped(tmp_path)
    assert drop_columns(store, ["id", "s.b", "s.B"]) == 1
    assert sorted(row["p"] for row in rows_of(store)) == [7, 8]
    assert rows_of(store, "s")[0] in ({"s": {"a": 1}}, {"s": None})
    assert sorted(row["id"] for row in DeltaTable(store.root, version=0).to_arrow().to_pylist()) == [1, 2]
    assert drop_columns(store, ["id"], if_exists=True) == 1


REFUSED_CHANGES: dict[str, tuple[Callable[[ObjectStore], Any], str]] = {
    "drop the partitioning": (lambda store: drop_columns(store, ["p"]), "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
    "drop the element": (
        lambda store: drop_columns(store, ["l.element"]),
        "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
    ),
    "drop the last": (lambda store: drop_columns(store, ["l.element.x"]), "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"),
    "drop all data": (lambda store: drop_columns(store, ["id", "s", "l"]), "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
    "drop what is not there": (lambda store: drop_columns(store, ["x"]), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    "rename the element": (lambda store: rename_column(store, "l.element", "x"), "DELTA_UNSUPPORTED_RENAME_COLUMN"),
    "rename to another": (lambda store: rename_column(store, "id", "P"), "DELTA_DUPLICATE_COLUMNS_FOUND"),
    "rename what is below nothing": (lambda store: rename_column(store, "id.x", "y"), "DELTA_COLUMN_PATH_NOT_NESTED"),
}


@pytest.mark.parametrize("name", REFUSED_CHANGES)
def test_change_of_names_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    store = mapped(tmp_path)
    run, condition = REFUSED_CHANGES[name]
    with pytest.raises(DeltaError) as caught:
        run(store)
    assert caught.value.error_class == condition
    assert Snapshot.load(store).version == 0


@pytest.mark.parametrize("column", ["id", "s", "s.a"])
@pytest.mark.parametrize("kind", ["check", "unreadable", "generated"])
def test_column_in_a_rule_cannot_be_renamed_dropped_or_retyped(tmp_path: Path, column: str, kind: str) -> None:
    rules = {"check": "id + s.a > 0", "unreadable": "nobody_knows(id, s.a) > 0"}
    generated = StructField("g", INTEGER, metadata={"delta.generationExpression": "id + s.a"} if kind == "generated" else {})
    fields = (
        StructField("id", INTEGER),
        StructField("s", StructType((StructField("a", INTEGER), StructField("b", INTEGER)))),
        generated,
    )
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(StructType(fields), configuration={**NAME, **WIDE}))
    if kind != "generated":
        _set_rule(store, rules[kind])
    condition = f"DELTA_{'GENERATED_COLUMNS' if kind == 'generated' else 'CONSTRAINT'}_DEPENDENT_COLUMN_CHANGE"
    version = Snapshot.load(store).version
    assert refusal(lambda: rename_column(store, column, "new")) == condition
    assert refusal(lambda: drop_columns(store, [column])) == condition
    if column != "s":
        assert refusal(lambda: change_columns(store, [ColumnChange(column, data_type=LONG)])) == condition
    assert Snapshot.load(store).version == version
    if kind == "unreadable":
        assert refusal(lambda: rename_column(store, "s.b", "c")) == condition
    else:
        assert rename_column(store, "s.b", "c") == version + 1


def test_generated_column_keeps_the_type_of_what_generates_it(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    fields = (StructField("id", LONG), StructField("g", LONG, metadata={"delta.generationExpression": "id * 2"}))
    create_table(store, define_table(StructType(fields), configuration=WIDE))
    change = ColumnChange("g", data_type=DecimalType(20, 0))
    assert refusal(lambda: change_columns(store, [change])) == "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"
    assert Snapshot.load(store).version == 0


def _set_rule(store: ObjectStore, sql: str) -> None:
    snapshot = Snapshot.load(store)
    metadata = replace(snapshot.metadata, configuration={**snapshot.metadata.configuration, "delta.constraints.c": sql})
    protocol = with_features(snapshot.protocol, {"checkConstraints"})
    Transaction(snapshot).set_metadata(metadata).set_protocol(protocol).commit("ADD CONSTRAINT", {})


def test_column_with_an_invariant_can_be_dropped_and_not_renamed(tmp_path: Path) -> None:
    invariant = {"delta.invariants": orjson.dumps({"expression": {"expression": "id > 0"}}).decode()}
    store = LocalStore(str(tmp_path))
    create_table(
        store, define_table(StructType((StructField("id", LONG, True, invariant), StructField("x", LONG))), configuration=NAME)
    )
    assert refusal(lambda: rename_column(store, "id", "key")) == "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    assert drop_columns(store, ["id"]) == 1


def test_index_of_a_column_outlives_its_name_and_not_its_type(tmp_path: Path) -> None:
    store = mapped(tmp_path, delta__enableTypeWidening="true")
    DeltaTable(store.root).index.create("id")
    rename_column(store, "id", "key")
    more = pa.table({"key": pa.array([3], pa.int32()), "p": pa.array([7], pa.int32())})
    write_delta(store.root, more, mode="append")
    assert rows_of_filter(store, "key = 1") == 1
    change_columns(store, [ColumnChange("key", data_type=LONG)])
    write_delta(store.root, pa.table({"key": [1], "p": pa.array([7], pa.int32())}), mode="append")
    assert rows_of_filter(store, "key = 1") == 2
    drop_columns(store, ["key"])
    write_delta(store.root, pa.table({"p": pa.array([7], pa.int32())}), mode="append")
    assert len(rows_of(store)) == 5


def rows_of_filter(store: ObjectStore, text: str) -> int:
    return int(DeltaTable(store.root).to_arrow(["p"], filter=text).num_rows)


def test_clustering_column_and_its_parents_cannot_be_dropped(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    fields = (StructField("id", INTEGER), StructField("s", StructType((StructField("a", INTEGER), StructField("b", INTEGER)))))
    create_table(store, define_table(StructType(fields), cluster_by=["s.a"], configuration=NAME))
    for name in ("s", "s.a"):
        assert refusal(lambda name=name: drop_columns(store, [name])) == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    assert rename_column(store, "s.a", "x") == 1
    assert drop_columns(store, ["s.b"]) == 2


# ---------------------------------------------------------------- types

WIDENINGS: list[tuple[DataType, DataType, Any]] = [
    (SHORT, LONG, 2),
    (INTEGER, DOUBLE, 2),
    (INTEGER, DecimalType(12, 2), 2),
    (LONG, DecimalType(20, 0), 2),
    (FLOAT, DOUBLE, 0.1),
    (DecimalType(5, 2), DecimalType(8, 4), "1.25"),
    (DATE, TIMESTAMP_NTZ, "2024-01-02"),
]


@pytest.mark.parametrize(("old", "new", "value"), WIDENINGS)
@pytest.mark.parametrize("shape", ["column", "partition", "nested"])
def test_widened_column_reads_old_and_new_files(tmp_path: Path, old: DataType, new: DataType, value: Any, shape: str) -> None:
    store = LocalStore(str(tmp_path))
    nested = StructType((StructField("m", MapType(STRING, ArrayType(old))),))
    fields = (StructField("id", INTEGER), StructField("c", nested if shape == "nested" else old))
    features = {"delta.feature.timestampNtz": "supported"}
    by = ["c"] if shape == "partition" else []
    create_table(store, define_table(StructType(fields), partition_by=by, configuration={**WIDE, **features}))
    one = (
        pa.array([value], pa.string()).cast(to_arrow_type(old))
        if isinstance(value, str)
        else pa.array([value], to_arrow_type(old))
    )

    def rows(number: int, values: pa.Array) -> pa.Table:
        if shape == "nested":
            maps = pa.array([[("k", [values[0].as_py()])]], pa.map_(pa.string(), pa.list_(values.type)))
            values = pa.StructArray.from_arrays([maps], ["m"])
        return pa.table({"id": pa.array([number], pa.int32()), "c": values})

    write_delta(store.root, rows(1, one), mode="append")
    DeltaTable(store.root).checkpoint()
    path = "c.m.value.element" if shape == "nested" else "c"
    change_columns(store, [ColumnChange(path, data_type=new)])
    wide = one.cast(to_arrow_type(new))
    if old == FLOAT and shape == "partition":
        wide = pa.array([value])  # the text in the log is read as a double
    write_delta(store.root, rows(2, wide), mode="append")
    table_data = DeltaTable(store.root).to_arrow().sort_by("id")
    first, second = table_data["c"].to_pylist()
    assert first == second
    record = orjson.loads(Snapshot.load(store).metadata.schema_string)["fields"][1]
    where = record["type"]["fields"][0] if shape == "nested" else record
    assert [change.get("fieldPath") for change in where["metadata"]["delta.typeChanges"]] == (
        ["value.element"] if shape == "nested" else [None]
    )
    if shape != "nested":
        text = {FLOAT: "c > 0.0999 and c < 0.11", DATE: "c = date'2024-01-02'"}.get(old, f"c = {value}")
        assert DeltaTable(store.root).to_arrow(["id"], filter=text).num_rows == 2


def test_type_that_needs_rows_written_anew_is_refused(tmp_path: Path) -> None:
    store = made(tmp_path)
    condition = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    assert refusal(lambda: change_columns(store, [ColumnChange("id", data_type=LONG)])) == condition, "widening is not on"
    wide = made(tmp_path / "wide", **{"delta__enableTypeWidening": "true"})
    for new in (SHORT, STRING, FLOAT, DecimalType(9, 0), DecimalType(11, 2)):
        assert refusal(lambda new=new: change_columns(wide, [ColumnChange("id", data_type=new)])) == condition
    assert refusal(lambda: change_columns(wide, [ColumnChange("s", data_type=LONG)])) == "DELTA_CANNOT_UPDATE_STRUCT_FIELD"
    assert refusal(lambda: change_columns(wide, [ColumnChange("l", data_type=LONG)])) == "DELTA_CANNOT_UPDATE_ARRAY_FIELD"


# ---------------------------------------------------------------- comments, nulls, defaults, places


def test_change_of_nothing_commits_nothing(tmp_path: Path) -> None:
    store = made(tmp_path)
    assert change_columns(store, [ColumnChange("id", comment="k")]) == 1
    assert change_columns(store, [ColumnChange("id", comment="k", nullable=True, data_type=INTEGER, first=True)]) == 1


def test_moved_columns_keep_their_rows(tmp_path: Path) -> None:
    store = made(tmp_path)
    change_columns(store, [ColumnChange("p", first=True), ColumnChange("id", after="s"), ColumnChange("s.b", first=True)])
    table = DeltaTable(store.root)
    assert table.schema().names == ["p", "s", "id", "l"]
    assert {row["id"]: row["s"] for row in rows_of(store)} == {1: {"b": "x", "a": 1}, 2: None}


def test_not_null_can_be_dropped_and_not_set(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(StructType((StructField("id", LONG, False), StructField("x", LONG)))))
    change_columns(store, [ColumnChange("id", nullable=True)])
    write_delta(store.root, pa.table({"id": pa.array([None], pa.int64())}), mode="append")
    assert (
        refusal(lambda: change_columns(store, [ColumnChange("x", nullable=False)]))
        == "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    )


def test_default_holds_for_rows_that_come_and_can_be_dropped(tmp_path: Path) -> None:
    store = made(tmp_path, delta__feature__allowColumnDefaults="supported")
    change_columns(store, [ColumnChange("id", default="3 + 4")])
    write_delta(store.root, pa.table({"p": pa.array([9], pa.int32())}), mode="append")
    assert sorted(row["id"] for row in rows_of(store)) == [1, 2, 7]
    change_columns(store, [ColumnChange("id", drop_default=True)])
    assert "CURRENT_DEFAULT" not in Snapshot.load(store).metadata.schema_string
    assert refusal(lambda: change_columns(store, [ColumnChange("id", default="'x'")])) == "INVALID_DEFAULT_VALUE.DATA_TYPE"
    assert refusal(lambda: change_columns(store, [ColumnChange("id", default="p + 1")])) == "INVALID_DEFAULT_VALUE.NOT_CONSTANT"
    plain = made(tmp_path / "plain")
    condition = "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"
    assert refusal(lambda: change_columns(plain, [ColumnChange("id", default="1")])) == condition


def test_nested_default_is_stored_but_rows_must_have_the_field(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    inner = StructType((StructField("a", LONG), StructField("b", LONG)))
    configuration = {"delta.feature.allowColumnDefaults": "supported"}
    schema = StructType((StructField("id", LONG), StructField("st", inner)))
    create_table(store, define_table(schema, configuration=configuration))
    assert refusal(lambda: change_columns(store, [ColumnChange("st.a", default="'x'")])) == "INVALID_DEFAULT_VALUE.DATA_TYPE"
    change_columns(store, [ColumnChange("st.a", default="5")])
    (st,) = [f for f in Snapshot.load(store).schema.fields if f.name == "st"]
    assert isinstance(st.data_type, StructType) and st.data_type.fields[0].metadata == {"CURRENT_DEFAULT": "5"}
    write_delta(store.root, pa.table({"id": [1]}), mode="append")
    shape = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    write_delta(store.root, pa.table({"id": [2], "st": pa.array([{"a": None, "b": 7}], shape)}), mode="append")
    lacking = pa.table({"id": [3], "st": [{"b": 7}]})
    assert refusal(lambda: write_delta(store.root, lacking, mode="append")) == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert sorted(rows_of(store), key=lambda row: row["id"]) == [{"id": 1, "st": None}, {"id": 2, "st": {"a": None, "b": 7}}]
    change_columns(store, [ColumnChange("st.a", drop_default=True)])
    assert "CURRENT_DEFAULT" not in Snapshot.load(store).metadata.schema_string


def test_replace_columns_changes_comments_order_and_columns(tmp_path: Path) -> None:
    store = mapped(tmp_path, delta__enableTypeWidening="true")
    fields = (
        StructField("p", INTEGER),
        StructField("id", LONG, metadata={"comment": "key"}),
        StructField("s", StructType((StructField("a", LONG),))),
    )
    assert replace_columns(store, StructType(fields)) == 1
    assert sorted((row["id"], row["p"]) for row in rows_of(store)) == [(1, 7), (2, 8)]
    condition = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
    assert refusal(lambda: replace_columns(store, StructType((*fields[:2], StructField("n", LONG))))) == condition
    assert refusal(lambda: replace_columns(store, StructType((*fields, StructField("n", LONG, False))))) == condition
    assert refusal(lambda: replace_columns(store, StructType(fields[1:]))) == "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"
    assert refusal(lambda: replace_columns(made(tmp_path / "plain"), StructType(fields[:2]))) == condition


def test_replaced_columns_keep_char_lengths_in_either_form(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(StructType((StructField("v", PrimitiveType("varchar(3)")), StructField("x", LONG)))))
    declared = Snapshot.load(store).schema.fields[0]
    assert replace_columns(store, StructType((StructField("x", LONG), declared))) == 1
    assert replace_columns(store, StructType((StructField("v", PrimitiveType("varchar(5)")), StructField("x", LONG)))) == 2
    write_delta(store.root, pa.table({"v": ["abcde"]}), mode="append")
    with pytest.raises(DeltaError) as caught:
        write_delta(store.root, pa.table({"v": ["abcdef"]}), mode="append")
    assert caught.value.error_class == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"


# ---------------------------------------------------------------- beside other writers


def test_alter_follows_an_append_and_is_stopped_by_another_alter(tmp_path: Path) -> None:
    store = made(tmp_path)

    def beside(other: Callable[[], Any]) -> int:
        snapshot = Snapshot.load(store)
        other()
        schema = StructType((*snapshot.schema.fields, StructField(f"x{snapshot.version}", LONG)))
        return commit_schema(snapshot, schema, "ADD COLUMNS", {})

    assert beside(lambda: write_delta(store.root, ROWS, mode="append")) == 2
    assert len(rows_of(store)) == 4
    with pytest.raises(MetadataChangedException):
        beside(lambda: add_columns(store, [NewColumn("y", LONG)]))


# ---------------------------------------------------------------- identity


def identity_table(path: Path, start: int = 1, step: int = 1) -> ObjectStore:
    column = {identity_columns.START: start, identity_columns.STEP: step, identity_columns.ALLOW_EXPLICIT_INSERT: True}
    store = LocalStore(str(path))
    create_table(store, define_table(StructType((StructField("id", LONG, metadata=column), StructField("x", LONG)))))
    return store


@pytest.mark.parametrize(
    ("start", "step", "given_ids", "mark"), [(1, 1, [5, 17], 17), (1, 10, [5, 17], 21), (0, -5, [-7], -10), (100, 1, [5], None)]
)
@pytest.mark.parametrize("deletes", [False, True])
def test_sync_identity_brings_the_mark_behind_the_values_of_rows(
    tmp_path: Path, start: int, step: int, given_ids: list[int], mark: int | None, deletes: bool
) -> None:
    store = identity_table(tmp_path, start, step)
    write_delta(store.root, pa.table({"id": [*given_ids, start - step], "x": [1] * (len(given_ids) + 1)}), mode="append")
    if deletes:  # by a vector, so that the log does not show the last value
        set_properties(store, {"delta.enableDeletionVectors": "true"})
        DeltaTable(store.root).delete(f"id = {start - step}")
    before = Snapshot.load(store).version
    assert sync_identity(store, "ID") == (before if mark is None else before + 1)
    mark_value = Snapshot.load(store).schema.fields[0].metadata.get(identity_columns.HIGH_WATER_MARK)
    assert mark_value == mark
    assert sync_identity(store, "id") == Snapshot.load(store).version
    write_delta(store.root, pa.table({"x": [2]}), mode="append")
    new = [row["id"] for row in rows_of(store) if row["x"] == 2]
    assert new == [start if mark is None else mark + step]


@pytest.mark.parametrize(
    "change", [ColumnChange("id", nullable=True), ColumnChange("id", drop_default=True), ColumnChange("id", default="3")]
)
def test_rules_of_an_identity_column_stay(tmp_path: Path, change: ColumnChange) -> None:
    store = identity_table(tmp_path)
    assert refusal(lambda: change_columns(store, [change])) == "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"
    before = Snapshot.load(store).version
    change_columns(store, [ColumnChange("id", comment="numbers")])
    assert Snapshot.load(store).version == before + 1


def test_sync_identity_of_another_column_is_refused(tmp_path: Path) -> None:
    store = identity_table(tmp_path)
    assert refusal(lambda: sync_identity(store, "x")) == "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"


def test_sync_identity_meets_rows_that_came_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = identity_table(tmp_path)
    write_delta(store.root, pa.table({"id": [5], "x": [1]}), mode="append")
    furthest = sync_identity_module._find_furthest

    def late(*arguments: Any) -> int | None:
        last_value = furthest(*arguments)
        write_delta(store.root, pa.table({"id": [9], "x": [1]}), mode="append")
        return last_value

    monkeypatch.setattr(sync_identity_module, "_find_furthest", late)
    with pytest.raises(ConcurrentAppendException):
        sync_identity(store, "id")


def test_schema_change_accepts_unreadable_existing_defaults(tmp_path: Path) -> None:
    store = made(tmp_path, delta__feature__allowColumnDefaults="supported")
    snapshot = Snapshot.load(store)
    odd = edit_field(snapshot.schema, ("id",), lambda f: replace(f, metadata={"CURRENT_DEFAULT": "nobody_knows(1)"}))
    Transaction(snapshot).set_metadata(replace(snapshot.metadata, schema_string=schema_to_json(odd))).commit("SET", {})
    add_columns(store, [NewColumn("late", LONG)])
    change_columns(store, [ColumnChange("id", comment="odd")])
    wider = pa.table({"id": pa.array([7], pa.int32()), "p": pa.array([9], pa.int32()), "more": [1]})
    write_delta(store.root, wider, mode="append", merge_schema=True)
    assert Snapshot.load(store).schema.names[-2:] == ("late", "more")


def test_no_column_gets_a_type_that_no_table_can_hold(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(StructType((StructField("id", LONG),))))
    strange = PrimitiveType("interval day to second")
    for kind in (strange, ArrayType(strange), StructType((StructField("x", strange),))):
        with pytest.raises(UnsupportedOperationError, match=r"strange: interval day to second") as refused:
            add_columns(store, [NewColumn("strange", kind)])
        assert refused.value.error_class == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert Snapshot.load(store).version == 0
    with pytest.raises(UnsupportedOperationError, match="i: time"):
        define_table(StructType((StructField("i", PrimitiveType("time(6)")),)))


def test_add_columns_accepts_existing_columns_of_unknown_types(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(StructType((StructField("id", LONG), StructField("odd", STRING)))))
    snapshot = Snapshot.load(store)
    text = snapshot.metadata.schema_string.replace('"string"', '"interval day to second"')
    Transaction(snapshot).set_metadata(replace(snapshot.metadata, schema_string=text)).commit("ALTER", {})
    assert add_columns(store, [NewColumn("more", LONG)]) == 2
