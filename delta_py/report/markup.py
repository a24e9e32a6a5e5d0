"""HTML and SVG as text. Whatever comes out of a table goes through `escaped`, the one place where text becomes markup.

    tag("p", "Files of ", data(name), class_="note")

Children that are no Markup are escaped, and all attributes. `class_` is `class`, underscores are dashes, None is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from delta_py.visible_text import visible

_LONGEST_NAME = 120
_FRAME = 'sandbox="" width="100%" height="800" frameborder="0"'
_EMPTY_TAGS = frozenset({"meta", "br", "rect", "circle", "line", "path", "polyline", "col"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "Markup | str | int | Iterable[Child] | None"


def escaped(text: str) -> Markup:
    """Text as it can stand in an element or an attribute: what nobody sees is escaped, and with it all that HTML cannot hold."""
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


def framed(document: str, title: str) -> Markup:
    """A whole HTML document in a frame without rights. It is no text of a table: all its characters stay, line ends too."""
    return Markup(f'<iframe srcdoc="{escape(document)}" {_FRAME} title="{escaped(title)}"></iframe>')


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
