"""Tokens of an identity provider that the server exchanges for its own: once, again before they expire, and shown to nobody."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable
from delta_py.errors import InvalidOptionError
from delta_py.storage.store_options import StorageOptions
from delta_py.unity.access_tokens import ExchangedToken, token_for
from delta_py.unity.catalog_errors import CatalogRefusedError
from tests.support.servers.unity_catalog import UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed

IDENTITY = "identity.of.me"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        server.identities = {IDENTITY}
        create_managed(server, "t", pa.table({"id": [1]}))
        yield server


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_table_is_opened_with_an_exchanged_token(server: UnityCatalogServer) -> None:
    for _ in range(2):
        table = DeltaTable(server.table_url("t"), storage_options={"unity.subject_token": IDENTITY})
        assert table.to_arrow().num_rows == 1
    assert len(server.exchanges) == 1 and server.exchanges[0].keys() == {
        *("grant_type", "requested_token_type", "subject_token", "subject_token_type")
    }
    pickled = pickle.dumps(table.snapshot.store)
    assert IDENTITY.encode() not in pickled and (server.token or "").encode() not in pickled
    assert IDENTITY not in repr(table) + repr(StorageOptions.of({"unity.subject_token": IDENTITY}))


def test_token_in_a_file_is_read_again_before_the_other_expires(server: UnityCatalogServer, tmp_path: Path) -> None:
    file, clock = tmp_path / "token", Clock()
    file.write_text(f"{IDENTITY}\n")
    known = token_for(server.uri, {"unity.subject_token_file": str(file)})
    assert (
        isinstance(known, ExchangedToken) and repr(known) == f"ExchangedToken('{server.uri}/api/1.0/unity-control/auth/tokens')"
    )
    known._clock = clock
    assert known.value() == server.token
    server.identities, server.token = {"identity.later"}, "another-token"
    file.write_text("identity.later")
    clock.seconds += 200
    assert known.value() == "secret-token-of-uc"
    clock.seconds += 100
    assert known.value() == "another-token"
    assert [form["subject_token"] for form in server.exchanges] == [IDENTITY, "identity.later"]
    assert {"identity.later", "another-token"} == set(known.secrets())


def test_present_token_is_used_if_it_cannot_be_renewed(server: UnityCatalogServer, caplog: pytest.LogCaptureFixture) -> None:
    known, clock = ExchangedToken(server.uri, None, lambda: IDENTITY), Clock()
    known._clock = clock
    assert known.value() == server.token
    server.identities = set()  # it has expired
    clock.seconds += 10_000
    assert known.value() == server.token and known.value() == server.token
    assert len(server.exchanges) == 2 and "was not renewed" in caplog.text and IDENTITY not in caplog.text


def test_token_is_exchanged_elsewhere_if_an_address_is_given(server: UnityCatalogServer) -> None:
    options = {"unity.subject_token": IDENTITY, "unity.oauth_uri": f"{server.uri}/api/1.0/unity-control/auth/tokens"}
    assert token_for("https://elsewhere.example.com", options).value() == server.token
    assert server.exchanges[0]["scope"] == "all-apis"


def test_refused_exchange_is_reported_without_the_token(server: UnityCatalogServer) -> None:
    with pytest.raises(
        CatalogRefusedError, match=r"gave no token in exchange \(400\): .*Invalid token \.\.\..*subject_token"
    ) as refused:
        DeltaTable(server.table_url("t"), storage_options={"unity.subject_token": "another.identity"})
    assert "another.identity" not in str(refused.value)


def test_options_of_an_exchange_are_checked(tmp_path: Path) -> None:
    given = {"unity.subject_token": IDENTITY}
    for others in ({"unity.token": "x"}, {"unity.client_id": "x"}, {"unity.subject_token_file": "x"}):
        with pytest.raises(InvalidOptionError, match="no other token or client"):
            token_for("https://host", {**given, **others})
    for text in ("", "a\nb", "ü"):
        with pytest.raises(InvalidOptionError, match="Give the token alone"):
            token_for("https://host", {"unity.subject_token": text})
    for number, content in enumerate((b"", b"two words", b"\xff")):
        file = tmp_path / str(number)
        file.write_bytes(content)
        with pytest.raises(InvalidOptionError, match="subject_token_file"):
            token_for("https://host", {"unity.subject_token_file": str(file)}).value()
    with pytest.raises(InvalidOptionError, match="No such file"):
        token_for("https://host", {"unity.subject_token_file": str(tmp_path / "none")}).value()
    with pytest.raises(InvalidOptionError, match="unencrypted"):
        token_for("https://host", {**given, "unity.oauth_uri": "http://idp.example.com/token"})
