"""Streams out of a table in the columns that their batches need: the rows and counts that Spark's own reading gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import write_delta
from spark_plugin import pruning
from tests.support.sampling import sampled
from tests.support.small_table import append, make_table

COLUMNAR = "spark.pydelta.columnarReader.enabled"
PRUNING = "spark.pydelta.pruning.enabled"

ROWS = 12
TIMES = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(ROWS)]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three commits of four rows each, in four files."""
    rows = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [f"n{n % 3}" for n in range(ROWS)],
            "at": pa.array(TIMES, pa.timestamp("us", tz="UTC")),
            "place": [{"x": n, "y": str(n)} for n in range(ROWS)],
            "part": ["a" if n < 6 else "b" for n in range(ROWS)],
        }
    )
    commits = [rows.slice(first, 4) for first in range(0, ROWS, 4)]
    return make_table(tmp_path / "t", commits, partition_by=["part"], properties={"delta.enableChangeDataFeed": "true"})


class Run:
    """Streams to memory until nothing is left."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root, self.number = spark, root, 0
        self.plan, self.progress = "", list[dict[str, Any]]()

    def rows(self, frame: DataFrame, mode: str = "append") -> list[tuple[Any, ...]]:
        """In order. Beside it the plan of the last batch, and what Spark says of those that had rows."""
        self.number += 1
        name = f"streamed_{self.root.name.replace('-', '_')}_{self.number}"
        query = (
            frame.writeStream.format("memory")
            .queryName(name)
            .outputMode(mode)
            .option("checkpointLocation", str(self.root / f"checkpoint{self.number}"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        self.plan = query._jsq.explainInternal(False)
        self.progress = [json.loads(each.json) for each in query.recentProgress if each.numInputRows]
        found = self.spark.table(name).collect()
        self.spark.catalog.dropTempView(name)
        return sorted((tuple(row) for row in found), key=repr)

    def scanned(self) -> list[list[str]]:
        """The columns of each scan of the last batch."""
        return [re.findall(r"(\w+)#", columns) for columns in re.findall(r"MicroBatchScan\[([^\]]*)\]", self.plan)]

    def input_rows(self) -> int:
        return sum(each["sources"][0]["numInputRows"] for each in self.progress)


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return Run(spark, tmp_path)


@pytest.fixture
def columnar(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """How many scans were read in columns since."""
    before = pruning.status(spark)
    yield lambda: pruning.status(spark).columnar - before.columnar
    after = pruning.status(spark)
    assert after.backed_off == before.backed_off, after.last_error


def stream(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.readStream.format("pydelta").options(**options).load(path)


def doubled(frame: DataFrame) -> DataFrame:
    return frame.filter("id > 1 and part = 'a'").selectExpr("id * 2 as twice", "name")


def whole(frame: DataFrame) -> DataFrame:
    return frame


def nested(frame: DataFrame) -> DataFrame:
    return frame.select("place.x", "id")


def late(frame: DataFrame) -> DataFrame:
    return frame.withWatermark("at", "1 hour").groupBy(F.window("at", "6 hours")).agg(F.sum("id"))


def twice(frame: DataFrame) -> DataFrame:
    return frame.select("id", "name").union(frame.filter("id < 3").selectExpr("id + 100", "part"))


QUERIES = {query.__name__: query for query in (doubled, whole, nested, late, twice)}


@pytest.mark.parametrize("query", sampled(QUERIES, 2))
def test_rows_and_counts_are_those_of_sparks_own_reading(
    query: str, spark: SparkSession, table: str, run: Run, columnar: Callable[[], int], conf: Any
) -> None:
    frame = QUERIES[query](stream(spark, table, maxFilesPerTrigger=1))
    ours = run.rows(frame)
    counted = [(each["numInputRows"], each["sources"][0]["endOffset"]) for each in run.progress]
    assert columnar() >= (3 if query in ("doubled", "late") else 0), "structs come as rows"
    conf({PRUNING: "false"})
    assert run.rows(QUERIES[query](stream(spark, table, maxFilesPerTrigger=1))) == ours
    assert [(each["numInputRows"], each["sources"][0]["endOffset"]) for each in run.progress] == counted
    assert ours


def test_a_batch_reads_the_columns_that_it_needs(spark: SparkSession, table: str, run: Run) -> None:
    assert len(run.rows(doubled(stream(spark, table)))) == 4
    assert run.scanned() == [["id", "name", "part"]]
    assert run.rows(stream(spark, table).groupBy().count(), "complete") == [(ROWS,)]
    assert run.scanned() == [["id"]]
    assert (run.input_rows(), run.progress[0]["sources"][0]["description"]) == (ROWS, f"pydelta[{table}]")
    assert len(run.rows(stream(spark, table))) == ROWS
    assert run.scanned() == [["id", "name", "at", "place", "part"]]
    assert len(run.rows(twice(stream(spark, table)))) == ROWS + 3
    assert run.scanned() == [["id", "name", "at", "place", "part"]] * 2, "Spark counts rows of equal scans together"


def test_switches_give_rows_and_every_column(
    spark: SparkSession, table: str, run: Run, columnar: Callable[[], int], conf: Any
) -> None:
    conf({COLUMNAR: "false"})
    assert len(run.rows(doubled(stream(spark, table)))) == 4
    assert (run.scanned(), columnar()) == ([["id", "name", "part"]], 0)
    whole_rows = [["id", "name", "at", "place", "part"]]
    conf({COLUMNAR: "true"})
    assert len(run.rows(doubled(stream(spark, table, pruning="false")))) == 4
    assert (run.scanned(), columnar()) == (whole_rows, 0)
    conf({PRUNING: "false"})
    assert len(run.rows(doubled(stream(spark, table)))) == 4
    assert (run.scanned(), columnar()) == (whole_rows, 0)


def test_changes_are_read_in_the_columns_that_are_needed(
    spark: SparkSession, table: str, run: Run, columnar: Callable[[], int]
) -> None:
    write_delta(table, pa.table({"id": pa.array([3], pa.int64()), "part": ["a"]}), mode="overwrite", replace_where="id = 3")
    feed = stream(spark, table, readChangeFeed="true", startingVersion="0").select("_change_type", "id").filter("id > 2")
    found = run.rows(feed)
    assert run.scanned() == [["id", "_change_type"]]
    assert [row for row in found if row[1] < 5] == [("delete", 3), ("insert", 3), ("insert", 3), ("insert", 4)]
    assert columnar() == 1


def test_rows_in_the_order_of_their_time_are_read_in_the_columns_that_are_needed(
    spark: SparkSession, table: str, run: Run, columnar: Callable[[], int]
) -> None:
    """Each batch has a part of each file's rows, by a condition on a column that the query does not read."""
    options = {"withEventTimeOrder": "true", "eventTimeColumn": "at", "maxFilesPerTrigger": "1"}
    assert sorted(row[0] for row in run.rows(stream(spark, table, **options).select("id"))) == list(range(ROWS))
    assert run.scanned() == [["id"]]
    assert columnar()


