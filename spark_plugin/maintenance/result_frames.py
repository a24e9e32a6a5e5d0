"""The result of a command, an Arrow table, as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def to_frame(spark: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return the rows as a DataFrame. schema: of the frame; None for that of the Arrow table. Spark stops at two successive
    batches without rows, so it gets one batch."""
    return spark.createDataFrame(rows.combine_chunks(), schema)
