"""The server of the driver's channel, without a JVM: who gets answers, which ones, and attacks by others."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_plugin.driver_channel import channel as channel_module
from spark_plugin.driver_channel import server as server_module
from spark_plugin.driver_channel.frames import MAX_REQUEST_BYTES, PROOF_BYTES, ChannelError, Status, proof, read_exactly
from spark_plugin.driver_channel.server import HOLD, ChannelServer
from tests.support.spark.channel_client import SECRET, answer, ask, client, connected, prove, received, request_frame

ROOT = Path(__file__).parents[4]
PLAN, OTHER = 1, 2


class Recorded:
    """Returns `answer`, and records each body."""

    def __init__(self, answer: bytes = b"planned") -> None:
        self.answer = answer
        self.bodies: list[bytes] = []

    def __call__(self, body: bytes) -> bytes:
        self.bodies.append(body)
        return self.answer


@contextlib.contextmanager
def running(**handlers: Callable[[bytes], bytes]) -> Iterator[ChannelServer]:
    server = ChannelServer(SECRET)
    server.handle({PLAN: handlers.get("plan", Recorded()), **({OTHER: handlers["other"]} if "other" in handlers else {})})
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(params=["path", "port"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """port: there are no Unix domain sockets."""
    if request.param == "port":

        def missing(server: ChannelServer) -> socket.socket:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

        monkeypatch.setattr(ChannelServer, "_listen_on_path", missing)
    return str(request.param)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_answered(server: ChannelServer) -> bool:
    try:
        return ask(server, PLAN) == (Status.DONE, b"planned")
    except (EOFError, OSError):  # others still use up the connections
        return False


def is_ended(connection: socket.socket) -> bool:
    """Whether the server ends the connection without another byte."""
    with pytest.raises(EOFError) as ended:
        received(connection, 1)
    return bool(ended.value.args == (b"",))


# ---------------------------------------------------------------- answers


def test_request_gets_the_answer_of_its_kind(transport: str) -> None:
    plan, other = Recorded(), Recorded(b"")
    with running(plan=plan, other=other) as server:
        assert (server.path is None, server.port is None) == (transport == "port", transport == "path")
        assert ask(server, PLAN, b"which scan") == (Status.DONE, b"planned")
        assert ask(server, OTHER, b"which table") == (Status.DONE, b"")
    assert (plan.bodies, other.bodies) == ([b"which scan"], [b"which table"])


def test_connection_serves_one_request_after_another() -> None:
    with running(plan=lambda body: body * 2) as server, client(server) as connection:
        for size in (0, 1, 65_535, 65_536, 3_000_000, 5):
            connection.sendall(request_frame(PLAN, b"x" * size))
            assert answer(connection) == (Status.DONE, b"x" * 2 * size)


@pytest.mark.parametrize("error", [ValueError("no such column"), KeyboardInterrupt("now"), SystemExit(3)], ids=repr)
def test_error_is_answered_by_its_class_and_message(error: BaseException) -> None:
    def plan(body: bytes) -> bytes:
        raise error

    with running(plan=plan) as server:
        assert ask(server, PLAN) == (Status.FAILED, f"{type(error).__name__}: {error}".encode())


def test_unknown_kind_is_not_begun() -> None:
    with running() as server:
        assert ask(server, 99) == (Status.NOT_BEGUN, b"nothing answers requests of the kind 99")
        assert ask(server, PLAN) == (Status.DONE, b"planned")


def test_answer_that_no_frame_can_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_ANSWER_BYTES", 7)
    with running(plan=lambda body: body) as server:
        assert ask(server, PLAN, b"123456") == (Status.DONE, b"123456")
        status, why = ask(server, PLAN, b"1234567")
    assert (status, why[:24]) == (Status.FAILED, b"the answer has 7 bytes, ")


def test_long_work_sends_signs_of_life() -> None:
    may_end = threading.Event()

    def plan(body: bytes) -> bytes:
        assert may_end.wait(60)
        return b"planned"

    with running(plan=plan) as server, client(server) as first, client(server) as second:
        first.sendall(request_frame(PLAN, patience_ms=20))
        second.sendall(request_frame(PLAN, patience_ms=60_000))
        assert [answer(first) for _ in range(3)] == [(Status.WORKING, b"")] * 3
        may_end.set()
        assert answer(second) == (Status.DONE, b"planned")
        statuses = [answer(first)]
        while statuses[-1][0] is Status.WORKING:
            statuses.append(answer(first))
        assert statuses[-1] == (Status.DONE, b"planned")


def test_client_that_goes_away_keeps_no_thread() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def plan(body: bytes) -> bytes:
        begun.set()
        assert may_end.wait(60)
        return b"planned"

    with running(plan=plan) as server:
        with client(server) as connection:
            connection.sendall(request_frame(PLAN, patience_ms=10))
            assert begun.wait(10)
        may_end.set()
        until(lambda: not server._connections)
        assert ask(server, PLAN) == (Status.DONE, b"planned")


def test_blocked_logging_handler_does_not_block_next_request(caplog: pytest.LogCaptureFixture) -> None:
    """It may wait for a lock whose owner waits for that request."""
    log, may_go_on, seen = logging.getLogger("pydelta"), threading.Event(), []

    class Waiting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("request "):
                assert may_go_on.wait(60)
                seen.append(record.getMessage())

    def plan(body: bytes) -> bytes:
        log.warning("request %s", body.decode())
        return body

    waiting = Waiting()
    log.addHandler(waiting)
    try:
        with running(plan=plan) as server, client(server) as connection:
            for body in (b"1", b"2"):
                connection.sendall(request_frame(PLAN, body))
                assert answer(connection) == (Status.DONE, body)
            may_go_on.set()
            until(lambda: seen == ["request 1", "request 2"])
    finally:
        may_go_on.set()
        log.removeHandler(waiting)


# ---------------------------------------------------------------- strangers


def test_only_this_user_can_reach_the_socket() -> None:
    with running() as server:
        assert server.path is not None
        facts = os.stat(os.path.dirname(server.path))
        assert (stat.S_IMODE(facts.st_mode), facts.st_uid) == (0o700, os.geteuid())


def test_other_user_on_the_socket_gets_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if somebody has opened the directory to all users."""
    monkeypatch.setattr(server_module.os, "geteuid", lambda: os.getuid() + 1)
    plan = Recorded()
    with running(plan=plan) as server, contextlib.suppress(OSError):
        assert is_ended(connected(server))
    assert plan.bodies == []


