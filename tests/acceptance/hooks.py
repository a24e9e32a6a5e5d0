"""Reads for the corpus checks that a plain read does not have: the row tracking columns of a table, and its details.

`run_corpus.py --hooks tests.acceptance.hooks` calls the functions by name.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_plugin import DeltaTable


def rowtracking(spark: SparkSession, path: str, version: int | None) -> DataFrame:
    reader = spark.read.format("pydelta").option("metadataColumn", "true")
    if version is not None:
        reader = reader.option("versionAsOf", str(version))
    frame = reader.load(path)
    table_columns = [f"`{name}`" for name in frame.columns if name != "_metadata"]
    return frame.selectExpr(*table_columns, "_metadata.row_id AS row_id", "_metadata.row_commit_version AS row_commit_version")


def detail(spark: SparkSession, path: str) -> dict[str, Any]:
    return DeltaTable.forPath(spark, path).detail().collect()[0].asDict(recursive=True)
