"""A new table that Unity Catalog will manage: its place first, then its version 0, then its name in the catalog.

    store, rules = open_or_stage_catalog_table("unity://catalog.example.com/main.sales.orders", options)

If the table does not exist, the catalog chooses a place for it, and the rules are what it demands of the table. The commit of
version 0 makes the table known. Before that nobody else sees the place, so that a write that fails leaves no table.
Protocol: Creating and Dropping Catalog-managed Tables.
"""

from __future__ import annotations

import os
from typing import Any

from delta_py.coordinator.catalog_updates import new_table_form
from delta_py.coordinator.ledger import Tail
from delta_py.coordinator.unity_ledger import UnityLedger
from delta_py.errors import CommitOutcomeUnknownError
from delta_py.object_stores.catalog_store import CatalogStore
from delta_py.object_stores.open_catalog_table import catalog_access, files_at, open_catalog_table
from delta_py.object_stores.table_store import NO_RULES, NewTableRules, TableStore
from delta_py.protocol.paths import STAGED_DIRECTORY
from delta_py.storage.addresses import address_of, kind_of
from delta_py.storage.coordinated import commit_name
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.unity.catalog_errors import CatalogObjectNotFoundError, CatalogUnavailableError
from delta_py.unity.external_tables import LOCATION_OPTION, NewExternalTable, catalog_location
from delta_py.unity.table_access import TableAccess
from delta_py.unity.table_creation import create_in_catalog

_NO_TABLE = "NoSuchTableException"


def open_or_stage_catalog_table(url: str, options: StorageOptions) -> tuple[ObjectStore, NewTableRules]:
    """The store of the table that a URL names, and the rules for a new table: NO_RULES if the table exists, or if it will be
    external, because then the catalog demands nothing. Raises as open_catalog_table; CatalogObjectNotFoundError for a schema or a
    catalog that does not exist."""
    try:
        return open_catalog_table(url, options), NO_RULES
    except CatalogObjectNotFoundError as error:
        if error.message_parameters["kind"] != _NO_TABLE:
            raise
    if options.get(LOCATION_OPTION) is not None:
        return _external_table(url, options), NO_RULES
    return _stage_table(url, options)


def _external_table(url: str, options: StorageOptions) -> TableStore:
    """The store of a new external table, at the location that the options name. A table may exist there already."""
    access, file_options = catalog_access(url, options)
    location = catalog_location(str(options.get(LOCATION_OPTION)), access.name)
    if kind_of(location) is not None:
        address_of(location)  # refuses a URL with a secret before it is sent to the server
    access.use_external_location(location)
    return TableStore(files_at(location, access, file_options), file_options, NewExternalTable(access, location))


def _stage_table(url: str, options: StorageOptions) -> tuple[ObjectStore, NewTableRules]:
    """Have the catalog choose a place for a new table; nobody sees the table yet. Returns its store, and the rules for it."""
    access, file_options = catalog_access(url, options)
    staged_table = access.stage()
    files = files_at(staged_table.location, access, file_options)
    store = NewCatalogStore(files, UnityLedger(access.name.shown, staged_table.table_id, access), access, staged_table.location)
    features = {f"delta.feature.{name}": "supported" for name in staged_table.features}
    return TableStore(store, file_options), NewTableRules({**features, **staged_table.properties}, staged_table.suggested)


class NewCatalogStore(CatalogStore):
    """The store of a table that the catalog does not show yet. After the commit of version 0 it works like any CatalogStore.

    access: creates the table in the catalog. location: the table's root, as the catalog chose it.
    """

    __slots__ = ("_access", "_is_created", "_location")

    def __init__(self, file_store: ObjectStore, ledger: UnityLedger, access: TableAccess, location: str) -> None:
        super().__init__(file_store, ledger)
        self._access, self._location, self._is_created = access, location, False

    def __reduce__(self) -> tuple[Any, ...]:
        if self._is_created or not self._access.is_shared:
            # Without the access a copy cannot create the table. It can still write data files.
            return super().__reduce__()
        return NewCatalogStore, (self._file_store, self._ledger, self._access, self._location)

    def tail(self) -> Tail | None:
        """None before the commit of version 0: until then the catalog ratifies no commits of the table."""
        if self._is_created:
            return super().tail()
        self._tail, self._is_tail_known = None, True
        return None

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        """Put an object. The table's first commit is written, and then the table is created in the catalog.

        Raises TableAlreadyExistsError if somebody else has created a table of that name, CatalogRefusedError, and
        CommitOutcomeUnknownError.
        """
        if self._is_created or commit_name(path) is None:
            return super().put_if_absent(path, data, durably=durably)
        self._file_store.put_if_absent(path, data)
        if not self._file_store.is_remote:  # delta-spark commits only if the directory exists
            os.makedirs(os.path.join(self.root, STAGED_DIRECTORY), exist_ok=True)
        self._create(data)
        self._is_created, self._is_tail_known = True, False

    def _create(self, data: bytes) -> None:
        """Create the table in the catalog. data: the content of the commit of version 0. Raises as put_if_absent."""
        try:
            create_in_catalog(
                self._access, new_table_form(self._location, data), lambda table: table.table_id == self.ledger.identity
            )
        except CatalogUnavailableError as error:
            raise CommitOutcomeUnknownError(
                f"{error.message} The files are kept. Open the table before you run the operation again: if its id is "
                f"{self.ledger.identity}, the operation is complete."
            ) from error