ANSWERED = """
import json, socket, sys
from types import SimpleNamespace
from tests.support.spark.channel_client import ask
try:
    print(ask(SimpleNamespace(path=sys.argv[1], port=None), 1))
except (EOFError, OSError) as error:
    print(type(error).__name__, *error.args)
"""


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the kernel does not tell which process connects")
def test_another_process_of_this_user_gets_no_byte() -> None:
    """Not even with the secret: otherwise it could replace our socket by its own and forward the JVM's proof."""
    server = ChannelServer(SECRET, os.getpid())
    server.handle({PLAN: Recorded()})
    try:
        command = [sys.executable, "-c", ANSWERED, str(server.path)]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
        assert (process.stdout, process.stderr) == ("EOFError b''\n", "")
        assert ask(server, PLAN) == (Status.DONE, b"planned")
    finally:
        server.close()


@pytest.mark.parametrize(
    "proved",
    [
        pytest.param(lambda nonce: bytes(PROOF_BYTES) + proof(bytes(32), b"c", nonce, bytes(PROOF_BYTES)), id="another_secret"),
        pytest.param(lambda nonce: nonce + proof(SECRET, b"s", nonce, nonce), id="the_proof_of_the_server"),
        pytest.param(lambda nonce: bytes(2 * PROOF_BYTES), id="zeros"),
        pytest.param(lambda nonce: b"c\np0\napply\nro1\\re\\r\ne\n".ljust(2 * PROOF_BYTES), id="a_call_of_py4j"),
        pytest.param(lambda nonce: b"\r\n" * PROOF_BYTES, id="line_ends"),
        pytest.param(lambda nonce: request_frame(PLAN).ljust(2 * PROOF_BYTES, b"\0"), id="a_request"),
    ],
)
def test_client_without_the_secret_is_told_nothing(proved: Callable[[bytes], bytes], transport: str) -> None:
    plan = Recorded()
    with running(plan=plan) as server:
        connection = connected(server)
        connection.sendall(proved(received(connection, PROOF_BYTES)) + request_frame(PLAN))
        assert is_ended(connection)
        assert ask(server, PLAN, b"mine") == (Status.DONE, b"planned")
    assert plan.bodies == [b"mine"]


