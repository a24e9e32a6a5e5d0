"""Charts as SVG, drawn here. Each is drawn for three widths of the page, so that its text has one size everywhere.

A chart is for people who can see it, so a table next to it contains the same data. Colours come from the page's style.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta_py.report.html.markup import Markup, joined, shortened, tag
from delta_py.report.words import day_text, moment_text
from delta_py.visible_text import visible

WIDE, MIDDLE, NARROW = 800, 600, 320
_CLASS_BY_WIDTH = {WIDE: "wide", MIDDLE: "middle", NARROW: "narrow"}
# Approximate widths in px of characters of 12 px: usual ones, digits, capitals, and the widest with those of other scripts.
_LETTER_PX, _DIGIT_PX, _CAPITAL_PX, _WIDEST_PX = 6.8, 7.7, 8.6, 13.0
# The heights in px of a row of bars: with the label next to the bar, and with the label above it.
_ROW_PX, _TALL_ROW_PX = 28, 44
# The least distance in px between texts of an axis.
_GAP_PX = 8
_DAY_MS = 86_400_000
_TIME_STEPS = 5  # about as many steps between the ends of a time axis


@dataclass(frozen=True, slots=True)
class Bar:
    """length: in the unit of the axis. text: at its end. mark: a second length, drawn as a line over the bar. is_quiet: drawn in
    a faint colour."""

    label: str
    length: float
    text: str
    mark: float | None = None
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """lane: the number of its row. size: from 0 to 1. title: shown when the pointer is over the dot."""

    time_ms: int
    lane: int
    size: float
    title: str


def figure(label: str, draw: Callable[[int], tuple[Markup, int]], below: str, above: str | None = None) -> Markup:
    """A picture, drawn once for each width of the page; the style shows one of them. draw: width in px -> the content of the
    picture, and its height in px. label: a sentence that describes the picture, for
    people who cannot see it. below, above: texts about the axes."""
    pictures = []
    for width, style_class in _CLASS_BY_WIDTH.items():
        content, height = draw(width)
        box = f"0 0 {width} {height}"
        pictures.append(
            tag("svg", content, class_=style_class, viewBox=box, width=width, height=height, role="img", aria_label=label)
        )
    upper_axis = None if above is None else tag("div", above, class_="axis")
    return tag("figure", upper_axis, pictures, tag("figcaption", below, class_="axis"))


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "tick") -> Markup:
    return tag("text", text, x=_number(x), y=_number(y), text_anchor=anchor, class_=kind)


def _number(value: float) -> str:
    """A coordinate with at most two decimals: more are not visible, and make the page larger."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text_width(text: str) -> float:
    """The width of a text in px: an estimate, rather too wide than too narrow."""
    return sum(map(_character_width, visible(text)))


def _character_width(character: str) -> float:
    """The approximate width of a character in the page's font."""
    if (ord(character) > 0x24F and character != "…") or character in "%@m":
        return _WIDEST_PX
    if character.isupper() or character in "w—_<>&":
        return _CAPITAL_PX
    return _DIGIT_PX if character.isdigit() else _LETTER_PX


def _axis_texts(ticks: Sequence[tuple[float, str]], y: float, width: float) -> list[Markup]:
    """Texts of an axis, inside the picture: the first, the last, and as many others as fit. ticks: the middle in px and the text
    of each. y: of the baseline. width: of the picture."""
    texts, placed_texts = [], list[tuple[float, float]]()
    for x, text in [*ticks[:1], *ticks[1:][-1:], *ticks[1:-1]]:
        half = _text_width(text) / 2
        middle = min(max(x, half), width - half)
        if all(abs(middle - other) >= half + other_half + _GAP_PX for other, other_half in placed_texts):
            placed_texts.append((middle, half))
            texts.append(_text(middle, y, text, anchor="middle"))
    return texts


def _cut_to_width(text: str, width: float) -> str:
    """The text cut in the middle to this width in px."""
    text = shortened(visible(text))
    length = len(text)
    while length > 2 and _text_width(shortened(text, length)) > width:
        length -= 1
    return shortened(text, length)


# ---------------------------------------------------------------- horizontal bars


