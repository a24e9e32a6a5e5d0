"""Catalogs, schemas and tables of Unity Catalog as objects with names: listed, made, renamed, dropped. No table is opened.

    names_in("uc://main.sales", options)                # ("orders", ...)
    drop_table("uc://main.sales.orders", options)

All functions raise InvalidOptionError for a URL that names no such object; CatalogObjectNotFoundError, CatalogRefusedError,
CatalogUnavailableError, CatalogAnswerError.
"""

from __future__ import annotations

from delta_py.errors import InvalidOptionError, shown
from delta_py.object_stores.open_catalog_table import access_options, catalog_access
from delta_py.storage.store_options import StorageOptions
from delta_py.unity.catalog_errors import CatalogObjectNotFoundError
from delta_py.unity.catalog_listing import CatalogListing
from delta_py.unity.server_urls import named_parts
from delta_py.unity.table_access import catalog_client


def names_in(url: str, options: StorageOptions) -> tuple[str, ...]:
    """Return the names of the schemas of a catalog, or of the tables of a schema, whichever the URL names."""
    listing, schema = _listing(url, options)
    return listing.schemas() if schema is None else listing.tables(schema)


def has_schema(url: str, options: StorageOptions) -> bool:
    listing, schema = _listing(url, options)
    return listing.has_schema(_required_schema(schema, url))


def has_table(url: str, options: StorageOptions) -> bool:
    try:
        catalog_access(url, options)[0].load()
    except CatalogObjectNotFoundError:
        return False
    return True


def drop_table(url: str, options: StorageOptions) -> None:
    catalog_access(url, options)[0].drop()


def rename_table(url: str, options: StorageOptions, new_name: str) -> None:
    """Rename a table within its schema. new_name: one name, without catalog and schema."""
    catalog_access(url, options)[0].rename(new_name)


def create_schema(url: str, options: StorageOptions, comment: str | None = None) -> None:
    listing, schema = _listing(url, options)
    listing.create_schema(_required_schema(schema, url), comment)


def drop_schema(url: str, options: StorageOptions, *, with_tables: bool = False) -> None:
    """Drop a schema. with_tables: drop the schema's tables too; without it the catalog refuses to drop a schema that has
    tables."""
    listing, schema = _listing(url, options)
    listing.drop_schema(_required_schema(schema, url), with_tables=with_tables)


def _listing(url: str, options: StorageOptions) -> tuple[CatalogListing, str | None]:
    """Return the catalog that a URL names, and the name of the schema; None if the URL names only the catalog."""
    server, (catalog, *schemas) = named_parts(url, dict(options.values))
    if len(schemas) > 1:
        raise InvalidOptionError(f"{shown(url)} names neither a catalog nor a schema.", option="path")
    client = catalog_client(server, access_options(server, options))
    return CatalogListing(client, catalog), schemas[0] if schemas else None


def _required_schema(schema: str | None, url: str) -> str:
    """Return the schema's name. Raises InvalidOptionError if the URL names only a catalog."""
    if schema is None:
        raise InvalidOptionError(f"{shown(url)} names no schema. Write catalog.schema.", option="path")
    return schema
