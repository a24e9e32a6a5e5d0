"""delta-spark and pydelta in one session: each reads the other's tables, and they write to one table in turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable, write_delta
from tests.support.oracles.rows import difference

# The fields of `nested` may be null, as those of a table: Spark's toArrow fails on null structs with fields that may not be null.
ROWS = """
    SELECT id, cast(id AS int) AS number, concat('name ', id) AS name, id % 3 AS part,
           cast(id AS decimal(12, 2)) / 4 AS price, date_add(date'2024-01-01', cast(id AS int)) AS day,
           timestamp'2024-01-01 00:00:00.123456' + make_interval(0, 0, 0, 0, cast(id AS int)) AS at,
           if(id % 5 = 0, NULL, named_struct('a', nullif(id, -1), 'b', if(id < 0, NULL, array(id, NULL)))) AS nested,
           map('k', id) AS entries,
           if(id % 7 = 0, double('NaN'), id / 3) AS ratio, cast(concat('x', id) AS binary) AS bytes, id % 2 = 0 AS even
    FROM range({start}, {stop})
"""
FILTERS = (
    "id > 12",
    "part = 1",
    "name = 'name 7'",
    "day >= date'2024-01-10' AND part <> 2",
    "at < timestamp'2024-01-01 08:00:00'",
    "price IN (2.5, 4.25)",
    "ratio > 3",
    "isnan(ratio)",
    "nested IS NULL",
    "nested.a < 4",
    "bytes = X'7837'",
    "even AND id < 3",
)


def rows(spark: SparkSession, start: int, stop: int) -> DataFrame:
    return spark.sql(ROWS.format(start=start, stop=stop)).coalesce(2)


def read(spark: SparkSession, source: str, path: str, **options: Any) -> DataFrame:
    return spark.read.format(source).options(**options).load(path)


def assert_same(ours: DataFrame, theirs: DataFrame) -> None:
    assert ours.columns == theirs.columns
    assert difference(theirs.toArrow(), ours.toArrow()) is None


def assert_same_at_every_version(spark: SparkSession, path: str) -> None:
    """delta-spark and pydelta, through Spark and without, read the same rows at each version."""
    newest = DeltaTable(path).version
    for version in range(newest + 1):
        theirs = read(spark, "delta", path, versionAsOf=version).toArrow()
        if version in (0, newest):
            assert difference(theirs, read(spark, "pydelta", path, versionAsOf=version).toArrow()) is None
        assert difference(theirs, DeltaTable(path, version=version).to_arrow()) is None


def assert_same_by_filters(spark: SparkSession, path: str) -> None:
    """A filter, which skips files and row groups on our side, returns the rows for which it is true in delta-spark."""
    theirs = read(spark, "delta", path)
    truths = theirs.select("id", *(F.expr(condition).alias(f"f{i}") for i, condition in enumerate(FILTERS))).toArrow().to_pylist()
    for i, condition in enumerate(FILTERS):
        expected_ids = sorted(row["id"] for row in truths if row[f"f{i}"])
        ours = read(spark, "pydelta", path).filter(condition).select("id").toArrow()["id"]
        assert sorted(ours.to_pylist()) == expected_ids, condition
        assert sorted(DeltaTable(path).to_arrow(columns=["id"], filter=condition)["id"].to_pylist()) == expected_ids, condition


# ---------------------------------------------------------------- delta-spark writes


def plain(spark: SparkSession, path: str) -> None:
    rows(spark, 0, 10).write.format("delta").save(path)
    rows(spark, 10, 20).write.format("delta").mode("append").save(path)


def partitioned_with_deletions(spark: SparkSession, path: str) -> None:
    writer = rows(spark, 0, 20).write.format("delta").partitionBy("part")
    writer.option("delta.enableDeletionVectors", "true").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (3, 4, 11)")
    spark.sql(f"UPDATE delta.`{path}` SET name = 'changed' WHERE id = 7")


def renamed_columns(spark: SparkSession, path: str) -> None:
    first = rows(spark, 0, 10).withColumn("old", F.lit(1))
    first.write.format("delta").option("delta.columnMapping.mode", "name").partitionBy("part").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN old TO `new name`")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN nested.b TO c")
    second = rows(spark, 10, 20).withColumn("new name", F.lit(2))
    renamed = F.expr("if(nested IS NULL, NULL, named_struct('a', nested.a, 'c', nested.b))")
    second.withColumn("nested", renamed).write.format("delta").mode("append").save(path)


def widened_types(spark: SparkSession, path: str) -> None:
    rows(spark, 0, 10).write.format("delta").option("delta.enableTypeWidening", "true").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN number TYPE BIGINT")
    larger = rows(spark, 10, 20).withColumn("number", F.expr("id * 10000000000"))
    larger.write.format("delta").mode("append").save(path)


def v2_checkpoint(spark: SparkSession, path: str) -> None:
    writer = rows(spark, 0, 10).write.format("delta").option("delta.checkpointPolicy", "v2")
    writer.option("delta.checkpointInterval", "2").partitionBy("part").save(path)
    for start in range(10, 20, 2):
        rows(spark, start, start + 2).write.format("delta").mode("append").save(path)


def row_tracking(spark: SparkSession, path: str) -> None:
    rows(spark, 0, 10).write.format("delta").option("delta.enableRowTracking", "true").save(path)
    spark.sql(f"UPDATE delta.`{path}` SET name = 'changed' WHERE id < 3")
    rows(spark, 10, 20).write.format("delta").mode("append").save(path)


RECIPES = (plain, partitioned_with_deletions, renamed_columns, widened_types, v2_checkpoint, row_tracking)


@pytest.mark.parametrize("make", RECIPES, ids=lambda make: make.__name__)
def test_table_of_delta_spark_reads_the_same(
    make: Callable[[SparkSession, str], None], spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    make(spark, path)
    assert_same_at_every_version(spark, path)
    assert_same_by_filters(spark, path)


def test_row_ids_of_delta_spark_read_the_same(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    row_tracking(spark, path)
    columns = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    ours = read(spark, "pydelta", path, metadataColumn="true").select(*columns)
    assert_same(ours, read(spark, "delta", path).select(*columns))


@pytest.mark.parametrize("deletion_vectors", ["true", "false"])
def test_change_feed_of_delta_spark_reads_the_same(deletion_vectors: str, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    writer = rows(spark, 0, 10).write.format("delta").option("delta.enableChangeDataFeed", "true")
    writer.option("delta.enableDeletionVectors", deletion_vectors).partitionBy("part").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    spark.sql(f"UPDATE delta.`{path}` SET name = 'changed' WHERE id IN (4, 5)")
    rows(spark, 10, 15).write.format("delta").mode("append").save(path)
    for first, last in ((0, 3), (1, 2), (2, 2)):
        options = {"readChangeFeed": "true", "startingVersion": first, "endingVersion": last}
        assert_same(read(spark, "pydelta", path, **options), read(spark, "delta", path, **options))


# ---------------------------------------------------------------- pydelta writes


def test_table_of_pydelta_reads_the_same_in_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows(spark, 0, 10).write.format("pydelta").partitionBy("part", "even").save(path)
    rows(spark, 10, 20).write.format("pydelta").mode("append").save(path)
    assert_same(read(spark, "delta", path), rows(spark, 0, 20))
    assert_same_at_every_version(spark, path)


def test_statistics_of_pydelta_let_delta_spark_skip_files(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows(spark, 0, 10).write.format("pydelta").save(path)
    rows(spark, 10, 20).write.format("pydelta").mode("append").save(path)
    everything = read(spark, "delta", path)
    matching_frame = everything.filter("id = 15 AND day = date'2024-01-16' AND name = 'name 15'")
    assert matching_frame.count() == 1
    assert len(matching_frame.inputFiles()) < len(everything.inputFiles())


def test_writers_take_turns_on_one_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows(spark, 0, 2).write.format("pydelta").partitionBy("part").save(path)
    for turn in range(1, 12):  # beyond the tenth commit, where delta-spark writes a checkpoint
        source = "delta" if turn % 2 else "pydelta"
        rows(spark, 2 * turn, 2 * turn + 2).write.format(source).mode("append").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 5")
    rows(spark, 24, 26).write.format("pydelta").mode("append").save(path)
    assert_same(read(spark, "pydelta", path), rows(spark, 0, 26).filter("id <> 5"))
    assert_same_at_every_version(spark, path)


# ---------------------------------------------------------------- void

VOID_ROWS = "SELECT id, null AS v, if(id = 2, null, named_struct('x', null, 'y', id)) AS s FROM range({start}, {stop})"


@pytest.mark.parametrize("first", ["delta", "pydelta"])
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_void_columns_and_fields_by_turns(first: str, mapping: str, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    second = "pydelta" if first == "delta" else "delta"

    def write(source: str, query: str, **options: str) -> None:
        spark.sql(query).coalesce(1).write.format(source).mode("append").options(**options).save(path)

    write(first, VOID_ROWS.format(start=0, stop=4), **{"delta.columnMapping.mode": mapping})
    write(second, VOID_ROWS.format(start=4, stop=6))
    spark.sql(f"UPDATE {first}.`{path}` SET s.y = 10 WHERE id = 1 AND s.x IS NULL")
    spark.sql(f"DELETE FROM {second}.`{path}` WHERE id = 3")
    spark.sql(f"OPTIMIZE {first}.`{path}`")
    assert_same_void_rows(spark, path)
    write(second, "SELECT 7L AS id, 'text' AS v, named_struct('x', 5, 'y', 7L) AS s", mergeSchema="true")
    assert_same_void_rows(spark, path)
    for condition in ("s.x = 5", "s.x IS NULL", "v IS NOT NULL"):
        ours, theirs = (read(spark, source, path).filter(condition).count() for source in ("pydelta", "delta"))
        assert ours == theirs > 0
    assert DeltaTable(path).to_arrow().num_rows == 6


def assert_same_void_rows(spark: SparkSession, path: str) -> None:
    ours, theirs = (read(spark, source, path) for source in ("pydelta", "delta"))
    assert ours.schema == theirs.schema
    rows_of_delta_spark = [row.asDict(recursive=True) for row in theirs.sort("id").collect()]
    assert [row.asDict(recursive=True) for row in ours.sort("id").collect()] == rows_of_delta_spark
    assert DeltaTable(path).to_arrow().sort_by("id").to_pylist() == rows_of_delta_spark


# ---------------------------------------------------------------- logs that pydelta writes


def plain_rows(spark: SparkSession, start: int, stop: int) -> DataFrame:
    return rows(spark, start, stop).drop("nested")


@pytest.mark.parametrize(
    "properties",
    [{}, {"delta.checkpointPolicy": "v2"}, {"delta.columnMapping.mode": "name", "delta.checkpoint.writeStatsAsJson": "false"}],
    ids=["classic", "v2", "mapped"],
)
def test_delta_spark_reads_our_checkpoint_without_older_commits(
    properties: dict[str, str], spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    configuration = {"delta.checkpointInterval": "4", "delta.enableDeletionVectors": "true", **properties}
    write_delta(str(path), plain_rows(spark, 0, 4).toArrow(), partition_by=["part"], configuration=configuration)
    for start in range(4, 24, 4):
        write_delta(str(path), plain_rows(spark, start, start + 4).toArrow(), mode="append")
    for version in range(4):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    theirs = read(spark, "delta", str(path))
    assert_same(theirs, plain_rows(spark, 0, 24))
    assert difference(theirs.toArrow(), DeltaTable(str(path)).to_arrow()) is None
    matching_frame = theirs.filter("id = 21 AND day = date'2024-01-22'")
    assert matching_frame.count() == 1 and len(matching_frame.inputFiles()) < len(theirs.inputFiles())
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (1, 22)")
    plain_rows(spark, 24, 28).write.format("delta").mode("append").save(str(path))  # version 7; 8 has delta-spark's checkpoint
    plain_rows(spark, 28, 32).write.format("delta").mode("append").save(str(path))
    for start in range(32, 48, 4):
        write_delta(str(path), plain_rows(spark, start, start + 4).toArrow(), mode="append")  # 12 has ours, after theirs
    for version in range(4, 12):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    assert_same(read(spark, "delta", str(path)), plain_rows(spark, 0, 48).filter("id NOT IN (1, 22)"))
    assert difference(read(spark, "delta", str(path)).toArrow(), DeltaTable(str(path)).to_arrow()) is None
