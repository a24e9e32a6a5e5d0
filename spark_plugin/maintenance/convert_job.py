"""CONVERT TO DELTA and clones of Parquet files from Spark: tasks read the footers of many files; for few files no tasks are used.

    source = ParquetSource(TablePath("/data/events"), ConvertRequest())
    run_convert(spark, source)
    run_parquet_clone(spark, source, TablePath("/data/copy"), {"replace_table": False, "properties": {}})

The listing and the commit run on the driver, or over Spark Connect in a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from delta_py.copies.clone_parquet import clone_parquet
from delta_py.copies.convert_to_delta import Converted, ConvertRequest, convert, parts_of, read_here
from delta_py.optimize.optimize import AtTable
from delta_py.parquet.foreign_files import FooterReading, read_footers
from spark_plugin.cached_tables import refresh_cached
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.options.settings import TablePath, active
from spark_plugin.tasks.run_near_table import at_table, in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

# How many files a task reads the footers of. A task takes about as long to start as it takes to read so many footers.
_FILES_PER_TASK = 200


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """Parquet files that will become a table, or from which a table is cloned. place: their directory."""

    place: TablePath
    request: ConvertRequest


def run_convert(spark: SparkSession, source: ParquetSource) -> Converted:
    """Make the source a Delta table. Returns its version, which is None if it was a Delta table before. Raises the same errors as
    delta_py's convert, as Spark errors."""
    with as_spark_raises(), active(spark):
        read = partial(_read_footers, spark)
        return convert(source.place.open_store(spark), source.request, read, _run_at_table(spark))


def run_parquet_clone(
    spark: SparkSession, source: ParquetSource, target: TablePath, arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """arguments: replace_table, properties, and others that do not apply to Parquet files, as in the command for shallow clones.
    Returns the clone's version and the metrics of its commit. Raises the same as delta_py's clone_parquet, as Spark errors."""
    with as_spark_raises(), active(spark):
        clone = clone_parquet(
            source.place.open_store(spark),
            target.open_store(spark),
            source.request,
            replace_table=arguments["replace_table"],
            properties=arguments["properties"],
            read=partial(_read_footers, spark),
            run_at_table=_run_at_table(spark),
        )
    refresh_cached(spark, None, target.url)
    return clone


def _run_at_table(spark: SparkSession) -> AtTable:
    """Return the function with which delta_py runs its steps where the table is."""

    def run_at_table(step: Callable[[], T], *, once: bool = False) -> T:
        return at_table(spark, step, once=once)

    return run_at_table


def _read_footers(spark: SparkSession, reading: FooterReading, files: pa.Table) -> pa.Table:
    """Return the footers of the files. If the files are few, no tasks are used. reading: which statistics are read, and the
    store."""
    if files.num_rows <= _FILES_PER_TASK:
        return at_table(spark, partial(read_here, reading, files))
    parts = [_compact_copy(part) for part in parts_of(files, _FILES_PER_TASK)]
    return pa.concat_tables(in_tasks(spark, parts, partial(read_footers, reading)))


def _compact_copy(part: pa.Table) -> pa.Table:
    """Return a copy of a slice that has only the slice's rows. The slice itself would be pickled together with the whole table
    that it was cut from."""
    return part.take(pa.array(range(part.num_rows)))
