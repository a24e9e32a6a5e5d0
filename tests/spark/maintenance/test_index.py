"""Indexes from Spark: lookups open only files that hold the value. For the rest see tests/unit/index_commands/test_index.py."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.errors import UnsupportedOperationError
from spark_plugin import DeltaTable


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Four files; by their bounds each may hold any id up to 100."""
    path = str(tmp_path / "table")
    for number in range(4):
        write_delta(path, pa.table({"id": [0, 10 + number, 100], "s": ["a", f"k{number}", "z"]}), mode="append")
    return path


def keep_only(path: str, value: int) -> None:
    """Delete the data files without this id."""
    table = PlainTable(path)
    for file in table.scan(filter="id = 0").paths():
        if value not in pq.read_table(f"{path}/{file}")["id"].to_pylist():
            (Path(path) / file).unlink()


def test_lookup_opens_the_one_file_that_holds_the_value(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.createIndex("id")
    table.createIndex("s", "by_text")
    keep_only(path, 12)
    frame = spark.read.format("pydelta").load(path)
    assert frame.filter("id = 12").count() == 1
    assert [row.id for row in frame.filter("s = 'k2'").collect()] == [12]
    assert [row.id for row in frame.filter("id IN (12, 15) AND s LIKE 'k%'").collect()] == [12]
    assert frame.filter("id = 55").count() == 0
    DeltaTable.forPath(spark, path).delete("s = 'k2'")
    assert spark.read.format("pydelta").load(path).filter("id = 12").count() == 0


def test_indexes_are_refreshed_and_dropped(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.createIndex("id")
    write_delta(path, pa.table({"id": [0, 100], "s": ["a", "b"]}), mode="append")
    table.refreshIndex()
    assert PlainTable(path).index.list()["uncovered"].to_pylist() == [0]
    table.refreshIndex("id")
    table.dropIndex("id")
    assert PlainTable(path).index.list().num_rows == 0
    with pytest.raises(UnsupportedOperationError, match="INDEX_NOT_FOUND"):
        table.dropIndex("id")
