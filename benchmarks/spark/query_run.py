"""Queries in one Spark session; the readers take turns at each; prints the seconds of each round as JSON.

    python benchmarks/spark/query_run.py DIRECTORY --readers parquet,pydelta[,delta] --rounds 5

DIRECTORY is made by make_query_tables.py. The reader `parquet` reads the same data files without the log, so it has no deleted
rows. `delta` is delta-spark; its jars are in the directory PYDELTA_PEER_JARS. `pydelta-python` and `pydelta-native` are pydelta
without Spark's own Parquet reader and with it, whatever the default is. Each run makes its DataFrames again, as a new query does.
All readers must return the same rows; the first round warms up and does not count.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark.session import session, timed
from spark_plugin.options.roads import DISABLE_CONF, PREFER_CONF

ROADS = {"pydelta-python": (DISABLE_CONF, "parquet"), "pydelta-native": (PREFER_CONF, "parquet")}
WAREHOUSE = ("region", "nation", "customer", "supplier", "part", "orders", "lineitem")


@dataclass(frozen=True)
class Query:
    """sql: with make_query_tables' names as tables. If it is None, all rows of `plain`, or of another table, go to the noop
    sink."""

    name: str
    sql: str | None
    on_parquet: bool = True
    whole: str = "plain"


LARGE = "4 large files: "
"""How the names of queries over the other layout begin."""


def one_column(table: str) -> str:
    return f"SELECT sum(x) > 0 FROM {{{table}}}"


def point(table: str, value: int) -> str:
    return f"SELECT * FROM {{{table}}} WHERE id = {value}"


def span(table: str, first: int, count: int) -> str:
    return f"SELECT count(name), sum(price) FROM {{{table}}} WHERE id >= {first} AND id < {first + count}"


def groups(table: str) -> str:
    return f"SELECT kind, count(*), sum(price), max(day) FROM {{{table}}} GROUP BY kind"


def queries(rows: int) -> list[Query]:
    middle = rows // 2
    in_one_file = middle + rows // 10
    return [
        Query("whole rows", None),
        Query("one column", one_column("plain")),
        Query("count", "SELECT count(*) FROM {plain}"),
        Query("count of a partition", "SELECT count(*) FROM {partitioned} WHERE kind = 'kind-7'"),
        Query("min and max", "SELECT min(id), max(id) FROM {plain}"),
        Query("point lookup by a sorted key", point("plain", middle)),
        Query("range, 1 % of ids", span("plain", middle, rows // 100)),
        Query("partition filter", "SELECT sum(price) FROM {partitioned} WHERE kind = 'kind-7'"),
        Query("group by", groups("plain")),
        Query(
            "join with 1,000 rows",
            "SELECT count(*), sum(p.price) FROM {plain} p JOIN (SELECT DISTINCT a FROM {plain} WHERE id < 500) s ON p.a = s.a",
        ),
        Query("scan after deletes", "SELECT count(name), sum(a), sum(price), max(day) FROM {deleted}", on_parquet=False),
        *(Query(f"TPC-H {name}", text) for name, text in TPCH.items()),
        Query(f"{LARGE}whole rows", None, whole="large"),
        Query(f"{LARGE}one column", one_column("large")),
        Query(f"{LARGE}point lookup by a sorted key", point("large", in_one_file)),
        Query(f"{LARGE}range, 1 % of ids", span("large", in_one_file, rows // 100)),
        Query(f"{LARGE}partition filter", "SELECT sum(price) FROM {parted} WHERE part = 2"),
        Query(f"{LARGE}group by", groups("large")),
    ]


# TPC-H's queries of these numbers, over make_query_tables' columns.
TPCH = {
    "1": """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)),
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_discount), count(*)
        FROM {lineitem} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1, 2""",
    "3": """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM {customer} JOIN {orders} ON c_custkey = o_custkey JOIN {lineitem} ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY 1, 3, 4 ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
    "5": """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) FROM {customer} JOIN {orders} ON c_custkey = o_custkey
        JOIN {lineitem} ON l_orderkey = o_orderkey JOIN {supplier} ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
        JOIN {nation} ON s_nationkey = n_nationkey JOIN {region} ON n_regionkey = r_regionkey
        WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY n_name""",
    "6": """SELECT sum(l_extendedprice * l_discount) FROM {lineitem} WHERE l_shipdate >= DATE '1994-01-01'
        AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    "10": """SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name
        FROM {customer} JOIN {orders} ON c_custkey = o_custkey JOIN {lineitem} ON l_orderkey = o_orderkey
        JOIN {nation} ON c_nationkey = n_nationkey WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'
        AND l_returnflag = 'R' GROUP BY 1, 2, 4, 5 ORDER BY revenue DESC, c_custkey LIMIT 20""",
    "12": """SELECT l_shipmode, sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END), count(*)
        FROM {orders} JOIN {lineitem} ON o_orderkey = l_orderkey WHERE l_shipmode IN ('MAIL', 'SHIP')
        AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
        AND l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode""",
    "14": """SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END),
        sum(l_extendedprice * (1 - l_discount)) FROM {lineitem} JOIN {part} ON l_partkey = p_partkey
        WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
    "18": """SELECT c_name, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        FROM {customer} JOIN {orders} ON c_custkey = o_custkey
        JOIN {lineitem} ON o_orderkey = l_orderkey WHERE o_orderkey IN
        (SELECT l_orderkey FROM {lineitem} GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
        GROUP BY 1, 2, 3, 4 ORDER BY o_totalprice DESC, o_orderkey LIMIT 100""",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--readers", default="parquet,pydelta")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="queries whose names have this")
    arguments = parser.parse_args()
    readers = arguments.readers.split(",")
    spark = session({reader.partition("-")[0] for reader in readers})
    chosen_queries = [query for query in queries(arguments.rows) if arguments.only in query.name]
    seconds = {query.name: measured(spark, query, arguments.directory, readers, arguments.rounds) for query in chosen_queries}
    print(json.dumps({"seconds": seconds, "spark": spark.version}))
    spark.stop()


