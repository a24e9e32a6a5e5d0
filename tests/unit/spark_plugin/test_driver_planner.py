"""Requests that the JVM has for the driver's own Python, without a JVM: who is answered, when, and with what."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_plugin.driver_planning import planner as planner_module
from spark_plugin.driver_planning.planner import OPEN, PLAN, Planner, Planning
from spark_plugin.jvm_calls import function_for_java
from tests.support.driver_requests import HEAD_BYTES, SECRET, open_request, plan_request, planning_body, wait_request

ROOT = Path(__file__).parents[3]

DONE, LATER, FAILED, IN_FILE, NOT_BEGUN = range(5)


class Worked:
    """Work that answers `answer`, and notes what it was asked."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.bodies: list[bytes] = []

    def __call__(self, body: bytes) -> bytes:
        self.bodies.append(body)
        return self.answer


# ---------------------------------------------------------------- who is answered


class Bomb:
    """Opened, it fails the test."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return pytest.fail, ("a pickle of somebody else's was opened",)


BOMB = planning_body(pickle.dumps(Bomb()), "{}")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(plan_request(BOMB, secret=bytes(32)), id="another_secret"),
        pytest.param(plan_request(BOMB, secret=SECRET[:-1] + b"x"), id="its_last_byte"),
        pytest.param(plan_request(BOMB, secret=b""), id="no_secret"),
        pytest.param(open_request(b"{}", secret=bytes(32)), id="another_secret_of_a_table_to_open"),
        pytest.param(SECRET[:31], id="part_of_it"),
        pytest.param(b"", id="nothing"),
        pytest.param(None, id="null"),
        pytest.param(SECRET.decode(), id="text"),
        pytest.param([SECRET], id="a_list"),
    ],
)
def test_request_without_the_secret_is_refused_before_anything_is_opened(given: Any) -> None:
    work = Worked(b"planned")
    with pytest.raises(PermissionError, match="without the secret"):
        Planner(SECRET, {PLAN: work, OPEN: work}).apply(given)
    assert work.bodies == []


def test_what_is_offered_to_the_jvm_leads_to_nothing_but_its_one_method() -> None:
    """Py4J calls `getattr(offered, name)(*arguments)` for whoever connects."""
    planner = Planner(SECRET, {PLAN: Worked(b"planned")})
    offered = function_for_java(planner.apply)
    assert offered.Java.implements == ["java.util.function.Function"]
    assert offered.apply(plan_request(b"")) == b"\0planned"
    names = {*dir(object), *dir(planner), *vars(planner), "__dict__", "__func__", "__globals__"}
    reached = [name for name in sorted(names - {"apply"}) if hasattr(offered, name)]
    assert reached == ["__class__"]
    assert offered.__class__ is object, "of which Py4J, asked to call it, makes an object without anything"
    with pytest.raises(AttributeError):
        offered.__getattribute__("_secret")


# ---------------------------------------------------------------- what the answer is


def test_request_goes_by_its_kind_to_what_answers_it() -> None:
    plan, open_table = Worked(b"planned"), Worked(b"opened")
    planner = Planner(SECRET, {PLAN: plan, OPEN: open_table})
    assert planner.apply(bytearray(plan_request(b"which scan"))) == b"\0planned"
    assert planner.apply(open_request(b"which table")) == b"\0opened"
    assert (plan.bodies, open_table.bodies) == ([b"which scan"], [b"which table"])


@pytest.mark.parametrize(("binary_as_bytes", "is_stream"), [(True, False), (False, True)])
def test_planning_is_parsed_as_java_writes_it(binary_as_bytes: bool, is_stream: bool) -> None:
    body = planning_body(b"\0pickled", '{"schema": "ß"}', most_rows=7, binary_as_bytes=binary_as_bytes, is_stream=is_stream)
    assert Planning.parse(body) == Planning(b"\0pickled", '{"schema": "ß"}', 7, binary_as_bytes, is_stream)


@pytest.mark.parametrize("error", [ValueError("no such column"), KeyboardInterrupt("now"), SystemExit(3)], ids=repr)
def test_error_of_a_planning_is_told_by_its_class_and_message(error: BaseException) -> None:
    def plan(body: bytes) -> bytes:
        raise error

    expected = bytes([FAILED]) + f"{type(error).__name__}: {error}".encode()
    assert Planner(SECRET, {PLAN: plan}).apply(plan_request(b"")) == expected


@pytest.mark.parametrize("length", range(HEAD_BYTES))
def test_request_that_is_cut_off_in_its_head_is_an_error_and_no_planning(length: int) -> None:
    work = Worked(b"planned")
    planner = Planner(SECRET, {PLAN: work})
    whole = plan_request(b"")
    answer = planner.apply(whole[: len(SECRET) + length])
    assert (answer[0], work.bodies) == (NOT_BEGUN, [])
    assert answer[1:].startswith(b"error: unpack_from requires a buffer of at least 5 bytes")
    assert planner.apply(whole) == b"\0planned"


def test_request_of_no_known_kind_is_an_error() -> None:
    planner = Planner(SECRET, {PLAN: Worked(b"planned")})
    assert planner.apply(SECRET + bytes([4]) + bytes(4)) == bytes([NOT_BEGUN]) + b"KeyError: 4"
    assert planner.apply(plan_request(b"")) == b"\0planned"


def test_ticket_that_is_cut_off_is_an_error() -> None:
    answer = Planner(SECRET, {PLAN: Worked(b"planned")}).apply(wait_request(bytes(7)))
    assert answer == bytes([FAILED]) + b"error: unpack requires a buffer of 8 bytes"


# ---------------------------------------------------------------- long plannings


@pytest.mark.parametrize(("kind", "request_of"), [(PLAN, plan_request), (OPEN, open_request)], ids=["plan", "open"])
def test_long_work_says_later_and_is_asked_again_until_it_is_done(kind: int, request_of: Callable[..., bytes]) -> None:
    may_end = threading.Event()

    def work(body: bytes) -> bytes:
        assert may_end.wait(60)
        return b"did " + body

    planner = Planner(SECRET, {kind: work})
    answer = planner.apply(request_of(b"it", patience_ms=1))
    assert answer[0] == LATER
    assert planner.apply(wait_request(answer[1:], patience_ms=1)) == answer
    may_end.set()
    assert planner.apply(wait_request(answer[1:])) == b"\0did it"
    assert planner.apply(wait_request(answer[1:])) == bytes([FAILED]) + b"KeyError: 1", "a ticket is good for one answer"


def test_planning_that_times_out_by_itself_is_an_error_and_not_later() -> None:
    def plan(body: bytes) -> bytes:
        raise TimeoutError("the store does not answer")

    expected = bytes([FAILED]) + b"TimeoutError: the store does not answer"
    assert Planner(SECRET, {PLAN: plan}).apply(plan_request(b"")) == expected


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_plannings_that_nobody_asks_for_again_are_forgotten() -> None:
    may_end = threading.Event()

    def plan(body: bytes) -> bytes:
        assert may_end.wait(60)
        return b"planned"

    planner = Planner(SECRET, {PLAN: plan})
    first = [planner.apply(plan_request(b"", patience_ms=0)) for _ in range(70)]
    assert [answer[0] for answer in first] == [LATER] * 70
    may_end.set()
    later = [planner.apply(wait_request(answer[1:]))[0] for answer in first]
    assert later == [FAILED] * 6 + [DONE] * 64, "the oldest"


def test_answer_that_nobody_has_asked_for_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    def plan(body: bytes) -> bytes:
        assert body or may_end.wait(60)
        return b"planned"

    planner = Planner(SECRET, {PLAN: plan})
    slow = planner.apply(plan_request(b"", patience_ms=0))
    done = planner.apply(plan_request(b"", patience_ms=0))
    may_end.set()
    assert planner.apply(wait_request(done[1:])) == b"\0planned"
    monkeypatch.setattr(planner_module, "_MOST_SECONDS", 3600.0)
    assert planner.apply(plan_request(b"another")) == b"\0planned"
    assert len(planner._running) == 1, "it may be asked for yet"
    monkeypatch.setattr(planner_module, "_MOST_SECONDS", 0.0)
    _until(lambda: all(answer.done_at < time.monotonic() for answer in planner._running.values()))
    assert planner.apply(plan_request(b"another")) == b"\0planned"
    assert planner._running == {}
    assert planner.apply(wait_request(slow[1:])) == bytes([FAILED]) + b"KeyError: 1"


# ---------------------------------------------------------------- large answers


@pytest.fixture
def small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of more than 7 bytes are large."""
    monkeypatch.setattr(planner_module, "MOST_BYTES", 7)


