"""Column pruning, filters and limits for Spark's scan of a Python data source.

In: the request that the optimizer rule writes into a scan's schema (scan_request.py). Out: messages about the planned scan, in
its first partition (partition_messages.py). messages.json describes both. rule.py installs the rule, which is Java.
"""

from typing import TYPE_CHECKING, Any

from spark_plugin.pruning.limited import limited
from spark_plugin.pruning.partition_messages import ANSWER, MessagePartition, kept_part, plan_message
from spark_plugin.pruning.predicate_json import predicate_of
from spark_plugin.pruning.scan_request import NativeWish, ScanRequest, parse_batch_start
from spark_plugin.pruning.stream_question import question_of

if TYPE_CHECKING:
    from spark_plugin.pruning.rule import (
        PruningStatus,
        install,
        rows_needed_by,
        status,
        with_columns_of_batches,
        with_metadata_column,
    )

__all__ = [
    "ANSWER",
    "MessagePartition",
    "NativeWish",
    "PruningStatus",
    "ScanRequest",
    "install",
    "kept_part",
    "limited",
    "parse_batch_start",
    "plan_message",
    "predicate_of",
    "question_of",
    "rows_needed_by",
    "status",
    "with_columns_of_batches",
    "with_metadata_column",
]

# Names of rule.py. The module is imported when one of them is first used.
_NAMES_OF_RULE = ("PruningStatus", "install", "status", "rows_needed_by", "with_columns_of_batches", "with_metadata_column")


def __getattr__(name: str) -> Any:
    """Import rule.py only when it is needed: each task imports this package, but no task has a session to install the rule
    into."""
    if name in _NAMES_OF_RULE:
        from spark_plugin.pruning import rule

        return getattr(rule, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
