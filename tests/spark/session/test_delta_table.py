"""DeltaTable by path and by name, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from spark_plugin.exceptions import (
    InvalidOptionError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from spark_plugin.tables import DeltaColumnBuilder, DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTableBuilder, IdentityGenerator

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of three rows that no test changes."""
    path = str(tmp_path_factory.mktemp("tables") / "t")
    write_delta(path, pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["mon", "mon", "tue"]}), partition_by=["day"])
    return path


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The directory of the database `depot`."""
    spark.sql(f"create database depot location '{tmp_path / 'depot'}'")
    yield tmp_path / "depot"
    spark.sql("drop database depot cascade")


# ---------------------------------------------------------------- names


def test_repr_shows_the_newest_version_by_name_and_by_path(spark: SparkSession, path: str, database: Path) -> None:
    spark.sql(f"create table depot.shown using pydelta location '{path}'")
    for name, place in (("depot.shown", "depot.shown"), (f"delta.`{path}`", path)):
        table = DeltaTable.forName(spark, name)
        for text in (repr(table), table._repr_html_()):
            assert "version" in text and "3 rows" in text and "bigint" in text and place.replace("`", "") in text.replace("`", "")


def test_for_name_finds_tables_by_name_and_by_path(spark: SparkSession, path: str, database: Path) -> None:
    spark.sql(f"create table depot.t using pydelta location '{path}'")
    for name in ("depot.t", f"delta.`{path}`", f"pydelta.`{path}`"):
        table = DeltaTable.forName(spark, name)
        assert table.toDF().count() == 3
        assert table.detail().first()["name"] == ("spark_catalog.depot.t" if name == "depot.t" else None)
    assert DeltaTable.isDeltaTable(spark, f"delta.`{path}`")


def test_for_name_with_a_database_is_no_temporary_view(spark: SparkSession, path: str, database: Path) -> None:
    spark.sql(f"create table depot.hidden using pydelta location '{path}'")
    spark.range(1).createOrReplaceTempView("hidden")
    try:
        assert DeltaTable.forName(spark, "depot.hidden").toDF().count() == 3
        with pytest.raises(TableNotFoundError):
            DeltaTable.forName(spark, "hidden")
    finally:
        spark.catalog.dropTempView("hidden")


def test_for_name_of_something_else_is_an_error(spark: SparkSession, path: str, database: Path) -> None:
    spark.range(1).write.saveAsTable("depot.other", format="parquet")
    for name, condition in (
        ("depot.nothing", "DELTA_MISSING_DELTA_TABLE"),
        ("depot.other", "DELTA_MISSING_DELTA_TABLE"),
        ("delta.`/no/such/table`", "DELTA_MISSING_DELTA_TABLE"),
    ):
        with pytest.raises(TableNotFoundError) as caught:
            DeltaTable.forName(spark, name)
        assert caught.value.error_class == condition and isinstance(caught.value, AnalysisException)


# ---------------------------------------------------------------- builders


def built(builder: DeltaTableBuilder) -> DeltaTableBuilder:
    return (
        builder.addColumn("id", "int", nullable=False, comment="key")
        .addColumn("next", IntegerType(), generatedAlwaysAs="id + 10")
        .addColumn("code", "varchar(3)")
        .partitionedBy("id")
        .comment("all of it")
        .property("team", "b")
    )


def test_builder_by_location_makes_the_table_that_was_described(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = built(DeltaTable.create(spark).location(path)).execute()
    schema = table.toDF().schema
    assert schema["id"] == StructField("id", IntegerType(), False, {"comment": "key"})
    assert (schema["next"], schema["code"].dataType) == (StructField("next", IntegerType()), StringType())
    detail = table.detail().first()
    assert (detail["format"], detail["description"], detail["partitionColumns"]) == ("delta", "all of it", ["id"])
    assert (detail["properties"], detail["numFiles"], detail["sizeInBytes"]) == ({"team": "b"}, 0, 0)
    spark.createDataFrame([(1, "abc")], "id int, code string").write.format("pydelta").mode("append").save(path)
    assert [tuple(row) for row in table.toDF().collect()] == [(1, 11, "abc")]
    history = [(row["operation"], row["operationMetrics"].get("numOutputRows")) for row in table.history().collect()]
    assert history == [("WRITE", "1"), ("CREATE TABLE", None)]
    with pytest.raises(Exception, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        spark.createDataFrame([(1, "abcd")], "id int, code string").write.format("pydelta").mode("append").save(path)


def test_builder_by_location_heeds_what_is_there(spark: SparkSession, path: str, tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    with pytest.raises(TableNotFoundError, match="cannot be found"):
        built(DeltaTable.replace(spark).location(new)).execute()
    with pytest.raises(TableAlreadyExistsError, match="already exists"):
        built(DeltaTable.create(spark).location(path)).execute()
    assert built(DeltaTable.createIfNotExists(spark).location(path)).execute().toDF().columns == ["id", "day"]
    built(DeltaTable.createOrReplace(spark).location(new)).execute()
    replaced = DeltaTable.replace(spark).tableName(f"delta.`{new}`").addColumn("x", "double").execute()
    assert replaced.toDF().columns == ["x"]
    assert [row["operation"] for row in replaced.history().collect()] == ["REPLACE TABLE", "CREATE OR REPLACE TABLE"]


def test_builder_by_name_enters_the_name(spark: SparkSession, database: Path) -> None:
    with pytest.raises(TableNotFoundError, match="cannot be found"):
        built(DeltaTable.replace(spark).tableName("depot.made")).execute()
    table = built(DeltaTable.create().tableName("depot.made")).execute()
    assert spark.table("depot.made").columns == ["id", "next", "code"]
    assert table.detail().first()["location"] == f"file:{database / 'made'}"
    with pytest.raises(TableAlreadyExistsError, match=r"depot.made already exists"):
        built(DeltaTable.create(spark).tableName("depot.made")).execute()
    same = DeltaTable.createIfNotExists(spark).tableName("depot.made").addColumn("x", "int").execute()
    assert same.toDF().columns == ["id", "next", "code"]
    DeltaTable.createOrReplace(spark).tableName("depot.made").addColumn("x", "int").clusterBy("x").execute()
    assert spark.table("depot.made").columns == ["x"]
    assert DeltaTable.forName(spark, "depot.made").detail().first()["clusteringColumns"] == ["x"]


def test_builder_by_name_and_location_accepts_an_equal_table(spark: SparkSession, path: str, database: Path) -> None:
    DeltaTable.create(spark).tableName("depot.a").location(path).execute()
    columns = spark.table("depot.a").schema
    alike = DeltaTable.create(spark).tableName("depot.b").location(path).addColumns(columns).partitionedBy(["day"]).execute()
    assert (alike.toDF().count(), spark.table("depot.b").count(), PlainTable(path).version) == (3, 3, 0)
    with pytest.raises(SchemaMismatchError, match="not the one"):
        DeltaTable.create(spark).tableName("depot.c").location(path).addColumn("x", "int").execute()
    assert not spark.catalog.tableExists("depot.c")


def test_drop_deletes_files_and_builder_adopts_no_existing_table(spark: SparkSession, database: Path) -> None:
    built(DeltaTable.create(spark).tableName("depot.made")).execute()
    location = DeltaTable.forName(spark, "depot.made").detail().first()["location"].removeprefix("file:")
    spark.sql("drop table depot.made")
    assert not Path(location).exists()
    built(DeltaTable.create(spark).location(location)).execute()
    for builder in (DeltaTable.create(spark), DeltaTable.createIfNotExists(spark)):
        with pytest.raises(TableAlreadyExistsError, match="CREATE TABLE"):
            built(builder.tableName("depot.made")).execute()
    assert not spark.catalog.tableExists("depot.made")
    DeltaTable.createOrReplace(spark).tableName("depot.made").addColumn("x", "int").execute()
    assert spark.table("depot.made").columns == ["x"]


def test_column_builder_makes_fields_for_add_columns(spark: SparkSession, tmp_path: Path) -> None:
    field = DeltaTable.columnBuilder(spark, "twice").dataType("bigint").generatedAlwaysAs("id * 2").comment("2 id").build()
    plain = DeltaTable.columnBuilder(spark, "id").dataType("bigint").nullable(False).build()
    path = str(tmp_path / "t")
    DeltaTable.create(spark).location(path).addColumns([plain, field]).execute()
    spark.range(2).write.format("pydelta").mode("append").save(path)
    assert sorted(tuple(row) for row in DeltaTable.forPath(spark, path).toDF().collect()) == [(0, 0), (1, 2)]
    with pytest.raises(InvalidOptionError, match="no data type"):
        DeltaTable.columnBuilder(spark, "x").build()


def test_builder_makes_a_table_that_gets_its_columns_later(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    DeltaTable.create(spark).location(path).execute()
    spark.range(3).write.format("pydelta").mode("append").option("mergeSchema", "true").save(path)
    assert sorted(row.id for row in DeltaTable.forPath(spark, path).toDF().collect()) == [0, 1, 2]


BAD_BUILDERS: dict[str, tuple[Callable[[DeltaTableBuilder], Any], type[Exception]]] = {
    "name": (lambda b: b.tableName(1), TypeError),
    "location": (lambda b: b.location(1), TypeError),
    "comment": (lambda b: b.comment(1), TypeError),
    "column": (lambda b: b.addColumn(1, "int"), TypeError),
    "type": (lambda b: b.addColumn("a", 1), TypeError),
    "type text": (lambda b: b.addColumn("a", "1"), ParseException),
    "column comment": (lambda b: b.addColumn("a", "int", comment=1), TypeError),
    "generated": (lambda b: b.addColumn("a", "int", generatedAlwaysAs=1), TypeError),
    "by default": (lambda b: b.addColumn("a", "bigint", generatedByDefaultAs="id"), TypeError),
    "step": (lambda b: b.addColumn("a", "bigint", generatedAlwaysAs=IdentityGenerator(1, 0)), ValueError),
    "both": (
        lambda b: b.addColumn("a", "bigint", generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator()),
        ValueError,
    ),
    "nullable": (lambda b: b.addColumn("a", "int", nullable=1), TypeError),
    "columns": (lambda b: b.addColumns(1), TypeError),
    "fields": (lambda b: b.addColumns([StructField("a", IntegerType()), 1]), TypeError),
    "partitions": (lambda b: b.partitionedBy(1, "1"), TypeError),
    "clustering": (lambda b: b.clusterBy([1]), TypeError),
    "property": (lambda b: b.property("1", 1), TypeError),
    "no place": (lambda b: b.addColumn("a", "int").execute(), InvalidOptionError),
    "two places": (lambda b: b.tableName("delta.`/a`").location("/b").addColumn("a", "int").execute(), InvalidOptionError),
    "two layouts": (
        lambda b: (
            b.location("/tmp/nothing_is_made_here")
            .addColumns(StructType().add("a", "integer").add("b", "integer"))
            .clusterBy("a")
            .partitionedBy("b")
            .execute()
        ),
        SchemaMismatchError,
    ),
    "own generation": (
        lambda b: b.location("/tmp/nothing_is_made_here").addColumn("a", "int", generatedAlwaysAs="b + 1").execute(),
        Exception,
    ),
}


@pytest.mark.parametrize("bad", BAD_BUILDERS)
def test_builder_refuses_wrong_arguments(spark: SparkSession, bad: str) -> None:
    act, kind = BAD_BUILDERS[bad]
    with pytest.raises(kind):
        act(DeltaTable.create(spark))
    assert not Path("/tmp/nothing_is_made_here").exists()


# ---------------------------------------------------------------- properties and protocol


def test_properties_protocol_and_features_change(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).coalesce(1).write.format("pydelta").save(path)
    table = DeltaTable.forPath(spark, path)
    table.setProperties({"delta.enableDeletionVectors": "true", "team": "b"})
    table.addFeatureSupport("typeWidening")
    table.unsetProperties(["team"])
    detail = table.detail().first()
    assert detail["properties"] == {"delta.enableDeletionVectors": "true"}
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (3, 7)
    assert detail["tableFeatures"] == ["appendOnly", "deletionVectors", "invariants", "typeWidening"]
    operations = [row["operation"] for row in table.history(3).collect()]
    assert operations == ["UNSET TBLPROPERTIES", "SET TBLPROPERTIES", "SET TBLPROPERTIES"]
    table.upgradeTableProtocol(1, 2)  # lower versions change nothing
    assert table.history(1).first()["version"] == 3
    with pytest.raises(InvalidOptionError) as caught:
        table.upgradeTableProtocol(4, 7)
    assert isinstance(caught.value, AnalysisException)
    assert table.toDF().count() == 3


def test_restore_gives_the_metrics_of_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).coalesce(1).write.format("pydelta").save(path)
    first = spark.range(5).coalesce(1).write.format("pydelta").mode("overwrite")
    first.save(path)
    table = DeltaTable.forPath(spark, path)
    row = table.restoreToVersion(0).first()
    assert list(row.asDict()) == [
        *("table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files"),
        *("removed_files_size", "restored_files_size"),
    ]
    assert (row["num_of_files_after_restore"], row["num_removed_files"], row["num_restored_files"]) == (1, 1, 1)
    assert table.toDF().count() == 3
    with pytest.raises(InvalidOptionError, match=r"'05/04/1999'\) cannot be converted to a valid timestamp"):
        table.restoreToTimestamp("05/04/1999")


def test_restore_by_name_enters_the_columns_again(spark: SparkSession, database: Path) -> None:
    spark.range(2).write.format("pydelta").saveAsTable("depot.made")
    DeltaTable.replace(spark).tableName("depot.made").addColumn("x", "int").execute()
    assert spark.table("depot.made").columns == ["x"]
    DeltaTable.forName(spark, "depot.made").restoreToVersion(0)
    assert (spark.table("depot.made").columns, spark.table("depot.made").count()) == (["id"], 2)


def test_clone_by_path_and_by_name(spark: SparkSession, path: str, database: Path, tmp_path: Path) -> None:
    table = DeltaTable.forPath(spark, path)
    clone = table.clone(str(tmp_path / "c"), isShallow=True, properties={"team": "b"})
    assert (clone.toDF().count(), clone.detail().first()["properties"]["team"]) == (3, "b")
    assert table.cloneAtVersion(0, "depot.copied", isShallow=True).toDF().count() == 3
    assert spark.table("depot.copied").count() == 3
    for target in (str(tmp_path / "c"), "depot.copied"):
        with pytest.raises(TableAlreadyExistsError):
            table.clone(target, isShallow=True)
    cloned = database / "copied"
    assert cloned.exists()
    spark.sql("drop table depot.copied")
    assert not cloned.exists()
    assert (PlainTable(path).version, len(PlainTable(path).to_arrow())) == (0, 3)


# ---------------------------------------------------------------- arguments, and what is not there yet

BAD_ARGUMENTS: dict[str, tuple[Callable[[DeltaTable], Any], type[Exception], str]] = {
    "reader": (lambda t: t.upgradeTableProtocol("abc", 3), ValueError, "readerVersion"),
    "writer": (lambda t: t.upgradeTableProtocol(1, []), ValueError, "writerVersion"),
    "feature": (lambda t: t.addFeatureSupport(12), ValueError, "featureName needs to be a string"),
    "drop": (lambda t: t.dropFeatureSupport([]), ValueError, "featureName needs to be a string"),
    "truncate": (lambda t: t.dropFeatureSupport("x", 12), ValueError, "truncateHistory needs to be a boolean"),
    "version": (lambda t: t.restoreToVersion("0"), ValueError, "version needs to be an int but got '<class 'str'>'"),
    "time": (lambda t: t.restoreToTimestamp(1), ValueError, "timestamp needs to be a string but got '<class 'int'>'"),
    "target": (lambda t: t.clone(1), ValueError, "target needs to be a string"),
    "shallow": (lambda t: t.clone("x", isShallow="yes"), ValueError, "isShallow needs to be a boolean"),
    "clone": (lambda t: t.clone("x", properties={1: "a"}), ValueError, "needs to be a string"),
    "at version": (lambda t: t.cloneAtVersion("1", "x"), ValueError, "version needs to be an int"),
    "at time": (lambda t: t.cloneAtTimestamp(1, "x"), ValueError, "timestamp needs to be a string"),
    "properties": (lambda t: t.setProperties({"a": 1}), ValueError, "needs to be a string"),
    "hours": (lambda t: t.vacuum("many"), ValueError, "many"),
    "mode": (lambda t: t.generate("nothing"), InvalidOptionError, "symlink_format_manifest"),
    "condition": (lambda t: t.delete(1), TypeError, "must be a Spark SQL Column or a string"),
    "set none": (lambda t: t.update("id = 1"), ValueError, "cannot be None"),
    "set dict": (lambda t: t.update(set=1), TypeError, "must be a dict"),
    "set key": (lambda t: t.update(set={1: "1"}), TypeError, "Keys of dict in .* must contain only"),
    "set value": (lambda t: t.update(set={"id": 1}), TypeError, "Values of dict in .* must contain only"),
    "source": (lambda t: t.merge(1, "a = b"), TypeError, "must be DataFrame"),
    "no source": (lambda t: t.merge(None, "a = b"), ValueError, "cannot be None"),
    "match": (lambda t: t.merge(t.toDF(), None), ValueError, "cannot be None"),
    "match type": (lambda t: t.merge(t.toDF(), 1), TypeError, "must be a Spark SQL Column or a string"),
    "clause": (lambda t: t.merge(t.toDF(), "true").whenMatchedDelete(1), TypeError, "must be a Spark SQL Column"),
    "clause set": (lambda t: t.merge(t.toDF(), "true").whenMatchedUpdate({"id": "1"}), ValueError, "cannot be None"),
    "clause values": (lambda t: t.merge(t.toDF(), "true").whenNotMatchedInsert(values=1), TypeError, "must be a dict"),
    "filter": (lambda t: t.optimize().where(1), TypeError, "must be str"),
    "order": (lambda t: t.optimize().executeZOrderBy(1), TypeError, "must be str"),
}


@pytest.mark.parametrize("bad", BAD_ARGUMENTS)
def test_methods_refuse_wrong_arguments(spark: SparkSession, path: str, bad: str) -> None:
    act, kind, text = BAD_ARGUMENTS[bad]
    with pytest.raises(kind, match=text):
        act(DeltaTable.forPath(spark, path))


def test_generate_writes_a_manifest_with_a_line_for_each_file(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        write_delta(str(tmp_path), pa.table({"id": [number]}), mode="append")
    DeltaTable.forPath(spark, str(tmp_path)).generate("SYMLINK_format_manifest")
    lines = (tmp_path / "_symlink_format_manifest" / "manifest").read_text().splitlines()
    assert lines == sorted(f"file:{tmp_path}/{name}" for name in PlainTable(str(tmp_path)).files()["path"].to_pylist())


def test_builders_are_those_of_delta_tables(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert isinstance(table.optimize(), DeltaOptimizeBuilder)
    assert isinstance(DeltaTable.columnBuilder(spark, "a"), DeltaColumnBuilder)
    merge = table.alias("t").merge(table.toDF().alias("s"), F.expr("t.id = s.id"))
    assert isinstance(merge, DeltaMergeBuilder)
    assert IdentityGenerator() == IdentityGenerator(start=1, step=1)
