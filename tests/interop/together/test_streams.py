"""Streams of delta-spark and of pydelta: each reads and writes the other's tables, and continues from the other's checkpoints."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable, write_delta

BOTH = pytest.mark.parametrize("first, second", [("delta", "pydelta"), ("pydelta", "delta")])
FEED_COLUMNS = ["id", "name", "_change_type", "_commit_version"]


def rows(*ids: int, name: str | None = None) -> pa.Table:
    names = [f"name {id}" if name is None else name for id in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "part": pa.array([id % 3 for id in ids], pa.int64()), "name": names})


def make(path: str, **properties: str) -> None:
    """Three versions of three partitions, with one file in each: ids 0 to 59."""
    write_delta(path, rows(*range(20)), partition_by=["part"], configuration=properties)
    for start in (20, 40):
        write_delta(path, rows(*range(start, start + 20)), mode="append")


class Stream:
    """A stream from one table into another. options: of all its reads."""

    def __init__(self, spark: SparkSession, table: str, root: Path, **options: Any) -> None:
        self.spark, self.table, self.options = spark, table, options
        self.target, self.checkpoint = str(root / "target"), str(root / "checkpoint")

    def run(self, reads: str, writes: str, **options: Any) -> None:
        """Until no rows remain."""
        self._writer(reads, writes, options).trigger(availableNow=True).start(self.target).awaitTermination()

    def run_batch(self, reads: str, writes: str, **options: Any) -> None:
        """One batch: the next trigger is far in the future."""
        before = self.batches_done()
        query = self._writer(reads, writes, options).trigger(processingTime="30000 days").start(self.target)
        try:
            deadline = time.monotonic() + 120
            while self.batches_done() == before and query.isActive and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            query.stop()
        assert query.exception() is None and self.batches_done() == before + 1

    def _writer(self, reads: str, writes: str, options: dict[str, Any]) -> Any:
        frame = self.spark.readStream.format(reads).options(**self.options, **options).load(self.table)
        return frame.writeStream.format(writes).option("checkpointLocation", self.checkpoint).option("mergeSchema", True)

    def batches_done(self) -> int:
        return sum(name.isdigit() for name in self._names("commits"))

    def place(self) -> dict[str, Any]:
        """The offset that was recorded last."""
        last = max(int(name) for name in self._names("offsets") if name.isdigit())
        offset: dict[str, Any] = json.loads(Path(self.checkpoint, "offsets", str(last)).read_text().splitlines()[-1])
        return offset

    def forget_last_batch(self) -> None:
        """As after a crash: the offsets of the batch are recorded, but the batch is not in the table."""
        last = self.batches_done() - 1
        for path in (*self._files("commits", str(last)), *Path(self.target, "_delta_log").glob(f"*{last:020}.*")):
            path.unlink()
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def _names(self, folder: str) -> list[str]:
        return [path.name for path in Path(self.checkpoint, folder).glob("*")]

    def _files(self, folder: str, name: str) -> list[Path]:
        return [path for path in Path(self.checkpoint, folder).glob("*") if path.name in (name, f".{name}.crc")]

    def ids(self) -> list[int]:
        """As both libraries read them."""
        ours = sorted(DeltaTable(self.target).to_arrow(["id"])["id"].to_pylist())
        theirs = sorted(row["id"] for row in self.spark.read.format("delta").load(self.target).select("id").collect())
        assert ours == theirs
        return ours


@BOTH
def test_stream_into_the_other_librarys_sink_gives_each_row_once(
    spark: SparkSession, tmp_path: Path, first: str, second: str
) -> None:
    path = str(tmp_path / "source")
    make(path)
    stream = Stream(spark, path, tmp_path)
    stream.run(first, second, maxFilesPerTrigger=2)
    assert stream.ids() == list(range(60))
    write_delta(path, rows(60, 61), mode="append")
    stream.run(first, second)
    assert stream.ids() == list(range(62))


@BOTH
def test_stream_goes_over_to_the_other_library_at_any_batch(spark: SparkSession, tmp_path: Path, first: str, second: str) -> None:
    """In the rows at the start, in commits, between them; source and sink together."""
    path = str(tmp_path / "source")
    make(path)
    stream = Stream(spark, path, tmp_path, maxFilesPerTrigger=2)
    turns = [first, second] * 3
    places = []
    for number, library in enumerate(turns):
        if number in (2, 4):
            write_delta(path, rows(*range(60 + 6 * number, 66 + 6 * number)), mode="append")
        stream.run_batch(library, library)
        place = stream.place()
        places.append((place["reservoirVersion"], place["index"], place["isStartingVersion"]))
    assert sum(is_initial for _, _, is_initial in places) >= 2 and any(
        index >= 0 and not is_initial for _, index, is_initial in places
    )
    stream.run(first, first)
    stream.run(second, second)
    assert stream.ids() == [*range(60), *range(72, 78), *range(84, 90)]
    history = DeltaTable(stream.target).history().to_pylist()
    assert len(history) == stream.batches_done(), "a commit a batch, of one query"


@BOTH
@pytest.mark.parametrize("batches, start", [(1, {}), (2, {"startingVersion": 1})], ids=["first", "second"])
def test_batch_that_one_library_noted_is_run_by_the_other(
    spark: SparkSession, tmp_path: Path, first: str, second: str, batches: int, start: dict[str, Any]
) -> None:
    path = str(tmp_path / "source")
    make(path)
    stream = Stream(spark, path, tmp_path, maxFilesPerTrigger=2, **start)
    stream.run_batch(first, first)
    for _ in range(1, batches):
        stream.run_batch(first, first)
    written = stream.ids()
    stream.forget_last_batch()
    write_delta(path, rows(60), mode="append")
    stream.run_batch(second, second)
    assert stream.ids() == written
    stream.run(second, second)
    assert stream.ids() == list(range(20 if start else 0, 61))


# ---------------------------------------------------------------- the change feed


def feed(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.select(*FEED_COLUMNS).collect())


@dataclass(frozen=True)
class FeedTable:
    """expected: its feed, read by delta-spark in a batch."""

    path: str
    expected: Counter[tuple[Any, ...]]


@pytest.fixture(scope="module", params=["true", "false"], ids=["vectors", "files"])
def changed(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> FeedTable:
    """A table with change files and without, deleted rows and replaced files, by both libraries; no test writes to it."""
    path = str(tmp_path_factory.mktemp("changed") / "source")
    make(path, **{"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": request.param})
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (1, 5, 21)")
    spark.sql(f"UPDATE delta.`{path}` SET name = 'theirs' WHERE id % 10 = 0")
    write_delta(path, rows(60, 61, 62), mode="append")
    write_delta(path, rows(2, 3, 4, name="ours"), mode="overwrite", replace_where="id IN (2, 3, 4)")
    write_delta(path, rows(*range(6), name="last"), mode="overwrite")
    reader = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", 0)
    expected = feed(reader.load(path))
    assert {kind for _, _, kind, _ in expected} == {"insert", "delete", "update_preimage", "update_postimage"}
    return FeedTable(path, expected)


@pytest.mark.parametrize("reads, writes", [("delta", "pydelta"), ("pydelta", "delta")])
def test_feed_stream_between_libraries_writes_the_whole_feed(
    spark: SparkSession, tmp_path: Path, changed: FeedTable, reads: str, writes: str
) -> None:
    stream = Stream(spark, changed.path, tmp_path, readChangeFeed=True, startingVersion=0)
    stream.run(reads, writes, maxFilesPerTrigger=3)
    assert feed(spark.read.format("delta").load(stream.target)) == changed.expected
    assert feed(spark.read.format("pydelta").load(stream.target)) == changed.expected


def test_feed_stream_from_initial_snapshot_matches_delta_spark(
    spark: SparkSession, tmp_path: Path, changed: FeedTable
) -> None:
    feeds = []
    for library in ("delta", "pydelta"):
        stream = Stream(spark, changed.path, tmp_path / library, readChangeFeed=True)
        stream.run(library, library, maxFilesPerTrigger=2)
        feeds.append(feed(spark.read.format("delta").load(stream.target)))
    assert feeds[0] == feeds[1] and len(feeds[0]) == 6


@BOTH
def test_feed_stream_goes_over_to_the_other_library_at_any_batch(
    spark: SparkSession, tmp_path: Path, changed: FeedTable, first: str, second: str
) -> None:
    stream = Stream(spark, changed.path, tmp_path, readChangeFeed=True, startingVersion=0, maxFilesPerTrigger=2)
    divided = 0
    for number in range(6):
        library = (first, second)[number % 2]
        stream.run_batch(library, library)
        divided += stream.place()["index"] >= 0
    assert divided, "some batches end within a commit"
    stream.run(first, first)
    stream.run(second, second)
    assert feed(spark.read.format("delta").load(stream.target)) == changed.expected


# ---------------------------------------------------------------- logs of schemas


@BOTH
def test_schema_log_of_one_library_is_continued_by_the_other(
    spark: SparkSession, tmp_path: Path, first: str, second: str
) -> None:
    """One library begins it, the other records the first change, and the first continues after a second change."""
    path = str(tmp_path / "source")
    make(path, **{"delta.columnMapping.mode": "name"})
    stream = Stream(spark, path, tmp_path, schemaTrackingLocation=str(tmp_path / "checkpoint"), allowSourceColumnRename="always")
    stream.run(first, "delta")
    for number, library in enumerate((second, first)):
        spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN {('name', 'name0')[number]} TO name{number}")
        new = rows(60 + number, name="new").rename_columns(["id", "part", f"name{number}"])
        write_delta(path, new, mode="append")
        with pytest.raises(Exception, match="DELTA_STREAMING_METADATA_EVOLUTION"):
            stream.run(library, "delta")
        stream.run(first if library == second else second, "delta")
    assert stream.ids() == list(range(62))
    feed_rows = spark.read.format("delta").load(stream.target).filter("id >= 60").select("id", "name0", "name1").collect()
    assert sorted(tuple(row) for row in feed_rows) == [(60, "new", None), (61, None, "new")]
