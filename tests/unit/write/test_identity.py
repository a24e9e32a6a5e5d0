"""Numbers of identity columns: of many tasks, never the same twice."""

from __future__ import annotations

import pytest

from delta_py.errors import InvariantViolationError, UnsupportedOperationError
from delta_py.protocol.identity_columns import Identity
from delta_py.row_rules.identity_numbers import IdentityValues

COLUMN = Identity("id", 1, 1, None, False)


def taken(values: IdentityValues, *counts: int) -> list[int]:
    return [number for count in counts for number in values.take("id", count).to_pylist()]


def test_one_task_gives_numbers_without_gaps() -> None:
    values = IdentityValues([COLUMN], 0, 1)
    assert taken(values, 3, 0, 2) == [1, 2, 3, 4, 5]
    assert values.marks == (("id", 5),)


def test_known_tasks_take_turns() -> None:
    column = Identity("id", 10, -5, None, False)
    assert taken(IdentityValues([column], 1, 3), 2, 2) == [5, -10, -25, -40]
    with pytest.raises(UnsupportedOperationError, match="was to have 3 tasks"):
        IdentityValues([column], 3, 3)


def test_unknown_number_of_tasks_begins_with_small_numbers() -> None:
    assert taken(IdentityValues([COLUMN], 0, None), 4, 3) == [1, 3, 4, 8, 9, 10, 11]
    assert taken(IdentityValues([COLUMN], 1, None), 3) == [2, 6, 7]


@pytest.mark.parametrize("tasks", [None, 40])
def test_tasks_never_share_a_number_and_keep_to_the_sequence(tasks: int | None) -> None:
    column = Identity("id", 7, 3, 100, False)
    seen: set[int] = set()
    total = 0
    for task in range(40):
        values = IdentityValues([column], task, tasks)
        numbers = taken(values, *([1] * (task % 5)), 5000, 200_000 if task < 3 else 10)
        assert numbers == sorted(numbers) and values.marks == (("id", numbers[-1]),)
        total += len(numbers)
        seen.update(numbers)
    assert len(seen) == total
    assert min(seen) == 103 and all((number - 7) % 3 == 0 for number in seen)


def test_task_with_a_high_number_starts_at_once() -> None:
    assert taken(IdentityValues([COLUMN], 20_000, None), 1)[0] < 2**50


def test_numbers_end_with_64_bits_and_not_before() -> None:
    values = IdentityValues([Identity("id", 2**63 - 3, 1, None, False)], 0, 1)
    assert taken(values, 3) == [2**63 - 3, 2**63 - 2, 2**63 - 1]
    with pytest.raises(InvariantViolationError):
        values.take("id", 1)
