"""CREATE, REPLACE, ALTER and SHOW PARTITIONS as Spark's own parser reads them: the plans as Python values.

    plan = SqlInternals(spark).parsed("CREATE TABLE t (a INT) USING pydelta")
    definition = parsed_definition(plan)                # None for another statement

No name is resolved here; see sql_internals.py. INSERT is in sql/parsed_inserts.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructField

from delta_py.types.names import joined_name, quoted
from spark_plugin.internals.jvm_plans import data_type_from, data_type_of
from spark_plugin.sql_internals import ParsedPlan, items


class ParsedQuery:
    """The query of an INSERT or AS SELECT."""

    def __init__(self, plan: ParsedPlan, node: Any) -> None:
        self._plan = plan
        self._node = node

    def frame(self) -> DataFrame:
        """Return the rows of the query. Raises AnalysisException for names that do not exist."""
        return self._plan.internals.frame(self._node)

    def width(self) -> int | None:
        """Return how many values a row of VALUES, or the list of a SELECT, has; None if only Spark's analysis can tell, as for
        `*`."""
        listing = self._listing()
        match str(listing.nodeName()):
            case "UnresolvedInlineTable":
                return int(listing.rows().apply(0).length())
            case "Project":
                expressions = items(listing.projectList())
                has_star = any(str(expression.nodeName()).startswith("UnresolvedStar") for expression in expressions)
                return None if has_star else len(expressions)
        return None

    def with_defaults(self, default_of: Callable[[int], str]) -> ParsedQuery:
        """Return the query with an expression in place of each value that is the word DEFAULT alone, unless the rows that it
        selects from have a column of this name. default_of: returns SQL for the position of a value in its row."""
        internals, listing = self._plan.internals, self._listing()
        catalyst = internals.jvm.org.apache.spark.sql.catalyst

        def replace_default(number: int, expression: Any) -> Any:
            return internals.parsed_expression(default_of(number)) if _is_default(expression) else expression

        match str(listing.nodeName()):
            case "UnresolvedInlineTable":
                rows = [
                    internals.sequence([replace_default(*pair) for pair in enumerate(items(row))])
                    for row in items(listing.rows())
                ]
                return self._with_listing(catalyst.analysis.UnresolvedInlineTable(listing.names(), internals.sequence(rows)))
            case "Project":
                numbered_expressions = list(enumerate(items(listing.projectList())))
                has_default_word = any(_is_default(expression) for _, expression in numbered_expressions)
                if not has_default_word or self._selects_default(listing.child()):
                    return self
                select_list = [
                    internals.named_by_analyzer(replace_default(number, expression)) if _is_default(expression) else expression
                    for number, expression in numbered_expressions
                ]
                return self._with_listing(catalyst.plans.logical.Project(internals.sequence(select_list), listing.child()))
        return self

    def _listing(self) -> Any:
        """Return the node that lists the values. LIMIT, OFFSET and ORDER BY above it do not change the values."""
        node = self._node
        while str(node.nodeName()) in _NODES_THAT_KEEP_COLUMNS:
            node = node.child()
        return node

    def _with_listing(self, listing: Any) -> ParsedQuery:
        """Return the query with another node in place of the one that lists the values."""
        return ParsedQuery(self._plan, self._replace_listing(self._node, listing))

    def _replace_listing(self, node: Any, listing: Any) -> Any:
        """Return the plan `node` with another node in place of the one that lists the values."""
        if str(node.nodeName()) not in _NODES_THAT_KEEP_COLUMNS:
            return listing
        return node.withNewChildren(self._plan.internals.sequence([self._replace_listing(node.child(), listing)]))

    def _selects_default(self, rows: Any) -> bool:
        """Return whether the rows have a column named DEFAULT. As in Spark, such a column takes precedence."""
        if str(rows.nodeName()) == "OneRowRelation":
            return False
        return has_default(self._plan.internals.frame(rows))


_NODES_THAT_KEEP_COLUMNS = ("GlobalLimit", "LocalLimit", "Offset", "Sort")


def has_default(frame: DataFrame) -> bool:
    """Return whether a column is named DEFAULT. Raises AnalysisException."""
    return "default" in (name.lower() for name in frame.columns)


def _is_default(expression: Any) -> bool:
    """Return whether the expression is the word DEFAULT alone."""
    if str(expression.nodeName()) != "UnresolvedAttribute":
        return False
    parts = items(expression.nameParts())
    return len(parts) == 1 and str(parts[0]).upper() == "DEFAULT"


# ---------------------------------------------------------------- CREATE and REPLACE


@dataclass(frozen=True, slots=True)
class ParsedIdentity:
    """GENERATED ... AS IDENTITY. by_default: BY DEFAULT, so that rows may have their own values; otherwise ALWAYS."""

    start: int
    step: int
    by_default: bool


@dataclass(frozen=True, slots=True)
class ParsedColumn:
    """A column of a definition. default, generated: SQL as the statement has it; None if there is none."""

    name: str
    data_type: DataType
    nullable: bool
    comment: str | None = None
    default: str | None = None
    generated: str | None = None
    identity: ParsedIdentity | None = None


@dataclass(frozen=True, slots=True)
class ParsedConstraint:
    """kind: Check, PrimaryKey, Unique or ForeignKey. condition: of a Check, as text; None for the others."""

    kind: str
    name: str
    condition: str | None


@dataclass(frozen=True, slots=True)
class ParsedDefinition:
    """A CREATE or REPLACE TABLE. kind: create, createIfNotExists, replace or createOrReplace. parts: of the name. provider: None
    if the statement names none. cluster_by: None without CLUSTER BY. stored_as: whether the statement has a format of Hive.
    options: the names of OPTIONS, except the path. transforms: the parts of PARTITIONED BY that are no columns, as text. query:
    of AS SELECT."""

    kind: str
    parts: tuple[str, ...]
    provider: str | None
    columns: tuple[ParsedColumn, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] | None = None
    transforms: tuple[str, ...] = ()
    location: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    constraints: tuple[ParsedConstraint, ...] = ()
    stored_as: bool = False
    query: ParsedQuery | None = None

    @property
    def name(self) -> str:
        """The name as SQL text."""
        return ".".join(map(quoted, self.parts))


def parsed_definition(plan: ParsedPlan) -> ParsedDefinition | None:
    """Return the definition in a CREATE or REPLACE TABLE. None for another statement, and for one whose target is not the name of
    a table."""
    node = plan.node
    match plan.kind:
        case "CreateTable" | "CreateTableAsSelect":
            kind = "createIfNotExists" if node.ignoreIfExists() else "create"
        case "ReplaceTable" | "ReplaceTableAsSelect":
            kind = "createOrReplace" if node.orCreate() else "replace"
        case _:
            return None
    parts, spec, as_select = plan.name_parts(node.name()), node.tableSpec(), plan.kind.endswith("AsSelect")
    if parts is None:
        return None
    partition_by, cluster_by, transforms = _partitioning(items(node.partitioning()))
    return ParsedDefinition(
        kind,
        parts,
        _optional(spec.provider()),
        columns=() if as_select else tuple(_column(plan, column) for column in items(node.columns())),
        partition_by=partition_by,
        cluster_by=cluster_by,
        transforms=transforms,
        location=_optional(spec.location()),
        comment=_optional(spec.comment()),
        properties=_text_map(spec.properties()),
        options=tuple(str(pair._1()) for pair in items(spec.optionExpression().options())),
        constraints=tuple(map(_constraint, items(spec.constraints()))),
        stored_as=bool(spec.serde().isDefined()),
        query=ParsedQuery(plan, node.query()) if as_select else None,
    )


def _constraint(node: Any) -> ParsedConstraint:
    kind = str(node.getClass().getSimpleName()).removesuffix("Constraint")
    return ParsedConstraint(kind, str(node.name()), str(node.condition()) if kind == "Check" else None)


def _column(plan: ParsedPlan, node: Any) -> ParsedColumn:
    default, generated, identity = node.defaultValue(), node.generationExpression(), node.identityColumnSpec()
    numbers = identity.get() if identity.isDefined() else None
    return ParsedColumn(
        str(node.name()),
        data_type_of(node),
        bool(node.nullable()),
        _optional(node.comment()),
        str(default.get().originalSQL()) if default.isDefined() else None,
        _sql_text(generated.get()) if generated.isDefined() else None,
        None if numbers is None else ParsedIdentity(numbers.getStart(), numbers.getStep(), numbers.isAllowExplicitInsert()),
    )


def _sql_text(generated: Any) -> str:
    """Return the text of a generation expression. delta-spark's parser has it as text."""
    return generated if isinstance(generated, str) else str(generated.originalSQL())


