"""Settings of a session, put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    """Give settings the values that they had; None for one that was not set."""
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
