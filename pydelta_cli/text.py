"""Text that may come out of a table, made safe for a terminal: it is shown, and never obeyed."""

from __future__ import annotations

import re
from typing import Any

# Controls of C0 and C1, separators of lines, what turns the direction of text around, and what no encoding has.
_CONTROLS = "\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[{_CONTROLS}]")
_UNSAFE_BUT_LINES = re.compile(f"(?!\n)[{_CONTROLS}]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text on one line, with `\\x1b` in the place of the character ESC, and so on."""
    return _UNSAFE.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """As printable, but line breaks stay."""
    return _UNSAFE_BUT_LINES.sub(_escaped, text)


def printable_json(text: str) -> str:
    """JSON text that says the same without characters that a terminal may obey; those below 32 are escaped already."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def cell(value: Any) -> str | None:
    """A value as JSON has it, as text: what is nested is JSON, null is None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list | bool):
        import orjson

        return orjson.dumps(value).decode()
    return str(value)
