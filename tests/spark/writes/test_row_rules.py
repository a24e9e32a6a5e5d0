"""Rules on rows as a user of Spark sees them: the job fails, the message has the row's values, the table is unchanged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable, write_delta


def test_row_that_breaks_a_constraint_fails_with_its_values(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_delta(path, pa.table({"a": [1], "t": ["x"]}), configuration={"delta.constraints.positive": "a > 0"})
    before = sorted(tmp_path.rglob("*.parquet"))
    rows = spark.sql("SELECT id - 3 AS A, concat('row ', id) AS t FROM range(10)").coalesce(1)
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES") as caught:
        rows.write.format("pydelta").mode("append").save(path)
    assert "CHECK constraint positive (a > 0)" in str(caught.value)
    assert "- a : -3" in str(caught.value)
    assert sorted(tmp_path.rglob("*.parquet")) == before
    rows.filter("A > 5").write.format("pydelta").mode("append").save(path)
    assert sorted(DeltaTable(path).to_arrow()["a"].to_pylist()) == [1, 6]


def test_types_are_assigned_as_spark_does_and_text_is_no_number(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_delta(path, pa.table({"a": pa.array([1], pa.int32()), "t": ["x"]}))
    spark.sql("SELECT 2L AS a, 3 AS t").write.format("pydelta").mode("append").save(path)
    with pytest.raises(Exception, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        spark.sql("SELECT '4' AS a").write.format("pydelta").mode("append").save(path)
    with pytest.raises(Exception, match="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"):
        spark.sql("SELECT 5000000000L AS a").write.format("pydelta").mode("append").save(path)
    with pytest.raises(Exception, match="mergeSchema"):
        spark.sql("SELECT 6 AS a, 7 AS extra").write.format("pydelta").mode("append").save(path)
    assert sorted(DeltaTable(path).to_arrow().to_pylist(), key=lambda row: row["a"]) == [{"a": 1, "t": "x"}, {"a": 2, "t": "3"}]
