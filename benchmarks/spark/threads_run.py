"""Point lookups in one Spark session from many threads; the readers take turns; prints the seconds of each as JSON.

    python benchmarks/spark/threads_run.py DIRECTORY --rows 8000000 --readers pydelta,delta --queries 1000 --threads 16

DIRECTORY is made by make_query_tables.py. Each query makes its DataFrame again and looks up another id of the sorted table. The
answers are compared with the expected ones. Each reader has two turns, after one that warms up and does not count.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import SparkSession

from benchmarks.spark.session import session, timed

TURNS = 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--readers", default="pydelta,delta")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=16)
    arguments = parser.parse_args()
    readers = arguments.readers.split(",")
    spark = session(set(readers))
    table, drawn = str(arguments.directory / "plain"), random.Random(16)
    results: dict[str, dict[str, list[float]]] = {reader: {"seconds": [], "latencies": []} for reader in readers}
    for turn in range(TURNS + 1):
        ids = [drawn.randrange(arguments.rows) for _ in range(arguments.queries // TURNS if turn else arguments.threads * 4)]
        for reader in readers if turn % 2 else reversed(readers):
            began = time.perf_counter()
            latencies = answer_all(spark, table, reader, ids, arguments.threads)
            elapsed = time.perf_counter() - began
            print(f"turn {turn}, {reader}: {len(ids)} queries in {elapsed:.1f} s", file=sys.stderr)
            if turn:
                results[reader]["seconds"].append(elapsed)
                results[reader]["latencies"] += latencies
    print(json.dumps({"found": results, "spark": spark.version}))
    spark.stop()


def answer_all(spark: SparkSession, table: str, reader: str, ids: list[int], threads: int) -> list[float]:
    """The seconds of each query."""

    def lookup(wanted_id: int) -> float:
        def run() -> None:
            rows = spark.read.format(reader).load(table).filter(f"id = {wanted_id}").collect()
            assert [row.id for row in rows] == [wanted_id], (reader, wanted_id, rows)

        return timed(run)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lookup, ids))


if __name__ == "__main__":
    main()
