"""Tables that Iceberg may read as its own: refusals, and the content of their files and schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import add_feature, set_properties
from delta_py.alter.alter_columns import add_columns, change_columns, drop_columns, rename_column
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.commit.transaction import Transaction
from delta_py.copies.clone import shallow_clone
from delta_py.copies.convert_to_delta import ConvertRequest, convert
from delta_py.copies.restore import restore
from delta_py.definition.create import create_table, define_table
from delta_py.definition.replace import build_table, check_same_definition
from delta_py.errors import ConcurrentAppendException, DeltaError
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import OptimizeRequest
from delta_py.protocol.actions import AddFile
from delta_py.protocol.column_mapping import ID, NESTED_IDS, PHYSICAL_NAME
from delta_py.row_changes.row_commands import delete, update
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_py.types.type_walk import all_fields
from delta_py.write.data_files import WrittenFiles

VERSIONS = (1, 2, 3)
SCHEMA = StructType((StructField("day", STRING), StructField("id", LONG), StructField("at", TIMESTAMP)))
NESTED = ArrayType(MapType(STRING, StructType((StructField("x", ArrayType(INTEGER)),))))
ROWS = pa.table({"day": ["mon", "tue"], "id": pa.array([1, 2], pa.int64()), "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})


def on(version: int, **more: str) -> dict[str, str]:
    return {f"delta.enableIcebergCompatV{version}": "true", **{key.replace("__", "."): value for key, value in more.items()}}


def make(path: Path, version: int, schema: StructType = SCHEMA, partition_by: tuple[str, ...] = (), **more: str) -> ObjectStore:
    store = LocalStore(str(path))
    create_table(store, define_table(schema, partition_by=partition_by, configuration=on(version, **more)))
    return store


def field_ids(schema: pa.Schema | pa.StructType) -> dict[str, int]:
    """The field ids of every part of a Parquet file's schema that has one, by its path."""
    ids_by_path: dict[str, int] = {}

    def visit(f: pa.Field, path: str) -> None:
        if f.metadata and b"PARQUET:field_id" in f.metadata:
            ids_by_path[path] = int(f.metadata[b"PARQUET:field_id"])
        if pa.types.is_struct(f.type):
            for number in range(f.type.num_fields):
                visit(f.type.field(number), f"{path}.{f.type.field(number).name}")
        elif pa.types.is_map(f.type):
            visit(f.type.key_field, f"{path}.key")
            visit(f.type.item_field, f"{path}.value")
        elif pa.types.is_list(f.type):
            visit(f.type.value_field, f"{path}.element")

    for f in schema:
        visit(f, f.name)
    return ids_by_path


# ---------------------------------------------------------------- what is made


@pytest.mark.parametrize("version", VERSIONS)
def test_new_table_gets_what_the_version_requires(tmp_path: Path, version: int) -> None:
    config = Snapshot.load(make(tmp_path, version)).config
    assert config.column_mapping_mode == "name"
    assert {f"icebergCompatV{version}", "columnMapping"} <= set(config.features)
    assert config.enabled("rowTracking") == (version == 3)


@pytest.mark.parametrize("version", VERSIONS)
def test_files_end_with_partition_columns_and_have_row_counts(tmp_path: Path, version: int) -> None:
    store = make(tmp_path, version, partition_by=("day",), delta__dataSkippingNumIndexedCols="0")
    write_delta(store.root, ROWS, mode="append")
    write_delta(store.root, ROWS.set_column(1, "id", pa.array([3, 4], pa.int64())), mode="append")
    update(store, {"id": "id + 10"}, predicate="id = 1")
    optimize(store, OptimizeRequest(), LocalBinWriters())
    names = [f.metadata[PHYSICAL_NAME] for f in Snapshot.load(store).schema.fields]
    for path in tmp_path.rglob("*.parquet"):
        schema = pq.read_schema(path)
        present_names = [name for name in schema.names if name in names]
        assert present_names == [*names[1:], names[0]]
        assert pq.ParquetFile(path).schema.column(1).physical_type == "INT64"
    commits = [path.read_bytes() for path in sorted(tmp_path.glob("_delta_log/*.json"))]
    actions = [orjson.loads(line) for commit in commits for line in commit.splitlines()]
    adds = [action["add"] for action in actions if "add" in action]
    assert len(adds) > 3 and all("numRecords" in orjson.loads(add["stats"]) for add in adds)
    assert sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist()) == [2, 3, 4, 11]


