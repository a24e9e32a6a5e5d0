"""Aggregates over partial rows: the same results as over rows, and used for every query that needs only sums, counts, minima and
maxima.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin import DeltaTable, pruning
from tests.support.oracles.frames import executed_plan, rows
from tests.support.runs.sampling import sampled
from tests.support.spark.older_settings import PARTIAL_CONF as ENABLED

ROW_COUNT = 6_000

PARTIAL = [
    "select kind, count(*), sum(price), max(day) from {t} group by kind",
    "select count(name), sum(i), sum(price), max(day), max(at), min(flag) from {t}",
    "select sum(short), sum(byte), sum(i), sum(big), sum(tiny), sum(p) from {t}",
    "select flag, day, sum(i), count(i), count(1) from {t} where day <= date'2020-03-01' and price > 3 group by flag, day",
    "select upper(kind) k, sum(price) / count(*) from {t} where kind in ('1', '2') group by upper(kind)",
    "select year(day) y, sum(big) + 1, -min(i) from {t} group by 1 having count(*) > 3",
    "select name, sum(big), count(*) from {t} group by name",
    "select byte % 2 odd, kind, sum(big), max(p) from {t} where p > 1 group by 1, 2",
    "select flag, sum(price), count(p) from {t} where p is null and kind like '1%' group by flag",
    "select count(*) from {t} where name is null",
    "select count(*), sum(i) from {t} where not (i <=> 5) and (kind = '3' or price between 1 and 2)",
    "select sum(big), count(*), min(day) from {t} where big < 0",
    "select kind, sum(big) from {t} where big < 0 group by kind",
    "select sum(big) from {t} where x > 3.5 and x < 100",
    "select k, sum(n) from (select kind k, big n, day from {t} where price > 2) group by k",
    "select a.k, a.s, b.s from (select kind k, sum(i) s from {t} group by kind) a "
    "join (select kind k, sum(price) s from {t} where flag group by kind) b on a.k = b.k",
    "select max(s) from (select kind, sum(price) s from {t} group by kind)",
    "select kind, sum(price * (1 - short)), sum(price * (1 - short) * (2.5 + short)), avg(price) from {t} group by kind",
    "select sum(price * short), sum(price + short - tiny), sum(-1.25 * tiny), avg(short), avg(i), avg(p), avg(tiny) from {t}",
    "select kind, avg(price) + 1, avg(i) / 2, sum(tiny * tiny) from {t} where big > 100 group by kind having avg(byte) > 3",
    "select avg(price), avg(i), avg(short), sum(price * short) from {t} where big < -1000",
    "select flag, sum(eighteen * eighteen), sum(eighteen * short), sum(eighteen * eighteen * tiny) from {t} group by flag",
    "select try_sum(price * short), sum(r) from (select price, short, tiny r from {t} where i > 1)",
    "select i, p, sum(big), count(*) from {t} where price > 1 group by i, p",
    "select distinct i, kind from {t}",
    "select count(kind), count(big), count(at), count(name), count(p), sum(i), count(*) from {t} where day > date'2020-01-09'",
    "select flag, count(kind), count(day), count(x), max(day) from {t} where kind <> '3' group by flag",
    "select i % 3 k, max(big) from {t} group by 1",
    "select kind, count(*) from {t} where big = (select max(big) from {t} where i > 4) group by kind",
]
READ = [
    "select sum(x) from {t}",
    "select avg(big) from {t}",
    "select avg(wide) from {t}",
    "select avg(x) from {t}",
    "select try_avg(price) from {t}",
    "select sum(try_multiply(price, short)) from {t}",
    "select sum(price / 2) from {t}",
    "select sum(price * i) from {t}",
    "select sum(price * wide) from {t}",
    "select sum(eighteen * eighteen * eighteen) from {t} where big between 8955 and 8965",
    "select avg(price * 2) from {t}",
    "select sum(eighteen * eighteen * tiny * tiny) from {t} where big between 8955 and 8965",
    "select sum(-price) from {t}",
    "select sum(big + 1) from {t} where i > 3",
    "select count(distinct kind), sum(i) from {t}",
    "select sum(i) filter (where flag) from {t}",
    "select x, sum(i) from {t} group by x",
    "select big, sum(i) from {t} group by big",
    "select kind, flag, sum(big) from {t} group by rollup(kind, flag)",
    "select max(name), sum(i) from {t}",
    "select sum(wide) from {t}",
    "select sum(i) from {t} where abs(i) > 3",
    "select sum(i) from {t} where day > date'+12000-01-01' or flag",
    "select sum(i) from (select * from {t} limit 7)",
    "select st.a, sum(i) from {t} group by st.a",
    "select kind, sum(big) from {t} where rand() * 2 > -1 group by kind",
]


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROW_COUNT, 1, 3).selectExpr(
        "id * 3 - 40 as big",
        "cast(id % 7 as string) kind",
        "cast(id % 13 as decimal(12,2)) / 4 * cast(1.5 as decimal(3,1)) wide",
        "cast(cast(id % 13 as decimal(12,2)) / 4 as decimal(12,2)) price",
        "cast(-(id % 5) as decimal(7,2)) short",
        "cast(id % 3 as decimal(5,0)) tiny",
        "cast((id - 3000) * 31415926535 as decimal(18,3)) eighteen",
        "cast(id % 100 as tinyint) byte",
        "date_add(date'2020-01-01', cast(id % 100 as int)) day",
        "if(id % 3 = 0, null, cast(id % 11 as int)) i",
        "cast(id as double) x",
        "if(id % 19 = 0, null, id % 2 = 0) flag",
        "cast(id as timestamp) at",
        "if(id % 11 = 0, null, 'n' || id) name",
        "named_struct('a', id % 2) st",
        "if(id % 4 = 3, null, cast(id % 4 as int)) p",
    )


@pytest.fixture(scope="module")
def tables(spark: SparkSession, source: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same rows, plain; with other names in partitions, and with rows deleted by vectors."""
    directory = tmp_path_factory.mktemp("partial")
    paths = {name: str(directory / name) for name in ("plain", "deleted")}
    source.write.format("pydelta").save(paths["plain"])
    options = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    source.write.format("pydelta").options(**options).partitionBy("p").save(paths["deleted"])
    DeltaTable.forPath(spark, paths["deleted"]).delete("big % 17 = 3")
    return paths


