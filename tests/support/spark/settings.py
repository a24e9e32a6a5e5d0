"""Settings of a session, restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    """Set settings to their earlier values; None if one was not set."""
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
