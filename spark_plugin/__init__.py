"""pydelta for Spark: `register(spark)`, then `spark.read.format("pydelta")` and DeltaTable."""

from spark_plugin.session import register
from spark_plugin.tables import DeltaTable

__all__ = ["DeltaTable", "register"]
