"""Small queries over one task: no shuffle, and the same rows as with a shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin import pruning
from tests.support.oracles.frames import executed_plan, rows

ENABLED = "spark.pydelta.oneTask.enabled"

IN_ONE_TASK = [
    "select k, count(*), max(name), avg(id) from {t} where id > 10 group by k",
    "select distinct k from {t}",
    "select count(distinct name), sum(k) from {t}",
    "select k, id % 3 n, count(*) from {t} where k < 5 group by k, id % 3 having count(*) > 2",
    "select id, name from {t} where k = 3 order by name desc",
    "select k, sum(id) s from {t} group by k order by s",
    "select id, row_number() over (partition by k order by id desc) r from {t}",
    "select id, sum(k) over (order by id) r from {t} where k in (1, 2)",
    "select id from (select id, row_number() over (partition by k order by id desc) r from {t}) where r <= 2",
    "select k, c from (select k, count(*) c from {t} group by k) where c > (select min(k) from {t})",
    "select k, max(id) from {t} where rand() < 2 group by k",
]
SHUFFLED = [
    "select k, name, count(*) from {t} group by rollup(k, name)",
    "select k, x, count(*) from (select k, explode(sequence(0, k)) x from {t}) group by k, x",
    "select a.k, count(*) from {t} a join {t} b on a.id = b.id group by a.k",
    "select k, count(*) from (select k from {t} union all select k + 1 from {t}) group by k",
    "select /*+ repartition(3) */ k, count(*) from {t} group by k",
]


def is_shuffled(df: DataFrame) -> bool:
    return "Exchange" in executed_plan(df).replace("BroadcastExchange", "")


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one_task") / "t"
    frame = spark.range(0, 500, 1, 1).selectExpr("id", "if(id % 7 = 0, null, id % 7) k", "concat('n', id % 90) name")
    frame.write.format("pydelta").save(str(path))
    return path


@pytest.fixture
def view(spark: SparkSession, table: Path) -> Iterator[str]:
    spark.read.format("pydelta").load(str(table)).createOrReplaceTempView("one_task")
    yield "one_task"
    spark.catalog.dropTempView("one_task")


@pytest.mark.parametrize("query", IN_ONE_TASK)
def test_small_query_is_done_in_the_task_that_reads(
    spark: SparkSession, view: str, query: str, conf: Callable[[Mapping[str, str]], None]
) -> None:
    df = spark.sql(query.format(t=view))
    assert not is_shuffled(df), executed_plan(df)
    now = rows(df)
    if "order by name desc" in query:
        assert [row.name for row in df.collect()] == sorted((row.name for row in df.collect()), reverse=True)
    conf({ENABLED: "false"})
    shuffled = spark.sql(query.format(t=view))
    assert is_shuffled(shuffled)
    assert rows(shuffled) == now
    assert pruning.status(spark)["one-task"].last_error is None


@pytest.mark.parametrize("query", SHUFFLED)
def test_other_queries_are_shuffled(spark: SparkSession, view: str, query: str) -> None:
    df = spark.sql(query.format(t=view))
    assert is_shuffled(df), executed_plan(df)
    assert df.count() > 0


def test_python_functions_over_groups_get_tasks_of_their_own(spark: SparkSession, table: Path) -> None:
    def doubled(group: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"k": group["k"] * 2})

    frame = spark.read.format("pydelta").load(str(table))
    applied = frame.groupBy("k").applyInPandas(doubled, "k long")
    counted = frame.groupBy("k").count().select(F.udf(lambda k: k, "long")("k").alias("k"))
    assert is_shuffled(applied)
    assert is_shuffled(counted)


def test_scan_of_more_tasks_is_shuffled(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "more")
    frame = spark.read.format("pydelta").load(str(table))
    for part in (frame.filter("id < 100"), frame.filter("id >= 100")):
        part.write.format("pydelta").mode("append").save(path)
    both = spark.read.format("pydelta").load(path)
    assert both.rdd.getNumPartitions() == 2
    assert is_shuffled(both.groupBy("k").count())
    one = both.filter("id < 50").groupBy("k").count()
    assert not is_shuffled(one)
    assert rows(one) == rows(frame.filter("id < 50").groupBy("k").count())


def test_scan_of_many_rows_is_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "long")
    spark.range(0, 1_000_001, 1, 1).selectExpr("id div 100000 k").write.format("pydelta").save(path)
    frame = spark.read.format("pydelta").load(path)
    assert frame.rdd.getNumPartitions() == 1
    assert is_shuffled(frame.groupBy("k").count())
    assert pruning.status(spark).last_scan.bytes_kept < 1_000_000  # type: ignore[union-attr]


def test_session_that_says_how_many_tasks_it_wants_has_them(
    spark: SparkSession, table: Path, conf: Callable[[Mapping[str, str]], None]
) -> None:
    conf({"spark.sql.leafNodeDefaultParallelism": "4"})
    assert is_shuffled(spark.read.format("pydelta").load(str(table)).groupBy("k").count())


def test_scan_of_many_bytes_is_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "large")
    large = spark.range(0, 200_000, 1, 1).selectExpr("id", "sha2(cast(id as string), 256) text")
    large.write.format("pydelta").save(path)
    frame = spark.read.format("pydelta").load(path)
    assert frame.rdd.getNumPartitions() == 1
    assert is_shuffled(frame.groupBy("text").count())
    assert not is_shuffled(frame.limit(0).groupBy("text").count())
