"""The server of the channel: it listens where only this user can connect, and answers clients that prove the secret.

    server = ChannelServer(secret, client_process)
    server.handle({PLAN: plan})          # plan(body: bytes) -> bytes
    server.path, server.port             # where it listens: a Unix domain socket, or a port of the loopback interface
    server.close()

The socket lies in a directory that only this user can enter, and the kernel reports which user and which process connects.
Without Unix domain sockets the server listens on the loopback interface, where anybody may connect: then only the proof
distinguishes a client from others.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import shutil
import socket
import struct
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from spark_plugin.driver_channel.deferred_logging import LogThread, deferred_logging
from spark_plugin.driver_channel.frames import (
    MAX_ANSWER_BYTES,
    ChannelError,
    Request,
    Status,
    answer_head,
    prove_to_client,
    read_request,
)

Handler: TypeAlias = Callable[[bytes], bytes]

HOLD = 127
"""The kind of a request that has no answer. When its connection ends, the server closes."""

MAX_CONNECTIONS = 128
MAX_UNPROVED_CONNECTIONS = 16
PROOF_SECONDS = 5.0
REQUEST_SECONDS = 30.0
"""The time within which a request that has begun must be complete."""

_UNSEEN_PROCESS = 0
"""Linux reports this for a process outside of this process's container. No process inside of it gets this number."""

_COPIED_BYTES = 1 << 16
"""Shorter answers are copied after their head, to be sent in one call."""

_MAX_PATH_BYTES = 100  # of a Unix domain socket: 104 on macOS, 108 on Linux, with a zero at the end

_log = logging.getLogger("pydelta")


