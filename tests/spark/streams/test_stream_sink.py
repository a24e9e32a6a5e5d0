"""Streams into a table: the effect of each batch, and of a batch that runs twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from spark_plugin.dataframe_api import catalog
from spark_plugin.exceptions import (
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    SchemaMismatchError,
    UnsupportedOperationError,
)

pytestmark = pytest.mark.usefixtures("plain_plans")

Rows = list[tuple[Any, ...]]


class Input:
    """A stream of JSON files; a batch takes one file."""

    def __init__(self, spark: SparkSession, root: Path, schema: str = "id bigint, day string") -> None:
        self._root, self._count = root / "input", 0
        self._root.mkdir()
        reader = spark.readStream.format("json").schema(schema).option("maxFilesPerTrigger", 1)
        self.frame: DataFrame = reader.load(str(self._root))
        self.checkpoint = str(root / "checkpoint")

    def put(self, *rows: dict[str, Any]) -> None:
        file, age = self._root / f"{self._count:04d}.json", 1_700_000_000 + self._count
        file.write_text("\n".join(json.dumps(row) for row in rows))
        os.utime(file, (age, age))  # Spark takes files by their age; two of one millisecond come in any order
        self._count += 1

    def run(self, path: str | None, frame: DataFrame | None = None, **arguments: Any) -> Any:
        """Runs until the input is used up; returns the query."""
        writer = (self.frame if frame is None else frame).writeStream.format("pydelta").trigger(availableNow=True)
        query = writer.option("checkpointLocation", self.checkpoint).start(path, **arguments)
        query.awaitTermination()
        return query


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Input:
    new_input = Input(spark, tmp_path)
    new_input.put({"id": 1, "day": "mon"}, {"id": 2, "day": "tue"})
    return new_input


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def stored(path: str) -> Rows:
    return sorted(tuple(row.values()) for row in PlainTable(path).to_arrow().to_pylist())


def last_commit(path: str) -> dict[str, Any]:
    return dict(PlainTable(path).history(limit=1).to_pylist()[0])


def transactions(path: str) -> dict[str, int]:
    transactions = Snapshot.load(open_store(path)).set_transactions()
    return {app_id: txn.version for app_id, txn in transactions.items()}


# ---------------------------------------------------------------- append


def test_stream_append_commits_each_batch_with_its_transaction(source: Input, path: str) -> None:
    source.put({"id": 3, "day": "tue"})
    query = source.run(path)
    assert stored(path) == [(1, "mon"), (2, "tue"), (3, "tue")]
    assert PlainTable(path).version == 1
    assert transactions(path) == {str(query.id): 1}
    commit = last_commit(path)
    assert commit["operation"] == "STREAMING UPDATE"
    assert dict(commit["operationParameters"]) == {"outputMode": "Append", "queryId": str(query.id), "epochId": "1"}
    assert {"numAddedFiles": "1", "numRemovedFiles": "0", "numOutputRows": "1"}.items() <= dict(
        commit["operationMetrics"]
    ).items()


def test_stream_restarted_goes_on_with_the_same_query_id(source: Input, path: str) -> None:
    first = source.run(path)
    source.put({"id": 3, "day": "wed"})
    second = source.run(path)
    assert str(first.id) == str(second.id)
    assert stored(path) == [(1, "mon"), (2, "tue"), (3, "wed")]
    assert transactions(path) == {str(first.id): 1}


def test_stream_batch_that_is_recorded_changes_nothing(source: Input, path: str) -> None:
    """Spark runs a batch again if its own record of it is missing, as after a kill between the two commits."""
    source.run(path)
    files = sorted(Path(path).glob("*.parquet"))
    commits = Path(source.checkpoint, "commits")
    for record in (commits / "0", commits / ".0.crc"):
        record.unlink(missing_ok=True)
    source.run(path)
    assert stored(path) == [(1, "mon"), (2, "tue")]
    assert PlainTable(path).version == 0
    assert sorted(Path(path).glob("*.parquet")) == files, "the files of the second run are deleted"
    assert (commits / "0").exists()


def test_stream_takes_the_options_of_batch_writes(source: Input, path: str) -> None:
    source.run(path, partitionBy="day", userMetadata="from a stream", maxRecordsPerFile=1)
    assert PlainTable(path).metadata.partition_columns == ("day",)
    assert last_commit(path)["userMetadata"] == "from a stream"
    source.put({"id": 3, "day": "tue"})
    widened = source.frame.withColumn("more", F.lit("x"))
    with pytest.raises(SchemaMismatchError) as caught:
        source.run(path, widened)
    assert caught.value.error_class == "DELTA_METADATA_MISMATCH"
    source.run(path, widened, mergeSchema=True)
    assert stored(path) == [(1, "mon", None), (2, "tue", None), (3, "tue", "x")]


def test_stream_batch_that_violates_a_rule_leaves_no_files(source: Input, path: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.string())])
    write_delta(path, pa.table({"id": [0], "day": ["sun"]}, schema=schema))
    before = sorted(Path(path).glob("*.parquet"))
    source.put({"day": "mon"})
    with pytest.raises(InvariantViolationError):
        source.run(path)
    assert PlainTable(path).version == 1, "the batch before it stands"
    assert len(sorted(Path(path).glob("*.parquet"))) == len(before) + 1


def test_stream_without_new_rows_commits_nothing(source: Input, path: str) -> None:
    source.run(path)
    source.run(path)
    assert PlainTable(path).version == 0


# ---------------------------------------------------------------- complete, update


def test_stream_complete_replaces_the_rows_with_each_batch(source: Input, path: str) -> None:
    source.put({"id": 3, "day": "tue"})
    counts = source.frame.groupBy("day").count()
    query = source.run(path, counts, outputMode="complete")
    assert stored(path) == [("mon", 1), ("tue", 2)]
    assert transactions(path) == {str(query.id): 1}
    assert dict(last_commit(path)["operationParameters"])["outputMode"] == "Complete"
    assert int(dict(last_commit(path)["operationMetrics"])["numRemovedFiles"]) >= 1


def test_stream_update_mode_is_refused_by_name(source: Input, path: str) -> None:
    counts = source.frame.groupBy("day").count()
    with pytest.raises(UnsupportedOperationError) as caught:
        source.run(path, counts, outputMode="update")
    assert caught.value.error_class == "DELTA_UNSUPPORTED_OUTPUT_MODE"
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"mergeShema": "true"}, InvalidOptionError, "mergeSchema"),
        ({"txnAppId": "a"}, UnsupportedOperationError, "txnAppId"),
        ({"replaceWhere": "id = 1"}, UnsupportedOperationError, "replaceWhere"),
        ({"dataChange": "false"}, UnsupportedOperationError, "dataChange"),
        ({"optimizeWrite": "true"}, UnsupportedOperationError, "optimizeWrite"),
        ({"replaceOn": "x"}, UnsupportedOperationError, "replaceOn"),
        ({"isolationLevel": "ReadCommitted"}, InvalidOptionError, "DELTA_INVALID_ISOLATION_LEVEL"),
    ],
)
def test_stream_refuses_unknown_and_batch_only_options_at_start(
    source: Input, path: str, options: dict[str, str], error: type[DeltaError], named: str
) -> None:
    with pytest.raises(error, match=named):
        source.run(path, **options)
    assert not Path(path).exists()


# ---------------------------------------------------------------- other ways to start


def test_session_checkpoint_location_has_a_directory_per_query(source: Input, spark: SparkSession, path: str) -> None:
    writer = source.frame.writeStream.format("pydelta").trigger(availableNow=True).queryName("mine")
    with pytest.raises(InvalidOptionError, match="checkpointLocation"):
        writer.start(path)
    spark.conf.set("spark.sql.streaming.checkpointLocation", source.checkpoint)
    try:
        writer.start(path).awaitTermination()
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert Path(source.checkpoint, "mine", "metadata").exists()
    assert len(stored(path)) == 2


def test_stream_to_table_creates_it_and_goes_on_with_it(source: Input, spark: SparkSession) -> None:
    spark.sql("DROP TABLE IF EXISTS streamed")
    writer = source.frame.writeStream.partitionBy("day").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", source.checkpoint)
    writer.toTable("streamed", format="pydelta").awaitTermination()
    source.put({"id": 3, "day": "wed"})
    writer.toTable("streamed").awaitTermination()
    assert sorted(tuple(row) for row in spark.table("streamed").collect()) == [(1, "mon"), (2, "tue"), (3, "wed")]
    entry = catalog.find(spark, "streamed")
    assert entry is not None and entry.is_ours and PlainTable(entry.writable_path()).metadata.partition_columns == ("day",)
    spark.sql("DROP TABLE streamed")


def test_foreach_batch_with_a_transaction_writes_each_batch_once(source: Input, path: str) -> None:
    def write(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            batch.write.format("pydelta").mode("append").option("txnAppId", "app").option("txnVersion", number).save(path)

    source.put({"id": 3, "day": "tue"})
    writer = source.frame.writeStream.format("pydelta").foreachBatch(write).trigger(availableNow=True)
    writer.option("checkpointLocation", source.checkpoint).start().awaitTermination()
    assert stored(path) == [(1, "mon"), (2, "tue"), (3, "tue")]
    assert transactions(path) == {"app": 1}


def test_other_sinks_see_no_difference(source: Input, spark: SparkSession, tmp_path: Path) -> None:
    writer = source.frame.writeStream.partitionBy("day").trigger(availableNow=True)
    starts: list[Callable[[], Any]] = [
        lambda: writer.start(str(tmp_path / "p"), format="parquet", checkpointLocation=str(tmp_path / "c")),
    ]
    for start in starts:
        start().awaitTermination()
    assert spark.read.parquet(str(tmp_path / "p")).count() == 2


def test_rate_stream_into_a_table_has_each_row_once(spark: SparkSession, path: str, tmp_path: Path) -> None:
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
    query = rate.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path / "c")).start(path)
    try:
        while query.isActive and not Path(path, "_delta_log", f"{1:020d}.json").exists():
            query.awaitTermination(0.2)
    finally:
        query.stop()
    assert transactions(path)[str(query.id)] >= 1
    values = [row["value"] for row in PlainTable(path).to_arrow().to_pylist()]
    assert len(values) >= 100 and sorted(values) == list(range(len(values)))
