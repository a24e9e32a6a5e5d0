"""Patterns of LIKE: `%` matches any text, `_` one character, and a backslash makes either literal."""

from __future__ import annotations

import re
from typing import Any

import pyarrow.compute as pc

from delta_py.errors import ExpressionError
from delta_py.expressions.evaluation_errors import not_supported, shown


def check_pattern(kind: str, pattern: str) -> None:
    """Raises ExpressionError for a pattern that its kind of match does not allow."""
    if kind not in ("startswith", "endswith", "contains", "like"):
        raise not_supported(f"The match {kind!r}")
    if kind == "like" and not re.fullmatch(r"(?s:[^\\]|\\[\\%_])*", pattern):
        raise ExpressionError(
            f"The LIKE pattern {shown(pattern)} has an escape that is followed neither by %, _ nor by the escape itself.",
            error_class="INVALID_FORMAT",
            sql_state="42601",
            pattern=shown(pattern),
        )


def match_like(values: Any, pattern: str) -> Any:
    """Whether each text matches. Arrow's own kernel does not unescape an escaped backslash, so such a pattern becomes a regular
    expression."""
    if "\\\\" not in pattern:
        return pc.match_like(values, pattern)
    parts = re.findall(r"(?s)\\.|.", pattern)
    regex = "".join(_WILDCARDS.get(part) or re.escape(part[-1]) for part in parts)
    return pc.match_substring_regex(values, rf"(?s)\A{regex}\z")


_WILDCARDS = {"%": ".*", "_": "."}


def prefix_of(how: str, pattern: str) -> tuple[str, bool]:
    """The prefix that all matching texts have (perhaps empty), and whether every text with this prefix matches.

    how: the kind of a StringMatch.
    """
    if how == "startswith":
        return pattern, True
    if how != "like":
        return "", False
    prefix, position = [], 0
    while position < len(pattern) and pattern[position] not in "%_":
        if pattern[position] == "\\":
            position += 1
        prefix.append(pattern[position : position + 1])
        position += 1
    return "".join(prefix), pattern[position:] == "%"


def with_backslashes(pattern: str, escape: str) -> str:
    """A LIKE pattern with its escape character replaced by the backslash. Invalid escapes stay invalid, and
    resolve.py refuses them."""
    if escape == "\\":
        return pattern
    result, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            next_character = pattern[position + 1 : position + 2]
            if next_character not in ("%", "_", escape):
                raise ExpressionError(
                    f"The LIKE pattern {pattern[:100]!r} has an escape {escape!r} not followed by %, _ or itself.",
                    error_class="INVALID_FORMAT",
                    sql_state="42601",
                )
            result.append(_literal_character(next_character) if next_character == escape else "\\" + next_character)
            position += 2
            continue
        result.append("\\\\" if character == "\\" else character)
        position += 1
    return "".join(result)


def _literal_character(character: str) -> str:
    """The character in a LIKE pattern so that it means only itself."""
    return "\\" + character if character in "%_\\" else character
