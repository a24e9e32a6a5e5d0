"""A table in a few lines, for the repr of DeltaTable. It is made where the table is: on the driver, or over Spark Connect in a
task."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from delta_py.errors import readable
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.table_methods.table_summary import TableSummary, summary_of, summary_or_problem
from spark_plugin.options.settings import TablePath, active
from spark_plugin.tasks.run_near_table import at_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_summary(spark: SparkSession, table: TablePath) -> TableSummary:
    """Return a summary of the newest version. Raises nothing: if the table cannot be read, or the session has ended, the summary
    says why."""

    def summarize() -> TableSummary:
        """Read the table. Raises an error if that is impossible; summary_or_problem puts it into the summary."""
        with active(spark):
            return at_table(spark, partial(_summary, table.open_store(spark), table.name))

    return summary_or_problem(TableSummary(readable(table.name or table.url)), summarize)


def _summary(store: ObjectStore, name: str | None) -> TableSummary:
    return summary_of(Snapshot.load(store), name)
