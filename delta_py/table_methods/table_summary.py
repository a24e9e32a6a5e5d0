"""A table in a few lines: its repr in Python, and its HTML in notebooks.

    print(summary_of(snapshot).text())
    # DeltaTable('/data/sales', version=7)
    #   1,200 rows, 12 files, 5.1 MiB
    #   id bigint, day date

Everything comes from the log. Names, comments and errors are shown as text, and URLs without user, password and query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from delta_py.errors import DeltaError, readable
from delta_py.report.html.markup import Child, data, joined, shortened, tag
from delta_py.report.words import count_text
from delta_py.scan.planning import ScanOptions, ScanReport, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.types.schema import type_name
from delta_py.types.sizes import bytes_text
from delta_py.visible_text import visible

_TEXT_COLUMNS, _HTML_COLUMNS = 20, 200  # how many columns are shown at most
_LONGEST_TYPE, _LONGEST_PROBLEM = 80, 600  # characters


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    name: str
    type: str
    comment: str | None


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What the repr of a table shows. place: the table's name or path. rows: the number of rows; None if the log does not contain
    it. columns: the columns that are shown. column_count: the number of all top-level columns. problem: why facts are missing;
    None if all are known."""

    place: str
    version: int | None = None
    rows: int | None = None
    files: int | None = None
    size_bytes: int | None = None
    columns: tuple[ColumnSummary, ...] = ()
    column_count: int = 0
    problem: str | None = None

    def text(self) -> str:
        """The summary for terminals, in a few lines. What is unknown is left out."""
        version = "" if self.version is None else f", version={self.version}"
        lines = [f"DeltaTable({visible(repr(self.place))}{version})"]
        lines += [f"  {self._state()}"] if self.files is not None else []
        columns = [f"{visible(column.name)} {_short_type(column)}" for column in self.columns[:_TEXT_COLUMNS]]
        hidden_count = self.column_count - len(columns)
        columns += [f"and {count_text(hidden_count, 'more column')}"] if hidden_count else []
        lines += [f"  {', '.join(columns)}"] if columns else []
        lines += [f"  {visible(shortened(self.problem, _LONGEST_PROBLEM))}"] if self.problem is not None else []
        return "\n".join(lines)

    def html(self) -> str:
        """The summary for notebooks, with a table of columns. What is unknown is left out."""
        facts = [f"version {self.version:,}"] if self.version is not None else []
        facts += [self._state()] if self.files is not None else []
        rows = [
            tag("tr", tag("td", data(column.name)), tag("td", data(_short_type(column))), tag("td", data(column.comment or "")))
            for column in self.columns
        ]
        head = tag("tr", tag("th", "column"), tag("th", "type"), tag("th", "comment"))
        hidden_count = self.column_count - len(self.columns)
        elements: list[Child] = [
            tag("p", tag("b", "DeltaTable "), data(self.place)),
            tag("p", ", ".join(facts)) if facts else None,
            tag("table", tag("thead", head), tag("tbody", rows)) if rows else None,
            tag("p", f"and {count_text(hidden_count, 'more column')}") if rows and hidden_count else None,
            tag("p", shortened(self.problem, _LONGEST_PROBLEM)) if self.problem is not None else None,
        ]
        return joined(elements)

    def _state(self) -> str:
        rows = "unknown number of rows" if self.rows is None else count_text(self.rows, "row")
        return f"{rows}, {count_text(self.files or 0, 'file')}, {bytes_text(self.size_bytes or 0)}"


def recorded_row_count(snapshot: Snapshot) -> int | None:
    """The number of rows in a version; None if the log does not have the row count of every file."""
    return _file_counts(snapshot).rows_kept


def _file_counts(snapshot: Snapshot) -> ScanReport:
    """The counts of a version's files, bytes and rows, from a scan of all files without any column."""
    return plan_scan(snapshot, (), options=ScanOptions(count_rows=True)).report


def summary_of(snapshot: Snapshot, name: str | None = None) -> TableSummary:
    """The summary of a version. name: the table's name in a catalog; None to show its path. If the list of files cannot be read,
    the summary's problem says why. Opens no data file."""
    place = readable(name or snapshot.table_root)
    fields = snapshot.schema.fields
    columns = tuple(
        ColumnSummary(field.name, type_name(field.data_type), _comment(field.metadata.get("comment")))
        for field in fields[:_HTML_COLUMNS]
    )
    summary_so_far = TableSummary(place, snapshot.version, columns=columns, column_count=len(fields))

    def with_files() -> TableSummary:
        report = _file_counts(snapshot)
        return replace(summary_so_far, rows=report.rows_kept, files=report.files_total, size_bytes=report.bytes_total)

    return summary_or_problem(summary_so_far, with_files)


def summary_or_problem(summary_so_far: TableSummary, step: Callable[[], TableSummary]) -> TableSummary:
    """The summary that `step` makes. If the step fails, the summary so far, with the error's message as its problem. A repr must
    not raise, whatever is wrong with a table, its storage or the session: its error would hide the one that a person is looking
    for."""
    try:
        return step()
    except Exception as error:
        problem = error.message if isinstance(error, DeltaError) else readable(f"{type(error).__name__}: {error}")
        return replace(summary_so_far, problem=problem)


def _comment(value: object) -> str | None:
    return None if value is None else str(value)


def _short_type(column: ColumnSummary) -> str:
    return visible(shortened(column.type, _LONGEST_TYPE))
