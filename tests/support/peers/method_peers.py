"""The methods of delta.tables, called in the same way on delta-spark's classes and on ours.

    expected = outcome(run, delta.tables, spark, path)
    assert outcome(run, spark_plugin.tables, spark, other_path) == expected

The outcome of a call is a plain value: rows, types, conditions of errors. Each side has a separate table, made by the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.support.peers.merge_peers import condition_of

Tables: TypeAlias = Any
"""The module delta.tables, or ours."""
Run: TypeAlias = Callable[[Tables, SparkSession, str], Any]

ABCD = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
SCHEMA = "key string, value bigint"


def rows_of(frame: DataFrame) -> tuple[list[str], list[tuple[Any, ...]]]:
    return [f"{field.name} {field.dataType.simpleString()} {field.nullable}" for field in frame.schema.fields], sorted(
        map(tuple, frame.collect()), key=repr
    )


def made(spark: SparkSession, path: str, rows: list[Any] = ABCD) -> None:
    spark.createDataFrame(rows, SCHEMA).coalesce(1).write.format("delta").save(path)


def table_of(tables: Tables, spark: SparkSession, path: str) -> Any:
    made(spark, path)
    return tables.DeltaTable.forPath(spark, path)


def source_of(spark: SparkSession, *names: str) -> DataFrame:
    return spark.createDataFrame([("a", -1), ("b", 0), ("e", -5), ("f", -6)], "k string, v bigint").toDF(*(names or ("k", "v")))


def outcome(run: Run, tables: Tables, spark: SparkSession, path: str) -> Any:
    """The result. For an error it is the error's kind, its condition, and the beginning of the text about a wrong argument."""
    try:
        return run(tables, spark, path)
    except (PySparkException, Py4JJavaError) as error:
        return "refused", condition_of(error)
    except (TypeError, ValueError) as error:
        return type(error).__name__, re.split(r"[.,'(]|found", str(error))[0].strip()
