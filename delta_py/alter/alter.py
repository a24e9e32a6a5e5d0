"""Changes to what a table is: properties, protocol versions, table features. They leave its rows alone.

    set_properties(store, {"delta.enableDeletionVectors": "true"}) -> version

Each is one commit of metadata and protocol; where column mapping is turned off, of all files too, which are written anew for it
(remove_mapping.py). A property brings the feature that it needs along. What cannot be turned on
for rows that are there (their files would lack what the feature promises) is refused by name.
Protocol: Change Metadata; Protocol Evolution; Table Features for New and Existing Tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from delta_py.alter.remove_mapping import check_names, commit_removal
from delta_py.commit.prepared import ROW_TRACKING_ENABLED, ROW_TRACKING_SUSPENDED
from delta_py.commit.transaction import check_row_tracking, suspended_row_tracking
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
from delta_py.definition.row_tracking import give_row_ids, without_ids
from delta_py.definition.timestamps import ENABLED as TIMESTAMPS
from delta_py.definition.timestamps import stamped, transaction_at
from delta_py.errors import (
    ConcurrentWriteException,
    InvalidOptionError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_py.log.coordination import FEATURE as COORDINATED
from delta_py.log.coordination import coordinated_by
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.features import WRITER_FEATURES_VERSION, Properties
from delta_py.protocol.iceberg_compat import asked_versions
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats_columns import PROPERTY as STATS_COLUMNS
from delta_py.statistics.stats_columns import check_stats_columns
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import schema_to_json

COMMENT = "comment"
"""Set like a property, it is the table's description."""
_VERSIONS = (READER_VERSION, WRITER_VERSION)
_LOST_ROUNDS = 20


@dataclass(slots=True)
class _Change:
    """A table on its way from one configuration to another. configuration, schema_string: as they will be.
    needs_all_files: the commit holds only while no other adds files. removes_mapping: it writes them anew.
    lacks_row_ids: it must not be made yet. timestamp_ms: what the commit says of its own time and version; None when it says
    nothing."""

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
    def before(self) -> Properties:
        return self.snapshot.config.properties

    @property
    def after(self) -> Properties:
        return Properties(self.configuration)

    def turns_on(self, name: str) -> bool:
        return self.after.boolean(name) and not self.before.boolean(name)


# ---------------------------------------------------------------- properties and features


def set_properties(store: ObjectStore, properties: Mapping[str, str]) -> int:
    """Set table properties, `delta.feature.<name>` and the protocol's versions among them; returns the version: the new one,
    or the newest when all is so already.

    Raises InvalidOptionError for a name or value that cannot be; UnsupportedOperationError and UnsupportedTableFeatureError
    for what this table cannot get; SchemaMismatchError for column names that a property reserves.
    """
    lost = 0
    while True:
        try:
            version = _try_properties(store, properties)
        except ConcurrentWriteException as error:  # a commit that speaks of its version must be the next one
            lost += 1
            has_rewritten = error.error_class == "DELTA_CONCURRENT_DOMAIN_METADATA"  # all files, as it seems
            if lost == _LOST_ROUNDS or has_rewritten:
                raise
            continue
        if version is not None:
            return version
        give_row_ids(store)


def _try_properties(store: ObjectStore, properties: Mapping[str, str]) -> int | None:
    """As set_properties; None when all would be well but for files without row ids."""
    snapshot = Snapshot.load(store)
    new_properties, features = split_configuration(properties)
    versions = {name: new_properties.pop(name) for name in _VERSIONS if name in new_properties}
    refuse_constraints(new_properties)
    replaced = {name.lower() for name in new_properties}
    other_properties = {name: value for name, value in snapshot.metadata.configuration.items() if name.lower() not in replaced}
    description = new_properties.pop(COMMENT, None)
    change = _Change(snapshot, {**other_properties, **new_properties})
    if COORDINATED in features:
        metadata = replace(snapshot.metadata, configuration=change.configuration)
        change.configuration = coordinated_by(store, TableConfig(with_features(snapshot.protocol, features), metadata))
    if description is not None:
        change.description = description
    protocol = snapshot.protocol
    if versions:
        reader, writer = (
            int(versions.get(name, now))
            for name, now in zip(_VERSIONS, (protocol.min_reader_version, protocol.min_writer_version), strict=True)
        )
        protocol = _upgraded(protocol, reader, writer)
    return _commit(change, protocol, features, "SET TBLPROPERTIES", {"properties": dict(properties)})


