"""Streams from a table in the columns that their batches need: the rows and counts equal those of Spark's own reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable, pruning
from spark_plugin.options.catalog_session_settings import IGNORE_MISSING_FILES
from tests.support.runs.sampling import sampled
from tests.support.spark.columnar_scans import scans_in_columns
from tests.support.spark.older_settings import NATIVE_CONF
from tests.support.tables.small_table import WITH_VECTORS, append, append_file, make_table

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
    """Streams to memory until no rows remain."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root, self.number = spark, root, 0
        self.plan, self.progress = "", list[dict[str, Any]]()

    def rows(self, frame: DataFrame, mode: str = "append") -> list[tuple[Any, ...]]:
        """In order. It also notes the plan of the last batch, and Spark's progress of the batches that had rows."""
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
        batch_rows = self.spark.table(name).collect()
        self.spark.catalog.dropTempView(name)
        return sorted((tuple(row) for row in batch_rows), key=repr)

    def scanned(self) -> list[list[str]]:
        """The columns of each scan of the last batch."""
        return [re.findall(r"(\w+)#", columns) for columns in re.findall(r"MicroBatchScan\[([^\]]*)\]", self.plan)]

    @property
    def comes_in_columns(self) -> bool:
        """Whether all scans of the last batch with rows return columns, from which Spark makes rows."""
        assert "MicroBatchScan" in self.plan, self.plan
        return self.plan.count("ColumnarToRow") == self.plan.count("MicroBatchScan")

    @property
    def counted(self) -> list[tuple[int, str]]:
        """The rows of each batch, and its end."""
        return [(each["numInputRows"], each["sources"][0]["endOffset"]) for each in self.progress]

    def input_rows(self) -> int:
        return sum(each["sources"][0]["numInputRows"] for each in self.progress)


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return Run(spark, tmp_path)


