"""The schemas and tables of a catalog by name: listed, and schemas made and dropped.

    listing = CatalogListing(client, "main")
    listing.tables("sales")                    # ("orders", ...)

Lists come in pages. What a server answers is limited and checked, as in catalog_answers.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn
from urllib.parse import quote

from delta_py.errors import shown
from delta_py.unity.catalog_errors import CatalogAnswerError, CatalogObjectNotFoundError
from delta_py.unity.rest_client import RestClient

_MOST_PAGES = 10_000  # so that a faulty server cannot keep its caller forever
_LONGEST_NAME = 1_000


class CatalogListing:
    """The schemas and tables of one catalog. All methods raise what RestClient.get raises, and CatalogAnswerError."""

    def __init__(self, client: RestClient, catalog: str) -> None:
        self._client, self._catalog = client, catalog

    def schemas(self) -> tuple[str, ...]:
        return tuple(self._list_names("schemas", {"catalog_name": self._catalog}))

    def tables(self, schema: str) -> tuple[str, ...]:
        """Tables and views of all formats."""
        return tuple(self._list_names("tables", {"catalog_name": self._catalog, "schema_name": schema}))

    def has_schema(self, schema: str) -> bool:
        try:
            self._client.get(self._schema_path(schema))
        except CatalogObjectNotFoundError:
            return False
        return True

    def create_schema(self, schema: str, comment: str | None = None) -> None:
        comment_field = {} if comment is None else {"comment": comment}
        self._client.post("/schemas", {"name": schema, "catalog_name": self._catalog, **comment_field})

    def drop_schema(self, schema: str, *, with_tables: bool) -> None:
        """with_tables: drop the schema's tables too. Otherwise the server refuses to drop a schema that has tables."""
        self._client.delete(self._schema_path(schema), {"force": "true"} if with_tables else None)

    def _schema_path(self, schema: str) -> str:
        return f"/schemas/{quote(f'{self._catalog}.{schema}', safe='')}"

    def _list_names(self, kind: str, query: Mapping[str, str]) -> Iterator[str]:
        """The names of all schemas or tables, page after page. kind: `schemas` or `tables`; query: of the first page's
        request."""
        token: str | None = None
        for _ in range(_MOST_PAGES):
            page = self._client.get(f"/{kind}", query if token is None else {**query, "page_token": token})
            entries, token = page.get(kind) or [], page.get("next_page_token") or None
            if not isinstance(entries, list) or not (token is None or isinstance(token, str)):
                self._raise_invalid(kind, entries)
            for entry in entries:
                yield self._checked_name(kind, entry)
            if token is None:
                return
        self._raise_invalid(kind, "its pages do not end")

    def _checked_name(self, kind: str, entry: Any) -> str:
        """The name in an entry of the list. Raises CatalogAnswerError if it can be no name."""
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            self._raise_invalid(kind, name)
        return name

    def _raise_invalid(self, kind: str, value: Any) -> NoReturn:
        raise CatalogAnswerError(
            f"Unity Catalog's list of {kind} in the catalog {self._catalog} is not valid: {shown(value)}. Report this to the "
            "operator of the server."
        )
