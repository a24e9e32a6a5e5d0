"""How status(spark) shows the rule's answer, without a JVM."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from delta_py.scan.planning import ScanReport
from spark_plugin.pruning import rule
from spark_plugin.pruning.rule import RoadStatus, ScanStatus
from tests.support.documents.message_schema import violations

TOLD: dict[str, Any] = {
    "roads": [
        {"road": "pruning", "used": 3, "skipped": 1, "last_reason": "it failed", "last_error": "it failed"},
        {"road": "log", "used": 2, "skipped": 5, "last_reason": "it does not say", "last_error": None},
    ],
    "scans": [
        {"path": "/t", "road": "parquet", "why": "it is small", "files": "1 of 2 files"},
        {"path": "/t", "road": "log", "why": "it knows", "files": None},
    ],
    "last_scan": {"files_total": 2, "bytes_total": 20, "files_kept": 1, "bytes_kept": 10},
}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    assert violations("status", TOLD) == []
    java = SimpleNamespace(status=lambda: json.dumps(TOLD))
    monkeypatch.setattr(rule, "adapter_of", lambda _spark: SimpleNamespace(pruning_rule=lambda: java))

    class Session:
        pass

    return Session()


def test_status_has_a_row_for_each_road(session: Any) -> None:
    status_rows = rule.status(session)
    assert status_rows["log"] == RoadStatus("log", 2, 5, "it does not say")
    assert status_rows["one-task"] == RoadStatus("one-task", 0, 0)
    assert (status_rows.installed, status_rows.last_error, status_rows.last_scan) == (True, "it failed", ScanReport(2, 20, 1, 10))
    assert status_rows.scans[-1] == ScanStatus("/t", "log", "it knows", None)


def test_status_is_printed_with_a_line_for_each_road_and_scan(session: Any) -> None:
    assert str(rule.status(session)).splitlines() == [
        "The pruning rule is installed.",
        "road               used  skipped  last reason",
        "pruning               3        1  it failed",
        "log                   2        5  it does not say",
        "/t: parquet (it is small), 1 of 2 files",
        "/t: log (it knows)",
    ]
