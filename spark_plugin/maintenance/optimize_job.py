"""OPTIMIZE as Spark jobs: for each batch of bins one task per bin. If rows are sorted, a sample and a shuffle.

A bin is a group of files whose rows go into the same new files: into one file, or into several if the rows are sorted.

    frame = run_optimize(spark, table, predicate)      # one row: path, metrics

delta_py/optimize/optimize.py decides which files become one, and commits them, where the table is: on the driver, or over Spark
Connect in a task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from delta_py.errors import InvalidOptionError
from delta_py.layout.row_order import RowOrder
from delta_py.optimize.optimize import optimize
from delta_py.optimize.optimize_bins import (
    DEFAULT_DELETED_RATIO,
    DEFAULT_MIN_CUBE_BYTES,
    DEFAULT_TARGET_CUBE_BYTES,
    Bin,
    Compaction,
    OptimizeRequest,
)
from delta_py.storage.addresses import location_of
from delta_py.types.sizes import parse_size
from delta_py.write.arranging import Arrangement, SampledBin, file_shares
from delta_py.write.data_files import WrittenFiles, delete_files_on_failure
from delta_py.write.rewrite import Rewrite
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.maintenance.job_tasks import (
    ANSWER,
    FILE,
    PIECE,
    ROWS,
    SHARE,
    bin_compactor,
    bin_sampler,
    piece_writer,
    row_splitter,
)
from spark_plugin.options.settings import TablePath, active, conf, is_on
from spark_plugin.tasks.run_near_table import abandon, at_table, in_tasks, tasks_worth_while
from spark_plugin.tasks.task_answers import from_text
from spark_plugin.tasks.task_progress import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
MIN_FILE_SIZE = "spark.databricks.delta.optimize.minFileSize"
MAX_DELETED_RATIO = "spark.databricks.delta.optimize.maxDeletedRowsRatio"
BATCH_SIZE = "spark.databricks.delta.optimize.batchSize"
CHECK_Z_ORDER_STATS = "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled"
MIN_CUBE_SIZE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
TARGET_CUBE_SIZE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize"

# The rows that tasks get and return: see row_splitter and piece_writer in job_tasks.py.
_SHARE_SCHEMA = StructType([StructField(SHARE, BinaryType())])
_PIECE_SCHEMA = StructType([StructField(FILE, IntegerType()), StructField(PIECE, IntegerType()), StructField(ROWS, BinaryType())])
_ANSWER_SCHEMA = StructType([StructField(FILE, IntegerType()), StructField(ANSWER, StringType())])


def run_optimize(
    spark: SparkSession,
    table: TablePath,
    predicate: str | None,
    kind: type[Compaction] | None = None,
    *,
    z_order: tuple[str, ...] = (),
    full: bool = False,
) -> DataFrame:
    """Run OPTIMIZE or REORG. Returns one row: path, metrics. predicate: SQL over partition columns; None for the whole table.
    kind: the kind of rewrite, such as Purge for REORG; None for OPTIMIZE. z_order: columns that define the order of the rows;
    empty for none. full: also cluster files that are already clustered. Raises the same as delta_py's optimize, as Spark
    errors."""
    with as_spark_raises(), active(spark):
        store = table.open_store(spark)
        request = replace(_request(spark, predicate), z_order=z_order, full=full)

        def run_at_table(step: Callable[[], T], *, once: bool = False) -> T:
            return at_table(spark, step, once=once)

        result = optimize(store, request, SparkBinWriters(spark), run_at_table, kind)
        metrics = result.metrics()
    return spark.createDataFrame([(location_of(result.table_root), metrics)], RESULT)


class SparkBinWriters:
    """BinWriters as Spark jobs. Rows to sort go through a shuffle, as Arrow batches in a binary column."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def compact(self, rewrite: Rewrite, bins: Sequence[Bin]) -> list[WrittenFiles]:
        """Write the rows of each bin to one file. Returns the files in the order of the bins."""
        with delete_files_on_failure(rewrite.state, partial(abandon, self._spark)):
            return in_tasks(self._spark, bins, bin_compactor(rewrite))

    def sample(self, arrangement: Arrangement, bins: Sequence[SampledBin]) -> list[pa.Table]:
        """Return the sample of each bin; an empty table for a bin without rows. One task reads one share of a bin's files."""
        numbered_shares = [
            (number, SampledBin(share, sampled_bin.every))
            for number, sampled_bin in enumerate(bins)
            for share in file_shares(sampled_bin.files, tasks_worth_while(self._spark))
        ]
        samples = in_tasks(self._spark, [share for _, share in numbered_shares], bin_sampler(arrangement))
        samples_by_bin: list[list[pa.Table]] = [[] for _ in bins]
        for (number, _), sample in zip(numbered_shares, samples, strict=True):
            if sample.num_rows:
                samples_by_bin[number].append(sample)
        return [pa.concat_tables(bin_samples) if bin_samples else pa.table({}) for bin_samples in samples_by_bin]

    def arrange(self, arrangement: Arrangement, bins: Sequence[Bin], orders: Sequence[RowOrder | None]) -> list[WrittenFiles]:
        """Split the rows of all bins by file in one shuffle, and write each file in its own task. Returns the files of each bin.
        orders: one for each bin; None for a bin without rows."""
        bins_with_rows = [(files, order) for files, order in zip(bins, orders, strict=True) if order is not None]
        # The new files of all bins are numbered consecutively: bins_with_rows[i] gets first_files[i] to first_files[i + 1] - 1.
        first_files = [0, *accumulate(order.file_count for _, order in bins_with_rows)]
        file_count = first_files[-1]
        shares = [
            (bytearray(pickle.dumps((number, first_files[number], share))),)
            for number, (files, _) in enumerate(bins_with_rows)
            for share in file_shares(files, tasks_worth_while(self._spark))
        ]
        if not shares:
            return [WrittenFiles() for _ in bins]
        split, write = row_splitter(arrangement, [order for _, order in bins_with_rows]), piece_writer(arrangement)
        with delete_files_on_failure(arrangement.rewrite.state, partial(abandon, self._spark)):
            frame = self._spark.createDataFrame(shares, _SHARE_SCHEMA)
            frame = frame.repartition(len(shares)).mapInArrow(split, _PIECE_SCHEMA)
            frame = frame.repartitionById(file_count, FILE).sortWithinPartitions(FILE, PIECE)
            with watched(self._spark, 2 * len(shares) + file_count):
                answers = frame.mapInArrow(write, _ANSWER_SCHEMA).collect()
                written_by_file = {row[FILE]: from_text(row[ANSWER]) for row in answers}
        # A file for which the shuffle has no rows is not written.
        written_by_bin = iter(
            WrittenFiles.of_all(written_by_file[number] for number in range(first, end) if number in written_by_file)
            for first, end in pairwise(first_files)
        )
        return [WrittenFiles() if order is None else next(written_by_bin) for order in orders]


