"""Rows of text as tables for people. rich can draw them too, but its import took a tenth of a short command's time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size

from pydelta_cli.formats.terminal_text import printable

Cells: TypeAlias = Sequence[Sequence[str | None]]
"""Rows; None is shown as null."""

_GAP, _FOLDED_WIDTH = 3, 24
_NULL = "null"
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def table_text(columns: Sequence[str], rows: Cells, width: int | None, *, is_styled: bool) -> str:
    """columns: their names. width: of a terminal; the widest column is folded to fit into it; None without a limit. If folding
    is not enough, each row becomes a list of names and values. is_styled: with a terminal's codes for bold and dim."""
    names = [printable(name) for name in columns]
    cells = [[None if cell is None else printable(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, (name, *(row[number] or _NULL for row in cells)))) for number, name in enumerate(names)]
    room = None if width is None else width - _GAP * (len(widths) - 1)
    if room is not None and names and sum(widths) > room:
        widest = max(widths)
        max_width = room - sum(widths) + widest
        if cells and max_width < min(widest, _FOLDED_WIDTH):
            return "\n".join(_lists(names, cells))
        widths[widths.index(widest)] = max(max_width, 1)
    bold, dim = (_BOLD, _DIM) if is_styled else ("", "")
    lines = [line for row in cells for line in _lines(row, widths, dim)]
    header = [f"{bold}{line}{_PLAIN if bold else ''}" for line in _lines(names, widths, "")]
    return "\n".join([*header, "-" * (sum(widths) + _GAP * (len(widths) - 1)), *lines])


def _lines(row: Sequence[str | None], widths: Sequence[int], dim: str) -> Iterator[str]:
    """The lines of a row: more than one if a cell is folded."""
    folded = [
        [_NULL] if cell is None else [cell] if cell_len(cell) <= width else chop_cells(cell, width)
        for cell, width in zip(row, widths, strict=True)
    ]
    for number in range(max(map(len, folded), default=0)):
        texts = [cell[number] if number < len(cell) else "" for cell in folded]
        parts = map(set_cell_size, texts, widths)
        styled = [f"{dim}{part}{_PLAIN}" if dim and cell is None else part for part, cell in zip(parts, row, strict=True)]
        yield (" " * _GAP).join(styled).rstrip()


def _lists(names: Sequence[str], cells: Cells) -> Iterator[str]:
    width = max(map(len, names))
    for number, row in enumerate(cells, 1):
        yield f"-- {number}"
        yield from (f"{name:{width}}  {_NULL if cell is None else cell}" for name, cell in zip(names, row, strict=True))
