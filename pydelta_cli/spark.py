"""Commands that Spark runs if the user asks for it: in a new session for this one command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.release import install_command
from pydelta_cli.run import Run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def _session(run: Run) -> Iterator[SparkSession]:
    """Yield a registered session with the settings of the run. It is stopped afterwards, unless the program already had one.

    Raises UnsupportedOperationError if pyspark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UnsupportedOperationError(
            f"--spark needs pyspark, which cannot be imported here ({error}). Nothing was done. Install it with "
            f"{install_command('spark')}, or leave --spark out."
        ) from error
    from delta_py.storage.store_options import StorageOptions
    from spark_plugin import register

    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName("pydelta").config("spark.sql.session.timeZone", run.zone)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    for name, value in StorageOptions.of(run.storage).values:
        builder = builder.config(f"spark.pydelta.{name}", value)
    spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        register(spark)
        yield spark
    finally:
        if running is None:
            spark.stop()


def _metrics(frame: DataFrame) -> dict[str, Any]:
    metrics: dict[str, Any] = frame.collect()[0]["metrics"].asDict(recursive=True)
    return metrics


def optimize(run: Run, path: str, where: str | None, *, full: bool) -> dict[str, Any]:
    if full:
        raise InvalidOptionError("--full goes without --spark.", option="full")
    with _session(run) as spark:
        from spark_plugin import DeltaTable

        builder = DeltaTable.forPath(spark, path).optimize()
        return _metrics((builder if where is None else builder.where(where)).executeCompaction())


def z_order(run: Run, path: str, columns: Sequence[str], where: str | None) -> dict[str, Any]:
    with _session(run) as spark:
        from spark_plugin import DeltaTable

        builder = DeltaTable.forPath(spark, path).optimize()
        return _metrics((builder if where is None else builder.where(where)).executeZOrderBy(*columns))


def vacuum(
    run: Run, path: str, retention_hours: float | None, keep_versions: Sequence[int], *, lite: bool, delete: bool
) -> pa.Table:
    """The files that are deleted, or would be, with times in ms since 1970."""
    import pyarrow as pa

    with _session(run) as spark:
        from spark_plugin import DeltaTable

        table = DeltaTable.forPath(spark, path)
        unused_files = table.vacuum(retention_hours, dryRun=True, keepVersions=keep_versions, lite=lite).toArrow()
        if delete:
            table.vacuum(retention_hours, keepVersions=keep_versions, lite=lite)
    number = unused_files.schema.get_field_index("modification_time")
    times = unused_files.column(number).cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    return unused_files.set_column(number, "modification_time", times)


def convert(run: Run, path: str, partitioned_by: str | None) -> None:
    from delta_py.types.names import quoted

    with _session(run) as spark:
        from spark_plugin import DeltaTable

        DeltaTable.convertToDelta(spark, f"parquet.{quoted(path)}", partitioned_by)


def clone(
    run: Run,
    path: str,
    target: str,
    version: int | None,
    at: str | None,
    *,
    is_shallow: bool,
    replace: bool,
    properties: Mapping[str, str],
) -> None:
    with _session(run) as spark:
        from spark_plugin import DeltaTable

        table = DeltaTable.forPath(spark, path)
        if version is not None:
            table.cloneAtVersion(version, target, is_shallow, replace, properties)
        elif at is not None:
            table.cloneAtTimestamp(at, target, is_shallow, replace, properties)
        else:
            table.clone(target, is_shallow, replace, properties)
