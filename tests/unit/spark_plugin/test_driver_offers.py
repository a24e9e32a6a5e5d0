"""Whether a session is offered the driver's own Python: only where it wants it, and a warning where it cannot be had."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from spark_plugin.driver_planning import offers


class Context:
    pythonExec = sys.executable


class Rule:
    def __init__(self) -> None:
        self.planners: list[Any] = []

    def offerDriver(self, planner: Any) -> None:
        self.planners.append(planner)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def make(*, wanted: bool = True, rule: Rule | None = None, planner: Callable[..., Any] = pytest.fail) -> Any:
        monkeypatch.setattr(offers, "is_on", lambda spark, name, default: wanted)
        monkeypatch.setattr(offers, "installed_rule", lambda spark: rule)
        monkeypatch.setattr(offers, "java_planner", planner)
        monkeypatch.setattr(offers, "_java_loads", lambda spark, rule: "loads")
        return SimpleNamespace(sparkContext=Context())

    return make


def test_session_that_does_not_want_it_compiles_nothing_and_opens_no_port(session: Callable[..., Any]) -> None:
    rule = Rule()
    spark = session(wanted=False, rule=rule)
    assert offers.loads_of(spark) is None
    assert rule.planners == []
    spark = session(rule=None)
    assert not offers.offer(spark)


def test_other_python_of_the_workers_keeps_it_out(session: Callable[..., Any]) -> None:
    spark = session(rule=Rule())
    spark.sparkContext.pythonExec = "/usr/bin/another-python3"
    assert not offers.offer(spark)
    assert offers.loads_of(spark) is None


def test_session_that_wants_it_later_has_it_by_its_next_load(session: Callable[..., Any]) -> None:
    assert offers.loads_of(session(wanted=False, rule=Rule())) is None
    rule = Rule()
    assert offers.loads_of(session(rule=rule, planner=lambda *_: "planner")) == "loads"
    assert rule.planners == ["planner"]


def test_each_offer_has_a_secret_of_its_own(session: Callable[..., Any]) -> None:
    secrets = []
    spark = session(rule=Rule(), planner=lambda spark, answer, secret: secrets.append(secret))
    assert offers.offer(spark) and offers.offer(spark)
    assert [len(secret) for secret in secrets] == [32, 32] and len(set(secrets)) == 2


def test_where_it_cannot_be_had_a_warning_says_why_and_workers_do_all(
    session: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    tried = []

    def broken(*_: Any) -> None:
        tried.append(1)
        raise RuntimeError("File 'DriverPlanner.java', Line 3: Cannot load class \"PythonDataSourceReadInfo\"")

    rule = Rule()
    spark = session(rule=rule, planner=broken)
    assert [offers.loads_of(spark) for _ in range(3)] == [None] * 3
    assert (len(tried), rule.planners) == (1, [])
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "PythonDataSourceReadInfo" in record.getMessage() and offers.ENABLED_CONF in record.getMessage()
