"""Plans and expressions of the JVM, as Spark's analyzer represents them: what they are, and what they contain.

They are opaque to callers, who pass them between `spark_internals.py` and this module. For a Spark Connect client
`connect_internals.py` does the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from pyspark.sql.types import DataType, _parse_datatype_json_string

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
# Nodes of a plan that return the same rows each time if their children do.
_REPEATABLE = frozenset({"Project", "Filter", "SubqueryAlias", "Union", "LocalRelation", "Range", "OneRowRelation"})
HIDDEN_COLUMN = "__metadata_col"
"""A key in the metadata of columns that `*` does not include."""


def expression_sql(expression: Any) -> str:
    return str(expression.sql())


def unanalyzed_sql(column: Any) -> str:
    """Return a Column of a classic session as SQL text, before any analysis."""
    return str(column._jc.node().sql())


def data_type_of(expression: Any) -> DataType:
    return data_type_from(expression.dataType())


def data_type_from(data_type: Any) -> DataType:
    """Convert a data type of the JVM."""
    return _parse_datatype_json_string(data_type.json())


def default_size(expression: Any) -> int:
    """Return the approximate bytes of one value of the expression, which Spark derives from the type alone."""
    return int(expression.dataType().defaultSize())


def is_deterministic_expression(expression: Any) -> bool:
    return bool(expression.deterministic())


def is_constant(expression: Any) -> bool:
    return bool(expression.foldable())


def aliased_expression(alias: Any) -> Any:
    """Return the expression below an alias."""
    return alias.child()


def attribute_path(expression: Any) -> tuple[str, ...] | None:
    """Return the names on the path of the expression: an attribute, or a field of a struct. None if it is neither."""
    names: list[str] = []
    while expression.nodeName() == "Alias":
        expression = expression.child()
    while class_of(expression) == "GetStructField":
        names.append(expression.childSchema().fieldNames()[expression.ordinal()])
        expression = expression.child()
    return (str(expression.name()), *reversed(names)) if class_of(expression) == "AttributeReference" else None


def conjuncts(expression: Any) -> Iterator[Any]:
    """Yield the parts of a condition that AND joins."""
    if class_of(expression) == "And":
        yield from conjuncts(expression.left())
        yield from conjuncts(expression.right())
    else:
        yield expression


def comparison_of(expression: Any) -> str | None:
    """Return the operator of a comparison (=, <=>, <, <=, >, >=); None for any other expression."""
    return _COMPARISONS.get(class_of(expression))


def operands_of(comparison: Any) -> tuple[Any, Any]:
    return comparison.left(), comparison.right()


def used_by(expression: Any) -> Any:
    """Return the set of columns that the expression names. Pass it to `holds`."""
    return expression.references()


def uses_only(expression: Any, attributes: Any) -> bool:
    """Return whether an `attribute_set` contains everything that the expression names."""
    return bool(expression.references().subsetOf(attributes))


def holds(attributes: Any, attribute: Any) -> bool:
    """Return whether a set of attributes, from `used_by` or `attribute_set`, contains this one."""
    return bool(attributes.contains(attribute))


def column_metadata(expression: Any, key: str) -> list[str]:
    """Return the text values under a key of the metadata of the columns that the expression names."""
    metadata = [attribute.metadata() for attribute in to_list(expression.references().toSeq())]
    return [str(values.getString(key)) for values in metadata if values.contains(key)]


def class_of(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def to_list(sequence: Any) -> list[Any]:
    """Convert a Scala Seq."""
    return [sequence.apply(number) for number in range(sequence.length())]


# ---------------------------------------------------------------- plans


class NotRowByRow(Enum):
    """Why a projection of a frame does not return exactly one row for each row of the frame: it has aggregates, a generator such
    as explode, a hidden column such as `_metadata`, or a window function."""

    AGGREGATE = "aggregate"
    GENERATOR = "generator"
    HIDDEN = "a hidden column"
    WINDOW = "window"


def nodes_repeat(plan: Any, source: str) -> bool:
    """Return whether every node of the plan is of a kind that returns the same rows each time. source: the name of the Python
    data source whose tables do so if their version is fixed."""
    children = plan.children()
    is_repeatable = str(plan.nodeName()) in _REPEATABLE or _reads_fixed_version(plan, source)
    return is_repeatable and all(nodes_repeat(children.apply(number), source) for number in range(children.length()))


def read_paths(plan: Any) -> set[str]:
    """Return the paths of the tables of Python data sources that a plan reads, also in subqueries."""
    plans = [plan, *to_list(plan.subqueriesAll())]
    leaves = [leaf for plan in plans for leaf in to_list(plan.collectLeaves()) if class_of(leaf) == "DataSourceV2Relation"]
    paths = {_table_path(leaf) for leaf in leaves if class_of(leaf.table()) in (*_PYTHON_TABLES, "SourceTable")}
    return {str(path) for path in paths if path is not None}


def _table_path(relation: Any) -> Any:
    """Return the path of the table that a relation reads, a text; None if it has no path. A SourceTable, the table class of our
    catalogs, has the path in its properties; a table that was loaded by its path has it in the options of the read."""
    table = relation.table()
    return table.properties().get("location") if class_of(table) == "SourceTable" else relation.options().get("path")


# Classes of tables of Python data sources: Spark's, and our subclass with the column `_metadata`.
_PYTHON_TABLES = ("PythonTable", "MetadataTable")


def _reads_fixed_version(plan: Any, source: str) -> bool:
    """Whether the relation reads one fixed version, so that each read returns the same rows."""
    if class_of(plan) != "DataSourceV2Relation":
        return False
    if class_of(plan.table()) == "SourceTable":
        return bool(plan.table().isPinned(plan.options()))
    if class_of(plan.table()) not in _PYTHON_TABLES:
        return False
    # With one of these options two reads may return different rows.
    may_change = any(plan.options().getBoolean(name, False) for name in ("followLatest", "ignoreMissingFiles"))
    return str(plan.table().name()).lower() == source and not may_change
