"""Plans and expressions of the JVM, as Spark's analyzer holds them: what they are, and what is in them.

They are opaque to callers, who hand them from `spark_internals.py` to here and back. What a client of Spark Connect has in their
place is in `connect_internals.py`.
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
_REPEATABLE = frozenset({"Project", "Filter", "SubqueryAlias", "Union", "LocalRelation", "Range", "OneRowRelation"})
HIDDEN_COLUMN = "__metadata_col"
"""In the metadata of columns that `*` does not name."""


def expression_sql(expression: Any) -> str:
    return str(expression.sql())


def unanalyzed_sql(column: Any) -> str:
    """A Column of a classic session as SQL text, before any analysis."""
    return str(column._jc.node().sql())


def data_type_of(expression: Any) -> DataType:
    return data_type_from(expression.dataType())


def data_type_from(data_type: Any) -> DataType:
    """Of the JVM's."""
    return _parse_datatype_json_string(data_type.json())


def default_size(expression: Any) -> int:
    """About the bytes of one value, by its type alone."""
    return int(expression.dataType().defaultSize())


def is_deterministic_expression(expression: Any) -> bool:
    return bool(expression.deterministic())


def is_constant(expression: Any) -> bool:
    return bool(expression.foldable())


def aliased(alias: Any) -> Any:
    """What stands under an alias."""
    return alias.child()


def attribute_path(expression: Any) -> tuple[str, ...] | None:
    """The names on the way to what an expression takes: an attribute, or a field of a struct. None when it takes neither."""
    names: list[str] = []
    while expression.nodeName() == "Alias":
        expression = expression.child()
    while class_of(expression) == "GetStructField":
        names.append(expression.childSchema().fieldNames()[expression.ordinal()])
        expression = expression.child()
    return (str(expression.name()), *reversed(names)) if class_of(expression) == "AttributeReference" else None


def conjuncts(expression: Any) -> Iterator[Any]:
    """The parts of a condition that AND joins."""
    if class_of(expression) == "And":
        yield from conjuncts(expression.left())
        yield from conjuncts(expression.right())
    else:
        yield expression


def comparison_of(expression: Any) -> str | None:
    """The operator of a comparison (=, <=>, <, <=, >, >=); None for what is none."""
    return _COMPARISONS.get(class_of(expression))


def operands_of(comparison: Any) -> tuple[Any, Any]:
    return comparison.left(), comparison.right()


def used_by(expression: Any) -> Any:
    """The attributes that the expression names, for `holds`."""
    return expression.references()


def uses_only(expression: Any, attributes: Any) -> bool:
    """Whether all that the expression names is in an `attribute_set`."""
    return bool(expression.references().subsetOf(attributes))


def holds(attributes: Any, attribute: Any) -> bool:
    return bool(attributes.contains(attribute))


def column_metadata(expression: Any, key: str) -> list[str]:
    """What the columns that the expression names have under a key of their metadata, which is text."""
    metadata = [attribute.metadata() for attribute in listed(expression.references().toSeq())]
    return [str(values.getString(key)) for values in metadata if values.contains(key)]


def class_of(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def listed(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.length())]


# ---------------------------------------------------------------- plans


class NotRowByRow(Enum):
    """What keeps a projection from one row a row."""

    AGGREGATE = "aggregate"
    GENERATOR = "generator"
    HIDDEN = "a hidden column"
    WINDOW = "window"


def nodes_repeat(plan: Any, source: str) -> bool:
    children = plan.children()
    known = str(plan.nodeName()) in _REPEATABLE or _is_pinned(plan, source)
    return known and all(nodes_repeat(children.apply(number), source) for number in range(children.length()))


def read_paths(plan: Any) -> set[str]:
    """The paths of the tables of Python data sources that a plan reads, in subqueries too."""
    plans = [plan, *listed(plan.subqueriesAll())]
    leaves = [leaf for one in plans for leaf in listed(one.collectLeaves()) if class_of(leaf) == "DataSourceV2Relation"]
    paths = {_path_of(leaf) for leaf in leaves if class_of(leaf.table()) in (*_PYTHON_TABLES, "SourceTable")}
    return {str(path) for path in paths if path is not None}


def _path_of(relation: Any) -> Any:
    table = relation.table()
    return table.properties().get("location") if class_of(table) == "SourceTable" else relation.options().get("path")


_PYTHON_TABLES = ("PythonTable", "MetadataTable")


def _is_pinned(plan: Any, source: str) -> bool:
    if class_of(plan) != "DataSourceV2Relation":
        return False
    if class_of(plan.table()) == "SourceTable":
        return bool(plan.table().isPinned(plan.options()))
    if class_of(plan.table()) not in _PYTHON_TABLES:
        return False
    changing = ("followLatest", "ignoreMissingFiles")
    return str(plan.table().name()).lower() == source and not any(plan.options().getBoolean(name, False) for name in changing)