@pytest.fixture
def columnar(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """The number of scans that were read in columns since, by Python or by Spark's Parquet reader."""
    before = pruning.status(spark)
    yield lambda: scans_in_columns(pruning.status(spark)) - scans_in_columns(before)
    after = pruning.status(spark)
    assert after["pruning"].skipped == before["pruning"].skipped, after.last_error


@pytest.fixture
def native(spark: SparkSession, conf: Any) -> Iterator[Callable[[], int]]:
    """Lets Spark's own Parquet reader read what it can; returns the number of batches for which it had files since."""
    before = pruning.status(spark)
    conf({NATIVE_CONF: "true", COLUMNAR: "true"})
    yield lambda: pruning.status(spark)["parquet"].used - before["parquet"].used
    after = pruning.status(spark)
    assert after["pruning"].skipped == before["pruning"].skipped, after
    assert after["parquet"].last_error == before["parquet"].last_error


def stream(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.readStream.format("pydelta").options(**options).load(path)


def doubled(frame: DataFrame) -> DataFrame:
    return frame.filter("id > 1 and part = 'a'").selectExpr("id * 2 as twice", "name")


def whole(frame: DataFrame) -> DataFrame:
    return frame


def flat(frame: DataFrame) -> DataFrame:
    return frame.select("id", "name", "at", "part")


def nested(frame: DataFrame) -> DataFrame:
    return frame.select("place.x", "id")


def late(frame: DataFrame) -> DataFrame:
    """Its last batch has no rows, and returns the complete groups."""
    return frame.withWatermark("at", "1 hour").groupBy(F.window("at", "6 hours")).agg(F.sum("id"))


def twice(frame: DataFrame) -> DataFrame:
    return frame.select("id", "name").union(frame.filter("id < 3").selectExpr("id + 100", "part"))


QUERIES = {query.__name__: query for query in (doubled, whole, flat, nested, late, twice)}


WITHOUT_STRUCTS = {"doubled", "flat", "late"}


@pytest.mark.parametrize(("query", "native"), sampled(product(QUERIES, ["false", "true"]), 4))
def test_rows_and_counts_are_those_of_sparks_own_reading(
    query: str, native: str, spark: SparkSession, table: str, run: Run, columnar: Callable[[], int], conf: Any
) -> None:
    conf({NATIVE_CONF: native})
    frame = QUERIES[query](stream(spark, table, maxFilesPerTrigger=1))
    before = pruning.status(spark)["parquet"].used
    ours = run.rows(frame)
    counted = run.counted
    assert columnar() >= (3 if query in WITHOUT_STRUCTS else 0)
    if query != "late":
        assert run.comes_in_columns == (native == "true" or query in WITHOUT_STRUCTS), "structs of Python come as rows"
    assert pruning.status(spark)["parquet"].used - before >= (2 if native == "true" else 0)
    conf({PRUNING: "false"})
    assert run.rows(QUERIES[query](stream(spark, table, maxFilesPerTrigger=1))) == ours
    if query == "doubled":
        ends = [end for _, end in run.counted]
        assert [end for end in ends if end in [end for _, end in counted]] == [end for _, end in counted]
        assert len(counted) == 2 < len(ends), "of the partition that the filter names"
    else:
        assert run.counted == counted
    assert query == "late" or not run.comes_in_columns
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


@pytest.mark.parametrize("native", ["false", "true"])
def test_a_batch_leaves_out_what_its_filter_rules_out(
    native: str, spark: SparkSession, table: str, run: Run, conf: Any
) -> None:
    conf({NATIVE_CONF: native})

    def read(condition: str, frame: DataFrame | None = None) -> tuple[list[int], int]:
        """The ids, and the number of rows that Spark got."""
        frame = stream(spark, table, maxFilesPerTrigger=2) if frame is None else frame
        return sorted(row[0] for row in run.rows(frame.filter(condition))), run.input_rows()

    assert read("part = 'b'") == ([*range(6, ROWS)], 6), "files of another partition"
    for condition in ("id < 2", "ID < 2", "id < 2 AND id * 2 < 9 AND rand() < 2"):
        ids, row_count = read(condition)
        assert ids == [0, 1] and row_count <= 4, "row groups of other ids; other conditions are Spark's alone"
    ids, row_count = read("place.x < 2")
    assert ids == [0, 1] and (row_count <= 4) == (native == "false"), "fields of structs are not told to Spark's reader"
    assert read("id * 2 < 4") == ([0, 1], ROWS)
    assert read("id < 0") == ([], 0)
    both = stream(spark, table)
    both = both.filter("id < 2").union(both.filter("id > 10"))
    assert read("true", both) == ([0, 1, 11], 2 * ROWS), "Spark counts rows of equal scans together"
    assert read("id < 2", stream(spark, table, pruning="false")) == ([0, 1], ROWS)


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
    spark: SparkSession, table: str, run: Run, columnar: Callable[[], int], native: Callable[[], int]
) -> None:
    write_delta(table, pa.table({"id": pa.array([3], pa.int64()), "part": ["a"]}), mode="overwrite", replace_where="id = 3")
    feed = stream(spark, table, readChangeFeed="true", startingVersion="0").select("_change_type", "id").filter("id > 2")
    feed_rows = run.rows(feed)
    assert run.scanned() == [["id", "_change_type"]]
    assert [row for row in feed_rows if row[1] < 5] == [("delete", 3), ("insert", 3), ("insert", 3), ("insert", 4)]
    assert (columnar(), native(), run.comes_in_columns) == (1, 0, True)


def test_event_time_order_reads_only_the_required_columns(
    spark: SparkSession, tmp_path: Path, run: Run, columnar: Callable[[], int], native: Callable[[], int]
) -> None:
    """Each batch has some of each file's rows, by a condition on a column that the query does not read."""
    path = str(tmp_path / "t")
    for first in range(3):
        ids = [*range(first, ROWS, 3)]
        at = pa.array([TIMES[n] for n in ids], pa.timestamp("us", "UTC"))
        write_delta(path, pa.table({"id": ids, "at": at}), mode="append")
    options = {"withEventTimeOrder": "true", "eventTimeColumn": "at", "maxFilesPerTrigger": "1"}
    assert sorted(row[0] for row in run.rows(stream(spark, path, **options).select("id"))) == list(range(ROWS))
    assert run.scanned() == [["id"]]
    assert len(run.progress) == 3
    assert (columnar() >= 3, native(), run.comes_in_columns) == (True, 0, True)


def test_schema_of_the_user_names_columns_in_its_own_case(spark: SparkSession, table: str, run: Run) -> None:
    frame = spark.readStream.format("pydelta").schema("ID bigint, NAME string").load(table).select("NAME", "ID").filter("ID > 9")
    assert run.rows(frame) == [("n1", 10), ("n2", 11)]
    assert run.scanned() == [["ID", "NAME"]]


def test_read_options_and_query_together_choose_columns_and_rows(spark: SparkSession, table: str, run: Run) -> None:
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
    """With state: sums of a window."""

    def batch(enabled: str, natively: str) -> None:
        conf({PRUNING: enabled, NATIVE_CONF: natively})
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
        settings = [("false", "true"), ("true", "true"), ("true", "false"), ("false", "false"), ("true", "auto")]
        for number, (enabled, natively) in enumerate(settings):
            batch(enabled, natively)
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
    """With a UDF over them, which Spark 4.2 would not end over columns."""
    seen, is_even = list[int](), F.udf(lambda value: value % 2 == 0, "boolean")
    query = (
        stream(spark, table)
        .select("id")
        .writeStream.foreachBatch(lambda batch, number: seen.extend(row.id for row in batch.filter(is_even("id")).collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(seen) == list(range(0, ROWS, 2))


# ---------------------------------------------------------------- Spark's own Parquet reader


def test_whole_table_of_plain_columns_comes_in_columns(spark: SparkSession, tmp_path: Path, run: Run, conf: Any) -> None:
    """Nothing is above such a stream in the plan, and it has all of its columns."""
    path = make_table(tmp_path / "t", [pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", None]})])
    for natively in ("false", "true"):
        conf({NATIVE_CONF: natively})
        assert run.rows(stream(spark, path)) == [(1, "a"), (2, None)]
        assert run.comes_in_columns, natively


def test_rows_come_once_where_spark_is_told_to_cut_batches(spark: SparkSession, table: str, run: Run, conf: Any) -> None:
    """Spark 4.2 would return them more than once as rows."""
    conf({"spark.sql.execution.arrow.maxRecordsPerOutputBatch": "1", NATIVE_CONF: "false"})
    assert sorted(row[0] for row in run.rows(stream(spark, table).select("id"))) == list(range(ROWS))


def test_deleted_rows_are_left_out(spark: SparkSession, tmp_path: Path, run: Run, native: Callable[[], int]) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(100)}), pa.table({"id": range(100, 200)})], **WITH_VECTORS)
    DeltaTable.forPath(spark, path).delete("id % 3 = 1")
    remaining_rows = sorted([(n,) for n in range(200) if n % 3 != 1], key=repr)
    assert run.rows(stream(spark, path, maxFilesPerTrigger=1)) == remaining_rows
    assert (sorted(rows for rows, _ in run.counted), native()) == ([66, 67], 2)


def test_parts_of_a_file_have_each_row_once(
    spark: SparkSession, tmp_path: Path, run: Run, native: Callable[[], int], conf: Any
) -> None:
    conf({"spark.sql.files.openCostInBytes": "1", "spark.sql.files.maxPartitionBytes": "2000"})
    path = make_table(tmp_path / "t", [pa.table({"id": range(5_000)})], row_group_size=500)
    assert sorted(row[0] for row in run.rows(stream(spark, path))) == list(range(5_000))
    assert (run.input_rows(), native()) == (5_000, 1)


@pytest.mark.parametrize("more", [(), ("st",)])
def test_file_that_sparks_reader_does_not_take_is_read_in_python(
    more: tuple[str, ...], spark: SparkSession, tmp_path: Path, run: Run, native: Callable[[], int], conf: Any
) -> None:
    """One that stores numbers of 32 bits for BIGINT. With a struct in the schema Python returns rows, and not columns."""

    def rows(first: int, kind: pa.DataType) -> pa.Table:
        columns = {"id": pa.array([first, first + 1], kind), "st": pa.array([{"n": first}, None])}
        return pa.table({name: columns[name] for name in ("id", *more)})

    root = tmp_path / "t"
    path = make_table(root, [rows(1, pa.int64())])
    pq.write_table(rows(3, pa.int32()), root / "odd.parquet", store_schema=False)
    append_file(root, root / "odd.parquet")
    append(root, rows(5, pa.int64()))
    read_rows = run.rows(stream(spark, path, maxFilesPerTrigger=3))
    assert [row[0] for row in read_rows] == [1, 2, 3, 4, 5, 6]
    assert (native(), run.comes_in_columns) == (1, True)
    counted = run.counted
    conf({NATIVE_CONF: "false"})
    assert (run.rows(stream(spark, path, maxFilesPerTrigger=3)), run.counted) == (read_rows, counted)


def test_stream_skips_missing_files_if_the_session_says_so(
    spark: SparkSession, tmp_path: Path, run: Run, native: Callable[[], int], conf: Any
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [n]}) for n in range(3)])
    (Path(path) / PlainTable(path, version=0).files()["path"][0].as_py()).unlink()
    conf({IGNORE_MISSING_FILES: "true"})
    assert sorted(row[0] for row in run.rows(stream(spark, path))) == [1, 2]
    assert native() == 1


@pytest.mark.parametrize("options", [{"filter": "id > 3"}, {"readLease": "10 minutes"}], ids=str)
def test_what_scans_leave_to_python_streams_do_too(
    options: dict[str, str], spark: SparkSession, table: str, run: Run, native: Callable[[], int]
) -> None:
    read_rows = run.rows(stream(spark, table, **options).select("id"))
    assert sorted(row[0] for row in read_rows) == list(range(4 if "filter" in options else 0, ROWS))
    assert (native(), run.comes_in_columns) == (0, True)
