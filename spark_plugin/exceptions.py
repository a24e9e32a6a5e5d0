"""Delta's errors under the names that delta-spark's users know, and how they pass through Spark.

One of Spark's Python workers raises an error of pydelta. It reaches the user as text inside an exception of Spark.
`install` makes pyspark return an exception that is both: `except ConcurrentAppendException` (or any class of
delta_py.errors) catches it, and so does any handler that worked before (`AnalysisException`, `PySparkException`, ...).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException

from delta_py.coordinator.ledger import (
    CoordinatorContendedError,
    CoordinatorUnavailableError,
    RatificationUnknownError,
    TokenUsedError,
    TransactionEndedError,
)
from delta_py.errors import (
    ChangeDataFeedError,
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    CorruptTableError,
    DataFileError,
    DeletionVectorError,
    DeltaConcurrentModificationException,
    DeltaError,
    ExpressionError,
    InvalidOptionError,
    InvariantViolationError,
    LogFileNotFoundError,
    LogIntegrityError,
    MetadataChangedException,
    ProtocolChangedException,
    RowCountMismatchError,
    SchemaMismatchError,
    StorageError,
    StoreUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TimestampOutOfRangeError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from delta_py.storage.storage_errors import storage_error
from spark_plugin.internals.pyspark_internals import class_shown_by_pyspark, message_without_stack, translate_exceptions

__all__ = [
    "ChangeDataFeedError",
    "CommitOutcomeUnknownError",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "CoordinatorContendedError",
    "CoordinatorUnavailableError",
    "CorruptTableError",
    "DataFileError",
    "DeletionVectorError",
    "DeltaConcurrentModificationException",
    "DeltaError",
    "ExpressionError",
    "InvalidOptionError",
    "InvariantViolationError",
    "LogFileNotFoundError",
    "LogIntegrityError",
    "MetadataChangedException",
    "ProtocolChangedException",
    "RatificationUnknownError",
    "RowCountMismatchError",
    "SchemaMismatchError",
    "StorageError",
    "StoreUnavailableError",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "TimestampOutOfRangeError",
    "TokenUsedError",
    "TransactionEndedError",
    "UnsupportedOperationError",
    "UnsupportedTableFeatureError",
    "VersionNotFoundError",
    "VersionsNotContiguousError",
    "as_spark_raises",
    "delta_error_of",
    "install",
]

# The last line of a traceback, matched at the start of a line: messages break lines only before items (errors.readable).
_LAST_TRACEBACK_LINE = re.compile(
    r"^(?P<module>delta_py\.[\w.]+)\.(?P<name>\w+): \[(?P<condition>[A-Z0-9_.]+)\] (?P<message>[^\n]*(?:\n (?:- |[0-9])[^\n]*)*)"
    r"(?:\nSQLSTATE: (?P<state>[0-9A-Z]{5})$)?",
    re.MULTILINE,
)


def delta_error_of(text: str) -> DeltaError | None:
    """Return the last error of delta_py in the text of a Python traceback that Spark passes on, or None if there is none."""
    matches = list(_LAST_TRACEBACK_LINE.finditer(text))
    match = matches[-1] if matches else None
    cls = None if match is None else getattr(sys.modules.get(match["module"]), match["name"], None)
    if match is None or not (isinstance(cls, type) and issubclass(cls, DeltaError)):
        return None
    return cls(match["message"].strip(), error_class=match["condition"], sql_state=match["state"])


def translate(spark_error: PySparkException) -> PySparkException:
    """Return the exception as one that is also a DeltaError if its text contains the traceback of one; otherwise return it
    unchanged."""
    if isinstance(spark_error, DeltaError):
        return spark_error
    error = delta_error_of(message_without_stack(spark_error))
    if error is None:
        return spark_error
    cls = _combined_class(type(error), type(spark_error))
    translated = cls.__new__(cls)
    translated.__dict__.update(spark_error.__dict__)
    translated.__dict__.update(error.__dict__)
    translated.args = error.args
    return translated.with_traceback(spark_error.__traceback__)


@contextmanager
def as_spark_raises() -> Iterator[None]:
    """Convert a DeltaError that is raised inside, in the user's own process: it becomes an AnalysisException too, like the errors
    of workers, and an UnsupportedOperationError is Spark's UnsupportedOperationException as well. An OSError of a table's storage
    becomes a StorageError too. An error of a connection to Spark is not changed."""
    try:
        yield
    except DeltaError as error:
        if isinstance(error, PySparkException):
            raise
        raise _as_analysis_exception(error).with_traceback(error.__traceback__) from error.__cause__
    except ConnectionError:
        raise
    except OSError as error:
        raise _as_analysis_exception(storage_error(error)) from error


def _as_analysis_exception(error: DeltaError) -> PySparkException:
    """Return the error, with its attributes, as an exception that is an AnalysisException too."""
    cls = _combined_class(type(error), AnalysisException)
    exception = cls.__new__(cls)
    PySparkException.__init__(exception, message=str(error))
    exception.__dict__.update(error.__dict__)
    exception.args = error.args
    return exception


_combined_classes: dict[tuple[type[DeltaError], type[PySparkException]], type[PySparkException]] = {}


def _combined_class(delta: type[DeltaError], spark: type[PySparkException]) -> type[PySparkException]:
    """Return the class that derives from both classes; always the same class for a pair."""
    combined_class = _combined_classes.get((delta, spark))
    if combined_class is None:
        combined_class = _combined_classes[delta, spark] = _make_class(delta, class_shown_by_pyspark(spark))
    return combined_class


def _make_class(delta: type[DeltaError], spark: type[PySparkException]) -> Any:
    """Return a new class that derives from both. It overrides Spark's own methods, which would report the error condition
    PYTHON_DATA_SOURCE_ERROR."""

    def error_condition(self: DeltaError) -> str:
        return self.error_class

    namespace = {
        "__str__": lambda self: f"[{self.error_class}] {self.message}",
        # A pickle has the error of delta_py alone, because no module contains the class that is made here.
        "__reduce__": lambda self: (delta, (self.message,), {"error_class": self.error_class, "sql_state": self.sql_state}),
        "getCondition": error_condition,
        "getErrorClass": error_condition,
        "getSqlState": lambda self: self.sql_state,
        "getMessage": lambda self: f"[{self.error_class}] {self.message}",
        "getMessageParameters": lambda self: dict(self.message_parameters),
        "__module__": delta.__module__,
        "__doc__": delta.__doc__,
    }
    bases: tuple[type, ...] = (delta, spark)
    if issubclass(delta, UnsupportedOperationError) and not issubclass(spark, UnsupportedOperationException):
        bases = (delta, spark, UnsupportedOperationException)
    return type(delta.__name__, bases, namespace)


# ---------------------------------------------------------------- installing


def install(*, connect: bool) -> None:
    """Make pyspark pass the exceptions of the JVM (or of the Connect server) through `translate`. Idempotent."""
    translate_exceptions(translate, connect=connect)
