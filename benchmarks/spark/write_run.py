"""Writes in one Spark session; the writers take turns; prints the seconds of each round as JSON.

    python benchmarks/spark/write_run.py SOURCE --writers parquet,pydelta[,delta] --rounds 3 --appends 25

SOURCE is a directory of Parquet files (make_scan_table.py makes one). Each writer writes its rows to a new place, with the same
codec, zstd, and then partitioned by kind. Then each format gets this many appends of one row. The writer `delta` is delta-spark;
its jars are in the directory PYDELTA_PEER_JARS. Every write but the first of each kind counts.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.spark.session import session, timed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--writers", default="parquet,pydelta")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--appends", type=int, default=25)
    arguments = parser.parse_args()
    writers = arguments.writers.split(",")
    spark = session(writers)
    rows, one_row = spark.read.parquet(f"{arguments.source}/*.parquet"), spark.range(1)
    directory = Path(tempfile.mkdtemp(prefix="pydelta-bench-", dir=Path(arguments.source).parent))
    seconds: dict[str, list[float]] = {}

    def measure(name: str, round_number: int, run: Callable[[], None]) -> None:
        run_seconds = timed(run)
        print(f"round {round_number}, {name}: {run_seconds:.2f} s", file=sys.stderr)
        if round_number > 0:
            seconds.setdefault(name, []).append(run_seconds)

    try:
        for round_number in range(arguments.rounds + 1):
            for writer in writers:
                place = str(directory / f"{writer}-{round_number}")
                for name, partitioning in (("whole rows", []), ("partitioned", ["kind"])):
                    frame = rows.write.format(writer).option("compression", "zstd").partitionBy(*partitioning).mode("append")
                    measure(f"{writer}: {name}", round_number, lambda frame=frame, place=place: frame.save(place))
                    shutil.rmtree(place)
        for round_number in range(2):
            for writer in writers:
                place = str(directory / f"{writer}-appends-{round_number}")

                def appends(writer: str = writer, place: str = place) -> None:
                    for _ in range(arguments.appends):
                        one_row.write.format(writer).mode("append").save(place)

                measure(f"{writer}: {arguments.appends} appends of one row", round_number, appends)
                assert spark.read.format(writer).load(place).count() == arguments.appends
    finally:
        shutil.rmtree(directory)
    print(json.dumps({"seconds": seconds, "spark": spark.version}))
    spark.stop()


if __name__ == "__main__":
    main()
