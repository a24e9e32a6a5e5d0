"""Spark runs a stream that follows changes of its table's schema (for the rest see tests/unit/spark_plugin)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable
from delta_py.streaming.schema_evolution import ALLOW_CONFS, java_hash
from spark_plugin import exceptions as errors
from tests.support.runs.sampling import sampled
from tests.support.tables.changing_table import Table

pytestmark = pytest.mark.usefixtures("plain_plans")

EVOLUTION = "DELTA_STREAMING_METADATA_EVOLUTION"
BLOCKED = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_query_stops_at_a_rename_until_a_setting_allows_it(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    checkpoint, target = str(tmp_path / "checkpoint"), str(tmp_path / "copy")

    def run() -> None:
        frame = spark.readStream.format("pydelta").option("schemaTrackingLocation", f"{checkpoint}/schemas").load(table.path)
        writer = frame.writeStream.format("pydelta").option("checkpointLocation", checkpoint).option("mergeSchema", True)
        writer.trigger(availableNow=True).start(target).awaitTermination()

    def stopped() -> str | None:
        with pytest.raises(errors.SchemaMismatchError) as caught:
            run()
        return caught.value.error_class

    run()
    table.add(3, a="a", b="b")
    version = table.rename("b", "c")
    table.add(4, a="a", c="c")
    assert [stopped(), stopped()] == [EVOLUTION, BLOCKED]
    mine = f"{ALLOW_CONFS}Rename.ckpt_{java_hash(f'file:{checkpoint}/sources/0')}"
    spark.conf.set(mine, str(version))
    try:
        run()
    finally:
        spark.conf.unset(mine)
    assert sorted(tuple(row.values()) for row in DeltaTable(target).to_arrow().to_pylist()) == [
        (1, "a 1", "b 1", None),
        (2, "a 2", "b 2", None),
        (3, "a 3", "b 3", None),
        (4, "a 4", None, "c 4"),
    ]


@pytest.mark.parametrize("alike", sampled([False, True], 2), ids=lambda alike: "one table" if alike else "two tables")
def test_query_of_two_sources_follows_the_schema_of_each(spark: SparkSession, tmp_path: Path, alike: bool) -> None:
    tables = [Table(tmp_path / "left")]
    tables.append(tables[0] if alike else Table(tmp_path / "right"))
    checkpoint, target = str(tmp_path / "checkpoint"), str(tmp_path / "copy")

    def run(ids: tuple[str, str] = ("left", "right")) -> None:
        frames = []
        for table, id in zip(tables, ids, strict=True):
            reader = spark.readStream.format("pydelta").option("schemaTrackingLocation", checkpoint)
            reader = reader.option("streamingSourceTrackingId", id).option("allowSourceColumnRename", "always")
            frames.append(reader.load(table.path).select("id"))
        writer = frames[0].union(frames[1]).writeStream.format("pydelta").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(target).awaitTermination()

    if alike:
        with pytest.raises(errors.InvalidOptionError) as caught:
            run(("same", "same"))
        assert caught.value.error_class == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
        shutil.rmtree(checkpoint)
    run()
    tables[1].rename("b", "c")
    tables[1].add(3, a="a", c="c")
    stops = 0
    while True:
        try:
            run()
            break
        except errors.SchemaMismatchError as error:
            assert error.error_class == EVOLUTION and stops < 3
            stops += 1
    assert stops >= 1
    read_ids = sorted(DeltaTable(target).to_arrow(["id"])["id"].to_pylist())
    assert read_ids == ([1, 1, 2, 2, 3, 3] if alike else [1, 1, 2, 2, 3])


@pytest.mark.parametrize("text", ["", "sources/0", "file:/tmp/é\U0001f600", "x" * 99])
def test_hash_of_a_stream_is_javas(spark: SparkSession, text: str) -> None:
    assert java_hash(text) == spark._jvm.java.util.Objects.hashCode(text)
