"""What Spark looks for by itself: with pydelta installed, `format("pydelta")` is known without a register() call."""

from spark_plugin.data_source import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
