"""Tables with features and properties that require much of writers: delta-spark and pydelta write to them in turns."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable, write_delta
from delta_py.definition.create import create_table, define_table
from delta_py.errors import DeltaError
from delta_py.row_changes.row_commands import update
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import INTEGER, LONG, STRING, ArrayType, MapType, StructField, StructType
from tests.support.peers.merge_peers import condition_of

NESTED = ArrayType(MapType(STRING, StructType((StructField("x", ArrayType(INTEGER)),))))
NESTED_SQL = "ARRAY<MAP<STRING, STRUCT<x: ARRAY<INT>>>>"
TABLES: dict[str, dict[str, str]] = {
    "IcebergCompatV1": {"delta.enableIcebergCompatV1": "true"},
    "IcebergCompatV2": {"delta.enableIcebergCompatV2": "true"},
    "IcebergCompatV3": {"delta.enableIcebergCompatV3": "true"},
    "column mapping": {"delta.columnMapping.mode": "name"},
    "pages and prefixes": {
        "delta.parquet.format.version": "2.12.0",
        "delta.randomizeFilePrefixes": "true",
        "delta.enableChangeDataCapture": "true",
    },
}


def make_ours(path: Path, properties: Mapping[str, str], *, nested: bool) -> None:
    fields = [StructField("id", LONG), StructField("day", STRING), *([StructField("a", NESTED)] if nested else [])]
    definition = define_table(StructType(tuple(fields)), partition_by=("day",), configuration=properties)
    create_table(LocalStore(str(path)), definition)


def make_theirs(spark: SparkSession, path: Path, properties: Mapping[str, str], *, nested: bool) -> None:
    properties_sql = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    columns = "id BIGINT, day STRING" + (f", a {NESTED_SQL}" if nested else "")
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta PARTITIONED BY (day) TBLPROPERTIES ({properties_sql})")


@pytest.mark.parametrize("makes", ["ours", "theirs"])
@pytest.mark.parametrize("kind", TABLES)
def test_both_write_the_table_in_turns(spark: SparkSession, tmp_path: Path, kind: str, makes: str) -> None:
    path, nested = tmp_path / "t", kind != "IcebergCompatV1"
    if makes == "ours":
        make_ours(path, TABLES[kind], nested=nested)
    else:
        make_theirs(spark, path, TABLES[kind], nested=nested)
    snapshot = Snapshot.load(LocalStore(str(path)))
    spark.sql(f"INSERT INTO delta.`{path}` (id, day) VALUES (1, 'a'), (2, 'b')")
    write_delta(str(path), pa.table({"id": pa.array([3, 4], pa.int64()), "day": ["a", "b"]}), mode="append")
    update(LocalStore(str(path)), {"id": "id + 10"}, predicate="id = 1")
    spark.sql(f"UPDATE delta.`{path}` SET id = id + 100 WHERE id = 3")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    assert sorted(row.id for row in spark.read.format("delta").load(str(path)).collect()) == [2, 4, 11, 103]
    assert sorted(DeltaTable(str(path)).to_arrow()["id"].to_pylist()) == [2, 4, 11, 103]
    after = Snapshot.load(LocalStore(str(path)))
    assert (after.protocol, after.schema) == (snapshot.protocol, snapshot.schema)
    if kind.startswith("Iceberg"):
        day = after.schema.fields[1].metadata["delta.columnMapping.physicalName"]
        assert all(day in pq.read_schema(file).names for file in path.rglob("part-*.parquet"))


OFF = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
ALL = ("enableDeletionVectors", "enableChangeDataFeed", "enableRowTracking")


@pytest.mark.parametrize("how", [OFF, "UNSET TBLPROPERTIES ('delta.columnMapping.mode')", "DROP FEATURE columnMapping"])
def test_both_turn_column_mapping_off_alike_and_write_on(spark: SparkSession, tmp_path: Path, how: str) -> None:
    properties = {"delta.columnMapping.mode": "name", **{f"delta.{name}": "true" for name in ALL}}
    original_path = tmp_path / "made"
    make_theirs(spark, original_path, properties, nested=True)
    spark.sql(
        f"INSERT INTO delta.`{original_path}` VALUES (1, 'a', NULL), (2, 'b', array(map('m', struct(array(3))))), (3, 'a', NULL)"
    )
    spark.sql(f"ALTER TABLE delta.`{original_path}` RENAME COLUMN day TO d")
    spark.sql(f"DELETE FROM delta.`{original_path}` WHERE id = 1")
    paths = {source: tmp_path / source for source in ("pydelta", "delta")}
    for source, path in paths.items():
        shutil.copytree(original_path, path)
        spark.sql(f"ALTER TABLE {source}.`{path}` {how}")
    ours, theirs = (Snapshot.load(LocalStore(str(path))) for path in paths.values())
    assert (ours.schema, ours.protocol, ours.version) == (theirs.schema, theirs.protocol, theirs.version)
    assert {**ours.metadata.configuration} == {**theirs.metadata.configuration}
    for path in paths.values():
        for source in paths:
            spark.sql(f"INSERT INTO {source}.`{path}` (id, d) VALUES (7, 'new')")
            spark.sql(f"UPDATE {source}.`{path}` SET id = id + 10 WHERE id = 2 OR id = 12")
            frame = spark.read.format(source).load(str(path))
            assert sorted(row.id for row in frame.collect()) == ([3, 7, 12] if source == "pydelta" else [3, 7, 7, 22])
            assert frame.where("d = 'b'").select("a").first()[0][0]["m"].x == [3]
            before = spark.read.format(source).option("versionAsOf", 3).load(str(path))
            assert sorted(row.id for row in before.collect()) == [2, 3]
        DeltaTable(str(path)).snapshot.check_integrity()


@pytest.mark.parametrize(
    ("properties", "prepare"),
    [
        ({}, "RENAME COLUMN day TO `d y`"),
        ({"delta.enableIcebergCompatV2": "true"}, None),
        ({"delta.enableIcebergCompatV1": "true"}, None),
    ],
)
@pytest.mark.parametrize("how", [OFF, "DROP FEATURE columnMapping"])
def test_both_refuse_to_turn_column_mapping_off_alike(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], prepare: str | None, how: str
) -> None:
    original_path = tmp_path / "made"
    make_theirs(spark, original_path, {"delta.columnMapping.mode": "name", **properties}, nested=False)
    if prepare:
        spark.sql(f"ALTER TABLE delta.`{original_path}` {prepare}")
    conditions = []
    for source in ("pydelta", "delta"):
        version = Snapshot.load(LocalStore(str(original_path))).version
        with pytest.raises((DeltaError, PySparkException, Py4JError)) as refused:
            spark.sql(f"ALTER TABLE {source}.`{original_path}` {how}")
        error = refused.value
        conditions.append(error.error_class if isinstance(error, DeltaError) else condition_of(error))
        assert Snapshot.load(LocalStore(str(original_path))).version == version
    assert conditions[0] == conditions[1]
