"""Queries of every shape that Spark can give a scan. Each must return the rows that Spark's own Parquet reader returns.

A shape is a function of a Table. It returns rows as a list that is compared by its text (so that NaN equals NaN). Results do not
depend on the order of rows or on the partitions of a scan. query_shapes.sql has the shapes in SQL, which read the view `t`; the
shapes that need Python are here.
"""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession, Window
from pyspark.sql import functions as F

ROW_COUNT = 16_000


@dataclass(frozen=True)
class Table:
    """One way to read the rows: a format, its options, and a path."""

    spark: SparkSession
    format: str
    path: str
    options: tuple[tuple[str, str], ...] = ()

    def reader(self) -> DataFrameReader:
        return self.spark.read.format(self.format).options(**dict(self.options))

    def load(self, schema: str | None = None) -> DataFrame:
        reader = self.reader() if schema is None else self.reader().schema(schema)
        return reader.load(self.path)

    def sql(self, query: str) -> list[str]:
        self.load().createOrReplaceTempView("t")
        try:
            return rows(self.spark.sql(query))
        finally:
            self.spark.catalog.dropTempView("t")


Shape = Callable[[Table], list[Any]]


def make_rows(spark: SparkSession, count: int = ROW_COUNT) -> DataFrame:
    """The rows of all shapes: every type, nulls in most columns, NaN, negative zero, nested values, a partition key."""
    return spark.range(0, count, 1, 4).selectExpr(
        "id",
        "cast(id % 1000 as int) a",
        "case when id % 7 = 0 then null when id % 1001 = 0 then double('NaN') when id % 50 = 0 then -0.0D else id * 0.5D end b",
        "id * 3 c",
        "case when id % 11 = 0 then null else concat('city_', lpad(cast(id % 50 as string), 4, '0')) end s1",
        "concat('x', id % 13, case when id % 17 = 0 then 'é' else '' end) s2",
        "timestamp_seconds(1700000000 + id * 60 + 0.123456) ts",
        "timestamp_ntz'2023-11-14 00:00:00' + make_dt_interval(0, 0, cast(id as int)) ntz",
        "date_add(date'2023-12-01', cast(id % 400 as int)) d",
        "case when id % 5 = 4 then null else id % 3 = 0 end flag",
        "cast(id / 100 as decimal(12, 3)) price",
        "cast(id % 100 as float) f",
        "cast(cast(id % 97 as string) as binary) bin",
        "case when id % 23 = 0 then null else named_struct('x', cast(id % 10 as int), 'y', concat('city_', id % 5),"
        " 'deep', named_struct('p', id * 2, 'q', id % 4)) end st",
        "case when id % 19 = 0 then null else array(cast(id % 6 as int), null, cast(id % 8 as int)) end ints",
        "array(named_struct('k', cast(id % 6 as int), 'v', s2), named_struct('k', 1, 'v', 'one')) items",
        "map('m', cast(id % 30 as int), s2, 5) tags",
        "cast(id % 4 as int) part",
        "id `odd-name`",
        "concat('v', id % 3) `dotted.name`",
    )


def rows(df: DataFrame) -> list[str]:
    return sorted(repr(row.asDict(recursive=True)) for row in df.collect())


def sql_shapes() -> dict[str, Shape]:
    """The shapes of query_shapes.sql."""
    text = Path(__file__).with_suffix(".sql").read_text()
    named = (part.split("\n", 1) for part in text.split("\n--@ ")[1:])
    return {name.strip(): _sql_shape(re.sub(r"^--.*$", "", query, flags=re.MULTILINE)) for name, query in named}


def _sql_shape(query: str) -> Shape:
    return lambda table: table.sql(query)


SHAPES: dict[str, Shape] = sql_shapes()


def shape(function: Shape) -> Shape:
    SHAPES[function.__name__] = function
    return function


@shape
def join_of_two_loads(table: Table) -> list[Any]:
    left, right = table.load(), table.load()
    return rows(left.filter("a < 20").join(right.filter("flag"), "id").agg(F.sum(left.c + right.a), F.max(right.s1)))


@shape
def join_of_one_load_with_itself(table: Table) -> list[Any]:
    df = table.load()
    left, right = df.alias("l").filter("l.a < 10"), df.alias("r").filter("r.flag")
    return rows(left.join(right, F.expr("l.id = r.id")).selectExpr("sum(l.c)", "max(r.s2)", "count(*)"))


