"""Run: the settings of every command (its output form, the location of tables), and how it prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Self

from pydelta_cli.formats.terminal_text import cell, printable, printable_json, printable_lines
from pydelta_cli.parameters import check_one_version

if TYPE_CHECKING:
    from delta_py.storage.store import ObjectStore
    from delta_py.table import DeltaTable

Form = Mapping[str, Any]
"""The result of a command, as in JSON: docs/command-line.md has the form of each."""

FOUND, WRONG_USE, FAILED, UNDECIDED = 1, 2, 3, 4
INTERRUPTED = 130  # the exit code of shells for a program that Ctrl-C ended


@dataclass(frozen=True, slots=True)
class Run:
    """as_json: answer with one JSON object. zone: time zone for reading and showing times. storage: options of object stores."""

    as_json: bool = False
    zone: str = "UTC"
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)  # with secrets

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

    # ------------------------------------------------------------ answers

    def answer(self, form: Form, columns: Mapping[str, Sequence[str]] | None = None) -> None:
        """One JSON object, or the same for people: values by their names, lists of objects as tables, with their names if the
        answer has more. columns: of these tables by name, if not all are shown."""
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
                shown_columns = (columns or {}).get(name) or list(value[0])
                self.print_table(shown_columns, [[cell(row[column]) for column in shown_columns] for row in value])

    def write_json(self, form: Form) -> None:
        import orjson

        say(printable_json(orjson.dumps(form, option=orjson.OPT_INDENT_2).decode()), is_safe=True)

    def print_table(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
        """rows: the text of each cell; None is shown as null."""
        from pydelta_cli.formats.text_tables import table_text

        is_terminal = sys.stdout.isatty()
        is_styled = is_terminal and os.environ.get("TERM", "dumb") != "dumb"
        width = get_terminal_size().columns if is_terminal else None
        say(table_text(columns, rows, width, is_styled=is_styled), is_safe=True)


def check_no_file(path: str) -> None:
    """Raises InvalidOptionError for a local file, because a file cannot be a table's path."""
    if os.path.isfile(path):
        from delta_py.errors import InvalidOptionError

        raise InvalidOptionError(
            f"{path} is a file, and a table is a directory. Nothing was done. Give the directory with the table's _delta_log.",
            path=path,
        )


def say(text: str, *, is_safe: bool = False, error: bool = False) -> None:
    """Prints one or more lines. is_safe: nothing in it needs to be escaped."""
    text = text if is_safe else printable_lines(text)
    print(text, file=sys.stderr if error else sys.stdout)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def value_lines(value: Any) -> list[str]:
    """A value for people; a mapping has one line per name."""
    if isinstance(value, Mapping) and value:
        return [f"{printable(str(name))}: {_shown(inner)}" for name, inner in value.items()]
    if isinstance(value, list):
        return [", ".join(map(_shown, value))]
    return [_shown(value)]


def _shown(value: Any) -> str:
    text = cell(value)
    return "null" if text is None else printable(text)
