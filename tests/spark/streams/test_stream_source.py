"""Streams from a table, with Spark: what reaches a query, with restarts; test_stream_reader tests the reader alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin.exceptions import InvalidOptionError, SchemaMismatchError, UnsupportedOperationError
from tests.support.tables.streamed_tables import daily_table, rows

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture
def table(tmp_path: Path) -> str:
    return daily_table(tmp_path / "t")


class Copy:
    """Copies a stream into another table until no rows remain."""

    def __init__(self, spark: SparkSession, table: str, root: Path) -> None:
        self.spark, self.table = spark, table
        self.target, self.checkpoint = str(root / "copy"), str(root / "checkpoint")

    def run(self, **options: Any) -> Any:
        return self.write(self.spark.readStream.format("pydelta").options(**options).load(self.table))

    def write(self, frame: DataFrame) -> Any:
        writer = frame.writeStream.format("pydelta").trigger(availableNow=True).option("checkpointLocation", self.checkpoint)
        query = writer.start(self.target)
        query.awaitTermination()
        return query

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in PlainTable(self.target).to_arrow(["id"]).to_pylist())


@pytest.fixture
def copy(spark: SparkSession, table: str, tmp_path: Path) -> Copy:
    return Copy(spark, table, tmp_path)


def test_stream_copies_a_table_and_goes_on_after_a_restart(copy: Copy, table: str) -> None:
    query = copy.run(maxFilesPerTrigger=1)
    assert copy.ids() == [1, 2, 3, 4]
    assert PlainTable(copy.target).version == 2, "three batches of a file each"
    progress = [
        json.loads(p["sources"][0]["latestOffset"])
        if isinstance(p["sources"][0]["latestOffset"], str)
        else p["sources"][0]["latestOffset"]
        for p in map(_as_dict, query.recentProgress)
        if p["sources"][0]["latestOffset"]
    ]
    assert [p["numFilesOutstanding"] for p in progress][:3] == [2, 1, 0]
    write_delta(table, rows(5), mode="append")
    write_delta(table, rows(1, 2, 5), mode="overwrite", replace_where="day = 'mon'", data_change=False)
    copy.run(maxFilesPerTrigger=1)
    assert copy.ids() == [1, 2, 3, 4, 5]


def _as_dict(progress: Any) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(progress.json)
    return fields


def test_stream_batch_whose_end_was_noted_is_run_again_as_it_was(copy: Copy, table: str) -> None:
    """As after a kill between recording a batch's offsets and its commit: later files do not join the batch."""
    copy.run(maxFilesPerTrigger=2)
    assert PlainTable(copy.target).version == 1
    commits = Path(copy.checkpoint, "commits")
    for name in ("1", ".1.crc"):
        (commits / name).unlink(missing_ok=True)
    write_delta(table, rows(6), mode="append")
    copy.run(maxFilesPerTrigger=2)
    assert copy.ids() == [1, 2, 3, 4, 6]
    assert PlainTable(copy.target).version == 2


def test_stream_of_changes_and_its_errors_reach_the_user(copy: Copy, spark: SparkSession, table: str, tmp_path: Path) -> None:
    write_delta(table, rows(), mode="overwrite", replace_where="id = 3")
    with pytest.raises(UnsupportedOperationError) as caught:
        copy.run(startingVersion=0)
    assert caught.value.error_class == "DELTA_SOURCE_IGNORE_DELETE"
    feed = Copy(spark, table, tmp_path / "feed")
    feed.run(readChangeFeed=True, startingVersion=0)
    feed_rows = PlainTable(feed.target).to_arrow(["id", "_change_type", "_commit_version"]).to_pylist()
    assert sorted(tuple(row.values()) for row in feed_rows) == [
        (1, "insert", 0),
        (2, "insert", 0),
        (3, "delete", 3),
        (3, "insert", 1),
        (4, "insert", 2),
    ]
    with pytest.raises(InvalidOptionError, match="maxFilesPerTrigger"):
        copy.run(maxFilesPerTriger=1)


