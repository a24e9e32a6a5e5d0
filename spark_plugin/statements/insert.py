"""INSERT: gives the rows of its query the table's columns and types, and writes them as a saved DataFrame is written.

    INSERT INTO shop.sales (id, price) VALUES (3, 1.5)
    INSERT INTO shop.sales BY NAME SELECT ...
    INSERT OVERWRITE shop.sales PARTITION (day = '2024-05-01') SELECT ...
    INSERT INTO shop.sales REPLACE WHERE day >= '2024-05-01' SELECT ...
    INSERT INTO shop.sales REPLACE USING (id) SELECT ...
    INSERT INTO shop.sales AS t REPLACE ON t.id = s.id AND t.day > s.day (SELECT ...) AS s

The write fills columns without a given value: with their default, their expression, their next number, or null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from delta_py.errors import InvalidOptionError, InvariantViolationError, SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions import tree
from delta_py.expressions.sql_text.to_sql import to_sql
from delta_py.expressions.tree import And, Cast, Comparison, Literal
from delta_py.protocol.table_config import TableConfig
from delta_py.row_changes.write_plans import is_filled_by_table
from delta_py.types.names import joined_name
from delta_py.types.schema import STRING
from delta_py.types.schema import StructField as DeltaField
from spark_plugin.dataframe_api import named_tables
from spark_plugin.dataframe_api.batch_save import Save
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.dml.column_defaults import default_text
from spark_plugin.dml.inserted_columns import WIDENABLE_TYPES, TableColumns, table_column, with_table_columns
from spark_plugin.dml.jobs import load_newest
from spark_plugin.dml.store_assignment import StoreAssignment, overflow_as_delta_error
from spark_plugin.dml.target_names import Alias
from spark_plugin.merge.matching import Matching
from spark_plugin.options.settings import check_condition_text, conf, is_case_sensitive
from spark_plugin.sql.parsed_inserts import ParsedInsert, ParsedReplaceOn, WrittenReplaceOn, parsed_insert
from spark_plugin.sql.results import nothing
from spark_plugin.sql.targets import Target, find_target
from spark_plugin.sql_internals import ParsedPlan, ParsedTarget
from spark_plugin.statements.row_change_statements import alias_of, among

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PARTITION_MODE = "partitionOverwriteMode"


def insert_rows(spark: SparkSession, plan: ParsedPlan, text: str) -> DataFrame | None:
    """Run an INSERT. Returns a frame without columns, as Spark does; None, without doing anything, for another statement and for
    a table that pydelta does not handle. Raises the errors of saving a DataFrame; SchemaMismatchError
    (DELTA_INSERT_COLUMN_ARITY_MISMATCH) if the numbers of values and columns differ, and InvariantViolationError
    (DELTA_INSERT_COLUMN_MISMATCH) for a NOT NULL column that is left out."""
    insert = parsed_insert(plan)
    target = None if insert is None else find_target(spark, insert.target.parts)
    if insert is None or target is None:
        return None
    alias = () if insert.replaces_on is None else _alias(spark, insert, target, text)
    return write_insert(spark, target, insert, alias)


def write_insert(spark: SparkSession, target: Target, insert: ParsedInsert, alias: Alias) -> DataFrame:
    """Run a parsed INSERT. alias: the names that the condition of REPLACE ON may use for the table."""
    table = _Table.of(spark, target)
    _check(table, insert, is_case_sensitive(spark))
    frame, columns = _query_and_columns(spark, table, insert)
    if insert.replaces_on is None:
        frame = frame.select(*(column.alias(name) for name, column in columns))
    save = Save(frame, "append", {name.lower(): (name, value) for name, value in insert.options.items()}).checked()
    if insert.evolves:
        save = save.with_options(mergeSchema="true")
    if insert.replaces_on is None:
        save = _with_replaced_rows(spark, table, insert, save)
    else:
        save = _with_replace_on(spark, insert.replaces_on, save, columns, alias)
    with overflow_as_delta_error("CAST_OVERFLOW_IN_TABLE_INSERT"):
        target.write(save)
    return nothing(spark)


@dataclass(frozen=True, slots=True)
class _Table:
    """The table at its newest version."""

    target: Target
    columns: TableColumns

    @classmethod
    def of(cls, spark: SparkSession, target: Target) -> _Table:
        return cls(target, TableColumns.of(load_newest(spark, target.place).config))

    @property
    def config(self) -> TableConfig:
        return self.columns.config

    @property
    def schema(self) -> StructType:
        return self.columns.schema

    @property
    def fields(self) -> Sequence[DeltaField]:
        return self.config.schema.fields

    @property
    def partition_columns(self) -> Sequence[str]:
        return self.config.partition_columns


def _check(table: _Table, insert: ParsedInsert, case_sensitive: bool) -> None:
    """Refuse IF NOT EXISTS, columns of PARTITION that are no partition columns, and wrong lists of columns."""
    if insert.if_not_exists:
        raise UnsupportedOperationError(
            "INSERT OVERWRITE ... IF NOT EXISTS: Delta tables have no partitions that a catalog knows of; nothing was written. "
            "Leave IF NOT EXISTS out.",
            error_class="UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS",
            sql_state="0A000",
        )
    names_in_partition = (*insert.values, *insert.open_columns)
    is_partition_column = among(table.partition_columns, case_sensitive=case_sensitive)
    other_names = [name for name in names_in_partition if not is_partition_column(name)]
    if other_names:
        raise InvalidOptionError(
            f"PARTITION: {', '.join(other_names)} is no partition column of the table, which is partitioned by "
            f"({', '.join(table.partition_columns)}). Nothing was written. Name partition columns alone.",
            error_class="NON_PARTITION_COLUMN",
            sql_state="42000",
            columns=other_names,
        )
    _check_column_list(table, insert, case_sensitive)


def _check_column_list(table: _Table, insert: ParsedInsert, case_sensitive: bool) -> None:
    """Check the columns that the statement lists: each exists, occurs once, and has no value in PARTITION."""
    counts = Counter(name.lower() for name in insert.columns)
    is_table_column = among(table.schema.names, case_sensitive=case_sensitive)
    has_partition_value = among(insert.values, case_sensitive=False)
    unknown = [name for name in insert.columns if not is_table_column(name)]
    listed_twice = [name for name in insert.columns if counts[name.lower()] > 1]
    in_list_and_partition = [name for name in insert.columns if has_partition_value(name)]
    if unknown:
        raise SchemaMismatchError(
            f"INSERT lists {', '.join(unknown)}, and the table has {', '.join(table.schema.names)}. Nothing was written.",
            error_class="UNRESOLVED_COLUMN.WITH_SUGGESTION",
            sql_state="42703",
            columns=unknown,
        )
    repeated = listed_twice or in_list_and_partition
    if repeated:
        raise SchemaMismatchError(
            f"INSERT gives {', '.join(dict.fromkeys(repeated))} two values. Nothing was written. Name each column once.",
            error_class="COLUMN_ALREADY_EXISTS" if listed_twice else "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
            sql_state="42711" if listed_twice else "42713",
            columns=repeated,
        )


def may_evolve(spark: SparkSession, insert: ParsedInsert) -> bool:
    """Return whether columns that only the query has may be added to the table: the statement, its option or the session says
    so."""
    setting = next((value for name, value in insert.options.items() if name.lower() == "mergeschema"), None)
    setting = setting or conf(spark, "spark.databricks.delta.schema.autoMerge.enabled")
    return insert.evolves or (setting is not None and setting.lower() == "true")


# ---------------------------------------------------------------- replaced rows


def _with_replaced_rows(spark: SparkSession, table: _Table, insert: ParsedInsert, save: Save) -> Save:
    """Return the save, in the mode and with the options by which it replaces the rows that the statement replaces.

    An overwrite replaces the partitions that PARTITION has values for. If partitions are overwritten dynamically and PARTITION
    leaves some open, it replaces those that the rows have. Otherwise it replaces the whole table."""
    path = table.target.place.url
    if insert.replaces_using:
        return replace(save, mode="overwrite", matching=Matching.using([joined_name((name,)) for name in insert.replaces_using]))
    if insert.replaces_where is not None:
        where = insert.replaces_where
        check_condition_text(spark, "replaceWhere", where)
        return named_tables.overwrite_where(save, path, F.expr(where) if isinstance(where, str) else where)
    if not insert.overwrites:
        return save
    setting = save.option(_PARTITION_MODE) or conf(spark, "spark.sql.sources.partitionOverwriteMode") or "static"
    if setting.lower() == "dynamic" and len(insert.values) < len(table.partition_columns):
        return replace(save, mode="overwrite").with_options(partitionOverwriteMode="dynamic")
    if not insert.values:
        # The option keeps the session's mode `dynamic` from applying, for example to a table without partitions.
        return replace(save, mode="overwrite").with_options(partitionOverwriteMode="static")
    return named_tables.overwrite_where(save, path, F.expr(_static_partition(table, insert)))


def _alias(spark: SparkSession, insert: ParsedInsert, target: Target, text: str) -> Alias:
    """Return the names that the condition of REPLACE ON may use for the table: its alias, or its name."""
    assert insert.replaces_on is not None
    parsed = ParsedTarget(insert.target.parts, insert.replaces_on.alias)
    return alias_of(spark, parsed, target, text)


def _with_replace_on(
    spark: SparkSession,
    on: ParsedReplaceOn | WrittenReplaceOn,
    save: Save,
    columns: Sequence[tuple[str, Column]],
    alias: Alias,
) -> Save:
    """Return the save for REPLACE ON. Its condition refers to the query's columns under their own names, with values that are
    not cast. So the frame keeps these columns, and the table's columns are added. columns: the table's columns that the query
    fills, with their values."""
    frame, source_columns = with_table_columns(save.frame, columns)
    condition = on.condition()
    text = analyzer_of(spark).written_text(condition)
    matching = Matching(condition=text, alias=alias, condition_column=condition, source_columns=source_columns)
    return replace(save, frame=frame, mode="overwrite", matching=matching)


def _delta_column(table: _Table, name: str) -> DeltaField:
    """Return a column of the table as the log has it, with the metadata of its default."""
    field = table.config.schema.find(name)
    assert field is not None, f"{name} is a column of the table"
    return field


def _static_partition(table: _Table, insert: ParsedInsert) -> str:
    """Return the condition of the partitions that PARTITION has values for, as SQL: a client has no other condition as text."""
    comparisons = []
    for name, text in insert.values.items():
        field = _delta_column(table, name)
        comparisons.append(Comparison("<=>", tree.Column((field.name,)), Cast(Literal(text, STRING), field.data_type)))
    return to_sql(And(tuple(comparisons)))


def _static_columns(table: _Table, insert: ParsedInsert, assignment: StoreAssignment) -> Iterator[tuple[StructField, Column]]:
    """Yield the columns that PARTITION has values for, with the values in the columns' types."""
    for name, text in insert.values.items():
        field = table.columns.find(name)
        assert field is not None, f"{name} is a partition column"
        yield field, assignment.constant(text, field.dataType)


