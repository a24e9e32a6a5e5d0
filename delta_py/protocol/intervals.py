"""Durations in the syntax of table properties: `interval 30 days`, `7 days`, `interval 1 week 2 hours`.

Only units of a fixed length are allowed: a property in months or years is refused, as in delta-spark.
"""

from __future__ import annotations

import re
from fractions import Fraction

from delta_py.errors import CorruptTableError
from delta_py.protocol.features import Properties

# Each rule: a table property, and its default.
LOG_RETENTION = ("delta.logRetentionDuration", "interval 30 days")
TRUNCATED_HISTORY = ("delta.dropFeatureTruncateHistory.retentionDuration", "interval 24 hours")
DELETED_FILE_RETENTION = ("delta.deletedFileRetentionDuration", "interval 1 week")
# This property has no default: without it, transactions are always retained.
SET_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"

_UNITS_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_LONGEST_MS = 2**62  # so that a time minus a duration fits into 64 bits
# One part of an interval, such as `2 hours`: sign, number, unit.
_PART = re.compile(r"([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s+([a-z]+)(?:\s+|$)", re.ASCII)


def parse_interval(text: str) -> int:
    """The duration in milliseconds, rounded down. Case and the word `interval` do not matter.

    Raises ValueError if the text is not an interval of fixed units, is negative, or is longer than 146 million years.
    """
    units_text = text.strip().lower()
    units_text = units_text.removeprefix("interval ").strip() if units_text.startswith("interval ") else units_text
    micros, position = Fraction(0), 0
    while position < len(units_text) or not units_text:  # the empty text is no interval either
        part = _PART.match(units_text, position)
        unit = None if part is None else _UNITS_MICROS.get(part[3].removesuffix("s"))
        if part is None or unit is None:
            raise ValueError(f"{text!r} is no interval of weeks, days, hours, minutes, seconds or parts of seconds")
        micros += Fraction(part[2]) * unit * (-1 if part[1] == "-" else 1)
        position = part.end()
    if micros < 0:
        raise ValueError(f"{text!r} is a negative interval")
    milliseconds = micros // 1_000
    if milliseconds > _LONGEST_MS:
        raise ValueError(f"{text!r} is an interval of over 146 million years")
    return int(milliseconds)


def interval_property(properties: Properties, name: str, default: str | None) -> int | None:
    """A table property that is a duration, in milliseconds; None if it is not set and there is no default. default: in the same
    syntax.

    Raises CorruptTableError if the value is not an interval.
    """
    text = properties.get(name, default)
    if text is None:
        return None
    try:
        return parse_interval(text)
    except ValueError as error:
        raise CorruptTableError(
            f"Table property {name}: {error}. Set it to something like 'interval 7 days'.", property=name
        ) from error


def retention_ms(properties: Properties, rule: tuple[str, str]) -> int:
    """A retention time of a table in milliseconds. rule: LOG_RETENTION, TRUNCATED_HISTORY or DELETED_FILE_RETENTION. Raises
    CorruptTableError."""
    retention = interval_property(properties, *rule)
    assert retention is not None, "the rule has a default"
    return retention
