"""CONVERT TO DELTA from Spark: footers of many files are read in tasks, those of few where the table is to be.

    run_convert(spark, TablePath("/data/events"), ConvertRequest())

The directory is listed, and the commit made, on the driver, or over Spark Connect in a task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from delta_py.commands.convert import Converted, ConvertRequest, convert, parts_of, read_here
from delta_py.parquet.foreign_files import FooterReading, read_footers
from spark_plugin.dml.at_table import at_table, in_tasks
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.options.settings import TablePath, active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

# A task takes about as long to start as it takes to read the footers of so many files.
_FILES_A_TASK = 200


def run_convert(spark: SparkSession, table: TablePath, request: ConvertRequest) -> Converted:
    """Raises as delta_py's convert, as Spark raises."""

    def at(step: Callable[[], T], *, once: bool = False) -> T:
        return at_table(spark, step, once=once)

    with as_spark_raises(), active(spark):
        return convert(table.open_store(spark), request, partial(_read_footers, spark), at)


def _read_footers(spark: SparkSession, reading: FooterReading, files: pa.Table) -> pa.Table:
    if files.num_rows <= _FILES_A_TASK:
        return at_table(spark, partial(read_here, reading, files))
    parts = [_alone(part) for part in parts_of(files, _FILES_A_TASK)]
    return pa.concat_tables(in_tasks(spark, parts, partial(read_footers, reading)))


def _alone(part: pa.Table) -> pa.Table:
    """Copied: a slice would travel with all that it was cut from."""
    return part.take(pa.array(range(part.num_rows)))
