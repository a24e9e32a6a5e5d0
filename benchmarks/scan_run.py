"""Scans of one table in one Spark session, the readers taking turns; prints the seconds of each round as JSON.

    python benchmarks/scan_run.py TABLE --rows 8000000 --readers parquet,pydelta[,delta] --rounds 5

TABLE is made by make_scan_table.py. The reader `delta` is delta-spark; its jars lie in the directory PYDELTA_PEER_JARS.
Every scan but the first of each kind counts. The session has as many task threads as the machine has cores.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import sys
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

Scan = Callable[[], DataFrame]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--readers", default="parquet,pydelta")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    readers = arguments.readers.split(",")
    spark = session(with_delta="delta" in readers)
    scans: dict[str, Scan] = {}
    for reader in readers:
        scans |= READERS[reader](spark, arguments.table, narrow(arguments.rows))
    counts = {name: scan().count() for name, scan in scans.items()}
    seconds: dict[str, list[float]] = {name: [] for name in scans}
    for round_number in range(arguments.rounds + 1):
        for name, scan in scans.items():
            taken = timed(lambda scan=scan: scan().write.format("noop").mode("overwrite").save())
            print(f"round {round_number}, {name}: {taken:.2f} s", file=sys.stderr)
            if round_number > 0:
                seconds[name].append(taken)
    print(json.dumps({"seconds": seconds, "counts": counts, "spark": spark.version}))
    spark.stop()


def session(*, with_delta: bool) -> SparkSession:
    builder = (
        SparkSession.builder.master(f"local[{os.cpu_count()}]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.pyspark.python", sys.executable)
    )
    if with_delta:
        directory = os.environ["PYDELTA_PEER_JARS"]
        jars = sorted(jar for kind in ("delta-*", "unitycatalog-*") for jar in glob.glob(f"{directory}/{kind}.jar"))
        builder = (
            builder.config("spark.jars", ",".join(jars))
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        )
    return builder.getOrCreate()


def parquet_scans(spark: SparkSession, table: str, predicate: str) -> dict[str, Scan]:
    def read() -> DataFrame:
        return spark.read.parquet(f"{table}/*.parquet")

    return {
        "parquet: whole rows": read,
        "parquet: two columns": lambda: read().select("id", "x"),
        "parquet: 1 % of ids": lambda: read().filter(predicate),
    }


def pydelta_scans(spark: SparkSession, table: str, predicate: str) -> dict[str, Scan]:
    from spark_plugin import register

    register(spark)
    return _delta_scans(spark, table, predicate, "pydelta")


def delta_spark_scans(spark: SparkSession, table: str, predicate: str) -> dict[str, Scan]:
    # The table is older than the week after which delta-spark refuses to go back to version 0.
    spark.conf.set("spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false")
    scans = _delta_scans(spark, table, predicate, "delta")
    # delta-spark 4.4 cannot send rows of files with deletion vectors to the noop sink ("non-pinned table snapshot").
    del scans["delta: whole rows, 10 % deleted"]
    return scans


def _delta_scans(spark: SparkSession, table: str, predicate: str, source: str) -> dict[str, Scan]:
    def read(version: int = 0) -> DataFrame:
        return spark.read.format(source).option("versionAsOf", version).load(table)

    return {
        f"{source}: whole rows": read,
        f"{source}: whole rows, 10 % deleted": lambda: read(1),
        f"{source}: two columns": lambda: read().select("id", "x"),
        f"{source}: 1 % of ids": lambda: read().filter(predicate),
    }


def narrow(rows: int) -> str:
    """Keeps one row in a hundred: a run of ids in the middle of the table."""
    return f"id >= {rows // 2} AND id < {rows // 2 + rows // 100}"


READERS = {"parquet": parquet_scans, "pydelta": pydelta_scans, "delta": delta_spark_scans}


def timed(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