# ---------------------------------------------------------------- columns


def _query_and_columns(spark: SparkSession, table: _Table, insert: ParsedInsert) -> tuple[DataFrame, list[tuple[str, Column]]]:
    """Return the query, and the table's columns that it fills, including those of PARTITION, with values in their types."""
    target_names, query, evolves = _filled_columns(table, insert), insert.query, may_evolve(spark, insert)
    width = query.width()
    # DEFAULT stands for the default of the column at its position, so each value must have a column there.
    if width is not None and width <= len(target_names) and not insert.by_name:
        query = query.with_defaults(lambda number: _default_text(spark, table, target_names[number]))
    frame = query.frame()
    query_names = frame.columns
    if not insert.by_name:
        _check_count(table, insert, target_names, query_names, evolves)
        if not insert.columns:
            named_tables.check_aligned(insert.replaces_using, target_names, query_names)
    # Columns after those of the table are new; they keep the query's names.
    names = query_names if insert.by_name else [*target_names, *query_names[len(target_names) :]]
    assignment = StoreAssignment.of(spark, evolves=evolves)
    if insert.replaces_on is None:  # REPLACE ON refers to columns by name, and a query may have two of one name
        frame = frame.toDF(*(f"c{number}" for number in range(len(names))))
    columns = [
        table_column(assignment, table.columns, name, field, by_name=insert.by_name)
        for name, field in zip(names, frame.schema.fields, strict=True)
    ]
    columns += [(field.name, value) for field, value in _static_columns(table, insert, assignment)]
    filled_names = {name.lower() for name in (*names, *insert.values)}
    _check_required_columns(table, filled_names)
    return frame, [*columns, *_null_partitions(table, filled_names)]


