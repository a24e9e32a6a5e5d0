"""Tables whose commits belong to a coordinator: other engines can do nothing with them until the tables have left it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import write_delta
from delta_py.alter.drop_feature import drop_feature
from tests.support.stores.coordination import coordinated, create_coordinated, ledger_url, rows_of

STATEMENTS = (
    "SELECT * FROM delta.`{}`",
    "INSERT INTO delta.`{}` VALUES (9)",
    "DELETE FROM delta.`{}` WHERE id = 1",
    "OPTIMIZE delta.`{}`",
    "VACUUM delta.`{}`",
    "DESCRIBE HISTORY delta.`{}`",
    "ALTER TABLE delta.`{}` DROP FEATURE catalogManaged",
    "CREATE TABLE named USING delta LOCATION '{}'",
    "CREATE OR REPLACE TABLE delta.`{}` (id BIGINT) USING delta",
)


@pytest.fixture
def path(tmp_path: Path, publication_at_once: None) -> Path:
    url = ledger_url(tmp_path)
    create_coordinated(tmp_path / "t", url, {"id": [1, 2]})
    write_delta(str(tmp_path / "t"), pa.table({"id": [3]}), mode="append", store=coordinated(tmp_path / "t", url))
    return tmp_path / "t"


def dataframes(spark: SparkSession, path: str) -> list[Callable[[], Any]]:
    return [
        lambda: spark.read.format("delta").load(path).collect(),
        lambda: spark.readStream.format("delta").load(path).schema,
        lambda: spark.range(1).write.format("delta").mode("append").save(path),
        lambda: spark.range(1).write.format("delta").mode("overwrite").save(path),
    ]


def test_delta_spark_refuses_table_until_coordinator_is_dropped(spark: SparkSession, path: Path) -> None:
    url = ledger_url(path.parent)
    statements = [lambda text=text: spark.sql(text.format(path)).collect() for text in STATEMENTS]  # type: ignore[misc]
    before = sorted(file.name for file in path.rglob("*"))
    for step in [*statements, *dataframes(spark, str(path))]:
        with pytest.raises((Py4JError, PySparkException), match="DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
            step()
    assert sorted(file.name for file in path.rglob("*")) == before and rows_of(path, url) == [1, 2, 3]
    drop_feature(coordinated(path, url), "catalogManaged")
    spark.createDataFrame([(4,)], "id long").write.format("delta").mode("append").save(str(path))
    assert sorted(row["id"] for row in spark.read.format("delta").load(str(path)).collect()) == [1, 2, 3, 4]
    assert rows_of(path, url) == [1, 2, 3, 4]


def test_deltalake_refuses_the_table(path: Path) -> None:
    url, rows = ledger_url(path.parent), pa.table({"id": [9]})
    with pytest.raises(Exception, match=r"(?i)catalog-?managed"):
        deltalake.DeltaTable(str(path)).to_pyarrow_table()
    with pytest.raises(Exception, match=r"(?i)catalog-?managed"):
        deltalake.write_deltalake(str(path), rows, mode="append")
    assert rows_of(path, url) == [1, 2, 3]
