"""deltalake's exceptions. DeltaError, TableNotFoundError and SchemaMismatchError are those of delta_py.

    with deltalake_errors(): ...        # conflicts become CommitFailedError, broken rules and features DeltaProtocolError

The error of delta_py is the cause (`__cause__`) of the one that is raised. CommitOutcomeUnknownError stays what it is: a program
that repeats failed commits must not repeat a commit that may have succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

_APPEND_ONLY = "DELTA_CANNOT_MODIFY_APPEND_ONLY"


class CommitFailedError(DeltaError):
    """A commit was refused: another writer's commit forbids it, or the table is append-only. Nothing was committed."""

    error_class = "DELTA_CONCURRENT_WRITE"


class DeltaProtocolError(DeltaError):
    """The table needs a feature that is not supported, the log is damaged, or rows break a rule of the table."""

    error_class = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


def _translated(error: DeltaError) -> DeltaError | None:
    """The error that deltalake raises in its place; None if it is the same."""
    if isinstance(error, CommitFailedError | DeltaProtocolError):
        return None
    kind: type[DeltaError]
    if isinstance(error, DeltaConcurrentModificationException) or error.error_class == _APPEND_ONLY:
        kind = CommitFailedError
    elif isinstance(error, UnsupportedTableFeatureError | InvariantViolationError | CorruptTableError):
        kind = DeltaProtocolError
    else:
        return None
    return kind(error.message, error_class=error.error_class, sql_state=error.sql_state, **error.message_parameters)


@contextmanager
def deltalake_errors() -> Iterator[None]:
    try:
        yield
    except DeltaError as error:
        translated = _translated(error)
        if translated is None:
            raise
        raise translated from error


def with_deltalake_errors(function: F) -> F:
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