def file_of(answer: bytes) -> Path:
    assert answer[0] == IN_FILE
    return Path(os.fsdecode(answer[1:]))


@pytest.mark.usefixtures("small_answers")
def test_large_answer_goes_through_a_file_of_this_user_alone() -> None:
    assert Planner(SECRET, {PLAN: Worked(b"planned")}).apply(plan_request(b"")) == b"\0planned"
    planner = Planner(SECRET, {PLAN: Worked(b"planned!")})
    first, second = (file_of(planner.apply(plan_request(b""))) for _ in range(2))
    assert first != second and first.read_bytes() == b"planned!"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (first, first.parent)] == [0o600, 0o700]
    first.unlink()  # as the JVM does
    directory = first.parent
    del planner
    gc.collect()
    assert not second.exists() and not directory.exists()


# A child of fork, such as a user's own pool has, ends as Python ends, and lets go of all it was given.
FORKING = """
import os, sys
from spark_plugin.driver_planning import planner as planner_module
from spark_plugin.driver_planning.planner import PLAN, Planner
from tests.support.driver_requests import SECRET, plan_request
planner_module.MOST_BYTES = 7
planner = Planner(SECRET, {PLAN: lambda body: b"planned!"})
def path():
    answer = planner.apply(plan_request(b""))
    assert answer[0] == 3, answer
    return os.fsdecode(answer[1:])
first = path()
if os.fork() == 0:
    del planner
    sys.exit(0)
assert os.wait()[1] == 0
for name in (first, path()):
    assert open(name, "rb").read() == b"planned!"
print(os.path.dirname(first))
"""


