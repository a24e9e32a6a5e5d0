"""A new table that Unity Catalog will manage: its place first, then its version 0, then its name in the catalog.

    store, rules = open_or_stage_catalog_table("unity://catalog.example.com/main.sales.orders", options)

If the table does not exist, the catalog chooses a place for it, and the rules are what it demands of the table. The commit of
version 0 makes the table known. Before that nobody else sees the place, so that a write that fails leaves no table.
Protocol: Creating and Dropping Catalog-managed Tables.
"""

from __future__ import annotations

import os
import time
from typing import Any

from delta_py.backoff import Backoff
from delta_py.coordinator.catalog_updates import new_table_form
from delta_py.coordinator.ledger import Tail
from delta_py.coordinator.unity_ledger import UnityLedger
from delta_py.errors import CommitOutcomeUnknownError, TableAlreadyExistsError
from delta_py.object_stores.catalog_store import CatalogStore
from delta_py.object_stores.open_catalog_table import catalog_access, files_at, open_catalog_table
from delta_py.object_stores.table_store import NO_RULES, NewTableRules, TableStore
from delta_py.protocol.paths import STAGED_DIRECTORY
from delta_py.storage.coordinated import commit_name
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.unity.catalog_errors import (
    CatalogAnswerError,
    CatalogObjectNotFoundError,
    CatalogRefusedError,
    CatalogUnavailableError,
)
from delta_py.unity.table_access import TableAccess

_ATTEMPTS = 10
_BACKOFF = Backoff(first_seconds=0.1, longest_seconds=5.0)
_THROTTLED = 429
_NO_TABLE, _EXISTS = "NoSuchTableException", "AlreadyExistsException"


def open_or_stage_catalog_table(url: str, options: StorageOptions) -> tuple[ObjectStore, NewTableRules]:
    """The store of an existing table, or of a new one and what the catalog demands of it. Raises as open_catalog_table;
    CatalogObjectNotFoundError for a schema or a catalog that does not exist."""
    try:
        return open_catalog_table(url, options), NO_RULES
    except CatalogObjectNotFoundError as error:
        if error.message_parameters["kind"] != _NO_TABLE:
            raise
    return _stage_table(url, options)


def _stage_table(url: str, options: StorageOptions) -> tuple[ObjectStore, NewTableRules]:
    """Have the catalog choose a place for a new table; nobody sees the table yet. Returns its store, and the rules for it."""
    access, file_options = catalog_access(url, options)
    staged_table = access.stage()
    files = files_at(staged_table.location, access, file_options)
    store = NewCatalogStore(files, UnityLedger(access.name.shown, staged_table.table_id, access), access, staged_table.location)
    features = {f"delta.feature.{name}": "supported" for name in staged_table.features}
    return TableStore(store, file_options), NewTableRules({**features, **staged_table.properties}, staged_table.suggested)


class NewCatalogStore(CatalogStore):
    """The store of a table that the catalog does not show yet. After the commit of version 0 it is like any CatalogStore.

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
        """Create the table in the catalog. The request is repeated until it is answered: if an earlier attempt was carried out,
        the name means our table. data: the commit of version 0."""
        request_body, is_unanswered = new_table_form(self._location, data), False
        for attempt in range(_ATTEMPTS):
            try:
                return self._access.create(request_body)
            except CatalogObjectNotFoundError:  # the schema was dropped
                if not is_unanswered:
                    raise
            except CatalogRefusedError as error:
                # Only an earlier attempt, whose answer was lost, can have created our own table.
                if is_unanswered:
                    is_ours = self._is_our_table()
                    if is_ours:
                        return
                    if error.kind == _EXISTS and is_ours is False:
                        raise self._already_exists_error() from error
                elif error.status != _THROTTLED:
                    raise (self._already_exists_error() if error.kind == _EXISTS else error) from error
            except (CatalogUnavailableError, CatalogAnswerError):
                is_unanswered = True
            time.sleep(_BACKOFF.wait_seconds(attempt))
        raise CommitOutcomeUnknownError(
            f"Unity Catalog neither confirmed nor refused the new table {self.ledger.shown}. It may exist. The files are kept. "
            f"Open the table before you run the operation again: if its id is {self.ledger.identity}, the operation is complete."
        )

    def _is_our_table(self) -> bool | None:
        """Whether the table that has the name in the catalog is the one of this store; None if the catalog does not say."""
        try:
            return self._access.load().table_id == self.ledger.identity
        except CatalogObjectNotFoundError:  # not created, or dropped since
            return False
        except (CatalogRefusedError, CatalogUnavailableError, CatalogAnswerError):
            return None

    def _already_exists_error(self) -> TableAlreadyExistsError:
        return TableAlreadyExistsError(
            f"The table {self.ledger.shown} already exists: it was created meanwhile. Nothing was written. Run the operation "
            "again.",
            error_class="TABLE_OR_VIEW_ALREADY_EXISTS",
        )
