"""A proxy before an object store that counts requests, slows them down, and spoils some of them.

    with CuttingProxy(emulator.port, plan=FaultPlan(seed, share=0.2, chosen=is_commit)) as proxy:
        store = RemoteStore(url, emulator.options(proxy.endpoint))
        ...
        proxy.exchanges           # every request, and its result

It runs in threads of this process and only listens to this machine. It receives a complete request before it passes on any part,
so that a slow client never stalls the server (fake-gcs-server would then answer nobody). Each request goes to the server on a
separate connection, once.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, Self

_SILENCE_SECONDS = 600.0
_LATE_SECONDS = 0.4
_DELAY_SECONDS = 0.3
_OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


class Fault(Enum):
    """What happens to one request. The store carries out those that end in `_AFTER`."""

    RESET_BEFORE = "the connection is reset before the store has seen anything"
    CUT_MIDWAY = "the store sees half of the body, then both connections are reset"
    RESET_AFTER = "the answer is lost, the connection is reset"
    CLOSED_AFTER = "the answer is lost, the connection is closed"
    SILENT_AFTER = "the answer is lost, the connection stays open"
    LATE_AFTER = "the connection is reset, and the store sees the request some time later"
    STATUS_500_AFTER = "the answer is replaced by status 500"
    STATUS_503_AFTER = "the answer is replaced by status 503"
    STATUS_503_BEFORE = "status 503, and the store has seen nothing"
    CONFLICT_BEFORE = "status 409 of two writers at one object, and the store has seen nothing"
    CONFLICT_AFTER = "the answer is replaced by status 409 of two writers at one object"
    SLOW_AFTER = "the answer takes its time, and comes"


@dataclass(frozen=True)
class Request:
    """target: path and query, as sent. headers: by lower-case name."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Exchange:
    """status: of the client's answer, None if there was none. fault: what the proxy did to it."""

    request: Request
    status: int | None
    answer_bytes: int
    fault: Fault | None


class Plan(Protocol):
    """Which requests are spoiled, and how."""

    def fault_of(self, request: Request) -> Fault | None: ...


@dataclass
class FaultPlan:
    """A Plan: which requests are spoiled, and how. It is the same in each run for the n-th chosen request, whoever sends it.

    share: of the chosen requests. faults: equally probable ones. chosen: returns whether a request may be spoiled.
    """

    seed: int
    share: float
    faults: Sequence[Fault] = tuple(Fault)
    chosen: Callable[[Request], bool] = lambda request: True
    _random: random.Random = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def fault_of(self, request: Request) -> Fault | None:
        if not self.chosen(request):
            return None
        with self._lock:
            is_spoiled, fault = self._random.random() < self.share, self._random.choice(self.faults)
        return fault if is_spoiled else None


@dataclass
class FailingFrom:
    """A Plan: the store cannot be reached from the n-th writing request on."""

    first: int
    _count: int = 0

    def fault_of(self, request: Request) -> Fault | None:
        if request.method in ("PUT", "POST"):
            self._count += 1
        return Fault.RESET_BEFORE if self._count >= self.first else None


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


Ask = Callable[[Request], Answer]
Before = Callable[[Request, str, Ask], Answer | None]


