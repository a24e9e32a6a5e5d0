"""Parse and write JSON in a table, with a limit for its depth, so that all code that walks or writes the values can do so.

The parser accepts four times as many levels as the encoder writes, and the limit of recursive functions is somewhere between
these. So the depth of values that are walked or written again is limited here, where the values are read.
"""

from __future__ import annotations

from typing import Any

import orjson

MAX_DEPTH = 200
"""Levels of arrays and objects. The encoder can write about 250."""


def parse_json(text: bytes | str) -> Any:
    """Parse JSON. Raises ValueError if the text is not JSON, or is nested deeper than MAX_DEPTH."""
    value = orjson.loads(text)
    openings = text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    _check_depth(value, openings)
    return value


def write_json(value: Any) -> str:
    """Write JSON. Raises ValueError if parse_json would refuse the value: its text is not valid Unicode, JSON cannot represent
    it, or it is nested too deeply."""
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise ValueError(f"it cannot be written as JSON ({error})") from error
    _check_depth(value, text.count("[") + text.count("{"))
    return text


def _check_depth(value: Any, openings: int) -> None:
    """Raises ValueError if a value is nested too deeply. openings: number of opening brackets and braces in its text; if it is
    small, the value need not be walked."""
    if openings > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def _is_deeper(value: Any, depth: int) -> bool:
    """Whether arrays and objects are nested more than `depth` levels deep. It goes level by level, without recursion."""
    values_of_level = [value]
    for _ in range(depth + 1):
        containers = [item for item in values_of_level if isinstance(item, dict | list)]
        if not containers:
            return False
        values_of_level = []
        for container in containers:
            values_of_level.extend(container.values() if isinstance(container, dict) else container)
    return True
