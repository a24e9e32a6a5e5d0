"""Tables whose commits a coordinator ratifies: find the coordinator, and ensure that nobody opens such a table without it.

A coordinator keeps a ledger: the database that records which commits of a table are ratified. The table property
`pydelta.coordinator` holds the ledger's identity. A table is registered with the ledger when it is first opened after the commit
that made it catalog-managed. By then, no writer commits to the table without the ledger.
Protocol: Catalog-managed Table Enablement; Reader Requirements for Catalog-managed tables; Table Discovery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from delta_py.coordinator.ledger import RatificationUnknownError, Tail, forget_call, known_at_other_place_error, staged_version
from delta_py.errors import (
    CorruptTableError,
    LogFileNotFoundError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
)
from delta_py.log.segment import list_commits
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol.actions import Action, CommitInfo
from delta_py.protocol.features import FEATURES
from delta_py.protocol.paths import LOG_DIRECTORY, STAGED_DIRECTORY, commit_file_name
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.storage.store import ObjectStore

FEATURE = "catalogManaged"
IDENTITY_PROPERTY = "pydelta.coordinator"
UNITY_PROPERTY = "io.unitycatalog.tableId"
GROUP = "transactionGroup"  # the key in commitInfo that names a multi-table transaction
OPTION = "coordinator"
_HOW_TO_NAME_COORDINATOR = (
    f"give the option {OPTION} with the URL of its ledger, in Spark also by the setting spark.pydelta.{OPTION}"
)
TIMESTAMPS_PROPERTY = "delta.enableInCommitTimestamps"


def require_coordinator(store: ObjectStore, config: TableConfig) -> CoordinatedStore | None:
    """Check that this store may read and write the table's commits. Returns the store with the table's coordinator, or None if
    the table has no coordinator.

    Raises UnsupportedOperationError (DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED) if the user named no coordinator
    or another one, UnsupportedTableFeatureError if the table's catalog is not a coordinator of pydelta, and CorruptTableError if
    the protocol lacks a feature that this feature needs.
    """
    if not config.feature(FEATURE):
        return None
    missing_features = [name for name in FEATURES[FEATURE].needs if not config.feature(name)]
    if missing_features:
        raise CorruptTableError(
            f"The protocol of the table at {store.root} has the feature {FEATURE}, but not {', '.join(missing_features)}, which "
            "that feature needs. Add them with the engine that manages the table.",
            error_class="DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
            sql_state="KD004",
            features=missing_features,
        )
    catalog_id = config.properties.get(UNITY_PROPERTY)
    store_of_ledger = coordination_of(store)  # the store with the coordinator that the user named; None if none was named
    # Without IDENTITY_PROPERTY, the table's id in Unity Catalog is the identity.
    identity = config.properties.get(IDENTITY_PROPERTY, catalog_id)
    if identity is not None and identity == catalog_id and (store_of_ledger is None or store_of_ledger.id_property is None):
        raise _blocked_error(store, "It is managed by Unity Catalog: open it by its name, unity://host/catalog.schema.table.")
    if identity is None:
        raise UnsupportedTableFeatureError(
            f"The table at {store.root} is managed by a catalog (feature {FEATURE}), and does not name a coordinator from which "
            "pydelta could read its commits. Use it through its catalog. If the table should have a coordinator of pydelta, "
            f"{_HOW_TO_NAME_COORDINATOR}.",
            error_class="DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
            sql_state="KD00G",
            features=[FEATURE],
        )
    if store_of_ledger is None:
        raise _blocked_error(store, f"No coordinator was named: {_HOW_TO_NAME_COORDINATOR}.")
    if store_of_ledger.ledger.identity != identity:
        raise _blocked_error(
            store, f"{store_of_ledger.ledger.shown} is another one. Name the ledger whose identity is {identity}."
        )
    return store_of_ledger


def properties_with_coordinator(store: ObjectStore, config: TableConfig) -> dict[str, str]:
    """The table properties of `config`. If its protocol needs a coordinator, this function adds the property that names the
    coordinator, and enables in-commit timestamps, because commit files are published at any time after the commit.

    Without the feature, or if the store has no coordinator, the properties are returned unchanged.
    """
    properties = dict(config.metadata.configuration)
    coordinated = coordination_of(store)
    if not config.feature(FEATURE) or coordinated is None:
        return properties
    if coordinated.id_property is not None:  # a table of Unity Catalog
        return {**properties, coordinated.id_property: coordinated.ledger.identity, TIMESTAMPS_PROPERTY: "true"}
    identity = config.properties.get(IDENTITY_PROPERTY) or coordinated.ledger.identity
    properties = {name: value for name, value in properties.items() if name.lower() != TIMESTAMPS_PROPERTY.lower()}
    return {**properties, IDENTITY_PROPERTY: identity, TIMESTAMPS_PROPERTY: "true"}


def name_group(actions: Iterable[Action], group: Mapping[str, Any]) -> tuple[Action, ...]:
    """The actions, whose commitInfo gets the field `transactionGroup`, which names the multi-table transaction of the commit.

    group: the value of the field. It has the `transactionId`. If the commit is ready to be ratified, it also has `participants`,
    the commits of all tables. A commit without participants is a draft, which never becomes a version.
    """
    return tuple(CommitInfo({**action.values, GROUP: group}) if isinstance(action, CommitInfo) else action for action in actions)


def check_and_register(store: ObjectStore, config: TableConfig, version: int, *, is_newest: bool) -> bool:
    """Check that a version may be opened with this store, and tell the table's ledger if the table has come or left.

    config: of the version. is_newest: the version is the newest one in the listing of the log.
    If the ledger does not know the table yet, this registers the table with its newest version. If the newest version needs no
    coordinator any more, the ledger forgets the table.
    Returns True if the ledger has forgotten the table during the call. Then the caller must look up the version again, because
    the ledger's last answer does not count any more.
    Raises the errors of require_coordinator; UnsupportedOperationError if the ledger knows another table at this place, or this
    table at another place; RatificationUnknownError if the ledger does not know the table, but should; and LogFileNotFoundError
    if the ledger knows versions after the newest one whose commits are deleted.
    """
    # Both are the store with its coordinator. managed: None if the version needs no coordinator. coordinated: None if the user
    # named no coordinator.
    managed = require_coordinator(store, config)
    coordinated = coordination_of(store)
    if coordinated is None:
        return False
    tail = coordinated.last_tail  # the newest version and the unpublished commits in the ledger; None if it lacks the table
    if tail is not None and not _is_same_table(coordinated, tail.table_id, config):
        raise known_at_other_place_error(coordinated.ledger.shown, coordinated.place, coordinated.place)
    if is_newest:
        check_newest(store, version)
    if managed is not None:
        # Only the newest version registers the table: the ledger ratifies the versions after the registered one.
        if tail is None and version == max(commit.version for commit in list_commits(store)):
            if managed.id_property is None:
                _check_never_known(managed, version)
            managed.register(version, config.metadata.id)
            return _undo_late_registration(managed, version)
        return False
    # The version needs no coordinator. In a multi-table transaction, the ledger forgets nothing.
    return tail is not None and coordinated.transaction is None and _leave_ledger(coordinated, tail, version)


def _is_same_table(coordinated: CoordinatedStore, table_id: str, config: TableConfig) -> bool:
    """Whether the table that the ledger knows at this place is the table whose log was read. table_id: the ledger's id of it.

    config: of the version that was read. In a catalog, a table property holds the id. A version from before the table was
    catalog-managed may lack the property, and then counts as the same table.
    """
    if coordinated.id_property is None:
        return table_id == config.metadata.id
    return config.properties.get(coordinated.id_property, None if config.feature(FEATURE) else table_id) == table_id


def check_newest(store: ObjectStore, version: int) -> None:
    """Check that the log has all commits that the table's ledger knows. version: the newest one in the listing of the log.

    The ledger may know a newer version whose commit was written after the listing. That commit exists, and is no error. If the
    commit does not exist, it is lost, and this raises LogFileNotFoundError.
    """
    coordinated = coordination_of(store)
    tail = None if coordinated is None else coordinated.last_tail
    if coordinated is None or tail is None or tail.version <= version:
        return
    path = f"{LOG_DIRECTORY}/{commit_file_name(version + 1)}"
    try:
        coordinated.read_range(path, 0, 1)  # one byte shows that the commit exists
    except FileNotFoundError:
        raise LogFileNotFoundError(
            f"The coordinator {coordinated.ledger.shown} has ratified version {version + 1} of the table at {coordinated.root}, "
            f"and {path} is missing. Nothing was read or written. Restore the file. Or, to give up all versions after {version}, "
            f"read that version, or let the ledger forget the table ({forget_call(coordinated.place)}).",
            version=version + 1,
            path=path,
        ) from None


def _check_never_known(coordinated: CoordinatedStore, version: int) -> None:
    """Raise RatificationUnknownError if the table has staged commits after `version`, its newest published one.

    A staged commit is one that a writer has stored and the ledger may have ratified. Writers stage commits only for tables that
    the ledger knows. So this ledger, which does not know the table, has lost it.
    """
    names = [info.path.rpartition("/")[2] for info in coordinated.list_from(STAGED_DIRECTORY)]
    unpublished_names = [name for name in names if (staged_version(name) or 0) > version]
    if unpublished_names and coordinated.tail() is None:  # otherwise another process has registered the table since
        raise RatificationUnknownError(
            f"The coordinator {coordinated.ledger.shown} does not know the table at {coordinated.root}, which has staged commits "
            f"beyond its version {version}, such as {unpublished_names[0]}: the ledger was lost, or somebody let it forget the "
            "table. Nothing was read or written. rebuild_ledger, of delta_py.repair.rebuild_ledger, shows which of them count, "
            "and registers the table with the ledger.",
            commits={coordinated.root: unpublished_names},
        )


def _undo_late_registration(coordinated: CoordinatedStore, version: int) -> bool:
    """Let the ledger forget the table if this process registered it too late. version: the one with which it was just registered.

    The registration was too late if the log has a later version that the ledger does not know. Then another process had
    registered the table before, and the table has left the ledger since. Returns whether the ledger has forgotten the table.
    """
    try:
        coordinated.check_version_is_free(version + 1)  # raises if the log has this version, but the ledger does not
    except CorruptTableError:
        return coordinated.ledger.forget(coordinated.place, version)
    return False


def _leave_ledger(coordinated: CoordinatedStore, tail: Tail, version: int) -> bool:
    """Publish all commits of a table that needs no coordinator any more, and let the ledger forget it. Returns whether the ledger
    has forgotten the table. version: the one that is being opened, which needs no coordinator."""
    if tail.version != version:
        return False  # an earlier version, from before the table had its coordinator
    coordinated.publish()
    return coordinated.ledger.forget(coordinated.place, version)


def _blocked_error(store: ObjectStore, why: str) -> UnsupportedOperationError:
    """The error for a table that is not opened through its coordinator. why: the middle sentence of the message."""
    return UnsupportedOperationError(
        f"A coordinator has the commits of the table at {store.root}. {why} Nothing was read or written.",
        error_class="DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
        sql_state="KD00G",
        path=store.root,
    )
