"""Open the store of a table by its name in Unity Catalog.

    open_catalog_table("unity://catalog.example.com/main.sales.orders", options)

The catalog says where the table is. It ratifies the commits of managed tables; external tables are like tables by path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from delta_py.coordinator.unity_ledger import UnityLedger
from delta_py.errors import UnsupportedOperationError, shown
from delta_py.object_stores.catalog_store import CatalogStore
from delta_py.object_stores.remote import RemoteStore
from delta_py.object_stores.table_store import TableStore
from delta_py.object_stores.vended_store import VendedStore
from delta_py.remote_requests import RETRY_SECONDS
from delta_py.storage.addresses import StoreKind, kind_of, scheme_of
from delta_py.storage.local import LocalStore, check_host
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.unity.access_tokens import shared_options
from delta_py.unity.catalog_errors import CatalogAnswerError
from delta_py.unity.external_tables import LOCATION_OPTION, ExternalTable, check_location
from delta_py.unity.rest_client import TIMEOUT_SECONDS
from delta_py.unity.server_urls import CatalogTableName, is_local, table_of
from delta_py.unity.table_access import AccessOptions, TableAccess, table_access

_CREDENTIALS: Mapping[StoreKind, tuple[str, ...]] = {
    "s3": ("s3.access_key_id", "s3.profile", "s3.anonymous"),
    "gs": ("gcs.access_token", "gcs.service_account_file", "gcs.service_account_json", "gcs.anonymous"),
    "az": (
        *("azure.account_key", "azure.sas_token", "azure.connection_string", "azure.client_secret"),
        *("azure.managed_identity", "azure.anonymous"),
    ),
}
"""If the user gives one of these, the catalog is not asked for credentials."""


def open_catalog_table(url: str, options: StorageOptions) -> TableStore:
    """The store of the table's files and log. Sends a request to the server.

    Raises CatalogObjectNotFoundError, CatalogRefusedError, CatalogUnavailableError, CatalogAnswerError; InvalidOptionError for a
    URL that names no table, and for a table that is not at the location of the options; UnsupportedOperationError for a table
    that this process must not open.
    """
    access, file_options = catalog_access(url, options)
    table = access.load()
    location = options.get(LOCATION_OPTION)
    if location is not None:
        check_location(location, table, access.name)
    files = files_at(table.location, access, file_options)
    if not table.is_managed:
        return TableStore(files, file_options, ExternalTable(access, table.table_id))
    return TableStore(CatalogStore(files, UnityLedger(access.name.shown, table.table_id, access, table)), file_options)


def catalog_access(url: str, options: StorageOptions) -> tuple[TableAccess, StorageOptions]:
    """The access to the table that a URL names, and the options for its files. Sends no request. Raises InvalidOptionError,
    UnsupportedOperationError."""
    values = dict(options.values)
    if "coordinator" in values:
        raise UnsupportedOperationError(
            f"The table {shown(url)} has its catalog as coordinator, and no other one: it cannot be part of a transaction over "
            "tables. Nothing was read or written. Leave out the option coordinator."
        )
    # The options unity.* are for the catalog alone: they hold its token, which requests for files do not need.
    file_options = StorageOptions.of({key: value for key, value in values.items() if not key.startswith("unity.")})
    name = table_of(url, values)
    return table_access(name, access_options(name.server, options)), file_options


def access_options(server: str, options: StorageOptions) -> AccessOptions:
    """The options for requests to a server: credentials, time limits in seconds, and whether the token may go to other processes.
    Raises InvalidOptionError."""
    return AccessOptions(
        tuple(sorted(shared_options(server, dict(options.values)).items())),
        options.number("storage.request_timeout", TIMEOUT_SECONDS),
        options.number("storage.retry_timeout", RETRY_SECONDS),
        options.flag("unity.share_token"),
    )


def files_at(location: str, access: TableAccess, options: StorageOptions) -> ObjectStore:
    """The store of a table's files, which does not ask the catalog for commits. location: the table's root, as the catalog names
    it. The user's credentials for the files take precedence over the catalog's. Raises as open_catalog_table."""
    kind = kind_of(location)
    if kind is None:
        return LocalStore(_local_path(location, access.name))
    if any(options.get(option) is not None for option in _CREDENTIALS[kind]):
        return RemoteStore(location, options)
    return VendedStore(location, options, access)


def _local_path(location: str, name: CatalogTableName) -> str:
    """The directory of a table on this machine. A server on another machine must not choose which files of this one are read."""
    if scheme_of(location) not in (None, "file") and not location.startswith("file:"):
        raise UnsupportedOperationError(f"No store serves the location {shown(location)} of the table {name.shown}.")
    if not is_local(name.server):
        raise UnsupportedOperationError(
            f"The Unity Catalog server {name.server} says that the table {name.shown} is at {shown(location)}, on this machine. "
            "Only a server on the same machine may name local files. Nothing was read or written. Store the table in an object "
            "store."
        )
    try:
        parts = urlsplit(location)
    except ValueError as error:
        raise CatalogAnswerError(
            f"The location {shown(location)} of the table {name.shown} is no URL: {error}. Nothing was read or written."
        ) from error
    path = unquote(parts.path)
    if not location.startswith("file:") or not os.path.isabs(path) or "\0" in path:
        raise CatalogAnswerError(
            f"The location {shown(location)} of the table {name.shown} is no place. Nothing was read or written."
        )
    check_host(parts.netloc, location)
    return path
