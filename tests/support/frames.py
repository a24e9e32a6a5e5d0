"""Spark's DataFrames as values that tests compare."""

from __future__ import annotations

from pyspark.sql import DataFrame


def rows(frame: DataFrame) -> list[str]:
    """Its rows as texts, sorted: the order of rows is free, how often each comes is not."""
    return sorted(repr(row) for row in frame.collect())
