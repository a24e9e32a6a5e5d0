"""ALTER TABLE methods of DeltaTable: their effect on the table, Spark's counts, names in the catalog. For the rest see
unit/commands.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType, VarcharType

from delta_py import DeltaTable as PlainTable
from delta_py.errors import DeltaError
from spark_plugin.tables import DeltaTable, IdentityGenerator

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    frame = spark.createDataFrame([(1, "a", (7,)), (2, "b", None)], "id int, name string, s struct<a: int>")
    writer = frame.coalesce(1).write.format("pydelta").option("delta.columnMapping.mode", "name")
    writer.option("delta.enableTypeWidening", "true").save(str(tmp_path / "t"))
    return str(tmp_path / "t")


def test_changes_of_columns_reach_the_table_and_its_name(spark: SparkSession, path: str) -> None:
    spark.sql("DROP TABLE IF EXISTS altered")
    spark.sql(f"CREATE TABLE altered USING pydelta LOCATION '{path}'")
    try:
        table = DeltaTable.forName(spark, "altered")
        table.addColumns("x INT COMMENT 'c', `y.z` STRING")
        table.addColumns([StructField("v", VarcharType(3)), {"name": "s.b", "dataType": ArrayType(LongType()), "first": True}])
        table.renameColumn("name", "label")
        table.dropColumns("`y.z`", "nowhere", ifExists=True)
        table.alterColumn("id", dataType="bigint", comment="key", after="label")
        table.alterColumns({"x": {"first": True}, "s.a": {"dataType": LongType()}})
        assert PlainTable(path).version == 6
        frame = spark.table("altered")
        assert frame.columns == ["x", "label", "id", "s", "v"]
        assert frame.schema["s"].dataType.simpleString() == "struct<b:array<bigint>,a:bigint>"
        assert (frame.schema["id"].metadata["comment"], frame.schema["x"].metadata["comment"]) == ("key", "c")
        assert sorted(frame.select("id", "label", "s.a").collect()) == [(1, "a", 7), (2, "b", None)]
        with pytest.raises(DeltaError) as refused:
            table.alterColumn("x", nullable=False)
        assert isinstance(refused.value, AnalysisException)
        table.replaceColumns([StructField("id", LongType()), StructField("label", frame.schema["label"].dataType)])
        assert spark.table("altered").columns == ["id", "label"]
    finally:
        spark.sql("DROP TABLE altered")


def test_constraint_is_counted_by_spark_and_kept_afterwards(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    with pytest.raises(DeltaError) as refused:
        table.addConstraint("c", "pmod(hash(id), 2) >= 2 OR s.a = 7")
    assert refused.value.error_class == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    assert refused.value.message_parameters["row_count"] == 1
    table.addConstraint("c", "pmod(hash(id), 2) < 2 AND id < 3")
    with pytest.raises(DeltaError):
        spark.createDataFrame([(5,)], "id int").write.format("pydelta").mode("append").save(path)
    table.dropConstraint("c")
    table.dropConstraint("c", ifExists=True)
    with pytest.raises(DeltaError) as refused:
        table.addConstraint("c", "id + 1")
    assert refused.value.error_class == "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"


def test_identity_is_synchronised_and_features_are_dropped(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(path).property("delta.enableDeletionVectors", "true")
    generator = IdentityGenerator()
    table = builder.addColumn("id", "bigint", generatedByDefaultAs=generator).addColumn("x", IntegerType()).execute()
    spark.createDataFrame([(40, 1)], "id bigint, x int").write.format("pydelta").mode("append").save(path)
    table.syncIdentity("id")
    spark.createDataFrame([(2,)], "x int").coalesce(1).write.format("pydelta").mode("append").save(path)
    assert sorted(row.id for row in table.toDF().collect()) == [40, 41]
    table.delete("id = 40")
    table.dropFeatureSupport("deletionVectors")
    assert table.toDF().count() == 1
    assert table.detail().first()["minReaderVersion"] == 1


def test_column_mapping_is_disabled_by_sql_and_by_methods(spark: SparkSession, tmp_path: Path) -> None:
    off = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
    spark.sql("CREATE TABLE mapped (k INT, v STRING) USING pydelta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    try:
        spark.sql("INSERT INTO mapped VALUES (1, 'a'), (2, 'b')")
        path = spark.sql("DESCRIBE DETAIL mapped").first()["location"]
        for turn_off in (
            lambda: spark.sql(f"ALTER TABLE mapped {off}"),
            lambda: spark.sql(f"ALTER TABLE pydelta.`{path}` {off}"),
            lambda: DeltaTable.forPath(spark, path).setProperties({"delta.columnMapping.mode": "none"}),
            lambda: DeltaTable.forName(spark, "mapped").unsetProperties(["delta.columnMapping.mode"]),
            lambda: DeltaTable.forName(spark, "mapped").dropFeatureSupport("columnMapping"),
        ):
            spark.sql("ALTER TABLE mapped SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
            spark.sql("ALTER TABLE mapped RENAME COLUMN v TO w")
            turn_off()
            assert sorted(map(tuple, spark.table("mapped").select("k", "w").collect())) == [(1, "a"), (2, "b")]
            history = [row.operation for row in DeltaTable.forName(spark, "mapped").history(5).collect()]
            assert "REMOVE COLUMN MAPPING" in history
            assert "delta.columnMapping" not in spark.table("mapped").schema.json()
            spark.sql("ALTER TABLE mapped SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
            spark.sql("ALTER TABLE mapped RENAME COLUMN w TO v")
    finally:
        spark.sql("DROP TABLE mapped")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [([1], TypeError), ([{"name": "x"}], TypeError), ([{"name": "x", "dataType": "int", "type": "int"}], ValueError)],
)
def test_columns_of_wrong_types_are_refused(
    spark: SparkSession, path: str, arguments: list[object], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        DeltaTable.forPath(spark, path).addColumns(arguments)
    with pytest.raises(TypeError):
        DeltaTable.forPath(spark, path).replaceColumns(StructType)  # type: ignore[arg-type]
