"""Parts of the page's sections: facts with their sources, tables, unknown facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from delta_py.report.facts import Unknown
from delta_py.report.html.markup import Child, Markup, data, shortened, tag
from delta_py.report.words import moment_text
from delta_py.types.sizes import bytes_text

T = TypeVar("T")
_LONGEST_REASON = 600
_WIDER_THAN_PHONES = 5  # the number of columns from which a table does not fit on a phone


def known_text(value: T | Unknown, text: Callable[[T], Child]) -> Markup:
    """The value as text. For an Unknown: the word `unknown` and the reason."""
    if isinstance(value, Unknown):
        return unknown(value)
    return tag("span", text(value))


def unknown(value: Unknown) -> Markup:
    """The word `unknown` and the reason."""
    return tag("span", "unknown: ", shortened(value.unknown, _LONGEST_REASON), class_="unknown")


def optional(value: str | None) -> Markup:
    """A text from a table; `not in the log` if it is missing."""
    return tag("span", "not in the log", class_="unknown nowrap") if value is None else data(value)


def number(value: int | None) -> Markup:
    """A number in a table; a missing one is shown as unknown."""
    return tag("span", "unknown", class_="unknown") if value is None else Markup(f"{value:,}")


def bytes_or_unknown(size: int | None) -> Markup:
    """A size with its unit; a missing one is shown as unknown."""
    return number(None) if size is None else Markup(bytes_text(size))


def minute(timestamp_ms: int) -> Markup:
    """A time to the minute, for tables with many times."""
    text = moment_text(timestamp_ms)  # the part that is cut off is such as `:59 UTC`
    return tag("span", text[:-7] if text.endswith(" UTC") else text, class_="nowrap")


def soft(*children: Child) -> Markup:
    """A paragraph in a weaker colour, for remarks."""
    return tag("p", *children, class_="soft")


def source_line(source: str) -> Markup:
    return tag("p", "Source: ", source, ".", class_="source")


def fact_table(label: str, facts: Sequence[tuple[str, Child, str]]) -> Markup:
    """A table of facts: name, value and source of each. label: its caption. Roles are set explicitly, because a narrow page shows
    a row's cells below each other, and then browsers do not recognize the table."""
    heads = (tag("th", name, scope="col", role="columnheader") for name in ("Fact", "Value", "Source"))
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row", role="rowheader"),
            tag("td", value, role="cell"),
            tag("td", source, class_="source", role="cell"),
            role="row",
        )
        for name, value, source in facts
    ]
    head = tag("thead", tag("tr", *heads, role="row"), role="rowgroup")
    return tag("table", tag("caption", label), head, tag("tbody", rows, role="rowgroup"), class_="facts", role="table")


def list_table(label: str, names: Sequence[str], rows: Sequence[Sequence[Child]], numbers: Sequence[int] = ()) -> Markup:
    """A table of any rows; the first cell of a row is its heading. label: the caption. names: of the columns; numbers: the
    indexes of those that contain numbers. If it is wider than the page, it can be scrolled, by keyboard too; a shadow shows on
    which side there is more, and a phone also shows a hint."""

    def cell(place: int, value: Child) -> Markup:
        if place == 0:
            return tag("th", value, scope="row")
        return tag("td", value, class_="number" if place in numbers else None)

    head = [tag("th", name, scope="col", class_="number" if place in numbers else None) for place, name in enumerate(names)]
    body = [tag("tr", [cell(place, value) for place, value in enumerate(row)]) for row in rows]
    hint = tag("span", "Scroll sideways to see all columns.", class_="hint") if len(names) >= _WIDER_THAN_PHONES else None
    caption = tag("caption", tag("div", label, hint))
    table = tag("table", caption, tag("thead", tag("tr", head)), tag("tbody", body), class_="list")
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)


def folded(summary: str, *children: Any) -> Markup:
    """Content that a click on the summary opens."""
    return tag("details", tag("summary", summary), *children)
