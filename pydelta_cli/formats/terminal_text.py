"""Text that may come from a table, made safe for a terminal: the terminal shows it, and never executes it."""

from __future__ import annotations

from typing import Any

from delta_py.visible_text import json_escape, visible


def printable(text: str) -> str:
    """The text on one line, with `\\x1b` instead of the character ESC, and so on."""
    return visible(text)


def printable_lines(text: str) -> str:
    """As printable, but line breaks are kept."""
    return visible(text, line_breaks=True)


def printable_json(text: str) -> str:
    """Equivalent JSON text, with escapes instead of invisible characters."""
    return visible(text, line_breaks=True, escape=json_escape)


def cell(value: Any) -> str | None:
    """A JSON value as text: nested values are JSON, null is None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list | bool):
        import orjson

        return orjson.dumps(value).decode()
    return str(value)
