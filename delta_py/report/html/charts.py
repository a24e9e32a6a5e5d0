"""Charts as SVG, drawn here. Each is drawn twice, for a wide and for a narrow page, so that its text has one size everywhere.

A chart is for people who can see it, so a table next to it contains the same data. Colours come from the page's style.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta_py.report.html.markup import Markup, shortened, tag
from delta_py.report.words import day_text, moment_text
from delta_py.visible_text import visible

WIDE, NARROW = 800, 320
# Approximate widths in px of characters of 12 px: usual ones, capitals and digits, and those of other scripts.
_LETTER, _CAPITAL, _FOREIGN = 6.8, 8.6, 13.0
_ROW = 28
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Bar:
    """length: in the unit of the axis. text: at its end. mark: a second length, drawn as a line over the bar."""

    label: str
    length: float
    text: str
    mark: float | None = None
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """lane: the number of its row. size: from 0 to 1."""

    time_ms: int
    lane: int
    size: float
    title: str


def figure(label: str, draw: Callable[[int], tuple[Markup, int]], below: str, above: str | None = None) -> Markup:
    """draw: width -> the content of the picture, and its height. label: a sentence that describes it. below, above: its axes."""
    drawn = []
    for width, kind in ((WIDE, "wide"), (NARROW, "narrow")):
        inside, height = draw(width)
        box = f"0 0 {width} {height}"
        drawn.append(tag("svg", inside, class_=kind, viewBox=box, width=width, height=height, role="img", aria_label=label))
    upper = None if above is None else tag("div", above, class_="axis")
    return tag("figure", upper, drawn, tag("figcaption", below, class_="axis"))


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "tick") -> Markup:
    return tag("text", text, x=_number(x), y=_number(y), text_anchor=anchor, class_=kind)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _width(text: str) -> float:
    """An estimate in px, and rather too wide."""
    return sum(
        _FOREIGN if ord(letter) > 0x24F and letter != "…" else _CAPITAL if letter.isupper() or letter in "mw@%—_<>&" else _LETTER
        for letter in visible(text)
    )


def _fitted(text: str, width: float) -> str:
    """The text cut in the middle to this width in px."""
    text = shortened(visible(text))
    keep = len(text)
    while keep > 2 and _width(shortened(text, keep)) > width:
        keep -= 1
    return shortened(text, keep)


# ---------------------------------------------------------------- horizontal bars


def lying_bars(label: str, bars: Sequence[Bar], axis: str, ticks: Sequence[tuple[float, str]], most: float) -> Markup:
    """One bar per row, from top to bottom. axis: the meaning of the lengths, with the unit. ticks: positions and texts; most: the
    end of the axis."""

    def draw(width: int) -> tuple[Markup, int]:
        left = min(220 if width == WIDE else 110, 16 + max(_width(bar.label) for bar in bars))
        right = width - 12 - max(_width(bar.text) for bar in bars)
        parts, bottom = [], len(bars) * _ROW + 4

        def at(value: float) -> float:
            return left + (right - left) * min(1.0, value / most if most else 0.0)

        places = list(ticks)
        if width == NARROW and len(places) > 3:
            places = [places[0], places[len(places) // 2], places[-1]]
        for place, text in places:
            parts.append(tag("line", x1=_number(at(place)), x2=_number(at(place)), y1=0, y2=bottom, class_="grid"))
            parts.append(_text(at(place), bottom + 16, text, anchor="middle"))
        for row, bar in enumerate(bars):
            top = row * _ROW + 6
            parts.append(_text(left - 8, top + 13, _fitted(bar.label, left - 12), anchor="end", kind="label"))
            size = max(at(bar.length) - left, 1.5 if bar.length else 0)
            kind = "quiet" if bar.is_quiet else "bar"
            if size:
                parts.append(tag("rect", x=_number(left), y=top, width=_number(size), height=17, rx=2, class_=kind))
            if bar.mark is not None:
                parts.append(tag("rect", x=_number(at(bar.mark) - 1), y=top - 2, width=2.5, height=21, class_="mark"))
            end = max(at(bar.length), at(bar.mark or 0))
            parts.append(_text(end + 7, top + 13, bar.text, kind="value"))
        return Markup("".join(parts)), bottom + 22

    return figure(label, draw, axis)


# ---------------------------------------------------------------- columns


def columns(label: str, heights: Sequence[float], names: Sequence[str], texts: Sequence[str], x_axis: str, y_axis: str) -> Markup:
    """Columns side by side. names: under them, as many as fit. texts: above them, if they fit."""

    def draw(width: int) -> tuple[Markup, int]:
        top, bottom, left, right = 22, 180, 4, width - 4
        max_height = max(heights, default=0) or 1
        step = (right - left) / max(len(heights), 1)
        gap = min(6.0, step * 0.16)
        wide = min(step, 90.0) - gap
        end = _number(left + len(heights) * min(step, 90.0))
        parts = [tag("line", x1=left, x2=end, y1=bottom, y2=bottom, class_="base")]
        longest = max(map(_width, texts), default=0.0)
        with_texts = longest < step  # the columns next to each one may be as high
        name_step = max(1, math.ceil((max(map(_width, names), default=0.0) + 8) / min(step, 90.0)))
        for place, height in enumerate(heights):
            x = left + place * min(step, 90.0) + gap / 2
            tall = max((bottom - top) * height / max_height, 2.0 if height else 0)
            if tall:
                place_of = {"x": _number(x), "y": _number(bottom - tall), "width": _number(wide), "height": _number(tall)}
                parts.append(tag("rect", **place_of, rx=1.5, class_="bar"))
            middle = x + wide / 2
            if with_texts and texts and texts[place]:
                parts.append(_text(middle, bottom - tall - 6, texts[place], anchor="middle", kind="value"))
            if names and place % name_step == 0:
                parts.append(_text(middle, bottom + 17, names[place], anchor="middle"))
        return Markup("".join(parts)), bottom + (24 if names else 4)

    return figure(label, draw, x_axis, y_axis)


# ---------------------------------------------------------------- a timeline


def timeline(label: str, lanes: Sequence[str], dots: Sequence[Dot], axis: str) -> Markup:
    """A lane for each operation, a dot for each commit, from old to new."""
    first, last = min(dot.time_ms for dot in dots), max(dot.time_ms for dot in dots)

    def draw(width: int) -> tuple[Markup, int]:
        left = min(200 if width == WIDE else 110, 16 + max(map(_width, lanes)))
        right, bottom, row = width - 16, len(lanes) * 34 + 6, 34

        def at(time_ms: int) -> float:
            start = left + 14
            return (start + right) / 2 if first == last else start + (right - start) * (time_ms - first) / (last - first)

        parts = []
        for lane, name in enumerate(lanes):
            y = lane * row + 20
            parts.append(tag("line", x1=_number(left), x2=width - 2, y1=y, y2=y, class_="grid"))
            parts.append(_text(left - 8, y + 4, _fitted(name, left - 12), anchor="end", kind="label"))
        for dot in sorted(dots, key=lambda dot: -dot.size):
            radius = _number(3 + 9 * math.sqrt(dot.size))
            circle = tag("circle", cx=_number(at(dot.time_ms)), cy=dot.lane * row + 20, r=radius, class_="dot")
            parts.append(tag("g", tag("title", dot.title), circle) if width == WIDE else circle)
        texts = _times(first, last)
        if first == last:
            parts.append(_text(at(first), bottom + 16, moment_text(first), anchor="middle"))
        else:
            parts.append(_text(left, bottom + 16, texts[0]))
            parts.append(_text(width - 2, bottom + 16, texts[1], anchor="end"))
        return Markup("".join(parts)), bottom + 22

    return figure(label, draw, axis)


def _times(first: int, last: int) -> tuple[str, str]:
    """As short as possible while they differ; both fit next to each other on a narrow page."""
    if last - first > 2 * _DAY_MS:
        return day_text(first), day_text(last)
    start, end = moment_text(first), moment_text(last)
    if start[:10] == end[:10] and end.endswith(" UTC"):
        return start[11:-4], end[11:-4]
    return start[5:16], end[5:16]


# ---------------------------------------------------------------- files over two columns


def rectangles(
    label: str,
    shapes: Sequence[tuple[float, float, float, float]],
    density: Sequence[Sequence[int]],
    names: tuple[str, str],
    ends: tuple[tuple[str, str], tuple[str, str]],
) -> Markup:
    """Each file as a rectangle or, if there are none, the number of files over each cell. names, ends: of x and y."""

    def draw(width: int) -> tuple[Markup, int]:
        top, left, wide, tall = 2, 2, (560 if width == WIDE else width - 4), (340 if width == WIDE else 260)
        parts = [tag("rect", x=left, y=top, width=wide, height=tall, class_="frame")]
        if density:
            max_density = max(max(row) for row in density) or 1
            cell_x, cell_y = wide / len(density[0]), tall / len(density)
            for level in range(1, 6):
                # One path for all cells of a shade saves bytes.
                around = f"h{_number(cell_x)}v{_number(cell_y)}h-{_number(cell_x)}z"
                cells = [
                    f"M{_number(left + x * cell_x)} {_number(top + tall - (y + 1) * cell_y)}{around}"
                    for y, row in enumerate(density)
                    for x, count in enumerate(row)
                    if count and min(5, 1 + int(5 * count / (max_density + 1))) == level
                ]
                if cells:
                    parts.append(tag("path", d="".join(cells), class_=f"shade{level}"))
        for x0, y0, x1, y1 in shapes:
            parts.append(
                tag(
                    "rect",
                    x=_number(left + x0 * wide),
                    y=_number(top + (1 - y1) * tall),
                    width=_number(max((x1 - x0) * wide, 2)),
                    height=_number(max((y1 - y0) * tall, 2)),
                    class_="file",
                )
            )
        half = wide / 2 - 6
        parts.append(_text(left, top + tall + 17, _fitted(ends[0][0], half)))
        parts.append(_text(left + wide, top + tall + 17, _fitted(ends[0][1], half), anchor="end"))
        return Markup("".join(parts)), top + tall + 22

    (x, y), y_ends = (shortened(name, 60) for name in names), (shortened(end, 40) for end in ends[1])
    low, high = y_ends
    return figure(label, draw, f"to the right: {x}", f"upwards: {y}, from {low} to {high}")