class CuttingProxy:
    """upstream_port: of the server, on this machine. latency_seconds: before each request. change: changes requests before they
    are passed on, like a gateway that does not know a header. before: answers some requests instead of the server (it gets the
    request, the proxy's endpoint, and a function that asks the server), and returns None for requests to the server."""

    def __init__(
        self,
        upstream_port: int,
        *,
        plan: Plan | None = None,
        latency_seconds: float = 0.0,
        change: Callable[[Request], Request] = lambda request: request,
        before: Before = lambda request, endpoint, ask: None,
    ) -> None:
        self.plan, self.latency_seconds, self.change, self.before = plan, latency_seconds, change, before
        self.exchanges: list[Exchange] = []
        self._upstream_port = upstream_port
        self._ends = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._server.errors:
            raise self._server.errors[0]

    @contextlib.contextmanager
    def counted(self) -> Iterator[list[Exchange]]:
        """The exchanges that end within the context; the list is complete when the context ends."""
        seen: list[Exchange] = []
        first = len(self.exchanges)
        yield seen
        seen += self.exchanges[first:]

    def handle(self, request: Request, connection: _Handler) -> None:
        """All steps for one request."""
        self._ends.wait(self.latency_seconds)
        fault = None if self.plan is None else self.plan.fault_of(request)
        answer = self._answer(self.change(request), fault, connection)
        self.exchanges.append(
            Exchange(request, None if answer is None else answer.status, 0 if answer is None else len(answer.body), fault)
        )
        if answer is not None:
            connection.answer(answer)

    def _answer(self, request: Request, fault: Fault | None, connection: _Handler) -> Answer | None:
        """What the client gets; None if its connection ended."""
        match fault:
            case None:
                return self._ask(request)
            case Fault.SLOW_AFTER:
                answer = self._ask(request)
                self._ends.wait(_DELAY_SECONDS)
                return answer
            case Fault.STATUS_503_BEFORE:
                return _refusal(request, 503)
            case Fault.CONFLICT_BEFORE:
                return _refusal(request, 409)
            case Fault.STATUS_500_AFTER | Fault.STATUS_503_AFTER | Fault.CONFLICT_AFTER:
                self._ask(request)
                return _refusal(request, {Fault.STATUS_500_AFTER: 500, Fault.STATUS_503_AFTER: 503}.get(fault, 409))
        self._cut(request, fault, connection)
        return None

    def _cut(self, request: Request, fault: Fault, connection: _Handler) -> None:
        match fault:
            case Fault.RESET_BEFORE:
                connection.reset()
            case Fault.CUT_MIDWAY:
                self._ask_half(request)
                connection.reset()
            case Fault.LATE_AFTER:
                connection.reset()
                self._ends.wait(_LATE_SECONDS)
                self._ask(request)
            case Fault.RESET_AFTER:
                self._ask(request)
                connection.reset()
            case Fault.CLOSED_AFTER:
                self._ask(request)
                connection.close()
            case Fault.SILENT_AFTER:
                self._ask(request)
                connection.wait_for_its_end(self._ends)

    # ------------------------------------------------------------ the server behind

    def _ask(self, request: Request) -> Answer:
        return self.before(request, self.endpoint, self._ask_server) or self._ask_server(request)

    def _ask_server(self, request: Request) -> Answer:
        upstream = http.client.HTTPConnection("127.0.0.1", self._upstream_port, timeout=_SILENCE_SECONDS)
        try:
            _send_head(upstream, request)
            upstream.send(request.body)
            response = upstream.getresponse()
            return Answer(response.status, [self._named_here(*header) for header in response.getheaders()], response.read())
        finally:
            upstream.close()

    def _named_here(self, name: str, value: str) -> tuple[str, str]:
        """A begun upload continues at the address that the server names. It must be the proxy's."""
        if name.lower() == "location":
            value = value.replace(f"http://127.0.0.1:{self._upstream_port}/", f"{self.endpoint}/")
        return name, value

    def _ask_half(self, request: Request) -> None:
        half = replace(request, body=request.body[: len(request.body) // 2])
        if self.before(half, self.endpoint, self._ask_server) is not None:
            return
        upstream = http.client.HTTPConnection("127.0.0.1", self._upstream_port, timeout=_SILENCE_SECONDS)
        _send_head(upstream, request)
        upstream.send(half.body)
        time.sleep(0.02)  # so that the server has begun to read
        _reset(upstream.sock.detach())


def _send_head(upstream: http.client.HTTPConnection, request: Request) -> None:
    """Everything that the client has signed stays unchanged: names, values, and the host that it believes to use."""
    upstream.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
    for name, value in request.headers.items():
        if name not in _OF_ONE_CONNECTION:
            upstream.putheader(name, value)
    if request.body or request.method in ("PUT", "POST"):
        upstream.putheader("content-length", str(len(request.body)))
    upstream.endheaders()


def _refusal(request: Request, status: int) -> Answer:
    """In the words of the store. 409: two writers use one object, and this one may try again."""
    if "x-ms-version" in request.headers:
        code = {500: "InternalError", 503: "ServerBusy", 409: "LeaseAlreadyPresent"}[status]
        headers = [("content-type", "application/xml"), ("x-ms-error-code", code)]
        return Answer(status, headers, f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode())
    if request.target.startswith(("/upload/", "/storage/", "/download/", "/resumable/")):
        return Answer(status, [("content-type", "application/json")], b'{"error": {"code": %d, "message": "injected"}}' % status)
    if "x-amz-target" in request.headers:
        code = {500: "InternalServerError", 503: "ServiceUnavailable", 409: "TransactionConflictException"}[status]
        return Answer(status, [("content-type", "application/x-amz-json-1.0")], b'{"__type": "%s"}' % code.encode())
    code = {500: "InternalError", 503: "SlowDown", 409: "ConditionalRequestConflict"}[status]
    return Answer(status, [("content-type", "application/xml")], f"<Error><Code>{code}</Code></Error>".encode())


# ---------------------------------------------------------------- the client's side


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, proxy: CuttingProxy) -> None:
        super().__init__(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy}))
        self.errors: list[BaseException] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is not an error of the proxy."""
        error = sys.exception()
        assert error is not None
        if not isinstance(error, OSError):
            self.errors.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: CuttingProxy

    def handle_any(self) -> None:
        target = self.requestline.split(" ")[1]  # `path` has a shortened `//` at its beginning
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.proxy.handle(Request(self.command, target, headers, self._body()), self)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while length := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(length))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def answer(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            of_object = self.command == "HEAD" and name.lower() == "content-length"
            if of_object or name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        if self.command != "HEAD" and answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def reset(self) -> None:
        self.close_connection = True
        _reset(self.connection.detach())

    def close(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def wait_for_its_end(self, proxy_ends: threading.Event) -> None:
        """Send nothing, until the client gives up."""
        self.close_connection = True
        self.connection.settimeout(0.1)
        while not proxy_ends.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.connection.recv(1):
                    return

    def log_message(self, format: str, *args: object) -> None:
        """`exchanges` has it."""


def _reset(descriptor: int) -> None:
    """Ends a connection by RST, not by FIN."""
    end = socket.socket(fileno=descriptor)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
