"""deltalake's exceptions. DeltaError, TableNotFoundError and SchemaMismatchError are those of delta_py.

    with deltalake_errors(): ...        # conflicts become CommitFailedError, broken rules and features DeltaProtocolError

The error of delta_py is the cause (`__cause__`) of the error that is raised. Some programs recognize deltalake's errors by a few
words of the message, so some messages begin with these words, followed by delta_py's message. CommitOutcomeUnknownError is not
changed: a program that repeats failed commits must not repeat a commit that may have succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

from delta_py.errors import (
    CorruptTableError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvariantViolationError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedTableFeatureError,
)

__all__ = ["CommitFailedError", "DeltaError", "DeltaProtocolError", "SchemaMismatchError", "TableNotFoundError"]

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

_PARAMETER = re.compile(r"\{(\w+)\}")

_APPEND_ONLY = "DELTA_CANNOT_MODIFY_APPEND_ONLY"
_FIRST_WORDS: Mapping[str, str] = {
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE": "duplicate relevant WHEN MATCHED clauses",
    "DELTA_CDC_START_VERSION_AFTER_LATEST": "Invalid table version: {start_version}",
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": "The timestamp is greater than latest commit timestamp",
    "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA": "No field named {column}",
    "DELTA_MERGE_UNRESOLVED_EXPRESSION": "No field named {name}",
}
"""The words at the beginning of messages, by error class. Names in braces are message parameters."""


class CommitFailedError(DeltaError):
    """A commit was refused: another writer's commit forbids it, or the table is append-only. Nothing was committed."""

    error_class = "DELTA_CONCURRENT_WRITE"


class DeltaProtocolError(DeltaError):
    """The table needs a feature that is not supported, the log is damaged, or rows break a rule of the table."""

    error_class = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


def _deltalake_error(error: DeltaError) -> DeltaError | None:
    """The error to raise in place of an error of delta_py; None if that error has the right class and words already."""
    if isinstance(error, CommitFailedError | DeltaProtocolError):
        return None
    deltalake_class, first_words = _deltalake_class(error), _first_words(error)
    if deltalake_class is type(error) and error.message.startswith(first_words):
        return None
    message = f"{first_words}: {error.message}" if first_words else error.message
    return deltalake_class(message, error_class=error.error_class, sql_state=error.sql_state, **error.message_parameters)


def _deltalake_class(error: DeltaError) -> type[DeltaError]:
    """The class that deltalake raises in place of this error."""
    if isinstance(error, DeltaConcurrentModificationException) or error.error_class == _APPEND_ONLY:
        return CommitFailedError
    if isinstance(error, UnsupportedTableFeatureError | InvariantViolationError | CorruptTableError):
        return DeltaProtocolError
    return type(error)


def _first_words(error: DeltaError) -> str:
    """The words by which programs recognize the error; empty if there are none, or if the error lacks a parameter in them. Only
    errors of delta_py have all parameters."""
    if isinstance(error, InvariantViolationError):
        return "Invalid data found"
    first_words, parameters = _FIRST_WORDS.get(error.error_class, ""), error.message_parameters
    return first_words.format(**parameters) if all(name in parameters for name in _PARAMETER.findall(first_words)) else ""


@contextmanager
def deltalake_errors() -> Iterator[None]:
    """Errors of delta_py in the block become those of deltalake."""
    try:
        yield
    except DeltaError as error:
        deltalake_error = _deltalake_error(error)
        if deltalake_error is None:
            raise
        raise deltalake_error from error


def with_deltalake_errors(function: F) -> F:
    """A decorator: errors of delta_py that the function raises become those of deltalake."""

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        with deltalake_errors():
            return function(*args, **kwargs)

    return guarded  # type: ignore[return-value]


def raises_deltalake_errors(cls: C) -> C:
    """A class decorator: public methods and __init__ raise deltalake's errors."""
    for name, member in list(vars(cls).items()):
        if isfunction(member) and (not name.startswith("_") or name == "__init__"):
            setattr(cls, name, with_deltalake_errors(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(cls, name, type(member)(with_deltalake_errors(member.__func__)))
    return cls
