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
    """Run DeltaTable.vacuum. request_base: the part of the request that does not come from the session's settings. lite,
    keep_clones: None for the session's setting. Returns the files that a dry run would delete; otherwise a frame without columns
    and rows."""
    with as_spark_raises(), active(spark):
        if lite is None:  # an inventory takes the place of a listing too, so the session's setting does not apply to it
            lite = inventory is None and is_on(spark, LITE, default=False)
        request = replace(
            request_base,
            check_retention=is_on(spark, RETENTION_CHECK),
            logs=is_on(spark, LOGGING),
            kind=VacuumKind.LITE if lite else VacuumKind.FULL,
            inventory=None if inventory is None else _listed_files(inventory),
            keep_clones=is_on(spark, KEEP_CLONES) if keep_clones is None else keep_clones,
        )
        store = table.open_store(spark)
        if not dry_run:
            at_table(spark, partial(_vacuum, store, request), once=True)
            return spark.createDataFrame([], StructType([]))
        files = at_table(spark, partial(_find_files, store, request))
    return to_frame(spark, _with_whole_paths(store.root, files, "modification_time"), FOUND)


@progress("RESTORE QUARANTINED", "files")
def run_restore_quarantined(spark: SparkSession, table: TablePath, *, dry_run: bool) -> DataFrame:
    """Run DeltaTable.restoreQuarantined: return one row for each file in quarantine, with the columns RESTORED."""
    with as_spark_raises(), active(spark):
        store = table.open_store(spark)
        files = at_table(spark, partial(restore_quarantined, store, dry_run=dry_run), once=not dry_run)
    return to_frame(spark, _with_whole_paths(store.root, files, "quarantined"), RESTORED)


def _listed_files(inventory: DataFrame) -> pa.Table:
    """Return the files of an inventory, without the directories. Raises the errors of check_inventory for wrong columns."""
    check_inventory(to_arrow_schema(inventory.schema))
    return inventory.filter("NOT isDir").select("path", "length", "isDir", "modificationTime").toArrow()


def _vacuum(store: ObjectStore, request: VacuumRequest) -> int:
    """Delete the files, and return how many were deleted."""
    return vacuum(store, request).deleted


def _find_files(store: ObjectStore, request: VacuumRequest) -> pa.Table:
    """Return the files that a VACUUM would delete."""
    return Vacuum.begin(store, request).find()


def _with_whole_paths(root: str, files: pa.Table, time_column: str) -> pa.Table:
    """Return the rows with whole paths, and with times in microseconds, as Spark has them. time_column: the name of the column
    that has ms since 1970."""
    paths = pc.binary_join_element_wise(location_of(root), files["path"], "/")
    times = files[time_column].cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    for name, column in (("path", paths), (time_column, times)):
        files = files.set_column(files.schema.get_field_index(name), name, column)
    return files
