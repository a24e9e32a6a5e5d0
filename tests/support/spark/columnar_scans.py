"""How many scans of a session were read in columns."""

from __future__ import annotations

from spark_plugin.pruning import PruningStatus


def scans_in_columns(status: PruningStatus) -> int:
    """By Python or by Spark's Parquet reader."""
    return status["columns"].used + status["parquet"].used
