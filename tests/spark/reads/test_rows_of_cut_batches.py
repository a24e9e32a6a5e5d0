"""Rows come once, or the read is refused, where a setting limits the rows of the batches that Python returns. Spark 4.1 and 4.2
return the rows of a Python source more than once then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_plugin.options.roads import DISABLE_CONF
from tests.support.tables.small_table import make_table

OUTPUT_ROWS = "spark.sql.execution.arrow.maxRecordsPerOutputBatch"
IDS = list(range(100))
DISABLED = ["", "pruning", "columns,driver,log", "parquet,driver,log"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    columns = {"id": pa.array(IDS, pa.int64()), "place": [{"x": n} for n in IDS]}
    return make_table(tmp_path / "table", [pa.table(columns)])


@pytest.mark.parametrize("disabled", DISABLED)
@pytest.mark.parametrize("pruning", ["true", "false"])
@pytest.mark.parametrize("columns", [["id"], ["id", "place"]], ids="-".join)
def test_batch_read(columns: list[str], pruning: str, disabled: str, spark: SparkSession, path: str, conf: Any) -> None:
    conf({OUTPUT_ROWS: "7", DISABLE_CONF: disabled})
    try:
        rows = spark.read.format("pydelta").option("pruning", pruning).load(path).select(*columns).collect()
    except PySparkException as error:
        assert OUTPUT_ROWS in str(error) and not spark.version.startswith("4.3")
    else:
        assert sorted(row.id for row in rows) == IDS


@pytest.mark.parametrize("disabled", DISABLED)
@pytest.mark.parametrize("columns", [["id"], ["id", "place"]], ids="-".join)
def test_stream(columns: list[str], disabled: str, spark: SparkSession, path: str, conf: Any) -> None:
    conf({OUTPUT_ROWS: "7", DISABLE_CONF: disabled})
    stream = spark.readStream.format("pydelta").load(path).select(*columns)
    query = stream.writeStream.format("memory").queryName("rows_of_cut_batches").trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except PySparkException as error:
        assert OUTPUT_ROWS in str(error) and not spark.version.startswith("4.3")
    else:
        assert sorted(row.id for row in spark.table("rows_of_cut_batches").collect()) == IDS
    finally:
        query.stop()
        spark.catalog.dropTempView("rows_of_cut_batches")


def test_statement_that_reads_the_table_it_writes(spark: SparkSession, path: str, conf: Any) -> None:
    conf({OUTPUT_ROWS: "7", DISABLE_CONF: "pruning"})
    try:
        spark.sql(f"INSERT INTO pydelta.`{path}` SELECT id + 100, place FROM pydelta.`{path}`")
        expected = [*IDS, *(n + 100 for n in IDS)]
    except PySparkException as error:
        assert OUTPUT_ROWS in str(error) and not spark.version.startswith("4.3")
        expected = IDS
    conf({OUTPUT_ROWS: "-1", DISABLE_CONF: ""})
    assert sorted(row.id for row in spark.read.format("pydelta").load(path).collect()) == expected
