"""Answers of the driver's channel that a test sets instead of the driver's own plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from pyspark.sql import SparkSession

from spark_plugin import pruning
from spark_plugin.driver_channel.channel import STATEMENT, channel_of
from spark_plugin.driver_channel.server import ChannelServer, Handler, _Pulse
from spark_plugin.driver_planning import offer as offer_driver
from spark_plugin.driver_planning.offers import java_planner, planning_handlers
from spark_plugin.pruning.rule import installed_rule
from tests.support.spark.older_settings import PLANNING_CONF as ENABLED_CONF


class _NoPulse:
    def during(self, connection: Any, seconds: float) -> Any:
        return nullcontext()

    def stop(self) -> None: ...


def offer(spark: SparkSession, handlers: Mapping[int, Handler], *, is_silent: bool = False) -> None:
    """Requests of other kinds are not begun. is_silent: long work gives no sign of life, as in a process that hangs."""
    rule, channel = installed_rule(spark), channel_of(spark)
    assert rule is not None
    server = server_of(spark)
    statements = {kind: handler for kind, handler in server._handlers.items() if kind == STATEMENT}
    server._handlers = {**{kind: (handler, True) for kind, handler in handlers.items()}, **statements}
    server._pulse = _NoPulse() if is_silent else _Pulse()  # type: ignore[assignment]
    rule.offerDriver(java_planner(spark, channel))


def server_of(spark: SparkSession) -> ChannelServer:
    return channel_of(spark)._server


@contextmanager
def asked(spark: SparkSession, conf: Any, road: str) -> Iterator[Callable[[], int]]:
    """Uses the driver's own planner within the context, and afterwards, whatever a test has offered. conf: the fixture. Returns
    how often a road of the rule's status was used since."""
    conf({ENABLED_CONF: "true"})
    assert offer_driver(spark)
    before = pruning.status(spark)
    yield lambda: pruning.status(spark)[road].used - before[road].used
    conf({ENABLED_CONF: "true"})
    offer(spark, planning_handlers())
    assert offer_driver(spark), "in the place of what a test has offered"
    after = pruning.status(spark)
    assert after["pruning"].skipped == before["pruning"].skipped, after.last_error