@shape
def union_of_one_load_with_two_filters(table: Table) -> list[Any]:
    df = table.load()
    return rows(df.filter("a = 1").select("id").union(df.filter("a = 2").select("id")).selectExpr("count(*)", "sum(id)"))


@shape
def frame_reused_with_other_filters(table: Table) -> list[Any]:
    df = table.load()
    counts = [
        df.count(),
        df.filter("a = 1").count(),
        df.count(),
        df.filter("a = 2").count(),
        df.filter("a = 1").count(),
        df.count(),
    ]
    return counts + rows(df.agg(F.sum("a"))) + rows(df.filter("a = 6").agg(F.sum("c"))) + rows(df.agg(F.max("s1")))


@shape
def frame_run_twice(table: Table) -> list[Any]:
    df = table.load().filter("a = 2").select("id")
    return [df.count(), df.count(), *rows(df), *rows(df)]


@shape
def frame_explained_then_run(table: Table) -> list[Any]:
    df = table.load().filter("a = 2").groupBy("s1").agg(F.sum("c"))
    assert "Scan" in df._jdf.queryExecution().toString()
    return rows(df)


@shape
def schema_given_by_user(table: Table) -> list[Any]:
    """The reader's own schema: fewer columns, another order, a struct with fewer fields; then pruned further."""
    df = table.load(schema="st struct<y: string, x: int>, c bigint, a int, id bigint")
    assert df.columns == ["st", "c", "a", "id"]
    assert df.schema["st"].dataType.fieldNames() == ["y", "x"]
    all_rows = rows(df.filter("id < 40"))
    return all_rows + rows(df.filter("a = 5 and st.x = 5").agg(F.sum("c"))) + rows(df.agg(F.max("st.y"))) + [df.count()]


@shape
def cache_of_filtered_frame(table: Table) -> list[Any]:
    df = table.load().select("a", "s1").filter("a < 50").cache()
    try:
        return [df.count(), *rows(df.agg(F.sum("a"), F.max("s1"))), *rows(df.groupBy("s1").count())]
    finally:
        df.unpersist(True)


@shape
def cache_of_whole_frame_then_pruned(table: Table) -> list[Any]:
    df = table.load().filter("a < 20").cache()
    try:
        return rows(df.agg(F.sum("a"))) + rows(df.filter("a = 3").agg(F.max("s2"))) + [df.count()]
    finally:
        df.unpersist(True)


@shape
def cache_found_by_another_query(table: Table) -> list[Any]:
    base = table.load()
    cached = base.select("a", "id").filter("a < 5").cache()
    try:
        cached.count()
        repeated = base.select("a", "id").filter("a < 5").agg(F.sum("id"))
        assert "InMemoryTableScan" in repeated._jdf.queryExecution().executedPlan().toString()
        return rows(repeated) + rows(base.agg(F.sum("c")))
    finally:
        cached.unpersist(True)


@shape
def to_pandas(table: Table) -> list[Any]:
    frame = table.load().select("id", "s2", "price").filter("id % 100 = 3").toPandas().sort_values("id")
    return [len(frame), int(frame["id"].sum()), frame["s2"].max(), str(frame["price"].sum())]


@shape
def to_arrow(table: Table) -> list[Any]:
    arrow = table.load().select("id", "st").filter("a = 3").toArrow()
    return sorted(map(repr, arrow.to_pylist()))


@shape
def to_local_iterator(table: Table) -> list[Any]:
    return sorted(row.id for row in table.load().filter("a = 11").select("id").toLocalIterator())


@shape
def rdd(table: Table) -> list[Any]:
    return [table.load().filter("a = 9").select("id").rdd.map(lambda row: row[0]).sum()]


@shape
def first_rows(table: Table) -> list[Any]:
    """Any rows may come first; their number is fixed."""
    df = table.load()
    distinct = df.select("id").limit(9).distinct().count()
    return [
        len(df.head(5)),
        len(df.select("a").take(30_000)),
        df.limit(3).count(),
        df.isEmpty(),
        df.filter("a = -1").isEmpty(),
        distinct,
    ]


@shape
def last_rows(table: Table) -> list[Any]:
    return [len(table.load().select("a").tail(4))]


@shape
def no_columns(table: Table) -> list[Any]:
    return [table.load().select().count(), len(table.load().filter("a = 1").select().collect())]


@shape
def duplicates_dropped(table: Table) -> list[Any]:
    return [table.load().dropDuplicates(["s1", "flag"]).count()]


