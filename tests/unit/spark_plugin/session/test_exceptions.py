"""Errors of workers as users catch them. There is no session: pyspark's exceptions are made by hand."""

from __future__ import annotations

import errno
import os
import pickle
import time
import traceback

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException, UnsupportedOperationException
from pyspark.errors.exceptions import connect

from delta_py import errors
from delta_py.coordinator import ledger
from delta_py.errors import DeltaError
from spark_plugin import exceptions
from spark_plugin.exceptions import DeltaConcurrentModificationException, as_spark_raises, translate

CONFLICTS = sorted(
    name for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, DeltaConcurrentModificationException)
)


OF_LEDGERS = sorted(
    name
    for name, cls in vars(ledger).items()
    if isinstance(cls, type) and issubclass(cls, DeltaError) and cls.__module__ == ledger.__name__
)


def as_worker_text(error: DeltaError) -> str:
    raised = "".join(traceback.format_exception_only(error))
    return (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to commit the write: Traceback (most recent call last):\n"
        '  File "/x/worker.py", line 1, in main\n    raise error\n'
        f"{raised} SQLSTATE: 38000\n\nJVM stacktrace:\n\tat org.Some.thing(A.scala:1)"
    )


@pytest.mark.parametrize("name", CONFLICTS)
@pytest.mark.parametrize("spark_class", [PySparkException, connect.AnalysisException, connect.SparkException])
def test_worker_conflict_is_a_delta_and_a_spark_exception(name: str, spark_class: type[PySparkException]) -> None:
    original = getattr(errors, name)("Version 7 (WRITE) added files. Retry.")
    raised = spark_class(message=as_worker_text(original))
    translated = translate(raised)
    assert isinstance(translated, getattr(exceptions, name)) and isinstance(translated, spark_class)
    assert isinstance(translated, DeltaConcurrentModificationException)
    assert str(translated) == str(original) and translated.getCondition() == original.error_class
    copy = pickle.loads(pickle.dumps(translated))
    assert type(copy) is type(original) and str(copy) == str(original)


@pytest.mark.parametrize("name", OF_LEDGERS)
def test_error_of_a_ledger_in_a_worker_is_caught_as_what_it_is(name: str) -> None:
    original = getattr(ledger, name)("The coordinator gave no answer.")
    translated = translate(AnalysisException(message=as_worker_text(original)))
    assert isinstance(translated, type(original)) and isinstance(translated, AnalysisException)
    assert (
        str(translated) == str(original)
        and translated.getCondition() == original.error_class
        and translated.getSqlState() == original.sql_state
    )
    copy = pickle.loads(pickle.dumps(translated))
    assert type(copy) is type(original) and str(copy) == str(original)


def test_sql_state_of_a_worker_s_error_arrives() -> None:
    original = errors.InvalidOptionError("There is no such column.", error_class="DELTA_X", sql_state="42703")
    translated = translate(PySparkException(message=as_worker_text(original)))
    assert isinstance(translated, errors.InvalidOptionError) and str(translated) == str(original)
    assert (translated.getCondition(), translated.getSqlState()) == ("DELTA_X", "42703")
    assert pickle.loads(pickle.dumps(translated)).sql_state == "42703"
    plain = translate(PySparkException(message=as_worker_text(errors.InvalidOptionError("No."))))
    assert plain.getSqlState() == errors.InvalidOptionError.sql_state


def test_error_in_the_client_process_is_also_a_spark_error() -> None:
    original = errors.TableAlreadyExistsError("t is there.", error_class="DELTA_TABLE_ALREADY_EXISTS", table="t")
    with pytest.raises(AnalysisException) as caught, as_spark_raises():
        raise original
    raised_error = caught.value
    assert isinstance(raised_error, errors.TableAlreadyExistsError)
    assert (raised_error.getCondition(), str(raised_error), raised_error.message_parameters) == (
        "DELTA_TABLE_ALREADY_EXISTS",
        str(original),
        original.message_parameters,
    )
    assert (
        raised_error.getQueryContext() == [] and type(pickle.loads(pickle.dumps(raised_error))) is errors.TableAlreadyExistsError
    )
    with pytest.raises(AnalysisException) as raised_again, as_spark_raises():
        raise raised_error
    assert raised_again.value is raised_error


def test_unsupported_operation_is_spark_s_class_of_that_name_too() -> None:
    original = errors.UnsupportedOperationError("No.")
    with pytest.raises(UnsupportedOperationException) as caught, as_spark_raises():
        raise original
    assert isinstance(caught.value, AnalysisException)
    for spark_class in (connect.AnalysisException, connect.UnsupportedOperationException):
        translated = translate(spark_class(message=as_worker_text(original)))
        assert isinstance(translated, UnsupportedOperationException) and isinstance(translated, spark_class)


def test_illegal_argument_is_spark_s_class_of_that_name_too() -> None:
    original = errors.InvalidOptionError("12 hours.", error_class="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT")
    with pytest.raises(IllegalArgumentException, match="12 hours") as caught, as_spark_raises():
        raise original
    assert isinstance(caught.value, AnalysisException)
    for spark_class in (connect.AnalysisException, connect.IllegalArgumentException):
        translated = translate(spark_class(message=as_worker_text(original)))
        assert isinstance(translated, IllegalArgumentException) and isinstance(translated, spark_class)
    other = errors.InvalidOptionError("No.", error_class="DELTA_UNKNOWN_CONFIGURATION")  # delta-spark has AnalysisException
    assert not isinstance(translate(PySparkException(message=as_worker_text(other))), IllegalArgumentException)


def test_error_of_another_source_is_left_as_it_is() -> None:
    raised = connect.AnalysisException(message="[PYTHON_DATA_SOURCE_ERROR] ValueError: no")
    assert translate(raised) is raised


def test_message_that_quotes_another_error_is_not_taken_for_it() -> None:
    name = "x\n\ndelta_py.errors.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] try again"
    translated = translate(PySparkException(message=as_worker_text(errors.DataFileError(f"Data file {name} is missing."))))
    assert isinstance(translated, errors.DataFileError) and not isinstance(translated, errors.ConcurrentAppendException)
    assert translated.getCondition() == errors.DataFileError.error_class


def test_items_of_a_message_arrive_line_by_line() -> None:
    original = errors.InvariantViolationError(
        "violated by row with values:\n - a : 1\n - b : 2\n 1 of 2 rows of a batch. Mend it."
    )
    assert str(translate(PySparkException(message=as_worker_text(original)))) == str(original)


def test_message_of_very_many_line_breaks_is_read_in_no_time() -> None:
    text = as_worker_text(errors.DataFileError("x")).replace(": [DELTA", ": [DELTA", 1) + "\n" * 200_000 + " " * 200_000
    started = time.thread_time()
    assert isinstance(translate(PySparkException(message=text)), errors.DataFileError)
    assert time.thread_time() - started < 2


def test_storage_that_fails_leaves_as_an_error_of_ours_and_spark() -> None:
    with pytest.raises(errors.StorageError, match=r"No space left on device \(/t/f\)") as raised, as_spark_raises():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/t/f")
    assert isinstance(raised.value, AnalysisException) and isinstance(raised.value.__cause__, OSError)
    with pytest.raises(ConnectionRefusedError), as_spark_raises():
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Spark is gone")