def measured(spark: SparkSession, query: Query, directory: Path, readers: list[str], rounds: int) -> dict[str, list[float]]:
    """Seconds of each counted round by reader. Raises AssertionError if readers return different rows."""
    taking_part = [reader for reader in readers if reader != "parquet" or query.on_parquet]
    seconds: dict[str, list[float]] = {reader: [] for reader in taking_part}
    answers: dict[str, Any] = {}
    for round_number in range(rounds + 1):
        for reader in taking_part:

            spark.conf.unset(DISABLE_CONF)
            spark.conf.unset(PREFER_CONF)
            if reader in ROADS:
                spark.conf.set(*ROADS[reader])

            def run(reader: str = reader) -> None:
                answers[reader] = answer(spark, query, directory, reader)

            run_seconds = timed(run)
            if round_number:
                seconds[reader].append(run_seconds)
            print(f"round {round_number}, {query.name}, {reader}: {run_seconds:.2f} s", file=sys.stderr)
    assert all(rows == answers[taking_part[0]] for rows in answers.values()), f"{query.name}: {answers}"
    return seconds


def answer(spark: SparkSession, query: Query, directory: Path, reader: str) -> list[str] | None:
    """The rows, as sorted texts; None if they went to the noop sink."""
    if query.sql is None:
        read(spark, directory / query.whole, reader).write.format("noop").mode("overwrite").save()
        return None
    places = {name: directory / name for name in ("plain", "deleted", "partitioned", "large", "parted")}
    places |= {name: directory / "tpch" / name for name in WAREHOUSE}
    views = {name: read(spark, place, reader) for name, place in places.items() if f"{{{name}}}" in query.sql}
    return sorted(str(row) for row in spark.sql(query.sql, **views).collect())


def read(spark: SparkSession, place: Path, reader: str) -> DataFrame:
    return spark.read.format(reader.partition("-")[0]).load(str(place))


if __name__ == "__main__":
    main()
