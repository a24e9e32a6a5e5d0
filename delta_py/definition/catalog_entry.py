"""Enter a new external table into Unity Catalog, after its files are complete.

enter_in_catalog(store)
"""

from __future__ import annotations

from delta_py.coordinator.catalog_updates import external_table_form
from delta_py.object_stores.table_store import TableStore
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore


def enter_in_catalog(store: ObjectStore) -> None:
    """Enter the table of a store into its catalog, if it is a new external table there; otherwise do nothing. Raises as
    NewExternalTable.enter."""
    if not isinstance(store, TableStore) or store.external_table is None:
        return
    from delta_py.unity.external_tables import NewExternalTable  # imports HTTP clients

    if not isinstance(store.external_table, NewExternalTable):
        return
    snapshot = Snapshot.load(store)
    definition = external_table_form(
        store.external_table.location,
        snapshot.metadata.to_json(),
        snapshot.protocol.to_json(),
        [domain.to_json() for domain in snapshot.domain_metadata().values()],
        snapshot.timestamp_ms,
    )
    store.external_table.enter(definition, snapshot.version)