def _request(spark: SparkSession, predicate: str | None) -> OptimizeRequest:
    """Return the request with the session's settings, by delta-spark's names."""
    return OptimizeRequest(
        predicate,
        target_file_bytes=_size(spark, MAX_FILE_SIZE),
        min_file_bytes=_size(spark, MIN_FILE_SIZE),
        max_deleted_ratio=_ratio(spark, MAX_DELETED_RATIO, DEFAULT_DELETED_RATIO),
        batch_bytes=_size(spark, BATCH_SIZE),
        time_zone=conf(spark, "spark.sql.session.timeZone") or "UTC",
        check_z_order_stats=is_on(spark, CHECK_Z_ORDER_STATS),
        min_cube_bytes=_size(spark, MIN_CUBE_SIZE) or DEFAULT_MIN_CUBE_BYTES,
        target_cube_bytes=_size(spark, TARGET_CUBE_SIZE) or DEFAULT_TARGET_CUBE_BYTES,
    )


def _size(spark: SparkSession, name: str) -> int | None:
    """Return a setting as a number of bytes; None if it is not set."""
    text = conf(spark, name)
    if text is None:
        return None
    size = parse_size(text)
    if size is None:
        raise _illegal(name, text, "a number of bytes, such as 1073741824 or 1gb")
    return size


def _ratio(spark: SparkSession, name: str, default: float) -> float:
    """Return a setting as a number, or the default if it is not set."""
    text = conf(spark, name)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise _illegal(name, str(text), "a number between 0 and 1") from None


def _illegal(name: str, text: str, expected: str) -> InvalidOptionError:
    return InvalidOptionError(f"The setting {name} is {text!r}: give {expected}.", option=name)


# ---------------------------------------------------------------- the result


def _struct(**fields: Any) -> StructType:
    """Return a struct of nullable fields. fields: their types by name."""
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
"""The result of OPTIMIZE, as in delta-spark."""
