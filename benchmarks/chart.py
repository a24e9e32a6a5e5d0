"""Pictures: the ratios to delta-spark, with one bar for each workload and a line where both take the same time; and line charts
side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape

_ROW, _LABELS, _BARS, _WIDEST = 22, 260, 420, 2.0
_FASTER, _SLOWER = "#2a7f62", "#b5543c"


def ratio_chart(ratios: Mapping[str, float], caption: str) -> str:
    """SVG text. ratios: time of pydelta over time of delta-spark, by workload; bars longer than 2 are cut and say so."""
    height = _ROW * (len(ratios) + 3)
    even = _LABELS + _BARS / _WIDEST
    size = f'width="{_LABELS + _BARS + 70}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="{_ROW - 6}">Time of pydelta, delta-spark being 1 (shorter is faster)</text>',
        *(_bar(number, name, ratio) for number, (name, ratio) in enumerate(ratios.items(), start=1)),
        f'<line x1="{even}" x2="{even}" y1="{_ROW}" y2="{height - 1.5 * _ROW}" stroke="#444" stroke-dasharray="4 3"/>',
        f'<text x="8" y="{height - 8}" font-size="11" fill="#555">{escape(caption)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _bar(number: int, name: str, ratio: float) -> str:
    top, length = number * _ROW, min(ratio, _WIDEST) * _BARS / _WIDEST
    color = _FASTER if ratio <= 1 else _SLOWER
    return (
        f'<text x="{_LABELS - 8}" y="{top + 15}" text-anchor="end">{escape(name)}</text>'
        f'<rect x="{_LABELS}" y="{top + 3}" width="{length:.1f}" height="{_ROW - 6}" fill="{color}"/>'
        f'<text x="{_LABELS + length + 6:.1f}" y="{top + 15}">{ratio:.2f}</text>'
    )


# ---------------------------------------------------------------- lines


_PLOT_WIDTH, _PLOT_HEIGHT, _LEFT, _TOP = 300, 200, 60, 40
_COLORS = ("#2a7f62", "#3b6fb5", "#b5543c", "#8a6d3b")


def line_charts(charts: Mapping[str, Mapping[str, Mapping[float, float]]], x_name: str, caption: str) -> str:
    """SVG text of charts side by side. charts: by title, lines by name, y by x. The x axis is logarithmic, the y axis starts at
    0."""
    width, height = len(charts) * (_PLOT_WIDTH + _LEFT + 20), _PLOT_HEIGHT + _TOP + 90
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (title, lines) in enumerate(charts.items()):
        parts.extend(_plot(number * (_PLOT_WIDTH + _LEFT + 20) + _LEFT, title, lines, x_name))
    parts.append(f'<text x="8" y="{height - 8}" font-size="11" fill="#555">{escape(caption)}</text></svg>')
    return "\n".join(parts) + "\n"


def _plot(left_edge: int, title: str, lines: Mapping[str, Mapping[float, float]], x_name: str) -> Iterator[str]:
    xs = sorted({x for line in lines.values() for x in line})
    highest = max((y for line in lines.values() for y in line.values()), default=1) or 1
    low, span = math.log(xs[0]), math.log(xs[-1] / xs[0]) or 1
    bottom = _TOP + _PLOT_HEIGHT

    def at(x: float, y: float) -> tuple[float, float]:
        return left_edge + (math.log(x) - low) / span * _PLOT_WIDTH, bottom - y / highest * _PLOT_HEIGHT

    yield f'<text x="{left_edge}" y="{_TOP - 16}" font-size="13">{escape(title)}</text>'
    yield f'<path d="M{left_edge} {_TOP}V{bottom}H{left_edge + _PLOT_WIDTH}" fill="none" stroke="#444"/>'
    for y in (0, highest / 2, highest):
        yield f'<text x="{left_edge - 6}" y="{at(xs[0], y)[1] + 4:.1f}" text-anchor="end">{y:.3g}</text>'
    for x in xs:
        yield f'<text x="{at(x, 0)[0]:.1f}" y="{bottom + 16}" text-anchor="middle">{x:g}</text>'
    yield f'<text x="{left_edge + _PLOT_WIDTH / 2}" y="{bottom + 32}" text-anchor="middle">{escape(x_name)}</text>'
    for number, (name, line) in enumerate(lines.items()):
        color, points = _COLORS[number % len(_COLORS)], [at(x, y) for x, y in sorted(line.items())]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points)
        yield f'<text x="{left_edge + number * 100}" y="{bottom + 50}" fill="{color}">{escape(name)}</text>'