def _check_required_columns(table: _Table, filled_names: Set[str]) -> None:
    """Raise InvariantViolationError for NOT NULL columns that get no value from the statement or the table. filled_names: the
    columns that the statement fills, in lower case."""
    missing = [
        f.name for f in table.fields if not f.nullable and f.name.lower() not in filled_names and not is_filled_by_table(f)
    ]
    if missing:
        raise InvariantViolationError(
            f"INSERT leaves out {', '.join(missing)}, which is NOT NULL and has no default. Nothing was written. Give it values.",
            error_class="DELTA_INSERT_COLUMN_MISMATCH",
            sql_state="42802",
            columns=missing,
        )


def _null_partitions(table: _Table, filled_names: Set[str]) -> Iterator[tuple[str, Column]]:
    """Yield the partition columns that the statement leaves out and for which the table has no rule: an INSERT may do this, a
    saved DataFrame may not. filled_names: names in lower case."""
    for field in table.fields:
        if field.name in table.partition_columns and field.name.lower() not in filled_names and not is_filled_by_table(field):
            column = table.columns.find(field.name)
            assert column is not None
            yield field.name, F.lit(None).cast(column.dataType)


def _filled_columns(table: _Table, insert: ParsedInsert) -> list[str]:
    """Return the table's columns that the query's columns fill, by position: those that the statement lists, or all except those
    with a value in PARTITION."""
    names_with_values = {name.lower() for name in insert.values}
    return list(insert.columns) or [name for name in table.schema.names if name.lower() not in names_with_values]


