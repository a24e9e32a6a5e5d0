"""Where delta-spark is not loaded, the name `delta` is pydelta's: as a format, as a provider, and as Spark's default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable, register
from spark_plugin.options.settings import active
from spark_plugin.pruning import status

pytestmark = pytest.mark.usefixtures("plain_plans")

DATABASE = "delta_format"


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{tmp_path / 'database'}'")
    yield DATABASE
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def ids(spark: SparkSession, name: str) -> list[int]:
    return sorted(row.id for row in spark.table(name).collect())


def test_format_delta_saves_and_loads_as_pydelta_does(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(4).withColumn("part", F.col("id") % 2)
    rows.write.format("delta").partitionBy("part").save(path)
    rows.write.save(path, format="DELTA", mode="append")
    rows.filter("part = 0").write.format("delta").mode("overwrite").option("replaceWhere", "part = 0").save(path)
    assert PlainTable(path).history().to_pylist()[0]["engineInfo"].startswith("pydelta/")
    frame = spark.read.format("delta").load(path)
    assert frame.count() == 6
    assert spark.read.load(path, format="delta", versionAsOf=0).count() == 4
    assert frame.filter("_metadata.row_index >= 0").count() == 6
    assert "pydelta" in frame._jdf.queryExecution().toString(), "the scan is that of pydelta's rule"


def test_reader_of_delta_loads_again_with_other_options(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for start in (0, 10):
        spark.range(start, start + 3).write.format("delta").mode("append").save(path)
    reader = spark.read.format("delta")
    assert reader.load(path).count() == 6
    assert reader.option("versionAsOf", 0).load(path).count() == 3
    spark.range(2).write.parquet(str(tmp_path / "p"))
    assert reader.format("parquet").load(str(tmp_path / "p")).count() == 2


def test_streams_of_format_delta_go_from_table_to_table(spark: SparkSession, tmp_path: Path) -> None:
    source, sink = str(tmp_path / "source"), str(tmp_path / "sink")
    spark.range(5).write.format("delta").save(source)
    stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
    writer = stream.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(sink).awaitTermination()
    assert spark.read.format("delta").load(sink).count() == 5
    assert PlainTable(sink).history().to_pylist()[0]["operation"] == "STREAMING UPDATE"


def test_names_of_format_delta_take_every_way_to_write(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.range(2).write.format("delta").saveAsTable(f"{database}.saved")
    spark.range(2, 3).write.format("delta").mode("append").saveAsTable(f"{database}.saved")
    spark.range(3, 4).write.insertInto(f"{database}.saved")
    spark.range(4, 5).writeTo(f"{database}.saved").append()
    assert ids(spark, f"{database}.saved") == [0, 1, 2, 3, 4]
    spark.range(7, 9).writeTo(f"{database}.made").using("delta").create()
    spark.range(9, 10).writeTo(f"{database}.made").overwrite(F.col("id").isin(7, 9))
    assert ids(spark, f"{database}.made") == [8, 9]
    stream = spark.readStream.table(f"{database}.saved").writeStream.format("delta").trigger(availableNow=True)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).toTable(f"{database}.streamed").awaitTermination()
    assert ids(spark, f"{database}.streamed") == [0, 1, 2, 3, 4]


def test_sql_using_delta_creates_reads_and_changes_tables(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE {database}.t (id BIGINT, v INT GENERATED ALWAYS AS (CAST(id AS INT) + 1)) USING delta")
    spark.sql(f"INSERT INTO {database}.t (id) VALUES (1), (2)")
    spark.sql(f"MERGE INTO {database}.t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert spark.table(f"{database}.t").collect() == [(1, 2)]
    path = tmp_path / "by_path"
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta AS SELECT id FROM {database}.t")
    spark.sql(f"UPDATE delta.`{path}` SET id = 5")
    assert spark.sql(f"SELECT * FROM delta.`{path}`").collect() == [(5,)]
    spark.sql(f"CREATE TABLE {database}.entered USING delta LOCATION '{path}'")
    assert ids(spark, f"{database}.entered") == [5]


def test_delta_as_default_source_is_the_format_that_is_left_out(
    spark: SparkSession, database: str, tmp_path: Path, conf: Callable[[Mapping[str, str]], None]
) -> None:
    conf({"spark.sql.sources.default": "delta"})
    path = str(tmp_path / "t")
    spark.range(3).write.save(path)
    assert spark.read.load(path).count() == 3
    spark.range(3).write.saveAsTable(f"{database}.saved")
    spark.sql(f"CREATE TABLE {database}.made AS SELECT * FROM {database}.saved")
    spark.sql(f"DELETE FROM {database}.made WHERE id = 1")
    assert ids(spark, f"{database}.made") == [0, 2]


def entry_of(spark: SparkSession, name: str) -> tuple[str, str]:
    """The provider and the kind of a table, as the catalog has them."""
    facts = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
    assert spark.catalog.getTable(name).tableType == facts["Type"]
    return facts["Provider"], facts["Type"]


STATED: Mapping[str, Callable[[SparkSession, str, str], object]] = {
    "saveAsTable": lambda spark, name, provider: spark.range(1).write.format(provider).saveAsTable(name),
    "writeTo": lambda spark, name, provider: spark.range(1).writeTo(name).using(provider).create(),
    "CREATE": lambda spark, name, provider: spark.sql(f"CREATE TABLE {name} (id BIGINT) USING {provider}"),
    "AS SELECT": lambda spark, name, provider: spark.sql(f"CREATE TABLE {name} USING {provider} AS SELECT 1L AS id"),
    "JVM": lambda spark, name, provider: spark._jsparkSession.sql(f"CREATE TABLE {name} (id BIGINT) USING {provider}"),
    "scripts": lambda spark, name, provider: spark.sql(f"BEGIN CREATE TABLE {name} USING {provider} AS SELECT 1L AS id; END"),
}


@pytest.mark.parametrize("way", STATED)
def test_new_name_has_the_provider_that_the_caller_states(way: str, spark: SparkSession, database: str) -> None:
    for provider in ("delta", "pydelta"):
        name = f"{database}.{provider}_stated"
        STATED[way](spark, name, provider)
        assert entry_of(spark, name) == (provider, "MANAGED")
        assert f"USING {provider}" in spark.sql(f"SHOW CREATE TABLE {name}").first()[0].splitlines()
        spark.range(1, 2).writeTo(name).append()
        path = Path(spark.sql(f"DESCRIBE DETAIL {name}").first()["location"].removeprefix("file:"))
        assert path.exists()
        spark.sql(f"DROP TABLE {name}")
        assert not path.exists()


def test_stream_and_location_keep_the_provider_delta(spark: SparkSession, database: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(2).write.format("delta").save(path)
    stream = spark.readStream.format("delta").load(path).writeStream.format("delta").trigger(availableNow=True)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).toTable(f"{database}.streamed").awaitTermination()
    assert entry_of(spark, f"{database}.streamed") == ("delta", "MANAGED")
    spark.sql(f"CREATE TABLE {database}.entered USING delta LOCATION '{path}'")
    assert entry_of(spark, f"{database}.entered") == ("delta", "EXTERNAL")
    spark.sql(f"ALTER TABLE {database}.entered ADD COLUMNS (more INT)")
    spark.sql(f"INSERT INTO {database}.entered VALUES (7, 8)")
    spark.range(1).selectExpr("id", "id AS wide").write.mode("append").option("mergeSchema", "true").saveAsTable(
        f"{database}.entered", format="delta"
    )
    assert spark.table(f"{database}.entered").columns == ["id", "more", "wide"]
    assert entry_of(spark, f"{database}.entered") == ("delta", "EXTERNAL")
    shown = spark.sql(f"SHOW CREATE TABLE {database}.entered").first()[0]
    spark.sql(f"DROP TABLE {database}.entered")
    spark.sql(shown)
    assert entry_of(spark, f"{database}.entered") == ("delta", "EXTERNAL")
    assert spark.table(f"{database}.entered").count() == 4


def test_create_like_uses_the_provider_of_its_source_by_default(spark: SparkSession, database: str) -> None:
    for provider in ("delta", "pydelta"):
        spark.sql(f"CREATE TABLE {database}.of_{provider} (id INT) USING {provider}")
        spark.sql(f"CREATE TABLE {database}.like_{provider} LIKE {database}.of_{provider}")
        assert entry_of(spark, f"{database}.like_{provider}")[0] == provider
    spark.sql(f"CREATE TABLE {database}.stated LIKE {database}.of_pydelta USING delta")
    assert entry_of(spark, f"{database}.stated")[0] == "delta"


def test_builder_and_clone_take_the_provider_of_the_setting(
    spark: SparkSession, database: str, conf: Callable[[Mapping[str, str]], None]
) -> None:
    for provider in ("pydelta", "delta"):
        conf({"spark.pydelta.tableProvider": provider})
        DeltaTable.create(spark).tableName(f"{database}.built_{provider}").addColumn("id", "INT").execute()
        DeltaTable.forName(spark, f"{database}.built_{provider}").clone(f"{database}.cloned_{provider}", isShallow=True)
        for kind in ("built", "cloned"):
            assert entry_of(spark, f"{database}.{kind}_{provider}")[0] == provider
    spark.range(1).write.format("pydelta").saveAsTable(f"{database}.stated")
    assert entry_of(spark, f"{database}.stated")[0] == "pydelta"


def test_format_delta_outside_of_python_is_pydelta(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(6).write.format("delta").save(path)
    before = status(spark)["pruning"].used
    assert spark._jsparkSession.read().format("delta").load(path).filter("id > 3").count() == 2
    assert status(spark)["pruning"].used > before
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen USING delta OPTIONS (path '{path}')")
    assert spark.sql("SELECT count(*) FROM seen WHERE id > 3").first() == (2,)
    spark.sql("DELETE FROM seen WHERE id = 0")
    assert spark.read.format("delta").load(path).count() == 5


def test_format_delta_is_not_taken_if_the_setting_says_so(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(1).write.format("delta").save(path)
    session = spark.newSession()
    session.conf.set("spark.pydelta.deltaNames.enabled", "false")
    register(session)
    assert session.read.format("pydelta").load(path).count() == 1
    for action in (
        lambda: session.read.format("delta").load(path),
        lambda: session.range(1).write.format("delta").mode("append").save(path),
        lambda: session.sql(f"SELECT * FROM delta.`{path}`"),
    ):
        with active(session), pytest.raises((AnalysisException, Py4JJavaError)):  # Spark looks in the active session
            action()
    assert PlainTable(path).history().num_rows == 1


def test_format_delta_without_register_is_unknown_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    with active(session), pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
        session.range(1).write.format("delta").save(str(tmp_path / "t"))