@pytest.mark.parametrize("version", [2, 3])
def test_nested_elements_have_field_ids_in_schema_and_files(tmp_path: Path, version: int) -> None:
    store = make(tmp_path, version, StructType((StructField("id", LONG), StructField("n", NESTED))))
    kind = pa.list_(pa.map_(pa.string(), pa.struct([("x", pa.list_(pa.int32()))])))
    rows = pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([[[("k", {"x": [7, 8]})]]], kind)})
    write_delta(store.root, rows, mode="append")
    config = Snapshot.load(store).config
    outer, inner = config.schema.fields[1], next(f for f in all_fields(config.schema) if f.name == "x")
    own_name, x = outer.metadata[PHYSICAL_NAME], inner.metadata[PHYSICAL_NAME]
    parts = {f"{own_name}.element", f"{own_name}.element.key", f"{own_name}.element.value"}
    assert set(outer.metadata[NESTED_IDS]) == parts and set(inner.metadata[NESTED_IDS]) == {f"{x}.element"}
    numbers = [n for f in all_fields(config.schema) for n in (f.metadata[ID], *f.metadata.get(NESTED_IDS, {}).values())]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert config.metadata.configuration["delta.columnMapping.maxColumnId"] == str(len(numbers))
    (path,) = tmp_path.glob("*.parquet")
    ids = field_ids(pq.read_schema(path))
    assert {ids[part] for part in parts} == set(outer.metadata[NESTED_IDS].values())
    assert ids[f"{own_name}.element.value.{x}.element"] == inner.metadata[NESTED_IDS][f"{x}.element"]
    assert len(set(ids.values())) == len(ids) == len(numbers)
    assert DeltaTable(store.root).to_arrow()["n"].to_pylist() == rows["n"].to_pylist()
    add_columns(store, [NewColumn("more", ArrayType(LONG))])
    schema = Snapshot.load(store).schema
    assert set(schema.fields[2].metadata[NESTED_IDS].values()) == {len(numbers) + 2}


def test_moved_rows_store_ids_under_the_iceberg_field_ids(tmp_path: Path) -> None:
    store = make(tmp_path, 3)
    write_delta(store.root, ROWS, mode="append")
    before = set(tmp_path.glob("*.parquet"))
    update(store, {"id": "id + 10"}, predicate="id = 1")
    new = set(tmp_path.glob("*.parquet")) - before
    assert new
    for path in new:
        ids = field_ids(pq.read_schema(path))
        carried = {name.partition("-col-")[0]: number for name, number in ids.items() if name.startswith("_row")}
        assert carried == {"_row-id": 2147483540, "_row-commit-version": 2147483539}


# ---------------------------------------------------------------- what is refused


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(DeltaError) as caught:
        act()
    return caught.value.error_class.removeprefix("DELTA_ICEBERG_COMPAT_VIOLATION")


@pytest.mark.parametrize(
    ("properties", "condition"),
    [
        ({**on(1), **on(2)}, ".VERSION_MUTUAL_EXCLUSIVE"),
        (on(1, delta__columnMapping__mode="none"), ".WRONG_REQUIRED_TABLE_PROPERTY"),
        (on(3, delta__enableRowTracking="false"), ".WRONG_REQUIRED_TABLE_PROPERTY"),
        (on(1, delta__feature__deletionVectors="supported"), ".INCOMPATIBLE_TABLE_FEATURE"),
        (on(2, delta__enableDeletionVectors="true"), ".DELETION_VECTORS_SHOULD_BE_DISABLED"),
    ],
)
def test_properties_that_exclude_each_other_are_refused(properties: Mapping[str, str], condition: str) -> None:
    assert refused(lambda: define_table(SCHEMA, configuration=properties)) == condition