@pytest.fixture
def partial_count(spark: SparkSession, conf: Any) -> Iterator[Callable[[], int]]:
    """Allows partial rows for all sizes; returns the number of aggregates over partial rows since the last call."""
    conf({ENABLED: "true"})
    before = [pruning.status(spark)["partial"].used]

    def count() -> int:
        now = pruning.status(spark)
        assert now["partial"].last_error is None and now["pruning"].skipped == 0, (now["partial"].last_error, now.last_error)
        before.append(now["partial"].used)
        return before[-1] - before[-2]

    yield count


def queried(spark: SparkSession, query: str, path: str) -> list[str]:
    spark.read.format("pydelta").load(path).createOrReplaceTempView("partial_rows")
    return rows(spark.sql(query.format(t="partial_rows")))


@pytest.mark.parametrize("query", PARTIAL)
def test_partial_rows_give_what_rows_give(
    spark: SparkSession, tables: dict[str, str], conf: Any, partial_count: Callable[[], int], query: str
) -> None:
    for path in tables.values():
        partial_results = queried(spark, query, path)
        assert partial_count() > 0
        conf({ENABLED: "false"})
        assert queried(spark, query, path) == partial_results
        assert partial_count() == 0
        conf({ENABLED: "true"})


@pytest.mark.parametrize("query", sampled(READ, 2))
def test_aggregates_that_need_the_rows_read_them(
    spark: SparkSession, tables: dict[str, str], conf: Any, partial_count: Callable[[], int], query: str
) -> None:
    results = queried(spark, query, tables["deleted"])
    assert partial_count() == 0
    conf({"spark.pydelta.pruning.enabled": "false"})
    assert queried(spark, query, tables["deleted"]) == results


def test_small_scans_are_left_to_the_quicker_reader(spark: SparkSession, tables: dict[str, str], conf: Any) -> None:
    before = pruning.status(spark)["partial"].used
    conf({ENABLED: "auto"})
    assert queried(spark, PARTIAL[0], tables["plain"])
    assert pruning.status(spark)["partial"].used == before


