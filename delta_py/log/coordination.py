"""Tables whose commits a coordinator ratifies: which one, and that nobody opens them without it.

A table names its coordinator by the property `pydelta.coordinator`, the ledger's identity. It is made known to the ledger when it
is first opened after the commit that made it catalog-managed; by then no writer commits to it without the ledger any more.
Protocol: Catalog-managed Table Enablement; Reader Requirements for Catalog-managed tables; Table Discovery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from delta_py.coordinator.ledger import RatificationUnknownError, Tail, known_otherwise, staged_version, to_forget
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
GROUP = "transactionGroup"
OPTION = "coordinator"
_NAME_ONE = f"give the option {OPTION} with the URL of its ledger, in Spark also by the setting spark.pydelta.{OPTION}"
TIMESTAMPS_PROPERTY = "delta.enableInCommitTimestamps"


def require_coordinator(store: ObjectStore, config: TableConfig) -> CoordinatedStore | None:
    """Return if the table's commits may be read and written by this store: through its coordinator, which is given back, or
    because it has none.

    Raises UnsupportedOperationError (DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED) where no coordinator was named or
    another one, UnsupportedTableFeatureError for a table of a catalog that is no coordinator of pydelta's, CorruptTableError for
    a protocol that lacks what the feature needs.
    """
    if not config.feature(FEATURE):
        return None
    lacking = [name for name in FEATURES[FEATURE].needs if not config.feature(name)]
    if lacking:
        raise CorruptTableError(
            f"The protocol of the table at {store.root} has the feature {FEATURE} and not {', '.join(lacking)}, which that "
            "needs. Add them with the engine that manages the table.",
            error_class="DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
            sql_state="KD004",
            features=lacking,
        )
    identity, store_of_ledger = config.properties.get(IDENTITY_PROPERTY), coordination_of(store)
    if identity is None:
        raise UnsupportedTableFeatureError(
            f"The table at {store.root} is managed by a catalog (feature {FEATURE}), and does not name a coordinator that "
            "pydelta could ask for its commits. Use it through its catalog; or, for a table that is to have a coordinator of "
            f"pydelta's, {_NAME_ONE}.",
            error_class="DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
            sql_state="KD00G",
            features=[FEATURE],
        )
    if store_of_ledger is None:
        raise _blocked(store, f"No coordinator was named: {_NAME_ONE}.")
    if store_of_ledger.ledger.identity != identity:
        raise _blocked(store, f"{store_of_ledger.ledger.shown} is another one. Name the ledger whose identity is {identity}.")
    return store_of_ledger


def coordinated_by(store: ObjectStore, config: TableConfig) -> dict[str, str]:
    """The properties of a table that has, or is to have, these: with those that say who coordinates it, if its protocol asks for
    that. In-commit timestamps go with it, since the files of commits come to their places at any time."""
    properties = dict(config.metadata.configuration)
    coordinated = coordination_of(store)
    if not config.feature(FEATURE) or coordinated is None:
        return properties
    identity = config.properties.get(IDENTITY_PROPERTY) or coordinated.ledger.identity
    properties = {name: value for name, value in properties.items() if name.lower() != TIMESTAMPS_PROPERTY.lower()}
    return {**properties, IDENTITY_PROPERTY: identity, TIMESTAMPS_PROPERTY: "true"}


def named_group(actions: Iterable[Action], group: Mapping[str, Any]) -> tuple[Action, ...]:
    """A commit of a transaction over tables, which its commitInfo names: by `transactionId`, and by all `participants` where it
    is as it is to be ratified. One that names none is a draft, which never becomes a version."""
    return tuple(CommitInfo({**action.values, GROUP: group}) if isinstance(action, CommitInfo) else action for action in actions)


def admit(store: ObjectStore, config: TableConfig, version: int, *, is_newest: bool) -> bool:
    """As require_coordinator, of a version that is being opened; whether the version is to be looked for once more, because what
    the ledger said does not count. is_newest: it was taken for the newest, as the log was listed.

    A table that its ledger does not know yet is made known to it, by its newest version. One whose newest version needs no
    coordinator any more is forgotten. Raises UnsupportedOperationError where the ledger knows another table at the place, or the
    table at another place; RatificationUnknownError where the ledger should know it, and does not; LogFileNotFoundError where
    the ledger knows versions behind the newest whose commits are gone.
    """
    managed, coordinated = require_coordinator(store, config), coordination_of(store)
    if coordinated is None:
        return False
    tail = coordinated.last_tail
    if tail is not None and tail.table_id != config.metadata.id:
        raise known_otherwise(coordinated.ledger.shown, coordinated.place, coordinated.place)
    if is_newest:
        check_newest(store, version)
    if managed is not None:
        if tail is None and version == max(commit.version for commit in list_commits(store)):
            _check_never_known(managed, version)
            managed.register(version, config.metadata.id)
            return _is_late(managed, version)
        return False
    return tail is not None and coordinated.transaction is None and _let_go(coordinated, tail, version)


def check_newest(store: ObjectStore, version: int) -> None:
    """Check that the newest version of the log, as it was listed, has all that the table's ledger knows behind it. The next one
    may have been ratified since; if it was not, it is lost. Raises LogFileNotFoundError."""
    coordinated = coordination_of(store)
    tail = None if coordinated is None else coordinated.last_tail
    if coordinated is None or tail is None or tail.version <= version:
        return
    path = f"{LOG_DIRECTORY}/{commit_file_name(version + 1)}"
    try:
        coordinated.read_range(path, 0, 1)
    except FileNotFoundError:
        raise LogFileNotFoundError(
            f"The coordinator {coordinated.ledger.shown} has ratified version {version + 1} of the table at {coordinated.root}, "
            f"and {path} is missing. Nothing was read or written. Restore the file; or, to give up all behind version {version}, "
            f"read that version, or have the ledger forget the table ({to_forget(coordinated.place)}).",
            version=version + 1,
            path=path,
        ) from None


def _check_never_known(coordinated: CoordinatedStore, version: int) -> None:
    """Commits are staged only for tables that the ledger knows: this one has lost what it knew, and may have ratified them."""
    names = [info.path.rpartition("/")[2] for info in coordinated.list_from(STAGED_DIRECTORY)]
    beyond = [name for name in names if (staged_version(name) or 0) > version]
    if beyond and coordinated.tail() is None:  # or another process has made it known meanwhile
        raise RatificationUnknownError(
            f"The coordinator {coordinated.ledger.shown} does not know the table at {coordinated.root}, which has staged commits "
            f"beyond its version {version}, such as {beyond[0]}: the ledger was lost, or was told to forget the table. Nothing "
            "was read or written. rebuild_ledger, of delta_py.repair.rebuild_ledger, says which of them count, and has the "
            "ledger know the table.",
            commits={coordinated.root: beyond},
        )


def _is_late(coordinated: CoordinatedStore, version: int) -> bool:
    """Whether a table was made known by a version behind which it has others, which the ledger does not know: others had done it
    before, and the table has left the ledger since. It is forgotten then."""
    try:
        coordinated.check_place(version + 1)
    except CorruptTableError:
        return coordinated.ledger.forget(coordinated.place, version)
    return False


def _let_go(coordinated: CoordinatedStore, tail: Tail, version: int) -> bool:
    if tail.version != version:
        return False  # an earlier version, of before the table came to its coordinator
    coordinated.publish()
    return coordinated.ledger.forget(coordinated.place, version)


def _blocked(store: ObjectStore, why: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"A coordinator has the commits of the table at {store.root}. {why} Nothing was read or written.",
        error_class="DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
        sql_state="KD00G",
        path=store.root,
    )
