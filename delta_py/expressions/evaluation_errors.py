"""The errors of expressions: text that is not an expression, types that do not match, values that ANSI SQL refuses.

Each is an ExpressionError with the condition name that Spark's users know.
"""

from __future__ import annotations

from typing import Any

from delta_py.errors import ExpressionError
from delta_py.types.schema import DataType, type_name
from delta_py.visible_text import is_visible

MAX_NODES = 100_000
"""The maximum number of parts of one expression. A part counts in each of its places, so a short text may have very many."""

SUBQUERY = "A subquery"
"""The subject of not_supported for a subquery. Callers compare it with the error's `function` to give their own error."""

_SHOWN_CHARACTERS = 100


class BadRows(Exception):
    """The cause of an ExpressionError about values: it names the rows, so that the `try_` functions can make them null.

    rows: a boolean for each row, true for all rows that fail in the same way.
    """

    def __init__(self, rows: Any) -> None:
        super().__init__("rows that fail")
        self.rows = rows


def not_supported(what: str, why: str = "") -> ExpressionError:
    """The error for something that Spark can do and this library cannot. what: the subject of the sentence. why: a reason or
    advice, as a sentence; if it is empty, the message has a general reason."""
    reason = f" {why}" if why else " It cannot be evaluated exactly as Spark does."
    return ExpressionError(f"{what} is not supported here.{reason}", function=what)


def not_an_expression(sql: str, why: str) -> ExpressionError:
    return ExpressionError(
        f"{shown(sql)} is not an expression: {why}.", error_class="PARSE_SYNTAX_ERROR", sql_state="42601", expression=shown(sql)
    )


def too_large() -> ExpressionError:
    return ExpressionError(
        f"The expression has more than {MAX_NODES} parts, an operand counted each time that it is needed (in BETWEEN twice). "
        "Split it, or use IN for many values.",
        error_class="PARSE_SYNTAX_ERROR",
        sql_state="42601",
    )


def mismatch(what: str, *types: DataType) -> ExpressionError:
    """The error for operands whose types do not fit an operation. what: the operation."""
    names = " and ".join(type_name(t) for t in types)
    return ExpressionError(
        f"{what} does not work on {names}. Cast the operands to types that fit.",
        error_class="DATATYPE_MISMATCH",
        sql_state="42K09",
        function=what,
        types=names,
    )


def wrong_argument_count(name: str, actual_count: int, expected: str) -> ExpressionError:
    return ExpressionError(
        f"{name} takes {expected} arguments, not {actual_count}.", error_class="WRONG_NUM_ARGS", sql_state="42605", function=name
    )


def overflow(what: str, *, small: bool = False) -> ExpressionError:
    """The error for a result that its type cannot hold. small: the operands are bytes or shorts, for which Spark has another
    condition name."""
    return ExpressionError(
        f"{what} leaves the range of its type. Cast an operand to a wider type.",
        error_class="BINARY_ARITHMETIC_OVERFLOW" if small else "ARITHMETIC_OVERFLOW",
        sql_state="22003",
        function=what,
    )


def division_by_zero(what: str) -> ExpressionError:
    return ExpressionError(
        f"{what} by zero. Guard it, as in `if(b = 0, null, a / b)`.",
        error_class="REMAINDER_BY_ZERO" if what == "Remainder" else "DIVIDE_BY_ZERO",
        sql_state="22012",
        function=what,
    )


def invalid_input(value: object, target: DataType) -> ExpressionError:
    return ExpressionError(
        f"The text {shown(str(value))} cannot be read as {type_name(target)}. Correct it, or cast to another type.",
        error_class="CAST_INVALID_INPUT",
        sql_state="22018",
        value=shown(str(value)),
        type=type_name(target),
    )


def does_not_fit(value: object, target: DataType) -> ExpressionError:
    return ExpressionError(
        f"The value {shown(str(value))} does not fit {type_name(target)}. Cast to a wider type.",
        error_class="CAST_OVERFLOW",
        sql_state="22003",
        value=shown(str(value)),
        type=type_name(target),
    )


def shown(text: str) -> str:
    """The text for a message: quoted, and cut off if it is long."""
    cut = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
    return f"'{cut}'" if is_visible(cut) else ascii(cut)
