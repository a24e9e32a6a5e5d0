"""A session's settings for servers of Unity Catalog: each token goes to its server alone."""

from __future__ import annotations

import pytest

from delta_py.errors import InvalidOptionError
from spark_plugin.options.storage import session_storage, storage_options

SHARED = {"unity.share_token": "true"}
OF_SESSION = {"spark.pydelta.unity.uri": "https://one.example.com", "spark.pydelta.unity.token": "one"}
OF_CATALOGS = {
    "spark.sql.catalog.main.uri": "https://two.example.com/api/2.1/unity-catalog",
    "spark.sql.catalog.main.token": "two",
    "spark.sql.catalog.robots.uri": "https://three.example.com",
    "spark.sql.catalog.robots.auth.type": "oauth",
    "spark.sql.catalog.robots.auth.oauth.uri": "https://three.example.com/oidc/v1/token",
    "spark.sql.catalog.robots.auth.oauth.clientId": "robot",
    "spark.sql.catalog.robots.auth.oauth.clientSecret": "three",
    "spark.sql.catalog.people.uri": "https://four.example.com",
    "spark.sql.catalog.people.auth.oauth.subjectToken": "four",
    "spark.sql.catalog.people.auth.oauth.subjectTokenFile": "/four",
    "spark.sql.catalog.other": "org.example.Catalog",
    "spark.sql.catalog.other.token": "no server",
}
ONE = {"unity.uri": "https://one.example.com", "unity.token": "one"}
TWO = {"unity.uri": "https://two.example.com/api/2.1/unity-catalog", "unity.token": "two"}
THREE = {
    "unity.uri": "https://three.example.com",
    "unity.oauth_uri": "https://three.example.com/oidc/v1/token",
    "unity.client_id": "robot",
    "unity.client_secret": "three",
}
FOUR = {"unity.uri": "https://four.example.com", "unity.subject_token": "four", "unity.subject_token_file": "/four"}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("uc://people.s.t", FOUR),
        ("unity://one.example.com/c.s.t", ONE),
        ("unity://two.example.com/c.s.t", TWO),
        ("unity://three.example.com/c.s.t", THREE),
        ("unity://elsewhere.example.com/main.s.t", {}),
        ("UNITY://one.example.com/c.s.t", ONE),
        ("uc://main.s.t", TWO),
        ("uc://robots.s.t", THREE),
        ("uc://c.s.t", ONE),
        ("uc://other.s.t", ONE),
    ],
)
def test_server_gets_only_its_token(url: str, expected: dict[str, str]) -> None:
    assert session_storage({**OF_SESSION, **OF_CATALOGS}, {}, url) == {**expected, **SHARED}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({}, ONE),
        ({"unity.uri": "https://one.example.com"}, ONE),
        ({"unity.uri": "https://evil.example.com"}, {"unity.uri": "https://evil.example.com"}),
        ({"unity.token": "mine"}, {**ONE, "unity.token": "mine"}),
        (
            {"unity.oauth_uri": "https://o", "unity.client_id": "c", "unity.client_secret": "s"},
            {"unity.uri": ONE["unity.uri"], "unity.oauth_uri": "https://o", "unity.client_id": "c", "unity.client_secret": "s"},
        ),
    ],
)
def test_options_of_a_read_replace_those_of_the_session(call: dict[str, str], expected: dict[str, str]) -> None:
    session = session_storage(OF_SESSION, {}, "uc://c.s.t")
    assert dict(storage_options(call, session).values) == {**expected, **SHARED}


def test_stores_of_the_session_are_known_without_credentials() -> None:
    confs = {
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.secret.key": "of another bucket",
        "spark.pydelta.s3.region": "eu-west-1",
        "spark.pydelta.coordinator": "sqlite:///ledger.db",
    }
    expected = {"s3.endpoint": "http://127.0.0.1:9000", "s3.region": "eu-west-1", **SHARED}
    assert session_storage(confs, {}, "uc://c.s.t") == expected


def test_transaction_of_the_session_is_passed_on_to_be_refused() -> None:
    confs = {"spark.pydelta.coordinator": "sqlite:///ledger.db", "spark.pydelta.coordinator.transaction": "7"}
    assert session_storage(confs, {}, "uc://c.s.t")["coordinator"] == "sqlite:///ledger.db"


def test_url_that_names_no_table_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"Write catalog\.schema\.table"):
        session_storage({}, {}, "unity://one.example.com/t")
