"""Each method of delta.tables, called in the same way on delta-spark's classes and on ours: results and schemas are the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

import spark_plugin.tables
from tests.support.peers.method_peers import ABCD, SCHEMA, Run, Tables, made, outcome, rows_of, source_of, table_of


def described(tables: Tables, table: Any) -> Any:
    """The description of a table, as far as both have it."""
    frame = table.toDF()
    detail = table.detail().first().asDict()
    described_columns = ("format", "description", "partitionColumns", "clusteringColumns", "numFiles", "properties")
    fields = [(f.name, f.dataType.simpleString(), f.nullable, f.metadata.get("comment")) for f in frame.schema.fields]
    operations = [row["operation"] for row in table.history().collect()]
    return fields, {name: detail[name] for name in described_columns}, operations


def after(change: Callable[[Any, DataFrame], Any]) -> Run:
    """The rows after a change of a table of four rows. The table is opened again, because delta-spark's object caches the
    columns."""

    def run(tables: Tables, spark: SparkSession, path: str) -> Any:
        result = change(table_of(tables, spark, path), source_of(spark))
        return rows_of(tables.DeltaTable.forPath(spark, path).toDF()), None if result is None else rows_of(result)

    return run


def merged(build: Callable[[Any], Any], condition: Callable[[], Any] = lambda: "key = k") -> Run:
    """condition: made when there is a session."""
    return after(lambda table, source: build(table.merge(source, condition())).execute())


def merged_all(build: Callable[[Any], Any]) -> Run:
    return after(
        lambda table, source: build(
            table.alias("t").merge(source.toDF("key", "value").alias("s"), F.expr("t.key = s.key"))
        ).execute()
    )


CHANGES: dict[str, Run] = {
    "delete by text": after(lambda t, s: t.delete("key = 'a'")),
    "delete by column": after(lambda t, s: t.delete(F.col("key") == F.lit("b"))),
    "delete by name": after(lambda t, s: t.delete(condition="value > 2")),
    "delete all": after(lambda t, s: t.delete()),
    "delete none": after(lambda t, s: t.delete("value > 20")),
    "update by text": after(lambda t, s: t.update("key = 'a' or key = 'b'", {"value": "1"})),
    "update by column": after(lambda t, s: t.update(F.expr("key = 'a' or key = 'b'"), {"value": F.expr("0")})),
    "update all": after(lambda t, s: t.update(set={"value": "200"})),
    "update by names": after(lambda t, s: t.update(condition="value > 2", set={"value": F.col("value") * 2})),
    "merge of texts": merged(
        lambda m: (
            m.whenMatchedUpdate(set={"value": "v + 0"})
            .whenNotMatchedInsert(values={"key": "k", "value": "v + 0"})
            .whenNotMatchedBySourceUpdate(set={"value": "value + 0"})
        )
    ),
    "merge of columns": merged(
        lambda m: (
            m.whenMatchedUpdate(set={"value": F.col("v") + 0})
            .whenNotMatchedInsert(values={"key": "k", "value": F.col("v") + 0})
            .whenNotMatchedBySourceUpdate(set={"value": F.col("value") + 0})
        ),
        lambda: F.expr("key = k"),
    ),
    "merge, two updates by source": merged(
        lambda m: m.whenNotMatchedBySourceUpdate(condition="key = 'c'", set={"value": "5"}).whenNotMatchedBySourceUpdate(
            set={"value": "0"}
        )
    ),
    "merge, two deletes by source": merged(
        lambda m: m.whenNotMatchedBySourceDelete(condition="key = 'c'").whenNotMatchedBySourceDelete()
    ),
    "merge, clauses that never apply": merged(
        lambda m: (
            m.whenNotMatchedBySourceUpdate(condition="key = 'c'", set={"value": "5"})
            .whenNotMatchedBySourceUpdate(condition="key = 'c'", set={"value": "0"})
            .whenNotMatchedBySourceUpdate(condition="key = 'd'", set={"value": "6"})
            .whenNotMatchedBySourceDelete(condition="key = 'd'")
        )
    ),
    "merge, deletes between updates": merged(
        lambda m: (
            m.whenNotMatchedBySourceDelete(condition="key = 'c'")
            .whenNotMatchedBySourceUpdate(condition="key = 'c'", set={"value": "5"})
            .whenNotMatchedBySourceDelete(condition="key = 'd'")
            .whenNotMatchedBySourceUpdate(set={"value": "6"})
        )
    ),
    "merge by conditions": merged(
        lambda m: (
            m.whenMatchedUpdate(condition="k = 'a'", set={"value": "v + 0"})
            .whenMatchedDelete(condition="k = 'b'")
            .whenNotMatchedInsert(condition="k = 'e'", values={"key": "k", "value": "v + 0"})
            .whenNotMatchedBySourceUpdate(condition="key = 'c'", set={"value": F.col("value") + 0})
            .whenNotMatchedBySourceDelete(condition="key = 'd'")
        )
    ),
    "merge by conditions that are columns": merged(
        lambda m: (
            m.whenMatchedUpdate(condition=F.expr("k = 'a'"), set={"value": F.col("v") + 0})
            .whenMatchedDelete(condition=F.expr("k = 'b'"))
            .whenNotMatchedInsert(condition=F.expr("k = 'e'"), values={"key": "k", "value": F.col("v") + 0})
            .whenNotMatchedBySourceUpdate(condition=F.expr("key = 'c'"), set={"value": F.col("value") + 0})
            .whenNotMatchedBySourceDelete(condition=F.expr("key = 'd'"))
        )
    ),
    "merge by position": merged(
        lambda m: (
            m.whenMatchedUpdate("k = 'a'", {"value": "v + 0"})
            .whenMatchedDelete("k = 'b'")
            .whenNotMatchedInsert("k = 'e'", {"key": "k", "value": "v + 0"})
            .whenNotMatchedBySourceUpdate("key = 'c'", {"value": "value + 0"})
            .whenNotMatchedBySourceDelete("key = 'd'")
        )
    ),
    "merge of all columns": merged_all(lambda m: m.whenMatchedUpdateAll().whenNotMatchedInsertAll()),
    "merge of all columns by conditions": merged_all(
        lambda m: m.whenMatchedUpdateAll("s.key = 'a'").whenNotMatchedInsertAll("s.key = 'e'")
    ),
    "merge of all columns by columns": merged_all(
        lambda m: m.whenMatchedUpdateAll(F.expr("s.key = 'a'")).whenNotMatchedInsertAll(F.expr("s.key = 'e'"))
    ),
    "merge with evolution": after(
        lambda t, s: (
            t.alias("t")
            .merge(s.toDF("key", "extra").alias("s"), "t.key = s.key")
            .withSchemaEvolution()
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        )
    ),
}


def both_overwritten(tables: Tables, spark: SparkSession, path: str) -> Any:
    made(spark, path, ABCD[:2])
    changed = spark.createDataFrame([("a", 3), ("b", 2)], "key_new string, value_new bigint")
    changed.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    return tables.DeltaTable.forPath(spark, path)


def restored_to_version(tables: Tables, spark: SparkSession, path: str) -> Any:
    table = both_overwritten(tables, spark, path)
    metrics = table.restoreToVersion(0)
    names = [field.name for field in metrics.schema.fields]
    comparable_metrics = metrics.select([name for name in names if "size" not in name.lower()])
    return names, rows_of(comparable_metrics), rows_of(tables.DeltaTable.forPath(spark, path).toDF())


def restored_to_timestamp(tables: Tables, spark: SparkSession, path: str) -> Any:
    table = both_overwritten(tables, spark, path)
    first = table.history().where("version = 0").first()["timestamp"].strftime("%Y-%m-%d %H:%M:%S.%f")
    table.restoreToTimestamp(first)
    return rows_of(tables.DeltaTable.forPath(spark, path).toDF())


def history_of(tables: Tables, spark: SparkSession, path: str) -> Any:
    table = both_overwritten(tables, spark, path)
    table.delete("key_new = 'a'")
    frame, columns = table.history(), ("version", "operation", "readVersion", "isolationLevel", "isBlindAppend")
    return frame.schema.simpleString(), rows_of(frame.select(*columns)), table.history(1).count(), table.history(2).count()


def detail_of(tables: Tables, spark: SparkSession, path: str) -> Any:
    detail = table_of(tables, spark, path).detail()
    comparable_detail = detail.drop("id", "name", "location", "createdAt", "lastModified", "sizeInBytes")
    return detail.schema.simpleString(), rows_of(comparable_detail), detail.first()["location"].removesuffix(path)


def by_name(tables: Tables, spark: SparkSession, path: str) -> Any:
    name = "named_" + Path(path).name
    spark.createDataFrame(ABCD, SCHEMA).coalesce(1).write.format("delta").option("path", path).saveAsTable(name)
    try:
        table = tables.DeltaTable.forName(spark, name)
        table.delete("value = 2")
        quoted = tables.DeltaTable.forName(spark, f"delta.`{path}`")
        return rows_of(table.toDF()), rows_of(quoted.toDF())
    finally:
        spark.sql(f"DROP TABLE {name}")


def is_table(tables: Tables, spark: SparkSession, path: str) -> Any:
    spark.range(1).write.format("parquet").save(path + "_parquet")
    made(spark, path)
    is_delta_table = tables.DeltaTable.isDeltaTable
    return [is_delta_table(spark, text) for text in (path, path + "_parquet", path + "_nothing")]


def with_hadoop_options(tables: Tables, spark: SparkSession, path: str) -> Any:
    made(spark, path)
    options = {"fs.fake.impl": "a.b.C", "fs.fake.impl.disable.cache": "true"}
    return rows_of(tables.DeltaTable.forPath(spark, path, options).toDF())


def aliased(tables: Tables, spark: SparkSession, path: str) -> Any:
    table = table_of(tables, spark, path)
    return rows_of(table.alias("mine").toDF().select("mine.key")), rows_of(table.toDF().alias("x").select("x.value"))


def protocol_upgraded(tables: Tables, spark: SparkSession, path: str) -> Any:
    made(spark, path)
    table = tables.DeltaTable.forPath(spark, path)
    versions = []
    for reader, writer in ((1, 3), (1, 3), (2, 5)):
        table.upgradeTableProtocol(reader, writer)
        versions.append(tuple(table.detail().select("minReaderVersion", "minWriterVersion").first()))
    table.addFeatureSupport("deletionVectors")
    return versions, table.detail().first()["tableFeatures"]


def cloned(tables: Tables, spark: SparkSession, path: str) -> Any:
    table = both_overwritten(tables, spark, path)
    table.clone(path + "_now", isShallow=True, replace=False, properties={"why": "copy"})
    table.cloneAtVersion(0, path + "_then", isShallow=True)
    now, then = (tables.DeltaTable.forPath(spark, path + suffix) for suffix in ("_now", "_then"))
    return rows_of(now.toDF()), now.detail().first()["properties"], rows_of(then.toDF()), described(tables, then)


def built(builder: Any) -> Any:
    builder = builder.addColumn("col1", "int", comment="foo", nullable=False)
    builder = builder.addColumn("col2", IntegerType(), generatedAlwaysAs="col1 + 10")
    return builder.property("foo", "bar").comment("comment").partitionedBy("col1")


def generating(tables: Tables, spark: SparkSession, path: str, table: Any) -> Any:
    spark.sql(f"INSERT INTO delta.`{path}` (col1, col2) VALUES (1, 11)")
    table.update(F.expr("col2 = 11"), {"col1": F.expr("2")})
    return rows_of(table.toDF())


def created(how: str) -> Run:
    def run(tables: Tables, spark: SparkSession, path: str) -> Any:
        table = built(getattr(tables.DeltaTable, how)(spark).location(path)).execute()
        return described(tables, table), generating(tables, spark, path, table)

    return run


def created_twice(first: str, second: str) -> Run:
    def run(tables: Tables, spark: SparkSession, path: str) -> Any:
        getattr(tables.DeltaTable, first)(spark).location(path).addColumn("c1", "int").execute()
        table = built(getattr(tables.DeltaTable, second)(spark).location(path)).execute()
        return described(tables, table)

    return run


def created_of_a_schema(tables: Tables, spark: SparkSession, path: str) -> Any:
    schema = spark.createDataFrame(ABCD, SCHEMA).schema
    descriptions = []
    for suffix, columns, parts in (("1", schema, [["value2", "value"]]), ("2", schema.fields, ["value2", "value"])):
        builder = tables.DeltaTable.create(spark).location(path + suffix).addColumns(columns)
        descriptions.append(described(tables, builder.addColumn("value2", dataType="int").partitionedBy(*parts).execute()))
    return descriptions


def created_without_a_session(tables: Tables, spark: SparkSession, path: str) -> Any:
    descriptions = []
    for how, column in (("create", "a"), ("createIfNotExists", "b"), ("replace", "c")):
        descriptions.append(
            described(tables, getattr(tables.DeltaTable, how)().location(path).addColumn(column, "int").execute())
        )
    return descriptions


def clustered(tables: Tables, spark: SparkSession, path: str) -> Any:
    builder = tables.DeltaTable.create(spark).location(path).addColumn("a", "int").addColumn("b", "string")
    table = builder.clusterBy("b", "a").execute()
    return described(tables, table)


def numbered(tables: Tables, spark: SparkSession, path: str) -> Any:
    generator = tables.IdentityGenerator
    builder = tables.DeltaTable.create(spark).location(path).addColumn("name", "string")
    builder = builder.addColumn("a", "bigint", generatedAlwaysAs=generator(start=3, step=2))
    builder.addColumn("b", "bigint", generatedByDefaultAs=generator()).execute()
    spark.sql(f"INSERT INTO delta.`{path}` (name) VALUES ('x'), ('y')")
    return [(f.name, f.metadata) for f in spark.read.format("delta").load(path).schema.fields][:1], sorted(
        tuple(row) for row in spark.read.format("delta").load(path).select("a", "b").collect()
    )


def lowered(tables: Tables, spark: SparkSession, path: str) -> Any:
    table = table_of(tables, spark, path)
    table.upgradeTableProtocol(1, 3)
    table.upgradeTableProtocol(1, 2)
    return tuple(table.detail().select("minReaderVersion", "minWriterVersion").first())


OTHERS: dict[str, Run] = {
    "forPath": lambda tables, spark, path: rows_of(table_of(tables, spark, path).toDF()),
    "forPath with options of Hadoop": with_hadoop_options,
    "forPath of nothing": lambda tables, spark, path: tables.DeltaTable.forPath(spark, path),
    "forName": by_name,
    "forName of nothing": lambda tables, spark, path: tables.DeltaTable.forName(spark, "not_there_at_all"),
    "alias and toDF": aliased,
    "isDeltaTable": is_table,
    "history": history_of,
    "detail": detail_of,
    "restoreToVersion": restored_to_version,
    "restoreToVersion of nothing": lambda tables, spark, path: table_of(tables, spark, path).restoreToVersion(7),
    "restoreToTimestamp": restored_to_timestamp,
    "restoreToTimestamp of no time": lambda tables, spark, path: table_of(tables, spark, path).restoreToTimestamp("05/04/1999"),
    "restoreToTimestamp before all": lambda tables, spark, path: table_of(tables, spark, path).restoreToTimestamp("1999-04-05"),
    "upgradeTableProtocol and addFeatureSupport": protocol_upgraded,
    "upgradeTableProtocol to lower versions": lowered,
    "addFeatureSupport of nothing": lambda tables, spark, path: table_of(tables, spark, path).addFeatureSupport("abc"),
    "clone": cloned,
    "create": created("create"),
    "createIfNotExists": created("createIfNotExists"),
    "createOrReplace": created("createOrReplace"),
    "create where a table is": created_twice("create", "create"),
    "createIfNotExists where a table is": created_twice("create", "createIfNotExists"),
    "replace": created_twice("create", "replace"),
    "replace of nothing": created("replace"),
    "create of a schema": created_of_a_schema,
    "create without a session": created_without_a_session,
    "create with clustering": clustered,
    "create with identity columns": numbered,
}


@pytest.mark.parametrize("name", [*CHANGES, *OTHERS])
def test_method_does_what_delta_tables_does(spark: SparkSession, tmp_path: Path, name: str) -> None:
    theirs, run = pytest.importorskip("delta.tables"), {**CHANGES, **OTHERS}[name]
    expected = outcome(run, theirs, spark, str(tmp_path / "theirs"))
    assert outcome(run, spark_plugin.tables, spark, str(tmp_path / "ours")) == expected


def upgraded_too_far(tables: Tables, spark: SparkSession, path: str) -> Any:
    """Versions with table features but without a feature, which delta-spark does not change."""
    table = table_of(tables, spark, path)
    table.upgradeTableProtocol(3, 7)
    return tuple(table.detail().select("minReaderVersion", "minWriterVersion").first())


def is_named_by_path(tables: Tables, spark: SparkSession, path: str) -> Any:
    made(spark, path)
    return tables.DeltaTable.isDeltaTable(spark, f"delta.`{path}`")


def replaced_by_path(tables: Tables, spark: SparkSession, path: str) -> Any:
    for column in ("a", "b"):
        table = tables.DeltaTable.createOrReplace(spark).location(path).addColumn(column, "int").execute()
    return table.toDF().columns


# Our result, and delta-spark's.
DIFFERENT: dict[str, tuple[Run, Any, Any]] = {
    "upgradeTableProtocol to table features": (upgraded_too_far, (3, 7), (1, 2)),
    "isDeltaTable of a name": (is_named_by_path, True, False),
    "createOrReplace by path": (replaced_by_path, ["b"], ("refused", "DELTA_CREATE_TABLE_SCHEME_MISMATCH")),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_method_that_differs_from_that_of_delta_tables(spark: SparkSession, tmp_path: Path, name: str) -> None:
    theirs, (run, ours, expected) = pytest.importorskip("delta.tables"), DIFFERENT[name]
    assert outcome(run, theirs, spark, str(tmp_path / "theirs")) == expected
    assert outcome(run, spark_plugin.tables, spark, str(tmp_path / "ours")) == ours