def unset_properties(store: ObjectStore, names: Sequence[str], *, if_exists: bool = False) -> int:
    """Take table properties back, so that their defaults hold; returns the version as set_properties.

    if_exists: names that the table does not have are passed over. Raises InvalidOptionError
    (DELTA_UNSET_NON_EXISTENT_PROPERTY) otherwise, and UnsupportedOperationError for what cannot be taken back.
    """
    snapshot = Snapshot.load(store)
    present = {name.lower(): name for name in snapshot.metadata.configuration}
    wanted = [name if name.lower() in present else known_name(name) for name in names]
    missing = [name for name in wanted if name.lower() not in present]
    if missing and not if_exists:
        raise InvalidOptionError(
            f"The table at {store.root} has no property {', '.join(missing)}; nothing was changed. Leave it out.",
            error_class="DELTA_UNSET_NON_EXISTENT_PROPERTY",
            sql_state="42616",
            properties=missing,
        )
    gone = {name.lower() for name in wanted}
    _refuse_internal(gone & present.keys())
    return _unset(snapshot, gone, {"properties": list(names), "ifExists": if_exists})


def unset_internal(store: ObjectStore, names: Sequence[str]) -> int:
    """As unset_properties, of those of the names that the table has, Delta's own bookkeeping too: for the feature that goes."""
    gone = {name.lower() for name in names}
    return _unset(Snapshot.load(store), gone, {"properties": list(names), "ifExists": True})


def _unset(snapshot: Snapshot, gone: set[str], parameters: Mapping[str, object]) -> int:
    """gone: names in lower case."""
    properties = {name: value for name, value in snapshot.metadata.configuration.items() if name.lower() not in gone}
    version = _commit(_Change(snapshot, properties), snapshot.protocol, frozenset(), "UNSET TBLPROPERTIES", parameters)
    assert version is not None, "nothing was turned on"
    return version


def add_feature(store: ObjectStore, name: str) -> int:
    """Let the table's protocol support a feature, and those that it needs; returns the version as set_properties.

    Raises InvalidOptionError (DELTA_UNSUPPORTED_FEATURES_IN_CONFIG) for a name that is no feature's,
    UnsupportedTableFeatureError for a feature that this version cannot write.
    """
    return set_properties(store, {f"delta.feature.{name}": "supported"})


def _refuse_internal(names: set[str]) -> None:
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
    """Raise the protocol's versions; returns the version as set_properties.

    Raises InvalidOptionError (DELTA_INVALID_PROTOCOL_DOWNGRADE) for lower versions than the table has, and for versions
    that do not exist.
    """
    return set_properties(store, dict(zip(_VERSIONS, (str(reader_version), str(writer_version)), strict=True)))


def _upgraded(current: Protocol, reader: int, writer: int) -> Protocol:
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
    target = protocol_of_versions(reader, writer)  # which raises for versions that do not exist
    if current.writer_features is not None:
        return current  # a version of readers brings no feature where all are listed, and none of these needs it
    if target.min_writer_version < WRITER_FEATURES_VERSION:
        return target
    listed = with_features(target, TableConfig(current, Metadata("", '{"type":"struct","fields":[]}')).features)
    return replace(listed, min_reader_version=max(reader, listed.min_reader_version))


# ---------------------------------------------------------------- what each property asks of a table that is there


def _commit(
    change: _Change, protocol: Protocol, features: frozenset[str], operation: str, parameters: Mapping[str, object]
) -> int | None:
    """The version; None when files lack row ids, without which the change must not be made."""
    snapshot = change.snapshot
    for rule in (_column_mapping, _iceberg_compat, _row_tracking, _in_commit_timestamps, _change_data_feed, _symlink_manifest):
        rule(change)
    metadata = replace(
        snapshot.metadata,
        configuration=change.configuration,
        schema_string=change.schema_string,
        description=change.description,
    )
    schema = TableConfig(protocol, metadata).schema
    protocol = with_features(protocol, {*features_in_use(schema, change.after), *features})
    if metadata == snapshot.metadata and protocol == snapshot.protocol:
        return snapshot.version
    TableConfig(protocol, metadata).require(Operation.WRITE)
    if change.after.get(STATS_COLUMNS) != change.before.get(STATS_COLUMNS):
        check_stats_columns(TableConfig(protocol, metadata))
    if change.lacks_row_ids:
        return None
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


