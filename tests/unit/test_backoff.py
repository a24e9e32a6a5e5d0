"""Waits between attempts: how long they may be, and that no two writers wait alike."""

from __future__ import annotations

import pytest

from delta_py.backoff import Backoff

BACKOFF = Backoff(first_seconds=0.1, longest_seconds=5.0)


@pytest.mark.parametrize(("attempt", "longest"), [(0, 0.1), (1, 0.2), (5, 3.2), (6, 5.0), (100_000, 5.0)])
def test_wait_is_at_most_twice_that_of_the_attempt_before(attempt: int, longest: float) -> None:
    waits = [BACKOFF.wait_seconds(attempt) for _ in range(200)]
    assert min(waits) >= 0 and longest / 2 < max(waits) <= longest


def test_waits_after_the_same_attempt_differ() -> None:
    assert len({BACKOFF.wait_seconds(3) for _ in range(20)}) > 10


def test_backoff_of_zero_seconds_does_not_wait() -> None:
    assert Backoff(0, 0).wait_seconds(7) == 0
