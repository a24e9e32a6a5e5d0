"""The ratios to delta-spark as a picture: one bar a workload, a line where both take the same time."""

from __future__ import annotations

from collections.abc import Mapping
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
