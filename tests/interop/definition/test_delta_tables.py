"""Tables that pydelta creates, changes, restores and clones, used by delta-spark; and identity columns in turns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.errors import TableAlreadyExistsError
from spark_plugin import DeltaTable
from spark_plugin.tables import IdentityGenerator

NAMES = pa.table({"name": ["a", "b", "c"]})


def theirs(spark: SparkSession, path: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())


def ours(path: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in PlainTable(path).to_arrow().to_pylist())


@pytest.mark.parametrize("step", [1, -3])
def test_identity_numbers_go_on_whoever_writes(spark: SparkSession, tmp_path: Path, step: int) -> None:
    path = str(tmp_path / "t")
    generator = IdentityGenerator(5, step)
    DeltaTable.create(spark).location(path).addColumn("id", "bigint", generatedAlwaysAs=generator).addColumn(
        "name", "string"
    ).execute()
    for turn in range(4):
        if turn % 2:
            spark.range(3).selectExpr("string(id) as name").write.format("delta").mode("append").save(path)
        else:
            write_delta(path, NAMES, mode="append")
        assert theirs(spark, path) == ours(path)
    numbers = [int(str(row[0])) for row in ours(path)]
    assert len(set(numbers)) == len(numbers) == 12
    assert all((number - 5) % step == 0 and (number - 5) * step >= 0 for number in numbers)
    operations = {row["operation"] for row in DeltaTable.forPath(spark, path).history().collect()}
    assert operations == {"CREATE TABLE", "WRITE"}


def test_identity_of_a_table_of_theirs_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    session, builders = spark._jsparkSession, spark._jvm.io.delta.tables.DeltaTable
    column = builders.columnBuilder(session, "id").dataType("bigint").generatedAlwaysAsIdentity(10, 5).build()
    builders.create(session).location(path).addColumn(column).addColumn("name", "string").execute()
    spark.sql(f"insert into delta.`{path}` (name) values ('a'), ('b')")
    write_delta(path, NAMES, mode="append")
    spark.sql(f"insert into delta.`{path}` (name) values ('d')")
    numbers = [int(str(row[0])) for row in theirs(spark, path)]
    assert len(set(numbers)) == 6 and min(numbers) == 10 and all(number % 5 == 0 for number in numbers)


def test_properties_and_features_of_ours_hold_for_them(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(6).selectExpr("id", "id % 2 as part").write.format("delta").partitionBy("part").save(path)
    table = DeltaTable.forPath(spark, path)
    table.setProperties({"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"})
    table.setProperties({"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"})
    spark.sql(f"alter table delta.`{path}` rename column id to number")
    spark.sql(f"delete from delta.`{path}` where number = 3")
    assert theirs(spark, path) == ours(path) == [(0, 0), (1, 1), (2, 0), (4, 0), (5, 1)]
    table.upgradeTableProtocol(3, 7)
    table.addFeatureSupport("rowTracking")
    spark.sql(f"update delta.`{path}` set number = 50 where number = 5")
    assert theirs(spark, path) == ours(path)
    assert "rowTracking" in spark.sql(f"describe detail delta.`{path}`").first()["tableFeatures"]


def test_restored_and_cloned_tables_are_whole_for_them(spark: SparkSession, tmp_path: Path) -> None:
    path, clone = str(tmp_path / "t"), str(tmp_path / "c")
    write_delta(path, pa.schema([("id", pa.int64()), ("part", pa.int32())]).empty_table(), partition_by=["part"])
    DeltaTable.forPath(spark, path).setProperties({"delta.enableDeletionVectors": "true"})
    spark.range(8).selectExpr("id", "int(id % 2) as part").coalesce(1).write.format("delta").mode("append").save(path)
    spark.sql(f"delete from delta.`{path}` where id in (2, 3)")
    before = theirs(spark, path)
    DeltaTable.forPath(spark, path).clone(clone, isShallow=True)
    spark.sql(f"delete from delta.`{path}` where id > 3")
    DeltaTable.forPath(spark, path).restoreToVersion(3)
    assert theirs(spark, path) == ours(path) == before
    assert theirs(spark, clone) == ours(clone) == before
    spark.sql(f"delete from delta.`{clone}` where id = 0")
    spark.sql(f"restore table delta.`{path}` to version as of 2")
    assert (len(theirs(spark, path)), len(ours(clone))) == (8, len(before) - 1)
    assert ours(clone) == theirs(spark, clone)


def test_replaced_table_is_theirs_to_write(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("delta").save(path)
    DeltaTable.replace(spark).location(path).addColumn("id", "int", nullable=False).addColumn(
        "twice", "int", generatedAlwaysAs="id * 2"
    ).property("delta.constraints.few", "id < 5").execute()
    spark.sql(f"insert into delta.`{path}` (id) values (2)")
    assert theirs(spark, path) == ours(path) == [(2, 4)]
    with pytest.raises(Exception, match="few"):
        spark.sql(f"insert into delta.`{path}` (id) values (5)")


def test_catalog_names_by_delta_spark_work_and_keep_its_format(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    spark.sql(f"CREATE TABLE of_theirs_elsewhere USING delta LOCATION '{place}' AS SELECT id FROM range(4)")
    spark.sql("CREATE TABLE of_theirs USING delta AS SELECT id FROM range(4)")
    try:
        for name in ("of_theirs", "default.of_theirs_elsewhere"):
            table = DeltaTable.forName(spark, name)
            table.delete("id = 1")
            assert [
                row["numDeletedRows"] for row in table.history(1).selectExpr("operationMetrics.numDeletedRows").collect()
            ] == ["1"]
            spark.range(4, 6).withColumn("more", F.lit("x")).write.format("delta").mode("append").option(
                "mergeSchema", "true"
            ).saveAsTable(name)
            assert sorted(row["id"] for row in table.toDF().collect()) == [0, 2, 3, 4, 5]
            table.restoreToVersion(0)
            assert spark.table(name).columns == table.toDF().columns == ["id"]
            assert sorted(row["id"] for row in spark.table(name).collect()) == [0, 1, 2, 3]
            assert spark.sql(f"DESCRIBE DETAIL {name}").first()["format"] == "delta"
    finally:
        spark.sql("DROP TABLE of_theirs_elsewhere")
        spark.sql("DROP TABLE of_theirs")


def test_writes_by_names_that_delta_spark_entered(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE of_theirs USING delta AS SELECT id FROM range(2)")
    try:
        spark.range(2, 4).write.format("pydelta").mode("append").saveAsTable("of_theirs")
        spark.range(4, 6).writeTo("of_theirs").using("pydelta").append()
        spark.range(1).write.format("delta").save(str(tmp_path / "source"))
        stream = spark.readStream.format("pydelta").load(str(tmp_path / "source")).selectExpr("id + 6 AS id")
        writer = stream.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).toTable("of_theirs").awaitTermination(120)
        wider = spark.range(7, 8).withColumn("more", F.lit("x"))
        wider.write.format("pydelta").mode("append").option("mergeSchema", "true").saveAsTable("of_theirs")
        assert sorted(map(tuple, spark.table("of_theirs").collect())) == [*((n, None) for n in range(7)), (7, "x")]
        spark.range(1).write.format("pydelta").mode("overwrite").option("overwriteSchema", "true").saveAsTable("of_theirs")
        assert spark.table("of_theirs").collect() == [(0,)]
        assert spark.sql("DESCRIBE DETAIL of_theirs").first()["format"] == "delta"
        with pytest.raises(TableAlreadyExistsError, match="of_theirs"):
            spark.range(1).write.format("pydelta").saveAsTable("of_theirs")
    finally:
        spark.sql("DROP TABLE of_theirs")
