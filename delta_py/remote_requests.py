"""Requests to services over the network: which errors mean that there was no answer, and how long to retry.

    until_answered("read s3://bucket/key", call, seconds=60.0)

A request that failed with NotAnswered is retried, with growing waits, until its time is over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from delta_py.backoff import Backoff
from delta_py.errors import StoreUnavailableError

T = TypeVar("T")

_log = logging.getLogger("delta_py")

RETRY_SECONDS = 60.0
_UNREACHABLE_SECONDS = 10.0  # shorter than for a server that exists: a mistyped address never answers
_BACKOFF = Backoff(first_seconds=0.1, longest_seconds=5.0)
_SHORTEST_SECRET_LENGTH = 4  # characters; a shorter text may occur anywhere by chance, and is not hidden

REFUSALS = frozenset({301, 307, 308, 400, 401, 403, 404, 405, 411, 413, 414})
"""HTTP statuses by which a server says that it has not carried out the request, and never will. After any other failure this is
unknown: a proxy may have sent the failure in place of the server's answer."""


class NotAnswered(OSError):
    """A request got no answer, or one that does not tell whether the request was carried out. The request may be repeated.

    why: the reason in the words of the SDK, without secrets. is_unreachable: there was no connection, for example to a wrong
    address. cure: what to do if it persists; None for the usual advice about a store that does not answer.
    """

    def __init__(self, why: str, *, is_unreachable: bool = False, cure: str | None = None) -> None:
        super().__init__(why)
        self.is_unreachable, self.cure = is_unreachable, cure


class BeyondTheEnd(Exception):
    """A range that begins after the object's end; a client returns no bytes for it."""


def until_answered(
    what: str,
    call: Callable[[], T],
    *,
    seconds: float,
    setting: str = "the option storage.retry_timeout",
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """The result of a request. The request is repeated until it is answered.

    what: what the request does, such as `read s3://bucket/key`, for messages. call: makes the request once. seconds: how long to
    repeat it. setting: the option that sets the seconds, for messages. Raises StoreUnavailableError when the time is over, and
    what the call raises, except NotAnswered.
    """
    started_at, attempt = clock(), 0
    while True:
        try:
            return call()
        except NotAnswered as error:
            most_seconds = min(seconds, _UNREACHABLE_SECONDS) if error.is_unreachable else seconds
            wait = _BACKOFF.wait_seconds(attempt)
            if clock() + wait - started_at > most_seconds:
                raise _unavailable_error(what, setting, error, clock() - started_at) from error
            _log.debug("%s: asked again in %.1f s: %s", what, wait, error)
        sleep(wait)
        attempt += 1


def _unavailable_error(what: str, setting: str, error: NotAnswered, seconds: float) -> StoreUnavailableError:
    """The error after the last attempt. what, setting: as for until_answered. error: of the last attempt. seconds: how long the
    request was repeated."""
    waiting = f"If the store throttles, ask less of it at once, or wait longer: {setting} has seconds."
    hint = error.cure or ("Check the endpoint and the network." if error.is_unreachable else waiting)
    reason = str(error).rstrip(".")
    return StoreUnavailableError(f"The store did not {what} in {seconds:.0f} s, asked again and again: {reason}. {hint}")


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with dots in place of the secrets."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET_LENGTH:
            text = text.replace(secret, "...")
    return text
