"""Report: the report about a table, as facts, as a page, in a notebook.

    report = report_of(snapshot)
    report.write("/tmp/sales.html")
    report.facts.files.small_count
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from delta_py.report.facts import TableFacts
from delta_py.report.gathering import ReportRequest, gather
from delta_py.report.html.markup import framed
from delta_py.report.html.page import page
from delta_py.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Report:
    """facts: everything that the page shows, and more."""

    facts: TableFacts

    def html(self) -> str:
        """One self-contained HTML document: it has no script and fetches nothing."""
        return page(self.facts)

    def write(self, path: str | Path) -> None:
        """Write the page to a local file. Raises OSError."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def to_json(self) -> str:
        return self.facts.to_json()

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame of its own, so that its style and the notebook's do not affect each other."""
        return framed(self.html(), "Report of a Delta table")


def report_of(snapshot: Snapshot, request: ReportRequest | None = None) -> Report:
    """The report about a table's version. Facts that are not known are Unknown, with the reason."""
    return Report(gather(snapshot, request))
