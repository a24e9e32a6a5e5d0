"""The arguments of DeltaTable's ALTER TABLE methods as commands that travel: columns, changes of columns, constraints.

new_columns("x INT COMMENT 'c', y STRING")     # arguments of the command addColumns
add_constraint(spark, table, "positive", "amount > 0")
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from delta_py.alter.table_constraints import check_new_constraint
from delta_py.errors import DeltaError
from delta_py.row_rules.hidden_rule_columns import rule_column
from delta_py.row_rules.row_constraints import RowRule
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from spark_plugin.data_source import FORMAT
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.options.settings import TablePath, check_rule_text, conf
from spark_plugin.run_command import run_command
from spark_plugin.spark_versions import resolvable_rule_text
from spark_plugin.table_api.arguments import check_flag, check_text, wrong_type
from spark_plugin.tasks.run_near_table import at_table

# What a dict can say about a new column, and about a change of a column.
_NEW_COLUMN_KEYS = frozenset({"name", "dataType", "nullable", "comment", "default", "first", "after"})
_CHANGE_KEYS = frozenset({"dataType", "nullable", "comment", "default", "dropDefault", "first", "after"})


def new_columns(columns: Any) -> list[dict[str, Any]]:
    """Return for each column the arguments that the command addColumns takes. columns: DDL, a StructType, or a list of
    StructFields and of dicts with name, dataType and optional entries."""
    if isinstance(columns, str):
        columns = spark_types.StructType.fromDDL(columns)
    if isinstance(columns, spark_types.StructType):
        return [_new_column(f.name, f, quoted=True) for f in columns.fields]
    column_list = columns if isinstance(columns, list | tuple) else [columns]
    return [_new_column_of_list(column) for column in column_list]


def _new_column_of_list(column: Any) -> dict[str, Any]:
    """Return the arguments for a StructField or a dict. Its name may be a path with dots, for a field in a struct."""
    if isinstance(column, spark_types.StructField):
        return _new_column(column.name, column)
    if not isinstance(column, dict):
        wrong_type("Columns must be DDL, a StructType, or a list of StructFields and dicts.", [column])
    _check_keys(column, _NEW_COLUMN_KEYS)
    check_text(column.get("name"), "name")
    field = spark_types.StructField("column", _type_of(column.get("dataType")), column.get("nullable", True))
    arguments = {key: column[key] for key in ("comment", "default", "first", "after") if column.get(key) is not None}
    return _new_column(column["name"], field) | arguments


def _new_column(name: str, field: spark_types.StructField, *, quoted: bool = False) -> dict[str, Any]:
    """Return the arguments for one column. quoted: the name is one name, whatever characters it contains; otherwise dots in it
    separate the names of a path."""
    return {"name": [name] if quoted else name, "schema": _schema_of(field)}


def column_changes(changes: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each column the arguments that the command changeColumns takes. changes: by column, dicts with the properties
    to change; those with the value None do not change."""
    return [_change(name, change) for name, change in changes.items()]


def _change(name: Any, change: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for the change of one column. Raises ValueError for a wrong name, key or value."""
    check_text(name, "name")
    _check_keys(change, _CHANGE_KEYS)
    arguments: dict[str, Any] = {"name": name}
    for key, value in change.items():
        if value is None:
            continue
        if key == "dataType":
            arguments["schema"] = _schema_of(spark_types.StructField("column", _type_of(value)))
        elif key in ("nullable", "dropDefault", "first"):
            check_flag(value, key)
            arguments["drop_default" if key == "dropDefault" else key] = value
        else:
            check_text(value, key)
            arguments[key] = value
    return arguments


def check_defaults(spark: Any, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the columns, new or changed. Raises InvalidOptionError for a default that the session's parser reads differently."""
    with as_spark_raises():
        for column in columns:
            if "default" in column:
                check_rule_text(spark, f"The default of column {column['name']}", column["default"])
    return columns


def replaced_columns(columns: Any) -> str:
    """Return the argument of the command replaceColumns: the new schema in JSON. columns: DDL, a StructType, or a list of
    StructFields."""
    if isinstance(columns, str):
        columns = spark_types.StructType.fromDDL(columns)
    if isinstance(columns, list | tuple):
        columns = spark_types.StructType(list(columns))
    if not isinstance(columns, spark_types.StructType):
        wrong_type("Columns must be DDL, a StructType, or a list of StructFields.", [columns])
    return str(columns.json())


def _check_keys(entries: Mapping[str, Any], allowed_keys: frozenset[str]) -> None:
    unknown_keys = sorted(entries.keys() - allowed_keys)
    if unknown_keys:
        raise ValueError(f"{', '.join(unknown_keys)}: of a column can be said {', '.join(sorted(allowed_keys))}.")


def _type_of(type_argument: Any) -> spark_types.DataType:
    """Return a type that the caller gave as DDL or as a DataType. Raises TypeError for anything else."""
    if not isinstance(type_argument, str | spark_types.DataType):
        wrong_type("Column data type must be str or DataType.", [type_argument])
    return spark_types.DataType.fromDDL(type_argument) if isinstance(type_argument, str) else type_argument


def _schema_of(field: spark_types.StructField) -> str:
    """Return a schema with only this field, in JSON: the commands take types in this form."""
    return json.dumps({"type": "struct", "fields": [field.jsonValue()]})


# ---------------------------------------------------------------- constraints


def add_constraint(spark: Any, table: TablePath, name: str, sql: str) -> None:
    """Let Spark count the rows of the newest version that violate the condition, and add the constraint if there are none.

    Raises the same as delta_py's add_constraint; InvalidOptionError for a condition that the session's parser would read
    differently.
    """
    zone = conf(spark, "spark.sql.session.timeZone") or "UTC"
    with as_spark_raises():
        check_rule_text(spark, f"The constraint {name}", sql)
        version, condition = at_table(spark, partial(_version_and_condition, table.open_store(spark), name, sql, zone))
    # A missing file may have rows that violate the condition, even if the session ignores missing files.
    read_options = {"versionAsOf": str(version), "ignoreMissingFiles": "false"}
    rows = spark.read.format(FORMAT).options(**table.storage).options(**read_options).load(table.url)
    with as_spark_raises():
        resolvable_condition = resolvable_rule_text(spark, condition)
    # A row for which the condition is null violates it too.
    broken_rows = rows.where(~F.coalesce(F.expr(f"({resolvable_condition})"), F.lit(False))).count()
    arguments = {"name": name, "sql": sql, "version": version, "broken_rows": broken_rows, "time_zone": zone}
    run_command(spark, table, "addConstraint", arguments)


def _version_and_condition(store: ObjectStore, name: str, sql: str, time_zone: str) -> tuple[int, str]:
    """Return the newest version, and the condition for Spark: if possible, without functions of the session. Raises the errors of
    a constraint that the table cannot get."""
    snapshot = Snapshot.load(store)
    rule = RowRule("check", name, sql)
    check_new_constraint(snapshot.config, rule, time_zone)
    try:
        return snapshot.version, rule_column(rule, snapshot.schema, snapshot.config.partition_columns).condition
    except DeltaError:  # only Spark can compute the condition, so it gets the user's text
        return snapshot.version, sql
