"""The messages about a planned scan from the source to the rule: they are in the partitions that go back to Spark.

A partition pickles as a call of `restored_partition(messages, task)`. PartitionMessages.java reads `messages`, a dict of texts
and bytes. It does not read `task`, which contains values of the table and names of files. messages.json describes the messages:
the first partition has the plan, and the partition of a task for Spark's own Parquet reader has the task's files. If no rule is
installed, there are no messages.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    from delta_py.scan.planning import ScanReport

PLAN, FILES, ANSWER = "plan", "files", "answer"


class MessagePartition(InputPartition):
    """A partition with messages for the optimizer rule, which reads them from the pickle of the partition.

    messages: texts and bytes under the names PLAN, FILES and ANSWER; None for no messages. The classes of subclasses and of their
    attributes must be importable, because __reduce__ pickles them by name."""

    def __init__(self, messages: Mapping[str, str | bytes] | None = None) -> None:
        super().__init__(None)
        self.messages = dict(messages or {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the messages as plain values, which Java can read, and everything else as bytes, which Java skips."""
        task = {name: value for name, value in self.__dict__.items() if name != "messages"}
        return restored_partition, (self.messages, pickle.dumps((type(self), task), pickle.HIGHEST_PROTOCOL))


def restored_partition(messages: dict[str, str | bytes], task: bytes) -> MessagePartition:
    """Restore the partition from a pickle. task: its class and its other attributes, pickled."""
    kind, attributes = pickle.loads(task)
    partition: MessagePartition = kind.__new__(kind)
    partition.__dict__.update(attributes, messages=messages)
    return partition


def plan_message(message: Mapping[str, Any], scan_id: str | None) -> dict[str, str | bytes]:
    """Return the messages of the first partition: the plan, or no messages if no rule is installed. message: the plan, as `plan`
    in messages.json describes it. scan_id: the id in the rule's request; None if no rule is installed."""
    return {} if scan_id is None else {PLAN: json.dumps(message)}


def kept_part(report: ScanReport) -> dict[str, int | None]:
    """Return the part `kept` of the plan: how many of the files and bytes the scan reads."""
    return {
        "files": report.files_kept,
        "files_total": report.files_total,
        "bytes": report.bytes_kept,
        "bytes_total": report.bytes_total,
        "rows": report.rows_kept,
    }
