"""FSCK from Spark, and the dry run of RESTORE. They run where the table is: on the driver, or over Spark Connect in a task."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from delta_py.copies.restore import restore_faults
from delta_py.progress import progress
from delta_py.repair.file_check import FAULT_SCHEMA
from delta_py.repair.fsck import fsck
from delta_py.scan.time_travel import parse_timestamp_ms
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.maintenance.result_frames import to_frame
from spark_plugin.options.settings import TablePath, active, conf
from spark_plugin.tasks.run_near_table import at_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPES = {pa.string(): StringType(), pa.int64(): LongType(), pa.bool_(): BooleanType()}
FAULTS = StructType([StructField(f.name, _TYPES[f.type]) for f in FAULT_SCHEMA])


def run_fsck(spark: SparkSession, table: TablePath, *, dry_run: bool, allow_data_loss: bool, check_data: bool) -> DataFrame:
    """Run DeltaTable.fsck: return one row for each fault, with the columns FAULTS."""
    with as_spark_raises(), active(spark), progress("FSCK", "bytes" if check_data else "files"):
        store = table.open_store(spark)
        step = partial(fsck, store, dry_run=dry_run, allow_data_loss=allow_data_loss, check_data=check_data)
        faults = at_table(spark, step, once=not dry_run)
    return to_frame(spark, faults, FAULTS)


@progress("RESTORE", "files")
def run_restore_check(spark: SparkSession, table: TablePath, target: int | str) -> DataFrame:
    """Return the missing or damaged files that a RESTORE would need, without restoring. target: a version, or a time as text,
    which stands for the newest version at or before it."""
    with as_spark_raises(), active(spark):
        zone = conf(spark, "spark.sql.session.timeZone") or "UTC"
        version = {"version": target} if isinstance(target, int) else {"timestamp_ms": parse_timestamp_ms(target, zone)}
        faults = at_table(spark, partial(restore_faults, table.open_store(spark), **version))
    return to_frame(spark, faults, FAULTS)
