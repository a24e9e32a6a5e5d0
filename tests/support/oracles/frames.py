"""Spark's DataFrames as values that tests compare."""

from __future__ import annotations

from pyspark.sql import DataFrame


def executed_plan(frame: DataFrame) -> str:
    """The plan that Spark carries out, as text; before anything has run, as it is then."""
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]


def rows(frame: DataFrame) -> list[str]:
    """Its rows as texts, sorted: the order of rows is free, how often each comes is not."""
    return sorted(repr(row) for row in frame.collect())
