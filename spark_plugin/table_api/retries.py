"""Running a whole operation again when another writer's commit conflicted with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

from delta_py.backoff import Backoff
from delta_py.errors import DeltaConcurrentModificationException, InvalidOptionError

_log = logging.getLogger("delta_py")
T = TypeVar("T")

_BACKOFF = Backoff(first_seconds=0.1, longest_seconds=10.0)


def run_with_retries(operation: Callable[[], T], retries: Any, *, sleep: Callable[[float], None] = time.sleep) -> T:
    """Return the result of the operation. On a DeltaConcurrentModificationException it runs again, up to `retries` more times.

    operation: starts from the newest version of the table each time, and leaves nothing when it fails. Other errors are not
    caught: after CommitOutcomeUnknownError a second run might do the work twice.
    The waits between runs are those of Backoff, so that writers that conflicted once do not conflict again. sleep: waits this
    many seconds; tests replace it.
    Raises InvalidOptionError, before the first run, if retries is not a number of at least 0.
    """
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise InvalidOptionError(
            f"retries is {retries!r}; it says how often the operation may run again, a whole number from 0 on. Nothing was done.",
            option="retries",
        )
    for attempt in range(retries):
        try:
            return operation()
        except DeltaConcurrentModificationException as error:
            wait_seconds = _BACKOFF.wait_seconds(attempt)
            _log.info("run again in %.2f s, %d of %d: %s", wait_seconds, attempt + 1, retries, error)
            sleep(wait_seconds)
    return operation()  # the last run: its conflict is the caller's error
