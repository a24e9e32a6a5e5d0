"""Run: what every command is given (how it answers, where tables lie), and what it says with."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pydelta_cli.parameters import check_one_version
from pydelta_cli.text import cell, printable, printable_json, printable_lines

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from delta_py.storage.store import ObjectStore
    from delta_py.table import DeltaTable

Form = Mapping[str, Any]
"""What a command found, as JSON has it: docs/command-line.md has the form of each."""

FOUND, WRONG_USE, FAILED, UNDECIDED = 1, 2, 3, 4
INTERRUPTED = 130  # as shells have it of what ends by Ctrl-C


@dataclass(frozen=True, slots=True)
class Run:
    """as_json: answer with one JSON object. zone: in which times are read and shown. storage: options of object stores."""

    as_json: bool = False
    zone: str = "UTC"
    storage: Mapping[str, str] = field(default_factory=dict)

    def checked(self) -> Self:
        """Raises ExpressionError (INVALID_TIMEZONE)."""
        if self.zone != "UTC":
            from delta_py.expressions.zones import check_zone

            check_zone(self.zone)
        return self

    # ------------------------------------------------------------ tables

    def table(self, path: str, version: int | None = None, at: str | None = None) -> DeltaTable:
        from delta_py.table import DeltaTable

        check_one_version(version, at)
        check_no_file(path)
        return DeltaTable(path, version=version, timestamp=at, session_timezone=self.zone, storage_options=self.storage)

    def place(self, path: str) -> str:
        """The path, for a command that changes the table there, makes one, or looks at more than one version of it.

        Raises InvalidOptionError where it names a version (`PATH@v12`), which such a command would pass over or take for a name.
        """
        from delta_py.errors import InvalidOptionError
        from delta_py.scan.time_travel import named_version
        from delta_py.storage.options import StorageOptions

        check_no_file(path)
        named = named_version(path, self.zone, StorageOptions.of(self.storage))
        if named is None:
            return path
        raise InvalidOptionError(
            f"The path {path} names a version of a table, and this command is for the whole table at its newest version. Nothing "
            f"was done. Give the path {named.path}; commands that only read take a version, and `restore` goes back to one.",
            path=path,
        )

    def newest(self, path: str) -> DeltaTable:
        """The table that a command changes. Raises as place."""
        return self.table(self.place(path))

    def store(self, path: str) -> ObjectStore:
        """Raises as place."""
        from delta_py.storage.opening import open_store
        from delta_py.storage.options import StorageOptions

        return open_store(self.place(path), StorageOptions.of(self.storage))

    def time(self, timestamp_ms: int | None) -> str | None:
        """ISO 8601 in the zone, as of rows; None for a time that is not known."""
        if timestamp_ms is None:
            return None
        import pyarrow as pa

        from pydelta_cli.values import json_values

        text: str = json_values(pa.array([timestamp_ms * 1000], pa.timestamp("us", "UTC")), self.zone)[0]
        return text

    def rows(self, table: Any) -> list[dict[str, Any]]:
        """The rows of an Arrow table or batch as JSON has them."""
        from pydelta_cli.values import json_rows

        return list(json_rows(table, self.zone))

    # ------------------------------------------------------------ answers

    def answer(self, form: Form, columns: Mapping[str, Sequence[str]] | None = None) -> None:
        """One JSON object, or the same for people: values by their names, lists of objects as tables, under their names where the
        answer has more. columns: of these tables by name, where not all are wanted."""
        if self.as_json:
            self.write_json(form)
            return
        plain = {name: value for name, value in form.items() if not _is_table(value)}
        width = max((len(name) for name in plain), default=0)
        for name, value in plain.items():
            for number, line in enumerate(value_lines(value)):
                say(f"{'' if number else name:{width}}  {line}")
        for name, value in form.items():
            if _is_table(value):
                if len(form) > 1:
                    say(f"\n{name}")
                chosen = (columns or {}).get(name) or list(value[0])
                self.print_table(chosen, [[cell(row[column]) for column in chosen] for row in value])

    def write_json(self, form: Form) -> None:
        import orjson

        say(printable_json(orjson.dumps(form, option=orjson.OPT_INDENT_2).decode()), is_safe=True)

    def print_table(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
        """rows: text as a table has it; null is shown as such. On a terminal that is too narrow for a table, each row is a list
        of names and values."""
        from rich.console import Console

        is_terminal = sys.stdout.isatty()
        console = Console(markup=False, highlight=False, emoji=False, width=None if is_terminal else 1 << 20)
        names = [printable(name) for name in columns]
        cells = [[None if cell is None else printable(cell) for cell in row] for row in rows]
        if is_terminal and not _fits(names, cells, console.width):
            _print_lists(names, cells)
            return
        with console.capture() as drawn:
            console.print(_drawn(names, cells, is_terminal))
        say(drawn.get().removesuffix("\n"), is_safe=True)


Cells: TypeAlias = "Sequence[Sequence[str | None]]"


def _drawn(names: Sequence[str], cells: Cells, is_terminal: bool) -> RichTable:
    """Rich draws the table, and is told of no markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in names:
        table.add_column(Text(name), overflow="fold" if is_terminal else "ignore", no_wrap=not is_terminal)
    for row in cells:
        table.add_row(*(Text("null", style="dim") if cell is None else Text(cell) for cell in row))
    return table


def _fits(names: Sequence[str], cells: Cells, width: int) -> bool:
    """Whether there is room for all columns as they are, but for the widest, which may be folded."""
    from rich.cells import cell_len

    if not names or not cells:
        return True
    widths = sorted(max(cell_len(cell or "null") for cell in column) for column in zip(names, *cells, strict=True))
    return sum(widths[:-1]) + _GAP * (len(widths) - 1) + min(widths[-1], _FOLDED_WIDTH) <= width


_GAP, _FOLDED_WIDTH = 3, 24


def _print_lists(names: Sequence[str], cells: Cells) -> None:
    width = max(map(len, names))
    for number, row in enumerate(cells, 1):
        lines = (f"{name:{width}}  {'null' if cell is None else cell}" for name, cell in zip(names, row, strict=True))
        say("\n".join([f"-- {number}", *lines]), is_safe=True)


def check_no_file(path: str) -> None:
    """Raises InvalidOptionError for a file of this machine, which is no place of a table."""
    if os.path.isfile(path):
        from delta_py.errors import InvalidOptionError

        raise InvalidOptionError(
            f"{path} is a file, and a table is a directory. Nothing was done. Give the directory with the table's _delta_log.",
            path=path,
        )


def say(text: str, *, is_safe: bool = False, error: bool = False) -> None:
    """A line, or several. is_safe: nothing in it needs to be escaped."""
    text = text if is_safe else printable_lines(text)
    print(text, file=sys.stderr if error else sys.stdout)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def value_lines(value: Any) -> list[str]:
    """A value for people; a mapping has a line for each of its names."""
    if isinstance(value, Mapping) and value:
        return [f"{printable(str(name))}: {_shown(inner)}" for name, inner in value.items()]
    if isinstance(value, list):
        return [", ".join(map(_shown, value))]
    return [_shown(value)]


def _shown(value: Any) -> str:
    text = cell(value)
    return "null" if text is None else printable(text)

