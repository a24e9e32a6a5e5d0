"""Wrong arguments of the methods of delta.tables: our classes refuse them with the same error and text as delta-spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

import spark_plugin.tables
from tests.support.peers.method_peers import Run, made, outcome, source_of


def refusing(call: Callable[[Any, DataFrame], Any]) -> Run:
    """path: of an existing table. The call must have no effect."""
    return lambda tables, spark, path: call(tables.DeltaTable.forPath(spark, path), source_of(spark))


def builder_refusing(call: Callable[[Any], Any]) -> Run:
    return lambda tables, spark, path: call(tables.DeltaTable.create(spark)) and None


CLAUSES = {
    "whenMatchedUpdate": "set",
    "whenNotMatchedInsert": "values",
    "whenNotMatchedBySourceUpdate": "set",
}
BAD: dict[str, Run] = {
    "delete": refusing(lambda t, s: t.delete(condition=1)),
    "update, a dict for the condition": refusing(lambda t, s: t.update({"value": "200"})),
    "update without set": refusing(lambda t, s: t.update(condition="a")),
    "update, a number for set": refusing(lambda t, s: t.update(set=1)),
    "update, a number for the condition": refusing(lambda t, s: t.update(1, {})),
    "update to a number": refusing(lambda t, s: t.update(set={"value": 1})),
    "update of a number": refusing(lambda t, s: t.update(set={1: ""})),
    "merge of a number": refusing(lambda t, s: t.merge(1, "key = k")),
    "merge of nothing": refusing(lambda t, s: t.merge(None, "key = k")),
    "merge by a number": refusing(lambda t, s: t.merge(s, 1)),
    "merge by nothing": refusing(lambda t, s: t.merge(s, None)),
    "whenMatchedDelete": refusing(lambda t, s: t.merge(s, "key = k").whenMatchedDelete(1)),
    "whenNotMatchedBySourceDelete": refusing(lambda t, s: t.merge(s, "key = k").whenNotMatchedBySourceDelete(1)),
    "reader version": refusing(lambda t, s: t.upgradeTableProtocol("abc", 3)),
    "reader version, a list": refusing(lambda t, s: t.upgradeTableProtocol([1], 3)),
    "writer version": refusing(lambda t, s: t.upgradeTableProtocol(1, "abc")),
    "writer version, a dict": refusing(lambda t, s: t.upgradeTableProtocol(1, {})),
    "feature": refusing(lambda t, s: t.addFeatureSupport(12)),
    "feature to drop": refusing(lambda t, s: t.dropFeatureSupport([])),
    "history to drop": refusing(lambda t, s: t.dropFeatureSupport("abc", 12)),
    "version": refusing(lambda t, s: t.restoreToVersion("0")),
    "time": refusing(lambda t, s: t.restoreToTimestamp(12342323232)),
    "clone to a number": refusing(lambda t, s: t.clone(1)),
    "clone with a text": refusing(lambda t, s: t.clone("x", isShallow="yes")),
    "clone with properties of numbers": refusing(lambda t, s: t.clone("x", properties={1: "a"})),
    "clone at no version": refusing(lambda t, s: t.cloneAtVersion("1", "x")),
    "clone at no time": refusing(lambda t, s: t.cloneAtTimestamp(1, "x")),
    "table name": builder_refusing(lambda b: b.tableName(1)),
    "location": builder_refusing(lambda b: b.location(1)),
    "comment": builder_refusing(lambda b: b.comment(1)),
    "column name": builder_refusing(lambda b: b.addColumn(1, "int")),
    "column type": builder_refusing(lambda b: b.addColumn("a", 1)),
    "column type that is none": builder_refusing(lambda b: b.addColumn("a", "1")),
    "column comment": builder_refusing(lambda b: b.addColumn("a", "int", comment=1)),
    "column generation": builder_refusing(lambda b: b.addColumn("a", "int", generatedAlwaysAs=1)),
    "column default": builder_refusing(lambda b: b.addColumn("a", "int", generatedByDefaultAs="x")),
    "column nullable": builder_refusing(lambda b: b.addColumn("a", "int", nullable=1)),
    "columns": builder_refusing(lambda b: b.addColumns(1)),
    "columns, one of which is none": builder_refusing(lambda b: b.addColumns([StructField("1", IntegerType()), 1])),
    "partitions": builder_refusing(lambda b: b.partitionedBy(1)),
    "partitions, some": builder_refusing(lambda b: b.partitionedBy(1, "1")),
    "partitions, a list": builder_refusing(lambda b: b.partitionedBy([1])),
    "clusters": builder_refusing(lambda b: b.clusterBy(1)),
    "clusters, some": builder_refusing(lambda b: b.clusterBy(1, "1")),
    "clusters, a list": builder_refusing(lambda b: b.clusterBy([1])),
    "property key": builder_refusing(lambda b: b.property(1, "1")),
    "property value": builder_refusing(lambda b: b.property("1", 1)),
    "no place": builder_refusing(lambda b: b.addColumns(StructType().add("a", "int")).execute()),
}
for clause, argument in CLAUSES.items():
    for what, arguments in {
        "a dict for the condition": ([{"value": "v"}], {}),
        "a number alone": ([1], {}),
        "nothing but a condition": ([], {"condition": "key = 'a'"}),
        "a number for the condition": ([1, {"value": "1"}], {}),
        "a number for the values": (["key = 'a'", 1], {}),
        "a number as value": ([], {argument: {"value": 1}}),
        "a number as column": ([], {argument: {1: ""}}),
        "both exchanged": ([], {argument: "k = 'a'", "condition": {"value": 1}}),
    }.items():
        positional, named = arguments
        BAD[f"{clause}, {what}"] = refusing(
            lambda t, s, clause=clause, positional=positional, named=named: getattr(t.merge(s, "key = k"), clause)(
                *positional, **named
            )
        )


@pytest.fixture(scope="module")
def shared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("shared") / "t")
    made(spark, path)
    return path


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused_as_by_delta_tables(spark: SparkSession, shared: str, name: str) -> None:
    theirs = pytest.importorskip("delta.tables")
    expected = outcome(BAD[name], theirs, spark, shared)
    assert expected[0] in ("refused", "TypeError", "ValueError")
    assert outcome(BAD[name], spark_plugin.tables, spark, shared) == expected
