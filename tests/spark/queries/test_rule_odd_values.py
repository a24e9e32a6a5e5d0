"""Values that are odd in comparisons, in statistics or as names of partitions: by every road a filter returns the rows that
Spark's own Parquet reader returns, and the log's answers agree with the rows.

Each table has four files of neighbouring rows, or one for each partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_plugin import DeltaTable
from tests.spark.queries.query_shapes import rows
from tests.spark.queries.test_rule_correctness import ROADS, run
from tests.support.runs.sampling import sampled

ROW_COUNT = 96
ZONE = "America/Los_Angeles"
MICROS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


@dataclass(frozen=True)
class Odd:
    """columns: expressions over id, with names. partition_by: one of the names. told: aggregates. queries: over the view t.
    declared: types that no expression has."""

    columns: Sequence[str]
    conditions: Sequence[str]
    partition_by: str | None = None
    told: str = "count(*)"
    queries: Sequence[str] = ()
    declared: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


LONG = f"'{'x' * 31}'"

TABLES: dict[str, Odd] = {
    "texts that are no UTF-8": Odd(
        [
            "case id % 6 when 0 then cast(X'FF6162' as string) when 1 then 'abc' when 2 then cast(X'61FF' as string)"
            " when 3 then null when 4 then concat('é', id) else 'ab' end s",
            "case when id < 24 then cast(X'80' as string) when id < 48 then cast(X'C3' as string) else 'a' end one",
        ],
        [
            "s = 'abc'",
            "s > 'b'",
            "s < 'é'",
            "s <> 'ab'",
            "startswith(s, 'a')",
            "not startswith(s, 'a')",
            "contains(s, 'b')",
            "s in ('ab', 'zz')",
            "s is null",
            "s >= cast(X'FF' as string)",
            "one < 'b'",
            "one > 'b'",
            "one < 'é'",
            "one <> 'a'",
            "not (one <= 'abc')",
        ],
        told="count(s), count(one)",
    ),
    "texts with a long common beginning": Odd(
        [
            f"concat({LONG}, case id div 24 when 0 then '😀' when 1 then '\ufffd' when 2 then 'é' else '\U0010ffff' end, id) s",
            f"case when id % 3 = 0 then {LONG} || 'x' else {LONG} || 'xx' end t",
        ],
        [
            f"s > concat({LONG}, '😀')",
            f"s < concat({LONG}, '😀')",
            f"s = concat({LONG}, '😀', 5)",
            f"s >= concat({LONG}, '\ufffd')",
            f"startswith(s, concat({LONG}, '\ufffd'))",
            f"not startswith(s, {LONG})",
            f"s <> concat({LONG}, 'é', 50)",
            f"s like '{'x' * 31}_9%'",
            f"t > concat({LONG}, 'x')",
            f"t <> concat({LONG}, 'x')",
            f"t = concat({LONG}, 'xx')",
        ],
    ),
    "texts as partitions": Odd(
        [
            "case id % 12 when 0 then null when 1 then '1' when 2 then '01' when 3 then '1.0' when 4 then ' ' when 5 then 'a=b'"
            " when 6 then '%' when 7 then 'ü/x' when 8 then 'null' when 9 then '__HIVE_DEFAULT_PARTITION__'"
            " when 10 then '\"\\'{}' else 'A' end p"
        ],
        [
            "p = '1'",
            "p > 'a'",
            "p < '1'",
            "p is null",
            "p like '%=%'",
            "startswith(p, '0')",
            "contains(p, '%')",
            "p in ('01', null, 'null')",
            "not (p in ('01', '1'))",
            "p <=> null",
            "p <> 'A'",
            "not (p = 'A') or p is null",
            "startswith('1.0', p)",
            "p = upper(p)",
            "cast(p as binary) = X'31'",
        ],
        partition_by="p",
        told="count(p), min(p), max(p), count(distinct p)",
        queries=["select p, count(*), count(p) from t group by p", "select upper(p), max(p) from t where p > '1' group by 1"],
    ),
    "texts of a declared length": Odd(
        [
            "case id % 4 when 0 then 'ab' when 1 then 'b' when 2 then null else 'abcde' end c",
            "concat('v', id % 3) v",
            "'p' || id % 3 p",
        ],
        [
            "c = 'ab'",
            "c = 'ab   '",
            "c > 'ab'",
            "c <= 'ab '",
            "c in ('ab', 'b')",
            "c like 'ab%'",
            "startswith(c, 'ab ')",
            "endswith(c, ' ')",
            "c <> 'b'",
            "c is null",
            "p = 'p1'",
            "p = 'p1 '",
            "p in ('p0', 'p2 ', null)",
            "p > 'p1'",
            "v = 'v1'",
            "c = v or p <=> 'p2'",
        ],
        partition_by="p",
        told="count(c), min(p), max(p), count(distinct p)",
        queries=["select p, length(p), count(*) from t group by p", "select length(max(p)), length(min(p)) from t"],
        declared={"c": "char(5)", "v": "varchar(9)", "p": "char(4)"},
    ),
    "old and far times": Odd(
        [
            "timestamp_seconds(-4300000000 + id * 40000000 + 0.123456) at",
            "timestamp_ntz'1500-03-01 00:00:00' + make_dt_interval(cast(id * 4000 as int), 1, 2, 3.000004) wall",
            "date_add(date'1582-10-20', cast(id * 500 - 6000 as int)) d",
            "date_add(date'9999-12-30', cast(id div 24 as int)) far",
        ],
        [
            "at < timestamp'1850-01-01 00:00:30'",
            "at >= timestamp'1883-11-18 12:07:02'",
            "at = timestamp_seconds(-4300000000 + 0.123456)",
            "at <= timestamp_seconds(-4300000000 + 40000000.123456)",
            "at > timestamp_seconds(-540000000 + 0.123456)",
            "at < timestamp'1900-01-01 00:00:00' and at > timestamp'1890-01-01 00:00:00'",
            "wall < timestamp_ntz'1582-10-15 00:00:00'",
            "wall >= timestamp_ntz'1600-01-01 00:00:00.000001'",
            "d < date'1582-10-15'",
            "d > date'1582-10-04'",
            "d in (date'1582-10-20', date'1566-05-18', date'1900-01-01')",
            "d <> date'1582-10-20'",
            "far > date'9999-12-31'",
            "far <= date'9999-12-31'",
            "far = date_add(date'9999-12-31', 1)",
            "cast(at as date) < date'1850-01-01'",
        ],
        told="count(at), cast(min(d) as string), cast(max(d) as string), cast(min(far) as string), cast(max(far) as string)",
        settings={"spark.sql.session.timeZone": ZONE},
    ),
    "times as partitions": Odd(
        [
            "timestamp_seconds(-4300000000 + (id % 5) * 900000000 + 0.000001) p",
            "timestamp_seconds(1667119800 + id * 1800) at",
        ],
        [
            "p < timestamp'1850-01-01 00:00:00'",
            "p = timestamp_seconds(-3400000000 + 0.000001)",
            "p > timestamp_seconds(-3400000000 + 0.000001)",
            "p <= timestamp_seconds(-3400000000)",
            "at < timestamp'2022-11-06 01:30:00'",
            "at >= timestamp'2022-11-06 02:00:00'",
            "cast(at as date) = date'2022-11-06'",
            "hour(at) = 1 and cast(p as date) < date'1900-01-01'",
        ],
        partition_by="p",
        told="count(p), cast(min(p) as string), cast(max(p) as string)",
        queries=["select cast(p as string), count(*) from t group by p"],
        settings={"spark.sql.session.timeZone": ZONE},
    ),
    "numbers that are none": Odd(
        [
            "case id % 8 when 0 then double('NaN') when 1 then -0.0D when 2 then 0.0D when 3 then double('Infinity') when 4 then"
            " double('-Infinity') when 5 then null when 6 then 1.5D else 4.9E-324D end d",
            "cast(case when id < 24 then double('NaN') when id < 48 then -0.0D when id < 72 then 0.1D else null end as float) f",
        ],
        [
            "d = 0.0D",
            "d = -0.0D",
            "d < 0.0D",
            "d <= -0.0D",
            "d > 0.0D",
            "d > double('Infinity')",
            "d >= double('NaN')",
            "d < double('NaN')",
            "d <> double('NaN')",
            "d in (double('NaN'), -0.0D)",
            "d not in (double('NaN'), 0.0D)",
            "not (d > 1)",
            "d <=> null",
            "d <=> double('NaN')",
            "isnan(d)",
            "f = 0",
            "f = float(0.1)",
            "f > 0.1",
            "f >= double('NaN')",
            "f = d",
            "not (f <= 0.1)",
        ],
        told="count(d), count(f)",
    ),
    "numbers that are none as partitions": Odd(
        [
            "case id % 7 when 0 then double('NaN') when 1 then -0.0D when 2 then 0.0D when 3 then double('Infinity')"
            " when 4 then null when 5 then 1.0E-7D else 0.1D end p"
        ],
        [
            "p = 0.0D",
            "p = -0.0D",
            "p < 0.0D",
            "p >= double('NaN')",
            "p in (double('NaN'), 0.0D)",
            "p not in (-0.0D, 0.1D)",
            "p <=> null",
        ],
        partition_by="p",
        told="count(p)",
        queries=[
            "select count(*) from (select p from t group by p)",
            "select count(*), sum(t.id) from t join (select p from t where id in (0, 1, 6)) r on t.p = r.p",
            "select count(distinct p) from t",
        ],
    ),
}


@pytest.mark.parametrize("name", sampled(TABLES, 12))
def test_odd_values_give_the_same_rows_by_every_road(name: str, spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    odd = TABLES[name]
    # Spark's Parquet reader leaves out row groups whose dictionary has -0.0 if the filter compares with 0.0.
    conf({**odd.settings, **MICROS, "spark.sql.parquet.filterPushdown": "false"})
    source = spark.range(0, ROW_COUNT, 1, 1).selectExpr("id", *odd.columns)
    source.write.parquet(str(tmp_path / "source"))
    source = spark.read.parquet(str(tmp_path / "source"))
    path = str(tmp_path / "delta")
    _write(odd, source, path)

    def ours() -> list[list[str]]:
        return _found(odd, spark.read.format("pydelta").load(path))

    expected = _found(odd, _plain(odd, spark, source))
    for road in ROADS:
        actual = run(road, spark, ours)
        for query, got, expected_rows in zip(_queries(odd), actual, expected, strict=True):
            assert got == expected_rows, (road, query)


def _write(odd: Odd, source: DataFrame, path: str) -> None:
    """In pieces, so that there are several files."""
    if odd.declared:
        builder = DeltaTable.create(source.sparkSession).location(path)
        for column in source.schema:
            builder = builder.addColumn(column.name, odd.declared.get(column.name, column.dataType))
        (builder if odd.partition_by is None else builder.partitionedBy(odd.partition_by)).execute()
    pieces = 1 if odd.partition_by else 4
    for piece in range(pieces):
        writer = source.filter(f"id div {ROW_COUNT // pieces} = {piece}").coalesce(1).write.format("pydelta").mode("append")
        (writer if odd.partition_by is None else writer.partitionBy(odd.partition_by)).save(path)
    log = "".join(commit.read_text() for commit in Path(path, "_delta_log").glob("*.json"))
    assert log.count('"add"') >= 3


def _plain(odd: Odd, spark: SparkSession, source: DataFrame) -> DataFrame:
    """The rows by Spark's Parquet reader, with the declared types."""
    if not odd.declared:
        return source
    types = {column.name: column.dataType.simpleString() for column in source.schema} | odd.declared
    names = ", ".join(f"{name} {kind}" for name, kind in types.items())
    spark.sql("drop table if exists odd_rows")
    spark.sql(f"create table odd_rows ({names}) using parquet")
    source.write.insertInto("odd_rows")
    return spark.table("odd_rows")


def _queries(odd: Odd) -> list[str]:
    """All conditions in one query, where each has its own scan; then the questions that the log may answer."""
    matches_sql = " union all ".join(f"select {place} c, id from t where {text}" for place, text in enumerate(odd.conditions))
    counted = [f"select count(*) from t where {text}" for text in odd.conditions[:4]]
    return [matches_sql, f"select {odd.told}, count(*) from t", *counted, *odd.queries]


def _found(odd: Odd, frame: DataFrame) -> list[list[str]]:
    frame.createOrReplaceTempView("t")
    try:
        return [rows(frame.sparkSession.sql(query)) for query in _queries(odd)]
    finally:
        frame.sparkSession.catalog.dropTempView("t")
