"""The report on a table. It is made where the table is: on the driver, or over Spark Connect in a task."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from delta_py.report.facts import TableFacts
from delta_py.report.gathering import ReportRequest, gather
from delta_py.report.report import Report
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.maintenance.layout import filtered_columns
from spark_plugin.options.settings import TablePath, active
from spark_plugin.tasks.run_near_table import at_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_report(spark: SparkSession, table: TablePath, *, vacuum: bool, check_log: bool) -> Report:
    """Make the report of DeltaTable.report. vacuum, check_log: as there."""
    with as_spark_raises(), active(spark):
        store = table.open_store(spark)
        request = ReportRequest(vacuum=vacuum, check_log=check_log, filtered=filtered_columns(spark, store))
        return Report(at_table(spark, partial(_facts, store, request)))


def _facts(store: ObjectStore, request: ReportRequest) -> TableFacts:
    """Return the facts about the newest version, in the process that can read the table."""
    return gather(Snapshot.load(store), request)
