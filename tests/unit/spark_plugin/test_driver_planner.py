"""Plannings that the JVM asks of the driver's own Python, without a JVM: who is answered, when, and with what."""

from __future__ import annotations

import gc
import os
import pickle
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_plugin.driver_planning import planner as planner_module
from spark_plugin.driver_planning.planner import Planner, Planning
from spark_plugin.jvm_calls import function_for_java

SECRET = bytes(range(32))
LATER, FAILED = 1, 2


def request(data_source: bytes = b"source", *, secret: bytes = SECRET, patience_ms: int = 5000) -> bytes:
    """As DriverPlanner.java writes it."""
    return secret + struct.pack("!Bii?i", 0, patience_ms, 10_000, True, len(data_source)) + data_source + b'{"schema": 1}'


def again(ticket: bytes, *, patience_ms: int = 5000) -> bytes:
    return SECRET + struct.pack("!Bi", 1, patience_ms) + ticket


def never(planning: Planning) -> bytes:
    raise AssertionError("nothing is to be planned")


# ---------------------------------------------------------------- who is answered


class Bomb:
    """Opened, it fails the test."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return pytest.fail, ("a pickle of somebody else's was opened",)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(request(pickle.dumps(Bomb()), secret=bytes(32)), id="another_secret"),
        pytest.param(request(pickle.dumps(Bomb()), secret=SECRET[:-1] + b"x"), id="its_last_byte"),
        pytest.param(request(pickle.dumps(Bomb()), secret=b""), id="no_secret"),
        pytest.param(SECRET[:31], id="part_of_it"),
        pytest.param(b"", id="nothing"),
        pytest.param(None, id="null"),
        pytest.param(SECRET.decode(), id="text"),
        pytest.param([SECRET], id="a_list"),
    ],
)
def test_request_without_the_secret_is_refused_before_anything_is_opened(given: Any) -> None:
    with pytest.raises(PermissionError, match="without the secret"):
        Planner(SECRET, never).apply(given)


def test_what_is_offered_to_the_jvm_leads_to_nothing_but_its_one_method() -> None:
    """Py4J calls `getattr(offered, name)(*arguments)` for whoever connects."""
    planner = Planner(SECRET, never)
    offered = function_for_java(planner.apply)
    assert offered.Java.implements == ["java.util.function.Function"]
    names = {*dir(object), *dir(planner), *vars(planner), "__dict__", "__func__", "__globals__"}
    reached = [name for name in sorted(names - {"apply"}) if hasattr(offered, name)]
    assert reached == ["__class__"]
    assert offered.__class__ is object, "of which Py4J, asked to call it, makes an object without anything"
    with pytest.raises(AttributeError):
        offered.__getattribute__("_secret")


# ---------------------------------------------------------------- what the answer is


def test_request_is_parsed_as_java_writes_it() -> None:
    asked: list[Planning] = []

    def plan(planning: Planning) -> bytes:
        asked.append(planning)
        return b"planned"

    assert Planner(SECRET, plan).apply(bytearray(request(b"\0pickled"))) == b"\0planned"
    assert asked == [Planning(b"\0pickled", '{"schema": 1}', 10_000, True)]


@pytest.mark.parametrize("error", [ValueError("no such column"), KeyboardInterrupt("now"), SystemExit(3)], ids=repr)
def test_error_of_a_planning_is_told_by_its_class_and_message(error: BaseException) -> None:
    def plan(planning: Planning) -> bytes:
        raise error

    assert Planner(SECRET, plan).apply(request()) == bytes([FAILED]) + f"{type(error).__name__}: {error}".encode()


def test_request_that_is_cut_off_is_an_error_and_no_planning() -> None:
    assert Planner(SECRET, never).apply(SECRET + b"\0")[0] == FAILED


def test_long_planning_says_later_and_is_asked_again_until_it_is_done() -> None:
    may_end = threading.Event()

    def plan(planning: Planning) -> bytes:
        assert may_end.wait(60)
        return b"planned"

    planner = Planner(SECRET, plan)
    answer = planner.apply(request(patience_ms=1))
    assert answer[0] == LATER
    assert planner.apply(again(answer[1:], patience_ms=1)) == answer
    may_end.set()
    assert planner.apply(again(answer[1:])) == b"\0planned"
    assert planner.apply(again(answer[1:]))[0] == FAILED, "a ticket is good for one answer"


def test_planning_that_times_out_by_itself_is_an_error_and_not_later() -> None:
    def plan(planning: Planning) -> bytes:
        raise TimeoutError("the store does not answer")

    assert Planner(SECRET, plan).apply(request()) == bytes([FAILED]) + b"TimeoutError: the store does not answer"


def test_large_answer_goes_through_a_file_of_this_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner_module, "MOST_BYTES", 7)
    assert Planner(SECRET, lambda _: b"planned").apply(request()) == b"\0planned"
    planner = Planner(SECRET, lambda _: b"planned!")
    answers = [planner.apply(request()) for _ in range(2)]
    assert [answer[0] for answer in answers] == [3, 3]
    first, second = (Path(os.fsdecode(answer[1:])) for answer in answers)
    assert first != second and first.read_bytes() == b"planned!"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (first, first.parent)] == [0o600, 0o700]
    first.unlink()  # as the JVM does
    del planner
    gc.collect()
    assert not second.exists()


def test_plannings_that_nobody_asks_for_again_are_forgotten() -> None:
    may_end = threading.Event()

    def plan(planning: Planning) -> bytes:
        may_end.wait(60)
        return b"planned"

    planner = Planner(SECRET, plan)
    tickets = [planner.apply(request(patience_ms=0))[1:] for _ in range(70)]
    may_end.set()
    assert planner.apply(again(tickets[-1])) == b"\0planned"
    assert planner.apply(again(tickets[0]))[0] == FAILED
