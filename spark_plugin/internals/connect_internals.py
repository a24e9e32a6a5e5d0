"""The private parts of a Spark Connect client: the expressions in its Columns, the plans of its frames, its active session.

A client has no JVM: it describes its Columns and frames, and the server resolves the names. `client_node` returns the root node
of an expression as one of the classes here. The operands of a node are again expressions of the client.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql.types import DataType

# ---------------------------------------------------------------- the content of a Column

_log = logging.getLogger("pydelta")


@dataclass(frozen=True, slots=True)
class ClientSql:
    """A piece of SQL text."""

    text: str


@dataclass(frozen=True, slots=True)
class ClientName:
    """A column by its name, which the server looks up in whatever frame uses the expression."""

    name: str


@dataclass(frozen=True, slots=True)
class ClientLiteral:
    """A constant. Dates are days, timestamps microseconds, since 1970."""

    value: Any
    data_type: DataType


@dataclass(frozen=True, slots=True)
class ClientCast:
    """CAST in the session's mode. operand: an expression of the client."""

    operand: Any
    data_type: DataType


@dataclass(frozen=True, slots=True)
class ClientFunction:
    """A function without DISTINCT; also an operator. operands: expressions of the client."""

    name: str
    operands: tuple[Any, ...]


ClientNode: TypeAlias = ClientSql | ClientName | ClientLiteral | ClientCast | ClientFunction


def client_expression(column: Any) -> Any:
    """Return the expression in a client's Column; its str() is the client's notation. None for an object that is no such
    Column."""
    return getattr(column, "_expr", None)


def client_node(expression: Any) -> ClientNode | None:
    """Return the root node of a client's expression; None if it is none of the above."""
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


def client_cast(column: Any, target_type: DataType, mode: str) -> Any:
    """Return CAST of a client's Column. mode: the name of Spark's evaluation mode: ansi or legacy."""
    from pyspark.sql.connect.column import Column as ClientColumn
    from pyspark.sql.connect.expressions import CastExpression

    return ClientColumn(CastExpression(column._expr, target_type, mode))


# ---------------------------------------------------------------- sessions


@contextmanager
def activated_client(spark: Any) -> Iterator[None]:
    """Make a client's session the active one of this thread inside the block: pyspark looks in the active session for what
    localCheckpoint releases, whichever session the frame belongs to."""
    thread_state = type(spark)._active_session
    previous_session = getattr(thread_state, "session", None)
    thread_state.session = spark
    try:
        yield
    finally:
        thread_state.session = previous_session


@contextmanager
def formatted_client_sql(spark: Any, text: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Do the same as formatted_sql, with views on the server: `sql` sends DataFrames with its statement, but pydelta makes
    several statements of it."""
    from pyspark.sql.connect.sql_formatter import SQLStringFormatter as ClientFormatter

    client = ClientFormatter(spark)
    formatted = client.format(text, **arguments)
    view_names = []
    try:
        for frame, name in client._temp_views:
            frame.createOrReplaceTempView(name)
            view_names.append(name)
        yield formatted
    finally:
        for name in view_names:
            spark.catalog.dropTempView(name)


# ---------------------------------------------------------------- writers


def client_frame_of(writer: Any, spark: Any) -> Any:
    """Return the DataFrame of a writer of batches or streams. A client's writer holds its plan."""
    from pyspark.sql.connect.dataframe import DataFrame

    return DataFrame(writer._write_stream._child if hasattr(writer, "_write_stream") else writer._df, spark)


def new_client_writer(frame: Any, callback: Any) -> Any:
    """Return a DataFrameWriter without any calls. callback: the result of `callback_of`."""
    from pyspark.sql.connect.readwriter import DataFrameWriter

    return DataFrameWriter(frame._plan, frame.sparkSession, callback)


# ---------------------------------------------------------------- plans


def take_over_columns(frame: Any, original_frame: Any) -> None:
    """Make the columns that callers took from `original_frame` refer to `frame`: `frame` gets the plan's number, by which these
    columns know their frame."""
    frame._plan._root_plan_id = original_frame._plan._plan_id


def release_checkpoint(frame: Any) -> None:
    """Let the server release what localCheckpoint stored for a frame that is not read again.

    pyspark requests this when the frame's plan is garbage-collected, by a call without a timeout, at any point of the program:
    such a call has been seen to wait forever. A server that cannot be reached keeps the data until the session ends.
    """
    from pyspark.sql.connect.plan import RemoveRemoteCachedRelation

    relation, client = frame._plan, frame.sparkSession.client
    try:
        client.execute_command(RemoveRemoteCachedRelation(relation).command(session=client))
    except Exception as error:  # the frame has done its work, or its own error is already being raised
        _log.warning("The server keeps what was held for a statement until the session ends: %s", error)
    relation._relation_id = None


def may_have_subqueries(frame: Any) -> bool:
    """Return whether the plan of a client's projection has subqueries, from the server's EXPLAIN text; True if the text cannot be
    read."""
    # A projection has one child, so all other plans below it are its subqueries. EXPLAIN begins the lines of all children but the
    # last one with a colon.
    analyzed = _ANALYZED.search(frame._explain_string(extended=True))
    return analyzed is None or _SECOND_CHILD.search(analyzed[1]) is not None


_ANALYZED = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n== Optimized Logical Plan ==", re.DOTALL)
_SECOND_CHILD = re.compile(r"^:", re.MULTILINE)


def client_explain(frame: Any, mode: str) -> str:
    """Return the frame's plans as EXPLAIN shows them, from the server. mode: simple, extended, codegen, cost or formatted."""
    return str(frame._explain_string(mode=mode))
