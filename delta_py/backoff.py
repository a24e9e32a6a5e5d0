"""Backoff: how long to wait before an attempt is repeated.

    backoff = Backoff(first_seconds=0.1, longest_seconds=5.0)
    sleep(backoff.wait_seconds(attempt))        # attempt: 0 after the first failure

The waits double from attempt to attempt, up to a limit. Each is shortened at random, so that writers that failed at the same time
do not try again at the same time. The caller decides what to repeat, how often, and when to give up. A loop that only looks at
fixed intervals whether something has ended does not need this.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

_MOST_DOUBLINGS = 16  # so that 2 ** attempt stays small, however many attempts there are


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after each failed attempt. first_seconds: the longest wait after attempt 0. longest_seconds: the longest
    wait after any attempt."""

    first_seconds: float
    longest_seconds: float

    def wait_seconds(self, attempt: int) -> float:
        return random.uniform(0, min(self.longest_seconds, self.first_seconds * 2 ** min(attempt, _MOST_DOUBLINGS)))
