"""Changes of a table's properties, protocol versions and table features. They leave its rows unchanged.

    set_properties(store, {"delta.enableDeletionVectors": "true"}) -> version

Each is one commit of metadata and protocol; if it turns column mapping off, it also rewrites all files (remove_mapping.py). A
property also enables the feature that it needs. A property that cannot be turned on for existing rows, because their files would
lack what the feature promises, is refused by name.
Protocol: Change Metadata; Protocol Evolution; Table Features for New and Existing Tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from delta_py.alter.remove_mapping import check_names, commit_removal
from delta_py.commit.action_rules import check_row_tracking, suspended_row_tracking_error
from delta_py.commit.prepared import ROW_TRACKING_ENABLED, ROW_TRACKING_SUSPENDED
from delta_py.definition.create import CHANGE_COLUMNS, with_id_columns
from delta_py.definition.properties import (
    MANIFESTS,
    READER_VERSION,
    VALIDATION_FAILED,
    VECTORS,
    WRITER_VERSION,
    check_manifests,
    known_name,
    refuse_constraints,
    split_configuration,
)
from delta_py.definition.protocols import features_in_use, protocol_of_versions, with_features
from delta_py.definition.row_tracking import count_files_without_ids, give_row_ids
from delta_py.definition.timestamps import ENABLED as TIMESTAMPS
from delta_py.definition.timestamps import timestamped_properties, transaction_at
from delta_py.errors import (
    ConcurrentWriteException,
    InvalidOptionError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_py.log.catalog_contract import Maintenance, refuse_forbidden
from delta_py.log.coordination import FEATURE as COORDINATED
from delta_py.log.coordination import properties_with_coordinator
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.features import WRITER_FEATURES_VERSION, Properties
from delta_py.protocol.iceberg_compat import enabled_versions
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats_columns import PROPERTY as STATS_COLUMNS
from delta_py.statistics.stats_columns import check_stats_columns
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import schema_to_json
from delta_py.types.similar_names import did_you_mean

COMMENT = "comment"
"""A property of this name sets the table's description."""
_VERSIONS = (READER_VERSION, WRITER_VERSION)
# How often a commit that must be the next version is tried, if other writers commit first.
_MAX_ATTEMPTS = 20


@dataclass(slots=True)
class _Change:
    """A change of a table's configuration; the rule of each property completes it before it is committed.

    configuration, schema_string, description: those of the table's metadata after the change. needs_all_files: the commit fails
    if another writer adds files in the meantime.
    removes_mapping: the commit turns column mapping off, and so rewrites all files. lacks_row_ids: some files have no row ids, so
    the change must not be committed yet. timestamp_ms: the commit's time, if the new properties contain it; else None.
    """

    snapshot: Snapshot
    configuration: dict[str, str]
    schema_string: str = field(init=False)
    description: str | None = field(init=False)
    needs_all_files: bool = False
    removes_mapping: bool = False
    lacks_row_ids: bool = False
    timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        self.schema_string = self.snapshot.metadata.schema_string
        self.description = self.snapshot.metadata.description

    @property
    def old_properties(self) -> Properties:
        """The table's properties before the change."""
        return self.snapshot.config.properties

    @property
    def new_properties(self) -> Properties:
        """The table's properties after the change."""
        return Properties(self.configuration)

    def turns_on(self, name: str) -> bool:
        """Whether the boolean property becomes true, and was not true before."""
        return self.new_properties.boolean(name) and not self.old_properties.boolean(name)


# ---------------------------------------------------------------- properties and features


def set_properties(store: ObjectStore, properties: Mapping[str, str]) -> int:
    """Set table properties, including `delta.feature.<name>` and the protocol's versions; returns the version: the new one, or
    the newest if nothing changes.

    Raises InvalidOptionError for an invalid name or value; UnsupportedOperationError and UnsupportedTableFeatureError for a
    property or feature that this table cannot get; SchemaMismatchError for column names that a property reserves.
    """
    conflict_count = 0
    while True:
        try:
            version = _set_properties_once(store, properties)
        except ConcurrentWriteException as error:  # a commit that names its own version must be the next one
            conflict_count += 1
            # The commit that turns column mapping off changes domains, and has rewritten all files: this is not repeated.
            has_rewritten = error.error_class == "DELTA_CONCURRENT_DOMAIN_METADATA"
            if conflict_count == _MAX_ATTEMPTS or has_rewritten:
                raise
            continue
        if version is not None:
            return version
        give_row_ids(store)  # then the loop tries the change again


