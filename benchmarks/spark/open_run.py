"""Open a table and plan a query for one file of it, by pydelta and delta-spark in turns; prints the seconds as JSON.

    python benchmarks/spark/open_run.py TABLE --id 105500 --rounds 3

TABLE is made by make_log_table.py; one file of it holds the id. It has no data files: the query is planned, to its list of files,
and not run. Before each cold run delta-spark's cache of tables is emptied, and pydelta's cache of statistics on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import SparkSession

from benchmarks.spark.session import session, timed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--id", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cache = tempfile.mkdtemp(prefix="pydelta-bench-")
    os.environ["PYDELTA_CACHE_DIR"] = cache
    spark = session(("delta", "pydelta"))
    seconds: dict[str, dict[str, list[float]]] = {kind: {"delta": [], "pydelta": []} for kind in ("cold", "warm")}
    for round_number in range(arguments.rounds + 1):
        for reader in ("delta", "pydelta"):
            spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
            shutil.rmtree(cache, ignore_errors=True)
            for kind in ("cold", "warm"):
                plan_seconds = timed(lambda reader=reader: plan(spark, arguments.table, reader, arguments.id))
                print(f"round {round_number}, {reader}, {kind}: {plan_seconds:.2f} s", file=sys.stderr)
                if round_number:
                    seconds[kind][reader].append(plan_seconds)
    print(json.dumps(seconds))
    spark.stop()
    shutil.rmtree(cache, ignore_errors=True)


def plan(spark: SparkSession, table: str, reader: str, wanted_id: int) -> None:
    frame = spark.read.format(reader).load(table).filter(f"id = {wanted_id}")
    tasks = frame._jdf.queryExecution().toRdd().getNumPartitions()
    assert tasks == 1, f"{reader} reads the table in {tasks} tasks, and one file is enough"


if __name__ == "__main__":
    main()
