"""Shallow clones: a new table over the data files of another.

    clone_table(Snapshot.load(source), target_store) -> 0

The clone names the source's files and deletion vectors by absolute paths and has its own log; it writes only to its own
directory. Its rows exist as long as the source's files, so a note next to the source's log informs VACUUM about the clone
(checkpoint/clone_notes.py). Other sources that can be read as a table are cloned by the same commit (clone_parquet.py).
Protocol: Add File and Remove File; Deletion Vector Descriptor Schema; Row Tracking.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from delta_py.checkpoint.clone_notes import leaving_clone_notes
from delta_py.commit.prepared import ROW_TRACKING_DOMAIN, row_tracking_domain
from delta_py.commit.row_count_check import highest_assigned_row_id
from delta_py.commit.transaction import Transaction
from delta_py.definition.create import check_empty, with_id_columns
from delta_py.definition.log_properties import LOG_FEATURES, keep_log_properties, with_log_of, with_marks_of
from delta_py.definition.properties import READER_VERSION, WRITER_VERSION, refuse_constraints, split_configuration
from delta_py.definition.protocols import features_in_use, with_features, without_feature
from delta_py.definition.row_tracking import files_to_renumber
from delta_py.definition.timestamps import transaction_at
from delta_py.errors import (
    InvalidOptionError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_py.index.definition import PREFIX as INDEX_PREFIX
from delta_py.index.definition import definitions_of
from delta_py.log.coordination import FEATURE as COORDINATED
from delta_py.object_stores.open_store import coordination_of
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import AddFile, DomainMetadata, Metadata, Protocol
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.features import Properties
from delta_py.protocol.iceberg_compat import check_files, enabled_versions
from delta_py.protocol.paths import encode_path, is_absolute
from delta_py.protocol.table_config import TableConfig
from delta_py.repair.file_check import paths_named_by
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import add_action_of, remove_action_of


@dataclass(frozen=True, slots=True)
class CloneSource:
    """The source of a clone, without its files. root: the base of relative paths. label: the source's name, for the history.
    config: its definition. version: -1 if the source has no versions. last_row_id: the highest row id that the source has
    assigned, -1 for none. table: the store of the source's log; None if the source has no log.
    """

    root: str
    label: str
    config: TableConfig
    file_count: int
    version: int = -1
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    last_row_id: int = -1
    table: ObjectStore | None = None

    @classmethod
    def of_table(cls, table: Snapshot) -> CloneSource:
        """The source for a version of a table. Reads the list of its files, to count them."""
        return cls(
            root=table.table_root,
            label=f"delta.`{encode_path(table.table_root)}`",
            config=table.config,
            file_count=table.num_files,
            version=table.version,
            domains=table.domain_metadata(),
            last_row_id=highest_assigned_row_id(table),
            table=table.store,
        )


def clone_table(
    source: Snapshot, target: ObjectStore, *, replace_table: bool = False, properties: Mapping[str, str] | None = None
) -> int:
    """Make a shallow clone of a version; returns the clone's version. Everything else as in shallow_clone."""
    return int(shallow_clone(source, target, replace_table=replace_table, properties=properties)["version"])


