"""Streams from tables by one format in a separate Spark session; prints seconds as JSON.

    python benchmarks/spark/stream_run.py TABLES --format pydelta --rows 8000000 --small-batches 1000 --rounds 3

TABLES is made by make_query_tables.py. whole: all rows of `plain`, 16 files, to a table, in batches of 2 files. large, filtered:
all rows of `large`, 4 files, and the hundredth of them with the smallest ids, to the noop sink, in batches of 2 files; from the
start of the query to its end. small: a table of one small file per commit, to a table, in batches of one file; the seconds of a
batch from Spark's progress. `delta` is delta-spark; its jars are in the directory PYDELTA_PEER_JARS. The first runs warm up and
do not count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks.spark.session import session, timed
from delta_py import write_delta


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", type=Path)
    parser.add_argument("--format", choices=["pydelta", "delta"], required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--small-batches", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark = session([arguments.format])
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(arguments.small_batches + 100))
    directory = Path(tempfile.mkdtemp(prefix="pydelta-bench-", dir=arguments.tables))
    seconds: dict[str, list[float]] = {"whole": [], "large": [], "filtered": []}
    first = arguments.rows // 100
    try:
        for number in range(arguments.rounds + 1):
            sink = directory / f"whole-{number}"
            times = {
                "whole": timed(lambda sink=sink: stream(spark, arguments.format, arguments.tables / "plain", sink, files=2)),
                "large": timed(lambda: stream(spark, arguments.format, arguments.tables / "large", None, files=2)),
                "filtered": timed(
                    lambda: stream(spark, arguments.format, arguments.tables / "large", None, files=2, condition=f"id < {first}")
                ),
            }
            print(f"round {number}, {arguments.format}: {times}", file=sys.stderr)
            assert spark.read.format(arguments.format).load(str(sink)).count() == arguments.rows
            shutil.rmtree(sink)
            for name in times if number else ():
                seconds[name].append(times[name])
        small = small_batches(spark, arguments.format, directory, arguments.small_batches)
    finally:
        shutil.rmtree(directory)
    print(json.dumps({**seconds, "small": small, "spark": spark.version}))
    spark.stop()


def stream(
    spark: SparkSession, source_format: str, source: Path, sink: Path | None, files: int, condition: str = "true"
) -> StreamingQuery:
    """Run a stream until it has read everything. sink: None for the noop sink."""
    frame: DataFrame = spark.readStream.format(source_format).option("maxFilesPerTrigger", files).load(str(source))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.filter(condition).writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer = writer.format("noop" if sink is None else source_format)
        query = writer.start() if sink is None else writer.start(str(sink))
        query.awaitTermination()
    return query


def small_batches(spark: SparkSession, source_format: str, directory: Path, count: int) -> list[float]:
    """Seconds of each batch."""
    source = directory / "small"
    for number in range(count):
        write_delta(str(source), pa.table({"id": [number]}), mode="append")
    query = stream(spark, source_format, source, directory / "small-sink", files=1)
    seconds = [progress["batchDuration"] / 1000 for progress in query.recentProgress if progress["numInputRows"]]
    assert len(seconds) == count, f"{len(seconds)} batches for {count} files"
    return seconds


if __name__ == "__main__":
    main()