@pytest.mark.parametrize(
    ("kind", "allowing"),
    [
        (ArrayType(LONG), {2, 3}),
        (MapType(STRING, LONG), {2, 3}),
        (VOID, set()),
        (TIMESTAMP_NTZ, {1, 2, 3}),
        (VARIANT, {3}),
        (StructType((StructField("a", DATE),)), {1, 2, 3}),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_types_that_the_version_does_not_know_are_refused(kind: DataType, allowing: set[int], version: int) -> None:
    schema = StructType((*SCHEMA.fields, StructField("c", StructType((StructField("inner", kind),)))))
    if version in allowing:
        define_table(schema, configuration=on(version))
    else:
        assert refused(lambda: define_table(schema, configuration=on(version))) == ".UNSUPPORTED_DATA_TYPE"


@pytest.mark.parametrize("version", VERSIONS)
def test_types_change_only_as_iceberg_changes_them(tmp_path: Path, version: int) -> None:
    schema = StructType((StructField("id", LONG), StructField("i", INTEGER), StructField("j", INTEGER)))
    store = make(tmp_path, version, schema, delta__enableTypeWidening="true")
    change_columns(store, [ColumnChange("i", data_type=LONG)])
    assert refused(lambda: change_columns(store, [ColumnChange("j", data_type=DOUBLE)])) == ".UNSUPPORTED_TYPE_WIDENING"
    assert Snapshot.load(store).version == 1


def test_defaults_of_the_third_version_are_literals(tmp_path: Path) -> None:
    store = make(tmp_path, 3, delta__feature__allowColumnDefaults="supported")
    for text in ("7", "-1L", "NULL"):
        change_columns(store, [ColumnChange("id", default=text)])
    assert refused(lambda: change_columns(store, [ColumnChange("id", default="1 + 1")])) == ""


def test_iceberg_v2_needs_a_table_without_files(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(SCHEMA, configuration={"delta.columnMapping.mode": "name"}))
    set_properties(store, on(1))
    set_properties(store, {"delta.enableIcebergCompatV1": "false"})
    write_delta(store.root, ROWS, mode="append")
    assert refused(lambda: set_properties(store, on(2))) == ".CHANGE_VERSION_NEED_REWRITE"
    delete(store)
    set_properties(store, on(2))
    assert Snapshot.load(store).config.enabled("icebergCompatV2")


@pytest.mark.parametrize("version", VERSIONS)
def test_restore_brings_back_disabled_iceberg_compatibility(tmp_path: Path, version: int) -> None:
    store = make(tmp_path, version, partition_by=("day",))
    write_delta(store.root, ROWS, mode="append")
    set_properties(store, {f"delta.enableIcebergCompatV{version}": "false"})
    write_delta(store.root, ROWS, mode="append")
    restore(store, version=1)
    assert Snapshot.load(store).config.iceberg_versions == (version,)
    assert DeltaTable(store.root).to_arrow()["id"].to_pylist() == [1, 2]


def test_restore_never_calls_files_compatible_that_were_not(tmp_path: Path) -> None:
    """A version's property had no effect, because its table lacked the feature. In a table that supports the feature since, it
    has an effect."""
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(SCHEMA, configuration={"delta.columnMapping.mode": "name"}))
    write_delta(store.root, ROWS, mode="append")
    path = tmp_path / "_delta_log" / f"{0:020}.json"
    path.write_text(path.read_text().replace('"configuration":{', '"configuration":{"delta.enableIcebergCompatV2":"true",'))
    for checksum in (tmp_path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    assert Snapshot.load(store).config.iceberg_versions == ()
    set_properties(store, {"delta.enableIcebergCompatV2": "false"})
    set_properties(store, {"delta.feature.icebergCompatV2": "supported"})
    assert refused(lambda: restore(store, version=1)) == ".CHANGE_VERSION_NEED_REWRITE"


@pytest.mark.parametrize(
    ("before", "after", "partitioned", "is_allowed"),
    [
        (0, 1, False, True),
        (0, 1, True, False),
        (2, 1, False, True),
        (2, 1, True, True),
        (3, 1, False, True),
        (3, 1, True, False),
        (1, 2, False, False),
        (0, 2, False, False),
        (0, 3, False, False),
        (2, 3, False, False),
    ],
)
def test_files_allow_versions_with_no_stricter_requirements(
    tmp_path: Path, before: int, after: int, partitioned: bool, is_allowed: bool
) -> None:
    by = ("day",) if partitioned else ()
    if before:
        store = make(tmp_path, before, partition_by=by)
    else:
        store = LocalStore(str(tmp_path))
        create_table(store, define_table(SCHEMA, partition_by=by, configuration={"delta.columnMapping.mode": "name"}))
    write_delta(store.root, ROWS, mode="append")
    off = {f"delta.enableIcebergCompatV{before}": "false"} if before else {}
    more = {"delta.enableRowTracking": "true"} if after == 3 else {}
    if not is_allowed:
        assert refused(lambda: set_properties(store, {**off, **more, **on(after)})) == ".CHANGE_VERSION_NEED_REWRITE"
        return
    set_properties(store, {**off, **on(after)})
    write_delta(store.root, ROWS, mode="append")
    assert Snapshot.load(store).config.iceberg_versions == (after,)
    assert DeltaTable(store.root).to_arrow().num_rows == 4


def test_partition_columns_keep_their_names(tmp_path: Path) -> None:
    store = make(tmp_path, 2, partition_by=("day",))
    other = StructType((*SCHEMA.fields, StructField("week", LONG)))
    definition = define_table(other, partition_by=("week",), configuration=on(2))
    assert refused(lambda: build_table(store, "replace", definition)) == ".REPLACE_TABLE_CHANGE_PARTITION_NAMES"
    build_table(store, "replace", define_table(other, partition_by=("DAY",), configuration=on(2)))
    assert refused(lambda: add_feature(make(tmp_path / "v1", 1), "deletionVectors")) == ".INCOMPATIBLE_TABLE_FEATURE"


def test_table_that_breaks_a_rule_is_readable_but_not_writable(tmp_path: Path) -> None:
    store = make(tmp_path, 2)
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    text = log.read_text()
    assert '"delta.columnMapping.mode":"name"' in text
    log.write_text(text.replace('"delta.columnMapping.mode":"name"', '"delta.columnMapping.mode":"none"'))
    for file in (tmp_path / "_delta_log").glob("*.crc"):
        file.unlink()
    assert DeltaTable(store.root).to_arrow().num_rows == 0
    assert refused(lambda: write_delta(store.root, ROWS, mode="append")) == ".WRONG_REQUIRED_TABLE_PROPERTY"


# ---------------------------------------------------------------- tables that writers of Iceberg may write

BY_ICEBERG = {"delta.enableIcebergWriterCompatV1": "true"}
KEY, VALUE = (StructType((StructField(name, LONG),)) for name in ("k", "v"))
KEYED = StructType((*SCHEMA.fields, StructField("m", MapType(KEY, VALUE))))


def test_iceberg_writable_table_names_columns_by_their_ids(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(KEYED, configuration=BY_ICEBERG))
    config = Snapshot.load(store).config
    assert {"icebergWriterCompatV1", "icebergCompatV2"} <= set(config.features)
    assert (config.column_mapping_mode, config.iceberg_versions) == ("id", (2,))
    write_delta(store.root, ROWS, mode="append")
    write_delta(store.root, ROWS.append_column("more", pa.array([1, 2])), mode="append", merge_schema=True)
    add_columns(store, [NewColumn("late", ArrayType(LONG)), NewColumn("m.value.w", LONG)])
    write_delta(store.root, ROWS, mode="overwrite", overwrite_schema=True)
    write_delta(store.root, ROWS, mode="append")
    for version in range(Snapshot.load(store).version + 1):
        for f in all_fields(Snapshot.load(store, version=version).schema):
            assert f.metadata[PHYSICAL_NAME] == f"col-{f.metadata[ID]}"
    assert DeltaTable(store.root).to_arrow().num_rows == 4


@pytest.mark.parametrize(
    ("schema", "configuration"),
    [
        (StructType((StructField("s", StructType((StructField("x", SHORT),))),)), {}),
        (SCHEMA, {"delta.columnMapping.mode": "name"}),
        (SCHEMA, {"delta.enableIcebergCompatV2": "false"}),
        (SCHEMA, {"delta.enableRowTracking": "true"}),
        (SCHEMA, {"delta.feature.deletionVectors": "supported"}),
        (SCHEMA, {"delta.enableChangeDataFeed": "true"}),
        (StructType((StructField("n", LONG, True, {"delta.generationExpression": "1L"}), StructField("id", LONG))), {}),
    ],
)
def test_table_that_iceberg_may_write_keeps_its_rules(schema: StructType, configuration: dict[str, str]) -> None:
    assert refused(lambda: define_table(schema, configuration={**BY_ICEBERG, **configuration})) == ""


def test_mapped_table_does_not_become_writable_by_iceberg(tmp_path: Path) -> None:
    store = make(tmp_path, 2, delta__columnMapping__mode="id")
    assert refused(lambda: set_properties(store, BY_ICEBERG)) == ""


def test_structs_in_map_keys_cannot_change_if_iceberg_writes(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(KEYED, configuration={**BY_ICEBERG, "delta.enableTypeWidening": "true"}))
    for change in (
        lambda: add_columns(store, [NewColumn("m.key.more", LONG)]),
        lambda: rename_column(store, "m.key.k", "other"),
    ):
        assert refused(change) == ""
    rename_column(store, "m.value.v", "other")
    drop_columns(store, ["m"])
    assert Snapshot.load(store).schema.names == SCHEMA.names


# ---------------------------------------------------------------- files that were made for another table


@pytest.mark.parametrize(("name", "value"), [("delta.enableIcebergCompatV2", "true"), ("delta.columnMapping.mode", "name")])
def test_convert_to_a_table_with_column_mapping_is_refused(tmp_path: Path, name: str, value: str) -> None:
    """Its files have no names and ids by which the columns can be read."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(DeltaError) as caught:
        convert(LocalStore(str(tmp_path)), ConvertRequest(configuration={name: value}))
    assert caught.value.error_class == "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING"
    assert not (tmp_path / "_delta_log").exists()


def test_clone_does_not_become_compatible_by_a_property(tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    write_delta(source, ROWS, partition_by=["day"], configuration={"delta.columnMapping.mode": "name"})
    target = LocalStore(str(tmp_path / "target"))
    with pytest.raises(DeltaError) as caught:
        shallow_clone(Snapshot.load(LocalStore(source)), target, properties=on(2))
    assert caught.value.error_class == "DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE"
    assert not (tmp_path / "target").exists()


def test_turning_it_on_conflicts_with_an_append_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(SCHEMA, partition_by=("day",), configuration={"delta.columnMapping.mode": "name"}))
    load = Snapshot.load

    def loaded(*arguments: object, **more: object) -> Snapshot:
        snapshot = load(*arguments, **more)  # type: ignore[arg-type]
        if snapshot.version == 0:
            monkeypatch.setattr(Snapshot, "load", load)
            write_delta(str(tmp_path), ROWS, mode="append")
        return snapshot

    monkeypatch.setattr(Snapshot, "load", loaded)
    with pytest.raises(ConcurrentAppendException):
        set_properties(store, on(2))
    assert load(store).version == 1


def test_overwrite_with_the_same_columns_keeps_element_ids(tmp_path: Path) -> None:
    rows = pa.table({"a": pa.array([1], pa.int64()), "l": pa.array([[1]], pa.list_(pa.int64()))})
    write_delta(str(tmp_path), rows, configuration=on(2))
    metadata = Snapshot.load(LocalStore(str(tmp_path))).metadata
    write_delta(str(tmp_path), rows, mode="overwrite", overwrite_schema=True)
    assert Snapshot.load(LocalStore(str(tmp_path))).metadata == metadata


def test_file_without_numbers_of_records_is_refused_by_name(tmp_path: Path) -> None:
    store = make(tmp_path, 1)
    snapshot = Snapshot.load(store)
    foreign = AddFile("x.parquet", {}, 1, 0, True, stats=None)
    with pytest.raises(DeltaError, match=r"x\.parquet") as caught:
        Transaction(snapshot).add(WrittenFiles(adds=(foreign,), size_bytes=1)).commit("WRITE", {})
    assert caught.value.error_class == "DELTA_ICEBERG_COMPAT_VIOLATION"


def test_what_it_adds_is_not_what_a_statement_named(tmp_path: Path) -> None:
    """CREATE over an existing table compares the properties that it names."""
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(SCHEMA))
    check_same_definition(Snapshot.load(store), define_table(SCHEMA, defaults=on(2)))
    make(tmp_path / "ids", 2, delta__columnMapping__mode="id")
    check_same_definition(Snapshot.load(LocalStore(str(tmp_path / "ids"))), define_table(SCHEMA, configuration=on(2)))
