"""How Spark's own parser reads SQL text: the parser of a classic session, and its plans as Python values.

    plan = SqlInternals(spark).parsed("DELETE FROM t AS x WHERE x.id = :id", {"id": 3})
    plan.kind, plan.target()                            # "DeleteFromTable", ParsedTarget(("t",), "x")
    change = plan.as_delete()

No name is resolved here: the code that uses Columns and the plans of frames resolves their names. Over Spark Connect there is no
parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from delta_py.errors import SchemaMismatchError
from delta_py.types.names import quoted
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals, is_connect
from spark_plugin.options.settings import VARIABLES, conf, is_on

ActionName: TypeAlias = Literal["update", "delete", "insert"]
ClauseKind: TypeAlias = Literal["matched", "not matched", "not matched by source"]
ViewFault: TypeAlias = Literal["stored", "filter", "version", "rows", "columns"]
Assignments: TypeAlias = "tuple[tuple[tuple[str, ...], Column], ...]"
"""The parts of a column's name, and its new value."""


@dataclass(frozen=True, slots=True)
class ParsedTarget:
    """The table that a statement names. parts: of the table's name. alias: None if there is none."""

    parts: tuple[str, ...]
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class ViewedTable:
    """The table that a view shows. parts: of the table's name, with the catalog first if it is not the session's; None if the
    table has no name and options identify it. source: what Spark calls the table. fault: why it is not all of the current
    table: it is no temporary view, or it has a filter, an older version, other rows, or the same rows with other columns.
    relation, projections: Spark's nodes; projections are those of the columns, from the view down to the table."""

    parts: tuple[str, ...] | None
    source: str
    options: Mapping[str, str]
    fault: ViewFault | None
    relation: Any
    projections: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ParsedChange:
    """A DELETE or UPDATE. condition: None if there is none, or if it is the word TRUE."""

    condition: Column | None
    assignments: Assignments = ()


@dataclass(frozen=True, slots=True)
class ParsedClause:
    """One WHEN clause of a MERGE. assignments: None for a delete, and for `*`."""

    kind: ClauseKind
    action: ActionName
    condition: Column | None
    assignments: Assignments | None


@dataclass(frozen=True, slots=True)
class ParsedMerge:
    """A MERGE. source: its plan as a frame, already analyzed. evolves: WITH SCHEMA EVOLUTION."""

    source: DataFrame
    condition: Column
    clauses: tuple[ParsedClause, ...]
    evolves: bool


class NamedParameters(dict[str, Any]):
    """Values of named parameters that Spark's own `sql` passed to a parser. context: Spark's object itself."""

    context: Any = None


class PositionalParameters(list[Any]):
    """Values of parameters by position that Spark's own `sql` passed to a parser."""

    context: Any = None


def parameters_of(context: Any) -> NamedParameters | PositionalParameters | None:
    """Return the values of parameters in the form that `sql` takes. context: Spark's ParameterContext, or None. A value that is
    not text, a number, a boolean or null is an object of the JVM."""
    if context is None:
        return None
    parameters: NamedParameters | PositionalParameters
    match str(context.getClass().getSimpleName()):
        case "NamedParameterContext":
            parameters = NamedParameters((str(pair._1()), _constant(pair._2())) for pair in items(context.params().toSeq()))
        case "HybridParameterContext":  # of EXECUTE IMMEDIATE; Spark 4.2 has an empty name for each value by position
            values, names = map(_constant, items(context.args())), [str(name) for name in items(context.paramNames())]
            parameters = NamedParameters(zip(names, values, strict=True)) if any(names) else PositionalParameters(values)
        case _:
            parameters = PositionalParameters(map(_constant, items(context.params())))
    parameters.context = context
    return parameters


def _constant(expression: Any) -> Any:
    """Return the Python value of a literal; any other expression, and a value without a Python form, as it is in the JVM."""
    if expression.getClass().getSimpleName() != "Literal":
        return expression
    value = expression.value()
    return str(value.toString()) if value is not None and expression.dataType().typeName() == "string" else value


_VARIABLE = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}", re.ASCII)
# The prefixes of variables, as in ${env:HOME}: of those that the session's settings contain, and of those that its server has.
_SESSION_PREFIXES = (None, "spark", "sparkconf", "hivevar", "hiveconf")
_SERVER_PREFIXES = ("env", "system")
_MOST_VARIABLES = 1_000  # settings that refer to each other would never end


def with_variables(spark: Any, text: str) -> str | None:
    """Return the text of a statement as Spark's parser reads it: `${setting}` is replaced by the setting's value, if the
    session's settings allow it. The session is active. Returns None over Spark Connect for variables that only the server
    knows."""
    if "${" not in text:
        return text
    parser = parser_of(spark)
    if parser is not None:
        return parser.with_variables(text)
    return _replace_client_variables(spark, text) if is_on(spark, VARIABLES) else text


