"""Which writes skip Spark's weighing of batches, and that other writes do not change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from delta_py import DeltaTable
from spark_plugin.tasks.arrow_batches import unweighed

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def properties(spark: SparkSession) -> dict[str, str]:
    """The job properties of this thread, in addition to the session's settings."""
    values = {name: spark.sparkContext.getLocalProperty(name) for name in (BYTES, RECORDS)}
    return {name: value for name, value in values.items() if value is not None}


def inside(spark: SparkSession, schema: str) -> dict[str, str]:
    """The properties while a write of such rows runs. Settings must not change during it, and properties must be restored
    afterwards."""
    before, settings = properties(spark), spark.conf.getAll
    with unweighed(spark, StructType.fromDDL(schema)):
        write_properties = properties(spark)
        assert spark.conf.getAll == settings
    assert properties(spark) == before
    return write_properties


@pytest.mark.parametrize(
    "schema", ["id long, x double, d date, t timestamp, n timestamp_ntz, p decimal(38,2), f boolean", "s struct<x: int>"]
)
def test_rows_of_a_fixed_width_are_not_weighed(spark: SparkSession, schema: str) -> None:
    assert inside(spark, schema) == {BYTES: "2147483647"}


def test_rows_with_texts_come_in_small_batches_without_weighing(spark: SparkSession) -> None:
    write_properties = inside(spark, "id long, name string")
    assert write_properties[BYTES] == "2147483647" and int(write_properties[RECORDS]) <= 2048


@pytest.mark.parametrize("schema", ["b binary", "a array<int>", "m map<string, int>", "s struct<x: array<int>>", "v variant"])
def test_rows_that_may_be_large_are_weighed(spark: SparkSession, schema: str) -> None:
    assert inside(spark, f"id long, {schema}") == {}


@pytest.mark.parametrize("name", [BYTES, RECORDS])
def test_sizes_that_the_user_set_stay(spark: SparkSession, conf: Callable[[Mapping[str, str]], None], name: str) -> None:
    conf({name: "77"})
    assert inside(spark, "id long") == {}


def test_properties_are_restored_when_the_write_fails(spark: SparkSession) -> None:
    spark.sparkContext.setLocalProperty(BYTES, "5")
    try:
        with pytest.raises(ZeroDivisionError), unweighed(spark, StructType.fromDDL("id long")):
            raise ZeroDivisionError
        assert properties(spark) == {BYTES: "5"}
    finally:
        spark.sparkContext.setLocalProperty(BYTES, None)


# ---------------------------------------------------------------- what Spark makes of it


def largest_batch(frame: DataFrame) -> int:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"rows": pa.array([batch.num_rows])})

    return max(row["rows"] for row in frame.mapInArrow(count, "rows long").collect())


def test_tasks_take_the_sizes_from_the_properties(spark: SparkSession) -> None:
    frame = spark.range(0, 5000, 1, 1).selectExpr("id", "cast(id as string) as name")
    assert largest_batch(frame) == 5000
    with unweighed(spark, frame.schema):
        assert largest_batch(frame) == 2048


def test_batches_of_a_stream_take_them_too(
    spark: SparkSession, tmp_path: Path, conf: Callable[[Mapping[str, str]], None]
) -> None:
    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"rows": pa.array([batch.num_rows]), "s": ["text"]})

    source = str(tmp_path / "source")
    spark.range(0, 5000, 1, 1).write.format("pydelta").save(source)

    def largest(name: str) -> int:
        stream = spark.readStream.format("pydelta").load(source).mapInArrow(sizes, "rows long, s string")
        writer = stream.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / name))
        assert properties(spark) == {}
        query.awaitTermination()
        return max(row["rows"] for row in DeltaTable(str(tmp_path / name)).to_arrow().to_pylist())

    assert largest("usual") == 2048
    conf({RECORDS: "77"})
    assert largest("as the user wants") == 77


def test_concurrent_queries_keep_session_settings_during_a_write(spark: SparkSession, tmp_path: Path) -> None:
    started, go_on, path = tmp_path / "started", tmp_path / "go_on", str(tmp_path / "t")

    def held_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started.touch()
        wait_for(go_on)
        yield from batches

    rows = spark.range(0, 5000, 1, 1).selectExpr("id", "cast(id as string) as name")
    with ThreadPoolExecutor(1) as threads:
        write = threads.submit(rows.mapInArrow(held_up, rows.schema).write.format("pydelta").save, path)
        try:
            wait_for(started)
            assert largest_batch(rows) == 5000 and BYTES not in spark.conf.getAll
            spark.conf.set(RECORDS, "77")
            assert largest_batch(rows) == 77
            go_on.touch()
            write.result()
            assert spark.conf.get(RECORDS) == "77" and DeltaTable(path).to_arrow().num_rows == 5000
        finally:
            go_on.touch()
            spark.conf.unset(RECORDS)


def wait_for(file: Path) -> None:
    end = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < end, f"{file} did not appear"
        time.sleep(0.02)
