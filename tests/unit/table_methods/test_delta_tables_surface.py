"""The classes of delta.tables 4.4: users change only one import. Additional arguments are pydelta's own."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import spark_plugin
from spark_plugin import tables

CLONE = ("target", "isShallow", "replace", "properties")
METHODS: dict[str, tuple[str, ...]] = {
    "DeltaTable.toDF": (),
    "DeltaTable.alias": ("aliasName",),
    "DeltaTable.generate": ("mode",),
    "DeltaTable.delete": ("condition",),
    "DeltaTable.update": ("condition", "set"),
    "DeltaTable.merge": ("source", "condition"),
    "DeltaTable.vacuum": ("retentionHours",),
    "DeltaTable.history": ("limit",),
    "DeltaTable.detail": (),
    "DeltaTable.convertToDelta": ("sparkSession", "identifier", "partitionSchema"),
    "DeltaTable.forPath": ("sparkSession", "path", "hadoopConf"),
    "DeltaTable.forName": ("sparkSession", "tableOrViewName"),
    "DeltaTable.create": ("sparkSession",),
    "DeltaTable.createIfNotExists": ("sparkSession",),
    "DeltaTable.replace": ("sparkSession",),
    "DeltaTable.createOrReplace": ("sparkSession",),
    "DeltaTable.isDeltaTable": ("sparkSession", "identifier"),
    "DeltaTable.upgradeTableProtocol": ("readerVersion", "writerVersion"),
    "DeltaTable.addFeatureSupport": ("featureName",),
    "DeltaTable.dropFeatureSupport": ("featureName", "truncateHistory"),
    "DeltaTable.restoreToVersion": ("version",),
    "DeltaTable.restoreToTimestamp": ("timestamp",),
    "DeltaTable.optimize": (),
    "DeltaTable.clone": CLONE,
    "DeltaTable.cloneAtVersion": ("version", *CLONE),
    "DeltaTable.cloneAtTimestamp": ("timestamp", *CLONE),
    "DeltaMergeBuilder.whenMatchedUpdate": ("condition", "set"),
    "DeltaMergeBuilder.whenMatchedUpdateAll": ("condition",),
    "DeltaMergeBuilder.whenMatchedDelete": ("condition",),
    "DeltaMergeBuilder.whenNotMatchedInsert": ("condition", "values"),
    "DeltaMergeBuilder.whenNotMatchedInsertAll": ("condition",),
    "DeltaMergeBuilder.whenNotMatchedBySourceUpdate": ("condition", "set"),
    "DeltaMergeBuilder.whenNotMatchedBySourceDelete": ("condition",),
    "DeltaMergeBuilder.withSchemaEvolution": (),
    "DeltaMergeBuilder.execute": (),
    "DeltaTableBuilder.tableName": ("identifier",),
    "DeltaTableBuilder.location": ("location",),
    "DeltaTableBuilder.comment": ("comment",),
    "DeltaTableBuilder.addColumn": (
        *("colName", "dataType", "nullable", "generatedAlwaysAs", "generatedByDefaultAs", "comment"),
    ),
    "DeltaTableBuilder.addColumns": ("cols",),
    "DeltaTableBuilder.partitionedBy": ("cols",),
    "DeltaTableBuilder.clusterBy": ("cols",),
    "DeltaTableBuilder.property": ("key", "value"),
    "DeltaTableBuilder.execute": (),
    "DeltaOptimizeBuilder.where": ("partitionFilter",),
    "DeltaOptimizeBuilder.executeCompaction": (),
    "DeltaOptimizeBuilder.executeZOrderBy": ("cols",),
    "IdentityGenerator": ("start", "step"),
}


def found(name: str) -> Any:
    value: Any = tables
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", METHODS)
def test_method_takes_the_arguments_of_delta_tables(name: str) -> None:
    parameters = [p for p in inspect.signature(found(name)).parameters.values() if p.name != "self"]
    assert tuple(p.name for p in parameters[: len(METHODS[name])]) == METHODS[name]
    own_parameters = parameters[len(METHODS[name]) :]
    assert all(p.default is not p.empty for p in own_parameters), "arguments of ours may be left out"


@pytest.mark.parametrize("name", ["DeltaTable", "DeltaTableBuilder", "DeltaColumnBuilder", "DeltaMergeBuilder"])
def test_class_is_named_in_tables(name: str) -> None:
    assert inspect.isclass(getattr(tables, name)) and name in tables.__all__


def test_delta_table_is_the_same_by_both_imports() -> None:
    assert spark_plugin.DeltaTable is tables.DeltaTable