def lying_bars(label: str, bars: Sequence[Bar], axis: str, ticks: Sequence[tuple[float, str]], most: float) -> Markup:
    """One bar per row, from top to bottom. axis: the meaning of the lengths, with the unit. ticks: positions and texts; most: the
    end of the axis. A narrow page has the labels above the bars, so that the bars can be as wide as the page."""

    def draw(width: int) -> tuple[Markup, int]:
        """The bars one below the other. A narrow picture has the labels above the bars."""
        is_narrow = width == NARROW
        row_height = _TALL_ROW_PX if is_narrow else _ROW_PX
        left = 2 if is_narrow else min(220, 16 + max(_text_width(bar.label) for bar in bars))
        right = width - 2 if is_narrow else width - 12 - max(_text_width(bar.text) for bar in bars)
        bottom = len(bars) * row_height + 4

        def x_of(value: float) -> float:
            return left + (right - left) * min(1.0, value / most if most else 0.0)

        # The lower end of each row. The lines of the grid do not cross the labels above the bars of a narrow picture.
        row_ends = [(row + 1) * row_height for row in range(len(bars))]
        grid_spans = [(row_end - 24, row_end + 4) for row_end in row_ends] if is_narrow else [(0, bottom)]
        parts = [
            tag("line", x1=_number(x_of(tick)), x2=_number(x_of(tick)), y1=start, y2=end, class_="grid")
            for tick, _ in ticks
            for start, end in grid_spans
        ]
        for row_end, bar in zip(row_ends, bars, strict=True):
            if is_narrow:
                parts.append(_text(0, row_end - 27, _cut_to_width(bar.label, width - 12 - _text_width(bar.text)), kind="label"))
                parts.append(_text(width, row_end - 27, bar.text, anchor="end", kind="value"))
            else:
                parts.append(_text(left - 8, row_end - 9, _cut_to_width(bar.label, left - 12), anchor="end", kind="label"))
                parts.append(_text(max(x_of(bar.length), x_of(bar.mark or 0)) + 7, row_end - 9, bar.text, kind="value"))
            parts.append(_bar_shape(bar, left, row_end - 22, x_of))
        parts += _axis_texts([(x_of(tick), text) for tick, text in ticks], bottom + 16, width)
        return joined(parts), bottom + 22

    return figure(label, draw, axis)


def _bar_shape(bar: Bar, left: float, top: float, x_of: Callable[[float], float]) -> Markup:
    """A bar and its mark. left, top: of the bar, in px. x_of: length -> x in px."""
    bar_width = max(x_of(bar.length) - left, 1.5 if bar.length else 0)
    shape = mark = None
    if bar_width:
        kind = "quiet" if bar.is_quiet else "bar"
        shape = tag("rect", x=_number(left), y=top, width=_number(bar_width), height=17, rx=2, class_=kind)
    if bar.mark is not None:
        mark = tag("rect", x=_number(x_of(bar.mark) - 1), y=top - 2, width=2.5, height=21, class_="mark")
    return joined([shape, mark])


# ---------------------------------------------------------------- columns


def columns(label: str, heights: Sequence[float], edges: Sequence[str], texts: Sequence[str], x_axis: str, y_axis: str) -> Markup:
    """Columns side by side. heights: in any unit. edges: texts under the left edges of the columns and the right edge of the
    last, as many as fit. texts: above the columns, if they fit."""

    def draw(width: int) -> tuple[Markup, int]:
        """The columns side by side, with their values above them if all values fit."""
        top, bottom, left, right = 22, 180, 4, width - 4
        max_height = max(heights, default=0) or 1
        step = min((right - left) / max(len(heights), 1), 90.0)
        gap = min(6.0, step * 0.16)
        column_width = step - gap
        right_end = _number(left + len(heights) * step)
        parts = [tag("line", x1=left, x2=right_end, y1=bottom, y2=bottom, class_="base")]
        with_texts = max(map(_text_width, texts), default=0.0) < step  # the columns next to each one may be as high
        for place, height in enumerate(heights):
            x = left + place * step + gap / 2
            column_height = max((bottom - top) * height / max_height, 2.0 if height else 0)
            if column_height:
                geometry = {
                    "x": _number(x),
                    "y": _number(bottom - column_height),
                    "width": _number(column_width),
                    "height": _number(column_height),
                }
                parts.append(tag("rect", **geometry, rx=1.5, class_="bar"))
            if with_texts and texts and texts[place]:
                parts.append(_text(x + column_width / 2, bottom - column_height - 6, texts[place], anchor="middle", kind="value"))
        parts += _axis_texts([(left + place * step, edge) for place, edge in enumerate(edges) if edge], bottom + 17, width)
        return joined(parts), bottom + (24 if edges else 4)

    return figure(label, draw, x_axis, y_axis)


# ---------------------------------------------------------------- a timeline


