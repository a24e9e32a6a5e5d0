"""The result of statements that return nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def nothing(spark: SparkSession) -> DataFrame:
    """Return a frame without rows and columns, as Spark's own statements do."""
    return spark.createDataFrame([], StructType([]))
