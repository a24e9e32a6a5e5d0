"""Joins: Spark knows the sizes of tables, and files of partitions that the other side does not match stay unread.

To show that files stay unread, the test deletes them: a query that reads one of them fails. Rows are compared with those without
these features, and with those of Spark's own Parquet reader.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin import pruning
from tests.support.oracles.frames import executed_plan, rows
from tests.support.runs.sampling import sampled

ENABLED = "spark.pydelta.joinPlanning.enabled"
ADAPTIVE = "spark.sql.adaptive.enabled"
ROW_COUNT = 1_200

# Partition columns of every type that a join may be on: from the number of a group, one of them null.
KEYS = {
    "n": "case when id % 6 = 5 then null else cast(id % 6 as int) end",
    "d": "date_add(date'1969-12-30', cast(id % 6 as int))",
    "s": "concat('k ü/', id % 6)",
    "ts": "timestamp_micros(id % 6 * 3600000001 - 7200000000)",
    "price": "cast(id % 6 - 2.5 as decimal(9, 3))",
    "flag": "id % 2 = 0",
}


def optimized(df: DataFrame) -> Any:
    return df._jdf.queryExecution().optimizedPlan()


def scan_of(df: DataFrame) -> Any:
    """The only scan of a frame, from Spark's logical plan."""
    return optimized(df).collectLeaves().head()


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    before: dict[str, str | None] = {}

    def put(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield put
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.fixture(params=sampled([True, False], 2), ids=lambda adaptive: "adaptive" if adaptive else "planned")
def adaptive(request: pytest.FixtureRequest, conf: Any) -> None:
    conf(ADAPTIVE, str(request.param).lower())


def with_and_without_adaptive(names: Mapping[str, str]) -> Any:
    """Each name with one of the two in turn; with both if all cases run."""
    cases = [(name, (place + turn) % 2 == 0) for place, name in enumerate(names) for turn in (0, 1)]
    return pytest.mark.parametrize(("name", "adaptive"), sampled(cases, 24), indirect=["adaptive"])


@pytest.fixture
def filtered(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """The number of scans whose files were chosen again since the test began. Nothing may have failed."""
    before = pruning.status(spark)
    yield lambda: pruning.status(spark)["joins"].used - before["joins"].used
    after = pruning.status(spark)
    assert after["pruning"].skipped == before["pruning"].skipped, after.last_error
    assert after["joins"].last_error == before["joins"].last_error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joins")


@pytest.fixture(scope="module")
def fact(spark: SparkSession, folder: Path) -> str:
    """Partitions by n: 0 to 4 and null, one file each."""
    path = str(folder / "fact")
    frame = spark.range(0, ROW_COUNT, 1, 1).selectExpr("id", f"{KEYS['n']} n", "concat('text ', id % 7) s", "id * 2 m")
    frame.write.format("pydelta").partitionBy("n").save(path)
    return path


@pytest.fixture(scope="module")
def dim(spark: SparkSession, folder: Path) -> str:
    path = str(folder / "dim")
    frame = spark.range(0, 8, 1, 1).selectExpr(
        "nullif(cast(id as int), 5) k", "concat('name ', id) name", "cast(id % 2 as int) kind"
    )
    frame.write.format("pydelta").save(path)
    return path


@pytest.fixture(scope="module")
def halved(fact: str, folder: Path) -> str:
    """The fact table with only the files of the partitions 1 and 3."""
    path = folder / "halved"
    shutil.copytree(fact, path)
    for directory in path.glob("n=*"):
        if directory.name not in ("n=1", "n=3"):
            shutil.rmtree(directory)
    assert sorted(directory.name for directory in path.glob("n=*")) == ["n=1", "n=3"]
    return str(path)


@pytest.fixture
def load(spark: SparkSession) -> Callable[..., DataFrame]:
    return lambda path, **options: spark.read.format("pydelta").options(**options).load(path)


def without(spark: SparkSession, make: Callable[[], DataFrame]) -> list[str]:
    """The rows of a frame if Spark knows nothing about the tables."""
    spark.conf.set(ENABLED, "false")
    try:
        return rows(make())
    finally:
        spark.conf.unset(ENABLED)


# ---------------------------------------------------------------- sizes


def test_small_table_is_broadcast(load: Any, fact: str, dim: str, spark: SparkSession, adaptive: None, conf: Any) -> None:
    def joined() -> DataFrame:
        return load(fact).join(load(dim), F.col("id") == F.col("k")).select("id", "name")

    df = joined()
    assert "BroadcastHashJoin" in executed_plan(df)
    assert "SortMergeJoin" not in executed_plan(df)
    joined_rows = rows(df)
    assert len(joined_rows) == 7
    conf(ENABLED, "false")
    assert "SortMergeJoin" in executed_plan(joined())
    assert rows(joined()) == joined_rows


def test_table_beyond_the_threshold_is_not_broadcast(load: Any, fact: str, dim: str, conf: Any) -> None:
    conf("spark.sql.autoBroadcastJoinThreshold", "300")
    df = load(fact).join(load(dim), F.col("id") == F.col("k"))
    assert "SortMergeJoin" in executed_plan(df)
    assert len(rows(df)) == 7


def test_size_is_of_the_files_kept_and_the_columns_read(load: Any, fact: str, conf: Any) -> None:
    def size(df: DataFrame) -> int:
        return int(str(scan_of(df).stats().sizeInBytes()))

    full_size = size(load(fact))
    bytes_total = sum(file.stat().st_size for file in Path(fact).rglob("*.parquet"))
    assert full_size == bytes_total
    assert 0 < size(load(fact).select("id")) < full_size / 2
    assert 0 < size(load(fact).filter("n = 1")) < full_size / 2
    assert size(load(fact).filter("n > 100")) == 0
    assert 0 < size(load(fact).limit(3)) < 3 * 100
    conf("spark.sql.sources.fileCompressionFactor", "2.5")
    assert size(load(fact)) == -(-bytes_total * 5 // 2)
    conf(ENABLED, "false")
    assert size(load(fact)) > 2**60


@pytest.fixture(scope="module")
def bare(dim: str, folder: Path) -> str:
    """The dimension table without statistics."""
    bare = folder / "bare"
    shutil.copytree(dim, bare)
    for crc in bare.rglob("*.crc"):
        crc.unlink()
    commit = bare / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    commit.write_text("\n".join(map(json.dumps, actions)))
    return str(bare)


def test_table_without_statistics_has_a_size(load: Any, dim: str, bare: str) -> None:
    df = load(bare).alias("a").join(load(dim).alias("b"), "k")
    assert "BroadcastHashJoin" in executed_plan(df)
    assert len(rows(df)) == 7


def test_missing_log_fails_the_query_and_not_its_planning(
    load: Any, dim: str, tmp_path: Path, spark: SparkSession
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(dim, broken)
    broken_frame = load(str(broken))
    for file in (broken / "_delta_log").iterdir():
        file.unlink()
    before = pruning.status(spark)
    df = broken_frame.join(load(dim), "k")
    assert "Join" in executed_plan(df)
    assert pruning.status(spark)["joins"].last_error not in (None, before["joins"].last_error)
    assert pruning.status(spark)["pruning"].skipped == before["pruning"].skipped
    with pytest.raises(PySparkException, match="DELTA_MISSING_DELTA_TABLE"):
        df.collect()


# ---------------------------------------------------------------- files chosen by a join

FEW = "(select * from dim where name in ('name 1', 'name 3'))"
MATCHING = {
    "inner": "select f.*, d.name from fact f join {few} d on f.n = d.k",
    "dimension first": "select f.*, d.name from {few} d join fact f on f.n = d.k",
    "semi": "select * from fact where n in (select k from {few})",
    "exists": "select * from fact where exists (select 1 from {few} where k = n and kind = 1)",
    "two columns": "select f.id, d.name from fact f join {few} d on f.n = d.k and f.id > d.kind",
    "aggregate": "select d.name, count(*), sum(f.m) from fact f join {few} d on f.n = d.k group by d.name",
    "under a projection": "select x, s from (select n x, concat(s, id) s, m from fact where m > 10) join {few} on x = k",
    "under an aggregate": "select g.n, c from (select n, sum(m) c from fact group by n) g join {few} on g.n = k",
    "scalar subquery": "select count(*), sum(m) from fact where n = (select max(k) from {few})",
}


def views(spark: SparkSession, fact: str, dim: str, source: str = "pydelta") -> None:
    spark.read.format(source).load(fact).createOrReplaceTempView("fact")
    spark.read.format(source).load(dim).createOrReplaceTempView("dim")


@with_and_without_adaptive(MATCHING)
def test_join_reads_only_the_partitions_that_it_may_match(
    name: str, fact: str, dim: str, halved: str, spark: SparkSession, adaptive: None, filtered: Any
) -> None:
    views(spark, fact, dim)
    query = MATCHING[name].format(few=FEW)
    expected = without(spark, lambda: spark.sql(query))
    assert len(expected) > 0
    assert filtered() == 0
    views(spark, halved, dim)
    assert rows(spark.sql(query)) == expected
    assert filtered() > 0
    with pytest.raises(PySparkException, match="n="):
        without(spark, lambda: spark.sql(query))


def test_files_kept_are_those_of_the_join(load: Any, fact: str, dim: str, spark: SparkSession, filtered: Any) -> None:
    load(fact).join(load(dim).filter("name in ('name 1', 'name 3')"), F.expr("n = k")).collect()
    report = pruning.status(spark).last_scan
    assert report is not None
    assert (report.files_kept, report.files_total) == (2, 6)
    assert filtered() == 1


@pytest.mark.parametrize("disabled", ["driver", "driver, parquet", "driver, columns"])
def test_status_lists_each_scan_of_a_join_once(
    disabled: str, load: Any, fact: str, dim: str, spark: SparkSession, conf: Any, filtered: Any
) -> None:
    conf("spark.pydelta.disable", disabled)
    before = pruning.status(spark)
    load(fact).join(load(dim).filter("name in ('name 1', 'name 3')"), F.expr("n = k")).collect()
    now = pruning.status(spark)
    assert [line.path for line in now.scans[-2:]] == [dim, fact]
    assert str(now.scans[-1].files).startswith("2 of 6 files")
    assert sum(now[road].used - before[road].used for road in ("parquet", "columns", "rows")) == 2
    assert filtered() == 1


WHOLE = {
    "left outer": "select count(*), count(k), sum(m) from fact left join (select * from dim where name = 'name 1') on n = k",
    "right outer": "select count(*), count(n), sum(m) from fact right join (select * from dim where kind = 1) on n = k",
    "full outer": "select count(*), count(k), count(n) from fact full join (select * from dim where kind = 1) on n = k",
    "anti": "select count(*), sum(m) from fact left anti join (select * from dim where kind = 1) on n = k",
    "not in": "select count(*) from fact where n not in (select k from dim where kind = 1 and k is not null)",
    "null safe": "select count(*), sum(m), count(name) from fact join (select * from dim where kind = 1) on n <=> k",
    "expression of the key": "select count(*), sum(m) from fact join {few} on n + 1 = k",
    "wider key": "select count(*), sum(m) from fact join (select cast(k as bigint) k, name from {few}) on n = k",
    "other column": "select count(*), sum(m) from fact join dim on id = k where kind = 1",
    "no dimension rows": "select count(*), sum(m) from fact join dim on n = k where name = 'nobody ' || kind and kind < 5",
    "union": "select count(*), sum(f.id) from (select n, id from fact where m < 100 union all select n, m from fact) f "
    "join {few} on n = k",
    "shared scan": "with f as (select * from fact) select count(*), sum(a.m), max(b.id) from f a join f b on a.n = b.n "
    "where b.s = 'text 3' and a.id % 50 = 1 and b.id % 3 = 1",
    "two places": "select count(*), sum(id) from (select f.id from fact f join dim on n = k where name = 'name 1' "
    "union all select f.id from fact f join dim on n = k where name = 'name 2' union all select id from fact)",
    "three tables": "select count(*), sum(f.m) from fact f join dim d on f.n = d.k join fact g on g.n = d.k and g.id = f.id "
    "where d.kind = 0",
    "limit": "select count(*) from (select * from fact limit 2000) join {few} on n = k",
    "join in a subquery": "select count(*) from fact where id in (select id from fact join dim on n = k where name = 'name 1') "
    "and n in (select k from {few})",
    "window": "select count(*), sum(r) from (select n, rank() over (partition by n order by id) r from fact) join {few} on n = k",
    "scalar that is null": "select count(*), sum(m) from fact where n = (select max(k) from dim where name = 'nobody')",
    "null safe scalar": "select count(*), sum(m) from fact where n <=> (select max(k) from dim where name = 'nobody')",
    "scalar or another": "select count(*), sum(m) from fact where n = (select max(k) from {few}) or id < 50",
    "not the scalar": "select count(*), sum(m) from fact where not (n >= (select max(k) from {few})) "
    "and n <> (select min(k) from dim)",
    "scalar of the limited": "select count(*) from (select * from fact limit 1200) where n = (select max(k) from {few})",
    "correlated": "select count(*), sum(m) from fact where m > (select avg(k) from dim where kind = n and name <> 'name 1')",
}


@with_and_without_adaptive(WHOLE)
def test_join_gives_the_rows_that_it_gives_without(
    name: str, fact: str, dim: str, spark: SparkSession, adaptive: None, filtered: Any
) -> None:
    for path in (fact, dim):
        if not Path(f"{path}.parquet").exists():
            spark.read.format("pydelta").load(path).write.parquet(f"{path}.parquet")
    query = WHOLE[name].format(few=FEW)
    views(spark, f"{fact}.parquet", f"{dim}.parquet", "parquet")
    expected = rows(spark.sql(query))
    views(spark, fact, dim)
    assert without(spark, lambda: spark.sql(query)) == expected
    assert rows(spark.sql(query)) == expected


@pytest.mark.parametrize("key", sampled(KEYS, 3))
def test_key_of_every_type_finds_its_partitions(key: str, load: Any, tmp_path: Path, spark: SparkSession, filtered: Any) -> None:
    source = spark.range(0, 60, 1, 1).selectExpr("id", f"{KEYS[key]} p")
    source.write.format("pydelta").partitionBy("p").save(str(tmp_path / "fact"))
    few = source.filter("id in (2, 4, 5)").selectExpr("p k", "concat('name ', id) name")
    few.write.format("pydelta").save(str(tmp_path / "dim"))

    def joined() -> DataFrame:
        matching_names = load(str(tmp_path / "dim")).filter("name in ('name 2', 'name 4')")
        return load(str(tmp_path / "fact")).join(matching_names, F.expr("p = k")).select("id", "p", "name")

    expected = rows(source.join(few.filter("name in ('name 2', 'name 4')"), F.expr("p = k")).select("id", "p", "name"))
    assert len(expected) >= 20
    assert without(spark, joined) == expected
    assert filtered() == 0
    assert rows(joined()) == expected
    assert filtered() == 1
    report = pruning.status(spark).last_scan
    assert report is not None
    assert report.files_kept == (1 if key == "flag" else 2)


def test_renamed_columns_with_deletion_vectors_in_columns(
    load: Any, tmp_path: Path, spark: SparkSession, conf: Any, filtered: Any
) -> None:
    path = str(tmp_path / "fact")
    source = spark.range(0, 600, 1, 1).selectExpr("id", "cast(id % 6 as int) `the key`")
    writer = source.write.format("pydelta").partitionBy("the key").option("delta.columnMapping.mode", "name")
    writer.option("delta.enableDeletionVectors", "true").save(path)
    source.limit(0).write.format("pydelta").mode("overwrite").option("replaceWhere", "id % 5 = 0").save(path)
    conf("spark.pydelta.columnarReader.enabled", "true")
    few = spark.range(0, 9).selectExpr("cast(id as int) k", "id % 2 kind").filter("kind = 1 and k in (1, 3, 8)")
    df = load(path).join(F.broadcast(few), F.expr("`the key` = k"))
    assert df.count() == 160
    assert sorted({row["the key"] for row in df.collect()}) == [1, 3]
    assert filtered() == 2


def test_frame_is_used_again_and_cached(load: Any, fact: str, dim: str, spark: SparkSession, adaptive: None) -> None:
    full_frame, names = load(fact), load(dim)
    one = full_frame.join(names.filter("name = 'name 1'"), F.expr("n = k"))
    assert (one.count(), len(one.collect()), len(one.collect())) == (200, 200, 200)
    two = full_frame.join(names.filter("name = 'name 2' and kind < 5"), F.expr("n = k")).cache()
    try:
        assert (two.count(), two.selectExpr("min(n)", "max(n)").first()) == (200, (2, 2))
        assert one.union(two).count() == 400
        assert len(full_frame.collect()) == ROW_COUNT
        assert len(full_frame.join(two.select("id"), "id").collect()) == 200
    finally:
        two.unpersist()


def test_newest_version_is_read_whole(load: Any, dim: str, tmp_path: Path, spark: SparkSession, conf: Any, filtered: Any) -> None:
    """The file list for a join may be from a later version than the one that the reader was planned for."""
    conf(ADAPTIVE, "false")
    path = str(tmp_path / "fact")
    first = spark.range(0, 20, 1, 1).selectExpr("id", "cast(id % 4 as int) n")
    first.write.format("pydelta").partitionBy("n").option("delta.enableDeletionVectors", "true").save(path)
    df = load(path, followLatest="true").join(load(dim).filter("name = 'name 3'"), F.expr("n = k")).select("id")
    assert "dynamicpruning" in executed_plan(df)
    more_rows = first.withColumn("id", F.col("id") + 100)
    more_rows.write.format("pydelta").mode("append").save(path)
    first.limit(0).write.format("pydelta").mode("overwrite").option("replaceWhere", "id in (3, 103)").save(path)
    assert sorted(row.id for row in df.collect()) == [7, 11, 15, 19, 107, 111, 115, 119]
    assert filtered() == 1


# ---------------------------------------------------------------- switches


@pytest.mark.parametrize("switch", sampled(["option", "conf", "pruning", "spark"], 2))
def test_switched_off_nothing_is_known(
    switch: str, load: Any, fact: str, dim: str, halved: str, conf: Any, adaptive: None, filtered: Any
) -> None:
    option = {"option": {"joinPlanning": "false"}, "pruning": {"pruning": "false"}}.get(switch, {})
    if switch == "conf":
        conf(ENABLED, "false")
    if switch == "spark":
        conf("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false")

    def joined(path: str) -> DataFrame:
        return load(path, **option).join(load(dim, **option).filter("name in ('name 1', 'name 3')"), F.expr("n = k"))

    df = joined(fact)
    assert ("BroadcastHashJoin" in executed_plan(df)) == (switch == "spark")
    assert "dynamicpruning" not in executed_plan(df)
    assert len(rows(df)) == 400
    with pytest.raises(PySparkException, match="n="):
        joined(halved).collect()
    assert filtered() == 0


def test_stream_joins_a_partitioned_table(
    load: Any, fact: str, dim: str, spark: SparkSession, tmp_path: Path, filtered: Any
) -> None:
    """In each batch the static side is planned like any table; the stream itself is never filtered."""
    names = spark.readStream.format("pydelta").load(dim).filter("kind = 1")
    joined = load(fact).join(names, F.expr("n = k")).select("id", "n", "name")
    query = joined.writeStream.format("memory").queryName("joined").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    expected = load(fact).join(load(dim).filter("kind = 1"), F.expr("n = k")).select("id", "n", "name")
    assert rows(spark.table("joined")) == rows(expected)
    assert len(spark.table("joined").collect()) == 400


# ---------------------------------------------------------------- estimates by cost

CBO = "spark.sql.cbo.enabled"


def test_rows_and_partition_values_are_told_where_they_are_used(load: Any, fact: str, conf: Any) -> None:
    assert scan_of(load(fact)).stats().rowCount().isEmpty()
    conf(CBO, "true")
    assert str(scan_of(load(fact)).stats().rowCount().get()) == str(ROW_COUNT)
    assert str(scan_of(load(fact).filter("n in (1, 2) and n > 0")).stats().rowCount().get()) == "400"
    assert str(scan_of(load(fact).limit(3)).stats().rowCount().get()) == "3"
    statistics = scan_of(load(fact).filter("n is not null").select("n")).stats().attributeStats().values().head()
    assert [str(statistics.distinctCount().get()), str(statistics.nullCount().get())] == ["5", "0"]
    assert [statistics.min().get(), statistics.max().get()] == [0, 4]
    with_nulls = scan_of(load(fact).select("n")).stats().attributeStats().values().head()
    assert str(with_nulls.distinctCount().get()) == "5"
    assert with_nulls.nullCount().isEmpty()
    conf(ENABLED, "false")
    assert scan_of(load(fact)).stats().rowCount().isEmpty()


def test_rows_are_unknown_where_a_file_does_not_say(load: Any, bare: str, conf: Any) -> None:
    conf(CBO, "true")
    stats = scan_of(load(bare)).stats()
    assert stats.rowCount().isEmpty()
    assert int(str(stats.sizeInBytes())) > 0


def test_joins_are_ordered_by_cost(load: Any, fact: str, dim: str, spark: SparkSession, conf: Any, filtered: Any) -> None:
    query = (
        "select count(*), sum(a.m + b.m) from fact a join fact b on a.s = b.s join dim on a.n = dim.k and b.n = dim.kind "
        "where dim.name = 'name 1'"
    )
    views(spark, fact, dim)
    expected = rows(spark.sql(query))

    def first_joined() -> set[str]:
        """Names of the columns of the joins that have two scans below them."""
        column_names: set[str] = set()
        todo = [optimized(spark.sql(query))]
        while todo:
            node = todo.pop()
            children = [node.children().apply(i) for i in range(node.children().length())]
            leaves = node.collectLeaves()
            if node.nodeName() == "Join" and leaves.length() == 2:
                column_names |= {str(name) for i in range(2) for name in leaves.apply(i).schema().fieldNames()}
            todo += children
        return column_names

    assert "k" not in first_joined()
    conf(CBO, "true")
    conf("spark.sql.cbo.joinReorder.enabled", "true")
    assert "k" in first_joined()
    assert rows(spark.sql(query)) == expected
    conf(ENABLED, "false")
    assert "k" not in first_joined()


# ---------------------------------------------------------------- what one query has found is no other's

EXECUTION = "spark.sql.execution.id"


@pytest.fixture
def runtime_filter(spark: SparkSession) -> Callable[..., Any]:
    """Predicates `n = value`, as Spark gives them to a scan while a query runs."""
    jvm: Any = spark.sparkContext._jvm
    java: Any = spark.sparkContext._gateway
    expressions = jvm.org.apache.spark.sql.connector.expressions

    def make(*values: int) -> Any:
        predicates = java.new_array(expressions.filter.Predicate, len(values))
        for i, value in enumerate(values):
            operands = java.new_array(expressions.Expression, 2)
            operands[0], operands[1] = expressions.Expressions.column("n"), expressions.Expressions.literal(value)
            predicates[i] = expressions.filter.Predicate("=", operands)
        return predicates

    return make


@pytest.fixture
def in_query(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Sets the query of the calls that follow."""
    yield lambda name: spark.sparkContext.setLocalProperty(EXECUTION, name)
    spark.sparkContext.setLocalProperty(EXECUTION, None)  # type: ignore[arg-type]


def test_filter_of_a_failed_query_removes_no_rows_of_the_next(
    load: Any, fact: str, runtime_filter: Any, in_query: Any
) -> None:
    """Spark passes predicates to a scan, and then requests the files. A query may fail between the two."""
    df = load(fact)
    in_query("fails")
    scan_of(df).scan().filter(runtime_filter(1))
    in_query(None)
    assert len(rows(df)) == ROW_COUNT


def test_what_is_found_is_for_the_next_batch_of_its_query_alone(load: Any, fact: str, runtime_filter: Any, in_query: Any) -> None:
    scan = scan_of(load(fact)).scan()
    in_query("one")
    full_batch = scan.toBatch()
    scan.filter(runtime_filter(1))
    assert not scan.toBatch().equals(full_batch)
    assert scan.toBatch().equals(full_batch)
    scan.filter(runtime_filter(1))
    scan.filter(runtime_filter())
    assert scan.toBatch().equals(full_batch)
    scan.filter(runtime_filter(1))
    in_query("another")
    assert scan.toBatch().equals(full_batch)
    in_query("one")
    assert scan.toBatch().equals(full_batch)
