"""pydelta for Spark: `register(spark)`, then `spark.read.format("pydelta")` and DeltaTable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_plugin.session import register
    from spark_plugin.tables import DeltaTable
    from spark_plugin.transactions import DeltaTransaction, snapshot

__all__ = ["DeltaTable", "DeltaTransaction", "register", "snapshot"]


def __getattr__(name: str) -> Any:
    """Imported when first used: each of Spark's worker processes imports this package and needs none of these."""
    if name == "register":
        from spark_plugin.session import register

        return register
    if name == "DeltaTable":
        from spark_plugin.tables import DeltaTable

        return DeltaTable
    if name in ("DeltaTransaction", "snapshot"):
        from spark_plugin import transactions

        return getattr(transactions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
