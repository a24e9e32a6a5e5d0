"""Tables of both under names, in one session whose catalog is delta-spark's: each uses its own tables."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_plugin import DeltaTable, register
from spark_plugin.sql_catalog.delta_names import delta_is_ours

DATABASE = "names_beside"


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    spark.sql(f"CREATE DATABASE {DATABASE}")
    yield DATABASE
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def ids(spark: SparkSession, name: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {name}").collect())


def test_ours_by_name(spark: SparkSession, database: str) -> None:
    name = f"{database}.ours"
    spark.range(3).write.format("pydelta").saveAsTable(name)
    assert spark.conf.get("spark.sql.catalog.spark_catalog") == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert ids(spark, name) == sorted(row.id for row in spark.read.table(name).collect()) == [0, 1, 2]
    spark.sql(f"INSERT INTO {name} VALUES (7)")
    spark.range(8, 9).write.insertInto(name)
    spark.range(9, 10).writeTo(name).append()
    spark.sql(f"DELETE FROM {name} WHERE id = 0")
    spark.sql(f"UPDATE {name} SET id = id + 10 WHERE id = 1")
    spark.sql(f"MERGE INTO {name} t USING (SELECT 7 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert ids(spark, name) == [2, 8, 9, 11]
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (more INT)")
    assert spark.table(name).columns == ["id", "more"], "the log's, not those that were entered"
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE _metadata.row_index >= 0").first() == (4,)
    history = [row.operation for row in DeltaTable.forName(spark, name).history().collect()]
    assert history[0] == "ADD COLUMNS" and history[-1] == "WRITE"
    path = spark.sql(f"DESCRIBE DETAIL {name}").first()["location"].removeprefix("file:")
    spark.sql(f"DROP TABLE {name}")
    assert not os.path.exists(path), "a managed table"


def test_theirs_beside_ours(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.ours USING pydelta AS SELECT 1 AS id")
    spark.sql(f"CREATE TABLE {database}.theirs USING delta AS SELECT * FROM {database}.ours")
    spark.sql(f"INSERT INTO {database}.theirs SELECT id + 1 FROM {database}.ours")
    spark.sql(f"CREATE VIEW {database}.both AS SELECT * FROM {database}.ours UNION ALL SELECT * FROM {database}.theirs")
    assert ids(spark, f"{database}.both") == [1, 1, 2]
    engines = [
        spark.sql(f"DESCRIBE HISTORY {database}.{name}").first()["engineInfo"].split("/")[0] for name in ("ours", "theirs")
    ]
    assert engines == ["pydelta", "Apache-Spark"]
    with pytest.raises(AnalysisException, match="TIME_TRAVEL"):
        spark.sql(f"SELECT * FROM {database}.ours VERSION AS OF 0")


def test_format_delta_stays_that_of_delta_spark(spark: SparkSession, database: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    register(spark)
    spark.range(2).write.format("delta").save(path)
    spark.range(2).write.format("delta").saveAsTable(f"{database}.saved")
    for name in (f"delta.`{path}`", f"{database}.saved"):
        assert spark.sql(f"DESCRIBE HISTORY {name}").first()["engineInfo"].startswith("Apache-Spark/")
    assert "BatchScan" not in spark.read.format("delta").load(path)._jdf.queryExecution().toString()
    assert not delta_is_ours(spark)


def test_modules_of_delta_spark_are_not_replaced() -> None:
    with pytest.raises(ImportError, match="pip uninstall delta-spark"):
        importlib.import_module("spark_plugin.as_delta")
    assert importlib.import_module("delta.tables").DeltaTable is not DeltaTable
