"""How long a store is asked again, and the final error."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from delta_py.errors import StorageError, StoreUnavailableError
from delta_py.object_stores.connection import Connection
from delta_py.remote_requests import NotAnswered
from delta_py.storage.store_options import StorageOptions


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def connection(clock: Clock, **options: str) -> Connection:
    named = StorageOptions.of({name.replace("__", "."): value for name, value in options.items()})
    return Connection(None, named, sleep=clock.sleep, clock=lambda: clock.now)  # type: ignore[arg-type]


def failing(times: int, error: Exception) -> Any:
    left = [times]

    def call() -> str:
        if left[0]:
            left[0] -= 1
            raise error
        return "done"

    return call


def test_request_that_is_not_answered_is_made_again() -> None:
    clock = Clock()
    assert connection(clock).run("read x", failing(8, NotAnswered("503 Slow Down"))) == "done"
    assert 0 < clock.now <= 60


@pytest.mark.parametrize("error", [FileNotFoundError(2, "x"), StorageError("no access"), FileExistsError(17, "x")])
def test_answer_is_not_asked_for_again(error: Exception) -> None:
    clock = Clock()
    with pytest.raises(type(error)):
        connection(clock).run("read x", failing(1, error))
    assert clock.now == 0


def test_silent_store_fails_in_time_with_its_last_message() -> None:
    clock = Clock()
    with pytest.raises(StoreUnavailableError, match=r"did not read x in \d+ s.*503 Slow Down.*storage\.retry_timeout"):
        connection(clock, storage__retry_timeout="20").run("read x", failing(10_000, NotAnswered("503 Slow Down")))
    assert 10 < clock.now <= 20


def test_address_where_nothing_is_does_not_take_a_minute() -> None:
    clock = Clock()
    with pytest.raises(StoreUnavailableError, match="Check the endpoint"):
        connection(clock).run("read x", failing(10_000, NotAnswered("refused", is_unreachable=True)))
    assert clock.now <= 10


def test_cure_of_what_lasts_is_said() -> None:
    clock = Clock()
    with pytest.raises(StoreUnavailableError, match=r"give a new one\.$"):
        connection(clock).run("read x", failing(10_000, NotAnswered("ExpiredToken", cure="The token: give a new one.")))


def test_unavailable_store_error_is_an_oserror_and_pickles() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(StoreUnavailableError("The store did not answer.")))
    assert isinstance(error, OSError) and error.error_class == "DELTA_STORAGE_UNAVAILABLE"
    assert str(error) == "[DELTA_STORAGE_UNAVAILABLE] The store did not answer."


def test_requests_at_once_are_bounded() -> None:
    bounded, now, most, lock = connection(Clock(), storage__max_requests="3"), [0], [0], threading.Lock()
    release = threading.Event()

    def call(number: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        release.wait(0.05)
        with lock:
            now[0] -= 1
        return number

    assert bounded.map(lambda number: bounded.run("x", lambda: call(number)), range(12)) == list(range(12))
    assert 1 < most[0] <= 3


def test_map_raises_the_first_error() -> None:
    with pytest.raises(StorageError, match="2"):
        connection(Clock()).map(lambda number: failing(number == 2, StorageError(str(number)))(), range(5))
