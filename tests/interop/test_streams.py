"""A stream of delta-spark's into a table of ours: it reads what pydelta wrote, and reads what pydelta's sink writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from delta_py import DeltaTable


def make(spark: SparkSession, path: str) -> None:
    """Three versions of three partitions: ids 0 to 59."""
    for start in (0, 20, 40):
        rows = spark.range(start, start + 20, 1, 2).selectExpr("id", "id % 3 AS part", "concat('name ', id) AS name")
        rows.write.format("pydelta").mode("append").partitionBy("part").save(path)


def add(spark: SparkSession, path: str, *ids: int) -> None:
    rows = spark.createDataFrame([(id, id % 3, f"name {id}") for id in ids], "id bigint, part bigint, name string")
    rows.write.format("pydelta").mode("append").save(path)


class Stream:
    """A stream from a table into another."""

    def __init__(self, spark: SparkSession, table: str, root: Path) -> None:
        self.spark, self.table = spark, table
        self.target, self.checkpoint = str(root / "target"), str(root / "checkpoint")

    def run(self, reads: str, writes: str, **options: Any) -> None:
        frame = self.spark.readStream.format(reads).options(**options).load(self.table)
        writer = frame.writeStream.format(writes).option("checkpointLocation", self.checkpoint)
        writer.trigger(availableNow=True).start(self.target).awaitTermination()

    def ids(self) -> list[int]:
        """By both libraries."""
        ours = sorted(DeltaTable(self.target).to_arrow(["id"])["id"].to_pylist())
        theirs = sorted(row["id"] for row in self.spark.read.format("delta").load(self.target).select("id").collect())
        assert ours == theirs
        return ours


def test_stream_of_delta_spark_reads_our_table_and_our_sink_writes_what_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "source")
    make(spark, path)
    stream = Stream(spark, path, tmp_path)
    stream.run("delta", "pydelta", maxFilesPerTrigger=2)
    assert stream.ids() == list(range(60))
    add(spark, path, 60, 61)
    stream.run("delta", "pydelta")
    assert stream.ids() == list(range(62))