def _set_properties_once(store: ObjectStore, properties: Mapping[str, str]) -> int | None:
    """Try once to make the change of set_properties; returns the version. Returns None, and commits nothing, if files without row
    ids prevent the change."""
    snapshot = Snapshot.load(store)
    new_properties, features = split_configuration(properties)
    versions = {name: new_properties.pop(name) for name in _VERSIONS if name in new_properties}
    refuse_constraints(new_properties)
    replaced_names = {name.lower() for name in new_properties}
    other_properties = {
        name: value for name, value in snapshot.metadata.configuration.items() if name.lower() not in replaced_names
    }
    description = new_properties.pop(COMMENT, None)
    change = _Change(snapshot, {**other_properties, **new_properties})
    # COORDINATED is the feature catalogManaged: from this commit on, a coordinator decides which commits become versions.
    if COORDINATED in features:
        metadata = replace(snapshot.metadata, configuration=change.configuration)
        change.configuration = properties_with_coordinator(
            store, TableConfig(with_features(snapshot.protocol, features), metadata)
        )
    if description is not None:
        change.description = description
    protocol = snapshot.protocol
    if versions:
        reader, writer = (
            int(versions.get(name, current_version))
            for name, current_version in zip(_VERSIONS, (protocol.min_reader_version, protocol.min_writer_version), strict=True)
        )
        protocol = _upgraded_protocol(protocol, reader, writer)
    return _commit(change, protocol, features, "SET TBLPROPERTIES", {"properties": dict(properties)})


def unset_properties(store: ObjectStore, names: Sequence[str], *, if_exists: bool = False) -> int:
    """Remove table properties, so that their defaults hold; returns the new version, or the newest if nothing changes.

    if_exists: ignore names that the table does not have. Raises InvalidOptionError
    (DELTA_UNSET_NON_EXISTENT_PROPERTY) otherwise, and UnsupportedOperationError for a property that cannot be removed.
    """
    snapshot = Snapshot.load(store)
    names_by_lower_case = {name.lower(): name for name in snapshot.metadata.configuration}
    stored_names = [name if name.lower() in names_by_lower_case else known_name(name) for name in names]
    missing = [name for name in stored_names if name.lower() not in names_by_lower_case]
    if missing and not if_exists:
        raise InvalidOptionError(
            f"The table at {store.root} has no property {', '.join(missing)}; nothing was changed."
            f"{did_you_mean(missing[0], names_by_lower_case.values())} Correct the name, or leave it out.",
            error_class="DELTA_UNSET_NON_EXISTENT_PROPERTY",
            sql_state="42616",
            properties=missing,
        )
    removed_names = {name.lower() for name in stored_names}
    _refuse_internal(removed_names & names_by_lower_case.keys())
    return _commit_unset(snapshot, removed_names, {"properties": list(names), "ifExists": if_exists})


def unset_internal(store: ObjectStore, names: Sequence[str]) -> int:
    """Remove those of the properties that the table has; returns the version. DROP FEATURE uses it, because it also removes
    properties that only writers maintain, which unset_properties refuses.
    """
    removed_names = {name.lower() for name in names}
    return _commit_unset(Snapshot.load(store), removed_names, {"properties": list(names), "ifExists": True})


def _commit_unset(snapshot: Snapshot, removed_names: set[str], parameters: Mapping[str, object]) -> int:
    """Commit the removal of properties; returns the version. removed_names: in lower case."""
    properties = {name: value for name, value in snapshot.metadata.configuration.items() if name.lower() not in removed_names}
    version = _commit(_Change(snapshot, properties), snapshot.protocol, frozenset(), "UNSET TBLPROPERTIES", parameters)
    assert version is not None, "nothing was turned on"  # only row tracking that is turned on returns None
    return version


def add_feature(store: ObjectStore, name: str) -> int:
    """Add a feature, and those that it needs, to the table's protocol; returns the version as set_properties.

    Raises InvalidOptionError (DELTA_UNSUPPORTED_FEATURES_IN_CONFIG) for an unknown feature,
    UnsupportedTableFeatureError for a feature that this version cannot write.
    """
    return set_properties(store, {f"delta.feature.{name}": "supported"})


def _refuse_internal(names: set[str]) -> None:
    """Raise InvalidOptionError for properties that writers maintain. names: in lower case."""
    prefixes = (
        "delta.columnmapping.maxcolumnid",
        "delta.rowtracking.",
        "delta.incommittimestampenablement",
        "delta.identity",
        "delta.requirecheckpointprotection",
    )
    internal = sorted(name for name in names if name.startswith(prefixes))
    if internal:
        raise InvalidOptionError(
            f"{', '.join(internal)} is Delta's own bookkeeping and cannot be taken away. Nothing was changed.",
            error_class="DELTA_UNKNOWN_CONFIGURATION",
            sql_state="F0000",
            properties=internal,
        )


