"""Sessions that cannot have the pruning rule: reads work without it, and a single message says what to do."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from spark_plugin import pruning


class LockedGateway:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"py4j.Py4JException: Method {name} is not whitelisted")


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (SimpleNamespace(version="4.3.0", _jsparkSession=LockedGateway()), "not whitelisted"),
        (SimpleNamespace(version="4.3.0"), "_jsparkSession"),
    ],
    ids=["locked", "without_jvm"],
)
def test_session_without_the_rule_is_warned_once_with_a_remedy(
    session: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Session(SimpleNamespace):
        __hash__ = object.__hash__  # type: ignore[assignment]

    foreign: Any = Session(**vars(session))
    with caplog.at_level(logging.WARNING, "pydelta.pruning"):
        assert not pruning.install(foreign)
        assert not pruning.install(foreign)
    (record,) = caplog.records
    assert reason in record.getMessage()
    assert ".option('columns'" in record.getMessage()
    assert ".option('filter'" in record.getMessage()
    status = pruning.status(foreign)
    assert (status.installed, status["pruning"].used) == (False, 0)
    assert reason in str(status.last_error)