def _replace_client_variables(spark: Any, text: str) -> str | None:
    """Return the text with the session's variables replaced, as its server would do it; None if only the server knows a value, or
    if there are too many variables."""
    position = 0
    for _ in range(_MOST_VARIABLES):
        variable = _VARIABLE.search(text, position)
        if variable is None:
            return text
        if variable[1] in _SERVER_PREFIXES:
            return None
        if variable[1] in _SESSION_PREFIXES:  # a value may contain other variables
            position = variable.start()
            text = text[:position] + (conf(spark, variable[2]) or "") + text[variable.end() :]
        else:
            position = variable.end()
    return None


def parser_of(spark: Any) -> SqlInternals | None:
    """Return None over Spark Connect, whose clients have no parser."""
    return None if adapter_of(spark).internals is None else SqlInternals(spark)


class SqlInternals:
    """The parser of one classic session. Raises NotImplementedError for a session of Spark Connect."""

    def __init__(self, spark: Any) -> None:
        if is_connect(spark):
            raise NotImplementedError("a Spark Connect client has no parser")
        self._spark = spark

    def parsed(self, text: str, args: Any = None) -> ParsedPlan | None:
        """Return the plan of a statement, or None for text that Spark's parser refuses: Spark's own `sql` then explains the
        error.

        args: values by name or by position, as `sql` takes them. The queries of a leading WITH replace the names that refer to
        them.
        """
        parser = SparkInternals(self._spark).parser()
        try:
            plan = parser.parsePlanWithParameters(text, self._parameters(args)) if args else parser.parsePlan(text)
            return ParsedPlan(self, self.without_with(plan))
        except (PySparkException, Py4JJavaError):
            return None

    def with_variables(self, text: str) -> str:
        """Return the text with the values of `${setting}`. The session is active."""
        return str(self.jvm.org.apache.spark.sql.internal.VariableSubstitution().substitute(text))

    def without_with(self, plan: Any) -> Any:
        """Return the plan in which the queries of a leading WITH replace the names that refer to them. Raises
        AnalysisException."""
        if plan.nodeName() != "UnresolvedWith":
            return plan
        return self.jvm.org.apache.spark.sql.catalyst.analysis.CTESubstitution.apply(plan)

    def name_parts(self, text: str) -> tuple[str, ...]:
        """Return the parts of a table's name. Raises Spark's ParseException."""
        parser = SparkInternals(self._spark).parser()
        return tuple(map(str, items(parser.parseMultipartIdentifier(text))))

    def find_viewed_table(self, parts: Sequence[str]) -> ViewedTable | None:
        """Return what the view of this name shows, or None if the name is no view, or if the view reads no table."""
        catalog, name = self._spark._jsparkSession.sessionState().catalog(), self.sequence(list(parts))
        is_temporary = catalog.isTempView(name)
        if not is_temporary and not catalog.isView(name):
            return None
        frame = self._spark.table(".".join(map(quoted, parts)))
        viewed = _viewed_table(frame._jdf.queryExecution().analyzed())
        return viewed if viewed is None or is_temporary else replace(viewed, fault="stored")

    def rows_as_view(self, viewed: ViewedTable, frame: DataFrame, added_column: str) -> DataFrame:
        """Return the rows of another frame of the table as a view shows them: the view's columns, and then the frame's column
        `added_column`.

        Raises SchemaMismatchError (DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS) if the view was made of other columns than the frame's.
        """
        table_plan = frame._jdf.queryExecution().analyzed()
        columns = {str(column.name()): column for column in items(table_plan.output())}
        catalyst = self.jvm.org.apache.spark.sql.catalyst
        empty_sequence = self.sequence([])
        columns_with_view_ids = []
        for view_column in items(viewed.relation.output()):
            column = columns.get(str(view_column.name()))
            if column is None or column.dataType() != view_column.dataType():
                raise SchemaMismatchError(
                    f"The view was made of the table when its column {view_column.name()} was {view_column.dataType().sql()}; "
                    f"now it is {'not there' if column is None else column.dataType().sql()}. Nothing was changed. "
                    "Make the view again.",
                    error_class="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
                )
            # The view's projections refer to columns by the ids of the view's own relation, so the frame's columns get these ids.
            no_option = self.jvm.scala.Option.empty()
            name, view_id = view_column.name(), view_column.exprId()
            alias = catalyst.expressions.Alias(column, name, view_id, empty_sequence, no_option, empty_sequence)
            columns_with_view_ids.append(alias)
        plan = catalyst.plans.logical.Project(self.sequence([*columns_with_view_ids, columns[added_column]]), table_plan)
        for project in reversed(viewed.projections):  # from the table up to the view
            plan = catalyst.plans.logical.Project(self.sequence([*items(project.projectList()), columns[added_column]]), plan)
        return self.frame(plan)

    def frame(self, plan: Any) -> DataFrame:
        """Return the rows of a plan. Raises AnalysisException for names that do not exist."""
        return DataFrame(self.jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._spark._jsparkSession, plan), self._spark)

    def column(self, expression: Any) -> Column:
        return SparkInternals(self._spark).column(expression)

    def sequence(self, nodes: list[Any]) -> Any:
        """Return the nodes as a Scala sequence."""
        return self.jvm.PythonUtils.toSeq(nodes)

    def parsed_expression(self, text: str) -> Any:
        """Parse SQL text to an expression of the JVM. Raises Spark's ParseException."""
        return SparkInternals(self._spark).parser().parseExpression(text)

    def named_by_analyzer(self, expression: Any) -> Any:
        """Return an expression as an entry of a SELECT list, under the name that the analyzer gives it."""
        alias = self.jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAlias
        return alias(expression, self.jvm.scala.Option.empty())

    def value(self, expression: Any) -> Any:
        """Return the value of an expression that names no column: a literal, a session variable, or a function of these."""
        row = self._spark.range(1).select(self.column(expression)).first()
        return row[0]

    @cached_property
    def jvm(self) -> Any:
        return self._spark.sparkContext._jvm

    def _parameters(self, args: Any) -> Any:
        """Return the parameters as the parser takes them, a ParameterContext of the JVM. args: as `sql` takes them. The parser
        needs Catalyst's literals: Spark's analysis makes them from Columns, and ConstantFolding makes one of an array or
        map."""
        if isinstance(args, NamedParameters | PositionalParameters):
            return args.context
        by_name = isinstance(args, dict)
        values = [F.lit(value) for value in (args.values() if by_name else args)]
        columns = [value.alias(f"c{number}") for number, value in enumerate(values)]
        analyzed = self._spark.range(0).select(*columns)._jdf.queryExecution().analyzed()
        folded = self.jvm.org.apache.spark.sql.catalyst.optimizer.ConstantFolding.apply(analyzed)
        literals = [alias.child() for alias in items(folded.projectList())]
        contexts, utils = self.jvm.org.apache.spark.sql.catalyst.parser, self.jvm.PythonUtils
        if by_name:
            return contexts.NamedParameterContext(utils.toScalaMap(dict(zip(args, literals, strict=True))))
        return contexts.PositionalParameterContext(utils.toSeq(literals))


