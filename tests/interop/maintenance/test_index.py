"""A table with an index of ours, to which delta-spark writes: the index stays, and lookups find the rows that it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.tables import DeltaTable as DeltaSparkTable
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from tests.support.spark.settings import restore

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_delta_spark_writes_on_and_keeps_the_index(mapping: str, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for start in range(4):
        writer = spark.range(start, 400, 4).coalesce(1).write.format("delta").mode("append")
        writer.options(**({"delta.columnMapping.mode": mapping} if start == 0 else {})).save(path)
    PlainTable(path).index.create("id")
    assert spark.read.format("delta").load(path).count() == 400
    spark.range(398, 402).coalesce(1).write.format("delta").mode("append").save(path)
    DeltaSparkTable.forPath(spark, path).delete("id = 8")
    (index,) = PlainTable(path).index.list().to_pylist()
    assert index["usable"] and index["uncovered"] >= 1
    row_counts = {value: PlainTable(path).to_arrow(filter=f"id = {value}").num_rows for value in (8, 12, 399, 400, 500)}
    assert row_counts == {8: 0, 12: 1, 399: 2, 400: 1, 500: 0}
    before = {CHECK: spark.conf.get(CHECK, None)}
    spark.conf.set(CHECK, "false")
    DeltaSparkTable.forPath(spark, path).vacuum(0)
    restore(spark, before)
    PlainTable(path).index.refresh()
    (index,) = PlainTable(path).index.list().to_pylist()
    assert index["uncovered"] == 0
    assert PlainTable(path).scan(filter="id = 13").report.files_kept == 1
    assert spark.read.format("delta").load(path).count() == 403
