"""Run: the settings of every command (its output form, the location of tables), and how it prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Self, TextIO

import typer

from pydelta_cli.formats.terminal_text import printable, printable_json, printable_lines
from pydelta_cli.parameters import check_one_version

if TYPE_CHECKING:
    from delta_py.storage.store import ObjectStore
    from delta_py.table import DeltaTable
    from pydelta_cli.formats.text_tables import Cells, Column

Form = Mapping[str, Any]
"""The result of a command, as in JSON: docs/command-line.md has the form of each."""

FOUND, WRONG_USE, FAILED, UNDECIDED = 1, 2, 3, 4
INTERRUPTED = 130  # the exit code of shells for a program that Ctrl-C ended
_TERMINAL_ROWS = 50


@dataclass(frozen=True, slots=True)
class Run:
    """as_json: answer with one JSON object, instead of text for people. zone: time zone for reading times, and of times in JSON
    and in rows. shown_zone: of commits' and files' times in text. storage: options of object stores. has_json_option: the user
    requests JSON also from a command with another format for pipes."""

    as_json: bool = False
    zone: str = "UTC"
    shown_zone: str = "UTC"
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)  # with secrets
    has_json_option: bool = False

    def checked(self) -> Self:
        """Raises ExpressionError (INVALID_TIMEZONE)."""
        if self.zone != "UTC":
            from delta_py.types.zones import check_zone

            check_zone(self.zone)
        return self

    # ------------------------------------------------------------ tables

    def table(self, path: str, version: int | None = None, at: str | None = None) -> DeltaTable:
        from delta_py.table import DeltaTable

        check_one_version(version, at)
        check_no_file(path)
        return DeltaTable(path, version=version, timestamp=at, session_timezone=self.zone, storage_options=self.storage)

    def place(self, path: str) -> str:
        """The path, for a command that changes or creates the table, or reads more than one version of it.

        Raises InvalidOptionError if it names a version (`PATH@v12`), which such a command would ignore or use as a name.
        """
        from delta_py.errors import InvalidOptionError
        from delta_py.scan.time_travel import named_version
        from delta_py.storage.store_options import StorageOptions

        check_no_file(path)
        suffix = named_version(path, self.zone, StorageOptions.of(self.storage))
        if suffix is None:
            return path
        raise InvalidOptionError(
            f"The path {path} names a version of a table, and this command is for the whole table at its newest version. Nothing "
            f"was done. Give the path {suffix.path}; commands that only read take a version, and `restore` goes back to one.",
            path=path,
        )

    def newest(self, path: str) -> DeltaTable:
        """The table that a command changes. Raises as place."""
        return self.table(self.place(path))

    def store(self, path: str) -> ObjectStore:
        """Raises as place."""
        from delta_py.object_stores.open_store import open_store
        from delta_py.storage.store_options import StorageOptions

        return open_store(self.place(path), StorageOptions.of(self.storage))

    def time(self, timestamp_ms: int | None) -> str | None:
        """ISO 8601 in the zone, as for rows; None for an unknown time."""
        if timestamp_ms is None:
            return None
        import pyarrow as pa

        from pydelta_cli.formats.values import json_values

        text: str = json_values(pa.array([timestamp_ms * 1000], pa.timestamp("us", "UTC")), self.zone)[0]
        return text

    def rows(self, table: Any) -> list[dict[str, Any]]:
        """The rows of an Arrow table or batch, as in JSON."""
        from pydelta_cli.formats.values import json_rows

        return list(json_rows(table, self.zone))

    def time_text(self, timestamp_ms: int | None) -> str | None:
        """As time, for people: `2024-01-31 23:59:59+01`, to the second and in shown_zone."""
        text = replace(self, zone=self.shown_zone).time(timestamp_ms)
        if text is None:
            return None
        date, _, clock = text.partition("T")  # the clock is such as 23:59:59.000000+01:00
        return f"{date} {clock[:8]}{_short_offset(clock[15:])}"

    # ------------------------------------------------------------ answers

    def answer(self, form: Form, show: Callable[[], None]) -> None:
        """Print the result of the command. form: the result, printed as one JSON object if the run answers with JSON. show:
        prints the same result as text for people; it is called only if the run does not answer with JSON."""
        if self.as_json:
            self.write_json(form)
        else:
            show()

    def write_json(self, form: Form) -> None:
        import orjson

        say(printable_json(orjson.dumps(form, option=orjson.OPT_INDENT_2).decode()), is_safe=True)

    def print_table(self, columns: Sequence[Column], rows: Cells, *, null: str = "") -> None:
        """rows: the text of each cell. null: the text of None. Columns without any text are left out if null has none."""
        from pydelta_cli.formats.text_tables import table_text

        if not null:
            filled = [number for number in range(len(columns)) if any(row[number] is not None for row in rows) or not rows]
            columns, rows = [columns[number] for number in filled], [[row[number] for number in filled] for row in rows]
        width = get_terminal_size().columns if sys.stdout.isatty() else None
        say(table_text(columns, rows, width, is_styled=is_styled(sys.stdout), null=null), is_safe=True)

    @property
    def row_limit(self) -> int | None:
        """How many rows of a table a terminal gets; None for all."""
        return _TERMINAL_ROWS if sys.stdout.isatty() else None

    def print_first(self, columns: Sequence[Column], rows: Cells, noun: str) -> None:
        """As print_table. A terminal gets the first rows only, and the number of the others. noun: of one row."""
        shown_count = len(rows) if self.row_limit is None else min(self.row_limit, len(rows))
        self.print_table(columns, rows[:shown_count])
        if shown_count < len(rows):
            from delta_py.report.words import count_text

            say(f"and {count_text(len(rows) - shown_count, f'more {noun}')} (--json has all)")

    def print_values(self, values: Mapping[str, str | None]) -> None:
        """A name and its value on each line; values of several lines below each other. Names without a value are left out."""
        width = max((len(name) for name, value in values.items() if value is not None), default=0)
        for name, value in values.items():
            for number, line in enumerate([] if value is None else value.split("\n")):
                say(f"{'' if number else name:{width}}  {printable(line)}")


def _short_offset(offset: str) -> str:
    """`Z`, `+01`, `+05:30`: offsets that --at reads."""
    return "Z" if offset == "+00:00" else offset.removesuffix(":00") if len(offset) == 6 else offset


def check_no_file(path: str) -> None:
    """Raises InvalidOptionError for a local file, because a file cannot be a table's path."""
    if os.path.isfile(path):
        from delta_py.errors import InvalidOptionError

        raise InvalidOptionError(
            f"{path} is a file, and a table is a directory. Nothing was done. Give the directory with the table's _delta_log.",
            path=path,
        )


def is_styled(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and its user wants them (https://no-color.org)."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("NO_COLOR")


def say(text: str, *, is_safe: bool = False, error: bool = False, colour: str | None = None) -> None:
    """Prints one or more lines. is_safe: nothing in it needs to be escaped. colour: on a terminal."""
    stream = sys.stderr if error else sys.stdout
    text = text if is_safe else printable_lines(text)
    print(typer.style(text, fg=colour) if colour is not None and is_styled(stream) else text, file=stream)