class ParsedPlan:
    """The plan of one statement as Spark's parser makes it, before any analysis. kind: the class of its root node."""

    def __init__(self, internals: SqlInternals, plan: Any) -> None:
        self.internals = internals
        self.node = plan
        self.kind = str(plan.nodeName())

    def target(self) -> ParsedTarget | None:
        """Return the table that a DELETE, UPDATE or MERGE changes; None for other statements, and for a target that is no
        name."""
        match self.kind:
            case "DeleteFromTable" | "UpdateTable":
                return self.relation_target(self.node.table())
            case "MergeIntoTable":
                return self.relation_target(self.node.targetTable())
        return None

    def explained_plan(self) -> tuple[ParsedPlan, str]:
        """Return what an EXPLAIN explains, and how: simple, extended, codegen, cost or formatted."""
        plan = self.internals.without_with(self.node.logicalPlan())
        return ParsedPlan(self.internals, plan), str(self.node.mode().name()).lower()

    def as_delete(self) -> ParsedChange:
        """Return the parts of the DELETE that this plan is."""
        return ParsedChange(self._condition(self.node.condition()))

    def as_update(self) -> ParsedChange:
        """Return the parts of the UPDATE that this plan is."""
        return ParsedChange(self._optional(self.node.condition()), self._assignments(self.node.assignments()))

    def as_merge(self) -> ParsedMerge:
        """Return the parts of the MERGE that this plan is."""
        plan = self.node
        clauses = [
            *self._clauses("matched", plan.matchedActions()),
            *self._clauses("not matched", plan.notMatchedActions()),
            *self._clauses("not matched by source", plan.notMatchedBySourceActions()),
        ]
        source = self.internals.frame(plan.sourceTable())
        condition = self.column(plan.mergeCondition())
        return ParsedMerge(source, condition, tuple(clauses), bool(plan.withSchemaEvolution()))

    def relation_target(self, plan: Any) -> ParsedTarget | None:
        """Return the table that the plan of a relation names, or None if it names no table."""
        alias = None
        if plan.nodeName() == "SubqueryAlias":
            alias, plan = str(plan.alias()), plan.child()
        parts = self.name_parts(plan)
        return None if parts is None else ParsedTarget(parts, alias)

    def name_parts(self, plan: Any) -> tuple[str, ...] | None:
        """Return the parts of the name if the node is an unresolved name; None for another node."""
        match str(plan.nodeName()):
            case "PlanWithUnresolvedIdentifier":  # IDENTIFIER(...) whose argument is no literal
                text = self.internals.value(plan.identifierExpr())
                return self.internals.name_parts(text) if isinstance(text, str) else None
            case "UnresolvedRelation" | "UnresolvedTable" | "UnresolvedTableOrView":
                return tuple(map(str, items(plan.multipartIdentifier())))
            case "UnresolvedIdentifier":
                return tuple(map(str, items(plan.nameParts())))
        return None

    def _clauses(self, kind: ClauseKind, actions: Any) -> Iterator[ParsedClause]:
        """Yield the WHEN clauses of one kind, in their order. actions: Spark's nodes of these clauses."""
        for action in items(actions):
            condition, name = self._optional(action.condition()), str(action.getClass().getSimpleName())
            match name:
                case "DeleteAction":
                    yield ParsedClause(kind, "delete", condition, None)
                case "UpdateStarAction":
                    yield ParsedClause(kind, "update", condition, None)
                case "InsertStarAction":
                    yield ParsedClause(kind, "insert", condition, None)
                case "UpdateAction":
                    yield ParsedClause(kind, "update", condition, self._assignments(action.assignments()))
                case "InsertAction":
                    yield ParsedClause(kind, "insert", condition, self._assignments(action.assignments()))
                case _:
                    raise NotImplementedError(f"MERGE has an action of Spark's that is not known here: {name}")

    def _assignments(self, assignments: Any) -> Assignments:
        return tuple((_parts(assignment.key()), self.column(assignment.value())) for assignment in items(assignments))

    def _optional(self, condition: Any) -> Column | None:
        return self._condition(condition.get()) if condition.isDefined() else None

    def _condition(self, condition: Any) -> Column | None:
        is_true = condition.getClass().getSimpleName() == "Literal" and condition.sql() == "true"
        return None if is_true else self.column(condition)

    def column(self, expression: Any) -> Column:
        return self.internals.column(expression)


