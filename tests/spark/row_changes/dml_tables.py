"""The rows with which tests of DELETE and UPDATE begin, and the visible state of a table afterwards."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable

SCHEMA = (
    "id bigint, part string, x double, amount decimal(9,2), day date, at timestamp, flag boolean, "
    "`odd.name` int, st struct<a: int, b: struct<c: string, d: array<int>>>, m map<string, int>"
)


def rows(count: int = 60) -> list[tuple[Any, ...]]:
    parts = ["a", "with space", "sl/ash%20=", "ü", None]
    all_rows: list[tuple[Any, ...]] = []
    for n in range(count):
        x = math.nan if n % 11 == 3 else None if n % 11 == 4 else -0.0 if n % 11 == 5 else n / 4
        all_rows.append(
            (
                n,
                parts[n % 5],
                x,
                None if n % 9 == 2 else Decimal(n) / 4,
                None if n % 7 == 0 else dt.date(2024, 1, 1) + dt.timedelta(days=n),
                dt.datetime(2024, 3, 31, 0, 0) + dt.timedelta(minutes=20 * n),
                None if n % 4 == 0 else n % 4 == 1,
                n * 10 if n % 3 else None,
                None if n % 13 == 0 else (n, None if n % 6 == 0 else (f"c{n}", [n, None])),
                {"k": n},
            )
        )
    return all_rows


def plain_rows(spark: SparkSession) -> DataFrame:
    """The rows, in Spark's cache; and views of them and of keys."""
    frame = spark.createDataFrame(rows(), SCHEMA).coalesce(2).cache()
    frame.createOrReplaceTempView("plain_rows")
    spark.createDataFrame([(1,), (5,), (None,), (200,)], "k bigint").createOrReplaceTempView("keys_with_null")
    spark.createDataFrame([(1,), (5,), (200,)], "k bigint").createOrReplaceTempView("keys")
    return frame


def make(frame: DataFrame, path: Path, configuration: Mapping[str, str], partition_by: str = "part") -> DeltaTable:
    writer = frame.write.format("pydelta").partitionBy(partition_by) if partition_by else frame.write.format("pydelta")
    for name, value in {"delta.columnMapping.mode": "name", **configuration}.items():
        writer = writer.option(name, value)
    writer.save(str(path))
    return DeltaTable.forPath(frame.sparkSession, str(path))


def content(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


def same(one: DataFrame, other: DataFrame) -> None:
    assert content(one) == content(other)


def path_of(table: DeltaTable) -> str:
    return str(table._table.url)


def last(table: DeltaTable) -> dict[str, Any]:
    commit = dict(PlainTable(path_of(table)).history(limit=1).to_pylist()[0])
    for name in ("operationParameters", "operationMetrics"):
        commit[name] = dict(commit[name])
    return commit


def metrics(table: DeltaTable) -> dict[str, int]:
    return {name: int(value) for name, value in last(table)["operationMetrics"].items()}


def files_on_disk(table: DeltaTable) -> set[str]:
    root = Path(path_of(table))
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file() and not file.name.endswith(".crc")}
