"""Schemas and tables of a catalog by name: lists in pages, and changes whose answers are lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import InvalidOptionError
from delta_py.storage.store_options import StorageOptions
from delta_py.unity.catalog_errors import CatalogAnswerError, CatalogObjectNotFoundError, CatalogRefusedError
from delta_py.unity.server_urls import named_parts, url_of
from spark_plugin.source import catalog_objects
from tests.support.servers.unity_catalog import Failure, UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path) as server:
        yield server


def options(server: UnityCatalogServer) -> StorageOptions:
    return StorageOptions.of({"unity.uri": server.uri, "storage.retry_timeout": "1", **server.options})


def test_lists_have_all_pages(server: UnityCatalogServer) -> None:
    for name in ("a", "b", "c", "d", "e"):
        create_managed(server, name, pa.table({"id": [1]}))
        catalog_objects.create_schema(f"uc://uc.{name}", options(server))
    assert catalog_objects.names_in("uc://uc.s", options(server)) == ("a", "b", "c", "d", "e")
    assert catalog_objects.names_in("uc://uc", options(server)) == ("a", "b", "c", "d", "e", "s")


@pytest.mark.parametrize(
    "page",
    [{"tables": "x"}, {"tables": [{"name": ""}]}, {"tables": [{"name": "a\nb"}]}, {"tables": [1]}, {"next_page_token": 7}],
)
def test_list_that_is_not_valid_is_refused(server: UnityCatalogServer, page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.state, "page", lambda kind, query: page)
    with pytest.raises(CatalogAnswerError, match="list of tables in the catalog uc is not valid"):
        catalog_objects.names_in("uc://uc.s", options(server))


def test_list_without_an_end_is_refused(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.unity.catalog_listing._MOST_PAGES", 5)
    monkeypatch.setattr(server.state, "page", lambda kind, query: {"tables": [], "next_page_token": "more"})
    with pytest.raises(CatalogAnswerError, match="pages do not end"):
        catalog_objects.names_in("uc://uc.s", options(server))


def test_schema_is_made_and_dropped(server: UnityCatalogServer) -> None:
    assert not catalog_objects.has_schema("uc://uc.new", options(server))
    catalog_objects.create_schema("uc://uc.new", options(server), "for tests")
    assert catalog_objects.has_schema("uc://uc.new", options(server))
    create_managed(server, "t", pa.table({"id": [1]}), schema=("uc", "new"))
    with pytest.raises(CatalogRefusedError, match="Cannot delete schema with tables"):
        catalog_objects.drop_schema("uc://uc.new", options(server))
    catalog_objects.drop_schema("uc://uc.new", options(server), with_tables=True)
    assert not catalog_objects.has_schema("uc://uc.new", options(server))
    with pytest.raises(CatalogObjectNotFoundError, match="Schema not found"):
        catalog_objects.drop_schema("uc://uc.new", options(server))


@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER, Failure.UNKNOWN])
def test_table_is_dropped_although_an_answer_is_lost(server: UnityCatalogServer, failure: Failure) -> None:
    create_managed(server, "t", pa.table({"id": [1]}))
    server.fail("DELETE", "/tables/t", failure)
    catalog_objects.drop_table("uc://uc.s.t", options(server))
    assert not catalog_objects.has_table("uc://uc.s.t", options(server))
    with pytest.raises(CatalogObjectNotFoundError, match="Table not found"):
        catalog_objects.drop_table("uc://uc.s.t", options(server))


def test_table_is_renamed_although_the_answer_is_lost(server: UnityCatalogServer) -> None:
    create_managed(server, "t", pa.table({"id": [1]}))
    table_id = server.state.tables["uc", "s", "t"].table_id
    server.fail("POST", "/rename", Failure.LOST_ANSWER)
    catalog_objects.rename_table("uc://uc.s.t", options(server), "new")
    assert server.state.tables["uc", "s", "new"].table_id == table_id
    assert not catalog_objects.has_table("uc://uc.s.t", options(server))


@pytest.mark.parametrize("part", ["a", "a.b", "a`b", "a@v1", "a b", "a/b", "a%2Eb", "ä", "A?#~"])
def test_url_of_a_name_has_its_parts(part: str) -> None:
    assert named_parts(url_of(("c", part, part)), {"unity.uri": "https://host"}) == ("https://host", ("c", part, part))


@pytest.mark.parametrize("url", ["uc://c.s.t", "uc://c", "uc://"])
def test_url_that_names_no_schema_is_refused(server: UnityCatalogServer, url: str) -> None:
    with pytest.raises(InvalidOptionError):
        catalog_objects.create_schema(url, options(server))
