"""The answers of statements for Delta tables about tables, views and directories that are not Delta tables.

    answer_by_name(spark, utility, table_name)            # DESCRIBE DETAIL of a table: one row; everything else raises
    answer_by_path(spark, utility, path, error)      # the same for a directory: DESCRIBE DETAIL '/data/files'

The conditions are delta-spark's, except for RESTORE of a table: delta-spark says that the table cannot be found.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from delta_py.errors import DeltaError, InvalidOptionError, TableNotFoundError, UnsupportedOperationError
from delta_py.types.names import quoted
from spark_plugin.dataframe_api import catalog
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.internals.wrapping import spark_sql
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.source.view_source import VIEW_SCHEMAS
from spark_plugin.sql import grammar
from spark_plugin.sql.grammar import Utility
from spark_plugin.sql.syntax import TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STATEMENTS: dict[type[Any], str] = {
    grammar.Optimize: "OPTIMIZE",
    grammar.Vacuum: "VACUUM",
    grammar.History: "DESCRIBE HISTORY",
    grammar.Detail: "DESCRIBE DETAIL",
    grammar.Restore: "RESTORE",
    grammar.Generate: "GENERATE",
    grammar.Reorg: "REORG",
    grammar.Fsck: "FSCK REPAIR TABLE",
    grammar.Clone: "CLONE",
    grammar.AddConstraint: "ALTER TABLE ADD CONSTRAINT",
    grammar.DropConstraint: "ALTER TABLE DROP CONSTRAINT",
    grammar.AddFeature: "ALTER TABLE ADD FEATURE",
    grammar.DropFeature: "ALTER TABLE DROP FEATURE",
    grammar.ClusterBy: "ALTER TABLE CLUSTER BY",
    grammar.SyncIdentity: "ALTER TABLE ALTER COLUMN SYNC IDENTITY",
    grammar.CreateIndex: "CREATE INDEX",
    grammar.DropIndex: "DROP INDEX",
}
_WITH_PATH_CONDITION = (grammar.History, grammar.Optimize, grammar.Vacuum)
"""Statements that name a directory as '/path', for which delta-spark has a special condition."""


def name_text(table_name: TableName) -> str:
    """Return a table's name, quoted where SQL needs it, or its path."""
    return table_name.path if table_name.path is not None else ".".join(map(quoted, table_name.parts))


def no_table(table_name: TableName) -> TableNotFoundError:
    """Return the error for a name that stands for no Delta table."""
    return TableNotFoundError(
        f"{name_text(table_name)} is not a Delta table. Nothing was changed. Check the name.", table=name_text(table_name)
    )


def answer_by_name(spark: SparkSession, utility: Utility, table_name: TableName) -> DataFrame:
    """Return the row of DESCRIBE DETAIL for a table of another format; for any other statement raise its error. table_name: a
    name that stands for no Delta table. Raises TableNotFoundError, UnsupportedOperationError."""
    with as_spark_raises():
        if table_name.path is not None:
            raise no_table(table_name)
        name, statement = name_text(table_name), _STATEMENTS[type(utility)]
        try:
            entry = None if catalog.format_and_path(name) is not None else catalog.find(spark, name)
        except (InvalidOptionError, UnsupportedOperationError):  # a name of another catalog, which may have Delta tables
            raise no_table(table_name) from None
        except PySparkException:  # no such database
            entry = None
        if entry is None:
            raise TableNotFoundError(
                f"{statement}: the table {name} cannot be found in the catalog. Nothing was changed. Check the name. A Delta "
                "table that is not in the catalog has the name pydelta.`/path`.",
                error_class="TABLE_OR_VIEW_NOT_FOUND",
                table=name,
            )
        if entry.is_delta or isinstance(utility, grammar.Clone):
            raise no_table(table_name)
        if not entry.provider and not isinstance(utility, grammar.Restore):
            raise UnsupportedOperationError(
                f"{statement} is for tables, and {name} is a view. Nothing was changed. Name the table that the view reads.",
                error_class="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                sql_state="42809",
                table=name,
            )
        if not isinstance(utility, grammar.Detail):
            raise _only_for_delta(utility, name, entry.kind)
        return _detail(spark, _facts_of_table(spark, name))


def answer_by_path(spark: SparkSession, utility: Utility, table_name: TableName, error: TableNotFoundError) -> DataFrame:
    """Do the same as answer_by_name for a path without a Delta table. error: the error of DeltaTable.forPath. It is raised here
    unless delta-spark has another condition for the statement."""
    with as_spark_raises():
        path, statement = table_name.path, _STATEMENTS[type(utility)]
        if isinstance(utility, grammar.Detail) and path is not None:
            if isinstance(error.__cause__, DeltaError) and error.__cause__.error_class == "DELTA_PATH_DOES_NOT_EXIST":
                raise TableNotFoundError(
                    f"{statement}: {path} does not exist. Check the path.",
                    error_class="DELTA_FILE_NOT_FOUND",
                    sql_state="42K03",
                    path=path,
                )
            return _detail(spark, {"location": path, "properties": {}})
        if isinstance(utility, grammar.Reorg):
            raise _only_for_delta(utility, name_text(table_name), "no table", "DELTA_ONLY_OPERATION")
        if isinstance(utility, grammar.History) or (path is not None and isinstance(utility, _WITH_PATH_CONDITION)):
            raise _only_for_delta(utility, name_text(table_name), "no Delta table", "DELTA_TABLE_ONLY_OPERATION")
        raise error


def _only_for_delta(utility: Utility, name: str, kind: str, condition: str | None = None) -> UnsupportedOperationError:
    """Return the error for a statement that is for Delta tables only. kind: what the name stands for, such as "no Delta table".
    condition: None for the condition that names of the catalog
    get."""
    if condition is None:
        condition = "DELTA_NOT_A_DELTA_TABLE" if isinstance(utility, grammar.Reorg) else "DELTA_ONLY_OPERATION"
    return UnsupportedOperationError(
        f"{_STATEMENTS[type(utility)]} is for Delta tables only, and {name} is {kind}. Nothing was changed. Name a Delta table; "
        "CONVERT TO DELTA makes one of a directory of Parquet files.",
        error_class=condition,
        sql_state="0AKDD",
        table=name,
    )


# ---------------------------------------------------------------- DESCRIBE DETAIL


def _detail(spark: SparkSession, facts: dict[str, Any]) -> DataFrame:
    """Return one row of DESCRIBE DETAIL. facts: values by column; other columns are null."""
    schema = to_spark_schema(VIEW_SCHEMAS["detail"])
    return spark.createDataFrame([tuple(facts.get(name) for name in schema.names)], schema)


def _facts_of_table(spark: SparkSession, name: str) -> dict[str, Any]:
    """Return the catalog's facts about the table, by the columns of DESCRIBE DETAIL."""
    row = spark_sql(spark, f"DESCRIBE TABLE EXTENDED {catalog.quoted_name(name)} AS JSON").first()
    facts = json.loads(row[0])
    return {
        "format": facts["provider"].lower(),
        "name": ".".join([facts["catalog_name"], *facts["namespace"], facts["table_name"]]),
        "description": facts.get("comment", ""),
        "location": facts.get("location"),
        "createdAt": datetime.fromisoformat(facts["created_time"]),
        "partitionColumns": facts.get("partition_columns", []),
        "properties": facts.get("table_properties", {}),
    }