# ---------------------------------------------------------------- views


def _viewed_table(node: Any) -> ViewedTable | None:
    """Return the table below a view, with the most serious reason why its rows cannot be changed through the view: other rows,
    then a filter, then an older version, then other columns. None if the view reads no table."""
    fault: ViewFault | None = None
    projections = []
    while (kind := str(node.getClass().getSimpleName())) != _RELATION:
        match kind:
            case "SubqueryAlias" | "View":  # these change neither rows nor columns
                pass
            case "Project":
                projections.append(node)
                fault = fault or (None if _keeps_columns(node) else "columns")
                if not node.deterministic():
                    fault = "rows"
            case "Filter":
                fault = fault if fault == "rows" else "filter"
            case _:
                fault = "rows"
        children = items(node.children())
        if not children:
            return None
        node = children[0]
    if node.timeTravelSpec().isDefined() and fault in (None, "columns"):
        fault = "version"
    options_map = node.options().asCaseSensitiveMap()
    options = {str(name): str(options_map.get(name)) for name in options_map.keySet()}
    return ViewedTable(_name_of_relation(node), str(node.table().name()), options, fault, node, tuple(projections))


_RELATION = "DataSourceV2Relation"


def _keeps_columns(project: Any) -> bool:
    """Return whether the projection has all columns of the node below it, in the same order and under the same names."""
    expressions, columns_below = items(project.projectList()), items(project.child().output())
    return len(expressions) == len(columns_below) and all(map(_is_same_column, expressions, columns_below))


def _is_same_column(expression: Any, column: Any) -> bool:
    """Return whether the expression is the column below it, unchanged and under the same name. A view casts each column to the
    type that it had when the view was made; a cast to the column's own type changes nothing."""
    if str(expression.name()) != str(column.name()):
        return False
    while str(expression.nodeName()).lower() in ("alias", "cast"):
        if expression.dataType() != column.dataType():
            return False
        expression = expression.child()
    return str(expression.nodeName()) == "AttributeReference" and bool(expression.exprId().equals(column.exprId()))


def _name_of_relation(relation: Any) -> tuple[str, ...] | None:
    """Return the name of a table in a catalog, without the name of the session catalog; None if the relation has none."""
    catalog, identifier = relation.catalog(), relation.identifier()
    if not catalog.isDefined() or not identifier.isDefined():
        return None
    java_name = identifier.get()
    parts = (*map(str, java_name.namespace()), str(java_name.name()))
    name = str(catalog.get().name())
    return parts if name == "spark_catalog" else (name, *parts)


def _parts(attribute: Any) -> tuple[str, ...]:
    return tuple(map(str, items(attribute.nameParts())))


def items(sequence: Any) -> Sequence[Any]:
    """Convert a Scala Seq."""
    return [sequence.apply(number) for number in range(sequence.length())]
