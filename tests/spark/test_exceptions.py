"""Errors of workers as users catch them. No session: pyspark's exceptions are made by hand."""

from __future__ import annotations

import pickle

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions import connect

from delta_py import errors
from delta_py.errors import DeltaError
from spark_plugin import exceptions
from spark_plugin.exceptions import DeltaConcurrentModificationException, translate

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


def test_error_of_another_source_is_left_as_it_is() -> None:
    raised = connect.AnalysisException(message="[PYTHON_DATA_SOURCE_ERROR] ValueError: no")
    assert translate(raised) is raised