@shape
def sample(table: Table) -> list[Any]:
    """The rows of a sample depend on the partitions; that they are rows of the table does not."""
    df = table.load().filter("a < 9").select("id", "a")
    part = df.sample(0.5, 7)
    return [0 < part.count() < df.count(), part.join(df, ["id", "a"], "left_anti").count(), df.sample(1.0, 7).count()]


@shape
def sort_global(table: Table) -> list[Any]:
    return [row.id for row in table.load().filter("a < 9").sort(F.desc("st.x"), "id").select("id").limit(200).collect()]


@shape
def repartitioned(table: Table) -> list[Any]:
    return rows(table.load().repartition(3, "a").filter("a < 7").groupBy("a").agg(F.sum("id")))


@shape
def python_udf_in_projection(table: Table) -> list[Any]:
    plus_one = F.udf(lambda value: value + 1, "int")
    return rows(table.load().filter("a < 10").select(plus_one("a").alias("x"), "s1").agg(F.sum("x"), F.max("s1")))


@shape
def python_udf_in_filter(table: Table) -> list[Any]:
    even = F.udf(lambda value: value % 2 == 0, "boolean")
    return rows(table.load().filter("a < 10").filter(even("a")).agg(F.sum("id"), F.count("*")))


@shape
def python_udf_of_struct(table: Table) -> list[Any]:
    width = F.udf(lambda value: None if value is None else len(value.y) + len(value), "int")
    return rows(table.load().filter("a < 5").select(width("st").alias("n")).agg(F.sum("n"), F.count("n")))


@shape
def map_in_pandas(table: Table) -> list[Any]:
    def ids(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        return (frame[["id"]] for frame in frames)

    df = table.load().filter("a < 3").select("id", "st").mapInPandas(ids, "id long")
    return rows(df.agg(F.sum("id"), F.count("*")))


@shape
def apply_in_pandas(table: Table) -> list[Any]:
    def largest(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.nlargest(1, "id")[["part", "id"]]

    return rows(
        table.load().select("a", "part", "id").filter("a < 50").groupBy("part").applyInPandas(largest, "part int, id long")
    )


@shape
def window_of_frame(table: Table) -> list[Any]:
    order = Window.partitionBy("s1").orderBy("c")
    numbered = table.load().filter("a < 30").select("s1", "c", F.row_number().over(order).alias("n"))
    return rows(numbered.filter("n <= 2").agg(F.sum("c"), F.count("*")))


@shape
def written_out(table: Table) -> list[Any]:
    with tempfile.TemporaryDirectory() as directory:
        out = str(Path(directory) / "out")
        table.load().filter("a = 4").select("st", "id", "s1").write.parquet(out)
        return rows(table.spark.read.parquet(out).selectExpr("count(*)", "sum(id)", "sum(st.x)", "max(s1)"))


@shape
def local_checkpoint(table: Table) -> list[Any]:
    return rows(table.load().filter("a = 8").select("id", "s1").localCheckpoint().agg(F.sum("id"), F.max("s1")))


@shape
def observed(table: Table) -> list[Any]:
    observation = Observation(uuid.uuid4().hex)
    df = table.load().filter("a < 9").observe(observation, F.count(F.lit(1)).alias("n"), F.sum("id").alias("s")).select("s1")
    return [df.count(), observation.get["n"], observation.get["s"]]


@shape
def described(table: Table) -> list[Any]:
    return rows(table.load().select("a", "s1").filter("a < 100").summary("count", "min", "max"))


@shape
def stream_joined_with_the_table(table: Table) -> list[Any]:
    """The static side of a stream: planned for each batch, in the session that Spark clones for the query."""
    batch_rows: list[Any] = []
    with tempfile.TemporaryDirectory() as directory:
        source = str(Path(directory) / "source")
        table.spark.range(0, 1000, 7).selectExpr("cast(id as int) a").coalesce(1).write.parquet(source)
        static = table.load()

        def batch(df: DataFrame, _: int) -> None:
            batch_rows.extend(rows(static.join(F.broadcast(df), "a").agg(F.count("*"), F.sum("id"))))

        stream = table.spark.readStream.schema("a int").parquet(source)
        query = stream.writeStream.foreachBatch(batch).trigger(availableNow=True).start()
        query.awaitTermination()
    return batch_rows


def remembered(table: Table) -> Callable[[str], str]:
    """The result of each query on the table, by its name; each query runs once."""
    results: dict[str, str] = {}

    def rows_of(name: str) -> str:
        if name not in results:
            results[name] = repr(SHAPES[name](table))
        return results[name]

    return rows_of