def timeline(label: str, lanes: Sequence[str], dots: Sequence[Dot], axis: str) -> Markup:
    """A lane for each operation, a dot for each commit, from old to new. axis: text about the time axis. A narrow page has the
    names above the lanes."""
    first, last = min(dot.time_ms for dot in dots), max(dot.time_ms for dot in dots)

    def draw(width: int) -> tuple[Markup, int]:
        """One line for each lane, with the dots at their times. Small dots are drawn last, so that large ones do not hide
        them.
        """
        is_narrow = width == NARROW
        left = 0 if is_narrow else min(200, 16 + max(map(_text_width, lanes)))
        row_height = 44 if is_narrow else 34
        right, bottom = width - 16, len(lanes) * row_height + 6

        def x_of(time_ms: int) -> float:
            start = left + 14
            return (start + right) / 2 if first == last else start + (right - start) * (time_ms - first) / (last - first)

        parts = []
        for lane, name in enumerate(lanes):
            y = (lane + 1) * row_height - 14
            parts.append(tag("line", x1=_number(left), x2=width - 2, y1=y, y2=y, class_="grid"))
            if is_narrow:
                parts.append(_text(0, y - 15, _cut_to_width(name, width), kind="label"))
            else:
                parts.append(_text(left - 8, y + 4, _cut_to_width(name, left - 12), anchor="end", kind="label"))
        for dot in sorted(dots, key=lambda dot: -dot.size):
            radius = _number(3 + 9 * math.sqrt(dot.size))  # the root, because people compare areas
            circle = tag("circle", cx=_number(x_of(dot.time_ms)), cy=(dot.lane + 1) * row_height - 14, r=radius, class_="dot")
            parts.append(tag("g", tag("title", dot.title), circle) if width == WIDE else circle)
        parts += _axis_texts([(x_of(time_ms), text) for time_ms, text in _time_ticks(first, last)], bottom + 16, width)
        return Markup("".join(parts)), bottom + 22

    return figure(label, draw, axis)


def _time_ticks(first: int, last: int) -> list[tuple[int, str]]:
    """Times (ms since 1970) and their texts: the ends, and for more than two days also starts of days between them."""
    if first == last:
        return [(first, moment_text(first))]
    if last - first > 2 * _DAY_MS:
        step = math.ceil((last - first) / (_TIME_STEPS * _DAY_MS)) * _DAY_MS
        between = range(first - first % _DAY_MS + step, last, step)
        return [(time_ms, day_text(time_ms)) for time_ms in (first, *between, last)]
    start, end = moment_text(first), moment_text(last)
    # On one day a tick is `23:59:59`, otherwise `01-31 23:59`.
    is_one_day = start[:10] == end[:10] and end.endswith(" UTC")
    return [(time_ms, text[11:-4] if is_one_day else text[5:16]) for time_ms, text in ((first, start), (last, end))]


# ---------------------------------------------------------------- files over two columns


def rectangles(
    label: str,
    shapes: Sequence[tuple[float, float, float, float]],
    density: Sequence[Sequence[int]],
    names: tuple[str, str],
    ends: tuple[tuple[str, str], tuple[str, str]],
) -> Markup:
    """Each file as a rectangle or, if there are too many files to draw, the number of files over each cell. Then `shapes` is
    empty; otherwise `density` is. names, ends: of x and y.

    shapes: x0, y0, x1, y1 as shares of the axes. density: rows from low to high y. In SVG y grows downwards, and on the map
    upwards.
    """

    def draw(width: int) -> tuple[Markup, int]:
        """Files as rectangles over two columns, or, if there are too many, shades for the number of files in each cell."""
        top, left, map_width, map_height = 2, 2, (560 if width > NARROW else width - 4), (340 if width > NARROW else 260)
        parts = [tag("rect", x=left, y=top, width=map_width, height=map_height, class_="frame")]
        if density:
            max_density = max(max(row) for row in density) or 1
            cell_x, cell_y = map_width / len(density[0]), map_height / len(density)
            for level in range(1, 6):
                # One path for all cells of a shade saves bytes.
                cell_outline = f"h{_number(cell_x)}v{_number(cell_y)}h-{_number(cell_x)}z"
                cells = [
                    f"M{_number(left + x * cell_x)} {_number(top + map_height - (y + 1) * cell_y)}{cell_outline}"
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
                    x=_number(left + x0 * map_width),
                    y=_number(top + (1 - y1) * map_height),
                    width=_number(max((x1 - x0) * map_width, 2)),
                    height=_number(max((y1 - y0) * map_height, 2)),
                    class_="file",
                )
            )
        half = map_width / 2 - 6
        parts.append(_text(left, top + map_height + 17, _cut_to_width(ends[0][0], half)))
        parts.append(_text(left + map_width, top + map_height + 17, _cut_to_width(ends[0][1], half), anchor="end"))
        return Markup("".join(parts)), top + map_height + 22

    (x, y), y_ends = (shortened(name, 60) for name in names), (shortened(end, 40) for end in ends[1])
    low, high = y_ends
    return figure(label, draw, f"To the right: {x}", f"Upwards: {y}, from {low} to {high}")
