"""Requests to Unity Catalog: what an answer may be, which errors there are, and that the token stays where it belongs."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_py.errors import DeltaError, InvalidOptionError
from delta_py.unity.access_tokens import FixedToken, token_for
from delta_py.unity.catalog_errors import (
    CatalogAnswerError,
    CatalogObjectNotFoundError,
    CatalogRefusedError,
    CatalogUnavailableError,
)
from delta_py.unity.rest_client import RestClient
from tests.support.servers.unity_catalog import Failure, UnityCatalogServer

TABLE = "/delta/v1/catalogs/uc/schemas/s/tables/t"
CREATE = "/delta/v1/catalogs/uc/schemas/s/tables"
STAGING = "/delta/v1/catalogs/uc/schemas/s/staging-tables"
CONFIG = "/delta/v1/config"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path) as server:
        yield server


def client(server: UnityCatalogServer, token: str | None = "secret-token-of-uc", **limits: float) -> RestClient:
    return RestClient(server.uri, FixedToken(token), **{"retry_seconds": 0.5, **limits})


def test_request_carries_the_token(server: UnityCatalogServer) -> None:
    assert client(server).get(CONFIG)["protocol-version"] == "1.0"
    assert server.authorizations == ["Bearer secret-token-of-uc"]


def test_read_is_repeated_until_it_is_answered(server: UnityCatalogServer) -> None:
    server.fail("GET", CONFIG, Failure.LOST_REQUEST, Failure.LOST_ANSWER, Failure.UNKNOWN, Failure.THROTTLED)
    assert client(server, retry_seconds=30).get(CONFIG)["protocol-version"] == "1.0"
    assert len(server.requests) == 3  # the lost request and the throttled one were not carried out


def test_read_without_an_answer_ends_when_its_time_is_over(server: UnityCatalogServer) -> None:
    server.fail("GET", CONFIG, *[Failure.LOST_REQUEST] * 100)
    with pytest.raises(CatalogUnavailableError, match="gave no answer"):
        client(server, retry_seconds=0.2).get(CONFIG)


@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER, Failure.UNKNOWN])
def test_change_without_an_answer_is_sent_once(server: UnityCatalogServer, failure: Failure) -> None:
    server.fail("POST", STAGING, failure)
    with pytest.raises(CatalogUnavailableError):
        client(server).post(STAGING, {"name": "t"})
    assert len(server.state.staging) == (0 if failure is Failure.LOST_REQUEST else 1)


def test_throttled_change_is_refused_by_kind(server: UnityCatalogServer) -> None:
    server.fail("POST", STAGING, Failure.THROTTLED)
    with pytest.raises(CatalogRefusedError) as refused:
        client(server).post(STAGING, {"name": "t"})
    assert (refused.value.status, refused.value.kind) == (429, "TooManyRequestsException")


def test_unknown_table_is_not_found(server: UnityCatalogServer) -> None:
    with pytest.raises(CatalogObjectNotFoundError, match=r"Table not found: uc\.s\.t.*case-sensitive"):
        client(server).get(TABLE)


def test_page_that_is_not_there_is_no_missing_table(server: UnityCatalogServer) -> None:
    with pytest.raises(CatalogRefusedError, match=r"0\.5\.0 or later"):
        client(server).get("/delta/v9/tables")


def test_wrong_token_is_refused_and_not_shown(server: UnityCatalogServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = "-".join(["another", "secret"])  # in this form it is in no line of a traceback
    with pytest.raises(CatalogRefusedError, match=r"401.*Invalid access token.*unity\.token") as refused:
        client(server, token).get(CONFIG)
    assert refused.value.status == 401
    assert token not in "".join(traceback.format_exception(refused.value)) + caplog.text


def test_token_in_the_servers_message_is_hidden(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"error": {"message": "bad token secret-token-of-uc", "type": "X", "code": 400}}
    monkeypatch.setattr(server, "answer", lambda *request: (400, error))
    with pytest.raises(CatalogRefusedError, match=r"bad token \.\.\."):
        client(server).get(CONFIG)


def test_token_that_a_message_is_cut_in_is_hidden(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"error": {"message": "x" * 195 + "secret-token-of-uc", "type": "secret-token-of-uc", "code": 400}}
    monkeypatch.setattr(server, "answer", lambda *request: (400, error))
    with pytest.raises(CatalogRefusedError) as refused:
        client(server).get(CONFIG)
    assert "secr" not in str(refused.value) + refused.value.kind


def test_redirect_is_not_followed(server: UnityCatalogServer) -> None:
    server.fail("GET", CONFIG, Failure.REDIRECT)
    with pytest.raises(CatalogUnavailableError, match="302"):
        client(server, retry_seconds=0.0).get(CONFIG)
    assert server.requests == []


@pytest.mark.parametrize("failure", [Failure.NO_JSON, Failure.LONG])
def test_answer_that_is_no_json_of_limited_size_is_not_used(server: UnityCatalogServer, failure: Failure) -> None:
    server.fail("GET", CONFIG, failure)
    with pytest.raises(CatalogAnswerError):
        client(server, longest_answer=1 << 20).get(CONFIG)


def test_slow_answer_ends_after_the_time_limit(server: UnityCatalogServer) -> None:
    server.fail("GET", CONFIG, Failure.SLOW)
    with pytest.raises(CatalogUnavailableError, match="timed out"):
        client(server, timeout=0.2, retry_seconds=0.0).get(CONFIG)


def test_server_that_is_not_there_is_reported() -> None:
    with pytest.raises(CatalogUnavailableError, match="refused"):
        RestClient("http://127.0.0.1:1", FixedToken(None), retry_seconds=0.1).get(CONFIG)


def test_client_shows_no_token_and_is_not_pickled(server: UnityCatalogServer) -> None:
    with_token = client(server)
    assert "secret" not in repr(with_token) + repr(FixedToken("secret-token-of-uc"))
    with pytest.raises(TypeError, match="does not leave the process"):
        pickle.dumps(with_token)


@pytest.mark.parametrize("token", ["a\r\nX-Other: b", "a b", "ü", "a\n"])
def test_token_with_invalid_characters_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidOptionError) as refused:
        token_for("https://host", {"unity.token": token})
    assert token not in str(refused.value)


def test_token_of_the_environment_is_for_its_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", "acme.example.com")
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapi-of-acme")
    assert token_for("https://acme.example.com", {}).value() == "dapi-of-acme"
    assert token_for("https://acme.example.com", {"unity.token": "another"}).value() == "another"
    assert token_for("https://evil.example.com", {}).value() is None


def test_errors_are_for_users(server: UnityCatalogServer) -> None:
    with pytest.raises(DeltaError) as refused:
        client(server, "another-secret").get(CONFIG)
    copied = pickle.loads(pickle.dumps(refused.value))
    assert (str(copied), copied.status, copied.kind) == (str(refused.value), 401, "UNAUTHENTICATED")
