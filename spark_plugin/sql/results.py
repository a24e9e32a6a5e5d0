"""What statements return that have nothing to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def nothing(spark: SparkSession) -> DataFrame:
    """A frame without rows and columns, as Spark's own statements give it."""
    return spark.createDataFrame([], StructType([]))
