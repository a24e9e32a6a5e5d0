"""pydelta for Spark: `register(spark)`, then `spark.read.format("pydelta")` and DeltaTable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_plugin.session import register
    from spark_plugin.tables import DeltaTable

__all__ = ["DeltaTable", "register"]


def __getattr__(name: str) -> Any:
    """Each of Spark's worker processes imports this package, and none of them needs these."""
    if name == "register":
        from spark_plugin.session import register

        return register
    if name == "DeltaTable":
        from spark_plugin.tables import DeltaTable

        return DeltaTable
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
