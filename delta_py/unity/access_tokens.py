"""Access tokens for a Unity Catalog server, from storage options or the environment.

    token_for("https://catalog.example.com", {"unity.token": "..."}).value()

A program has a client id and a client secret instead, and gets tokens for them that last for a while (OAuth 2.0, the grant
client_credentials). Or it has a token of an identity provider, and exchanges it for tokens of the server (RFC 8693). Tokens are
requested once for all requests, and again before they expire.
"""

from __future__ import annotations

import base64
import logging
import math
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode
from weakref import WeakSet

from delta_py.errors import InvalidOptionError, shown
from delta_py.remote_requests import REFUSALS, NotAnswered, without_secrets
from delta_py.types.json_text import parse_json
from delta_py.unity.catalog_errors import CatalogRefusedError
from delta_py.unity.http_requests import HttpConnection
from delta_py.unity.server_urls import (
    CLIENT_OPTIONS,
    HOST_VARIABLE,
    SUBJECT_OPTIONS,
    TOKEN_OPTION,
    TOKEN_OPTIONS,
    TOKEN_VARIABLE,
    server_url,
)

_log = logging.getLogger("delta_py")

_TIMEOUT_SECONDS = 60.0
_LONGEST_ANSWER = 1 << 20  # bytes
_LONGEST_TOKEN = 100_000  # characters
_RENEWED_BEFORE_SECONDS = 60.0  # how long before its end a token is renewed
_DEFAULT_LIFE_SECONDS = 300.0  # for a token whose answer does not say how long it is valid
_SCOPE = "all-apis"
_EXCHANGE_PATH = "/api/1.0/unity-control/auth/tokens"
_EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN, _JWT = "urn:ietf:params:oauth:token-type:access_token", "urn:ietf:params:oauth:token-type:jwt"


_client_tokens: WeakSet[ClientToken] = WeakSet()


@dataclass(frozen=True, slots=True)
class FixedToken:
    """A token that the user gives as text. text: None for a server without authorization."""

    text: str | None = field(default=None, repr=False)

    def value(self) -> str | None:
        return self.text

    def secrets(self) -> tuple[str, ...]:
        return () if self.text is None else (self.text,)


class ClientToken:
    """The tokens of a program, requested with its client id and secret. uri: where they are requested. clock: in seconds;
    replaced in tests. Many threads may use one object."""

    def __init__(self, uri: str, client_id: str, client_secret: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._uri, self._client_id, self._client_secret, self._clock = server_url(uri), client_id, client_secret, clock
        self._http = HttpConnection(self._uri, _TIMEOUT_SECONDS)
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at, self._ends_at = 0.0, 0.0  # on the clock
        _client_tokens.add(self)

    def __repr__(self) -> str:
        return f"ClientToken({self._uri!r}, {self._client_id!r})"

    def value(self) -> str:
        """The current token; requests one if there is none, or it expires soon. Raises as _renew."""
        with self._lock:
            if self._token is None or self._clock() >= self._renew_at:
                self._renew()
            assert self._token is not None
            return self._token

    def secrets(self) -> tuple[str, ...]:
        token = self._token
        return self._sent_secrets() if token is None else (*self._sent_secrets(), token)

    def _sent_secrets(self) -> tuple[str, ...]:
        """The secrets in the requests for tokens."""
        return (self._client_secret,)

    def _renew(self) -> None:
        """Request a new token. Raises NotAnswered, and CatalogRefusedError if the server refuses the client."""
        answer = self._http.send(self._token_request(), _LONGEST_ANSWER)
        if answer.status != 200 or answer.data is None:
            self._raise_error(answer.status, answer.data or b"")
        try:
            token_answer = parse_json(answer.data or b"")
            token, seconds = token_answer["access_token"], token_answer.get("expires_in")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotAnswered(f"the answer of {self._uri} has no token") from error
        if not isinstance(token, str) or not 0 < len(token) <= _LONGEST_TOKEN or not _can_be_sent(token):
            raise NotAnswered(f"the answer of {self._uri} has no valid token")
        # A token is renewed a minute before its end, or after half of a short life.
        has_life = isinstance(seconds, int | float) and 0 < seconds < math.inf
        life_seconds = float(seconds) if has_life else _DEFAULT_LIFE_SECONDS
        self._ends_at = self._clock() + life_seconds if has_life else math.inf
        self._token, self._renew_at = token, self._clock() + max(life_seconds / 2, life_seconds - _RENEWED_BEFORE_SECONDS)

    def _token_request(self) -> urllib.request.Request:
        body = urlencode({"grant_type": "client_credentials", "scope": _SCOPE}).encode()
        request = urllib.request.Request(self._uri, data=body, method="POST")
        request.add_header("Content-Type", "application/x-www-form-urlencoded")
        client = f"{quote(self._client_id, safe='')}:{quote(self._client_secret, safe='')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(client.encode()).decode()}")
        return request

    def _raise_error(self, status: int, data: bytes) -> None:
        """Raise the error for an answer without a token: CatalogRefusedError for a refusal, otherwise NotAnswered."""
        words = shown(without_secrets(data.decode(errors="replace"), self.secrets()))
        if status not in REFUSALS:
            raise NotAnswered(f"{self._uri} answered {status}: {words}")
        raise CatalogRefusedError(f"{self._uri} gave no token {self._refusal_text(status, words)}", status=status, kind="")

    def _refusal_text(self, status: int, words: str) -> str:
        """The end of the message for a refusal, after "gave no token". words: the server's."""
        return f"for the client {self._client_id} ({status}): {words}. Correct unity.client_id and unity.client_secret."


