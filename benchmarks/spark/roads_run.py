"""Queries with each road and without it, in one Spark session and in turns; prints the seconds of each round as JSON.

    python benchmarks/spark/roads_run.py DIRECTORY --rows 8000000 --rounds 5 --small 1000

DIRECTORY is made by make_query_tables.py; small tables are added to it. The first run of a query shows which roads it takes. Then
it runs with the defaults and without each of these roads, and all runs must return the same rows. --small: the number of small
queries in each mode, divided among their kinds. Other queries run --rounds times in each mode.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import SparkSession

from benchmarks.spark.query_run import WAREHOUSE, queries
from benchmarks.spark.session import session, timed
from spark_plugin.options.roads import DISABLE_CONF, Road
from spark_plugin.pruning import status

DEFAULTS = "defaults"
WITHOUT = {road: str(road) for road in Road if road is not Road.ROWS} | {Road.COLUMNS: f"{Road.PARQUET},{Road.COLUMNS}"}
"""What is disabled to measure a road. Rows are Spark's own road and cannot be disabled. Spark's Parquet reader needs columns, so
that the gain of columns is measured against a session without that reader."""

SMALL = {
    "lookup": "SELECT * FROM {one_file} WHERE id = 512",
    "filter": "SELECT id, name FROM {one_file} WHERE kind = 'kind-7' AND price > 990",
    "lookup in 100 files": "SELECT * FROM {files} WHERE id = 512",
    "all rows of 1,000": "SELECT * FROM {tiny}",
    "count": "SELECT count(*) FROM {one_file}",
    "max": "SELECT max(id) FROM {one_file}",
    "sum": "SELECT sum(price) FROM {one_file}",
    "group by": "SELECT kind, count(*), sum(price) FROM {one_file} GROUP BY kind",
    "group by of 1,000": "SELECT kind, count(*), sum(price) FROM {tiny} GROUP BY kind",
    "distinct": "SELECT DISTINCT kind FROM {one_file}",
    "order by of 1,000": "SELECT id, name FROM {tiny} ORDER BY price, id",
    "first 10": "SELECT id, name FROM {one_file} ORDER BY price, id LIMIT 10",
    "rank of 1,000": "SELECT id, row_number() OVER (PARTITION BY kind ORDER BY id) FROM {tiny}",
    "join": "SELECT count(*), sum(s.price) FROM {one_file} s JOIN {tiny} t ON s.id = t.id",
    "join with 20 rows": "SELECT sum(s.price) FROM {one_file} s JOIN {tiny} t ON s.a = t.a WHERE t.id < 20",
    "group by in 100 files": "SELECT kind, count(*), sum(price) FROM {files} GROUP BY kind",
}


@dataclass(frozen=True)
class Workload:
    """rounds: how many runs count in each mode."""

    name: str
    sql: str | None
    whole: str
    rounds: int


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", type=int, default=1000)
    parser.add_argument("--only", default="", help="queries whose names have this")
    arguments = parser.parse_args()
    spark = session({"pydelta"})
    make_small_tables(spark, arguments.directory)
    results = {}
    for workload in workloads(arguments):
        if arguments.only in workload.name:
            results[workload.name] = measured(spark, workload, arguments.directory)
    print(json.dumps({"seconds": results, "spark": spark.version}))
    spark.stop()


def workloads(arguments: argparse.Namespace) -> Iterator[Workload]:
    for name, text in SMALL.items():
        yield Workload(f"small: {name}", text, "", -(-arguments.small // len(SMALL)))
    for query in queries(arguments.rows):
        yield Workload(query.name, query.sql, query.whole, arguments.rounds)


def make_small_tables(spark: SparkSession, directory: Path) -> None:
    """Tables with plain's columns: 100,000 rows in one file, 1,000 in one, and 100,000 sorted rows in 100 files."""
    if (directory / "files").exists():
        return
    rows = spark.read.format("pydelta").load(str(directory / "plain"))
    rows.where("id < 100000").coalesce(1).write.format("pydelta").save(str(directory / "one_file"))
    rows.where("id < 1000").coalesce(1).write.format("pydelta").save(str(directory / "tiny"))
    rows.where("id < 100000").repartitionByRange(100, "id").write.format("pydelta").save(str(directory / "files"))


def measured(spark: SparkSession, workload: Workload, directory: Path) -> dict[str, list[float]]:
    """Seconds of each counted round with the defaults, and by the road that is disabled. Raises AssertionError if the rows
    differ."""
    spark.conf.unset(DISABLE_CONF)
    rows = answer(spark, workload, directory)
    before = status(spark)
    answer(spark, workload, directory)
    after = status(spark)
    roads = {road for road in Road if after[road].used > before[road].used}
    modes = {DEFAULTS: "", **{road: disabled for road, disabled in WITHOUT.items() if road in roads}}
    if " JOIN " in (workload.sql or ""):
        modes[Road.JOINS] = WITHOUT[Road.JOINS]
    seconds: dict[str, list[float]] = {mode: [] for mode in modes}
    for round_number in range(workload.rounds + 1):
        for mode, disabled in modes.items():
            spark.conf.set(DISABLE_CONF, disabled)
            run_seconds = timed(lambda: check(workload, rows, answer(spark, workload, directory)))
            if round_number:
                seconds[mode].append(run_seconds)
    medians = {mode: round(sorted(times)[len(times) // 2], 3) for mode, times in seconds.items()}
    print(f"{workload.name}: {medians}", file=sys.stderr, flush=True)
    return seconds


def check(workload: Workload, expected: object, actual: object) -> None:
    assert actual == expected, f"{workload.name}: {expected}, {actual}"


def answer(spark: SparkSession, workload: Workload, directory: Path) -> list[str] | None:
    """The rows, as sorted texts; None if they went to the noop sink."""
    if workload.sql is None:
        load(spark, directory / workload.whole).write.format("noop").mode("overwrite").save()
        return None
    names = ("plain", "deleted", "partitioned", "large", "parted", "one_file", "tiny", "files")
    places = {name: directory / name for name in names}
    places |= {name: directory / "tpch" / name for name in WAREHOUSE}
    views = {name: place for name, place in places.items() if f"{{{name}}}" in workload.sql}
    return sorted(map(str, spark.sql(workload.sql, **{n: load(spark, place) for n, place in views.items()}).collect()))


def load(spark: SparkSession, place: Path):  # type: ignore[no-untyped-def]
    return spark.read.format("pydelta").load(str(place))


if __name__ == "__main__":
    main()
