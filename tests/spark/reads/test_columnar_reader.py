"""The columnar reader: it returns the rows of Spark's own reader if it fits the query; otherwise Spark's own reader is used."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin import pruning, register
from spark_plugin.options.roads import OLDER_SETTINGS, Road
from tests.support.oracles.frames import rows
from tests.support.runs.sampling import sampled
from tests.support.spark.columnar_scans import scans_in_columns
from tests.support.spark.needs_spark import before_spark, has_spark, needs_spark, skip_before_spark
from tests.support.spark.older_settings import COLUMNAR_CONF, NATIVE_CONF
from tests.support.spark.settings import restore
from tests.support.tables.corpus import load_case
from tests.support.tables.small_table import make_table

ADAPTIVE = "spark.sql.adaptive.enabled"
WHOLE_STAGE = "spark.sql.codegen.wholeStage"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
OUTPUT_ROWS = "spark.sql.execution.arrow.maxRecordsPerOutputBatch"
UDF_COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"

SETTINGS: dict[str, dict[str, str]] = {
    "as_usual": {},
    "without_adaptive": {ADAPTIVE: "false"},
    "without_whole_stage": {WHOLE_STAGE: "false", ADAPTIVE: "false"},
    "tiny_batches": {OUTPUT_ROWS: "77"},
    "pushdown": {PUSHDOWN: "true"},
}


@pytest.fixture
def columnar(spark: SparkSession, conf: Any, request: pytest.FixtureRequest) -> Iterator[Callable[[], int]]:
    """Switches the reader on; returns the number of scans that were read in columns since, by Python or by Spark's Parquet
    reader. Arrow's memory is free when the test ends."""
    before = pruning.status(spark)
    conf({COLUMNAR_CONF: "true"})
    if has_spark("4.2") and not has_spark("4.3"):
        conf({UDF_COLUMNAR_INPUT: "false"})
    yield lambda: scans_in_columns(pruning.status(spark)) - scans_in_columns(before)
    after = pruning.status(spark)
    assert (after["pruning"].skipped, after["columns"].last_error) == (before["pruning"].skipped, None), after.last_error
    if "apply_in_pandas" in request.node.name and not has_spark("4.2"):
        # Spark 4.1 leaks Arrow memory in each applyInPandas, over a plain Parquet file too: 65,536 bytes of 4.1.4.
        _of_others[0] = int(arrow_root(spark).getAllocatedMemory())
    assert arrow_memory_bytes(spark) == 0


def arrow_memory_bytes(spark: SparkSession) -> int:
    """The Arrow memory that Spark holds in this JVM beyond what others than this file's readers leaked. Stopped tasks end a
    little after their query."""
    root = arrow_root(spark)
    deadline = time.monotonic() + 10
    while root.getAllocatedMemory() > _of_others[0] and time.monotonic() < deadline:
        time.sleep(0.05)
    return max(0, int(root.getAllocatedMemory()) - _of_others[0])


_of_others = [0]


@pytest.fixture(scope="module", autouse=True)
def memory_of_other_files(spark: SparkSession) -> None:
    """Tests of other files, in the same JVM, have writes whose rows cannot be computed. Spark itself leaks Arrow memory of these:
    on 4.3 even its mapInArrow alone, over a division by zero after the first batch, leaks 133,120 bytes."""
    _of_others[0] = int(arrow_root(spark).getAllocatedMemory())


