"""JSON in a table: parsed and written, and nested no deeper than what walks it and writes it again can go.

The parser takes four times as many levels as the encoder writes, and functions that call themselves for each level stop somewhere
between. So values that are walked or written again are bounded here, where they are read.
"""

from __future__ import annotations

from typing import Any

import orjson

MAX_DEPTH = 200
"""Levels of arrays and objects. The encoder writes some 250."""


def parse_json(text: bytes | str) -> Any:
    """Raises ValueError for what is no JSON, and for what is nested deeper than MAX_DEPTH."""
    value = orjson.loads(text)
    _check_depth(value, text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{"))
    return value


def write_json(value: Any) -> str:
    """Raises ValueError for what parse_json would refuse: text that is no Unicode, what JSON has no form for, and what is nested
    too deep."""
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise ValueError(f"it cannot be said in JSON ({error})") from error
    _check_depth(value, text.count("[") + text.count("{"))
    return text


def _check_depth(value: Any, openings: int) -> None:
    """openings: brackets and braces in the text; where they are few, nothing is walked."""
    if openings > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):
        holders = [item for item in level if isinstance(item, dict | list)]
        if not holders:
            return False
        level = [item for holder in holders for item in (holder.values() if isinstance(holder, dict) else holder)]
    return True
