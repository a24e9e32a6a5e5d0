"""Spark's DataFrames as values that tests compare."""

from __future__ import annotations

from pyspark.sql import DataFrame


def executed_plan(frame: DataFrame) -> str:
    """The plan that Spark runs, as text; before a run, the plan at that time."""
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]


def rows(frame: DataFrame) -> list[str]:
    """Its rows as texts, sorted: the order of rows does not count, but their number does."""
    return sorted(repr(row) for row in frame.collect())
