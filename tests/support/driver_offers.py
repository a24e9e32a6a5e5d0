"""What a test offers to the JVM in the place of the driver's own planner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from spark_plugin.driver_planning.offers import java_planner
from spark_plugin.pruning.rule import installed_rule


def offer(spark: SparkSession, answer: Callable[[Any], bytes]) -> None:
    """answer: to requests that begin with the secret `secret`."""
    rule = installed_rule(spark)
    assert rule is not None
    rule.offerDriver(java_planner(spark, answer, b"secret"))
