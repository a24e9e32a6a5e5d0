"""Errors of workers as users catch them. No session: pyspark's exceptions are made by hand."""

from __future__ import annotations

import pickle

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions import connect

from delta_py import errors
from delta_py.errors import DeltaError
from spark_plugin import exceptions
from spark_plugin.exceptions import DeltaConcurrentModificationException, as_spark_raises, translate

CONFLICTS = sorted(
    name for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, DeltaConcurrentModificationException)
)


def as_worker_text(error: DeltaError) -> str:
    return (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to commit the write: Traceback (most recent call last):\n"
        '  File "/x/worker.py", line 1, in main\n    raise error\n'
        f"delta_py.errors.{type(error).__name__}: {error}\n SQLSTATE: 38000\n\nJVM stacktrace:\n\tat org.Some.thing(A.scala:1)"
    )


@pytest.mark.parametrize("name", CONFLICTS)
@pytest.mark.parametrize("spark_class", [PySparkException, connect.AnalysisException, connect.SparkException])
def test_conflict_of_a_worker_is_caught_as_what_it_is_and_as_spark_s_own(name: str, spark_class: type[PySparkException]) -> None:
    original = getattr(errors, name)("Version 7 (WRITE) added files.\n\nRetry.")
    raised = spark_class(message=as_worker_text(original))
    made = translate(raised)
    assert isinstance(made, getattr(exceptions, name)) and isinstance(made, spark_class)
    assert isinstance(made, DeltaConcurrentModificationException)
    assert str(made) == str(original) and made.getCondition() == original.error_class
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(original) and str(again) == str(original)


def test_error_of_the_user_s_own_process_is_caught_as_spark_s_too() -> None:
    original = errors.TableAlreadyExistsError("t is there.", error_class="DELTA_TABLE_ALREADY_EXISTS", table="t")
    with pytest.raises(AnalysisException) as caught, as_spark_raises():
        raise original
    made = caught.value
    assert isinstance(made, errors.TableAlreadyExistsError)
    assert (made.getCondition(), str(made), made.message_parameters) == (
        "DELTA_TABLE_ALREADY_EXISTS",
        str(original),
        original.message_parameters,
    )
    assert made.getQueryContext() == [] and type(pickle.loads(pickle.dumps(made))) is errors.TableAlreadyExistsError
    with pytest.raises(AnalysisException) as again, as_spark_raises():
        raise made
    assert again.value is made


def test_error_of_another_source_is_left_as_it_is() -> None:
    raised = connect.AnalysisException(message="[PYTHON_DATA_SOURCE_ERROR] ValueError: no")
    assert translate(raised) is raised
