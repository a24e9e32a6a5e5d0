"""OPTIMIZE as Spark jobs: a task for each bin of files, a job for each batch of bins.

    frame = run_optimize(spark, table, predicate)      # one row: path, metrics

Which files become one, and how that is committed, is decided in delta_py/commands/optimize.py, where the table is: on the driver,
or over Spark Connect in a task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

from delta_py.commands.optimize import DEFAULT_DELETED_RATIO, Bin, Compaction, OptimizeRequest, optimize
from delta_py.errors import InvalidOptionError
from delta_py.protocol.sizes import parse_size
from delta_py.storage.addresses import location_of
from delta_py.write.files import WrittenFiles, delete_files_of
from delta_py.write.rewrite import Rewrite
from spark_plugin.dml.at_table import abandon, at_table, each_in_task
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.maintenance.tasks import bin_compactor
from spark_plugin.options.settings import TablePath, active, conf
from spark_plugin.spark_internals import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
MIN_FILE_SIZE = "spark.databricks.delta.optimize.minFileSize"
MAX_DELETED_RATIO = "spark.databricks.delta.optimize.maxDeletedRowsRatio"
BATCH_SIZE = "spark.databricks.delta.optimize.batchSize"


def run_optimize(
    spark: SparkSession, table: TablePath, predicate: str | None, kind: type[Compaction] | None = None
) -> DataFrame:
    """predicate: SQL over partition columns; None for the whole table. kind: as of delta_py's optimize. Raises as that, as Spark
    raises."""
    with as_spark_raises(), active(spark):
        store = table.open_store(spark)
        request = _request(spark, predicate)

        def at(step: Callable[[], T], *, once: bool = False) -> T:
            return at_table(spark, step, once=once)

        done = optimize(store, request, partial(_compact_bins, spark), at, kind)
        metrics = done.metrics()
    return spark.createDataFrame([(location_of(done.table_root), metrics)], RESULT)


def _compact_bins(spark: SparkSession, rewrite: Rewrite, bins: Sequence[Bin]) -> list[WrittenFiles]:
    try:
        if is_connect(spark):
            return each_in_task(spark, bins, bin_compactor(rewrite))
        return spark.sparkContext.parallelize(bins, len(bins)).map(bin_compactor(rewrite)).collect()
    except BaseException:
        abandon(spark, partial(delete_files_of, rewrite.state.store, rewrite.state.write_id))
        raise


def _request(spark: SparkSession, predicate: str | None) -> OptimizeRequest:
    """With what the session's settings say, by the reference's names."""
    return OptimizeRequest(
        predicate,
        target_file_bytes=_size(spark, MAX_FILE_SIZE),
        min_file_bytes=_size(spark, MIN_FILE_SIZE),
        max_deleted_ratio=_ratio(spark, MAX_DELETED_RATIO, DEFAULT_DELETED_RATIO),
        batch_bytes=_size(spark, BATCH_SIZE),
        time_zone=conf(spark, "spark.sql.session.timeZone") or "UTC",
    )


def _size(spark: SparkSession, name: str) -> int | None:
    text = conf(spark, name)
    if text is None:
        return None
    size = parse_size(text)
    if size is None:
        raise _illegal(name, text, "a number of bytes, such as 1073741824 or 1gb")
    return size


def _ratio(spark: SparkSession, name: str, default: float) -> float:
    text = conf(spark, name)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise _illegal(name, str(text), "a number between 0 and 1") from None


def _illegal(name: str, text: str, wanted: str) -> InvalidOptionError:
    return InvalidOptionError(f"The setting {name} is {text!r}: give {wanted}.", option=name)


# ---------------------------------------------------------------- the result


def _struct(**fields: Any) -> StructType:
    return StructType([StructField(name, data_type, True) for name, data_type in fields.items()])


_LONG = LongType()
_SIZES = _struct(min=_LONG, max=_LONG, avg=DoubleType(), totalFiles=_LONG, totalSize=_LONG)
_NUM_AND_SIZE, _FILES_AND_SIZE = _struct(num=_LONG, size=_LONG), _struct(numFiles=_LONG, size=_LONG)
_Z_ORDER = _struct(
    strategyName=StringType(),
    inputCubeFiles=_NUM_AND_SIZE,
    inputOtherFiles=_NUM_AND_SIZE,
    inputNumCubes=_LONG,
    mergedFiles=_NUM_AND_SIZE,
    numOutputCubes=_LONG,
    mergedNumCubes=_LONG,
)
_CLUSTERING = _struct(
    inputZCubeFiles=_FILES_AND_SIZE,
    inputOtherFiles=_FILES_AND_SIZE,
    inputNumZCubes=_LONG,
    mergedFiles=_FILES_AND_SIZE,
    numOutputZCubes=_LONG,
)
_PARALLELISM = _struct(
    maxClusterActiveParallelism=_LONG,
    minClusterActiveParallelism=_LONG,
    maxSessionActiveParallelism=_LONG,
    minSessionActiveParallelism=_LONG,
)
_METRICS = _struct(
    numFilesAdded=_LONG,
    numFilesRemoved=_LONG,
    filesAdded=_SIZES,
    filesRemoved=_SIZES,
    partitionsOptimized=_LONG,
    zOrderStats=_Z_ORDER,
    clusteringStats=_CLUSTERING,
    numBins=_LONG,
    numBatches=_LONG,
    totalConsideredFiles=_LONG,
    totalFilesSkipped=_LONG,
    preserveInsertionOrder=BooleanType(),
    numFilesSkippedToReduceWriteAmplification=_LONG,
    numBytesSkippedToReduceWriteAmplification=_LONG,
    startTimeMs=_LONG,
    endTimeMs=_LONG,
    totalClusterParallelism=_LONG,
    totalScheduledTasks=_LONG,
    autoCompactParallelismStats=_PARALLELISM,
    deletionVectorStats=_struct(numDeletionVectorsRemoved=_LONG, numDeletionVectorRowsRemoved=_LONG),
    numTableColumns=_LONG,
    numTableColumnsWithStats=_LONG,
)
RESULT = _struct(path=StringType(), metrics=_METRICS)
"""Of OPTIMIZE, as the reference's."""
