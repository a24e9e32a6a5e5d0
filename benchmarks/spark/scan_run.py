"""Scans of one table in one Spark session; the readers take turns; prints the seconds of each round as JSON.

    python benchmarks/spark/scan_run.py TABLE --rows 8000000 --readers parquet,pydelta --rounds 5

TABLE is made by make_scan_table.py. Every scan but the first of each kind counts. query_run.py measures delta-spark.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark.session import session, timed

Scan = Callable[[], DataFrame]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--readers", default="parquet,pydelta")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    readers = arguments.readers.split(",")
    spark = session(readers)
    scans: dict[str, Scan] = {}
    for reader in readers:
        scans |= READERS[reader](spark, arguments.table, narrow(arguments.rows))
    counts = {name: scan().count() for name, scan in scans.items()}
    seconds: dict[str, list[float]] = {name: [] for name in scans}
    for round_number in range(arguments.rounds + 1):
        for name, scan in scans.items():
            scan_seconds = timed(lambda scan=scan: scan().write.format("noop").mode("overwrite").save())
            print(f"round {round_number}, {name}: {scan_seconds:.2f} s", file=sys.stderr)
            if round_number > 0:
                seconds[name].append(scan_seconds)
    print(json.dumps({"seconds": seconds, "counts": counts, "spark": spark.version}))
    spark.stop()


def parquet_scans(spark: SparkSession, table: str, predicate: str) -> dict[str, Scan]:
    def read() -> DataFrame:
        return spark.read.parquet(f"{table}/*.parquet")

    return {
        "parquet: whole rows": read,
        "parquet: two columns": lambda: read().select("id", "x"),
        "parquet: 1 % of ids": lambda: read().filter(predicate),
    }


def pydelta_scans(spark: SparkSession, table: str, predicate: str) -> dict[str, Scan]:
    def read(version: int = 0) -> DataFrame:
        return spark.read.format("pydelta").option("versionAsOf", version).load(table)

    return {
        "pydelta: whole rows": read,
        "pydelta: whole rows, 10 % deleted": lambda: read(1),
        "pydelta: two columns": lambda: read().select("id", "x"),
        "pydelta: 1 % of ids": lambda: read().filter(predicate),
    }


def narrow(rows: int) -> str:
    """A predicate for one row in a hundred: a run of ids in the middle of the table."""
    return f"id >= {rows // 2} AND id < {rows // 2 + rows // 100}"


READERS = {"parquet": parquet_scans, "pydelta": pydelta_scans}


if __name__ == "__main__":
    main()
