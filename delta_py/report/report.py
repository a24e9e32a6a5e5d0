"""Report: the picture of a table, as facts, as a page, in a notebook.

    report = report_of(snapshot)
    report.write("/tmp/sales.html")
    report.facts.files.small_count
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from delta_py.report.facts import TableFacts
from delta_py.report.gathering import ReportRequest, gather
from delta_py.report.markup import tag
from delta_py.report.page import page
from delta_py.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Report:
    """facts: all that the page shows, and more."""

    facts: TableFacts

    def html(self) -> str:
        """One HTML document, whole in itself: no script, nothing fetched."""
        return page(self.facts)

    def write(self, path: str | Path) -> None:
        """Write the page to a file of this machine. Raises OSError."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def to_json(self) -> str:
        return self.facts.to_json()

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame of its own, so that its style and theirs leave each other alone."""
        title = "Report of a Delta table"
        return tag("iframe", srcdoc=self.html(), sandbox="", title=title, width="100%", height=800, frameborder=0)


def report_of(snapshot: Snapshot, request: ReportRequest | None = None) -> Report:
    """What cannot be told of the table is Unknown in the facts, with the reason."""
    return Report(gather(snapshot, request))