class ChannelServer:
    """Answers requests of the JVM, with one thread per connection, until it is closed. port, path: where it listens; one of them
    is None."""

    def __init__(self, secret: bytes, client_process: int | None = None) -> None:
        """client_process: the only process that may connect, if the kernel reports the process; None for all processes of this
        user.

        Raises OSError if the process cannot listen anywhere.
        """
        self._secret = secret
        self._client_process = client_process
        self._handlers: dict[int, tuple[Handler, bool]] = {}
        self._connections: set[_Connection] = set()
        self._unproved_count = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.port: int | None = None
        self.path: str | None = None
        self._directory: str | None = None
        self._listener = self._listen()
        self._remove_directory = weakref.finalize(self, _delete_directory, self._directory, os.getpid())
        self._pulse = _Pulse()
        self._log_thread = LogThread()
        _servers.add(self)
        threading.Thread(target=self._accept, name="pydelta-channel", daemon=True).start()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    @property
    def is_reachable(self) -> bool:
        """Whether new connections find the socket. Programs that clean up temporary directories may have removed it."""
        return not self._closed.is_set() and (self.path is None or os.path.exists(self.path))

    def handle(self, handlers: Mapping[int, Handler], *, defers_logging: bool = True) -> None:
        """Answer requests of these kinds with these functions from now on.

        defers_logging: whether the log records of their work wait until the answer is sent. Work that takes hours logs at once.
        """
        self._handlers = {**self._handlers, **{kind: (handler, defers_logging) for kind, handler in handlers.items()}}

    def close(self) -> None:
        """Stop listening and end all connections. Running work is finished, and its answer is dropped."""
        with self._lock:
            self._closed.set()
            self._handlers = {}  # they refer to the session, which refers to this object
            connections = list(self._connections)
        _close_socket(self._listener)
        for connection in connections:
            connection.close()
        self._pulse.stop()
        self._log_thread.stop()
        self._remove_directory()

    def forget(self) -> None:
        """Close what a child process inherited from a fork. The sockets of its parent stay open."""
        self._closed.set()
        self._listener.close()
        for connection in list(self._connections):
            connection.socket.close()

    # ------------------------------------------------------------ listening

    def _listen(self) -> socket.socket:
        """Return the socket on which clients connect, and set `path` or `port`."""
        try:
            return self._listen_on_path()
        except (OSError, AttributeError) as error:
            _log.debug("no Unix domain socket: %s. The loopback interface is used.", error)
        listener = socket.create_server(("127.0.0.1", 0), backlog=MAX_CONNECTIONS)
        self.port = listener.getsockname()[1]
        return listener

    def _listen_on_path(self) -> socket.socket:
        """Return a Unix domain socket in a new directory. Raises OSError, and AttributeError if Python has no such sockets."""
        directory = tempfile.mkdtemp(prefix="pydelta-")  # its mode is 0700
        if len(os.fsencode(directory)) + 2 > _MAX_PATH_BYTES:  # 2 for "/s"; /tmp is shorter than a long TMPDIR
            os.rmdir(directory)
            directory = tempfile.mkdtemp(prefix="pydelta-", dir="/tmp")
        path = os.path.join(directory, "s")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(path)
            listener.listen(MAX_CONNECTIONS)
        except OSError:
            listener.close()
            shutil.rmtree(directory, ignore_errors=True)
            raise
        self._directory, self.path = directory, path
        return listener

    def _accept(self) -> None:
        """Accept connections until the server is closed. This is the server's own thread."""
        while not self._closed.is_set():
            try:
                client_socket, _ = self._listener.accept()
            except OSError:
                if self._closed.is_set():
                    return
                time.sleep(0.1)  # for example, no more files can be opened
                continue
            self._admit(client_socket)

    def _admit(self, client_socket: socket.socket) -> None:
        """Serve a connection in its own thread, unless another user or process made it or too many are open."""
        if self.path is not None and not _is_of_client(client_socket, self._client_process):
            client_socket.close()
            return
        connection = _Connection(client_socket)
        with self._lock:
            is_admitted = (
                not self._closed.is_set()
                and len(self._connections) < MAX_CONNECTIONS
                and self._unproved_count < MAX_UNPROVED_CONNECTIONS
            )
            if is_admitted:
                self._connections.add(connection)
                self._unproved_count += 1
        if not is_admitted:
            client_socket.close()
            return
        try:
            threading.Thread(target=self._serve, args=(connection,), name="pydelta-channel-call", daemon=True).start()
        except RuntimeError:  # no more threads can be started
            with self._lock:
                self._unproved_count -= 1
            self._close_and_forget(connection)

    # ------------------------------------------------------------ one connection

    def _serve(self, connection: _Connection) -> None:
        """Answer the requests of a connection, until it ends. When a connection that sent HOLD ends, the server is closed."""
        is_holding = False
        try:
            self._prove(connection)
            while (request := read_request(connection.socket, REQUEST_SECONDS)) is not None:
                if request.kind == HOLD:
                    is_holding = True
                    continue
                self._answer(connection, request)
                del request  # its body is large, and the next request may come hours later
        except (ChannelError, OSError) as error:
            _log.debug("a connection of the channel ended: %s", error)
        finally:
            self._close_and_forget(connection)
            if is_holding:
                self.close()

    def _prove(self, connection: _Connection) -> None:
        """Let each side prove to the other that it knows the secret."""
        try:
            if self.path is None:
                connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            prove_to_client(connection.socket, self._secret, PROOF_SECONDS)
        finally:
            with self._lock:
                self._unproved_count -= 1

    def _close_and_forget(self, connection: _Connection) -> None:
        connection.close()
        with self._lock:
            self._connections.discard(connection)

    def _answer(self, connection: _Connection, request: Request) -> None:
        """Do the work of a request and send the answer. The log records of the work are emitted after that."""
        handler, defers_logging = self._handlers.get(request.kind, (None, True))
        if handler is None:
            return connection.send(Status.NOT_BEGUN, f"nothing answers requests of the kind {request.kind}".encode())
        if not threading.main_thread().is_alive():
            reason = b"this program has ended but for some threads, and Python starts no others for them"
            return connection.send(Status.NOT_BEGUN, reason)
        with self._pulse.during(connection, request.patience_ms / 1000):
            status, answer, records = _run_handler(handler, bytes(request.body), defers_logging)
        if len(answer) >= MAX_ANSWER_BYTES:
            status, answer = Status.FAILED, f"the answer has {len(answer)} bytes, more than a frame can have".encode()
        try:
            return connection.send(status, answer)
        finally:
            self._log_thread.emit(records)