# ---------------------------------------------------------------- protocol versions


def upgrade_protocol(store: ObjectStore, reader_version: int, writer_version: int) -> int:
    """Raise the protocol's versions; returns the version as set_properties. A version that is lower than the table's changes
    nothing.

    Raises InvalidOptionError for versions that do not exist.
    """
    current = Snapshot.load(store).protocol
    versions = max(reader_version, current.min_reader_version), max(writer_version, current.min_writer_version)
    return set_properties(store, dict(zip(_VERSIONS, map(str, versions), strict=True)))


def _upgraded_protocol(current: Protocol, reader: int, writer: int) -> Protocol:
    """The protocol after a user sets its versions. reader, writer: the requested versions. Raises InvalidOptionError for a
    version that is lower than the current one, or does not exist."""
    if reader < current.min_reader_version or writer < current.min_writer_version:
        raise InvalidOptionError(
            f"The table's protocol is ({current.min_reader_version},{current.min_writer_version}) and cannot go down to "
            f"({reader},{writer}): rows may depend on it. Nothing was changed.",
            error_class="DELTA_INVALID_PROTOCOL_DOWNGRADE",
            sql_state="KD004",
            reader_version=reader,
            writer_version=writer,
        )
    if (reader, writer) == (current.min_reader_version, current.min_writer_version):
        return current
    target_protocol = protocol_of_versions(reader, writer)  # raises for versions that do not exist
    if current.writer_features is not None:
        # All features are listed already, so a higher version adds none.
        return current
    if target_protocol.min_writer_version < WRITER_FEATURES_VERSION:
        return target_protocol
    # The new protocol lists its features: those that the old versions stand for. The metadata has no effect on this.
    listed_protocol = with_features(target_protocol, TableConfig(current, Metadata("", '{"type":"struct","fields":[]}')).features)
    return replace(listed_protocol, min_reader_version=max(reader, listed_protocol.min_reader_version))


# ---------------------------------------------------------------- requirements of each property on an existing table


def _commit(
    change: _Change, protocol: Protocol, features: frozenset[str], operation: str, parameters: Mapping[str, object]
) -> int | None:
    """Check and complete the change by the rule of each property, and commit it. protocol: the table's, with the versions that
    the caller requests. features: the features that the caller requests; those that schema and properties need are added.
    operation, parameters: for the history. Returns the version; None, without a commit, if the change requires row ids that files
    lack."""
    snapshot = change.snapshot
    for rule in (
        _apply_column_mapping,
        _apply_iceberg_compat,
        _apply_row_tracking,
        _apply_in_commit_timestamps,
        _check_change_data_feed,
        _check_symlink_manifest,
    ):
        rule(change)
    metadata = replace(
        snapshot.metadata,
        configuration=change.configuration,
        schema_string=change.schema_string,
        description=change.description,
    )
    schema = TableConfig(protocol, metadata).schema
    protocol = with_features(protocol, {*features_in_use(schema, change.new_properties), *features})
    if metadata == snapshot.metadata and protocol == snapshot.protocol:
        return snapshot.version
    TableConfig(protocol, metadata).require(Operation.WRITE)
    if change.new_properties.get(STATS_COLUMNS) != change.old_properties.get(STATS_COLUMNS):
        check_stats_columns(TableConfig(protocol, metadata))
    if change.lacks_row_ids:
        return None
    if change.removes_mapping:
        refuse_forbidden(snapshot.store, Maintenance.REORGANIZATION, "Removing column mapping from", "Nothing was changed.")
    transaction = transaction_at(snapshot, change.timestamp_ms)
    if change.needs_all_files:
        transaction.read_rows()
    if metadata != snapshot.metadata:
        transaction.set_metadata(metadata)
    if protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    if change.removes_mapping:
        return commit_removal(transaction, snapshot)
    return transaction.commit(operation, parameters)


def _apply_column_mapping(change: _Change) -> None:
    """When column mapping is turned on, the present column names in the files become the physical names. When it is turned off,
    the commit rewrites all files.
    Protocol: Column Mapping; Writer Requirements for Column Mapping.
    """
    old_mode, new_mode = column_mapping.mode(change.old_properties), column_mapping.mode(change.new_properties)
    if old_mode == new_mode:
        return
    if new_mode == "none":
        schema = change.snapshot.schema
        check_names(schema)
        change.removes_mapping, change.schema_string = True, schema_to_json(column_mapping.without_column_mapping(schema))
        change.configuration.pop(column_mapping.MAX_ID_PROPERTY, None)
        return
    column_mapping.check_mode_change(old_mode, new_mode)
    _assign_ids(change)


