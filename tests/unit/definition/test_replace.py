"""Tables built from a definition: created, used as they are, replaced."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.definition.create import TableDefinition, define_table
from delta_py.definition.replace import build_table
from delta_py.errors import DeltaError
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from delta_py.types.schema import LONG, STRING, StructField, StructType

SCHEMA = StructType((StructField("id", LONG), StructField("name", STRING)))
ROWS = pa.table({"id": pa.array([1], pa.int64()), "name": ["a"]})


def defined(**options: object) -> TableDefinition:
    return define_table(SCHEMA, **options)  # type: ignore[arg-type]


def empty(configuration: dict[str, str] | None = None) -> TableDefinition:
    return define_table(StructType(()), configuration=configuration, may_lack_columns=True)


MODES = ("create", "createIfNotExists", "replace", "createOrReplace")


@pytest.mark.parametrize("mode", MODES)
def test_build_table_where_there_is_none(tmp_path: Path, mode: str) -> None:
    store = open_store(str(tmp_path / "t"))
    if mode == "replace":
        with pytest.raises(DeltaError) as caught:
            build_table(store, mode, defined())
        assert caught.value.error_class == "TABLE_OR_VIEW_NOT_FOUND"
        assert not (tmp_path / "t").exists()
        return
    assert build_table(store, mode, defined(description="d", configuration={"team": "b"}, partition_by=["name"])) == 0
    table = DeltaTable(store.root)
    assert (table.metadata.description, dict(table.metadata.configuration)) == ("d", {"team": "b"})
    row = table.history().to_pylist()[0]
    operation = "CREATE OR REPLACE TABLE" if mode == "createOrReplace" else "CREATE TABLE"
    assert (row["operation"], dict(row["operationParameters"])["partitionBy"]) == (operation, '["name"]')
    write_delta(store.root, ROWS, mode="append")
    assert table.version == 0 and DeltaTable(store.root).to_arrow().num_rows == 1


@pytest.mark.parametrize("mode", MODES)
def test_build_table_where_there_is_one(tmp_path: Path, mode: str) -> None:
    write_delta(str(tmp_path), ROWS, configuration={"delta.enableDeletionVectors": "true", "old": "1"})
    store, before = open_store(str(tmp_path)), DeltaTable(str(tmp_path))
    other = define_table(StructType((StructField("x", LONG),)), configuration={"new": "2"})
    if mode == "create":
        with pytest.raises(DeltaError, match="already exists") as caught:
            build_table(store, mode, other)
        assert caught.value.error_class == "TABLE_OR_VIEW_ALREADY_EXISTS"
    build = mode if mode != "create" else "createIfNotExists"
    version = build_table(store, build, other)
    table = DeltaTable(str(tmp_path))
    if build == "createIfNotExists":
        assert (version, table.to_arrow().num_rows) == (0, 1)
        return
    assert (version, table.to_arrow().num_rows, table.schema().names) == (1, 0, ["x"])
    assert dict(table.metadata.configuration) == {"new": "2"}
    assert table.metadata.id != before.metadata.id, "streams must not go on as if nothing had happened"
    assert "deletionVectors" in table.snapshot.config.features, "what readers of old versions need stays"
    assert table.history(1)["operation"].to_pylist() == ["REPLACE TABLE" if mode == "replace" else "CREATE OR REPLACE TABLE"]
    assert DeltaTable(str(tmp_path), version=0).to_arrow().num_rows == 1


def test_build_table_replaced_columns_get_ids_that_none_had(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    mapped = {"delta.columnMapping.mode": "name"}
    build_table(store, "create", defined(configuration=mapped, cluster_by=["id"]))
    write_delta(store.root, ROWS, mode="append")
    build_table(store, "replace", defined(configuration=mapped, cluster_by=["name"]))
    snapshot = Snapshot.load(store)
    assert [f.metadata["delta.columnMapping.id"] for f in snapshot.schema.fields] == [3, 4]
    assert snapshot.metadata.configuration["delta.columnMapping.maxColumnId"] == "4"
    physical = snapshot.schema.fields[1].metadata["delta.columnMapping.physicalName"]
    assert str(physical) in snapshot.domain_metadata()["delta.clustering"].configuration
    write_delta(store.root, ROWS, mode="append")
    assert DeltaTable(store.root).to_arrow().to_pylist() == [{"id": 1, "name": "a"}]
    build_table(store, "replace", defined())
    assert "delta.clustering" not in Snapshot.load(store).domain_metadata()


def test_build_table_joins_a_table_that_is_alike(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS, partition_by=["name"], configuration={"team": "b"})
    store = open_store(str(tmp_path))
    assert build_table(store, "create", empty(), join=True) == 0
    assert build_table(store, "create", empty({"team": "b"}), join=True) == 0
    assert build_table(store, "create", defined(partition_by=["name"], configuration={"team": "b"}), join=True) == 0
    different = {
        "DELTA_CREATE_TABLE_SCHEME_MISMATCH": define_table(
            StructType((StructField("x", LONG), *SCHEMA.fields)), partition_by=["x"]
        ),
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING": defined(),
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY": defined(partition_by=["name"], configuration={"team": "c"}),
    }
    for condition, definition in (*different.items(), ("DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY", empty({"team": "c"}))):
        with pytest.raises(DeltaError) as caught:
            build_table(store, "create", definition, join=True)
        assert caught.value.error_class == condition
    assert Snapshot.load(store).version == 0


def test_build_table_without_columns_accepts_columns_later(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert build_table(store, "create", empty({"team": "b", "delta.columnMapping.mode": "name"})) == 0
    snapshot = Snapshot.load(store)
    assert snapshot.schema.fields == () and snapshot.metadata.configuration["team"] == "b"
    assert DeltaTable(store.root).to_arrow().num_columns == 0
    for mode in ("replace", "createOrReplace"):
        with pytest.raises(DeltaError) as caught:
            build_table(store, mode, empty())
        assert caught.value.error_class == "DELTA_SCHEMA_NOT_PROVIDED"
    for arranged in ({"partition_by": ["id"]}, {"cluster_by": ["id"]}):
        with pytest.raises(DeltaError, match="no columns"):
            define_table(StructType(()), may_lack_columns=True, **arranged)
    with pytest.raises(DeltaError):
        define_table(StructType(()))
    assert Snapshot.load(store).version == 0
    write_delta(store.root, ROWS, mode="append", merge_schema=True)
    assert DeltaTable(store.root).to_arrow().num_rows == 1


def test_build_table_refuses_other_files(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    for definition in (defined(), empty()):
        with pytest.raises(DeltaError) as caught:
            build_table(open_store(str(tmp_path)), "create", definition)
        assert caught.value.error_class == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    assert not (tmp_path / "_delta_log").exists()
    with pytest.raises(DeltaError, match="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
        generated = StructField("g", LONG, True, {"delta.generationExpression": "hash(id)"})
        build_table(open_store(str(tmp_path / "g")), "create", define_table(StructType((*SCHEMA.fields, generated))))


@pytest.mark.parametrize("before", [False, True])
def test_build_table_that_stamps_commits_says_since_when(tmp_path: Path, before: bool) -> None:
    """Earlier commits have no timestamps of their own: a reader of the history must know that."""
    stamps = {"delta.enableInCommitTimestamps": "true"}
    write_delta(str(tmp_path), ROWS, configuration=stamps if before else {})
    store = open_store(str(tmp_path))
    build_table(store, "replace", defined(configuration=stamps))
    since = Snapshot.load(store).metadata.configuration.get("delta.inCommitTimestampEnablementVersion")
    assert since == (None if before else "1")
    assert len(DeltaTable(store.root).history()) == 2
    build_table(store, "replace", defined())
    assert dict(Snapshot.load(store).metadata.configuration) == {}
    times = DeltaTable(store.root).history()["timestamp"].to_pylist()
    assert times == sorted(times, reverse=True)
    assert DeltaTable(store.root, version=0).to_arrow().num_rows == 1


def test_build_table_never_empties_a_table_that_is_append_only(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS, configuration={"delta.appendOnly": "true"})
    for mode in ("replace", "createOrReplace"):
        with pytest.raises(DeltaError) as caught:
            build_table(open_store(str(tmp_path)), mode, defined())
        assert caught.value.error_class == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert DeltaTable(str(tmp_path)).to_arrow().num_rows == 1
