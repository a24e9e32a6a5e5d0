"""JSON out of a table: parsed, and nested no deeper than what walks it and writes it again can go.

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
    openings = text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    if openings > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    return value


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):
        holders = [item for item in level if isinstance(item, dict | list)]
        if not holders:
            return False
        level = [item for holder in holders for item in (holder.values() if isinstance(holder, dict) else holder)]
    return True
