"""HTTP requests to one server, limited in time and in the size of the answers, over connections that are kept.

    HttpConnection("https://catalog.example.com", timeout=30).send(request, longest=1_000_000)  # HttpAnswer(200, "OK", b"...")

Redirects are not followed, so that what a request carries goes to no other server. For a server on this machine no proxy is used.
"""

from __future__ import annotations

import http.client
import os
import selectors
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections import deque
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import urlsplit

from delta_py.remote_requests import NotAnswered
from delta_py.unity.server_urls import is_local

_CHUNK_BYTES = 1 << 16
_MOST_IDLE_CONNECTIONS, _LONGEST_IDLE_SECONDS = 8, 30.0  # connections that wait for a next request, and for how long


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer of any status. reason: the text of the status line. data: the body; None if it was longer than the limit."""

    status: int
    reason: str
    data: bytes | None


class HttpConnection:
    """Sends requests to one server. server: its URL. timeout: seconds for one request. Many threads may use one object: each
    request has its own connection, which later requests of this process use again. `_opener`: sends requests through a proxy;
    None without a proxy."""

    def __init__(self, server: str, timeout: float) -> None:
        self._timeout, self._context = timeout, ssl.create_default_context()
        self._idle_connections: deque[_IdleConnection] = deque()  # a deque needs no lock, which a fork could leave locked
        self._opener: urllib.request.OpenerDirector | None = None
        if not is_local(server) and urlsplit(server).scheme in urllib.request.getproxies():
            https = urllib.request.HTTPSHandler(context=self._context)
            self._opener = urllib.request.build_opener(urllib.request.ProxyHandler(), https, _NoRedirects)

    def send(self, request: urllib.request.Request, longest: int) -> HttpAnswer:
        """Send a request; an error status is an answer too. longest: the most bytes of an answer. Raises NotAnswered if there is
        no whole answer."""
        deadline = time.monotonic() + self._timeout
        try:
            if self._opener is not None:
                return self._send_through_proxy(self._opener, request, longest, deadline)
            connection = self._take_idle_connection()
            if connection is not None:
                try:
                    return self._exchange(connection, request, longest, deadline)
                except ConnectionError:  # the server may have closed it just now; only a read may be sent again
                    if request.get_method() != "GET":
                        raise
            return self._exchange(self._new_connection(request), request, longest, deadline)
        except (OSError, http.client.HTTPException) as error:
            raise _not_answered_error(error) from error

    def _send_through_proxy(
        self, opener: urllib.request.OpenerDirector, request: urllib.request.Request, longest: int, deadline: float
    ) -> HttpAnswer:
        try:
            response: Any = opener.open(request, timeout=self._timeout)
        except urllib.error.HTTPError as error:  # an answer, too
            response = error
        with response:
            return HttpAnswer(response.status, str(response.reason), _read_limited(response, longest, deadline))

    def _new_connection(self, request: urllib.request.Request) -> http.client.HTTPConnection:
        if request.type == "https":
            return http.client.HTTPSConnection(request.host, timeout=self._timeout, context=self._context)
        return http.client.HTTPConnection(request.host, timeout=self._timeout)

    def _take_idle_connection(self) -> http.client.HTTPConnection | None:
        """Take a connection of an earlier request that is still open; None if there is none."""
        while True:
            try:
                idle = self._idle_connections.pop()
            except IndexError:
                return None
            if idle.process_id != os.getpid():  # the parent process goes on using it
                continue
            is_open = time.monotonic() - idle.idle_since < _LONGEST_IDLE_SECONDS and not _has_ended(idle.connection)
            if is_open:
                return idle.connection
            idle.connection.close()

    def _exchange(
        self, connection: http.client.HTTPConnection, request: urllib.request.Request, longest: int, deadline: float
    ) -> HttpAnswer:
        is_reusable = False
        try:
            headers = {**request.headers, **request.unredirected_hdrs}
            data = request.data if isinstance(request.data, bytes) else None
            connection.request(request.get_method(), request.selector, data, headers)
            response = connection.getresponse()
            answer = HttpAnswer(response.status, str(response.reason), _read_limited(response, longest, deadline))
            if answer.data is not None:
                response.read()  # nothing is left, but only this ends the response
                is_reusable = not response.will_close
            return answer
        finally:
            if is_reusable and len(self._idle_connections) < _MOST_IDLE_CONNECTIONS:
                self._idle_connections.append(_IdleConnection(connection, os.getpid(), time.monotonic()))
            else:
                connection.close()


@dataclass(frozen=True, slots=True)
class _IdleConnection:
    """A connection that no request uses now. process_id: of the process that made the connection. idle_since: on the clock
    time.monotonic."""

    connection: http.client.HTTPConnection
    process_id: int
    idle_since: float


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed an idle connection. No answer is expected, so data on the socket means its end."""
    if connection.sock is None:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        """Returns None, so the redirect becomes an HTTPError."""


def _read_limited(response: IO[bytes], longest: int, deadline: float) -> bytes | None:
    """The whole answer; None if it is too long. deadline: on the monotonic clock. A server that sends a byte now and then does
    not keep its caller forever."""
    chunks, size = [], 0
    # read1 returns what has arrived, so that the deadline is checked in between; read would wait for the whole chunk.
    read = getattr(response, "read1", response.read)
    while chunk := read(_CHUNK_BYTES):
        chunks.append(chunk)
        size += len(chunk)
        if size > longest:
            return None
        if time.monotonic() > deadline:
            raise TimeoutError("the answer is too slow")
    return b"".join(chunks)


def _not_answered_error(error: Exception) -> NotAnswered:
    """The error for a request without an answer. is_unreachable is True if nothing listens there, the name is unknown, or the
    certificate is wrong; then requests are repeated for a shorter time."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    is_unreachable = isinstance(reason, ConnectionRefusedError | ssl.SSLCertVerificationError | socket.gaierror)
    return NotAnswered(" ".join(str(reason).split()) or type(reason).__name__, is_unreachable=is_unreachable)
