"""Errors for users: one class per family, one condition name per cause.

The condition names (`error_class`) and SQLSTATEs are the ones that delta-spark's users know. A message says what
happened with names and values, why, and what to do. It begins with the condition in brackets, so that the condition is not lost
when Spark passes the message on as text. Facts are attributes too (`message_parameters`), and every error survives pickling.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from delta_py.visible_text import visible

LOGGERS = ("delta_py", "pydelta", "pydelta.pruning")
"""All loggers of delta_py and spark_plugin."""

_NO_ITEM = re.compile(r"\n(?! (?:- |[0-9]))")  # a line break without a list item after it
# The user and password in a URL, and the query of a URL, in which signed URLs carry their keys. The schemes of Azure are left
# out, because their URLs have the container before the @.
_USER = re.compile(r"(?<!abfs)(?<!abfss)(?<!wasb)(?<!wasbs)://[^/@\s]+@")
_QUERY = re.compile(r"(?<!file)(://[^\s?'\"]*\?)[^\s'\"]+")
# The condition in brackets of another error that a message quotes. It is removed: this error has a condition of its own.
_CONDITION = re.compile(r"(?<!\w)\[[A-Z][A-Z0-9]*(?:[._][A-Z0-9]+)+\] ")
_LONGEST_MESSAGE = 8_000
_CUT_NOTE_LENGTH = 60  # an upper bound for the length of the note that replaces the middle of a message
_LONGEST_VALUE = 200


class DeltaError(Exception):
    """Base of every error that is meant for the user of a table.

    error_class: the condition, such as `DELTA_VERSION_NOT_FOUND`.
    sql_state: its SQLSTATE, five characters.
    message_parameters: the values named in the message.
    """

    error_class: str = "DELTA_ERROR"
    sql_state: str = "XXKDS"

    def __init_subclass__(cls, *, error_class: str | None = None, sql_state: str | None = None, **class_arguments: Any) -> None:
        """A subclass gives its condition and SQLSTATE in its first line, unless it has those of its base class."""
        super().__init_subclass__(**class_arguments)
        if error_class is not None:
            cls.error_class = error_class
        if sql_state is not None:
            cls.sql_state = sql_state

    def __init__(self, message: str, *, error_class: str | None = None, sql_state: str | None = None, **parameters: Any) -> None:
        if error_class is not None:
            self.error_class = error_class
        if sql_state is not None:
            self.sql_state = sql_state
        self.message = readable(message)
        self.message_parameters = parameters
        super().__init__(f"[{self.error_class}] {self.message}")
        if self.sql_state != type(self).sql_state:
            self.add_note(f"SQLSTATE: {self.sql_state}")  # for code that shows only the text of a traceback

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (type(self), self.message, self.error_class, self.sql_state, self.message_parameters)


def readable(message: str) -> str:
    """A message that quotes names and values of a table, which anybody may have made. The result is one line, except that each
    item of a list (`- ...`) has its own line. It has no invisible characters or terminal control characters (visible_text.py),
    and at most 8,000 characters. So no table can write false text into a terminal or a log, or make one error look like another.
    URLs in the message lose user, password and query, and errors that it quotes lose their conditions."""
    message = _CONDITION.sub("", message)
    message = _QUERY.sub(r"\1...", _USER.sub("://...@", _without_middle(message)))
    return _without_middle(visible(_NO_ITEM.sub(r"\\n", message), line_breaks=True))


def _without_middle(message: str) -> str:
    """A long message without its middle."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half = (_LONGEST_MESSAGE - _CUT_NOTE_LENGTH) // 2
    return f"{message[:half]} ... ({len(message) - 2 * half} characters more) ... {message[-half:]}"


