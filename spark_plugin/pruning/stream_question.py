"""Calls about a stream's offsets that reach the process of the stream in the form of a request for a batch's partitions.

The JVM calls a stream's Python process for offsets and partitions. Spark 4.1 has only one such call with arguments, the request
for the partitions between two offsets. So StreamRunner.java puts other calls into the start offset of such a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

QUESTION_KEY = "pydelta.question"


@dataclass(frozen=True, slots=True)
class StreamQuestion:
    """A call that came in the place of a start offset. call: the name of the method of DeltaStreamReader that answers the call.
    arguments: the method's arguments, as texts."""

    call: str
    arguments: tuple[str, ...]


def question_of(start: Any) -> StreamQuestion | None:
    """Return the call that StreamRunner.java put into the start of a batch, or None for a real start offset. An
    offset never has the key QUESTION_KEY."""
    if not isinstance(start, dict) or start.keys() != {QUESTION_KEY}:
        return None
    question = start[QUESTION_KEY]
    return StreamQuestion(question["call"], tuple(question["arguments"]))
