"""One HTTP request to one server, limited in time and in the size of its answer.

    HttpConnection("https://catalog.example.com").send(request, longest=1_000_000)      # HttpAnswer(status=200, data=b"...")

Redirects are not followed, so that what a request carries goes to no other server. For a server on this machine no proxy is used.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import IO, Any

from delta_py.remote_requests import NotAnswered
from delta_py.unity.server_urls import is_local

_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """data: None if it was longer than the limit."""

    status: int
    reason: str
    data: bytes | None


class HttpConnection:
    """server: its URL. timeout: seconds for one request. Many threads may use it."""

    def __init__(self, server: str, timeout: float) -> None:
        self._timeout = timeout
        proxies = urllib.request.ProxyHandler({} if is_local(server) else None)
        https = urllib.request.HTTPSHandler(context=ssl.create_default_context())
        self._opener = urllib.request.build_opener(proxies, https, _NoRedirects)

    def send(self, request: urllib.request.Request, longest: int) -> HttpAnswer:
        """Send a request; an error status is an answer too. longest: the most bytes of an answer. Raises NotAnswered if there is
        no whole answer."""
        deadline = time.monotonic() + self._timeout
        try:
            try:
                response: Any = self._opener.open(request, timeout=self._timeout)
            except urllib.error.HTTPError as error:  # an answer, too
                response = error
            with response:
                return HttpAnswer(response.status, str(response.reason), _read_limited(response, longest, deadline))
        except (OSError, http.client.HTTPException) as error:
            raise _not_answered_error(error) from error


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
    """is_unreachable, for which requests are repeated less long: nothing listens there, the name is unknown, or the certificate
    is wrong."""
    reason = getattr(error, "reason", error)
    is_unreachable = isinstance(reason, ConnectionRefusedError | ssl.SSLCertVerificationError | socket.gaierror)
    return NotAnswered(" ".join(str(reason).split()) or type(reason).__name__, is_unreachable=is_unreachable)
