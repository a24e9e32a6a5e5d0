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

from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException, UnsupportedOperationException

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

# The conditions that delta-spark 4.4 raises as DeltaIllegalArgumentException, which pyspark shows as IllegalArgumentException.
_ILLEGAL_ARGUMENT = frozenset(
    {
        "DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
        "DELTA_CDC_START_VERSION_AFTER_LATEST",
        "DELTA_CLONE_AMBIGUOUS_TARGET",
        "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
        "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
        "DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
        "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
        "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
        "DELTA_ILLEGAL_OPTION",
        "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
        "DELTA_INVALID_CDC_RANGE",
        "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
        "DELTA_INVALID_INTERVAL",
        "DELTA_INVALID_ISOLATION_LEVEL",
        "DELTA_MODE_NOT_SUPPORTED",
        "DELTA_ONEOF_IN_TIMETRAVEL",
        "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
        "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
        "DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
        "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        "DELTA_UNSUPPORTED_DEEP_CLONE",
        "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
        "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
        "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
        "DELTA_ZORDERING_ON_PARTITION_COLUMN",
    }
)

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
    cls = _combined_class(error, type(spark_error))
    translated = cls.__new__(cls)
    translated.__dict__.update(spark_error.__dict__)
    translated.__dict__.update(error.__dict__)
    translated.args = error.args
    return translated.with_traceback(spark_error.__traceback__)


@contextmanager
def as_spark_raises() -> Iterator[None]:
    """Convert a DeltaError that is raised inside, in the user's own process: it becomes an AnalysisException too, like the errors
    of workers, and has the classes that delta-spark's error has (`_bases`). An OSError of a table's storage becomes a
    StorageError too. An error of a connection to Spark is not changed."""
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
    cls = _combined_class(error, AnalysisException)
    exception = cls.__new__(cls)
    PySparkException.__init__(exception, message=str(error))
    exception.__dict__.update(error.__dict__)
    exception.args = error.args
    return exception


_combined_classes: dict[tuple[type, ...], type[PySparkException]] = {}


def _combined_class(error: DeltaError, spark: type[PySparkException]) -> type[PySparkException]:
    """Return the class that derives from the error's class and from Spark's. The same base classes give the same class."""
    bases = _bases(error, class_shown_by_pyspark(spark))
    combined_class = _combined_classes.get(bases)
    if combined_class is None:
        combined_class = _combined_classes[bases] = _make_class(type(error), bases)
    return combined_class


def _bases(error: DeltaError, spark: type[PySparkException]) -> tuple[type, ...]:
    """Return the classes of the error and of Spark's exception, then those under which pyspark shows delta-spark's error, if
    handlers for these would not catch the exception yet."""
    shown: list[type[PySparkException]] = []
    if error.error_class in _ILLEGAL_ARGUMENT:
        shown.append(IllegalArgumentException)
    if isinstance(error, UnsupportedOperationError):
        shown.append(UnsupportedOperationException)
    more = [cls for cls in shown if not issubclass(spark, cls)]
    return (type(error), *([] if any(issubclass(cls, spark) for cls in more) else [spark]), *more)


def _make_class(delta: type[DeltaError], bases: tuple[type, ...]) -> Any:
    """Return a new class of these base classes. It overrides Spark's own methods, which would report the error condition
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
    return type(delta.__name__, bases, namespace)


# ---------------------------------------------------------------- installing


def install(*, connect: bool) -> None:
    """Make pyspark pass the exceptions of the JVM (or of the Connect server) through `translate`. Idempotent."""
    translate_exceptions(translate, connect=connect)