def _partitioning(transforms: Sequence[Any]) -> tuple[tuple[str, ...], tuple[str, ...] | None, tuple[str, ...]]:
    """Return the columns to partition by, the columns to cluster by (None without CLUSTER BY), and all other transforms as
    text."""
    columns: list[str] = []
    clustering, other_transforms = None, []
    for transform in transforms:
        match str(transform.name()):
            case "identity":
                columns.extend(".".join(path) for path in _column_paths(transform))
            case "cluster_by" | "temp_cluster_by":  # delta-spark's parser uses the latter
                clustering = tuple(map(joined_name, _column_paths(transform)))
            case _:
                other_transforms.append(str(transform.toString()))
    return tuple(columns), clustering, tuple(other_transforms)


def _column_paths(transform: Any) -> list[tuple[str, ...]]:
    """Return the transform's arguments, which are all columns. py4j does not find `references` if the class has it only from its
    interface."""
    return [tuple(map(str, argument.fieldNames())) for argument in transform.arguments()]


def _optional(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None


def text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def _text_map(scala_map: Any) -> dict[str, str]:
    return {str(pair._1()): str(pair._2()) for pair in items(scala_map.toSeq())}


# ---------------------------------------------------------------- ALTER, COMMENT ON, TRUNCATE


@dataclass(frozen=True, slots=True)
class ParsedAlteration:
    """A statement that changes a table, as a call. parts: of the table's name. method: a method of DeltaTable, or `truncate`.
    arguments, keyword_arguments: those of the method."""

    parts: tuple[str, ...]
    method: str
    arguments: tuple[Any, ...] = ()
    keyword_arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def required_names(self) -> tuple[str, ...]:
        """The names, as SQL text, of columns and fields that the table must have already."""
        match self.method, self.arguments:
            case "renameColumn", (name, _):
                return (name,)
            case (("dropColumns" | "alterColumns"), (names,)):
                return tuple(names)
        return ()


def parsed_alteration(plan: ParsedPlan) -> ParsedAlteration | None:
    """Return the change that an ALTER TABLE, COMMENT ON or TRUNCATE makes. None for another statement, and for one whose target
    is not the name of a table."""
    method_call = _method_call_of(plan)
    parts = None if method_call is None else plan.name_parts(plan.node.table())
    if method_call is None or parts is None:
        return None
    method, arguments, keyword_arguments = method_call
    return ParsedAlteration(parts, method, arguments, keyword_arguments)


def _method_call_of(plan: ParsedPlan) -> tuple[str, tuple[Any, ...], Mapping[str, Any]] | None:
    """Return the method of DeltaTable that does the same as the statement, or `truncate`, with its positional and its keyword
    arguments; None for another statement."""
    node = plan.node
    match plan.kind:
        case "AddColumns":
            return "addColumns", ([_add_arguments(column) for column in items(node.columnsToAdd())],), {}
        case "ReplaceColumns":
            return "replaceColumns", ([_replacement_column(column) for column in items(node.columnsToAdd())],), {}
        case "RenameColumn":
            return "renameColumn", (_column_sql(node.column()), str(node.newName())), {}
        case "DropColumns":
            names = [_column_sql(column) for column in items(node.columnsToDrop())]
            return "dropColumns", (names,), {"ifExists": bool(node.ifExists())}
        case "AlterColumns":
            changes = {_column_sql(change.column()): _alter_arguments(change) for change in items(node.specs())}
            return "alterColumns", (changes,), {}
        case "SetTableProperties":
            return "setProperties", (_text_map(node.properties()),), {}
        case "UnsetTableProperties":  # Spark does not pass IF EXISTS to catalogs: delta-spark assumes it
            return "unsetProperties", ([str(key) for key in items(node.propertyKeys())],), {"ifExists": True}
        case "CommentOnTable":
            return "setProperties", ({"comment": str(node.comment())},), {}
        case "TruncateTable":
            return "truncate", (), {}
    return None


def _add_arguments(node: Any) -> dict[str, Any]:
    """Return the arguments of DeltaTable.addColumns for one column."""
    within = [*items(node.path().get().name())] if node.path().isDefined() else []
    default = node.default()
    return {
        "name": ".".join(quoted(str(part)) for part in (*within, node.colName())),
        "dataType": data_type_of(node),
        "nullable": bool(node.nullable()),
        "comment": _optional(node.comment()),
        "default": str(default.get().originalSQL()) if default.isDefined() else None,
        **_position_argument(node.position()),
    }


def _replacement_column(node: Any) -> StructField:
    """Return a column of REPLACE COLUMNS."""
    comment = _optional(node.comment())
    metadata = {} if comment is None else {"comment": comment}
    return StructField(str(node.colName()), data_type_of(node), bool(node.nullable()), metadata)


def _alter_arguments(node: Any) -> dict[str, Any]:
    """Return the arguments of DeltaTable.alterColumns for one column."""
    kind, nullable, default = node.newDataType(), node.newNullability(), node.newDefaultExpression()
    return {
        "dataType": data_type_from(kind.get()) if kind.isDefined() else None,
        "nullable": bool(nullable.get()) if nullable.isDefined() else None,
        "comment": _optional(node.newComment()),
        "default": str(default.get().originalSQL()) if default.isDefined() else None,
        "dropDefault": bool(node.dropDefault()),
        **_position_argument(node.newPosition()),
    }


def _position_argument(position: Any) -> dict[str, Any]:
    """Return the argument `first` or `after` for a column's position; none if the statement states no position."""
    if not position.isDefined():
        return {}
    java_position = position.get().position()
    return {"first": True} if str(java_position.toString()) == "FIRST" else {"after": str(java_position.column())}


def _column_sql(column: Any) -> str:
    """Return a column's name as SQL text."""
    return ".".join(quoted(str(part)) for part in items(column.name()))


# ---------------------------------------------------------------- SHOW


def shown_table(plan: ParsedPlan) -> tuple[str, ...] | None:
    """Return the name in a SHOW CREATE TABLE; None for another statement, and for AS SERDE, which is about tables of Hive."""
    if plan.kind != "ShowCreateTable" or plan.node.asSerde():
        return None
    return plan.name_parts(plan.node.child())


@dataclass(frozen=True, slots=True)
class ParsedPartitions:
    """A SHOW PARTITIONS. parts: of the table's name. values: of PARTITION, by column, as text; empty without PARTITION."""

    parts: tuple[str, ...]
    values: Mapping[str, str | None]


def parsed_partitions(plan: ParsedPlan) -> ParsedPartitions | None:
    """Return what a SHOW PARTITIONS asks for. None for another statement, and for one whose target is not the name of a table."""
    parts = plan.name_parts(plan.node.table()) if plan.kind == "ShowPartitions" else None
    if parts is None:
        return None
    pattern = plan.node.pattern()
    pairs = items(pattern.get().spec().toSeq()) if pattern.isDefined() else []
    return ParsedPartitions(parts, {str(pair._1()): text_or_none(pair._2()) for pair in pairs})


# ---------------------------------------------------------------- CREATE TABLE LIKE


@dataclass(frozen=True, slots=True)
class ParsedLikeness:
    """A CREATE TABLE ... LIKE. parts: of the new table's name. source: the parts of the name of the table whose definition it
    copies. provider: None if the statement names none."""

    parts: tuple[str, ...]
    source: tuple[str, ...]
    provider: str | None
    location: str | None
    properties: Mapping[str, str]
    if_not_exists: bool

    @property
    def name(self) -> str:
        """The name as SQL text."""
        return ".".join(map(quoted, self.parts))


def parsed_likeness(plan: ParsedPlan) -> ParsedLikeness | None:
    """Return the CREATE TABLE ... LIKE. None for another statement, for one whose target or source is not the name of a table,
    and for one with a format of Hive (STORED AS)."""
    node, location = plan.node, None
    match plan.kind:
        case "CreateTableLike":
            parts, source, of_hive = plan.name_parts(node.name()), plan.name_parts(node.source()), node.serdeInfo().isDefined()
            location = _optional(node.location())
        case "CreateTableLikeCommand":
            parts, source = _parts(node.targetTable()), _parts(node.sourceTable())
            of_hive, uri = node.fileFormat().inputFormat().isDefined(), node.fileFormat().locationUri()
            texts = plan.internals.jvm.org.apache.spark.sql.catalyst.catalog.CatalogUtils
            location = str(texts.URIToString(uri.get())) if uri.isDefined() else None
        case _:
            return None
    if parts is None or source is None or of_hive:
        return None
    provider, properties = _optional(node.provider()), _text_map(node.properties())
    return ParsedLikeness(parts, source, provider, location, properties, bool(node.ifNotExists()))


def _parts(identifier: Any) -> tuple[str, ...]:
    return tuple(map(str, items(identifier.nameParts())))
