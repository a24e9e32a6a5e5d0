"""What the catalog of a managed table demands of its clients: Unity Catalog's rules for operations, properties and features.

A required feature that is half dropped would leave the table between two states, because the catalog refuses the last step. So
everything that the catalog forbids is refused before anything is changed.
Protocol: Maintenance Operations on Catalog-managed Tables.
"""

from __future__ import annotations

from enum import Enum

from delta_py.errors import UnsupportedOperationError
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore

REQUIRED_FEATURES = ("catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "inCommitTimestamp")
REQUIRED_PROPERTIES = {
    "delta.checkpointPolicy": "v2",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}
_CANNOT_BE_DROPPED = frozenset({*REQUIRED_FEATURES, "columnMapping"})


class Maintenance(Enum):
    """Kinds of maintenance that a catalog either does itself, and then forbids to its clients, or permits to them. The values are
    the catalog's names for them."""

    REORGANIZATION = "DATA_REORGANIZATION"
    CLEANUP = "DATA_CLEANUP"
    LOG_CLEANUP = "METADATA_CLEANUP"


def is_managed_by_catalog(store: ObjectStore) -> bool:
    """Whether Unity Catalog ratifies the table's commits."""
    coordinated = coordination_of(store)
    # A ledger is the coordinator's record of a table's ratified commits. id_property is set only for Unity Catalog, which
    # identifies a table by the id in that property. last_tail is None if the ledger does not know the table.
    return coordinated is not None and coordinated.id_property is not None and coordinated.last_tail is not None


def is_forbidden(store: ObjectStore, maintenance: Maintenance) -> bool:
    """Whether the table's catalog does this maintenance itself, and forbids it to its clients."""
    coordinated = coordination_of(store)
    return coordinated is not None and coordinated.forbids(maintenance.value)


def refuse_forbidden(store: ObjectStore, maintenance: Maintenance, statement: str, consequence: str) -> None:
    """Raises UnsupportedOperationError if the table's catalog does this maintenance itself.

    statement: the start of the message, before `the table at ...`. consequence: a sentence for its end that says what did not
    happen.
    """
    if is_forbidden(store, maintenance):
        raise _forbidden_error(f"{statement} the table at {store.root} is not supported: its catalog does this. {consequence}")


def refuse_drop(store: ObjectStore, feature: str) -> None:
    """Raises UnsupportedOperationError if a catalog manages the table and demands the feature."""
    if feature in _CANNOT_BE_DROPPED and is_managed_by_catalog(store):
        raise _forbidden_error(
            f"The feature {feature} of the table at {store.root} cannot be dropped: the table's catalog demands it. Nothing was "
            "changed."
        )


def demanded_properties(store: ObjectStore, current_config: TableConfig) -> dict[str, str]:
    """The properties that the table's catalog demands and the table already has. A new definition of the table must have them
    too. Empty if no catalog manages the table. current_config: protocol and metadata as they are now. A demanded property that
    the table lacks already is left out, so that the check of a commit refuses only what that commit would remove."""
    if not is_managed_by_catalog(store):
        return {}
    return {name: value for name, value in REQUIRED_PROPERTIES.items() if current_config.properties.get(name) == value}


def check_contract(store: ObjectStore, current_config: TableConfig, new_config: TableConfig) -> None:
    """Raises UnsupportedOperationError if a commit would remove a feature or property that the table has and its catalog demands.

    current_config, new_config: the table before and after the commit.
    """
    if not is_managed_by_catalog(store):
        return
    lost_requirements = [name for name in REQUIRED_FEATURES if current_config.feature(name) and not new_config.feature(name)]
    demanded = demanded_properties(store, current_config)
    lost_requirements += [f"{name}={value}" for name, value in demanded.items() if new_config.properties.get(name) != value]
    if lost_requirements:
        raise _forbidden_error(
            f"The table at {store.root} must keep {', '.join(lost_requirements)}, which its catalog demands. Nothing was "
            "changed. Leave them as they are."
        )


def _forbidden_error(message: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(message, error_class="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION", sql_state="0AKDC")