def shown(value: Any) -> str:
    """The beginning of the text of a value from a table, for a message."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} that is nested very deep"
    return visible(text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}...")


def rebuilt(cls: type[DeltaError], message: str, error_class: str, sql_state: str, parameters: dict[str, Any]) -> DeltaError:
    """An error rebuilt from its parts, after it came from another process. Pickles of errors name this function."""
    return cls(message, error_class=error_class, sql_state=sql_state, **parameters)


def _with_readable_message(record: logging.LogRecord) -> bool:
    """A filter for loggers that accepts every record, and makes its message readable: log messages quote names of tables too."""
    try:
        text = record.getMessage()
    except (TypeError, ValueError):  # its values do not fit the format; logging reports that itself
        return True
    safe = readable(text)
    if safe != text:
        record.msg, record.args = safe, ()  # the arguments are in the message already
    return True


for _name in LOGGERS:
    logging.getLogger(_name).addFilter(_with_readable_message)


# ---------------------------------------------------------------- finding tables and versions


class TableNotFoundError(DeltaError, error_class="DELTA_MISSING_DELTA_TABLE", sql_state="42P01"):
    """The path is missing (DELTA_PATH_DOES_NOT_EXIST) or holds no table (DELTA_MISSING_DELTA_TABLE)."""


class TableAlreadyExistsError(DeltaError, error_class="DELTA_PATH_EXISTS", sql_state="42K04"):
    """A create found a table, or data, at the path (DELTA_PATH_EXISTS, TABLE_OR_VIEW_ALREADY_EXISTS)."""


class VersionNotFoundError(DeltaError, error_class="DELTA_VERSION_NOT_FOUND", sql_state="22003"):
    """A version outside of what the log can rebuild."""


class TimestampOutOfRangeError(DeltaError, error_class="DELTA_TIMESTAMP_GREATER_THAN_COMMIT", sql_state="42816"):
    """A time after the last commit (DELTA_TIMESTAMP_GREATER_THAN_COMMIT) or before the first that can be rebuilt
    (DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION)."""


class InvalidOptionError(DeltaError, ValueError, error_class="DELTA_ILLEGAL_OPTION", sql_state="42616"):
    """An option that is unknown, cannot be parsed, or contradicts another (DELTA_ILLEGAL_OPTION,
    DELTA_ONEOF_IN_TIMETRAVEL, DELTA_UNKNOWN_OPTION)."""


# ---------------------------------------------------------------- the table's state


class CorruptTableError(DeltaError, error_class="DELTA_STATE_RECOVER_ERROR"):
    """The log or a file that it names contradicts the protocol; pydelta does not guess."""


class LogFileNotFoundError(CorruptTableError, error_class="DELTA_LOG_FILE_NOT_FOUND", sql_state="42K03"):
    """A commit or checkpoint part that the version needs does not exist (DELTA_LOG_FILE_NOT_FOUND,
    DELTA_TRUNCATED_TRANSACTION_LOG, DELTA_MISSING_PART_FILES)."""


class VersionsNotContiguousError(CorruptTableError, error_class="DELTA_VERSIONS_NOT_CONTIGUOUS", sql_state="KD00C"):
    """The commits have a gap."""


class LogIntegrityError(CorruptTableError, error_class="DELTA_TXN_LOG_FAILED_INTEGRITY"):
    """The state rebuilt from the log disagrees with the version checksum."""


class DeletionVectorError(CorruptTableError, error_class="DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"):
    """A deletion vector's bytes fail their checksum, size or cardinality (DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH,
    DELTA_DELETION_VECTOR_SIZE_MISMATCH, DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH,
    DELTA_DELETION_VECTOR_INVALID_ROW_INDEX)."""


class RowCountMismatchError(DeltaError, error_class="DELTA_NUM_RECORDS_MISMATCH"):
    """The rows that an operation read, kept, deleted and wrote do not add up; it is not committed."""


class DataFileError(DeltaError, error_class="DELTA_FILE_NOT_FOUND_DETAILED", sql_state="42K03"):
    """A data file is missing or cannot be decoded."""


class StorageError(DeltaError, error_class="DELTA_STORAGE_ERROR", sql_state="58030"):
    """The object store failed, and retries did not help."""


class StoreUnavailableError(DeltaError, OSError, error_class="DELTA_STORAGE_UNAVAILABLE", sql_state="58030"):
    """The object store did not answer, in spite of retries. It is not known whether a write was done."""


# ---------------------------------------------------------------- protocol and schema


class UnsupportedTableFeatureError(DeltaError, error_class="DELTA_UNSUPPORTED_FEATURES_FOR_READ", sql_state="56038"):
    """The protocol requires something that this version of pydelta does not support (DELTA_UNSUPPORTED_FEATURES_FOR_READ,
    DELTA_UNSUPPORTED_FEATURES_FOR_WRITE, DELTA_INVALID_PROTOCOL_VERSION)."""


class SchemaMismatchError(DeltaError, error_class="DELTA_METADATA_MISMATCH", sql_state="42KDG"):
    """The data or a request does not fit the table's schema (DELTA_METADATA_MISMATCH, DELTA_COLUMN_NOT_FOUND_IN_SCHEMA,
    DELTA_DUPLICATE_COLUMNS_FOUND, ...)."""


class InvariantViolationError(DeltaError, error_class="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", sql_state="23001"):
    """A row about to be written breaks NOT NULL, a CHECK constraint, a generated column or a length limit."""


class UnsupportedOperationError(DeltaError, error_class="DELTA_OPERATION_NOT_SUPPORTED", sql_state="0AKDC"):
    """The requested operation is not supported; nothing was done."""


class ExpressionError(DeltaError, error_class="DELTA_UNSUPPORTED_EXPRESSION", sql_state="0A000"):
    """An expression cannot be parsed, or uses a function that cannot be evaluated exactly as Spark does."""


class ChangeDataFeedError(DeltaError, error_class="DELTA_MISSING_CHANGE_DATA", sql_state="KD002"):
    """A change feed that cannot be served (DELTA_MISSING_CHANGE_DATA, DELTA_NO_START_FOR_CDC_READ,
    DELTA_INVALID_CDC_RANGE, DELTA_CDC_START_VERSION_AFTER_LATEST, DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE)."""


# ---------------------------------------------------------------- commits


class DeltaConcurrentModificationException(DeltaError, error_class="DELTA_CONCURRENT_WRITE", sql_state="2D521"):
    """Base of all conflicts with another writer: this operation committed nothing; run it again."""


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """Another writer took the version, and no rule allows this commit to follow it."""


class MetadataChangedException(DeltaConcurrentModificationException, error_class="DELTA_METADATA_CHANGED"):
    """Another writer changed the table's metadata."""


class ProtocolChangedException(DeltaConcurrentModificationException, error_class="DELTA_PROTOCOL_CHANGED"):
    """Another writer changed the protocol, or created the table."""


class ConcurrentAppendException(DeltaConcurrentModificationException, error_class="DELTA_CONCURRENT_APPEND"):
    """Another writer added files that this operation would have read."""


class ConcurrentDeleteReadException(DeltaConcurrentModificationException, error_class="DELTA_CONCURRENT_DELETE_READ"):
    """Another writer removed a file that this operation read."""


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException, error_class="DELTA_CONCURRENT_DELETE_DELETE"):
    """Another writer removed a file that this operation removes too."""


class ConcurrentTransactionException(DeltaConcurrentModificationException, error_class="DELTA_CONCURRENT_TRANSACTION"):
    """Another writer recorded a transaction id that this operation read."""


class CommitOutcomeUnknownError(DeltaError, error_class="DELTA_COMMIT_OUTCOME_UNKNOWN", sql_state="08007"):
    """The store neither confirmed nor refused the commit; the written files are kept. Look at the history."""
