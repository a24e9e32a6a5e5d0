"""VACUUM from Spark. It runs where the table is: on the driver, or over Spark Connect in a task."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType, TimestampType

from delta_py.progress import progress
from delta_py.storage.addresses import location_of
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.quarantine import restore_quarantined
from delta_py.vacuum.vacuum import Vacuum, VacuumKind, VacuumRequest, vacuum
from delta_py.vacuum.vacuum_candidates import check_inventory
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.maintenance.result_frames import to_frame
from spark_plugin.options.settings import TablePath, active, is_on
from spark_plugin.spark_versions import to_arrow_schema
from spark_plugin.tasks.run_near_table import at_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
LITE = "spark.databricks.delta.vacuum.lite.enabled"
LOGGING = "spark.databricks.delta.vacuum.logging.enabled"
KEEP_CLONES = "spark.pydelta.vacuum.keepClones"

FOUND = StructType(
    [
        StructField("path", StringType()),
        StructField("size", LongType()),
        StructField("modification_time", TimestampType()),
        StructField("reason", StringType()),
    ]
)
"""The result of a dry run."""

RESTORED = StructType(
    [
        StructField("path", StringType()),
        StructField("size", LongType()),
        StructField("quarantined", TimestampType()),
        StructField("restored", BooleanType()),
    ]
)
"""The result of restoreQuarantined."""


@progress("VACUUM", "files")
def run_vacuum(
    spark: SparkSession,
    table: TablePath,
    request_base: VacuumRequest,
    *,
    dry_run: bool,
    lite: bool | None,
    keep_clones: bool | None,
    inventory: DataFrame | None,
) -> DataFrame:
    """Do the same as DeltaTable.vacuum. request_base: the part that does not come from the session's settings."""
    with as_spark_raises(), active(spark):
        is_lite = (inventory is None and is_on(spark, LITE, default=False)) if lite is None else lite
        request = replace(
            request_base,
            check_retention=is_on(spark, RETENTION_CHECK),
            logs=is_on(spark, LOGGING),
            kind=VacuumKind.LITE if is_lite else VacuumKind.FULL,
            inventory=None if inventory is None else _rows_of(inventory),
            keep_clones=is_on(spark, KEEP_CLONES) if keep_clones is None else keep_clones,
        )
        store = table.open_store(spark)
        if not dry_run:
            at_table(spark, partial(_vacuum, store, request), once=True)
            return spark.createDataFrame([], StructType([]))
        files = at_table(spark, partial(_find, store, request))
    return to_frame(spark, _as_spark_has_it(store.root, files, "modification_time"), FOUND)


@progress("RESTORE QUARANTINED", "files")
def run_restore_quarantined(spark: SparkSession, table: TablePath, *, dry_run: bool) -> DataFrame:
    """Do the same as DeltaTable.restoreQuarantined."""
    with as_spark_raises(), active(spark):
        store = table.open_store(spark)
        files = at_table(spark, partial(restore_quarantined, store, dry_run=dry_run), once=not dry_run)
    return to_frame(spark, _as_spark_has_it(store.root, files, "quarantined"), RESTORED)


def _rows_of(inventory: DataFrame) -> pa.Table:
    """Return the files, without the directories."""
    check_inventory(to_arrow_schema(inventory.schema))
    return inventory.filter("NOT isDir").select("path", "length", "isDir", "modificationTime").toArrow()


def _vacuum(store: ObjectStore, request: VacuumRequest) -> int:
    return vacuum(store, request).deleted


def _find(store: ObjectStore, request: VacuumRequest) -> pa.Table:
    return Vacuum.begin(store, request).find()


def _as_spark_has_it(root: str, files: pa.Table, time: str) -> pa.Table:
    """Return the rows with complete paths, and with times in microseconds, as Spark has them. time: the name of the column that
    has ms since 1970."""
    paths = pc.binary_join_element_wise(location_of(root), files["path"], "/")
    times = files[time].cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    for name, column in (("path", paths), (time, times)):
        files = files.set_column(files.schema.get_field_index(name), name, column)
    return files