def _column_mapping(change: _Change) -> None:
    """Where it is turned on, columns keep the names that they have in the files, as their physical names.
    Protocol: Column Mapping; Writer Requirements for Column Mapping."""
    before, after = column_mapping.mode(change.before), column_mapping.mode(change.after)
    if before == after:
        return
    if after == "none":
        schema = change.snapshot.schema
        check_names(schema)
        change.removes_mapping, change.schema_string = True, schema_to_json(column_mapping.strip(schema))
        change.configuration.pop(column_mapping.MAX_ID_PROPERTY, None)
        return
    column_mapping.check_mode_change(before, after)
    _assign_ids(change)


def _assign_ids(change: _Change) -> None:
    """Names and ids that the schema has in a table without column mapping, as copies of other schemas do, are not its files'."""
    known = change.snapshot.schema
    is_new = column_mapping.mode(change.before) == "none"
    last_id = max(change.before.integer(column_mapping.MAX_ID_PROPERTY, 0), column_mapping.max_column_id(known))
    bare = column_mapping.strip(known) if is_new else known
    schema, last_id = column_mapping.assign(bare, lambda f: f.name, change.after, last_id + 1)
    change.schema_string = schema_to_json(schema)
    change.configuration[column_mapping.MAX_ID_PROPERTY] = str(last_id)


def _iceberg_compat(change: _Change) -> None:
    """Files that come meanwhile would be written without what it asks of them. Protocol: Iceberg Compatibility V2."""
    change.needs_all_files |= asked_versions(change.after) != asked_versions(change.before)
    after, before = (column_mapping.wants_nested_ids(properties) for properties in (change.after, change.before))
    if column_mapping.mode(change.before) != "none" and after and not before:
        _assign_ids(change)


def _row_tracking(change: _Change) -> None:
    """Rows that are there need ids: files get them when they are added, if the feature is supported by then.
    Protocol: Row Tracking; Writer Requirements for Row Tracking."""
    check_row_tracking(change.snapshot.table_root, change.after)
    resumes = change.before.boolean(ROW_TRACKING_SUSPENDED) and change.after.boolean(ROW_TRACKING_ENABLED)
    if not (resumes or change.turns_on(ROW_TRACKING_ENABLED)):
        return
    change.lacks_row_ids = without_ids(change.snapshot) > 0
    if change.lacks_row_ids and change.before.boolean(ROW_TRACKING_ENABLED):  # a table that another client made
        raise suspended_row_tracking(change.snapshot.table_root)
    change.needs_all_files |= not change.snapshot.config.feature("rowTracking")
    change.configuration = with_id_columns(change.configuration)


def _in_commit_timestamps(change: _Change) -> None:
    """Versions from this commit on carry their timestamps: the table says which version that is, and its timestamp.
    Protocol: In-Commit Timestamps; Writer Requirements for In-Commit Timestamps."""
    if change.snapshot.config.feature(COORDINATED) and not change.after.boolean(TIMESTAMPS):
        raise UnsupportedOperationError(
            f"{TIMESTAMPS} cannot be turned off while a coordinator has the commits of the table at "
            f"{change.snapshot.table_root}: the files of commits come to their places at any time. Nothing was changed. Drop the "
            "feature catalogManaged first.",
            error_class="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            sql_state="0AKDC",
        )
    change.configuration, change.timestamp_ms = stamped(change.snapshot, change.configuration)


def _change_data_feed(change: _Change) -> None:
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


def _symlink_manifest(change: _Change) -> None:
    """Readers of the manifests know no deletion vectors."""
    if any(change.turns_on(name) for name in (MANIFESTS, VECTORS)):
        check_manifests(change.after)
    if not change.turns_on(MANIFESTS):
        return
    for batch in change.snapshot.file_batches():
        vectors = batch.files["deletion_vector"]
        if vectors.null_count < len(vectors):
            raise UnsupportedOperationError(
                f"{MANIFESTS} cannot be true while rows of the table are deleted by deletion vectors: readers of symlink "
                "manifests would show them. Nothing was changed. Have OPTIMIZE write these files anew "
                "(spark.databricks.delta.optimize.maxDeletedRowsRatio set to 0).",
                error_class=f"{VALIDATION_FAILED}.EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
                sql_state="0A000",
            )
