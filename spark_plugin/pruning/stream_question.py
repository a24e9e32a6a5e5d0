"""Calls about offsets that a stream's process gets in the form of a request for a batch's partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

QUESTION_KEY = "pydelta.question"


@dataclass(frozen=True, slots=True)
class StreamQuestion:
    """A call about offsets, which a stream's process gets in the form of a request for a batch's partitions, because Spark 4.1
    has no other call with arguments."""

    call: str
    arguments: tuple[str, ...]


def question_of(start: Any) -> StreamQuestion | None:
    """Return the call that StreamRunner.java put into the start of a batch, or None for a real start. No offset of a stream has
    such a key."""
    if not isinstance(start, dict) or start.keys() != {QUESTION_KEY}:
        return None
    question = start[QUESTION_KEY]
    return StreamQuestion(question["call"], tuple(question["arguments"]))
