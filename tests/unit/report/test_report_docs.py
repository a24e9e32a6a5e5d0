"""docs/report.md names every metric and every part of the page, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from delta_py.report.html.sections import sections
from delta_py.report.metrics import metrics
from tests.support.tables.report_states import STATES

PAGE = (Path(__file__).parents[3] / "docs" / "report.md").read_text()


def test_page_names_every_metric_with_its_labels() -> None:
    expected: dict[str, set[str]] = {}
    for state in ("usual", "broken"):
        for metric in metrics(STATES[state]().facts):
            expected.setdefault(f"pydelta_table_{metric.name}", set()).update(*(labels for labels, _ in metric.samples))
    rows = re.findall(r"^\| `(pydelta_table_\w+)` \| (.*?) \|", PAGE, re.MULTILINE)
    named = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    assert named.pop("pydelta_table_unknown") == {"metric"}
    assert named == expected


def test_page_names_every_part() -> None:
    table = PAGE[PAGE.index("| part |") : PAGE.index("The map under Skipping")]
    named = re.findall(r"^\| ([A-Z][a-z ]+) \|", table, re.MULTILINE)
    assert named == ["Advice", *(part.title for part in sections(STATES["usual"]().facts))]
