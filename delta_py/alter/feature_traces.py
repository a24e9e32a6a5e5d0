"""Everything that a table holds because of a feature, and how it is removed before the feature leaves the protocol.

    traces = TRACES["deletionVectors"]
    traces.remove(store)              # makes its own commits; True if there was something to remove
    traces.is_gone(snapshot)          # this version has nothing of it, and no writer may add it again unless a user enables it

This version cannot drop a feature that is not listed here.
Protocol: Table Features; Deletion Vectors; Column Mapping; Type Widening; Row Tracking; In-Commit Timestamps; V2 Spec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.alter.alter import unset_internal, unset_properties
from delta_py.alter.alter_columns import describe_column
from delta_py.alter.narrow_files import NarrowFiles
from delta_py.alter.table_constraints import constraint_names
from delta_py.commit.prepared import ROW_TRACKING_DOMAIN
from delta_py.commit.prepared import ROW_TRACKING_ENABLED as _TRACKING
from delta_py.commit.prepared import ROW_TRACKING_SUSPENDED as _SUSPENDED
from delta_py.commit.transaction import Transaction
from delta_py.definition.row_tracking import remove_row_ids
from delta_py.definition.timestamps import ENABLED as TIMESTAMPS_ENABLED
from delta_py.definition.timestamps import SINCE as TIMESTAMPS_SINCE
from delta_py.errors import DeltaConcurrentModificationException, UnsupportedOperationError
from delta_py.index.definition import PREFIX as INDEX_PREFIX
from delta_py.log.coordination import FEATURE as COORDINATED
from delta_py.log.coordination import IDENTITY_PROPERTY
from delta_py.object_stores.open_store import coordination_of
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import OptimizeRequest
from delta_py.optimize.reorg import Purge
from delta_py.protocol.actions import DomainMetadata, Metadata, RemoveFile
from delta_py.protocol.column_mapping import MODE_PROPERTY, without_column_mapping
from delta_py.protocol.column_mapping import mode as mapping_mode
from delta_py.protocol.column_usage import FLAG as USAGE_FLAG
from delta_py.protocol.features import PROTECTED_BEFORE, PROTECTION, Properties, has_geospatial
from delta_py.protocol.paths import LogKind
from delta_py.row_rules.type_changes import without_recorded_changes
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.column_rules import TYPE_CHANGES
from delta_py.types.schema import parse_schema, schema_to_json
from delta_py.types.type_walk import fields_with_paths
from delta_py.vacuum.vacuum_paths import vector_files
from delta_py.write.data_files import WrittenFiles

_VECTORS = "delta.enableDeletionVectors"
_WIDENING = "delta.enableTypeWidening"
_POLICY = "delta.checkpointPolicy"
_TRACKING_COLUMN_PROPERTIES = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)
_MATERIALIZED_PARTITIONS = "delta.enableMaterializePartitionColumnsFeature"
_VECTOR_IN_COMMIT = re.compile(rb'"deletionVector"\s*:\s*\{')


def _publish_commits(store: ObjectStore) -> bool:
    """Copy all ratified commits to the log directory, which is all that clients without the coordinator read. Returns False,
    because no version is made."""
    coordinated = coordination_of(store)
    if coordinated is not None:
        coordinated.publish()
    return False


@dataclass(frozen=True, slots=True)
class Traces:
    """How to find and remove the traces of one feature.

    remove: removes the traces, in commits of its own; returns whether there were any; raises if the user has to remove them.
    is_gone: whether a version has no traces. protects_history: readers have to know the feature, so readers that do not know it
    must not read the versions that use it. in_commit: whether a commit uses the feature, by the commit's bytes and its metaData
    action (None if it has none). properties, domains: the properties and metadata domains that the commit removes which also
    removes the feature from the protocol.
    """

    remove: Callable[[ObjectStore], bool]
    is_gone: Callable[[Snapshot], bool]
    protects_history: bool = False
    in_commit: Callable[[bytes, Metadata | None], bool] = lambda data, metadata: False
    properties: tuple[str, ...] = ()
    domains: Callable[[Snapshot], tuple[DomainMetadata, ...]] = lambda snapshot: ()


# ---------------------------------------------------------------- each feature


def _unset_properties(store: ObjectStore, *names: str) -> bool:
    """Remove those of the properties that the table has. Returns whether something was committed."""
    snapshot = Snapshot.load(store)
    return unset_internal(store, names) != snapshot.version


class _VectorPurge(Purge):
    """Rewrite only files with deletion vectors: dropping this feature does not need the other work of REORG."""

    def _select_candidates(self, files: pa.Table, limit: int) -> pa.ChunkedArray:
        return files["deletion_vector"].is_valid()


def _remove_vectors(store: ObjectStore) -> bool:
    """Turn off new deletion vectors; rewrite files without their deleted rows; and add the vector files to the log as removes, so
    that VACUUM of clients that do not know vectors does not delete them while earlier versions need them. Returns whether
    something was committed.
    """
    has_changed = _unset_properties(store, _VECTORS)
    purge_result = optimize(store, OptimizeRequest(), LocalBinWriters(), kind=_VectorPurge)
    if purge_result.version is not None:
        has_changed = True
    return _commit_vector_file_removes(store) or has_changed


def _commit_vector_file_removes(store: ObjectStore) -> bool:
    """Add a remove action for each file of deletion vectors that a tombstone (a removed file in the log) refers to, unless there
    is one already. Returns whether something was committed.
    """
    snapshot = Snapshot.load(store)
    tombstones = snapshot.tombstones()
    files = vector_files(tombstones.filter(tombstones["deletion_vector"].is_valid()))
    files_without_remove = files.filter(pc.invert(pc.is_in(files, tombstones["path"].combine_chunks())))
    if not len(files_without_remove):
        return False
    # VACUUM deletes a file some time after its remove action. With the newest time of all, it deletes no vector file before the
    # data file that needs it.
    newest = pc.max(tombstones["deletion_timestamp"]).as_py()
    removes = tuple(
        RemoveFile(path, data_change=False, deletion_timestamp_ms=newest) for path in files_without_remove.to_pylist()
    )
    Transaction(snapshot).add(WrittenFiles(removes=removes)).commit("Deletion Vector Tombstones", {})
    return True


def _has_no_vectors(snapshot: Snapshot) -> bool:
    if snapshot.config.properties.boolean(_VECTORS):
        return False
    return all(batch.files["deletion_vector"].null_count == len(batch.files) for batch in snapshot.file_batches())


def _remove_widening(store: ObjectStore) -> bool:
    """Rewrite files with narrower types, and remove the recorded type changes from the schema. Returns whether something
    changed.
    """
    has_changed = _unset_properties(store, _WIDENING)
    if TYPE_CHANGES not in Snapshot.load(store).metadata.schema_string:
        return has_changed
    optimize(store, OptimizeRequest(), LocalBinWriters(), kind=NarrowFiles)
    snapshot = Snapshot.load(store)
    _check_no_narrow_files(snapshot)
    schema = parse_schema(snapshot.metadata.schema_string)
    retyped_columns = [describe_column(path, f) for path, f in fields_with_paths(schema) if TYPE_CHANGES in f.metadata]
    metadata = replace(snapshot.metadata, schema_string=schema_to_json(without_recorded_changes(schema)))
    Transaction(snapshot).read_rows().set_metadata(metadata).commit("DROP FEATURE", {"columns": retyped_columns})
    return True


def _check_no_narrow_files(snapshot: Snapshot) -> None:
    """Raises DeltaConcurrentModificationException if files with narrower types remain: OPTIMIZE leaves out a bin (files that it
    rewrites together) if other writers change its files again and again."""
    narrow_count = NarrowFiles.of(snapshot, OptimizeRequest()).choose().files.num_rows
    if narrow_count:
        raise DeltaConcurrentModificationException(
            f"{narrow_count} files of the table at {snapshot.table_root} have narrower types than the table: other writers "
            "changed files in the same bins while OPTIMIZE rewrote these. The feature typeWidening was not dropped, and "
            "readers still widen these files. Drop it again.",
            error_class="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
            sql_state="40000",
            feature="typeWidening",
        )


def _has_no_widening(snapshot: Snapshot) -> bool:
    return not snapshot.config.properties.boolean(_WIDENING) and TYPE_CHANGES not in snapshot.metadata.schema_string


def _remove_mapping(store: ObjectStore) -> bool:
    """Turn column mapping off, which rewrites all files; if it is off already, remove the ids from the schema. Returns whether
    something changed."""
    snapshot = Snapshot.load(store)
    if snapshot.config.column_mapping_mode != "none":
        unset_properties(store, [MODE_PROPERTY])
        return True
    if _has_no_mapping(snapshot):
        return False
    # Column mapping is off, so the files have the columns' own names; but the schema still has ids and physical names.
    metadata = replace(snapshot.metadata, schema_string=schema_to_json(without_column_mapping(snapshot.schema)))
    Transaction(snapshot).read_rows().set_metadata(metadata).commit("DROP FEATURE", {"columns": []})
    return True


def _has_no_mapping(snapshot: Snapshot) -> bool:
    return snapshot.config.column_mapping_mode == "none" and without_column_mapping(snapshot.schema) == snapshot.schema


def _remove_v2_checkpoints(store: ObjectStore) -> bool:
    """Let later checkpoints be classic ones. Returns whether something was committed."""
    snapshot = Snapshot.load(store)
    if snapshot.config.properties.get(_POLICY, "classic").lower() != "v2":
        return False
    _set_properties(snapshot, {_POLICY: "classic"})
    return True


def _set_properties(snapshot: Snapshot, properties: Mapping[str, str]) -> None:
    """Commit new values of properties. They replace properties of the same name in any case of letters."""
    replaced_names = {name.lower() for name in properties}
    other_properties = {
        name: value for name, value in snapshot.metadata.configuration.items() if name.lower() not in replaced_names
    }
    metadata = replace(snapshot.metadata, configuration={**other_properties, **properties})
    Transaction(snapshot).set_metadata(metadata).commit("SET TBLPROPERTIES", {"properties": dict(properties)})


def _has_no_v2_checkpoints(snapshot: Snapshot) -> bool:
    """Whether the checkpoint that the version is read from is a classic one, and later ones will be."""
    newest = snapshot.segment.checkpoint
    classic = newest is None or newest.kind is not LogKind.CHECKPOINT_V2
    return classic and snapshot.config.properties.get(_POLICY, "classic").lower() != "v2"


def _remove_timestamps(store: ObjectStore) -> bool:
    return _unset_properties(store, TIMESTAMPS_ENABLED, *TIMESTAMPS_SINCE)


def _remove_tracking(store: ObjectStore) -> bool:
    """Suspend row tracking, so that new files get no ids, and then remove the ids of the present files. Returns whether something
    changed."""
    snapshot = Snapshot.load(store)
    has_changed = False
    if snapshot.config.properties.boolean(_TRACKING) or not snapshot.config.properties.boolean(_SUSPENDED):
        _set_properties(snapshot, {_TRACKING: "false", _SUSPENDED: "true"})
        has_changed = True
    return remove_row_ids(store) or has_changed


def _has_no_tracking(snapshot: Snapshot) -> bool:
    """Whether no file has row ids, and no writer gives ids to new files."""
    properties = snapshot.config.properties
    if properties.boolean(_TRACKING) or not properties.boolean(_SUSPENDED):
        return False
    return all(batch.files["base_row_id"].null_count == len(batch.files) for batch in snapshot.file_batches())


def _tracking_domain(snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    """The action that removes the domain of row tracking; empty if there is no such domain."""
    domain = snapshot.domain_metadata().get(ROW_TRACKING_DOMAIN)
    return () if domain is None else (replace(domain, removed=True),)


def _refuse_constraints(store: ObjectStore) -> bool:
    """Raise if the table has CHECK constraints: the owner has to drop them. Otherwise there is nothing to remove."""
    names = constraint_names(Snapshot.load(store).config)
    if names:
        raise UnsupportedOperationError(
            f"The feature checkConstraints cannot be dropped while the table at {store.root} has CHECK constraints: "
            f"{', '.join(names)}. Nothing was changed. Drop them first.",
            error_class="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            sql_state="0AKDE",
            constraints=names,
        )
    return False


def _refuse_geospatial(store: ObjectStore) -> bool:
    """Raise if the table has columns of geometry or geography: the owner has to drop them. Otherwise there is nothing to
    remove."""
    schema = Snapshot.load(store).schema
    names = [f.name for f in schema.fields if has_geospatial(f.data_type)]
    if names:
        raise UnsupportedOperationError(
            f"The feature geospatial cannot be dropped while the table at {store.root} has columns of geometry or geography: "
            f"{', '.join(names)}. Nothing was changed. Drop the columns first.",
            error_class="DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE",
            sql_state="0AKDE",
            columns=names,
        )
    return False


def _remove_domains(store: ObjectStore) -> bool:
    """Remove the domains in a separate commit: the commit that drops the feature may have no domains."""
    snapshot = Snapshot.load(store)
    domains = snapshot.domain_metadata()
    names = [name for name in domains if name.startswith(INDEX_PREFIX)]
    if names:
        raise UnsupportedOperationError(
            f"The feature domainMetadata cannot be dropped while the table at {store.root} has indexes: "
            f"{', '.join(sorted(name.removeprefix(INDEX_PREFIX) for name in names))}. Nothing was changed. Drop them first.",
            indexes=sorted(names),
        )
    transaction = Transaction(snapshot)
    for domain in domains.values():
        transaction.set_domain(replace(domain, removed=True))
    if domains:
        transaction.commit("DOMAIN METADATA CLEANUP", {"metadataRemoved": len(domains)})
    return bool(domains)


def _remove_nothing(store: ObjectStore) -> bool:
    return False


def _is_always_gone(snapshot: Snapshot) -> bool:
    return True


def _sets_property(name: str, value: str = "true") -> Callable[[bytes, Metadata | None], bool]:
    """Return a function for Traces.in_commit: whether the commit has metadata in which the property has this value. value: in
    lower case."""

    def has_value(data: bytes, metadata: Metadata | None) -> bool:
        return metadata is not None and Properties(metadata.configuration).get(name, "").lower() == value

    return has_value


def _commit_uses_vectors(data: bytes, metadata: Metadata | None) -> bool:
    return _VECTOR_IN_COMMIT.search(data) is not None or _sets_property(_VECTORS)(data, metadata)


def _commit_uses_widening(data: bytes, metadata: Metadata | None) -> bool:
    return metadata is not None and (TYPE_CHANGES in metadata.schema_string or _sets_property(_WIDENING)(data, metadata))


def _commit_uses_mapping(data: bytes, metadata: Metadata | None) -> bool:
    return metadata is not None and mapping_mode(Properties(metadata.configuration)) != "none"


def _commit_uses_geospatial(data: bytes, metadata: Metadata | None) -> bool:
    return metadata is not None and has_geospatial(parse_schema(metadata.schema_string))


_GEOSPATIAL = Traces(
    _refuse_geospatial,
    lambda snapshot: not has_geospatial(snapshot.schema),
    protects_history=True,
    in_commit=_commit_uses_geospatial,
)
_TYPE_WIDENING = Traces(_remove_widening, _has_no_widening, protects_history=True, in_commit=_commit_uses_widening)

TRACES: Mapping[str, Traces] = {
    "deletionVectors": Traces(_remove_vectors, _has_no_vectors, protects_history=True, in_commit=_commit_uses_vectors),
    "typeWidening": _TYPE_WIDENING,
    "typeWidening-preview": _TYPE_WIDENING,
    "columnMapping": Traces(_remove_mapping, _has_no_mapping, protects_history=True, in_commit=_commit_uses_mapping),
    "columnMappingUsageTracking": Traces(_remove_nothing, _is_always_gone, properties=(USAGE_FLAG,)),
    "v2Checkpoint": Traces(
        _remove_v2_checkpoints, _has_no_v2_checkpoints, protects_history=True, in_commit=_sets_property(_POLICY, "v2")
    ),
    "vacuumProtocolCheck": Traces(_remove_nothing, _is_always_gone, protects_history=True),
    "inCommitTimestamp": Traces(_remove_timestamps, lambda snapshot: not snapshot.config.properties.boolean(TIMESTAMPS_ENABLED)),
    "rowTracking": Traces(
        _remove_tracking,
        _has_no_tracking,
        properties=(_TRACKING, _SUSPENDED, *_TRACKING_COLUMN_PROPERTIES),
        domains=_tracking_domain,
    ),
    "checkConstraints": Traces(_refuse_constraints, lambda snapshot: not constraint_names(snapshot.config)),
    "geospatial": _GEOSPATIAL,
    "geospatial-dev": _GEOSPATIAL,
    "domainMetadata": Traces(_remove_domains, lambda snapshot: not snapshot.domain_metadata()),
    "materializePartitionColumns": Traces(
        lambda store: _unset_properties(store, _MATERIALIZED_PARTITIONS),
        lambda snapshot: not snapshot.config.properties.boolean(_MATERIALIZED_PARTITIONS),
    ),
    PROTECTION: Traces(_remove_nothing, _is_always_gone, properties=(PROTECTED_BEFORE,)),
    "coordinatedCommits-preview": Traces(_remove_nothing, _is_always_gone),
    COORDINATED: Traces(_publish_commits, _is_always_gone, protects_history=True, properties=(IDENTITY_PROPERTY,)),
}


def uses_feature(traces: Traces, data: bytes) -> bool:
    """Whether a commit of the log uses the feature. data: the bytes of the commit."""
    metadata = None
    for line in data.splitlines():
        if line.startswith(b'{"metaData"'):
            metadata = Metadata.from_json(orjson.loads(line)["metaData"])
    return traces.in_commit(data, metadata)