def arrow_root(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()


def in_columns(df: DataFrame) -> bool:
    """Whether all scans of the plan return columns; either all or none of them do."""
    leaves = df._jdf.queryExecution().sparkPlan().collectLeaves()
    scans = [leaf for leaf in map(leaves.apply, range(leaves.length())) if leaf.nodeName().startswith("BatchScan")]
    answers = {bool(scan.supportsColumnar()) for scan in scans}
    assert len(answers) == 1, df._jdf.queryExecution().toString()
    return answers.pop()


def row_readers(spark: SparkSession, df: Callable[[], DataFrame]) -> list[str]:
    """The rows of Spark's own reader, with whole batches: Spark 4.2 returns wrong rows if it cuts batches."""
    before = {name: spark.conf.get(name, None) for name in (COLUMNAR_CONF, OUTPUT_ROWS)}
    spark.conf.set(COLUMNAR_CONF, "false")
    spark.conf.set(OUTPUT_ROWS, "-1")
    try:
        by_rows = df()
        assert not in_columns(by_rows)
        return rows(by_rows)
    finally:
        restore(spark, before)


def same_both_ways(spark: SparkSession, df: Callable[[], DataFrame]) -> int:
    """Asserts that the frame's rows are read in columns and equal those of the row reader; returns their number."""
    by_columns = df()
    assert in_columns(by_columns)
    column_rows = rows(by_columns)
    assert column_rows == row_readers(spark, df)
    return len(column_rows)


# ---------------------------------------------------------------- types

EDGES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 127, 0]),
    "small": (pa.int16(), [-32768, 32767]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, 1]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), [0.5, -0.0, float("nan"), float("inf"), 1e-45]),
    "double": (pa.float64(), [0.1, -0.0, float("nan"), float("-inf"), 5e-324]),
    "dec_1_0": (pa.decimal128(1, 0), [Decimal(-9), Decimal(9)]),
    "dec_9_2": (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.01")]),
    "dec_18_18": (pa.decimal128(18, 18), [Decimal("-0.999999999999999999"), Decimal("1e-18")]),
    "dec_19_0": (pa.decimal128(19, 0), [Decimal(10**19 - 1), Decimal(-(2**63)), Decimal(2**63)]),
    "dec_38_10": (pa.decimal128(38, 10), [Decimal("9" * 28 + "." + "9" * 10), Decimal("-1e-10"), Decimal(0)]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "ts": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1582, 10, 15, tzinfo=dt.UTC), dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.UTC)],
    ),
    "ntz": (pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    "text": (pa.string(), ["", "a", "é", "日本語", "😀 x", "nul\0in", "long " * 50]),
    "bin": (pa.binary(), [b"", b"\x00\xff", b"x" * 300]),
    "nothing": (pa.int32(), [None]),
    "full": (pa.int64(), [7]),
}
ROWS = 10_000