def test_schema_of_the_user_names_columns_in_its_own_case(spark: SparkSession, table: str, run: Run) -> None:
    frame = spark.readStream.format("pydelta").schema("ID bigint, NAME string").load(table).select("NAME", "ID").filter("ID > 9")
    assert run.rows(frame) == [("n1", 10), ("n2", 11)]
    assert run.scanned() == [["ID", "NAME"]]


def test_options_of_the_read_and_the_query_choose_columns_and_rows_together(spark: SparkSession, table: str, run: Run) -> None:
    frame = stream(spark, table, columns="id, name, part", filter="id > 5").filter("part = 'b'").select("id")
    assert run.rows(frame) == sorted([(n,) for n in range(6, ROWS)], key=repr)
    assert run.scanned() == [["id", "part"]]


def test_streams_of_one_table_are_joined_with_each_other(
    spark: SparkSession, table: str, run: Run, columnar: Callable[[], int], conf: Any
) -> None:
    def joined() -> DataFrame:
        left = stream(spark, table, maxFilesPerTrigger=2).select("id", "part")
        right = stream(spark, table, maxFilesPerTrigger=1).selectExpr("id as other", "name").filter("name = 'n1'")
        return left.join(right, F.expr("id = other"))

    ours = run.rows(joined())
    assert [row[0] for row in ours] == [1, 10, 4, 7]
    counts = [[source["numInputRows"] for source in each["sources"]] for each in run.progress]
    assert columnar()
    conf({PRUNING: "false"})
    assert run.rows(joined()) == ours
    assert [[source["numInputRows"] for source in each["sources"]] for each in run.progress] == counts


def test_query_goes_on_where_spark_s_own_reading_stopped(spark: SparkSession, table: str, tmp_path: Path, conf: Any) -> None:
    """With state that is kept: sums of a window."""

    def batch(enabled: str) -> None:
        conf({PRUNING: enabled})
        query = (
            stream(spark, table)
            .groupBy("part")
            .agg(F.sum("id").alias("ids"))
            .writeStream.format("memory")
            .queryName("goes_on")
            .outputMode("complete")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def found() -> dict[str, int]:
        return {row.part: row.ids for row in spark.table("goes_on").collect()}

    try:
        for number, enabled in enumerate(("false", "true", "false", "true")):
            batch(enabled)
            assert found() == {"a": 15, "b": 51 + 100 * number}
            append(Path(table), one_row(100), partition_by=["part"])
    finally:
        spark.catalog.dropTempView("goes_on")


def one_row(number: int) -> pa.Table:
    at = pa.array([TIMES[0]], pa.timestamp("us", tz="UTC"))
    return pa.table({"id": pa.array([number], pa.int64()), "name": ["n"], "at": at, "place": [{"x": 1, "y": "1"}], "part": ["b"]})


def test_udf_over_a_stream_ends(spark: SparkSession, table: str, run: Run) -> None:
    increased = F.udf(lambda value: value + 1, "bigint")
    assert run.rows(stream(spark, table).filter("id > 9").select(increased("id"))) == [(11,), (12,)]
    assert run.scanned() == [["id"]]


def test_batch_of_a_function_has_its_rows(spark: SparkSession, table: str, tmp_path: Path) -> None:
    seen = list[int]()
    query = (
        stream(spark, table)
        .select("id")
        .writeStream.foreachBatch(lambda batch, number: seen.extend(row.id for row in batch.filter("id % 2 = 0").collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(seen) == list(range(0, ROWS, 2))
