"""Names of columns as text: quote them with backticks for SQL, and split them again."""

from __future__ import annotations

from collections.abc import Sequence


def quoted(name: str) -> str:
    """A name in backticks, which SQL accepts with any characters."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(name: str) -> str:
    """A name without the backticks around it, if it has any."""
    return name[1:-1].replace("``", "`") if len(name) > 1 and name[0] == name[-1] == "`" else name


def split_name(text: str) -> tuple[str, ...]:
    """`a.`b.c`` -> ("a", "b.c"): the names in the path of a column or field."""
    return tuple(unquoted(part) for part in _split(text, "."))


def joined_name(path: Sequence[str]) -> str:
    """("a", "b.c") -> `a.`b.c``: the reverse of split_name, with backticks only where they are needed."""
    return ".".join(quoted(name) if "." in name or "`" in name else name for name in path)


def split_list(text: str) -> list[str]:
    """`a, b.c, `x,y`` -> the names with their backticks, without empty ones."""
    return [name for name in list_parts(text) if name]


def list_parts(text: str) -> list[str]:
    """`a, b.c,` -> the names with their backticks, and an empty text wherever a name is missing."""
    return [part.strip() for part in _split(text, ",")]


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside backticks."""
    parts, is_inside_backticks = [""], False
    for character in text:
        if character == "`":  # a doubled backtick inside a name switches twice
            is_inside_backticks = not is_inside_backticks
        if character == separator and not is_inside_backticks:
            parts.append("")
        else:
            parts[-1] += character
    return parts
