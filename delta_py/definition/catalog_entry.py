"""Enter a new external table into Unity Catalog, after its files are complete.

    enter_in_catalog(store)
"""

from __future__ import annotations

from delta_py.coordinator.catalog_updates import external_table_form
from delta_py.errors import DeltaError
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
    new_table = store.external_table
    try:
        snapshot = Snapshot.load(store)
        domains = [domain.to_json() for domain in snapshot.domain_metadata().values()]
    except (DeltaError, OSError) as error:
        raise new_table.not_entered_error(error) from error
    metadata, protocol = snapshot.metadata.to_json(), snapshot.protocol.to_json()
    definition = external_table_form(new_table.location, metadata, protocol, domains, snapshot.timestamp_ms)
    new_table.enter(definition, snapshot.version)