def test_child_of_a_fork_leaves_files_to_the_process_that_made_them(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", FORKING]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()).parent == tmp_path
    assert [*tmp_path.iterdir()] == [], "which removes them when it ends"


@pytest.mark.usefixtures("small_answers")
def test_large_answers_go_on_where_somebody_has_cleaned_up() -> None:
    planner = Planner(SECRET, {PLAN: Worked(b"planned!")})
    first = file_of(planner.apply(plan_request(b"")))
    shutil.rmtree(first.parent)
    second = file_of(planner.apply(plan_request(b"")))
    assert second.read_bytes() == b"planned!"
    assert stat.S_IMODE(second.parent.stat().st_mode) == 0o700
    directory = second.parent
    del planner
    gc.collect()
    assert not directory.exists()


@pytest.mark.usefixtures("small_answers")
def test_directory_that_somebody_else_has_put_in_the_place_of_one_that_is_gone_is_not_used(tmp_path: Path) -> None:
    planner = Planner(SECRET, {PLAN: Worked(b"planned!")})
    first = file_of(planner.apply(plan_request(b"")))
    shutil.rmtree(first.parent)
    first.parent.symlink_to(tmp_path)
    try:
        second = file_of(planner.apply(plan_request(b"")))
        assert second.read_bytes() == b"planned!"
        assert second.parent != first.parent and [*tmp_path.iterdir()] == []
    finally:
        first.parent.unlink()


# ---------------------------------------------------------------- work that is not begun


def test_work_that_gets_no_thread_was_not_begun_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    work = Worked(b"planned")
    planner = Planner(SECRET, {PLAN: work})
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", failing)
        assert planner.apply(plan_request(b"")) == bytes([NOT_BEGUN]) + b"RuntimeError: can't start new thread"
    assert (work.bodies, planner._running) == ([], {})
    assert planner.apply(plan_request(b"")) == b"\0planned"


def test_nothing_is_begun_once_the_main_thread_has_ended() -> None:
    """From then on Python starts no threads of pools, which commits and stores of objects have."""
    code = """
import threading, time
from tests.support.driver_requests import SECRET, plan_request
from spark_plugin.driver_planning.planner import PLAN, Planner

planner = Planner(SECRET, {PLAN: lambda body: b"planned"})
main = threading.main_thread()

def ask():
    print(planner.apply(plan_request(b"")), flush=True)
    main.join()
    print(planner.apply(plan_request(b"")), flush=True)

threading.Thread(target=ask).start()
time.sleep(0.5)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout.splitlines()
    assert found[0] == repr(b"\0planned")
    assert found[1].startswith(repr(b"\4RuntimeError: this program has ended but for some threads")[:-1])
