"""Samples and row numbers: they do not depend on which columns are read, although the columns choose the road."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four files that Spark's Parquet reader reads for some columns and Python for others."""
    path = str(tmp_path_factory.mktemp("sampled") / "t")
    frame = spark.range(2_000).selectExpr("id", "id % 7 g", "cast(id as string) s", "struct(id as a) n")
    frame.repartition(4).write.format("pydelta").save(path)
    return path


DRAWS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "sample": lambda frame: frame.sample(0.3, seed=5),
    "sample with replacement": lambda frame: frame.sample(True, 0.5, seed=5),
    "rand": lambda frame: frame.where(F.rand(seed=5) < 0.3),
    "sample of a union": lambda frame: frame.union(frame).sample(0.3, seed=5),
    "sample after a filter": lambda frame: frame.where("id > 100").sample(0.3, seed=5),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_sample_has_the_same_rows_whatever_is_read(spark: SparkSession, table: str, draw: str) -> None:
    sample = DRAWS[draw](spark.read.format("pydelta").load(table))
    expected = sorted(row.id for row in sample.collect())
    assert 0 < len(expected) < 2_000 * (2 if "union" in draw else 1)
    for columns in ("id", "s", "g", "n", "id, s, n"):
        names = columns.split(", ")
        rows = sample.select("id", *(name for name in names if name != "id")).collect()
        assert sorted(row.id for row in rows) == expected, columns
    assert sorted(int(row.s) for row in sample.select("s").collect()) == expected
    assert sample.count() == len(expected)
    assert sample.agg(F.count("s")).first()[0] == len(expected)


def test_rows_are_split_into_two_parts(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("pydelta").load(table)
    training = frame.sample(0.8, seed=1)
    test = frame.join(training, "id", "left_anti")
    assert training.count() + test.count() == 2_000
    first, second = frame.randomSplit([0.7, 0.3], seed=3)
    assert first.count() + second.select("s").count() == 2_000
    assert first.select("id").intersect(second.select("id")).count() == 0


def test_row_numbers_do_not_depend_on_columns(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("pydelta").load(table)
    numbers = [
        {row.id: row.number for row in frame.select("id", *names, F.monotonically_increasing_id().alias("number")).collect()}
        for names in ((), ("s",), ("g", "n"))
    ]
    assert numbers[0] == numbers[1] == numbers[2] and len(numbers[0]) == 2_000


def test_reason_is_shown_and_other_scans_keep_their_road(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("pydelta").load(table).select("s")
    assert "Road: parquet" in plan_of(frame)
    sample = frame.sample(0.5, seed=1)
    assert "Road: columns (the query draws or numbers rows by task" in plan_of(sample)
    plan = plan_of(sample.join(frame.withColumnRenamed("s", "t"), F.col("s") == F.col("t")))
    assert "Road: parquet" in plan and "Road: columns" in plan


def plan_of(frame: DataFrame) -> str:
    mode = frame._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("simple")
    return str(frame._jdf.queryExecution().explainString(mode))
