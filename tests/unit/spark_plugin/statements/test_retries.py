"""retries= of DELETE, UPDATE and MERGE: which errors make an operation run again, how often, and with which waits."""

from __future__ import annotations

from typing import Any

import pytest

from delta_py.errors import (
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    DeltaError,
    InvalidOptionError,
    MetadataChangedException,
)
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.table_api.retries import run_with_retries


class Operation:
    """Fails with these errors, one in each run, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.runs, self.waits = list(errors), 0, list[float]()

    def __call__(self) -> str:
        self.runs += 1
        if self.errors:
            with as_spark_raises():
                raise self.errors.pop(0)
        return "done"

    def run(self, retries: Any) -> str:
        return run_with_retries(self, retries, sleep=self.waits.append)


def conflict() -> DeltaError:
    return ConcurrentAppendException("theirs came first")


@pytest.mark.parametrize(("conflicts", "retries"), [(0, 0), (0, 5), (2, 2), (2, 9)])
def test_operation_that_meets_conflicts_runs_until_it_is_done(conflicts: int, retries: int) -> None:
    operation = Operation(*(conflict() for _ in range(conflicts)))
    assert operation.run(retries) == "done"
    assert (operation.runs, len(operation.waits)) == (conflicts + 1, conflicts)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_operation_that_meets_too_many_conflicts_raises_the_last(retries: int) -> None:
    operation = Operation(*(conflict() for _ in range(retries)), MetadataChangedException("last"), conflict())
    with pytest.raises(MetadataChangedException, match="last"):
        operation.run(retries)
    assert operation.runs == retries + 1


@pytest.mark.parametrize("error", [CommitOutcomeUnknownError("who knows"), DeltaError("another"), ValueError("another")])
def test_operation_that_fails_otherwise_is_not_run_again(error: Exception) -> None:
    operation = Operation(error)
    with pytest.raises(type(error)):
        operation.run(5)
    assert operation.runs == 1


@pytest.mark.parametrize("retries", [-1, True, 1.5, "2", None])
def test_invalid_retries_are_refused_before_anything_runs(retries: Any) -> None:
    operation = Operation()
    with pytest.raises(InvalidOptionError, match="retries"):
        operation.run(retries)
    assert operation.runs == 0


def test_waits_grow_and_are_bounded_and_not_the_same() -> None:
    operation = Operation(*(conflict() for _ in range(40)))
    operation.run(40)
    assert all(0 <= wait <= min(10, 0.1 * 2**attempt) for attempt, wait in enumerate(operation.waits))
    assert len(set(operation.waits)) > 30 and max(operation.waits) > 1