def test_names_and_versions_have_partial_rows(
    spark: SparkSession, tables: dict[str, str], partial_count: Callable[[], int]
) -> None:
    spark.sql(f"CREATE TABLE partial_named USING pydelta LOCATION '{tables['deleted']}'")
    try:
        named = rows(spark.sql("SELECT sum(big), count(name), min(day) FROM partial_named"))
        assert partial_count() == 1
        assert rows(spark.sql(f"SELECT sum(big), count(name), min(day) FROM pydelta.`{tables['deleted']}`")) == named
        full_result = rows(
            spark.sql(f"SELECT sum(big), count(name), min(day) FROM pydelta.`{tables['deleted']}` VERSION AS OF 0")
        )
        assert partial_count() == 2 and full_result != named
        assert queried(spark, "SELECT sum(big), count(name), min(day) FROM {t}", tables["plain"]) == full_result
    finally:
        spark.sql("DROP TABLE partial_named")


def test_a_sum_that_does_not_fit_is_the_error_that_rows_give(
    spark: SparkSession, tmp_path: Path, conf: Any, partial_count: Callable[[], int]
) -> None:
    path = str(tmp_path / "t")
    spark.sql("SELECT 'a' kind, 5000000000000000000L v FROM range(0, 3, 1, 1)").write.format("pydelta").save(path)
    for enabled in ("true", "false"):
        conf({ENABLED: enabled})
        with pytest.raises(ArithmeticException) as caught:
            queried(spark, "select kind, sum(v) from {t} group by kind", path)
        assert caught.value.getCondition() == "ARITHMETIC_OVERFLOW"
        assert queried(spark, "select try_sum(v) from {t}", path) == ["Row(try_sum(v)=None)"]
    assert partial_count() == 2
    conf({"spark.sql.ansi.enabled": "false"})
    wrapped = queried(spark, "select sum(v) from {t}", path)
    conf({ENABLED: "true"})
    assert queried(spark, "select sum(v) from {t}", path) == wrapped


def test_a_product_that_no_decimal_holds_is_an_error_as_of_rows(
    spark: SparkSession, tmp_path: Path, conf: Any, partial_count: Callable[[], int]
) -> None:
    path, query = str(tmp_path / "t"), "select sum(v * v * f) from {t}"
    spark.sql("SELECT cast(repeat('9', 18) as decimal(18,0)) v, cast(999 as decimal(3,0)) f").write.format("pydelta").save(path)
    for enabled, count in (("true", 1), ("false", 0)):
        conf({ENABLED: enabled})
        with pytest.raises(Exception, match="NUMERIC_VALUE_OUT_OF_RANGE"):
            queried(spark, query, path)
        assert partial_count() == count
    conf({"spark.sql.ansi.enabled": "false", ENABLED: "true"})
    assert queried(spark, query, path) == ["Row(sum(((v * v) * f))=None)"]
    assert partial_count() == 0, "NULL is for Spark to find"


def test_join_with_partial_rows_knows_the_size_of_the_scan(
    spark: SparkSession, tables: dict[str, str], conf: Any, partial_count: Callable[[], int]
) -> None:
    def joined() -> DataFrame:
        sums = spark.read.format("pydelta").load(tables["plain"]).groupBy("i").sum("big")
        return spark.range(5_000_000).join(sums, F.col("id") == F.col("i"))

    joined_frame = joined()
    assert "BroadcastHashJoin" in executed_plan(joined_frame) and partial_count() == 1
    conf({ENABLED: "false"})
    assert rows(joined_frame) == rows(joined())


def test_plan_shows_what_tasks_add_up(spark: SparkSession, tables: dict[str, str], partial_count: Callable[[], int]) -> None:
    frame = spark.read.format("pydelta").load(tables["plain"]).filter("price > 1").groupBy("kind").sum("big")
    plan = executed_plan(frame)
    assert "PartialRows: " in plan and "Filter" not in plan.replace("PushedFilters", "").replace("RuntimeFilters", "")
    assert frame.count() == 7
