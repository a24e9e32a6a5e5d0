"""Rules of a table (CHECK constraints, column invariants, generated columns) that only Spark can compute: a save adds hidden
columns with their results to the rows.

    frame = with_rule_columns(frame, rules, nonce)

Spark only gets the text of a rule that expressions/sql_text/spark_rules.py prints. It computes the rule from the row as pydelta
will write it: the columns that a rule names are cast to the table's types by Spark's own store assignment, an empty text in a
partition column is null, and a missing column is null or has its generated value, which then counts as given by the user. This
module uses only DataFrames, so that it works in the same way over Spark Connect.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField

from delta_py.errors import DeltaError, SchemaMismatchError
from delta_py.expressions.coercion import may_assign
from delta_py.row_rules.hidden_rule_columns import RulesForSpark, rules_for_spark
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.names import quoted
from delta_py.types.schema import BINARY, STRING
from delta_py.types.schema import StructField as DeltaField
from spark_plugin.data_source import FORMAT
from spark_plugin.dml.store_assignment import StoreAssignment, Typed
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.options.common import FACTS, FACTS_OF_WRITES
from spark_plugin.options.settings import TablePath, conf
from spark_plugin.schema_conversion import delta_type, spark_type
from spark_plugin.session_source import private
from spark_plugin.spark_versions import resolvable_rule_text
from spark_plugin.tasks.run_near_table import at_table


def rules_of_table(spark: Any, table: TablePath, frame: Any) -> RulesForSpark | None:
    """Return what Spark has to compute before the frame's rows may be written to the table. None if there is no table, nothing to
    compute, or if the write would still be refused. Over Spark Connect a job reads the rules from the table."""
    zone = conf(spark, "spark.sql.session.timeZone") or "UTC"
    snapshot = at_table(spark, partial(_load_snapshot, table.open_store(spark)))
    return None if snapshot is None else rules_for_spark(snapshot.config, tuple(frame.columns), zone)


def needs_save(spark: Any, table: TablePath) -> bool:
    """Return whether new rows of the table need what only a save provides, and Spark's own writes through the catalogs do not:
    numbers of identity columns, values of generated ones, results of rules that only Spark can compute. It costs an analysis, no
    job.

    Raises the same as `load` for a table that does not exist.
    """
    private_options = private(spark, {FACTS: FACTS_OF_WRITES})
    fields = spark.read.format(FORMAT).options(**private_options, **table.storage).load(table.url).schema.fields
    return bool(fields) and bool(json.loads(fields[0].metadata[FACTS]).get("needs_save"))


def _load_snapshot(store: ObjectStore) -> Snapshot | None:
    """Return the table's newest version; None if there is no table or it cannot be read."""
    try:
        return Snapshot.load(store)
    except (DeltaError, OSError):  # the write reports this error
        return None


def with_rule_columns(frame: Any, rules: RulesForSpark, nonce: str) -> Any:
    """Return the frame with the default values of columns that it lacks, with the columns that rules name in the table's types,
    and with a boolean column for the result of each rule after them; None if a rule is no condition, because its result is not
    boolean. nonce: a part of the names of the result columns.

    Raises SchemaMismatchError for a column that the table's column does not accept, AnalysisException for a rule that Spark
    refuses; UnsupportedTableFeatureError for a default that Spark must not compute; UnsupportedOperationError as
    resolvable_rule_text.
    """
    from delta_py.expressions.sql_text.spark_rules import null_if_empty  # the import of sqlglot costs more than a small write
    from spark_plugin.dml.column_defaults import default_of

    spark = frame.sparkSession
    frame = frame.select("*", *(default_of(spark, field).alias(field.name) for field in rules.defaults))
    if not rules.columns:
        return frame
    rows = frame.select(*_input_columns(frame, rules))
    for field in rules.inputs:
        if field.data_type in (STRING, BINARY) and field.name in rules.partition_columns:
            rows = rows.withColumn(field.name, F.expr(resolvable_rule_text(spark, null_if_empty(field.name))))
    for rule in rules.generated:
        assert rule.value is not None
        rows = rows.withColumn(rule.rule.name, F.expr(resolvable_rule_text(spark, rule.value)))
    result_columns = [F.expr(resolvable_rule_text(spark, rule.condition)).alias(rule.name(nonce)) for rule in rules.columns]
    rows_with_results = rows.select("*", *result_columns)
    result_types = [field.dataType for field in rows_with_results.schema.fields[-len(result_columns) :]]
    return rows_with_results if all(isinstance(data_type, BooleanType) for data_type in result_types) else None


def _input_columns(frame: Any, rules: RulesForSpark) -> list[Column]:
    """Return the frame's columns, and after them nulls for the columns that rules name and the frame lacks. Columns that rules
    name get the table's names and types.
    """
    fields_by_name = {field.name.lower(): field for field in rules.inputs}
    store_assignment = StoreAssignment(adapter_of(frame.sparkSession), "ANSI", evolves=False)
    columns = []
    for frame_field in frame.schema.fields:
        column, field = F.col(quoted(frame_field.name)), fields_by_name.get(frame_field.name.lower())
        if field is None:
            columns.append(column.alias(frame_field.name))
        else:
            columns.append(_cast_for_table(column, frame_field, field, store_assignment).alias(field.name))
    return [*columns, *(F.lit(None).cast(spark_type(field.data_type)).alias(field.name) for field in rules.absent)]


def _cast_for_table(column: Column, frame_field: StructField, field: DeltaField, store_assignment: StoreAssignment) -> Column:
    """Return the column in the table's type. frame_field: of the frame; field: of the table. Raises SchemaMismatchError if the
    table's column does not accept the type."""
    table_type = spark_type(field.data_type)
    if frame_field.dataType.simpleString() == table_type.simpleString():
        return column
    if not may_assign(delta_type(frame_field.dataType), field.data_type):
        raise SchemaMismatchError(
            f"Column {field.name} of the table is {table_type.simpleString()} and cannot take "
            f"{frame_field.dataType.simpleString()} from the data: a rule of the table names it, and Spark computes the rule. "
            "Nothing was written. Cast the column before writing.",
            error_class="DELTA_FAILED_TO_MERGE_FIELDS",
            sql_state="22005",
            column=field.name,
        )
    return store_assignment.cast(Typed(column, frame_field.dataType), table_type, field.name)
