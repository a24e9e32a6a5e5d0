"""Text that may come out of a table, made safe for a terminal: it is shown, and never obeyed."""

from __future__ import annotations

from typing import Any

from delta_py.visible_text import json_escape, visible


def printable(text: str) -> str:
    """The text on one line, with `\\x1b` in the place of the character ESC, and so on."""
    return visible(text)


def printable_lines(text: str) -> str:
    """As printable, but line breaks stay."""
    return visible(text, line_breaks=True)


def printable_json(text: str) -> str:
    """JSON text that says the same with escapes in the place of what nobody sees."""
    return visible(text, line_breaks=True, escape=json_escape)


def cell(value: Any) -> str | None:
    """A value as JSON has it, as text: what is nested is JSON, null is None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list | bool):
        import orjson

        return orjson.dumps(value).decode()
    return str(value)
