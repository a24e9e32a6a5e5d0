"""Tables by delta-spark, by deltalake and written by hand that hold the extreme values of every type. Spark's filters, DELETE,
UPDATE and MERGE find each value, whether they skip files or not.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin import DeltaTable
from tests.support.generators.extreme_values import COLUMNS, ROWS, WRITERS, lookups, rows
from tests.support.runs.sampling import sampled
from tests.support.spark.settings import restore

STORED_TIMES = "spark.sql.parquet.outputTimestampType"
# Not times: if keys are the first and last instants, Spark's optimizer fails with a long overflow.
NUMBERS = [column for column in COLUMNS if column not in ("day", "instant", "clock", "text")]
THREE = ("delta-spark", "deltalake", "by hand, 64 bits")


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("extremes")

    @cache
    def write(writer: str) -> Path:
        path = folder / writer
        if writer == "delta-spark":
            before = spark.conf.get(STORED_TIMES, None)
            spark.conf.set(STORED_TIMES, "TIMESTAMP_MICROS")  # INT96 cannot hold the first and last instants
            spark.createDataFrame(rows()).coalesce(1).write.format("delta").partitionBy("n").save(str(path))
            restore(spark, {STORED_TIMES: before})
        else:
            WRITERS[writer](path)
        return path

    return write


def read(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(str(path))


def matching(spark: SparkSession, path: Path, conditions: list[str]) -> dict[str, list[int]]:
    """For each condition the numbers of the rows for which it is true; every file is read."""
    everything = read(spark, path, pruning="false")
    truths = everything.select("n", *(F.expr(condition).alias(f"c{i}") for i, condition in enumerate(conditions))).collect()
    return {condition: sorted(row["n"] for row in truths if row[f"c{i}"]) for i, condition in enumerate(conditions)}


@pytest.mark.parametrize("writer", THREE)
def test_spark_filters_find_every_value(spark: SparkSession, writer: str, written: Callable[[str], Path]) -> None:
    path = written(writer)
    conditions = sampled([condition for column in COLUMNS for condition in lookups(column)], 96)
    for condition, expected in matching(spark, path, conditions).items():
        found_rows = read(spark, path).filter(condition).select("n").collect()
        assert sorted(row["n"] for row in found_rows) == expected, condition


@pytest.mark.parametrize(("writer", "column"), sampled([(writer, column) for writer in THREE for column in NUMBERS], 10))
def test_spark_changes_find_every_value(
    spark: SparkSession, writer: str, column: str, written: Callable[[str], Path], tmp_path: Path
) -> None:
    path = shutil.copytree(written(writer), tmp_path / "table")
    table = DeltaTable.forPath(spark, str(path))
    source = pa.table({column: rows()[column].unique()})
    merge = table.alias("t").merge(spark.createDataFrame(source).alias("s"), f"t.{column} = s.{column}")
    merge.whenMatchedUpdate(set={"changed": "1"}).whenNotMatchedInsert(values={"n": "-1"}).execute()
    metrics = last_metrics(table)
    assert (metrics["numTargetRowsUpdated"], metrics["numTargetRowsInserted"]) == (str(ROWS), "0")
    shutil.rmtree(path)
    shutil.copytree(written(writer), path)
    conditions = sampled(lookups(column, ("=",)), 10)
    for condition, expected in matching(spark, path, conditions).items():
        table = DeltaTable.forPath(spark, str(path))
        table.update(condition, {"changed": "1"})
        assert int(last_metrics(table)["numUpdatedRows"]) == len(expected), condition
    table.delete(conditions[0])
    assert matching(spark, path, conditions[:1]) == {conditions[0]: []}


def last_metrics(table: DeltaTable) -> dict[str, str]:
    row = table.history(1).first()
    assert row is not None
    metrics: dict[str, str] = row["operationMetrics"]
    return metrics
