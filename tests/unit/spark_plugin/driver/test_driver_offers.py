"""Whether a session gets the driver's own Python: only if the session enables it, with a warning if it is not available."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_plugin.driver_channel.channel import OPEN, PLAN
from spark_plugin.driver_channel.server import Handler
from spark_plugin.driver_planning import offers
from spark_plugin.options.roads import DISABLE_CONF, DRIVER_PLANNING
from tests.support.spark.older_settings import PLANNING_CONF


class Context:
    pythonExec = sys.executable


class Rule:
    def __init__(self) -> None:
        self.planners: list[Any] = []

    def offerDriver(self, planner: Any) -> None:
        self.planners.append(planner)


class JavaPlanners:
    """Replaces the channel and DriverPlanner.java: it numbers the planners, and keeps the handlers of each."""

    def __init__(self) -> None:
        self.handlers: list[Mapping[int, Handler]] = []
        self.count = 0

    def handle(self, handlers: Mapping[int, Handler]) -> None:
        self.handlers.append(handlers)

    def __call__(self, spark: Any, channel: Any) -> int:
        assert channel is self
        self.count += 1
        return self.count


@pytest.fixture
def planners(monkeypatch: pytest.MonkeyPatch) -> JavaPlanners:
    java_planners = JavaPlanners()
    monkeypatch.setattr(offers, "java_planner", java_planners)
    monkeypatch.setattr(offers, "channel_of", lambda spark: java_planners)
    monkeypatch.setattr(offers, "_java_loads", lambda spark, rule: "loads")
    return java_planners


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Without the warning about the older setting."""
    is_older = f"The setting {PLANNING_CONF} is deprecated"
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and not record.getMessage().startswith(is_older)
    ]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, planners: JavaPlanners) -> Callable[..., Any]:
    """Makes a session of a separate application. enabled: the text of the setting. Its rule may be exchanged."""
    monkeypatch.setattr(offers, "installed_rule", lambda spark: spark.rule)

    def make(*, enabled: str | None = None, rule: Rule | None = None) -> Any:
        confs = {} if enabled is None else {PLANNING_CONF: enabled}
        return SimpleNamespace(sparkContext=Context(), conf=confs, rule=rule)

    return make


@pytest.mark.parametrize("enabled", [None, "true", "TRUE"])
def test_session_has_it_unless_it_says_otherwise(
    enabled: str | None, session: Callable[..., Any], planners: JavaPlanners, warnings: Callable[[], list[str]]
) -> None:
    spark = session(enabled=enabled, rule=Rule())
    assert [offers.loads_of(spark) for _ in range(2)] == ["loads"] * 2
    assert (spark.rule.planners, planners.count, warnings()) == ([1], 1, []), "once an application"


def test_disabled_session_compiles_nothing_and_opens_no_channel(
    session: Callable[..., Any], planners: JavaPlanners, warnings: Callable[[], list[str]]
) -> None:
    spark = session(enabled="false", rule=Rule())
    assert not offers.offer(spark)
    assert offers.loads_of(spark) is None
    assert (spark.rule.planners, planners.count, warnings()) == ([], 0, [])


def test_session_without_rule_compiles_and_opens_nothing(
    session: Callable[..., Any], planners: JavaPlanners, warnings: Callable[[], list[str]]
) -> None:
    spark = session(rule=None)
    assert not offers.offer(spark)
    assert offers.loads_of(spark) is None
    assert (planners.count, warnings()) == (0, [])


def test_application_gets_driver_loads_once_it_registers(session: Callable[..., Any]) -> None:
    spark = session(rule=None)
    assert [offers.loads_of(spark) for _ in range(2)] == [None] * 2
    spark.rule = Rule()  # as register does, which offers it once
    offers.offer_once(spark)
    assert spark.rule.planners == [1]
    assert offers.loads_of(spark) == "loads"


def test_offer_without_the_rule_keeps_loads_of_the_application(session: Callable[..., Any]) -> None:
    spark = session(rule=Rule())
    assert offers.offer(spark)
    spark.rule = None
    assert not offers.offer(spark)
    assert offers.loads_of(spark) == "loads"


@pytest.mark.parametrize("is_there", [True, False])
def test_other_python_of_the_workers_keeps_it_out(
    is_there: bool, tmp_path: Path, session: Callable[..., Any], planners: JavaPlanners, warnings: Callable[[], list[str]]
) -> None:
    other = tmp_path / "python3"
    if is_there:
        other.write_text("#!/bin/sh\n")
        other.chmod(0o700)
    spark = session(rule=Rule())
    spark.sparkContext.pythonExec = str(other)
    assert not offers.offer(spark)
    assert offers.loads_of(spark) is None
    assert (spark.rule.planners, planners.count, warnings()) == ([], 0, [])
    spark.sparkContext.pythonExec = sys.executable
    assert offers.loads_of(spark) is None, "what was found stays so"
    assert offers.offer(spark)
    assert offers.loads_of(spark) == "loads"


def test_session_that_wants_it_later_has_it_by_its_next_load(session: Callable[..., Any]) -> None:
    spark = session(enabled="false", rule=Rule())
    assert offers.loads_of(spark) is None
    spark.conf[PLANNING_CONF] = "true"
    assert offers.loads_of(spark) == "loads"
    assert spark.rule.planners == [1]


def test_each_offer_has_handlers_of_its_own(session: Callable[..., Any], planners: JavaPlanners) -> None:
    spark = session(rule=Rule())
    assert offers.offer(spark) and offers.offer(spark)
    assert spark.rule.planners == [1, 2]
    first, second = planners.handlers
    assert first.keys() == second.keys() == set(range(1, 7)) and first[PLAN] != second[PLAN]


def test_what_is_offered_plans_and_opens(
    monkeypatch: pytest.MonkeyPatch, session: Callable[..., Any], planners: JavaPlanners
) -> None:
    monkeypatch.setattr(offers, "planned", lambda body, keep: b"planned " + body)
    monkeypatch.setattr(offers, "open_source", lambda body: b"opened " + body)
    assert offers.offer(session(rule=Rule()))
    (handlers,) = planners.handlers
    assert handlers[PLAN](b"it") == b"planned it"
    assert handlers[OPEN](b"it") == b"opened it"


def test_broken_planner_warns_once_and_leaves_work_to_workers(
    monkeypatch: pytest.MonkeyPatch, session: Callable[..., Any], warnings: Callable[[], list[str]]
) -> None:
    tried = []

    def broken(*_: Any) -> None:
        tried.append(1)
        raise RuntimeError("File 'DriverPlanner.java', Line 3: Cannot load class \"PythonDataSourceReadInfo\"")

    monkeypatch.setattr(offers, "java_planner", broken)
    spark = session(rule=Rule())
    assert [offers.loads_of(spark) for _ in range(3)] == [None] * 3
    assert (len(tried), spark.rule.planners) == (1, [])
    (warning,) = warnings()
    assert "PythonDataSourceReadInfo" in warning and f"Add {DRIVER_PLANNING} to {DISABLE_CONF}" in warning


def test_invalid_boolean_setting_is_named_in_a_warning(
    session: Callable[..., Any], planners: JavaPlanners, warnings: Callable[[], list[str]]
) -> None:
    spark = session(enabled="perhaps", rule=Rule())
    assert not offers.offer(spark)
    assert (spark.rule.planners, planners.count) == ([], 0)
    (warning,) = warnings()
    assert "'perhaps'" in warning and PLANNING_CONF in warning
