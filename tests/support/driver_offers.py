"""What a test offers to the JVM in the place of the driver's own planner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from spark_plugin import pruning
from spark_plugin.driver_planning import offer as offer_driver
from spark_plugin.driver_planning.offers import ENABLED_CONF, java_planner
from spark_plugin.pruning.rule import installed_rule


def offer(spark: SparkSession, answer: Callable[[Any], bytes]) -> None:
    """answer: to requests that begin with the secret `secret`."""
    rule = installed_rule(spark)
    assert rule is not None
    rule.offerDriver(java_planner(spark, answer, b"secret"))


@contextmanager
def asked(spark: SparkSession, conf: Any, count: str) -> Iterator[Callable[[], int]]:
    """The driver's own planner is asked meanwhile, and behind it again, whatever a test has offered. conf: the fixture. Gives how
    much a count of the rule's status has grown since."""
    conf({ENABLED_CONF: "true"})
    assert offer_driver(spark)
    before = pruning.status(spark)
    yield lambda: getattr(pruning.status(spark), count) - getattr(before, count)
    conf({ENABLED_CONF: "true"})
    assert offer_driver(spark), "in the place of what a test has offered"
    after = pruning.status(spark)
    assert after.backed_off == before.backed_off, after.last_error
