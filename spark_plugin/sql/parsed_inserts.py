"""INSERT as Spark's own parser reads it, or as a client without a parser wrote it.

    insert = parsed_insert(SqlInternals(spark).parsed("INSERT INTO t (a) VALUES (1)"))      # None for another statement
    insert.query.with_defaults(texts.__getitem__).frame()

No name is resolved here; see sql_internals.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_plugin.internals.wrapping import spark_sql
from spark_plugin.spark_versions import HAS_INSERT_CLAUSES
from spark_plugin.sql_definitions import ParsedQuery, has_default, text_or_none
from spark_plugin.sql_internals import ParsedPlan, ParsedTarget, items

_PRIVILEGES = "__required_write_privileges__"  # Spark's parser adds this to the options of a relation


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """The query of an INSERT from a client without a parser. pieces: the pieces of the query's text in order; in place of each
    value that is the word DEFAULT alone, the position of the value in its row. values: how many values a row has, or None if
    unknown. alias: the name that a condition may use for the rows, or None. rows: a query of all columns of the rows that it
    selects from, or empty."""

    spark: SparkSession
    pieces: tuple[str | int, ...]
    values: int | None = None
    alias: str | None = None
    rows: str = ""

    @property
    def text(self) -> str:
        return "".join("DEFAULT" if isinstance(piece, int) else piece for piece in self.pieces)

    def frame(self) -> DataFrame:
        """Return the rows. Raises AnalysisException for text that is no query, and for names that do not exist."""
        frame: DataFrame = spark_sql(self.spark, self.text)
        return frame if self.alias is None else frame.alias(self.alias)

    def width(self) -> int | None:
        """Return how many values each row has; None if that is not known without running Spark's analyzer."""
        return self.values

    def with_defaults(self, default_of: Callable[[int], str]) -> WrittenQuery:
        """Return the query with SQL in place of each value that is the word DEFAULT. default_of: returns the SQL for a value, by
        its position in the row. If the rows that the query selects from have a column named DEFAULT, the word means this column:
        then the query is not changed."""
        has_default_word = any(isinstance(piece, int) for piece in self.pieces)
        if self.rows and has_default_word and has_default(spark_sql(self.spark, self.rows)):
            return replace(self, pieces=(self.text,))
        return replace(self, pieces=tuple(default_of(piece) if isinstance(piece, int) else piece for piece in self.pieces))


@dataclass(frozen=True, slots=True)
class ParsedReplaceOn:
    """REPLACE ON as Spark's parser reads it. node: of the condition in the plan. alias: the name that the condition uses for the
    table; None for the table's own name."""

    plan: ParsedPlan
    node: Any
    alias: str | None

    def condition(self) -> Column:
        return self.plan.column(self.node)


@dataclass(frozen=True, slots=True)
class WrittenReplaceOn:
    """REPLACE ON from a client without a parser. text: the condition. alias: as in ParsedReplaceOn."""

    text: str
    alias: str | None

    def condition(self) -> Column:
        return F.expr(self.text)


@dataclass(frozen=True, slots=True)
class ParsedInsert:
    """The parts of an INSERT. options: of WITH (...) after the table's name. columns: that the statement lists; empty means all.
    values: of PARTITION, by column, as text; None for NULL. open_columns: of PARTITION, without a value. overwrites: OVERWRITE.
    replaces_using: columns of REPLACE USING. replaces_on: the content of REPLACE ON. replaces_where: the condition of REPLACE
    WHERE, or its text. evolves: WITH SCHEMA EVOLUTION."""

    target: ParsedTarget
    query: ParsedQuery | WrittenQuery
    options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    values: Mapping[str, str | None] = field(default_factory=dict)
    open_columns: tuple[str, ...] = ()
    by_name: bool = False
    overwrites: bool = False
    if_not_exists: bool = False
    replaces_using: tuple[str, ...] = ()
    replaces_on: ParsedReplaceOn | WrittenReplaceOn | None = None
    replaces_where: Column | str | None = None
    evolves: bool = False


def parsed_insert(plan: ParsedPlan) -> ParsedInsert | None:
    """Return the INSERT in a plan. None for another statement, and for an INSERT whose target is not the name of a table."""
    node = plan.node
    if plan.kind not in ("InsertIntoStatement", "OverwriteByExpression"):
        return None
    target = plan.relation_target(node.table())
    if target is None:
        return None
    query, options = ParsedQuery(plan, node.query()), _options_of(node.table())
    if plan.kind == "OverwriteByExpression":  # REPLACE WHERE, as Spark 4.2 reads it
        by_name, condition = bool(node.isByName()), plan.internals.column(node.deleteExpr())
        return ParsedInsert(target, query, options, by_name=by_name, replaces_where=condition)
    partition = {str(pair._1()): pair._2() for pair in items(node.partitionSpec().toSeq())}
    replaces = _replace_criteria(plan)
    return ParsedInsert(
        target,
        query,
        options,
        columns=tuple(map(str, items(node.userSpecifiedCols()))),
        values={name: text_or_none(value.get()) for name, value in partition.items() if value.isDefined()},
        open_columns=tuple(name for name, value in partition.items() if not value.isDefined()),
        by_name=bool(node.byName()),
        overwrites=bool(node.overwrite()) and not replaces,
        if_not_exists=bool(node.ifPartitionNotExists()),
        evolves=HAS_INSERT_CLAUSES and bool(node.withSchemaEvolution()),
        **replaces,
    )


def _replace_criteria(plan: ParsedPlan) -> dict[str, Any]:
    """Return the REPLACE clauses as the fields of ParsedInsert."""
    if not HAS_INSERT_CLAUSES:
        return {}
    criteria = plan.node.replaceCriteriaOpt()
    if not criteria.isDefined():
        return {}
    criterion = criteria.get()
    match str(criterion.getClass().getSimpleName()):
        case "InsertReplaceWhere":
            return {"replaces_where": plan.internals.column(criterion.cond())}
        case "InsertReplaceUsing":
            return {"replaces_using": tuple(map(str, items(criterion.cols())))}
    alias = criterion.tableAliasOpt()
    return {"replaces_on": ParsedReplaceOn(plan, criterion.cond(), str(alias.get()) if alias.isDefined() else None)}


def _options_of(relation: Any) -> dict[str, str]:
    """Return the options of WITH (...) after the table's name."""
    if str(relation.nodeName()) != "UnresolvedRelation":
        return {}
    relation_options = relation.options().asCaseSensitiveMap()
    return {str(name): str(relation_options.get(name)) for name in relation_options.keySet() if str(name) != _PRIVILEGES}
