"""The analyzer of a Spark Connect client. Plans stay on the server, so its answers come from what the server accepts and
refuses, from the client's own columns (connect_conditions.py), and from the schemas of both sides (merge_names.py). See
analyzer.py for what each method is for.

A resolved value is still a name. It has the meaning that it has in the frame where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegralType, StructType

from delta_py.errors import UnsupportedOperationError
from delta_py.types.names import quoted, split_name
from delta_py.types.schema import Path
from delta_py.types.schema import StructType as DeltaSchema
from spark_plugin.dml.analysis import (
    GENERATOR,
    SWAPPED_OPERATORS,
    Comparison,
    ConditionParts,
    Resolved,
    aggregate_error,
    check_boolean,
    check_filters,
    first_line,
    no_field_error,
    refuse_non_deterministic,
    refuse_subquery,
    row_by_row_error,
    select_columns,
    select_for_merge,
    select_row_values,
)
from spark_plugin.dml.connect_conditions import condition_text, is_plain, key_parts, rows_selected_by
from spark_plugin.dml.merge_names import NameMeaning, Names
from spark_plugin.dml.target_names import Alias, without_alias
from spark_plugin.internals.connect_internals import (
    ClientLiteral,
    ClientSql,
    client_expression,
    client_node,
    may_have_subqueries,
)
from spark_plugin.pruning.needed_rows import NeededRows
from spark_plugin.schema_conversion import FieldsByName, find_field
from spark_plugin.spark_versions import WINDOW_IN_FILTER_41

# Conditions (or their beginnings) of Spark's errors for expressions that a join or a filter does not accept.
_NON_DETERMINISTIC = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_NO_AGGREGATES = "INVALID_WHERE_CONDITION"
_NOT_IN_FILTERS = ("WINDOW_FUNCTION_NOT_ALLOWED", WINDOW_IN_FILTER_41, GENERATOR)


class NameAnalyzer:
    """The Analyzer of one session of Spark Connect. In all methods `where` is the clause that contains the columns, for
    messages."""

    binds_columns: ClassVar[bool] = False

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def filter_text(self, frame: DataFrame, condition: Column, operation: str) -> str:
        """Return the condition as SQL text, after a check that it is a deterministic filter of the frame."""
        check_filters(frame, [condition])
        text = condition_text(condition)
        if not self._is_deterministic(frame, condition):
            refuse_non_deterministic(operation, text)
        return text

    def reads_tables(self, frame: DataFrame, columns: Sequence[Column]) -> bool:
        """Return whether any of the columns has a subquery, or may have one: the server's answer cannot always be read. The
        server is called only for columns that are not plain."""
        if all(is_plain(self._spark, column) for column in columns):
            return False
        return may_have_subqueries(frame.select(*(column.alias(f"c{number}") for number, column in enumerate(columns))))

    def written_text(self, column: Column) -> str:
        return condition_text(column)

    def needed_rows(
        self, frame: DataFrame, condition: Column | None, *, file_list_path: str, schema: DeltaSchema, alias: Alias
    ) -> NeededRows:
        """Return which rows the condition selects. A client has no plan, so it cannot look at `frame` and `file_list_path`."""
        return rows_selected_by(self._spark, condition, schema, alias)

    def assigned_paths(self, frame: DataFrame, names: Sequence[str], alias: Alias) -> list[Path]:
        """Return the column or struct field that each name refers to."""
        select_columns(frame, [F.col(name) for name in names])  # the server's own errors say which names do not exist
        return _paths_by_name(frame.schema, names, alias)

    def check_values(self, frame: DataFrame, columns: Sequence[Column], where: str) -> None:
        """Raise an error for a column that does not have exactly one value per row."""
        select_row_values(frame, columns, where)
        self._check_row_by_row(frame, columns, where)

    def resolve(self, frame: DataFrame, columns: Sequence[Column], where: str) -> list[Resolved]:
        """Return the columns with their types, after a check that each has exactly one value per row."""
        if not columns:
            return []
        projection = select_for_merge(frame, columns, where, lambda: frame.columns)
        self._check_row_by_row(frame, columns, where)
        return [Resolved(column, field.dataType, None) for column, field in zip(columns, projection.schema.fields, strict=True)]

    def resolve_names(self, frame: DataFrame, names: Sequence[str], where: str) -> list[Resolved]:
        """Return columns that are bound to the frame: in a join, unbound names might refer to columns of the other side."""
        fields = frame.schema.fields
        types = {field.name: field.dataType for field in fields}
        # Only the server resolves names that the schema does not have exactly, or that only case distinguishes.
        if len({name.lower() for name in types}) < len(fields) or not all(name in types for name in names):
            values = self.resolve(frame, [F.col(quoted(name)) for name in names], where)
            types = {name: value.data_type for name, value in zip(names, values, strict=True)}
        return [Resolved(frame[quoted(name)], types[name], None) for name in names]

    def resolve_assigned(self, frame: DataFrame, names: Sequence[str], alias: Alias, where: str) -> list[Path]:
        self.resolve(frame, [F.col(name) for name in names], where)
        return _paths_by_name(frame.schema, names, alias)

    def check_condition(self, frame: DataFrame, condition: Resolved, where: str) -> None:
        """Raise an error unless the condition is boolean and deterministic, and has no subquery."""
        check_boolean(frame, condition, where)
        if self.reads_tables(frame, [condition.column]):
            refuse_subquery(where, condition.sql)
        if not self._is_deterministic(frame, condition.column):
            refuse_non_deterministic(where, condition.sql)

    def parts(self, condition: Resolved, target: DataFrame, source: DataFrame, names: Names) -> ConditionParts:
        """Return only parts whose names certainly belong to one side: a part with another meaning must not limit the files that a
        MERGE reads. Parts about the source alone are not returned."""
        of_target, comparisons = [], []
        for part in key_parts(self._spark, condition.column):
            meanings = [_meaning(path, target, source, names) for path in part.columns]
            if part.comparison is None:
                if meanings and all(meaning is not None and meaning.side == "target" for meaning in meanings):
                    of_target.append(F.expr(part.text))
                continue
            columns = [F.col(_quoted_path(path)) for path in part.columns]
            match meanings:
                case [NameMeaning("target", DataType() as target_type), NameMeaning("source", DataType() as source_type)]:
                    is_ordered = _have_same_order(target_type, source_type)
                    comparisons.append(Comparison(columns[0], part.comparison, columns[1], source_type, is_ordered))
                case [NameMeaning("source", DataType() as source_type), NameMeaning("target", DataType() as target_type)]:
                    is_ordered, swapped_operator = _have_same_order(target_type, source_type), SWAPPED_OPERATORS[part.comparison]
                    comparisons.append(Comparison(columns[1], swapped_operator, columns[0], source_type, is_ordered))
        return ConditionParts(tuple(of_target), (), tuple(comparisons))

    def exact_text(self, shape: Callable[[], DataFrame], condition: Column | str) -> str | None:
        """A client knows the text only of a condition that was written as SQL, or of a constant."""
        match client_node(client_expression(condition)):
            case ClientSql(text):
                return text
            case ClientLiteral(bool(value)):
                return str(value).lower()
        return None

    def _is_deterministic(self, frame: DataFrame, condition: Column) -> bool:
        """Return whether the condition gives the same result each time. Spark accepts others in a filter, but not in a join, so
        the server analyses a join. Raises UnsupportedOperationError if Spark refuses the join for another reason."""
        if is_plain(self._spark, condition):
            return True
        empty_frame = self._spark.createDataFrame([], "__pydelta_other int")
        try:
            frame.join(empty_frame, condition, "left_semi").schema  # noqa: B018 - the server analyses it when a client reads this
        except AnalysisException as error:
            if error.getCondition() == _NON_DETERMINISTIC:
                return False
            raise UnsupportedOperationError(
                "Over Spark Connect the condition cannot be checked for functions that give another result each time: "
                f"{first_line(error)} Collect what the subquery gives first, or use a classic session."
            ) from error
        return True

    def _check_row_by_row(self, frame: DataFrame, columns: Sequence[Column], where: str) -> None:
        """Raise UnsupportedOperationError for a column without exactly one value per row: Spark does not accept it in a
        filter."""
        columns_to_check = [column for column in columns if not is_plain(self._spark, column)]
        if not columns_to_check:
            return
        try:
            # isNull makes a condition of a column of any type.
            check_filters(frame, [column.isNull() for column in columns_to_check])
        except AnalysisException as error:
            condition = error.getCondition() or ""
            if condition == _NO_AGGREGATES:
                raise aggregate_error(where) from error
            if condition.startswith(_NOT_IN_FILTERS):
                raise row_by_row_error(where, generator=condition.startswith(GENERATOR)) from error
            raise


def _paths_by_name(schema: StructType, names: Sequence[str], alias: Alias) -> list[Path]:
    """Return the path to the column or field for names that Spark has resolved. A name may begin with the alias, compared without
    regard to case: it does if the next part is a column of the table. Otherwise the first part is itself a column, and the parts
    after it are fields of structs."""
    columns = FieldsByName(schema)
    return [_path_by_name(columns, name, alias) for name in names]


def _path_by_name(columns: FieldsByName, name: str, alias: Alias) -> Path:
    """Return the names of the column and the fields on the path, in the schema's spelling. Raises no_field_error if a part of the
    path is no field of a struct."""
    path = split_name(name)
    path_without_alias = without_alias(path, alias)
    if columns.find(path_without_alias[0]) is not None:
        path = path_without_alias
    field = columns.find(path[0])
    names = []
    for part in path[1:]:
        if field is None:
            break
        names.append(field.name)
        field = find_field(field.dataType, part) if isinstance(field.dataType, StructType) else None
    if field is None:
        raise no_field_error(name)
    return (*names, field.name)


def _meaning(path: Path, target: DataFrame, source: DataFrame, names: Names) -> NameMeaning | None:
    """Return the meaning of a name in the condition of a MERGE. The server is called only if the schemas do not decide."""
    meaning = names.column(path)
    if meaning is not None and meaning.data_type is not None:
        return meaning
    match _type_in(target, path), _type_in(source, path):
        case DataType() as kind, None:
            return NameMeaning("target", kind)
        case None, DataType() as kind:
            return NameMeaning("source", kind)
    return None


def _type_in(frame: DataFrame, path: Path) -> DataType | None:
    """Return the type of the path's column or field in the frame, or None if the frame has none or several."""
    try:
        return frame.select(F.col(_quoted_path(path))).schema.fields[0].dataType
    except AnalysisException:
        return None


def _quoted_path(path: Path) -> str:
    return ".".join(quoted(step) for step in path)


def _have_same_order(first: DataType, second: DataType) -> bool:
    """Return whether Spark compares values of both types in the order that each type has alone. Spark compares a text with a
    number as numbers, so the smallest and largest texts would not limit the numbers that match."""
    return first == second or (isinstance(first, IntegralType) and isinstance(second, IntegralType))
