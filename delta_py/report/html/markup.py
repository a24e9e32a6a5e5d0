"""HTML and SVG as text. All text from a table goes through `escaped`, the one place where text becomes markup.

    tag("p", "Files of ", data(name), class_="note")

Children are escaped unless they are Markup, and so are all attributes. `class_` is `class`, underscores are dashes, None is
left out.
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
    """Text that is already markup."""

    __slots__ = ()


Child: TypeAlias = "Markup | str | int | Iterable[Child] | None"


def escaped(text: str) -> Markup:
    """Text for an element or an attribute: invisible characters are escaped, and so is everything that HTML cannot contain."""
    return Markup(escape(visible(text)))


def tag(name: str, /, *children: Child, **attributes: str | int | float | None) -> Markup:
    """An element. attributes: those with the value None are left out."""
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{escaped(str(value))}"')
    parts.append(">")
    if name in _EMPTY_TAGS:
        assert not children, f"{name} has no content"
        # Closes SVG elements, so that XML parsers accept them too.
        return Markup("".join(parts)[:-1] + "/>" if name not in ("meta", "br", "col") else "".join(parts))
    parts.append(joined(children))
    parts.append(f"</{name}>")
    return Markup("".join(parts))


def framed(document: str, title: str) -> Markup:
    """A whole HTML document in a frame without permissions. It is not text from a table: all its characters are
    kept, line ends too."""
    return Markup(f'<iframe srcdoc="{escape(document)}" {_FRAME} title="{escaped(title)}"></iframe>')


def joined(children: Child) -> Markup:
    """The children one after the other; texts and numbers among them are escaped."""
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
    """A name or value from a table: shortened, and isolated from the text around it if it is written from right to left."""
    return tag("bdi", shortened(text))


def shortened(text: str, longest: int = _LONGEST_NAME) -> str:
    """The beginning and the end of a long text. longest: 2 or more."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}…{text[-half:]}"
