"""Limits how much text the functions of one evaluation may produce in addition to their input.

    with growth_limit(MOST_BYTES):       # around an evaluation
        spend("repeat", 3_000_000_000)   # in a function, before it allocates the memory: raises when too much is spent

A function that repeats, pads or replaces text can produce much text from a short rule and few rows, and nested functions
multiply.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError, ExpressionError

MOST_BYTES = 1 << 30
"""The limit of one evaluation, which covers one batch of rows."""

_TOO_LARGE = "COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION"
# A list with one number, which `spend` reduces: nested functions share it.
_remaining_bytes: ContextVar[list[int]] = ContextVar("bytes that may still be made")


@contextmanager
def growth_limit(size_bytes: int) -> Iterator[None]:
    """Inside the block, spend allows this many bytes in total."""
    token = _remaining_bytes.set([size_bytes])
    try:
        yield
    finally:
        _remaining_bytes.reset(token)


def spend(name: str, size_bytes: int) -> None:
    """Record that a function is about to produce this many bytes in addition to its input. Raises ExpressionError."""
    # Outside of growth_limit each call has the whole limit.
    budget = _remaining_bytes.get(None) or [MOST_BYTES]
    budget[0] -= size_bytes
    if budget[0] < 0:
        raise ExpressionError(
            f"The rows of one batch would get {size_bytes} bytes of text by {name}, beside what they got before: so many are not "
            "made. Let it give shorter texts.",
            error_class=_TOO_LARGE,
            sql_state="54000",
            function=name,
        )


def repeat_in_rows(value: pa.Scalar, row_count: int) -> Any:
    """An Array with the value in each row. Raises ExpressionError for a text that is too long for that many rows."""
    if row_count > 1 and (pa.types.is_string(value.type) or pa.types.is_binary(value.type)):
        spend("a constant", text_bytes(value, row_count - 1))
    return pa.repeat(value, row_count)


def is_growth_error(error: DeltaError) -> bool:
    """Whether spend raised an error, or the error's cause."""
    causes = (error, error.__cause__)
    return any(isinstance(cause, ExpressionError) and cause.error_class == _TOO_LARGE for cause in causes)


def text_bytes(values: Any, row_count: int) -> int:
    """Bytes of an Array of texts or binaries, or of a Scalar that is repeated in each row."""
    if isinstance(values, pa.Scalar):
        return row_count * (len(values.as_buffer()) if values.is_valid else 0)
    return pc.sum(pc.binary_length(values)).as_py() or 0
