"""Expressions whose value depends on when they are evaluated: `current_timestamp()`, `current_date()` and similar functions.

They get one time for a whole write, and then are constants. CHECK constraints and generated columns may not contain
them; defaults of columns may.
"""

from __future__ import annotations

import datetime

import pyarrow as pa

from delta_py.expressions.tree import Call, Expression, Literal, map_children, nodes_of
from delta_py.expressions.value_casts import cast_values
from delta_py.types.schema import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from delta_py.types.zones import INSTANT, to_wall_clock

CLOCK_FUNCTIONS = frozenset({"current_timestamp", "current_date", "current_timezone", "localtimestamp"})


def is_deterministic(expression: Expression) -> bool:
    """Whether the expression gives the same value for the same row whenever it is evaluated."""
    return not any(isinstance(node, Call) and node.name in CLOCK_FUNCTIONS for node in nodes_of(expression))


def replace_clock_functions(expression: Expression, now: datetime.datetime, session_timezone: str = "UTC") -> Expression:
    """The expression with the clock's functions replaced by their values at `now`, a datetime with a time zone.

    Dates and wall clocks are those of session_timezone. A write calls this once, so every row gets the same time.
    """
    if isinstance(expression, Call) and expression.name in CLOCK_FUNCTIONS:
        return _clock_value(expression.name, now.astimezone(datetime.UTC), session_timezone)
    return map_children(expression, lambda child: replace_clock_functions(child, now, session_timezone))


def _clock_value(name: str, now: datetime.datetime, zone: str) -> Literal:
    """The constant that stands for a function of the clock in one statement."""
    if name == "current_timezone":
        return Literal(zone, STRING)
    if name == "current_timestamp":
        return Literal(now, TIMESTAMP)
    wall_clock = to_wall_clock(pa.array([now], INSTANT), zone)
    if name == "localtimestamp":
        return Literal(wall_clock[0].as_py(), TIMESTAMP_NTZ)
    return Literal(cast_values(wall_clock, TIMESTAMP_NTZ, DATE)[0].as_py(), DATE)
