"""The analyzer of a classic session: its answers come from Catalyst's analysed plans. See analyzer.py for what each method is
for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.names import quoted
from delta_py.types.schema import Path
from delta_py.types.schema import StructType as DeltaSchema
from spark_plugin.dml.analysis import (
    SWAPPED_OPERATORS,
    Comparison,
    ConditionParts,
    Resolved,
    aggregate_error,
    check_boolean,
    metadata_column_error,
    no_field_error,
    refuse_non_deterministic,
    refuse_subquery,
    row_by_row_error,
    select_for_merge,
    select_row_values,
)
from spark_plugin.dml.merge_names import Names
from spark_plugin.dml.target_names import Alias
from spark_plugin.internals.jvm_plans import (
    NotRowByRow,
    aliased_expression,
    attribute_path,
    column_metadata,
    comparison_of,
    conjuncts,
    data_type_of,
    expression_sql,
    is_constant,
    is_deterministic_expression,
    operands_of,
    unanalyzed_sql,
    uses_only,
)
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options.common import FILES
from spark_plugin.pruning import rows_needed_by
from spark_plugin.pruning.needed_rows import NeededRows


class PlanAnalyzer:
    """The Analyzer of one classic session. In all methods `where` is the clause that contains the columns, for messages."""

    binds_columns: ClassVar[bool] = True

    def __init__(self, spark: SparkSession) -> None:
        self._internals = SparkInternals(spark)

    def filter_text(self, frame: DataFrame, condition: Column, operation: str) -> str:
        """Return the condition as SQL text, after a check that it is a deterministic filter of the frame."""
        analysed = self._internals.filter_condition(frame, condition)
        if not is_deterministic_expression(analysed):
            refuse_non_deterministic(operation, expression_sql(analysed))
        return expression_sql(analysed)

    def reads_tables(self, frame: DataFrame, columns: Sequence[Column]) -> bool:
        """Return whether any of the columns has a subquery."""
        projection = frame.select(*(column.alias(f"c{number}") for number, column in enumerate(columns)))
        return self._internals.has_subqueries(projection)

    def written_text(self, column: Column) -> str:
        return unanalyzed_sql(column)

    def needed_rows(
        self, frame: DataFrame, condition: Column | None, *, file_list_path: str, schema: DeltaSchema, alias: Alias
    ) -> NeededRows:
        """Return which rows the frame's plan needs from the scan of the files in `file_list_path`. The plan contains the
        condition."""
        return rows_needed_by(frame.sparkSession, frame, FILES, file_list_path)

    def assigned_paths(self, frame: DataFrame, names: Sequence[str], alias: Alias) -> list[Path]:
        """Return the column or struct field that each name refers to."""
        projection = frame.select(*(F.col(name).alias(f"c{number}") for number, name in enumerate(names)))
        expressions = self._internals.projection_expressions(projection, len(names))
        return [_path_of(expression, name) for expression, name in zip(expressions, names, strict=True)]

    def check_values(self, frame: DataFrame, columns: Sequence[Column], where: str) -> None:
        """Raise an error for a column that does not have exactly one value per row."""
        self._check_row_by_row(select_row_values(frame, columns, where), frame, where)

    def resolve(self, frame: DataFrame, columns: Sequence[Column], where: str) -> list[Resolved]:
        """Return the columns as analysed expressions, after a check that each has exactly one value per row."""
        if not columns:
            return []
        projection = select_for_merge(frame, columns, where, lambda: self._columns_of(frame))
        self._check_row_by_row(projection, frame, where)
        expressions = [aliased_expression(alias) for alias in self._internals.projection_expressions(projection, len(columns))]
        return [Resolved(self._internals.column(value), data_type_of(value), value) for value in expressions]

    def resolve_names(self, frame: DataFrame, names: Sequence[str], where: str) -> list[Resolved]:
        return self.resolve(frame, [F.col(quoted(name)) for name in names], where)

    def resolve_assigned(self, frame: DataFrame, names: Sequence[str], alias: Alias, where: str) -> list[Path]:
        columns = self.resolve(frame, [F.col(name) for name in names], where)
        return [_path_of(column.expression, name) for column, name in zip(columns, names, strict=True)]

    def check_condition(self, frame: DataFrame, condition: Resolved, where: str) -> None:
        """Raise an error unless the condition is boolean and deterministic, and has no subquery."""
        check_boolean(frame, condition, where)
        if self._internals.has_subquery(condition.expression):
            refuse_subquery(where, condition.sql)
        if not is_deterministic_expression(condition.expression):
            refuse_non_deterministic(where, condition.sql)

    def parts(self, condition: Resolved, target: DataFrame, source: DataFrame, names: Names) -> ConditionParts:
        """Return the parts of a MERGE's condition that name only one side, or compare a value of each side."""
        target_attributes, source_attributes = self._internals.attribute_set(target), self._internals.attribute_set(source)
        conditions = list(conjuncts(condition.expression))
        comparisons = []
        for target_value, operator, source_value in _comparisons(conditions, target_attributes, source_attributes):
            (resolved_source_value,) = self.resolve(source, [self._internals.column(source_value)], "search condition")
            is_ordered = not (isinstance(resolved_source_value.data_type, StringType) and _has_char(target_value))
            target_column, source_column = self._internals.column(target_value), resolved_source_value.column
            comparisons.append(Comparison(target_column, operator, source_column, resolved_source_value.data_type, is_ordered))
        of_target = [part for part in conditions if uses_only(part, target_attributes)]
        # A constant names no side. It is in of_target already, because uses_only is true for both sides.
        of_source = [part for part in conditions if uses_only(part, source_attributes) and not is_constant(part)]
        return ConditionParts(
            tuple(map(self._internals.column, of_target)), tuple(map(self._internals.column, of_source)), tuple(comparisons)
        )

    def exact_text(self, shape: Callable[[], DataFrame], condition: Column | str) -> str | None:
        """Return the condition as SQL; None if Spark would parse this SQL to another condition."""
        frame = shape()
        column = F.col(condition) if isinstance(condition, str) else condition
        text = expression_sql(self._internals.filter_condition(frame, column))
        try:
            condition_from_text = self._internals.filter_condition(frame, F.expr(text))
        except PySparkException:  # for example, a Python function has no SQL
            return None
        return text if expression_sql(condition_from_text) == text else None

    def _columns_of(self, frame: DataFrame) -> list[str]:
        return [expression_sql(attribute) for attribute in self._internals.attributes(frame)]

    def _check_row_by_row(self, projection: DataFrame, frame: DataFrame, where: str) -> None:
        """Raise an error unless `projection` has exactly one row for each row of the frame: Spark adds other steps to the plan
        for aggregates, windows and generators."""
        match self._internals.not_row_by_row(projection, frame):
            case None:
                return
            case NotRowByRow.AGGREGATE:
                raise aggregate_error(where)
            case NotRowByRow.HIDDEN:
                raise metadata_column_error(where)
            case fault:
                raise row_by_row_error(where, generator=fault is NotRowByRow.GENERATOR)


def _path_of(expression: Any, name: str) -> Path:
    """Return the path of the column or struct field that the expression is. name: as the statement spells it, for messages.
    Raises no_field_error for any other expression."""
    path = attribute_path(expression)
    if path is None:
        raise no_field_error(name)
    return path


def _comparisons(parts: Sequence[Any], target_attributes: Any, source_attributes: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the parts that compare a value of the target with one of the source: the target's expression, the operator, and the
    source's expression. If the source's expression is on the left, the operator is swapped (> for <)."""
    for part in parts:
        comparison = comparison_of(part)
        if comparison is None or uses_only(part, target_attributes) or uses_only(part, source_attributes):
            continue
        left, right = operands_of(part)
        for target_value, source_value, operator in ((left, right, comparison), (right, left, SWAPPED_OPERATORS[comparison])):
            if uses_only(target_value, target_attributes) and uses_only(source_value, source_attributes):
                yield target_value, operator, source_value


def _has_char(expression: Any) -> bool:
    """Return whether the expression names a CHAR column. Spark pads a constant that it compares with a CHAR, but not a value of
    the source: so the smallest and largest values of the source do not limit the values that match."""
    return any(not declared.lower().startswith("varchar") for declared in column_metadata(expression, DECLARED_TYPE))