def _run_handler(handler: Handler, body: bytes, defers_logging: bool) -> tuple[Status, bytes, list[logging.LogRecord]]:
    """Do the work of a request. Returns the status and the body of the answer, and the log records that wait for its end."""
    log_deferral: contextlib.AbstractContextManager[list[logging.LogRecord]] = (
        deferred_logging() if defers_logging else contextlib.nullcontext([])
    )
    with log_deferral as records:
        try:
            return Status.DONE, handler(body), records
        except BaseException as error:  # a Spark worker does the same work, and raises the error where the user sees it
            _log.debug("a worker has to do what this process could not", exc_info=True)
            return Status.FAILED, f"{type(error).__name__}: {error}".encode(errors="replace"), records


class _Connection:
    """A socket on which one thread at a time sends whole frames."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._sending = threading.Lock()

    def send(self, status: Status, body: bytes) -> None:
        """Send an answer. Raises OSError."""
        with self._sending:
            head = answer_head(status, len(body))
            if len(body) < _COPIED_BYTES:
                self.socket.sendall(head + body)
            else:
                self.socket.sendall(head)
                self.socket.sendall(body)

    def send_pulse(self) -> None:
        """Send a frame that the work continues. Nothing is sent during the answer, or if the client reads nothing."""
        if not self._sending.acquire(blocking=False):
            return
        try:
            head = answer_head(Status.WORKING, 0)
            if self.socket.send(head, getattr(socket, "MSG_DONTWAIT", 0)) != len(head):
                self.close()  # the client would read the remaining bytes as another frame
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        finally:
            self._sending.release()

    def close(self) -> None:
        _close_socket(self.socket)


class _Pulse:
    """Sends WORKING frames on connections whose work takes long, from one thread."""

    def __init__(self) -> None:
        self._due: dict[_Connection, tuple[float, float]] = {}  # when the next frame is due, and the seconds between frames
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0
        self._is_stopped = False

    @contextlib.contextmanager
    def during(self, connection: _Connection, seconds: float) -> Any:
        """Send a WORKING frame on the connection every `seconds` while the block runs, so that the client does not give up."""
        seconds = max(seconds, 0.01)
        with self._condition:
            due = time.monotonic() + seconds
            self._due[connection] = due, seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pydelta-channel-pulse", daemon=True)
                self._thread.start()
            elif due < self._wakes_at:
                self._condition.notify()
        try:
            yield
        finally:
            with self._condition:
                del self._due[connection]

    def stop(self) -> None:
        with self._condition:
            self._is_stopped = True
            self._condition.notify()

    def _run(self) -> None:
        """Send the frames that are due, and sleep until the next one is due. `during` wakes this thread for an earlier one."""
        with self._condition:
            while not self._is_stopped:
                now = time.monotonic()
                for connection, (due, seconds) in self._due.items():
                    if due <= now:
                        connection.send_pulse()
                        self._due[connection] = now + seconds, seconds
                self._wakes_at = min((due for due, _ in self._due.values()), default=math.inf)
                self._condition.wait(None if self._wakes_at == math.inf else max(self._wakes_at - now, 0))


# ---------------------------------------------------------------- sockets

_servers: weakref.WeakSet[ChannelServer] = weakref.WeakSet()


def _forget_in_child() -> None:
    """Close all servers that a child process has inherited from a fork."""
    for server in list(_servers):
        server.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


def _is_of_client(connection: socket.socket, client_process: int | None) -> bool:
    """Return whether a process of this user is at the other end of a Unix domain socket, and whether it is client_process, unless
    that is None. Returns True if this system cannot report the process; then the directory's mode and the proof still protect the
    connection.

    The proof alone does not show which process connects: a process of this user that replaces our socket by its own can
    pass on the proofs of the two ends.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    try:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return False
    process, user, _ = struct.unpack("3i", credentials)
    is_process = client_process is None or process in (client_process, _UNSEEN_PROCESS)
    return is_process and bool(user == os.geteuid())


def _close_socket(open_socket: socket.socket) -> None:
    """Close a socket that other threads may be waiting for."""
    with contextlib.suppress(OSError):
        open_socket.shutdown(socket.SHUT_RDWR)
    open_socket.close()


def _delete_directory(directory: str | None, owner_process: int) -> None:
    """Delete the directory of the socket. owner_process: the one that made it; any other process does nothing: a forked
    child also ends, and has the same finalizers."""
    if directory is not None and os.getpid() == owner_process:
        shutil.rmtree(directory, ignore_errors=True)
