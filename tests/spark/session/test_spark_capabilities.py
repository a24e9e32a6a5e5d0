"""Each capability of spark_versions.py, tried on the Spark that runs the tests: it works, or the table says what happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_plugin import DeltaTable, pruning, register
from spark_plugin.exceptions import UnsupportedOperationError
from spark_plugin.java.supported_versions import minor_version
from spark_plugin.spark_versions import CAPABILITIES
from tests.support.spark.columnar_scans import scans_in_columns
from tests.support.spark.older_settings import COLUMNAR_CONF
from tests.support.spark.settings import restore
from tests.support.tables.small_table import make_table

UDF_COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
OUTPUT_ROWS = "spark.sql.execution.arrow.maxRecordsPerOutputBatch"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Two files, each with the rows of one version."""
    return make_table(tmp_path / "table", [pa.table({"id": [1, 2]}), pa.table({"id": [3, 4]})])


def ids(rows: Any) -> list[int]:
    return sorted(row.id for row in rows.collect())


def batches(spark: SparkSession, path: str) -> bool:
    spark.range(5, 7).write.format("pydelta").mode("append").save(path)
    return ids(spark.read.format("pydelta").load(path)) == [1, 2, 3, 4, 5, 6]


def row_changes(spark: SparkSession, path: str) -> bool:
    spark.sql(f"DELETE FROM pydelta.`{path}` WHERE id = 1")
    DeltaTable.forPath(spark, path).update("id = 2", {"id": "20"})
    spark.range(4, 6).createOrReplaceTempView("new_rows")
    spark.sql(
        f"MERGE INTO pydelta.`{path}` t USING new_rows s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    return ids(spark.read.format("pydelta").load(path)) == [3, 5, 20]


def sql_names(spark: SparkSession, path: str) -> bool:
    spark.sql(f"CREATE TABLE capability USING pydelta LOCATION '{path}'")
    try:
        newest, first = spark.sql("SELECT * FROM capability"), spark.sql(f"SELECT * FROM pydelta.`{path}` VERSION AS OF 0")
        return ids(newest) == [1, 2, 3, 4] and len(ids(first)) < 4
    finally:
        spark.sql("DROP TABLE capability")


def procedures(spark: SparkSession, path: str) -> bool:
    return spark.sql(f"CALL pydelta.system.history('{path}')").count() > 0


def procedure_parameters(spark: SparkSession, path: str) -> bool:
    described = [row[0] for row in spark.sql("DESCRIBE PROCEDURE pydelta.system.restore").collect()]
    assert any("restore" in line for line in described)
    return any("timestamp" in line and "STRING" in line for line in described)


def changes_from(spark: SparkSession, path: str) -> bool:
    feed = f"{path}-feed"
    spark.range(2).write.format("pydelta").option("delta.enableChangeDataFeed", "true").save(feed)
    functions = spark.sql(f"SELECT * FROM table_changes('pydelta.`{feed}`', 0)")
    by_method = spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", "0").load(feed)
    assert ids(functions) == ids(by_method) == [0, 1]
    try:
        return ids(spark.sql(f"SELECT * FROM pydelta.`{feed}` CHANGES FROM VERSION 0")) == [0, 1]
    except ParseException as error:
        assert any("table_changes" in note for note in error.__notes__)
        return False


def views_of_changes(spark: SparkSession, path: str) -> bool:
    feed = f"{path}-feed"
    spark.range(2).write.format("pydelta").option("delta.enableChangeDataFeed", "true").save(feed)
    query = f"SELECT * FROM table_changes('pydelta.`{feed}`', 0)"
    spark.sql(f"CREATE TEMPORARY VIEW passing_changes AS {query}")
    assert ids(spark.sql("SELECT * FROM passing_changes")) == [0, 1]
    try:
        spark.sql(f"CREATE VIEW lasting_changes AS {query}")
        return ids(spark.sql("SELECT * FROM lasting_changes")) == [0, 1]
    except AnalysisException as error:
        assert error.getCondition() == "INVALID_TEMP_OBJ_REFERENCE"
        return False
    finally:
        spark.sql("DROP VIEW IF EXISTS lasting_changes")
        spark.catalog.dropTempView("passing_changes")


def insert_clauses(spark: SparkSession, path: str) -> bool:
    statements = {
        f"INSERT INTO pydelta.`{path}` AS t REPLACE USING (id) SELECT 1L AS id": [1, 2, 3, 4],
        f"INSERT WITH SCHEMA EVOLUTION INTO pydelta.`{path}` BY NAME SELECT 7L AS id, 'x' AS more": [1, 2, 3, 4, 7],
    }
    outcomes = []
    for statement, expected in statements.items():
        try:
            spark.sql(statement)
        except ParseException as error:
            assert any("of a write" in note for note in error.__notes__)
            outcomes.append(False)
            continue
        outcomes.append(True)
        assert ids(spark.read.format("pydelta").load(path)) == expected
    assert len(set(outcomes)) == 1, "Spark knows some of them"
    return outcomes[0]


def rules_of_spark(spark: SparkSession, path: str) -> bool:
    DeltaTable.forPath(spark, path).addConstraint("hashed", "hash(id) <> 0")
    other = spark.newSession()  # Spark 4.1 drops no function that has the name of a built-in
    register(other)
    other.udf.register("hash", lambda _: 0, "int")
    try:
        other.range(5, 7).write.format("pydelta").mode("append").save(path)
    except UnsupportedOperationError as error:
        assert "registered a function hash" in str(error)
        return False
    return ids(spark.read.format("pydelta").load(path)) == [1, 2, 3, 4, 5, 6]


def streams(spark: SparkSession, path: str) -> bool:
    read: list[list[int]] = []
    stream = spark.readStream.format("pydelta").option("maxFilesPerTrigger", "1").load(path)
    writer = stream.writeStream.foreachBatch(lambda batch, _: read.append(ids(batch)))
    writer.trigger(availableNow=True).option("checkpointLocation", f"{path}-checkpoint").start().awaitTermination()
    return sorted(read) == [[1, 2], [3, 4]]


def streams_without_register(spark: SparkSession, path: str) -> bool:
    stream = spark.newSession().readStream.format("pydelta").load(path)
    query = stream.writeStream.format("memory").queryName("capability").trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except PySparkException as error:
        assert "register(spark)" in str(error)
        return False
    return True


def is_pruned(spark: SparkSession, path: str) -> bool:
    before = pruning.status(spark)["pruning"].used
    matching_ids = ids(spark.read.format("pydelta").load(path).where("id > 3"))
    status = pruning.status(spark)
    has_pruned = status.last_scan is not None and status.last_scan.files_kept == 1
    return matching_ids == [4] and status["pruning"].used == before + 1 and has_pruned


def columnar(spark: SparkSession, path: str) -> bool:
    return _columnar_scans(spark, lambda: ids(spark.read.format("pydelta").load(path).select("id"))) > 0


def udf_columns(spark: SparkSession, path: str) -> bool:
    spark.conf.unset(UDF_COLUMNAR_INPUT)
    following = F.udf(lambda number: number + 1, "long")
    collected: list[int] = []

    def query() -> None:
        collected.extend(ids(spark.read.format("pydelta").load(path).select(following("id").alias("id"))))

    scans = _columnar_scans(spark, query)
    assert collected == [2, 3, 4, 5]
    return scans > 0


def cut_batches(spark: SparkSession, path: str) -> bool:
    spark.conf.set(OUTPUT_ROWS, "1")
    spark.conf.set(COLUMNAR_CONF, "false")
    try:
        return ids(spark.read.format("pydelta").load(path)) == [1, 2, 3, 4]
    except UnsupportedOperationException as error:
        assert OUTPUT_ROWS in str(error)
        return False


def _columnar_scans(spark: SparkSession, query: Callable[[], Any]) -> int:
    spark.conf.set(COLUMNAR_CONF, "true")
    before = scans_in_columns(pruning.status(spark))
    query()
    return scans_in_columns(pruning.status(spark)) - before


TRIED: dict[str, Callable[[SparkSession, str], bool]] = {
    **{each.__name__: each for each in (batches, row_changes, sql_names, procedures, procedure_parameters)},
    **{each.__name__: each for each in (changes_from, views_of_changes, insert_clauses, rules_of_spark)},
    **{each.__name__: each for each in (streams, streams_without_register, columnar, udf_columns, cut_batches)},
    "pruning": is_pruned,
}


def test_each_capability_is_tried() -> None:
    assert TRIED.keys() == {each.name for each in CAPABILITIES}


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.name)
def test_capability_is_there_unless_the_table_says_otherwise(capability: Any, spark: SparkSession, path: str) -> None:
    names = (UDF_COLUMNAR_INPUT, OUTPUT_ROWS, COLUMNAR_CONF)
    before = {name: spark.conf.get(name, None) for name in names}
    try:
        assert TRIED[capability.name](spark, path) is (minor_version(spark.version) not in capability.without)
    finally:
        restore(spark, before)
