"""HTML and SVG as text. Whatever comes out of a table goes through `escaped`, the one place where text becomes markup.

    tag("p", "Files of ", data(name), class_="note")

Children and attributes that are no Markup are escaped. Attributes: `class_` is `class`, underscores are dashes, None is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_LONGEST_NAME = 120
# Control characters, line ends, what turns the direction of text or hides in it, and what HTML cannot hold.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_EMPTY_TAGS = frozenset({"meta", "br", "rect", "circle", "line", "path", "polyline", "col"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "Markup | str | int | Iterable[Child] | None"


def visible(text: str) -> str:
    """Characters that nobody sees, or that change how others are shown, written as their escapes (`\\u202e`)."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def escaped(text: str) -> Markup:
    """Text as it can stand in an element or an attribute."""
    return Markup(escape(visible(text)))


def tag(name: str, /, *children: Child, **attributes: str | int | float | None) -> Markup:
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{escaped(str(value))}"')
    parts.append(">")
    if name in _EMPTY_TAGS:
        assert not children, f"{name} has no content"
        # So that SVG's are closed for parsers of XML, too.
        return Markup("".join(parts)[:-1] + "/>" if name not in ("meta", "br", "col") else "".join(parts))
    parts.append(joined(children))
    parts.append(f"</{name}>")
    return Markup("".join(parts))


def joined(children: Child) -> Markup:
    match children:
        case None:
            return Markup("")
        case Markup():
            return children
        case str():
            return escaped(children)
        case int():
            return escaped(str(children))
        case _:
            return Markup("".join(map(joined, children)))


def data(text: str) -> Markup:
    """A name or value out of a table: shortened, and apart from the text around it where it is written from right to left."""
    return tag("bdi", shortened(text))


def shortened(text: str, longest: int = _LONGEST_NAME) -> str:
    """The beginning and the end of a long text. longest: 2 or more."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}…{text[-half:]}"