def edge_rows(start: int) -> pa.Table:
    """Every edge value of every type, every third a null (other thirds in other columns); `full` has none."""
    columns = {"id": pa.array(range(start, start + ROWS), pa.int64())}
    for place, (name, (kind, values)) in enumerate(EDGES.items()):
        cells = [None if name != "full" and (i + place) % 3 == 0 else values[i % len(values)] for i in range(ROWS)]
        columns[name] = pa.array(cells, kind)
    return pa.table(columns)


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three files of many batches, the last of one row."""
    directory = tmp_path_factory.mktemp("columnar") / "edges"
    return make_table(directory, [edge_rows(0), edge_rows(ROWS), edge_rows(2 * ROWS).slice(0, 1)])


@pytest.mark.parametrize("setting", sampled(SETTINGS, 2))
def test_every_covered_type_gives_the_row_readers_rows(
    setting: str, spark: SparkSession, edges: str, columnar: Callable[[], int], conf: Any
) -> None:
    conf(SETTINGS[setting])
    assert same_both_ways(spark, lambda: spark.read.format("pydelta").load(edges)) == 2 * ROWS + 1
    assert columnar() > 0


@pytest.mark.parametrize("name", sampled(EDGES, 9))
def test_column_used_inside_a_query_gives_the_row_readers_values(
    name: str, spark: SparkSession, edges: str, columnar: Callable[[], int]
) -> None:
    """Aggregates keep a value beyond the end of a batch: the first, the largest, the keys of groups."""

    def asked() -> DataFrame:
        df = spark.read.format("pydelta").load(edges)
        keys = df.groupBy(name).agg(F.count("*"), F.min("id"), F.max(name), F.first(name, True))
        reference = df.agg(F.lit(None).cast(df.schema[name].dataType), F.count(name), F.min("id"), F.min(name), F.max(name))
        return keys.union(reference)

    assert same_both_ways(spark, asked) > 1
    assert columnar() > 0


def test_values_are_those_that_were_written(spark: SparkSession, edges: str, columnar: Callable[[], int]) -> None:
    read_rows = spark.read.format("pydelta").load(edges).filter("id < 10000").orderBy("id").drop("float", "double").collect()
    # Spark returns timestamps in Python's local time, which the tests set to UTC.
    expected = edge_rows(0).drop_columns(["float", "double"]).to_pylist()
    for row, expected_row in zip(read_rows, expected, strict=True):
        plain = {key: value.replace(tzinfo=None) if key == "ts" and value else value for key, value in expected_row.items()}
        assert row.asDict() == plain
    assert columnar() == 1


NOT_COVERED = {
    "an_array": "array(id)",
    "a_struct": "named_struct('x', id)",
    "a_map": "map('k', id)",
    "an_array_of_texts": "array('a', null)",
}


@pytest.mark.parametrize("name", sampled(NOT_COVERED, 2))
def test_scan_with_a_column_of_another_type_is_read_by_rows(
    name: str, spark: SparkSession, tmp_path: Path, columnar: Callable[[], int], conf: Any
) -> None:
    path = str(tmp_path / "t")
    conf({NATIVE_CONF: "false"})  # Spark's own reader returns them in columns
    spark.range(50).selectExpr("id", f"{NOT_COVERED[name]} other").write.format("pydelta").save(path)
    df = spark.read.format("pydelta").load(path)
    assert not in_columns(df)
    assert rows(df) == row_readers(spark, lambda: spark.read.format("pydelta").load(path))
    assert columnar() == 0
    assert same_both_ways(spark, lambda: spark.read.format("pydelta").load(path).select("id")) == 50


def test_text_with_a_collation_is_read_by_rows(spark: SparkSession, edges: str, columnar: Callable[[], int]) -> None:
    df = spark.read.format("pydelta").schema("text string collate utf8_lcase").load(edges)
    assert not in_columns(df)
    assert df.filter("text = 'A'").count() > 0
    assert columnar() == 0


def test_table_of_120_columns_gives_the_row_readers_rows(
    spark: SparkSession, tmp_path: Path, columnar: Callable[[], int]
) -> None:
    """Beyond 100 columns Spark does not generate code for a stage."""
    wide = pa.table({f"c{i}": pa.array([None if r % (i + 2) == 0 else f"{i}-{r}" for r in range(300)]) for i in range(120)})
    path = make_table(tmp_path / "t", [wide, wide])
    assert same_both_ways(spark, lambda: spark.read.format("pydelta").load(path)) == 600
    assert columnar() == 1


def test_wide_table_without_whole_stage_codegen_reads_equal_rows(
    spark: SparkSession, tmp_path: Path, columnar: Callable[[], int], conf: Any
) -> None:
    conf(SETTINGS["without_whole_stage"])
    wide = pa.table(
        {f"c{i}": pa.array([None if r % (i + 2) == 0 else i * r for r in range(300)], pa.int64()) for i in range(120)}
    )
    path = make_table(tmp_path / "t", [wide, wide])
    assert same_both_ways(spark, lambda: spark.read.format("pydelta").load(path).filter("c7 % 2 = 0 or c119 is null")) > 0
    assert columnar() == 1


@pytest.mark.parametrize("setting", ["as_usual", "without_whole_stage"])
def test_batches_of_one_row_each_give_the_row_readers_rows(
    setting: str, spark: SparkSession, tmp_path: Path, columnar: Callable[[], int], conf: Any
) -> None:
    """No batch spans two files."""
    conf(SETTINGS[setting])
    path = make_table(tmp_path / "t", [edge_rows(0).slice(start, 1) for start in range(40)])
    assert same_both_ways(spark, lambda: spark.read.format("pydelta").load(path)) == 40
    assert same_both_ways(spark, lambda: with_text_udf(spark.read.format("pydelta").load(path))) == 40
    assert columnar() == 2


def test_table_without_rows_and_filters_that_keep_none_give_none(
    spark: SparkSession, tmp_path: Path, edges: str, columnar: Callable[[], int]
) -> None:
    path = make_table(tmp_path / "t", [edge_rows(0).slice(0, 0)])
    assert rows(spark.read.format("pydelta").load(path)) == []
    df = spark.read.format("pydelta").load(edges).filter("id % 7 = 8")
    assert in_columns(df) and rows(df) == []
    assert columnar() == 2


@pytest.mark.parametrize(
    "name",
    [
        "gen-dml-dv",
        "gen-dml-dv-partitioned",
        "drs-delta-2.2.0-partitioned-types",
        "drs-table_with_column_mapping",
        "gen-typewidening-steps",
    ],
)
def test_table_with_features_gives_the_row_readers_rows(
    name: str, corpus: Path, spark: SparkSession, columnar: Callable[[], int]
) -> None:
    path = load_case(corpus, name).table
    assert same_both_ways(spark, lambda: spark.read.format("pydelta").load(path)) > 0
    assert columnar() > 0


# ---------------------------------------------------------------- queries


def with_text_udf(df: DataFrame) -> DataFrame:
    shout = F.udf(lambda text: None if text is None else text.upper() + "!", "string")
    return df.select(shout("text"), "id")


def with_pandas_udf(df: DataFrame) -> DataFrame:
    def next_one(numbers: pd.Series) -> pd.Series:
        return numbers + 1

    return df.select(F.pandas_udf(next_one, "long")("full"), "text", "bin")  # type: ignore[call-overload]


def with_pickled_udf(df: DataFrame) -> DataFrame:
    size = F.udf(lambda content: None if content is None else len(content), "int", useArrow=False)
    return df.select(size("bin"), "id")


def with_arrow_udf(df: DataFrame) -> DataFrame:
    def longer(texts: pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(texts, "!", "+")

    return df.select(F.arrow_udf(longer, "string")("text"), "id")  # type: ignore[call-overload]


def with_pandas_aggregate(df: DataFrame) -> DataFrame:
    def total(numbers: pd.Series) -> int:
        return int(numbers.sum())

    return df.groupBy("tiny").agg(F.pandas_udf(total, "long")("id"))  # type: ignore[call-overload]


def with_apply_in_pandas(df: DataFrame) -> DataFrame:
    def first_and_last(group: pd.DataFrame) -> pd.DataFrame:
        return group.sort_values("id").iloc[[0, -1]]

    return df.select("id", "text").groupBy("text").applyInPandas(first_and_last, "id long, text string")


def with_map_in_pandas(df: DataFrame) -> DataFrame:
    def same_frames(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from frames

    return df.select("id", "text", "bin").mapInPandas(same_frames, "id long, text string, bin binary")


def with_udfs_in_a_row(df: DataFrame) -> DataFrame:
    """Two evaluations with a filter between them: the second reads the result of the first, together with columns of the scan."""
    longer = F.udf(lambda text: None if text is None else text + "!", "string")
    return with_pandas_udf(df.withColumn("text", longer("text")).filter("length(text) > 3"))


def with_map_in_arrow(df: DataFrame) -> DataFrame:
    def same_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return df.select("id", "text", "dec_38_10").mapInArrow(same_batches, "id long, text string, d decimal(38, 10)")


FRAMES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "udf_without_filter": with_text_udf,
    "pandas_udf_without_filter": with_pandas_udf,
    "pandas_udf_after_filter": lambda df: with_pandas_udf(df.filter("text is not null")),
    "map_in_arrow": with_map_in_arrow,
    "pickled_udf": with_pickled_udf,
    "arrow_udf": with_arrow_udf,
    "pandas_aggregate": with_pandas_aggregate,
    "apply_in_pandas": with_apply_in_pandas,
    "map_in_pandas": with_map_in_pandas,
    "udfs_in_a_row": with_udfs_in_a_row,
    "cached": lambda df: df.select("id", "text", "ts").cache().filter("id % 3 = 0"),
    "union": lambda df: df.select("id", "text").union(df.filter("flag").select("int", "text")),
    "self_join": lambda df: df.select("id", "text").join(df.select("id", "bin").filter("id % 5 = 0"), "id"),
    "sorted_limit": lambda df: df.orderBy("text", "id").select("id", "text", "bin").limit(500),
    "window": lambda df: df.selectExpr("id", "lag(text, 2) over (partition by flag order by id)"),
    "collected_list": lambda df: df.groupBy("tiny").agg(F.sort_array(F.collect_list("text"))),
    "count": lambda df: df.groupBy().count(),
}


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        *((name, "as_usual") for name in sampled(FRAMES, 6)),
        *sampled(product(FRAMES, [name for name in SETTINGS if name != "as_usual"]), 18),
    ],
)
def test_query_in_columns_gives_the_row_readers_rows(
    name: str, setting: str, spark: SparkSession, edges: str, columnar: Callable[[], int], conf: Any
) -> None:
    if setting == "tiny_batches":
        skip_before_spark("4.3", "right rows of cut batches of functions in Python")
    conf({**SETTINGS[setting], OLDER_SETTINGS[Road.LOG]: "false"})  # the log would answer a count

    def asked() -> DataFrame:
        return FRAMES[name](spark.read.format("pydelta").load(edges))

    column_rows = rows(asked())
    assert columnar() > 0
    spark.catalog.clearCache()
    conf({COLUMNAR_CONF: "false", OUTPUT_ROWS: "-1"})
    assert column_rows == rows(asked())
    spark.catalog.clearCache()


def test_frames_of_pandas_and_arrow_are_those_of_the_row_reader(
    spark: SparkSession, edges: str, columnar: Callable[[], int], conf: Any
) -> None:
    df = spark.read.format("pydelta").load(edges)
    narrow = df.select("id", "text", "date", "dec_38_10", "flag")
    frame, table = narrow.toPandas(), narrow.toArrow()
    assert columnar() == 1, "both run the one plan of the frame"
    conf({COLUMNAR_CONF: "false"})
    by_rows = spark.read.format("pydelta").load(edges).select(*narrow.columns)
    pd.testing.assert_frame_equal(
        frame.sort_values("id", ignore_index=True), by_rows.toPandas().sort_values("id", ignore_index=True)
    )
    assert table.sort_by("id") == by_rows.toArrow().sort_by("id")


def test_queries_of_many_threads_each_get_their_own_rows(spark: SparkSession, edges: str, columnar: Callable[[], int]) -> None:
    df = spark.read.format("pydelta").load(edges)
    with ThreadPoolExecutor(4) as threads:
        counts = threads.map(
            lambda n: len(df.filter(f"id < {n} and text is null").select("text", "id").collect()), [3000, 9000] * 4
        )
    nulls = edge_rows(0).column("text").to_pylist()
    assert list(counts) == [sum(text is None for text in nulls[:n]) for n in [3000, 9000] * 4]
    assert columnar() == 8


# ---------------------------------------------------------------- the end of a task


def test_query_that_stops_early_gives_arrows_memory_back(
    spark: SparkSession, edges: str, columnar: Callable[[], int], conf: Any
) -> None:
    conf({OUTPUT_ROWS: "100"})
    df = spark.read.format("pydelta").load(edges)
    assert len(df.filter("id % 2 = 0").limit(3).collect()) == 3
    assert len(df.filter("id % 2 = 1").take(7)) == 7
    assert columnar() == 2
    assert arrow_memory_bytes(spark) == 0


def test_query_that_fails_within_a_batch_frees_arrow_memory(
    spark: SparkSession, edges: str, columnar: Callable[[], int]
) -> None:
    df = spark.read.format("pydelta").load(edges)
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        df.selectExpr("1 / (id - 5000)", "text").collect()
    assert columnar() == 1
    assert arrow_memory_bytes(spark) == 0
    assert df.count() == 2 * ROWS + 1


def test_source_error_is_equal_to_that_of_the_row_reader(
    spark: SparkSession, tmp_path: Path, columnar: Callable[[], int], conf: Any
) -> None:
    path = make_table(tmp_path / "t", [edge_rows(0)])
    (data,) = Path(path).glob("*.parquet")
    data.unlink()

    def message() -> str:
        with pytest.raises(PySparkException) as raised:
            spark.read.format("pydelta").load(path).select("text").collect()
        return type(raised.value).__name__ + next(line for line in str(raised.value).splitlines() if data.name in line)

    by_columns = message()
    conf({COLUMNAR_CONF: "false"})
    assert by_columns == message()
    assert columnar() == 1


def test_query_that_is_cancelled_gives_arrows_memory_back(spark: SparkSession, edges: str, columnar: Callable[[], int]) -> None:
    context = spark.sparkContext

    def run() -> None:
        slowly = F.udf(lambda number: [time.sleep(0.01), number][1], "long")
        context.addJobTag("columnar-test")
        df = spark.read.format("pydelta").load(edges)
        df.select(slowly("id"), "text").write.format("noop").mode("overwrite").save()

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(run)
        tracker = context.statusTracker()
        deadline = time.monotonic() + 30
        while not tracker.getActiveStageIds() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        context.cancelJobsWithTag("columnar-test")
        with pytest.raises(Exception, match="cancel"):  # Py4J passes this error on as it is
            running.result(timeout=60)
    assert columnar() == 1
    assert arrow_memory_bytes(spark) == 0


def running_tasks(spark: SparkSession) -> list[int]:
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    stages = store.activeStages()
    task_ids = []
    for stage in map(stages.apply, range(stages.length())):
        tasks = store.taskList(stage.stageId(), stage.attemptId(), 100)
        task_ids += [task.taskId() for task in map(tasks.apply, range(tasks.length())) if task.status() == "RUNNING"]
    return task_ids


@pytest.mark.parametrize("interrupt", sampled([True, False], 2))
def test_killed_task_is_retried_and_gives_each_row_once(
    interrupt: bool, spark: SparkSession, edges: str, tmp_path: Path, columnar: Callable[[], int]
) -> None:
    """interrupt: whether Spark may stop the thread that runs the task; otherwise it stops the workers that the task waits for."""
    reached = tmp_path / "reached"

    def stops_first(number):  # type: ignore[no-untyped-def]  # Spark takes hints for the kind of the UDF
        if number == 5000 and TaskContext.get().attemptNumber() == 0:  # type: ignore[union-attr]
            reached.touch()
            time.sleep(120)
        return number

    df = spark.read.format("pydelta").load(edges).select(F.udf(stops_first, "long")("id").alias("id"), "text")
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(df.collect)
        deadline = time.monotonic() + 60
        while not reached.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        killed = running_tasks(spark)
        for task in killed:
            spark.sparkContext._jsc.sc().killTaskAttempt(task, interrupt, "a test")
        result = running.result(timeout=90)
    assert killed
    assert sorted(row["id"] for row in result) == list(range(2 * ROWS + 1))
    assert columnar() == 1
    assert arrow_memory_bytes(spark) == 0


# ---------------------------------------------------------------- where it is not used


def test_reader_is_on_unless_it_is_switched_off(spark: SparkSession, edges: str, conf: Any) -> None:
    assert spark.conf.get(COLUMNAR_CONF, None) is None
    conf({NATIVE_CONF: "false"})
    before = pruning.status(spark)
    for value in (None, "false", "true"):
        if value is not None:
            conf({COLUMNAR_CONF: value})
        df = spark.read.format("pydelta").load(edges).select("id")
        assert in_columns(df) == (value != "false")
        assert len(df.collect()) == 2 * ROWS + 1
    after = pruning.status(spark)
    assert (after["columns"].used, after["rows"].used) == (before["columns"].used + 2, before["rows"].used + 1)


def test_scan_without_the_rule_is_read_by_rows(spark: SparkSession, edges: str, columnar: Callable[[], int]) -> None:
    df = spark.read.format("pydelta").option("pruning", "false").load(edges).select("id")
    assert not in_columns(df)
    assert df.count() == 2 * ROWS + 1
    assert columnar() == 0


def test_scan_with_large_arrow_types_is_read_by_rows(
    spark: SparkSession, edges: str, columnar: Callable[[], int], conf: Any
) -> None:
    conf({"spark.sql.execution.arrow.useLargeVarTypes": "true"})
    assert not in_columns(spark.read.format("pydelta").load(edges).select("id"))
    assert columnar() == 0


@pytest.mark.parametrize("isolated", [True, False])
def test_session_with_isolated_artifacts_reads_rows(
    isolated: bool, spark: SparkSession, edges: str, tmp_path: Path
) -> None:
    """Its executors load classes from elsewhere. Artifacts that all sessions share change nothing."""
    module = tmp_path / f"columnar_artifact_{isolated}.py"
    module.write_text("THREE = 3\n")
    session = spark.newSession()
    session.conf.set("spark.sql.artifact.isolation.enabled", str(isolated).lower())
    session.conf.set(COLUMNAR_CONF, "true")
    register(session)
    early = session.read.format("pydelta").load(edges).select("id")
    assert in_columns(early) == (not isolated)
    session.addArtifacts(str(module), pyfile=True)
    late = session.read.format("pydelta").load(edges).select("id")
    assert in_columns(late) == (not isolated)
    assert len(early.collect()) == len(late.collect()) == 2 * ROWS + 1
    assert pruning.status(session)["columns"].last_error is None


def where_a_udf_finds_one(df: DataFrame) -> DataFrame:
    """The subquery is planned alone, without the UDF, which is above its scan after the subquery became a join."""
    spark = df.sparkSession
    spark.udf.register("columnar_test_next", F.udf(lambda number: number + 1, "long", useArrow=True))
    df.createOrReplaceTempView("columnar_test")
    return spark.sql(
        "select id from columnar_test t where exists"
        " (select 1 from columnar_test x where columnar_test_next(x.id) = t.id and x.flag)"
    )


WITH_UDFS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "above_the_scan": with_text_udf,
    "above_a_filter": lambda df: with_pandas_udf(df.filter("flag")),
    "above_a_join": lambda df: with_pandas_udf(df.join(df.select("id"), "id")),
    "in_a_filter": lambda df: df.filter(F.udf(lambda number: number % 2 == 0, "boolean")("id")),
    "in_a_subquery": where_a_udf_finds_one,
}


@needs_spark("4.2", "columns as the input of Python UDFs")
@before_spark("4.3", "queries with Python UDFs over columns do not end")
@pytest.mark.parametrize("name", WITH_UDFS)
def test_udf_reads_rows_where_spark_hangs_on_columnar_input(
    name: str, spark: SparkSession, edges: str, columnar: Callable[[], int], conf: Any
) -> None:
    df = spark.read.format("pydelta").load(edges)
    expected = rows(WITH_UDFS[name](df))
    assert columnar() > 0
    conf({UDF_COLUMNAR_INPUT: "true"})
    frame = WITH_UDFS[name](df)
    assert not in_columns(frame)
    assert rows(frame) == expected
    assert in_columns(df.filter("flag"))


@before_spark("4.3", "rows of cut batches are repeated")
def test_spark_that_cuts_batches_reads_columns_and_refuses_rows(
    spark: SparkSession, edges: str, columnar: Callable[[], int], conf: Any
) -> None:
    conf({OUTPUT_ROWS: "77"})
    df = spark.read.format("pydelta").load(edges)
    assert len(df.collect()) == 2 * ROWS + 1
    conf({COLUMNAR_CONF: "false"})
    with pytest.raises(UnsupportedOperationException, match=f"{OUTPUT_ROWS} is set, and here it is 77. Set it to -1"):
        df.select("id").collect()
    assert columnar() == 1


@pytest.fixture
def reader_cannot_be_had(spark: SparkSession) -> Iterator[None]:
    """As if executors could not get the jar: the error replaces the reader."""
    jvm: Any = spark._jvm
    rules: Any = spark._jsparkSession.experimental().extraOptimizations()
    ours = next(rules.apply(i) for i in range(rules.length()) if "pydelta" in rules.apply(i).ruleName())
    field = ours.getClass().getClassLoader().loadClass("pydelta.scan.ExecutorJar").getDeclaredField("READERS")
    field.setAccessible(True)
    readers, context, name = field.get(None), spark.sparkContext._jsc.sc(), "pydelta.readers.ColumnarReads"
    if readers.get(context) is None:
        readers.put(context, jvm.java.util.HashMap())
    cached_reader = readers.get(context).get(name)
    readers.get(context).put(name, jvm.java.lang.IllegalStateException("Spark does not give the jar to its executors"))
    yield
    if cached_reader is None:
        readers.get(context).remove(name)
    else:
        readers.get(context).put(name, cached_reader)


@pytest.mark.usefixtures("reader_cannot_be_had")
def test_unavailable_reader_falls_back_to_rows_and_says_why(spark: SparkSession, edges: str) -> None:
    session = spark.newSession()
    session.conf.set(COLUMNAR_CONF, "true")
    register(session)
    for _ in range(2):
        df = session.read.format("pydelta").load(edges).select("id", "text")
        assert not in_columns(df)
        assert len(df.collect()) == 2 * ROWS + 1
    status = pruning.status(session)
    assert (status["pruning"].used, status["pruning"].skipped, status["columns"].used) == (2, 0, 0)
    assert "Spark does not give the jar to its executors" in str(status["columns"].last_error)
    assert spark.range(3).count() == 3
