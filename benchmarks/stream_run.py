"""Streams from a table to a table by one format in a Spark session of its own; prints seconds as JSON.

    python benchmarks/stream_run.py TABLE --format pydelta --rows 8000000 --small-batches 1000 --rounds 3

whole: all rows of TABLE (make_scan_table.py, 16 files) in batches of 2 files. small: a table of one small file a commit, in
batches of one file; the seconds of each batch, as Spark's progress says them. `delta` is delta-spark; its jars lie in the
directory PYDELTA_PEER_JARS. The first run of `whole` warms up and does not count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks.session import session, timed
from delta_py import write_delta


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("--format", choices=["pydelta", "delta"], required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--small-batches", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark = session([arguments.format])
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(arguments.small_batches + 100))
    directory = Path(tempfile.mkdtemp(prefix="pydelta-bench-", dir=arguments.table.parent))
    try:
        whole = []
        for round_number in range(arguments.rounds + 1):
            sink = directory / f"whole-{round_number}"
            taken = timed(lambda sink=sink: stream(spark, arguments.format, arguments.table, sink, files=2))
            print(f"round {round_number}, {arguments.format}: {taken:.2f} s", file=sys.stderr)
            assert spark.read.format(arguments.format).load(str(sink)).count() == arguments.rows
            shutil.rmtree(sink)
            whole += [taken] if round_number else []
        small = small_batches(spark, arguments.format, directory, arguments.small_batches)
    finally:
        shutil.rmtree(directory)
    print(json.dumps({"whole": whole, "small": small, "spark": spark.version}))
    spark.stop()


def stream(spark: SparkSession, source_format: str, source: Path, sink: Path, files: int) -> StreamingQuery:
    """Run a stream until it has everything."""
    frame = spark.readStream.format(source_format).option("maxFilesPerTrigger", files).load(str(source))
    writer = frame.writeStream.format(source_format).option("checkpointLocation", f"{sink}-checkpoint")
    query = writer.trigger(availableNow=True).start(str(sink))
    query.awaitTermination()
    shutil.rmtree(f"{sink}-checkpoint")
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
