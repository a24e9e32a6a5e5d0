"""The questions about conditions and values that DELETE, UPDATE and MERGE ask Spark's analyzer, as methods of a protocol. Two
classes implement it.

    analyzer = analyzer_of(spark)
    (condition,) = analyzer.resolve(frame, [F.expr("t.a = s.b")], "UPDATE condition")

In a classic session a PlanAnalyzer answers from Catalyst's plans. A Spark Connect client has no plans: a NameAnalyzer answers
from names, schemas and the errors of the server. No method runs a job. Where possible, a valid statement
causes only requests that the server accepts, because it logs each refused request as an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame

from delta_py.types.schema import Path, StructType
from spark_plugin.dml.analysis import ConditionParts, Resolved
from spark_plugin.dml.merge_names import Names
from spark_plugin.dml.name_analyzer import NameAnalyzer
from spark_plugin.dml.plan_analyzer import PlanAnalyzer
from spark_plugin.dml.target_names import Alias
from spark_plugin.internals.spark_internals import is_connect
from spark_plugin.pruning.needed_rows import NeededRows


class Analyzer(Protocol):
    """Checks and resolves the conditions and values of one session's statements.

    Parameters of several methods: frame is the frame in which names are resolved. where is the clause that contains the columns,
    such as "UPDATE condition", for messages. names are those of columns or struct fields, as the statement spells them."""

    @property
    def binds_columns(self) -> bool:
        """Whether a resolved column is bound to the frame in which it was resolved. Otherwise (over Spark Connect) the column is
        only a name, and means what the name means in the frame where it is used."""

    # ------------------------------------------------------------ DELETE and UPDATE

    def filter_text(self, frame: DataFrame, condition: Column, operation: str) -> str:
        """Check a condition by which the statement filters the frame, and return it as SQL text. operation: DELETE or UPDATE, for
        messages.

        Raises Spark's AnalysisException for a column that is no condition on its rows; UnsupportedOperationError
        (DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED).
        """

    def reads_tables(self, frame: DataFrame, columns: Sequence[Column]) -> bool:
        """Return whether any of the columns has a subquery, which may read this or another table."""

    # ------------------------------------------------------------ UPDATE

    def assigned_paths(self, frame: DataFrame, names: Sequence[str], alias: Alias) -> list[Path]:
        """Return the column or struct field that each name refers to. alias: the frame's. Raises Spark's AnalysisException for a
        name that does not exist; UnsupportedOperationError (DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE) for parts of arrays and
        maps."""

    def check_values(self, frame: DataFrame, columns: Sequence[Column], where: str) -> None:
        """Raises UnsupportedOperationError for expressions without exactly one value per row: aggregates and windows
        (UNSUPPORTED_EXPR_FOR_OPERATOR), generators (UNSUPPORTED_GENERATOR.OUTSIDE_SELECT); Spark's AnalysisException for all
        other errors."""

    # ------------------------------------------------------------ UPDATE and MERGE

    def written_text(self, column: Column) -> str:
        """Return the column as SQL text as the user wrote it, before any analysis: names are not resolved."""

    def needed_rows(
        self, frame: DataFrame, condition: Column | None, *, file_list_path: str, schema: StructType, alias: Alias
    ) -> NeededRows:
        """Return which rows of the table are needed to compute `frame`, a frame over the table's rows, as far as that is known.

        condition: the condition of `frame` if it is only a filter; otherwise None. file_list_path: of the list of files that the
        table's scan reads. schema, alias: of the table."""

    # ------------------------------------------------------------ MERGE

    def resolve(self, frame: DataFrame, columns: Sequence[Column], where: str) -> list[Resolved]:
        """Resolve the columns in one analysis. They can be used in every frame that has the columns that they name, such as a
        join.

        Raises SchemaMismatchError for a name that does not exist (DELTA_MERGE_UNRESOLVED_EXPRESSION) and for a column of another
        frame (DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT); UnsupportedOperationError for expressions without exactly one
        value per row: aggregates (DELTA_AGGREGATION_NOT_SUPPORTED), windows, generators; Spark's AnalysisException for all other
        errors, such as an ambiguous name.
        """

    def resolve_names(self, frame: DataFrame, names: Sequence[str], where: str) -> list[Resolved]:
        """Do the same as `resolve` for columns of the frame that are given by name."""

    def resolve_assigned(self, frame: DataFrame, names: Sequence[str], alias: Alias, where: str) -> list[Path]:
        """Do the same as assigned_paths, with the errors of `resolve`."""

    def check_condition(self, frame: DataFrame, condition: Resolved, where: str) -> None:
        """Raises UnsupportedOperationError for a condition that has a subquery (DELTA_UNSUPPORTED_SUBQUERY) or is not
        deterministic; Spark's AnalysisException for one that is not boolean."""

    def parts(self, condition: Resolved, target: DataFrame, source: DataFrame, names: Names) -> ConditionParts:
        """Return the parts of a MERGE's condition that name only one side, or compare a value of each side. names: the schemas of
        both."""

    # ------------------------------------------------------------ overwrites

    def exact_text(self, shape: Callable[[], DataFrame], condition: Column | str) -> str | None:
        """Return the condition of an overwrite as SQL text that Spark parses to the same condition; None if there is no such
        text. shape: makes a frame with the table's columns, if the analyzer needs one. condition: a Column, or a column's
        name."""


def analyzer_of(spark: Any) -> Analyzer:
    return NameAnalyzer(spark) if is_connect(spark) else PlanAnalyzer(spark)