def shallow_clone(
    source: Snapshot, target: ObjectStore, *, replace_table: bool = False, properties: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Make a shallow clone of a version; returns its version and the metrics of the commit.

    replace_table: an existing table loses its rows and becomes the clone. properties: set in addition to those of the source.
    Raises TableAlreadyExistsError (DELTA_TABLE_ALREADY_EXISTS), InvalidOptionError for a directory with other files or the
    source's own, and UnsupportedTableFeatureError for a source that this version cannot write.
    """
    old_table = load_table_to_replace(source.table_root, target, replace_table=replace_table)
    files = plan_scan(source, None, None, ScanOptions(keep_all=True)).scan_files()
    return clone_files(CloneSource.of_table(source), map(add_action_of, files), target, old_table, properties or {})


def clone_files(
    source: CloneSource, files: Iterable[AddFile], target: ObjectStore, old_table: Snapshot | None, properties: Mapping[str, str]
) -> dict[str, Any]:
    """Make the target a shallow clone with these files; returns its version and the metrics of the commit. old_table: the
    table that is replaced; None if there is none. Raises as shallow_clone, except for errors about the target.
    """
    transaction = clone_transaction(source, target, old_table, properties)
    adds = tuple(_with_absolute_paths(file, source.root) for file in files)
    _, removed_files = replace_files(transaction, source, adds, scan_replaced_files(transaction, old_table))
    metrics = {
        "sourceTableSize": sum(add.size_bytes for add in adds),
        "sourceNumOfFiles": len(adds),
        "numRemovedFiles": len(removed_files),
        "numCopiedFiles": 0,
        "removedFilesSize": sum(file.size_bytes for file in removed_files),
        "copiedFilesSize": 0,
    }
    version_before = -1 if old_table is None else old_table.version
    with _clone_notes(source, target, version_before, adds):
        version = transaction.commit("CLONE", clone_parameters(source), metrics=metrics)
    return {"version": version, "metrics": metrics}


def _clone_notes(
    source: CloneSource, target: ObjectStore, version_before: int, adds: Sequence[AddFile]
) -> AbstractContextManager[None]:
    """A block for the commit of the clone: notes next to the source's log tell VACUUM that the clone reads the source's files
    (checkpoint/clone_notes.py). version_before: of the target, -1 if there is no table.

    A source without a log has no version, so its root stands for all its files. No table lies below the root, but the root may
    lie in a table, whose VACUUM must spare the files.
    """
    if source.table is None:
        return leaving_clone_notes(target, version_before, None, version_before + 1, [f"{source.root.rstrip('/')}/"])
    return leaving_clone_notes(target, version_before, source.table, source.version, paths_named_by(adds))


def clone_parameters(source: CloneSource) -> dict[str, Any]:
    """The operation parameters about a clone's source for the history."""
    return {"source": source.label, "sourceVersion": source.version}


def load_table_to_replace(
    source_root: str, target: ObjectStore, *, replace_table: bool, check_free: Callable[[ObjectStore], None] = check_empty
) -> Snapshot | None:
    """Load the table at the clone's place, which the clone replaces; None if there is none. check_free: called if there is none;
    raises if other files occupy the place. Raises as clone_table."""
    if target.root == source_root:
        raise InvalidOptionError(f"The table at {target.root} cannot be cloned onto itself. Choose another path.")
    try:
        old_table = Snapshot.load(target)
    except TableNotFoundError:
        check_free(target)
        return None
    if not replace_table:
        raise TableAlreadyExistsError(
            f"The table at {target.root} already exists (version {old_table.version}); nothing was changed. Pass replace=True, "
            "or choose another path.",
            error_class="DELTA_TABLE_ALREADY_EXISTS",
            sql_state="42P07",
            path=target.root,
        )
    return old_table


def clone_transaction(
    source: CloneSource, target: ObjectStore, old_table: Snapshot | None, properties: Mapping[str, str]
) -> Transaction:
    """A transaction that gives the target the source's definition, without its files."""
    protocol, metadata = _clone_definition(source, target, old_table, properties)
    transaction = _definition_transaction(target, old_table, protocol, metadata).set_protocol(protocol)
    for domain in _clone_domains(source, old_table):
        transaction.set_domain(domain)
    return transaction


def scan_replaced_files(transaction: Transaction, old_table: Snapshot | None) -> list[ScanFile]:
    """The files of the table that the clone replaces; empty if there is no such table. The transaction records that it has read
    these files, so that it conflicts with a writer that changes them."""
    return [] if old_table is None else list(transaction.scan(None, options=ScanOptions(keep_all=True)).scan_files())


def replace_files(
    transaction: Transaction, source: CloneSource, adds: Iterable[AddFile], old_files: Iterable[ScanFile]
) -> tuple[list[AddFile], list[ScanFile]]:
    """Add the clone's files to the transaction, and remove the files of the replaced table. adds: all files of the clone.
    old_files: all files of the replaced table. Returns two lists: the files that the replaced table did not have, and the files
    that it loses.

    A file that both have is in neither list, because a commit may not add and remove the same file. The file is added again,
    without dataChange, if its row ids differ, or if another program has overwritten it: then its former rows are gone, and the
    changes are unknown.
    Protocol: Add File and Remove File.
    """
    new_by_key = {add.key: add for add in adds}
    old_by_key = {file.key: file for file in old_files}
    added_files = [add for key, add in new_by_key.items() if key not in old_by_key]
    removed_files = [file for key, file in old_by_key.items() if key not in new_by_key]
    renumbered_files = files_to_renumber(new_by_key, old_by_key, transaction.config, source.last_row_id)
    overwritten = [
        add for key, add in new_by_key.items() if key in old_by_key and _size_and_time(add) != _size_and_time(old_by_key[key])
    ]
    readded_files = {file.key: replace(file, data_change=False) for file in (*renumbered_files, *overwritten)}
    now_ms = time.time_ns() // 1_000_000
    removes = tuple(remove_action_of(file, now_ms=now_ms) for file in removed_files)
    transaction.add(WrittenFiles(adds=(*added_files, *readded_files.values()), removes=removes))
    return added_files, removed_files


def _size_and_time(file: AddFile | ScanFile) -> tuple[int, int]:
    """The size and the modification time of a file: one of them changes if another program overwrites the file."""
    return file.size_bytes, file.modification_time_ms


def _definition_transaction(
    target: ObjectStore, old_table: Snapshot | None, protocol: Protocol, metadata: Metadata
) -> Transaction:
    """A transaction that sets the metadata. A replaced table keeps the properties of its own log, and the high water marks of its
    identity columns. protocol: the clone's.
    """
    if old_table is None:
        return Transaction(None, store=target).set_metadata(metadata)
    # at_ms: the time that the commit must have if it enables in-commit timestamps; None for any time.
    metadata, at_ms = keep_log_properties(old_table, protocol, with_marks_of(old_table.schema, metadata))
    return transaction_at(old_table, at_ms).set_metadata(metadata)


# ---------------------------------------------------------------- the definition of the clone


def _clone_definition(
    source: CloneSource, target: ObjectStore, old_table: Snapshot | None, properties: Mapping[str, str]
) -> tuple[Protocol, Metadata]:
    """The clone's protocol and metadata. old_table: the table that the clone replaces; the clone then has that table's id, name
    and description. None if there is no such table: then the clone gets a new id, and neither name nor description."""
    new_properties, features = split_configuration(properties)
    refuse_constraints(new_properties)
    _refuse_versions(new_properties)
    replaced_names = {name.lower() for name in new_properties}
    inherited = {
        name: value for name, value in source.config.metadata.configuration.items() if name.lower() not in replaced_names
    }
    metadata = replace(
        source.config.metadata,
        id=str(uuid.uuid4()) if old_table is None else old_table.metadata.id,
        name=None if old_table is None else old_table.metadata.name,
        description=None if old_table is None else old_table.metadata.description,
        configuration=with_log_of(None, {**inherited, **new_properties}),  # without the properties of the source's log
    )
    needed_features = {*features, *features_in_use(source.config.schema, Properties(metadata.configuration))}
    _check_mapping(source, Properties(metadata.configuration))
    metadata = replace(metadata, configuration=with_id_columns(metadata.configuration))
    _check_iceberg(source, Properties(metadata.configuration))
    features_of_source = set(source.config.features)
    # The clone has its own log, so it does not get the features of the source's log.
    log_features = features_of_source & _features_of_log(target)
    if old_table is not None:
        return with_features(old_table.protocol, features_of_source - log_features | needed_features), metadata
    protocol = source.config.protocol
    for name in log_features:
        protocol = without_feature(protocol, name)
    return with_features(protocol, needed_features), metadata


def _features_of_log(target: ObjectStore) -> frozenset[str]:
    """The features that describe the source's log, and so do not become features of the clone. If the target was opened with a
    coordinator, the clone may have catalogManaged."""
    return LOG_FEATURES if coordination_of(target) is None else LOG_FEATURES - {COORDINATED}


def _refuse_versions(properties: Mapping[str, str]) -> None:
    """Raises InvalidOptionError if the properties set a version of the protocol."""
    version_names = [name for name in (READER_VERSION, WRITER_VERSION) if name in properties]
    if version_names:
        raise InvalidOptionError(
            f"A clone has the protocol that its source and its properties need: {', '.join(version_names)} cannot be set. "
            "Nothing was changed. Ask for features by delta.feature.<name>, or raise the versions of the clone after it is "
            "created.",
            properties=version_names,
        )


def _check_mapping(source: CloneSource, properties: Properties) -> None:
    """Raises UnsupportedOperationError if the source's files would be read under other names."""
    source_mode, clone_mode = source.config.column_mapping_mode, column_mapping.mode(properties)
    if source_mode != clone_mode:
        raise UnsupportedOperationError(
            f"A clone has the column mapping mode of its source, {source_mode!r}, in which the source's files are written, and "
            f"cannot have {clone_mode!r}. Nothing was changed. Set {column_mapping.MODE_PROPERTY} of the clone after it is "
            "created.",
            error_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            sql_state="0AKDC",
            old_mode=source_mode,
            new_mode=clone_mode,
        )


def _check_iceberg(source: CloneSource, properties: Properties) -> None:
    """Raises if the clone would need files that meet the rules of IcebergCompat, and the source's files need not meet them. A
    clone has the source's files and schema unchanged. Protocol: Writer Requirements for IcebergCompatV1."""
    is_partitioned = bool(source.config.partition_columns)
    check_files(source.config.iceberg_versions, enabled_versions(properties), partitioned=is_partitioned, files=source.file_count)


def _clone_domains(source: CloneSource, old_table: Snapshot | None) -> Iterator[DomainMetadata]:
    """The domain actions that give the clone the domains of the source, and no others. The domain of row tracking gets the
    highest row id that the source or the replaced table has assigned, so that new ids are greater."""
    clone_domains = {} if old_table is None else old_table.domain_metadata()
    source_domains = _source_domains_for_clone(source.domains, clone_domains)
    for name in sorted((source_domains.keys() | clone_domains.keys()) - {ROW_TRACKING_DOMAIN}):
        yield source_domains[name] if name in source_domains else replace(clone_domains[name], removed=True)
    mark = max(source.last_row_id, -1 if old_table is None else highest_assigned_row_id(old_table))
    if mark >= 0:
        yield row_tracking_domain(mark)


def _source_domains_for_clone(
    source_domains: Mapping[str, DomainMetadata], clone_domains: Mapping[str, DomainMetadata]
) -> dict[str, DomainMetadata]:
    """The source's metadata domains, changed for the clone. A domain of an index names segments, which are files of the source's
    own. So the clone gets the index without segments; if the clone has the same index already, the clone's own segments remain.
    An index that this version does not understand is left out.
    """
    clone_indexes = {(index.name, index.column, index.kind): index for index in definitions_of(clone_domains)[0]}
    domains = {name: domain for name, domain in source_domains.items() if not name.startswith(INDEX_PREFIX)}
    for index in definitions_of(source_domains)[0]:
        clone_index = clone_indexes.get((index.name, index.column, index.kind))
        domains[index.domain] = (index.with_segments(()) if clone_index is None else clone_index).as_domain()
    return domains


# ---------------------------------------------------------------- the clone's files


def _with_absolute_paths(file: AddFile, root: str) -> AddFile:
    """The add action with absolute paths of the data file and its deletion vector. root: of the source."""
    vector = None if file.deletion_vector is None else _absolute_vector(file.deletion_vector, root)
    # path_text is the spelling of the relative path in the source's log.
    return replace(file, path=_absolute_path(file.path, root), path_text=None, deletion_vector=vector)


def _absolute_vector(vector: DeletionVectorDescriptor, root: str) -> DeletionVectorDescriptor:
    """The descriptor with an absolute path, if the vector is in a file. root: of the source."""
    if vector.storage_type != "u":  # only "u" is relative to a root; "p" has an absolute path, and "i" has no file
        return vector
    path = vector.path
    assert path is not None
    return replace(vector, storage_type="p", path_or_inline_dv=encode_path(_absolute_path(path, root)))


def _absolute_path(path: str, root: str) -> str:
    return path if is_absolute(path) else f"{root.rstrip('/')}/{path}"
