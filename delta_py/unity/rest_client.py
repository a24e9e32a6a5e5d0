"""RestClient: requests to the REST API of a Unity Catalog server.

    client = RestClient("https://catalog.example.com", access_token)
    client.get("/delta/v1/catalogs/main/schemas/sales/tables/orders")      # the answer's JSON object

The token is sent only to this server: redirects are not followed. It is in no message, and a client cannot be pickled. Answers
are limited in size and time.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from itertools import count
from typing import Any, NoReturn, Protocol
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
from delta_py.unity.http_requests import HttpAnswer, HttpConnection

_BASE = "/api/2.1/unity-catalog"
TIMEOUT_SECONDS = 60.0
_LONGEST_ANSWER = 32 << 20  # bytes
_LONGEST_KIND = 100  # characters of the server's name for an error
_CONFLICT, _PRECONDITION_FAILED, _TOO_MANY = 409, 412, 429


class AccessToken(Protocol):
    """The token that requests send to prove who the user is."""

    def value(self) -> str | None:
        """The current token; None to send none. Raises NotAnswered, and CatalogRefusedError, if a new token is needed and cannot
        be had."""

    def secrets(self) -> tuple[str, ...]:
        """All values that must not be in messages."""


class RestClient:
    """The client of one server. server: its URL, without the path of the API. timeout: seconds for one request. Many threads may
    use one client."""

    def __init__(
        self,
        server: str,
        access_token: AccessToken,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        longest_answer: int = _LONGEST_ANSWER,
    ) -> None:
        self.server = server
        self._access_token, self._retry_seconds, self._longest_answer = access_token, retry_seconds, longest_answer
        self._http = HttpConnection(server, timeout)

    def __repr__(self) -> str:
        return f"RestClient({self.server!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client of Unity Catalog has a token, which does not leave the process")

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send a GET request, and repeat it until it is answered. Raises CatalogObjectNotFoundError, CatalogRefusedError,
        CatalogUnavailableError, CatalogAnswerError."""
        target = path + (f"?{urlencode(query)}" if query else "")
        try:
            answer = until_answered(
                f"answer GET {path}",
                lambda: self._send("GET", target, None),
                seconds=self._retry_seconds,
            )
        except StoreUnavailableError as error:
            raise self._unavailable_error(error.__cause__ or error) from error
        if answer is None:
            raise self._invalid_error(path, "it is empty")
        return answer

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Send one POST request, which is not repeated, because it changes something. None for an empty answer. Raises as get.
        After a CatalogUnavailableError or a CatalogAnswerError the change may have been made."""
        try:
            return self._send("POST", path, orjson.dumps(body))
        except NotAnswered as error:
            raise self._unavailable_error(error) from error

    def delete(self, path: str, query: Mapping[str, str] | None = None) -> None:
        """Send a DELETE request, and repeat it until it is answered. If an attempt after the first finds no object, an earlier
        attempt has deleted it. Raises as get."""
        target, attempts = path + (f"?{urlencode(query)}" if query else ""), count()

        def attempt() -> None:
            is_first = next(attempts) == 0
            try:
                self._send("DELETE", target, None)
            except CatalogObjectNotFoundError:
                if is_first:
                    raise

        try:
            until_answered(f"answer DELETE {path}", attempt, seconds=self._retry_seconds)
        except StoreUnavailableError as error:
            raise self._unavailable_error(error.__cause__ or error) from error

    # ------------------------------------------------------------ one request

    def _send(self, method: str, path: str, body: bytes | None) -> dict[str, Any] | None:
        """Send one request. Returns the answer's JSON object; None for an empty answer. Raises NotAnswered if the result is
        unknown."""
        request = urllib.request.Request(f"{self.server}{_BASE}{path}", data=body, method=method)
        request.add_header("User-Agent", f"{DISTRIBUTION}/{own_version()}")
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        token = self._access_token.value()
        if token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        answer = self._http.send(request, self._longest_answer)
        if answer.status >= 300:
            self._raise_error(method, path, answer)
        if answer.data is None:
            raise self._invalid_error(path, f"it has more than {self._longest_answer} bytes")
        return self._parse_object(path, answer.data) if answer.data else None

    def _parse_object(self, path: str, data: bytes) -> dict[str, Any]:
        try:
            answer = parse_json(data)
        except ValueError as error:
            raise self._invalid_error(path, f"it is no JSON ({error})") from error
        if not isinstance(answer, dict):
            raise self._invalid_error(path, "it is no JSON object")
        return answer

    def _raise_error(self, method: str, path: str, answer: HttpAnswer) -> NoReturn:
        """Raise the error that an HTTP status means."""
        status = answer.status
        # Secrets are removed before the texts are cut, so that no part of a token remains.
        kind, message = map(self._without_secrets, _parse_error(answer.data or b""))
        # shown puts the text into quotes, which are removed here.
        kind = kind[:_LONGEST_KIND]
        message = shown(message or self._without_secrets(answer.reason))[1:-1]
        if status == 404 and (kind.startswith(("NoSuch", "NotFound")) or kind.endswith("NOT_FOUND")):
            raise CatalogObjectNotFoundError(
                f"The Unity Catalog server {self.server} does not know what was named: {message}. Names are case-sensitive. "
                "Correct the name, or get the permission to see it.",
                kind=kind,
            )
        # If the API itself reports a conflict or a limit, with its name for the error, it did nothing. Without that name a proxy
        # may have answered, and the outcome is unknown. Requests that may be repeated (not POST) are repeated after a limit.
        is_repeated = status == _TOO_MANY and method != "POST"
        if status in REFUSALS or (status in (_CONFLICT, _PRECONDITION_FAILED, _TOO_MANY) and kind and not is_repeated):
            raise CatalogRefusedError(
                f"The Unity Catalog server {self.server} refused {method} {path.partition('?')[0]} ({status}): {message}. "
                f"{_cure(status, kind)}",
                status=status,
                kind=kind,
            )
        raise NotAnswered(f"{status} {kind}: {message}")

    # ------------------------------------------------------------ errors

    def _without_secrets(self, text: str) -> str:
        return without_secrets(text, self._access_token.secrets())

    def _unavailable_error(self, error: BaseException) -> CatalogUnavailableError:
        return CatalogUnavailableError(
            f"The Unity Catalog server {self.server} gave no answer: {str(error).rstrip('.')}. Check its URL and the network, "
            "then run the operation again."
        )

    def _invalid_error(self, path: str, why: str) -> CatalogAnswerError:
        return CatalogAnswerError(
            f"The answer of the Unity Catalog server {self.server} to {path.partition('?')[0]} cannot be used: {why}. Make sure "
            "that the URL is that of a Unity Catalog server, and not of its web pages."
        )


def _parse_error(data: bytes) -> tuple[str, str]:
    """The server's name for an error and its message, in either of the two forms of Unity Catalog; empty texts if there are
    none."""
    try:
        form = parse_json(data)
    except ValueError:
        return "", ""
    if not isinstance(form, dict):
        return "", ""
    inner = form.get("error")
    if isinstance(inner, dict):
        kind, message = inner.get("type"), inner.get("message")
    else:
        kind, message = form.get("error_code"), form.get("message")
    return kind if isinstance(kind, str) else "", message.rstrip(".") if isinstance(message, str) else ""


def _cure(status: int, kind: str) -> str:
    """What the user can do about a refusal."""
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
