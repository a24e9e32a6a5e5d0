"""What SQL costs before a query runs; prints medians in milliseconds as JSON.

    python benchmarks/spark/sql_run.py TABLE --format pydelta --rounds 200
    python benchmarks/spark/sql_run.py TABLE --format delta --rounds 200

register: `register(spark)` in a new session (only pydelta). select: `spark.sql("select 1")`. spark: the same by Spark's own
method, in turns (only pydelta). sql: ``SELECT * FROM <format>.`<table>` ``. load: `read.format(...).load(...)`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.spark.session import session, timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--format", required=True, choices=("pydelta", "delta"))
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    spark = session([] if arguments.format == "pydelta" else [arguments.format])
    spark.sql("select 1").collect()
    results = {}
    plain = spark.sql
    if arguments.format == "pydelta":
        unrouted_sql = type(spark).sql
        plain = lambda text: unrouted_sql(spark, text)  # noqa: E731
        results["register"] = milliseconds(lambda: registered(spark))
    print(json.dumps({**results, **in_turns(spark, arguments.table, arguments.format, arguments.rounds, plain)}))


def registered(spark: SparkSession) -> None:
    from spark_plugin import register

    register(spark)


def in_turns(
    spark: SparkSession, table: str, source: str, rounds: int, plain: Callable[[str], object]
) -> Mapping[str, float]:
    """The first tenth of the turns warms up."""
    runs: dict[str, Callable[[], object]] = {
        "spark": lambda: plain("select 1"),
        "select": lambda: spark.sql("select 1"),
        "sql": lambda: spark.sql(f"SELECT * FROM {source}.`{table}`"),
        "load": lambda: spark.read.format(source).load(table),
    }
    milliseconds_by_name: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            milliseconds_by_name[name].append(milliseconds(run))
    return {name: statistics.median(times[rounds // 10 :]) for name, times in milliseconds_by_name.items()}


def milliseconds(run: Callable[[], object]) -> float:
    return timed(lambda: (run(), None)[1]) * 1000


if __name__ == "__main__":
    main()
