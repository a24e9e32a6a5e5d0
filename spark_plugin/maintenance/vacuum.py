"""VACUUM from Spark: carried out where the table is, on the driver or over Spark Connect in a task."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from delta_py.commands.vacuum import Vacuum, VacuumRequest, vacuum
from delta_py.storage.addresses import location_of
from delta_py.storage.store import ObjectStore
from spark_plugin.dml.at_table import at_table
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.options.settings import TablePath, active, is_on

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
LOGGING = "spark.databricks.delta.vacuum.logging.enabled"

FOUND = StructType(
    [
        StructField("path", StringType()),
        StructField("size", LongType()),
        StructField("modification_time", TimestampType()),
        StructField("reason", StringType()),
    ]
)
"""Of a dry run."""


def run_vacuum(
    spark: SparkSession, table: TablePath, retention_hours: float | None, *, dry_run: bool, keep_versions: tuple[int, ...]
) -> DataFrame:
    """As DeltaTable.vacuum."""
    with as_spark_raises(), active(spark):
        request = VacuumRequest(
            retention_hours,
            check_retention=is_on(spark, RETENTION_CHECK),
            keep_versions=keep_versions,
            logs=is_on(spark, LOGGING),
        )
        store = table.open_store(spark)
        if not dry_run:
            at_table(spark, partial(_vacuum, store, request), once=True)
            return spark.createDataFrame([], StructType([]))
        found = at_table(spark, partial(_find, store, request))
    return spark.createDataFrame(_as_spark_has_it(store.root, found), FOUND)


def _vacuum(store: ObjectStore, request: VacuumRequest) -> int:
    return vacuum(store, request).deleted


def _find(store: ObjectStore, request: VacuumRequest) -> pa.Table:
    return Vacuum.begin(store, request).find()


def _as_spark_has_it(root: str, found: pa.Table) -> pa.Table:
    """With whole paths, and times."""
    paths = pc.binary_join_element_wise(location_of(root), found["path"], "/")
    times = found["modification_time"].cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    return pa.table({"path": paths, "size": found["size"], "modification_time": times, "reason": found["reason"]})