def test_stream_whose_schema_grows_is_loaded_anew_and_goes_on(copy: Copy, spark: SparkSession, table: str) -> None:
    copy.run()
    frame = spark.readStream.format("pydelta").load(table)
    write_delta(table, rows(5).append_column("more", pa.array(["x"])), mode="append", merge_schema=True)
    with pytest.raises(SchemaMismatchError) as caught:
        copy.write(frame)
    assert caught.value.error_class == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    writer = spark.readStream.format("pydelta").load(table).writeStream.format("pydelta").trigger(availableNow=True)
    writer.option("checkpointLocation", copy.checkpoint).option("mergeSchema", True).start(copy.target).awaitTermination()
    assert PlainTable(copy.target).to_arrow(["id", "more"], "id >= 4").sort_by("id").to_pylist() == [
        {"id": 4, "more": None},
        {"id": 5, "more": "x"},
    ]


def test_stream_of_a_table_by_name_and_a_users_schema(copy: Copy, spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE streamed_from USING pydelta LOCATION '{table}'")
    try:
        copy.write(spark.readStream.table("streamed_from"))
    finally:
        spark.sql("DROP TABLE streamed_from")
    assert copy.ids() == [1, 2, 3, 4]
    narrow = spark.readStream.format("pydelta").schema("id bigint").load(table)
    query = narrow.writeStream.format("memory").queryName("narrow").trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(row["id"] for row in spark.table("narrow").collect()) == [1, 2, 3, 4]


def test_stream_of_two_tables_has_each_row_once_over_restarts(
    copy: Copy, spark: SparkSession, table: str, tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    write_delta(other, rows(11, 12), mode="append")

    def run() -> None:
        """The second table has no new rows if only the first is written to, and the reverse."""
        reader = spark.readStream.format("pydelta").option("maxFilesPerTrigger", 1)
        copy.write(reader.load(table).union(reader.load(other)))

    run()
    assert copy.ids() == [1, 2, 3, 4, 11, 12]
    for path, id in ((table, 5), (other, 13)):
        write_delta(path, rows(id), mode="append")
        run()
    assert copy.ids() == [1, 2, 3, 4, 5, 11, 12, 13]


def test_stream_from_latest_loses_no_commit_before_first_batch(
    copy: Copy, spark: SparkSession, table: str
) -> None:
    """Spark asks for the first offset of a stream repeatedly until the first batch is recorded."""
    frame = spark.readStream.format("pydelta").option("startingVersion", "latest").load(table)
    copy.write(frame)
    for id in (5, 6):
        write_delta(table, rows(id), mode="append")
    copy.write(frame)
    write_delta(table, rows(7), mode="append")
    copy.run(startingVersion="latest")
    assert copy.ids() == [5, 6, 7]


def test_event_time_order_keeps_a_watermark_from_dropping_rows(spark: SparkSession, tmp_path: Path) -> None:
    """The files come in the reverse order of their times; the second query shows that the watermark would drop rows."""
    path = str(tmp_path / "late")
    for minute in (20, 10, 0):
        micros = [1_700_000_000_000_000 + minute * 60_000_000 + second * 1_000_000 for second in (0, 59)]
        at = pa.array(micros, pa.timestamp("us", "UTC"))
        write_delta(path, pa.table({"id": pa.array([minute, minute + 1], pa.int64()), "at": at}), mode="append")
    ids_by_name = {}
    for name, options in (("ordered", {"withEventTimeOrder": True, "eventTimeColumn": "at"}), ("by_age", {})):
        copy = Copy(spark, path, tmp_path / name)
        frame = spark.readStream.format("pydelta").options(maxFilesPerTrigger=1, **options).load(path)
        copy.write(frame.withWatermark("at", "0 seconds").dropDuplicates(["id", "at"]))
        ids_by_name[name] = copy.ids()
    assert ids_by_name["ordered"] == [0, 1, 10, 11, 20, 21]
    assert set(ids_by_name["by_age"]) < set(ids_by_name["ordered"])


def test_stream_joined_and_counted_gives_what_a_batch_gives(copy: Copy, spark: SparkSession, table: str) -> None:
    days = spark.createDataFrame([("mon", 1), ("tue", 2)], "day string, number int")
    stream = spark.readStream.format("pydelta").option("maxFilesPerTrigger", 1).load(table)
    counts = stream.join(days, "day").groupBy("number").agg(F.sum("id").alias("sum"))
    writer = counts.writeStream.format("pydelta").outputMode("complete").trigger(availableNow=True)
    writer.option("checkpointLocation", copy.checkpoint).start(copy.target).awaitTermination()
    assert sorted(tuple(row.values()) for row in PlainTable(copy.target).to_arrow().to_pylist()) == [(1, 3), (2, 3)]