def test_recorded_conversation_fails_on_another_connection(transport: str) -> None:
    plan = Recorded()
    with running(plan=plan) as server:
        first = connected(server)
        server_nonce, client_nonce = received(first, PROOF_BYTES), bytes(PROOF_BYTES)
        recorded = client_nonce + proof(SECRET, b"c", server_nonce, client_nonce) + request_frame(PLAN, b"once")
        first.sendall(recorded)
        received(first, PROOF_BYTES)
        assert answer(first) == (Status.DONE, b"planned")
        second_connection = connected(server)
        second_connection.sendall(recorded)
        assert received(second_connection, PROOF_BYTES) != server_nonce
        assert is_ended(second_connection)
    assert plan.bodies == [b"once"]


def test_half_a_proof_ends_after_a_while(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PROOF_SECONDS", 0.2)
    with running() as server:
        connection = connected(server)
        begun = time.monotonic()
        connection.sendall(received(connection, PROOF_BYTES)[:1])
        for _ in range(6):  # bytes that come one by one do not make it longer
            with contextlib.suppress(OSError):
                connection.sendall(b"x")
            time.sleep(0.05)
        assert is_ended(connection) and time.monotonic() - begun < 5
        assert ask(server, PLAN)[0] is Status.DONE


def test_flood_of_silent_clients_is_bounded(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PROOF_SECONDS", 0.5)
    with running() as server:
        before = threading.active_count()
        flood = [connected(server) for _ in range(100)]
        until(lambda: server._unproved_count >= server_module.MAX_UNPROVED_CONNECTIONS or not server._connections)
        assert threading.active_count() - before <= server_module.MAX_UNPROVED_CONNECTIONS
        until(lambda: is_answered(server))
        for connection in flood:
            connection.close()


def test_number_of_connections_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 3)
    with running() as server, contextlib.ExitStack() as clients:
        for _ in range(3):
            clients.enter_context(client(server))
        with contextlib.suppress(OSError):
            assert is_ended(connected(server))
        clients.pop_all().close()
        until(lambda: not server._connections)
        assert ask(server, PLAN) == (Status.DONE, b"planned")


# ---------------------------------------------------------------- broken requests of a client that knows the secret


@pytest.mark.parametrize("length", [0, 4, MAX_REQUEST_BYTES + 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_impossible_length_ends_connection_without_allocation(length: int) -> None:
    plan = Recorded()
    with running(plan=plan) as server, client(server) as connection:
        connection.sendall(struct.pack("!I", length) + b"\0\0\0\0\1")
        assert is_ended(connection)
        assert ask(server, PLAN, b"mine") == (Status.DONE, b"planned")
    assert plan.bodies == [b"mine"]


@pytest.mark.parametrize("count", [1, 3, 4, 8, 9, 11])
def test_half_a_request_is_never_begun(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 0.1)
    plan = Recorded()
    with running(plan=plan) as server:
        with client(server) as silent, client(server) as leaving:
            silent.sendall(request_frame(PLAN, b"abc")[:count])
            leaving.sendall(request_frame(PLAN, b"abc")[:count])
            leaving.shutdown(socket.SHUT_WR)
            assert is_ended(silent) and is_ended(leaving)
        assert ask(server, PLAN, b"mine") == (Status.DONE, b"planned")
    assert plan.bodies == [b"mine"]


def test_bytes_that_came_in_time_are_taken_after_the_limit() -> None:
    """For example the process was stopped, or another thread held Python's lock: the JVM is not at fault."""
    late = time.monotonic() - 1
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"whole and some")
        assert read_exactly(here, 5, late) == b"whole"
        with pytest.raises(ChannelError, match="did not come in time"):
            read_exactly(here, 10, late)


# ---------------------------------------------------------------- how it ends


def test_server_ends_with_the_connection_that_holds_it(transport: str) -> None:
    with running() as server:
        with client(server) as held_connection:
            held_connection.sendall(request_frame(HOLD))
            assert ask(server, PLAN) == (Status.DONE, b"planned")
            with client(server) as idle:
                held_connection.close()
                assert is_ended(idle)
        until(lambda: server.is_closed)
        if server.path is not None:
            until(lambda: not os.path.exists(os.path.dirname(str(server.path))))
        with pytest.raises(OSError):
            connected(server)


class Internals:
    """Replaces the JVM of a session by a client that connects to nothing."""

    java_process, java_context = os.getpid(), None

    def __init__(self, spark: Any) -> None: ...

    def java_class(self, name: str) -> Any:
        return SimpleNamespace(newInstance=lambda: SimpleNamespace(open=lambda *facts: None))


class Context:
    """A SparkContext."""


@pytest.mark.parametrize("remove", [lambda path: os.remove(path), lambda path: shutil.rmtree(os.path.dirname(path))])
def test_channel_is_opened_again_after_its_socket_was_removed(
    remove: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As programs do that clean up /tmp. Running calls continue."""
    monkeypatch.setattr(channel_module, "SparkInternals", Internals)
    spark: Any = SimpleNamespace(sparkContext=Context())
    first = channel_module.channel_of(spark)
    assert channel_module.channel_of(spark) is first
    path = first._server.path
    assert path is not None
    try:
        remove(path)
        second = channel_module.channel_of(spark)
        assert second is not first and not first._server.is_closed
        assert channel_module.channel_of(spark) is second
        second._server.close()
    finally:
        first._server.close()


FORKING = """
import os, sys
from spark_plugin.driver_channel.server import ChannelServer
from tests.support.spark.channel_client import SECRET, ask
server = ChannelServer(SECRET)
server.handle({1: lambda body: b"planned"})
if os.fork() == 0:
    assert server.is_closed and server._listener.fileno() == -1
    sys.exit(0)
assert os.wait()[1] == 0
assert ask(server, 1)[1] == b"planned", "the child has ended nothing"
print(os.path.dirname(server.path))
"""

ENDING = """
import threading, time
from spark_plugin.driver_channel.server import ChannelServer
from tests.support.spark.channel_client import SECRET, answer, client, request_frame
server = ChannelServer(SECRET)
server.handle({1: lambda body: b"planned"})
main = threading.main_thread()

def run():
    with client(server) as connection:
        connection.sendall(request_frame(1))
        print(*answer(connection), flush=True)
        main.join()
        connection.sendall(request_frame(1))
        print(*answer(connection), flush=True)

threading.Thread(target=run).start()
time.sleep(0.5)
"""


def run_python(code: str, tmp_path: Path) -> str:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]  # Python 3.12 warns of threads at each fork
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


def test_child_of_a_fork_leaves_the_socket_to_its_parent(tmp_path: Path) -> None:
    directory = Path(run_python(FORKING, tmp_path).strip())
    assert directory.parent == tmp_path
    assert [*tmp_path.iterdir()] == [], "the parent removes it when it ends"


def test_directory_too_long_for_a_socket_is_not_used(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    assert not run_python(FORKING, long).startswith(str(long))
    assert [*long.iterdir()] == []


def test_nothing_is_begun_after_the_main_thread_has_ended(tmp_path: Path) -> None:
    """From then on Python starts no threads of pools, which commits and object stores need."""
    first, second = run_python(ENDING, tmp_path).splitlines()
    assert first == "0 b'planned'"
    assert second.startswith("3 b'this program has ended but for some threads")


# ---------------------------------------------------------------- another user of the machine

STRANGER = """
import encodings.idna, json, os, socket, struct, sys  # some of it cannot be read as another user
os.setgroups([]); os.setgid(65534); os.setuid(65534)
path, port = json.loads(sys.argv[1])
results = []
try:
    if path is not None:
        connection = socket.socket(socket.AF_UNIX); connection.connect(path)
    results.append("connected" if path is not None else "")
except OSError as error:
    results.append(type(error).__name__)

def attempt(content):
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    nonce = connection.recv(32)
    try:
        connection.sendall(content)
        return connection.recv(1000).hex()
    except ConnectionError:
        return ""

if port is not None:
    frames = [struct.pack("!IIB", 5, 100, kind) for kind in (*range(9), 127, 255)]
    lines = [b"c\\np0\\napply\\nro1\\\\re\\\\r\\ne\\n", b"\\r\\n" * 100, b"\\xff" * 5000]
    results += [attempt(bytes(64) + frame) for frame in frames] + [attempt(line.ljust(64)) for line in lines]
print(json.dumps(results))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_process_of_another_user_reaches_nothing(transport: str, tmp_path: Path) -> None:
    plan = Recorded()
    with running(plan=plan, other=plan) as server:
        command = [sys.executable, "-S", "-c", STRANGER, json.dumps([server.path, server.port])]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")
        assert process.stderr == ""
        first, *attempts = json.loads(process.stdout)
        assert first == ("PermissionError" if transport == "path" else "")
        assert attempts == [""] * (0 if transport == "path" else 14)
        assert not server.is_closed
        with client(server) as connection:
            connection.sendall(request_frame(PLAN, b"mine"))
            assert answer(connection) == (Status.DONE, b"planned")
    assert plan.bodies == [b"mine"]


def test_prove_is_mutual() -> None:
    """A client notices if it has reached another server than its own."""
    with running() as server:
        connection = connected(server)
        with pytest.raises(EOFError):
            prove(connection, bytes(32))
