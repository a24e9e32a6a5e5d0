"""Rows of text as tables for people. rich can draw them too, but its import took a tenth of a short command's time."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size

from pydelta_cli.formats.terminal_text import printable

Cells: TypeAlias = Sequence[Sequence[str | None]]
"""Rows; how None is shown is an argument."""

_GAP, _FOLDED_WIDTH = 3, 24
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Column:
    """is_number: numbers, sizes: aligned to the right. is_prose: folded between words; other cells are folded anywhere, so that
    no space of a value is lost."""

    name: str
    is_number: bool = False
    is_prose: bool = False


def table_text(columns: Sequence[Column], rows: Cells, width: int | None, *, is_styled: bool, null: str = "null") -> str:
    """width: of a terminal; the widest columns are folded to fit into it; None without a limit. If folding is not enough, each
    row becomes a list of names and values. is_styled: with a terminal's codes for bold and dim. null: the text of None."""
    names = [printable(column.name) for column in columns]
    cells = [[None if cell is None else printable(cell) for cell in row] for row in rows]
    widths = [
        max(map(cell_len, (name, *(null if (cell := row[number]) is None else cell for row in cells))))
        for number, name in enumerate(names)
    ]
    room = None if width is None else width - _GAP * (len(widths) - 1)
    if room is not None and names and sum(widths) > room:
        folded_width = _folded_width(widths, room)
        if cells and folded_width < min(max(widths), _FOLDED_WIDTH):
            return "\n".join(_lists(names, cells, null))
        widths = [min(column_width, max(folded_width, 1)) for column_width in widths]
    bold, dim = (_BOLD, _DIM) if is_styled else ("", "")
    lines = [line for row in cells for line in _lines(row, columns, widths, dim, null)]
    header = [f"{bold}{line}{_PLAIN if bold else ''}" for line in _lines(names, columns, widths, "", null)]
    return "\n".join([*header, "-" * (sum(widths) + _GAP * (len(widths) - 1)), *lines])


def _folded_width(widths: Sequence[int], room: int) -> int:
    """The width of the widest columns with which all columns fit into the room; narrower columns keep their width."""
    remaining_room = room
    for position, width in enumerate(sorted(widths)):
        share = remaining_room // (len(widths) - position)
        if width > share:
            return share
        remaining_room -= width
    return max(widths)


def _lines(row: Sequence[str | None], columns: Sequence[Column], widths: Sequence[int], dim: str, null: str) -> Iterator[str]:
    """The lines of a row: more than one if a cell is folded."""
    folded = [
        [null] if cell is None else _folded(cell, column, width) for cell, column, width in zip(row, columns, widths, strict=True)
    ]
    for number in range(max(map(len, folded), default=0)):
        texts = [cell[number] if number < len(cell) else "" for cell in folded]
        parts = [
            " " * (width - cell_len(text)) + text if column.is_number else set_cell_size(text, width)
            for text, column, width in zip(texts, columns, widths, strict=True)
        ]
        styled = [f"{dim}{part}{_PLAIN}" if dim and cell is None else part for part, cell in zip(parts, row, strict=True)]
        yield (" " * _GAP).join(styled).rstrip()


def _folded(cell: str, column: Column, width: int) -> list[str]:
    if cell_len(cell) <= width:
        return [cell]
    if column.is_prose and cell.isascii():
        return textwrap.wrap(cell, width, break_on_hyphens=False)
    return chop_cells(cell, width)


def _lists(names: Sequence[str], cells: Cells, null: str) -> Iterator[str]:
    """Cells without a text are left out if null has none."""
    width = max(map(cell_len, names))
    for number, row in enumerate(cells, 1):
        yield f"-- {number}"
        for name, cell in zip(names, row, strict=True):
            if cell is not None or null:
                yield f"{set_cell_size(name, width)}  {null if cell is None else cell}"
