"""DROP FEATURE: remove everything that a table has because of a feature, then remove the feature from the protocol.

    drop_feature(store, "deletionVectors")
    drop_feature(store, "deletionVectors", truncate_history=True)

Earlier versions still use the feature. If readers have to know it, clients that do not know it must never read these versions,
not even to rebuild a newer one. So drop_feature writes three checkpoints that can be read without the feature,
and adds the feature checkpointProtection, which protects them; or, with truncate_history, the versions that use it are deleted
first, which takes two runs with a day between them. After any interruption the table is intact, and the next run continues.
Protocol: Table Features; Protocol Evolution; Metadata Cleanup.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from delta_py.alter.feature_traces import TRACES, Traces, uses_feature
from delta_py.checkpoint import cleanup
from delta_py.commit.post_commit import checkpoint, logging_failures
from delta_py.commit.transaction import Transaction
from delta_py.definition.properties import known_name
from delta_py.definition.protocols import with_features, without_feature
from delta_py.errors import (
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    InvalidOptionError,
    UnsupportedOperationError,
)
from delta_py.log.catalog_contract import refuse_drop
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import available_in, list_log
from delta_py.object_stores.open_store import refuse_in_transaction
from delta_py.protocol.features import FEATURES, PROTECTED_BEFORE, PROTECTION
from delta_py.protocol.intervals import LOG_RETENTION, TRUNCATED_HISTORY, retention_ms
from delta_py.protocol.paths import LOG_DIRECTORY, commit_file_name
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore

# How many checkpoints without the feature are written. A client that cannot read the newest ones tries older checkpoints.
_BARRIERS = 3
# How often the commit that drops the feature is tried, if other writers commit first.
_MAX_ATTEMPTS = 20


def drop_feature(store: ObjectStore, name: str, *, truncate_history: bool = False, now_ms: int | None = None) -> int:
    """Drop a table feature; returns the version. now_ms: ms since 1970, for tests.

    Raises UnsupportedOperationError with the conditions DELTA_FEATURE_DROP_..., before anything is changed: for a name that is
    unknown or not in the protocol, for a feature that cannot be dropped, or that another needs. With truncate_history,
    DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD and DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST when the feature is not used any
    more, but versions that use it are too young to be deleted.
    DeltaConcurrentModificationException when other writers use it again in the meantime.
    """
    refuse_in_transaction(store, "DROP FEATURE of", "Nothing was changed.")
    snapshot = Snapshot.load(store)
    feature = _find_droppable_feature(snapshot, name, truncate_history=truncate_history)
    snapshot.config.require(Operation.WRITE)
    refuse_drop(store, feature)
    traces = TRACES[feature]  # everything that a table has because of the feature
    has_changed = traces.remove(store)  # whether the newest version used the feature until now
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    if feature == PROTECTION:  # it has no traces but the old versions that it protects
        _delete_old_history(store, now_ms)
        _check_protected_versions_deleted(store)
    elif traces.protects_history and truncate_history:
        _put_barrier(store)  # the versions from this one on can be loaded without the commits that use the feature
        if has_changed:  # the versions until now use the feature, and are too young to be deleted
            _refuse_until_older(Snapshot.load(store), feature, "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD")
        _delete_old_history(store, now_ms)
        _check_history(store, feature, traces)
    elif traces.protects_history:
        for _ in range(_BARRIERS):
            _put_barrier(store)
    adds_protection = traces.protects_history and not truncate_history
    version = _commit_drop(store, feature, traces, adds_protection=adds_protection, truncate_history=truncate_history)
    if adds_protection:  # then readers that take the newest checkpoint need not read this commit
        with logging_failures(store, version, "was followed by no checkpoint"):
            checkpoint(Snapshot.load(store))
    return version


# ---------------------------------------------------------------- checks


def _find_droppable_feature(snapshot: Snapshot, requested_name: str, *, truncate_history: bool) -> str:
    """The feature's name as the protocol spells it. Raises UnsupportedOperationError if it cannot be dropped, as drop_feature
    says."""
    table_features = {name.lower(): name for name in snapshot.config.features}
    known_features = {name.lower(): name for name in FEATURES}
    feature = table_features.get(requested_name.lower())
    if feature is None:
        _refuse_absent(requested_name, known_features)
    if feature not in known_features.values():
        _refuse(
            feature,
            "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            "0AKDC",
            "this version of pydelta does not know it. Use a newer one",
        )
    if feature not in TRACES:
        _refuse(feature, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "0AKDC", "this feature cannot be dropped")
    needs_history = TRACES[feature].protects_history or feature == PROTECTION
    if truncate_history and not needs_history:
        _refuse(
            feature,
            "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
            "42000",
            "no history has to be given up for it. Drop it without TRUNCATE HISTORY",
        )
    if feature == PROTECTION and not truncate_history:
        raise UnsupportedOperationError(
            f"{feature} can be dropped only with the versions that it protects. Nothing was changed. Drop it "
            "with TRUNCATE HISTORY.",
            error_class="DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            sql_state="55000",
            feature=feature,
        )
    dependents = sorted(name for name in snapshot.config.features if name in FEATURES and feature in FEATURES[name].needs)
    if dependents:
        _refuse(feature, "DELTA_FEATURE_DROP_DEPENDENT_FEATURE", "55000", f"{', '.join(dependents)} need it. Drop these first")
    return feature


def _refuse_absent(requested_name: str, known_features: Mapping[str, str]) -> NoReturn:
    """Raise the error for a feature that the table does not have. It says whether the name is a property, a feature that is
    not in the protocol, or unknown.
    """
    if requested_name.lower().startswith("delta."):
        try:
            name = known_name(requested_name)
        except InvalidOptionError:
            name = None
        if name is not None:
            _refuse(
                requested_name,
                "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
                "42000",
                "it is a table property. Unset it instead",
            )
    if requested_name.lower() in known_features:
        _refuse(requested_name, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "55000", "it is not in the table's protocol")
    _refuse(
        requested_name, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", "0AKDC", "this version of pydelta knows no such feature"
    )


def _refuse(feature: str, condition: str, sql_state: str, why: str) -> NoReturn:
    """Raise the error for a feature that cannot be dropped. condition: its error class. why: the reason, and what to do."""
    raise UnsupportedOperationError(
        f"The table feature {feature} cannot be dropped: {why}. Nothing was changed.",
        error_class=condition,
        sql_state=sql_state,
        feature=feature,
    )


# ---------------------------------------------------------------- versions that use it


def _put_barrier(store: ObjectStore) -> None:
    """Make a commit without actions, and a checkpoint of its version. Readers that start from this checkpoint read no earlier
    commit, so they never see the dropped feature."""
    Transaction(Snapshot.load(store)).commit("Empty Commit", {})
    checkpoint(Snapshot.load(store))


def _delete_old_history(store: ObjectStore, now_ms: int) -> None:
    """Delete the log of versions older than the retention time for DROP FEATURE, or for logs if that is shorter. The cleanup
    stops after some seconds by its clock; here the clock stands still, so that it deletes all of them."""
    config = Snapshot.load(store).config
    retention_time_ms = min(retention_ms(config.properties, TRUNCATED_HISTORY), retention_ms(config.properties, LOG_RETENTION))
    writer = LogWriter(store, config)
    cleanup.clean_log(store, writer, config, now_ms=now_ms, clock=lambda: 0.0, retention_override_ms=retention_time_ms)


def _check_history(store: ObjectStore, feature: str, traces: Traces) -> None:
    """Raises as _refuse_until_older if a version that is still in the log uses the feature: the oldest one that can be rebuilt,
    or a later commit."""
    listing = list_log(store, 0)
    oldest, _ = available_in(store, listing)
    newest = Snapshot.load(store)
    is_used = not traces.is_gone(Snapshot.load(store, version=oldest)) or any(
        uses_feature(traces, store.read(f"{LOG_DIRECTORY}/{commit_file_name(version)}"))
        for version in sorted(listing.commits)
        if version >= oldest
    )
    if is_used:
        _refuse_until_older(newest, feature, "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST")


def _refuse_until_older(snapshot: Snapshot, feature: str, condition: str) -> NoReturn:
    """Raise the error that asks the user to run the command again later. condition: its error class."""
    properties = snapshot.config.properties
    log, truncated = (properties.get(name, default) for name, default in (LOG_RETENTION, TRUNCATED_HISTORY))
    raise UnsupportedOperationError(
        f"The table at {snapshot.table_root} does not use the feature {feature} any more, but versions in its history do, so the "
        f"feature stays in the protocol for now. Drop it again when they are older than {log}, or with TRUNCATE HISTORY when "
        f"they are older than {truncated}.",
        error_class=condition,
        sql_state="22KD0",
        feature=feature,
    )


def _check_protected_versions_deleted(store: ObjectStore) -> None:
    """Raise UnsupportedOperationError if the log still has a version before the one that checkpointProtection names."""
    snapshot = Snapshot.load(store)
    end_version = snapshot.config.properties.integer(PROTECTED_BEFORE, 0)
    oldest_commit = min(list_log(store, 0).commits)
    if oldest_commit < end_version:
        raise UnsupportedOperationError(
            f"The versions before {end_version} of the table at {snapshot.table_root} use features that it does not have any "
            f"more, and the log still has those from {oldest_commit} on. {PROTECTION} cannot be dropped before they are old "
            f"enough to go: {snapshot.config.properties.get(*TRUNCATED_HISTORY)}. Nothing was changed.",
            error_class="DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
            sql_state="22KD0",
            feature=PROTECTION,
        )


# ---------------------------------------------------------------- the protocol


def _commit_drop(store: ObjectStore, feature: str, traces: Traces, *, adds_protection: bool, truncate_history: bool) -> int:
    """Make the commit that drops the feature; returns its version. It must be the version after the one that was checked for
    traces of the feature: in between, another writer may use the feature again. adds_protection: add the feature
    checkpointProtection for all earlier versions.
    """
    for attempt in range(_MAX_ATTEMPTS):
        snapshot = Snapshot.load(store)
        if not traces.is_gone(snapshot):
            raise DeltaConcurrentModificationException(
                f"Version {snapshot.version} of the table at {store.root} uses the feature {feature} again: another writer "
                "brought it back. The feature was not dropped. Drop it again.",
                error_class="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
                sql_state="40000",
                feature=feature,
            )
        removed_names = {name.lower() for name in traces.properties}
        properties = {name: value for name, value in snapshot.metadata.configuration.items() if name.lower() not in removed_names}
        protocol = without_feature(snapshot.protocol, feature)
        if adds_protection:
            protocol = with_features(protocol, {PROTECTION})
            properties[PROTECTED_BEFORE] = str(snapshot.version + 1)
        metadata = replace(snapshot.metadata, configuration=properties)
        TableConfig(protocol, metadata).require(Operation.WRITE)
        transaction = Transaction(snapshot).must_be_next().set_protocol(protocol).set_metadata(metadata)
        for domain in traces.domains(snapshot):
            transaction.set_domain(domain)
        try:
            parameters = {"featureName": feature, "truncateHistory": truncate_history}
            return transaction.commit("DROP FEATURE", parameters)
        except ConcurrentWriteException:
            if attempt == _MAX_ATTEMPTS - 1:
                raise
    raise AssertionError("the last round returns or raises")
