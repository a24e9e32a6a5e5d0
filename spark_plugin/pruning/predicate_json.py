"""Converts predicates that the rule passes as JSON to expression trees.

A predicate is `{"name": "<", "children": [...]}`, a column `{"column": ["st", "x"]}`, a constant
`{"type": "integer", "value": 5}`; PredicateJson.java writes them.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
from collections.abc import Iterable
from typing import Any

from delta_py.expressions import tree
from delta_py.types.schema import primitive_from_name

_EPOCH = dt.datetime(1970, 1, 1)
_COMPARISONS = frozenset({"=", "<=>", "<", "<=", ">", ">="})
_STRING_MATCHES = {"STARTS_WITH": "startswith", "ENDS_WITH": "endswith", "CONTAINS": "contains"}


def parse_predicate(value: dict[str, Any]) -> tree.Expression | None:
    """Return the expression of a predicate; None if it has a constant that Python cannot represent (a date after the year 9999).
    Raises ValueError for a predicate of an unknown kind."""
    try:
        return _expression(value)
    except (OverflowError, decimal.InvalidOperation):
        return None


def conjunction_of(parts: Iterable[tree.Expression | None]) -> tree.Expression | None:
    """Combine all predicates that Python can represent; None if there are none."""
    readable_parts = tuple(part for part in parts if part is not None)
    return tree.conjunction(readable_parts) if readable_parts else None


def predicate_of(text: str) -> tree.Expression:
    """Return the conjunction of the conditions in a JSON list; a conjunction of nothing, which is true, for an empty list. The
    caller must apply it exactly, so no condition may be dropped. Raises ValueError for a condition that Python cannot
    represent."""
    parts = [parse_predicate(value) for value in json.loads(text)]
    if None in parts:
        raise ValueError(f"The conditions {text} hold a constant that Python does not have.")
    return conjunction_of(parts) or tree.And(())


def _expression(value: dict[str, Any]) -> tree.Expression:
    """Return the expression of a predicate, column or constant in JSON. Raises ValueError for a predicate that is not known, and
    OverflowError or InvalidOperation for a constant that Python cannot represent."""
    if "column" in value:
        return tree.Column(tuple(value["column"]))
    if "type" in value:
        return _literal(value)
    name, operands = value["name"], tuple(_expression(child) for child in value["children"])
    match name, operands:
        case "AND", _:
            return tree.And(operands)
        case "OR", _:
            return tree.Or(operands)
        case "NOT", (operand,):
            return tree.Not(operand)
        case "IS_NULL", (operand,):
            return tree.IsNull(operand)
        case "IS_NOT_NULL", (operand,):
            return tree.Not(tree.IsNull(operand))
        case "<>", (left, right):
            return tree.Not(tree.Comparison("=", left, right))
        case _, (left, right) if name in _COMPARISONS:
            return tree.Comparison(name, left, right)
        case _, (operand, tree.Literal(str(pattern))) if name in _STRING_MATCHES:
            return tree.StringMatch(_STRING_MATCHES[name], operand, pattern)
        case "IN", (operand, *options):
            constants = tuple(option for option in options if isinstance(option, tree.Literal))
            if len(constants) == len(options):  # tree.In has no columns as options, so such a predicate counts as unknown
                return tree.In(operand, constants)
    raise ValueError(f"The pruning rule handed over a predicate that the source does not know: {value!r}.")


def _literal(value: dict[str, Any]) -> tree.Literal:
    """Return a constant. In JSON dates are days, and timestamps microseconds, since 1970; binary values are base64; decimals,
    floats and doubles are texts."""
    data_type = primitive_from_name(value["type"])
    constant = value["value"]
    if constant is None:
        return tree.Literal(None, data_type)
    match value["type"]:
        case "date":
            return tree.Literal((_EPOCH + dt.timedelta(days=constant)).date(), data_type)
        case "timestamp":
            return tree.Literal((_EPOCH + dt.timedelta(microseconds=constant)).replace(tzinfo=dt.UTC), data_type)
        case "timestamp_ntz":
            return tree.Literal(_EPOCH + dt.timedelta(microseconds=constant), data_type)
        case "float" | "double":
            return tree.Literal(float(constant), data_type)
        case "binary":
            return tree.Literal(base64.b64decode(constant), data_type)
        case name if name.startswith("decimal"):
            return tree.Literal(decimal.Decimal(constant), data_type)
    return tree.Literal(constant, data_type)