class ExchangedToken(ClientToken):
    """The tokens of the server that are exchanged for a token of an identity provider. uri: where tokens are exchanged; None for
    the open-source Unity Catalog server itself. read: returns the provider's token as it is now; a file with it may be written
    again at any time, before the token expires."""

    def __init__(
        self, server: str, uri: str | None, read: Callable[[], str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(uri or server, "", "", clock=clock)
        self._read, self._has_scope = read, uri is not None
        if uri is None:
            self._uri += _EXCHANGE_PATH
        self._subject = ""  # the token that was sent last

    def __repr__(self) -> str:
        return f"ExchangedToken({self._uri!r})"

    def _sent_secrets(self) -> tuple[str, ...]:
        return (self._subject,) if self._subject else ()

    def _renew(self) -> None:
        """Request a new token. If this fails, the present token is used until its end. Raises only if there is no valid token."""
        try:
            super()._renew()
        except (NotAnswered, CatalogRefusedError, InvalidOptionError) as error:
            if self._token is None or self._clock() >= self._ends_at:
                raise
            _log.warning("%s: the token was not renewed, and is used for a while: %s", self._uri, error)
            self._renew_at = min(self._ends_at, self._clock() + _RENEWED_BEFORE_SECONDS)

    def _token_request(self) -> urllib.request.Request:
        self._subject = self._read()
        form = {
            "grant_type": _EXCHANGE_GRANT,
            "requested_token_type": _ACCESS_TOKEN,
            "subject_token_type": _JWT,
            "subject_token": self._subject,
            **({"scope": _SCOPE} if self._has_scope else {}),
        }
        request = urllib.request.Request(self._uri, data=urlencode(form).encode(), method="POST")
        request.add_header("Content-Type", "application/x-www-form-urlencoded")
        request.add_header("Accept", "application/json")
        return request

    def _refusal_text(self, status: int, words: str) -> str:
        return f"in exchange ({status}): {words}. Give a valid token of the identity provider: {' or '.join(SUBJECT_OPTIONS)}."


def token_for(server: str, options: Mapping[str, str]) -> FixedToken | ClientToken:
    """The token of the options, or that of the environment if it is for this server. Raises InvalidOptionError for a text that
    no request can contain, and for options that do not go together."""
    if any(option in options for option in SUBJECT_OPTIONS):
        return _exchanged_token(server, options)
    client_values = [options.get(option) for option in CLIENT_OPTIONS]
    token = options.get(TOKEN_OPTION)
    if any(value is not None for value in client_values):  # then all of them are needed, and no token
        uri, client_id, client_secret = client_values
        if uri is None or client_id is None or client_secret is None or token is not None:
            raise InvalidOptionError(
                f"Give {TOKEN_OPTION} alone, or all three of {', '.join(CLIENT_OPTIONS)}.", option=CLIENT_OPTIONS[0]
            )
        return ClientToken(uri, client_id, client_secret)
    if token is None:
        token = _environment_token(server)
    if token is not None and not _can_be_sent(token):
        raise InvalidOptionError(
            f"The token in the option {TOKEN_OPTION} contains characters that no request can contain, such as line breaks. Give "
            "the token alone.",
            option=TOKEN_OPTION,
        )
    return FixedToken(token or None)


def _exchanged_token(server: str, options: Mapping[str, str]) -> ExchangedToken:
    """The token that is exchanged for the one of the options unity.subject_token or unity.subject_token_file. Raises
    InvalidOptionError."""
    text, path = (options.get(option) for option in SUBJECT_OPTIONS)
    uri, *others = CLIENT_OPTIONS
    if (text is None) == (path is None) or any(option in options for option in (TOKEN_OPTION, *others)):
        raise InvalidOptionError(
            f"Give one of {' and '.join(SUBJECT_OPTIONS)}, and no other token or client. {uri} may say where it is exchanged.",
            option=SUBJECT_OPTIONS[0],
        )
    if text is not None and not (text and _can_be_sent(text)):
        raise InvalidOptionError(
            f"The token in the option {SUBJECT_OPTIONS[0]} is empty or contains characters that no token has, such as line "
            "breaks. Give the token alone.",
            option=SUBJECT_OPTIONS[0],
        )
    return ExchangedToken(server, options.get(uri), lambda: _read_token_file(path) if path is not None else str(text))


def _read_token_file(path: str) -> str:
    """The token in a file. Raises InvalidOptionError if the file cannot be read, or has no token."""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read(_LONGEST_TOKEN).strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text of a token"
        raise InvalidOptionError(
            f"The file {shown(path)} in the option {SUBJECT_OPTIONS[1]} cannot be read: {why}. Name a file with a token.",
            option=SUBJECT_OPTIONS[1],
        ) from None
    if not text or not _can_be_sent(text):
        raise InvalidOptionError(
            f"The file {shown(path)} in the option {SUBJECT_OPTIONS[1]} has no token. Name a file with a token alone.",
            option=SUBJECT_OPTIONS[1],
        )
    return text


def shared_options(server: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options that token_for needs for the same token in a process with another environment: a token of this environment
    becomes an option."""
    token_options = {name: value for name, value in options.items() if name in TOKEN_OPTIONS}
    token = None if token_options else _environment_token(server)
    return token_options if token is None else {TOKEN_OPTION: token}


def _can_be_sent(token: str) -> bool:
    """Whether an HTTP header can contain the token: only visible ASCII characters, no line breaks."""
    return all("!" <= character <= "~" for character in token)


def _environment_token(server: str) -> str | None:
    """The token in the environment; None if there is none, or it is for another server."""
    host = os.environ.get(HOST_VARIABLE)
    return os.environ.get(TOKEN_VARIABLE) if host and server_url(host) == server else None


def _forget_locks() -> None:
    """A forked process must not wait for locks that threads of its parent held."""
    for token in _client_tokens:
        token._lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_locks)
