"""Names of tables in Unity Catalog, and which servers they may lead to."""

from __future__ import annotations

import pytest

from delta_py.errors import InvalidOptionError
from delta_py.unity.server_urls import server_url, table_of

NAMES = [
    ("unity://acme.example.com/main.sales.orders", "https://acme.example.com", ("main", "sales", "orders")),
    ("unity://acme.example.com:8443/main.sales.orders/", "https://acme.example.com:8443", ("main", "sales", "orders")),
    ("UNITY://acme.example.com/Main.Sales.ORDERS", "https://acme.example.com", ("Main", "Sales", "ORDERS")),
    ("unity://127.0.0.1:8080/c.s.t", "http://127.0.0.1:8080", ("c", "s", "t")),
    ("unity://localhost:8080/c.s.t", "http://localhost:8080", ("c", "s", "t")),
    ("unity://[::1]:8080/c.s.t", "http://[::1]:8080", ("c", "s", "t")),
    ("unity://host/c.s.`a.b`", "https://host", ("c", "s", "a.b")),
    ("unity://host/c.s.`a``b`", "https://host", ("c", "s", "a`b")),
    ("unity://host/c.s.a%2Fb%2Ec%40v1", "https://host", ("c", "s", "a/b.c@v1")),
    ("unity://host/c.s.tablé", "https://host", ("c", "s", "tablé")),
]


@pytest.mark.parametrize(("url", "server", "parts"), NAMES, ids=[url for url, _, _ in NAMES])
def test_url_names_a_server_and_a_table(url: str, server: str, parts: tuple[str, str, str]) -> None:
    name = table_of(url, {})
    assert (name.server, name.parts) == (server, parts)


def test_shown_name_leads_to_the_same_table() -> None:
    name = table_of("unity://host/c.`s.x`.t", {})
    assert table_of(name.shown, {}) == name


@pytest.mark.parametrize(
    "uri",
    [
        "https://acme.example.com",
        "acme.example.com",
        "https://acme.example.com/",
        "https://acme.example.com/api/2.1/unity-catalog",
    ],
)
def test_uc_url_takes_its_server_from_the_option(uri: str) -> None:
    assert table_of("uc://main.sales.orders", {"unity.uri": uri}).server == "https://acme.example.com"


def test_uc_url_takes_its_server_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABRICKS_HOST", raising=False)
    with pytest.raises(InvalidOptionError, match=r"names no server.*unity\.uri"):
        table_of("uc://main.sales.orders", {})
    monkeypatch.setenv("DATABRICKS_HOST", "acme.example.com")
    assert table_of("uc://main.sales.orders", {}).server == "https://acme.example.com"


@pytest.mark.parametrize(
    "url",
    [
        *("unity://host", "unity://host/", "unity://host/t", "unity://host/s.t", "unity://host/a.b.c.d", "unity://host/a..c"),
        *("unity:///a.b.c", "unity://host/a.b.c%0A", "unity://host/a.b.c%00", "unity://host:port/a.b.c", "unity://[x/a.b.c"),
        "unity://host/a.b." + "c" * 1001,
    ],
)
def test_url_without_a_table_is_refused(url: str) -> None:
    with pytest.raises(InvalidOptionError):
        table_of(url, {})


@pytest.mark.parametrize(
    "uri",
    [
        *(
            "http://acme.example.com",
            "ftp://acme.example.com",
            "https://",
            "https://host?x=1",
            "https://host#x",
            "http://10.0.0.1",
        ),
        *("http://localhost.example.com", "https://ho st", "https://host/\x7f", "file:///tmp"),
    ],
)
def test_server_that_may_not_get_a_token_is_refused(uri: str) -> None:
    with pytest.raises(InvalidOptionError):
        server_url(uri)


@pytest.mark.parametrize("url", ["unity://user:pass-word@host/a.b.c", "unity://pass-word@127.0.0.1/a.b.c"])
def test_password_in_a_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidOptionError) as refused:
        table_of(url, {})
    assert "pass-word" not in str(refused.value)
