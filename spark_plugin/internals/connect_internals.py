"""What a client of Spark Connect keeps to itself: the expressions in its Columns, the plans of its frames, its active session.

A client has no JVM: it writes down what its Columns and frames are, and the server resolves the names. `client_node` gives the
uppermost node of an expression as one of the classes here, whose operands are again a client's expressions.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql.types import DataType

# ---------------------------------------------------------------- what a Column holds

_log = logging.getLogger("pydelta")


@dataclass(frozen=True, slots=True)
class ClientSql:
    """A piece of SQL text."""

    text: str


@dataclass(frozen=True, slots=True)
class ClientName:
    """A column by its name, of no particular frame."""

    name: str


@dataclass(frozen=True, slots=True)
class ClientLiteral:
    """A constant. Dates are days, timestamps microseconds, since 1970."""

    value: Any
    data_type: DataType


@dataclass(frozen=True, slots=True)
class ClientCast:
    """CAST by the session's mode. operand: an expression of the client."""

    operand: Any
    data_type: DataType


@dataclass(frozen=True, slots=True)
class ClientFunction:
    """A function without DISTINCT, operators too. operands: expressions of the client."""

    name: str
    operands: tuple[Any, ...]


ClientNode: TypeAlias = ClientSql | ClientName | ClientLiteral | ClientCast | ClientFunction


def client_expression(column: Any) -> Any:
    """The expression in a Column of a client; its str() is how the client writes it. None for what is no such Column."""
    return getattr(column, "_expr", None)


def client_node(expression: Any) -> ClientNode | None:
    """The uppermost node of a client's expression; None for one that is nothing of the above."""
    match type(expression).__name__:
        case "SQLExpression":
            return ClientSql(str(expression._expr))
        case "ColumnReference" if expression._plan_id is None:
            return ClientName(expression._unparsed_identifier)
        case "LiteralExpression":
            return ClientLiteral(expression._value, expression._dataType)
        case "CastExpression" if expression._eval_mode is None and isinstance(expression._data_type, DataType):
            return ClientCast(expression._expr, expression._data_type)
        case "UnresolvedFunction" if not expression._is_distinct:
            return ClientFunction(expression._name, tuple(expression._args))
    return None


def client_cast(column: Any, wanted: DataType, mode: str) -> Any:
    """CAST of a client's Column, in the evaluation mode of this name."""
    from pyspark.sql.connect.column import Column as ClientColumn
    from pyspark.sql.connect.expressions import CastExpression

    return ClientColumn(CastExpression(column._expr, wanted, mode))


# ---------------------------------------------------------------- sessions


@contextmanager
def activated_client(spark: Any) -> Iterator[None]:
    """A client's session as the active one of this thread meanwhile: pyspark looks what localCheckpoint gives up in that one,
    whichever session's frame it is of."""
    threads = type(spark)._active_session
    before = getattr(threads, "session", None)
    threads.session = spark
    try:
        yield
    finally:
        threads.session = before


# ---------------------------------------------------------------- plans


def stand_in_for(frame: Any, other: Any) -> None:
    """From now on the columns that callers took from the other frame of a client are the frame's: it takes over the number by
    which they know theirs."""
    frame._plan._root_plan_id = other._plan._plan_id


def release_checkpoint(frame: Any) -> None:
    """Have the server let go what localCheckpoint has kept for a frame, which cannot be read any more.

    pyspark asks for it when the frame's plan is collected, by a call without end of time, in whatever the program does just then:
    such a call was seen to wait for ever. A server that cannot be asked keeps it until the session ends.
    """
    from pyspark.sql.connect.plan import RemoveRemoteCachedRelation

    relation, client = frame._plan, frame.sparkSession.client
    try:
        client.execute_command(RemoveRemoteCachedRelation(relation).command(session=client))
    except Exception as error:  # the frame has done its work, or its error is on the way
        _log.warning("The server keeps what was held for a statement until the session ends: %s", error)
    relation._relation_id = None


def may_have_subqueries(frame: Any) -> bool:
    """Whether the plan of a client's projection has any, by the text that the server explains it with."""
    # Below a projection, which has one child, others are its subqueries.
    analyzed = _ANALYZED.search(frame._explain_string(extended=True))
    return analyzed is None or _SECOND_CHILD.search(analyzed[1]) is not None


_ANALYZED = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n== Optimized Logical Plan ==", re.DOTALL)
_SECOND_CHILD = re.compile(r"^:", re.MULTILINE)


def client_explained(frame: Any, mode: str) -> str:
    """As SparkInternals.explained, by the server."""
    return str(frame._explain_string(mode=mode))
