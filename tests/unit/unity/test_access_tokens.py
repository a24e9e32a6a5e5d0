"""Tokens that a program gets by its client secret: requested once, renewed in time, and shown to nobody."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable
from delta_py.errors import InvalidOptionError
from delta_py.remote_requests import NotAnswered
from delta_py.storage.store_options import StorageOptions
from delta_py.unity.access_tokens import ClientToken, token_for
from delta_py.unity.catalog_errors import CatalogRefusedError
from tests.support.servers.unity_catalog import UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed

SECRET = "client secret/+"


class TokenServer:
    """answer: what it answers next, instead of a token."""

    def __init__(self) -> None:
        self.requests: list[tuple[str | None, str]] = []
        self.answer: tuple[int, Any] | None = None
        self.life: Any = 3600
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.requests.append((self.headers.get("Authorization"), body))
                token = {"access_token": f"token-{len(outer.requests)}", "token_type": "Bearer", "expires_in": outer.life}
                status, answer = outer.answer or (200, token)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self.server.server_address[1]}/oidc/v1/token"


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    server = TokenServer()
    thread = threading.Thread(target=server.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.server.shutdown()
    server.server.server_close()


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_token_is_requested_once_until_shortly_before_it_expires(tokens: TokenServer) -> None:
    clock = Clock()
    token = ClientToken(tokens.uri, "me", SECRET, clock=clock)
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: token.value(), range(20))) == {"token-1"}
    clock.seconds += 3500
    assert token.value() == "token-1"
    clock.seconds += 50
    assert token.value() == "token-2"
    authorization, body = tokens.requests[0]
    assert authorization is not None and base64.b64decode(authorization.removeprefix("Basic ")) == b"me:client%20secret%2F%2B"
    assert body == "grant_type=client_credentials&scope=all-apis"


def test_refused_client_is_reported_without_its_secret(tokens: TokenServer) -> None:
    tokens.answer = 401, {"error": "invalid_client", "error_description": f"not {SECRET}"}
    with pytest.raises(CatalogRefusedError, match=r"gave no token for the client me \(401\).*invalid_client") as refused:
        ClientToken(tokens.uri, "me", SECRET).value()
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}),
        (200, []),
        (200, "x"),
        (200, {"access_token": 7}),
        (200, {"access_token": "a\nb"}),
        (500, {}),
        (302, {}),
        (429, {}),
    ],
)
def test_answer_without_a_token_is_no_answer(tokens: TokenServer, answer: tuple[int, Any]) -> None:
    tokens.answer = answer
    with pytest.raises(NotAnswered):
        ClientToken(tokens.uri, "me", SECRET).value()


@pytest.mark.parametrize("life", [None, -1, "soon", 0])
def test_token_without_a_valid_end_is_used_for_some_minutes(tokens: TokenServer, life: Any) -> None:
    tokens.life, clock = life, Clock()
    token = ClientToken(tokens.uri, "me", SECRET, clock=clock)
    assert token.value() == "token-1"
    clock.seconds += 200
    assert token.value() == "token-1"
    clock.seconds += 100
    assert token.value() == "token-2"


def test_options_of_a_client_are_complete(tokens: TokenServer) -> None:
    whole = {"unity.oauth_uri": tokens.uri, "unity.client_id": "me", "unity.client_secret": SECRET}
    assert isinstance(token_for("https://host", whole), ClientToken)
    for name in whole:
        with pytest.raises(InvalidOptionError, match="all three"):
            token_for("https://host", {key: value for key, value in whole.items() if key != name})
    with pytest.raises(InvalidOptionError, match="alone"):
        token_for("https://host", {**whole, "unity.token": "x"})
    with pytest.raises(InvalidOptionError, match="unencrypted"):
        token_for("https://host", {**whole, "unity.oauth_uri": "http://idp.example.com/token"})


def test_secret_is_not_shown(tokens: TokenServer) -> None:
    options = {"unity.oauth_uri": tokens.uri, "unity.client_id": "me", "unity.client_secret": SECRET}
    assert SECRET not in repr(token_for("https://host", options)) + repr(StorageOptions.of(options))


def test_table_is_opened_by_a_client(tokens: TokenServer, tmp_path: Path) -> None:
    with UnityCatalogServer(tmp_path, token="token-1") as server:
        create_managed(server, "t", pa.table({"id": [1]}))
        options = {"unity.oauth_uri": tokens.uri, "unity.client_id": "me", "unity.client_secret": SECRET}
        for _ in range(2):
            assert DeltaTable(server.table_url("t"), storage_options=options).to_arrow().num_rows == 1
        assert len(tokens.requests) == 1
