"""The first query of a session, in a fresh process; prints its rows, and the time when they were there, as JSON.

    python benchmarks/spark/first_run.py TABLE --format pydelta --query count --rows 8000000

TABLE is make_query_tables.py's `plain`. `spark` is Spark alone, for the query `select 1`; `delta` is delta-spark, whose jars are
in the directory PYDELTA_PEER_JARS. first_part.py starts the process and knows the start time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark.session import session

QUERIES: dict[str, Callable[[DataFrame, int], DataFrame]] = {
    "point lookup": lambda table, rows: table.filter(f"id = {rows // 2}").select("id", "name"),
    "count": lambda table, rows: table.groupBy().count(),
}
SELECT_1 = "select 1"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("--format", choices=["spark", "pydelta", "delta"], required=True)
    parser.add_argument("--query", choices=[SELECT_1, *QUERIES], required=True)
    parser.add_argument("--rows", type=int, required=True)
    arguments = parser.parse_args()
    spark = session([arguments.format])
    rows = [list(row) for row in asked(spark, arguments).collect()]
    print(json.dumps({"rows": rows, "at": time.time(), "spark": spark.version}))
    spark.stop()


def asked(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    if arguments.query == SELECT_1:
        return spark.sql(SELECT_1)
    table = spark.read.format(arguments.format).load(str(arguments.table))
    return QUERIES[arguments.query](table, arguments.rows)


if __name__ == "__main__":
    main()