def _default_text(spark: SparkSession, table: _Table, name: str) -> str:
    """Return the SQL text of the value that DEFAULT stands for in a column. Raises UnsupportedTableFeatureError for a default
    that Spark must not evaluate."""
    field = _delta_column(table, name)
    target_field, text = table.columns.find(field.name), default_text(spark, field)
    if target_field and isinstance(target_field.dataType, WIDENABLE_TYPES):
        # Without the cast, type widening might widen the column to the type of the default.
        return f"CAST({text} AS {target_field.dataType.simpleString()})"
    return text


def _check_count(
    table: _Table, insert: ParsedInsert, target_names: Sequence[str], query_names: Sequence[str], evolves: bool
) -> None:
    """Raise unless the query has as many columns as the statement fills. With schema evolution it may have more if the
    statement names no columns."""
    if len(query_names) == len(target_names) or (evolves and len(query_names) > len(target_names) and not insert.columns):
        return
    error_class = "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
    if insert.columns:  # in this case Spark's own parser counts
        fault = "TOO_MANY" if len(query_names) > len(target_names) else "NOT_ENOUGH"
        error_class = f"INSERT_COLUMN_ARITY_MISMATCH.{fault}_DATA_COLUMNS"
    raise SchemaMismatchError(
        f"INSERT goes by position: {len(target_names)} columns are to be filled ({', '.join(target_names)}), and the query has "
        f"{len(query_names)} ({', '.join(query_names)}). Nothing was written. List the columns that the query has, or INSERT "
        "... BY NAME.",
        error_class=error_class,
        sql_state="21S01" if insert.columns else "42802",
        table=table.target.label,
    )
