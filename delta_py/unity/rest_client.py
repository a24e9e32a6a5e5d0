"""RestClient: requests to the REST API of a Unity Catalog server.

    client = RestClient("https://catalog.example.com", access_token)
    client.get("/delta/v1/catalogs/main/schemas/sales/tables/orders")      # the answer's JSON object

The token is sent only to this server: redirects are not followed. It is in no message, and a client cannot be pickled. Answers
are limited in size and time.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import IO, Any, NoReturn, Protocol
from urllib.parse import urlencode

import orjson

from delta_py.errors import StoreUnavailableError, shown
from delta_py.release import DISTRIBUTION, own_version
from delta_py.remote_requests import REFUSALS, RETRY_SECONDS, NotAnswered, until_answered, without_secrets
from delta_py.types.json_text import parse_json
from delta_py.unity.catalog_errors import (
    CatalogAnswerError,
    CatalogObjectNotFoundError,
    CatalogRefusedError,
    CatalogUnavailableError,
)
from delta_py.unity.server_urls import is_local

_BASE = "/api/2.1/unity-catalog"
_TIMEOUT_SECONDS = 60.0
_LONGEST_ANSWER = 32 << 20
_LONGEST_ERROR = 1 << 20
_CHUNK = 1 << 16
_CONFLICT, _TOO_MANY = 409, 429


class AccessToken(Protocol):
    """The token with which requests are sent."""

    def value(self) -> str | None:
        """The current token; None to send none. Raises DeltaError if there is none any more."""

    def secrets(self) -> tuple[str, ...]:
        """All values that must not be in messages."""


class RestClient:
    """server: as server_url returns it. timeout: seconds for one request. Many threads may use one client."""

    def __init__(
        self,
        server: str,
        access_token: AccessToken,
        *,
        timeout: float = _TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        longest_answer: int = _LONGEST_ANSWER,
    ) -> None:
        self.server = server
        self._access_token, self._timeout, self._retry_seconds = access_token, timeout, retry_seconds
        self._longest_answer = longest_answer
        self._opener = _opener(server)

    def __repr__(self) -> str:
        return f"RestClient({self.server!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client of Unity Catalog has a token, which does not leave the process")

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read something; repeated until it is answered. Raises CatalogObjectNotFoundError, CatalogRefusedError,
        CatalogUnavailableError, CatalogAnswerError."""
        target = path + (f"?{urlencode(query)}" if query else "")
        try:
            answer = until_answered(
                f"answer GET {path}",
                lambda: self._send("GET", target, None),
                seconds=self._retry_seconds,
            )
        except StoreUnavailableError as error:
            raise self._unavailable(error.__cause__ or error) from error
        if answer is None:
            raise self._invalid(path, "it is empty")
        return answer

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Change something, with one request; None for an empty answer. Raises as get. After a CatalogUnavailableError or a
        CatalogAnswerError the change may have been made."""
        try:
            return self._send("POST", path, orjson.dumps(body))
        except NotAnswered as error:
            raise self._unavailable(error) from error

    # ------------------------------------------------------------ one request

    def _send(self, method: str, path: str, body: bytes | None) -> dict[str, Any] | None:
        """Raises NotAnswered if the result is unknown."""
        request = urllib.request.Request(f"{self.server}{_BASE}{path}", data=body, method=method)
        request.add_header("User-Agent", f"{DISTRIBUTION}/{own_version()}")
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        token = self._access_token.value()
        if token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        deadline = time.monotonic() + self._timeout
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                data = _read(response, self._longest_answer, deadline)
        except urllib.error.HTTPError as error:
            self._fail(method, path, error, deadline)
        except (OSError, http.client.HTTPException) as error:
            raise self._not_answered(error) from error
        if data is None:
            raise self._invalid(path, f"it has more than {self._longest_answer} bytes")
        return self._object(path, data) if data else None

    def _object(self, path: str, data: bytes) -> dict[str, Any]:
        try:
            answer = parse_json(data)
        except ValueError as error:
            raise self._invalid(path, f"it is no JSON ({error})") from error
        if not isinstance(answer, dict):
            raise self._invalid(path, "it is no JSON object")
        return answer

    def _fail(self, method: str, path: str, error: urllib.error.HTTPError, deadline: float) -> NoReturn:
        """Raise the error that an HTTP status means."""
        status, reason = error.code, error.reason
        try:
            with error:
                data = _read(error, _LONGEST_ERROR, deadline)
        except (OSError, http.client.HTTPException) as failure:
            raise self._not_answered(failure) from failure
        kind, message = _error_of(data or b"")
        message = self._hide(message or f"{status} {reason}")
        if status == 404 and kind.startswith("NoSuch"):
            raise CatalogObjectNotFoundError(
                f"The Unity Catalog server {self.server} does not know what was named: {message}. Names are case-sensitive. "
                "Correct the name, or get the permission to see it.",
                kind=kind,
            )
        # A conflict, or a limit, that the API itself reports was not carried out; a proxy's status means nothing.
        if status in REFUSALS or (status in (_CONFLICT, 412, _TOO_MANY) and kind):
            raise CatalogRefusedError(
                f"The Unity Catalog server {self.server} refused {method} {path.partition('?')[0]} ({status}): {message}. "
                f"{_cure(status, kind)}",
                status=status,
                kind=kind,
            )
        raise NotAnswered(f"{status} {kind}: {message}")

    # ------------------------------------------------------------ errors

    def _hide(self, text: str) -> str:
        return without_secrets(text, self._access_token.secrets())

    def _not_answered(self, error: Exception) -> NotAnswered:
        reason = getattr(error, "reason", error)
        is_unreachable = isinstance(reason, ConnectionRefusedError | ssl.SSLCertVerificationError | socket.gaierror)
        text = " ".join(self._hide(str(reason) or type(reason).__name__).split())
        return NotAnswered(text, is_unreachable=is_unreachable)

    def _unavailable(self, error: BaseException) -> CatalogUnavailableError:
        return CatalogUnavailableError(
            f"The Unity Catalog server {self.server} gave no answer: {str(error).rstrip('.')}. Check its URL and the network, "
            "then run the operation again."
        )

    def _invalid(self, path: str, why: str) -> CatalogAnswerError:
        return CatalogAnswerError(
            f"The answer of the Unity Catalog server {self.server} to {path.partition('?')[0]} cannot be used: {why}. Make sure "
            "that the URL is that of a Unity Catalog server, and not of its web pages."
        )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        """The redirect becomes an HTTPError: the token is for this server alone."""


def _opener(server: str) -> urllib.request.OpenerDirector:
    """For a server on this machine, the token does not go through a proxy."""
    proxies = urllib.request.ProxyHandler({} if is_local(server) else None)
    https = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    return urllib.request.build_opener(proxies, https, _NoRedirects)


def _read(response: IO[bytes], longest: int, deadline: float) -> bytes | None:
    """The whole answer; None if it is too long. A server that sends a byte now and then does not keep its caller forever."""
    chunks, size = [], 0
    read = getattr(response, "read1", response.read)
    while chunk := read(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > longest:
            return None
        if time.monotonic() > deadline:
            raise TimeoutError("the answer is too slow")
    return b"".join(chunks)


def _error_of(data: bytes) -> tuple[str, str]:
    """The server's name for an error and its message, in either of the two forms of Unity Catalog; empty texts if there are
    none."""
    try:
        form = parse_json(data)
    except ValueError:
        return "", ""
    if not isinstance(form, dict):
        return "", ""
    inner = form.get("error")
    kind, message = (
        (inner.get("type"), inner.get("message")) if isinstance(inner, dict) else (form.get("error_code"), form.get("message"))
    )
    return str(kind)[:100] if isinstance(kind, str) else "", shown(message)[1:-1].rstrip(".") if isinstance(message, str) else ""


def _cure(status: int, kind: str) -> str:
    match status:
        case 401:
            return "Give a valid token: the option unity.token, or DATABRICKS_HOST and DATABRICKS_TOKEN in the environment."
        case 403:
            return "Get the permission that the operation needs; on Databricks also EXTERNAL USE SCHEMA."
        case 404 if not kind:
            return "Make sure that the URL is that of a Unity Catalog server with the API for Delta tables (0.5.0 or later)."
        case 301 | 307 | 308:
            return "Redirects are not followed, so that the token goes to no other server. Give the server's own URL."
    return "Nothing was done."
