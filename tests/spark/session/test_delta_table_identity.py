"""Identity columns through Spark: the builder, appends of many tasks, and values from the caller."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession

from delta_py.object_stores.open_store import open_store
from delta_py.protocol.identity_columns import identity_columns
from delta_py.snapshot import Snapshot
from spark_plugin import DeltaTable
from spark_plugin.exceptions import InvariantViolationError
from spark_plugin.tables import IdentityGenerator

pytestmark = pytest.mark.usefixtures("plain_plans")


def made(spark: SparkSession, path: Path, **generation: IdentityGenerator) -> str:
    columns = DeltaTable.create(spark).location(str(path)).addColumn("id", "bigint", **generation)  # type: ignore[arg-type]
    columns.addColumn("name", "string").execute()
    return str(path)


def append(frame: DataFrame, path: str) -> None:
    frame.write.format("pydelta").mode("append").save(path)


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in DeltaTable.forPath(spark, path).toDF().select("id").collect())


def mark(path: str) -> int | None:
    return identity_columns(Snapshot.load(open_store(path)).schema)[0].mark


def test_identity_of_known_tasks_has_no_gaps(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", generatedAlwaysAs=IdentityGenerator(10, 2))
    append(spark.range(3).selectExpr("string(id) as name").coalesce(1), path)
    assert (ids(spark, path), mark(path)) == ([10, 12, 14], 14)
    append(spark.range(6, numPartitions=3).selectExpr("string(id) as name"), path)
    assert (ids(spark, path)[3:], mark(path)) == ([16, 18, 20, 22, 24, 26], 26)


def test_identity_of_tasks_that_only_the_run_shows_is_given_once(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", generatedAlwaysAs=IdentityGenerator())
    grouped = spark.range(1000).selectExpr("string(id % 500) as name").groupBy("name").count().select("name")
    append(grouped, path)
    id_values = ids(spark, path)
    assert len(set(id_values)) == len(id_values) == 500
    assert mark(path) == max(id_values) and min(id_values) >= 1


def test_identity_values_of_the_caller(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(5, "x")], "id bigint, name string").coalesce(1)
    always = made(spark, tmp_path / "a", generatedAlwaysAs=IdentityGenerator())
    with pytest.raises(InvariantViolationError) as caught:
        append(rows, always)
    assert caught.value.error_class == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    by_default = made(spark, tmp_path / "d", generatedByDefaultAs=IdentityGenerator())
    append(rows, by_default)
    append(rows.select("name"), by_default)
    assert (ids(spark, by_default), mark(by_default)) == ([1, 5], 1)


def test_identity_columns_that_no_table_can_have_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    builder = DeltaTable.create(spark).location(str(tmp_path / "t")).addColumn("name", "string")
    with pytest.raises(UnsupportedOperationException, match="must be bigint") as caught:  # delta-spark's class, and its condition
        builder.addColumn("id", "int", generatedAlwaysAs=IdentityGenerator())
    assert caught.value.getCondition() == "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"
    with pytest.raises(UnsupportedOperationException, match="must be bigint"):
        spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` (id INT GENERATED ALWAYS AS IDENTITY) USING delta")
    assert not (tmp_path / "t").exists()