def _assign_ids(change: _Change) -> None:
    """Give ids and physical names to the columns that have none. If the table had no column mapping so far, names and ids in its
    schema are replaced: they come from copies of other schemas, and are not those of its files.
    """
    old_schema = change.snapshot.schema
    is_new = column_mapping.mode(change.old_properties) == "none"
    last_id = max(change.old_properties.integer(column_mapping.MAX_ID_PROPERTY, 0), column_mapping.max_column_id(old_schema))
    base_schema = column_mapping.without_column_mapping(old_schema) if is_new else old_schema
    schema, last_id = column_mapping.assign(base_schema, lambda f: f.name, change.new_properties, last_id + 1)
    change.schema_string = schema_to_json(schema)
    change.configuration[column_mapping.MAX_ID_PROPERTY] = str(last_id)


def _apply_iceberg_compat(change: _Change) -> None:
    """If a version of IcebergCompat is turned on or off, no other writer may add files in the meantime: they would not meet its
    requirements. Protocol: Iceberg Compatibility V2."""
    change.needs_all_files |= enabled_versions(change.new_properties) != enabled_versions(change.old_properties)
    wants_ids, had_ids = (
        column_mapping.wants_nested_ids(properties) for properties in (change.new_properties, change.old_properties)
    )
    if column_mapping.mode(change.old_properties) != "none" and wants_ids and not had_ids:
        _assign_ids(change)


def _apply_row_tracking(change: _Change) -> None:
    """Existing rows need ids: files get them when they are added, if the protocol supports the feature by then.
    Protocol: Row Tracking; Writer Requirements for Row Tracking.
    """
    check_row_tracking(change.snapshot.table_root, change.new_properties)
    resumes = change.old_properties.boolean(ROW_TRACKING_SUSPENDED) and change.new_properties.boolean(ROW_TRACKING_ENABLED)
    if not (resumes or change.turns_on(ROW_TRACKING_ENABLED)):
        return
    change.lacks_row_ids = count_files_without_ids(change.snapshot) > 0
    if change.lacks_row_ids and change.old_properties.boolean(ROW_TRACKING_ENABLED):  # only another client makes such a table
        raise suspended_row_tracking_error(change.snapshot.table_root)
    # If the table's protocol lacks the feature, files that other writers add in the meantime get no ids.
    change.needs_all_files |= not change.snapshot.config.feature("rowTracking")
    change.configuration = with_id_columns(change.configuration)


def _apply_in_commit_timestamps(change: _Change) -> None:
    """From this commit on, versions carry their timestamps: the table's properties record this version and its timestamp.
    Protocol: In-Commit Timestamps; Writer Requirements for In-Commit Timestamps.
    """
    if change.snapshot.config.feature(COORDINATED) and not change.new_properties.boolean(TIMESTAMPS):
        raise UnsupportedOperationError(
            f"{TIMESTAMPS} cannot be turned off while a coordinator has the commits of the table at "
            f"{change.snapshot.table_root}: the files of commits come to their places at any time. Nothing was changed. Drop the "
            "feature catalogManaged first.",
            error_class="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            sql_state="0AKDC",
        )
    change.configuration, change.timestamp_ms = timestamped_properties(change.snapshot, change.configuration)


def _check_change_data_feed(change: _Change) -> None:
    """The columns that the change data feed adds must not exist in the table."""
    if not change.turns_on("delta.enableChangeDataFeed"):
        return
    reserved = [name for name in change.snapshot.schema.names if name.lower() in CHANGE_COLUMNS]
    if reserved:
        raise SchemaMismatchError(
            f"delta.enableChangeDataFeed: the columns {', '.join(reserved)} have names that the change data feed adds itself. "
            "Nothing was changed. Rename them first.",
            error_class="RESERVED_CDC_COLUMNS_ON_WRITE",
            sql_state="42939",
            columns=reserved,
        )


def _check_symlink_manifest(change: _Change) -> None:
    """Symlink manifests and deletion vectors exclude each other: readers of the manifests do not know deletion vectors."""
    if any(change.turns_on(name) for name in (MANIFESTS, VECTORS)):
        check_manifests(change.new_properties)
    if not change.turns_on(MANIFESTS):
        return
    for batch in change.snapshot.file_batches():
        vectors = batch.files["deletion_vector"]
        if vectors.null_count < len(vectors):
            raise UnsupportedOperationError(
                f"{MANIFESTS} cannot be true while rows of the table are deleted by deletion vectors: readers of symlink "
                "manifests would show them. Nothing was changed. Have OPTIMIZE rewrite these files "
                "(spark.databricks.delta.optimize.maxDeletedRowsRatio set to 0).",
                error_class=f"{VALIDATION_FAILED}.EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
                sql_state="0A000",
            )
