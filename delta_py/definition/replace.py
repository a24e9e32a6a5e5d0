"""CREATE and REPLACE of a table with a definition, by the modes of the callers.

    build_table(store, "createOrReplace", definition) -> version

A replaced table keeps its history and what its protocol supports, and gets a new id: streams from it must start again. All
of its rows are removed.
Protocol: Change Metadata; Writer Requirements for Column Mapping.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

from delta_py.commit.prepared import IsolationLevel
from delta_py.commit.transaction import Transaction
from delta_py.definition.catalog_entry import enter_in_catalog
from delta_py.definition.create import TableDefinition, check_empty, create_parameters, create_table
from delta_py.definition.log_properties import keep_log_properties
from delta_py.definition.protocols import with_features
from delta_py.definition.timestamps import transaction_at
from delta_py.errors import (
    InvalidOptionError,
    ProtocolChangedException,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from delta_py.log.catalog_contract import demanded_properties
from delta_py.protocol import column_mapping, identity_columns
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_py.protocol.clustering import clustering_columns, clustering_domain
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.write_state import check_definition
from delta_py.scan.planning import ScanOptions
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.column_rules import GENERATION
from delta_py.types.schema import StructField, StructType, map_fields, schema_to_json
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import remove_action_of

OPERATIONS = {
    "create": "CREATE TABLE",
    "createIfNotExists": "CREATE TABLE",
    "replace": "REPLACE TABLE",
    "createOrReplace": "CREATE OR REPLACE TABLE",
}


def build_table(store: ObjectStore, mode: str, definition: TableDefinition, *, join: bool = False) -> int:
    """Create or replace a table; returns its version, or the newest when there was nothing to do.

    mode: a key of OPERATIONS. definition: one without columns describes a new table that gets columns later, or matches an
    existing table with any columns; it cannot replace a table. join: with mode create, accept an existing table with the same
    definition.
    Raises SchemaMismatchError for a replacement without columns (DELTA_SCHEMA_NOT_PROVIDED), and for an existing table that
    differs; TableAlreadyExistsError (TABLE_OR_VIEW_ALREADY_EXISTS), TableNotFoundError (TABLE_OR_VIEW_NOT_FOUND),
    InvalidOptionError (DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION), UnsupportedTableFeatureError for rules that this version
    cannot enforce. Raises as enter_in_catalog if the table is complete and its name could not be entered.
    """
    if mode not in OPERATIONS:
        raise InvalidOptionError(f"{mode!r} is no way to build a table. Name one of {', '.join(OPERATIONS)}.")
    if mode in ("replace", "createOrReplace") and not definition.config.schema.fields:
        raise SchemaMismatchError(
            f"The table that was to be replaced at {store.root} would have no columns. Nothing was changed. Add them with "
            "addColumn or addColumns; in SQL, name them or use AS SELECT.",
            error_class="DELTA_SCHEMA_NOT_PROVIDED",
            sql_state="42908",
        )
    version = _build(store, mode, definition, join=join)
    enter_in_catalog(store)
    return version


def _build(store: ObjectStore, mode: str, definition: TableDefinition, *, join: bool) -> int:
    """Create or replace the table as build_table, but do not enter it in a catalog."""
    try:
        snapshot = Snapshot.load(store)
    except TableNotFoundError:
        return _create(store, mode, definition)
    if mode == "createIfNotExists":
        return snapshot.version
    if mode == "create" and join:
        check_same_definition(snapshot, definition)
        return snapshot.version
    if mode == "create":
        raise _exists_error(store, snapshot.version)
    return replace_table(snapshot, definition, OPERATIONS[mode])


def has_table(store: ObjectStore) -> bool:
    """Whether there is a table. Raises what Snapshot.load raises for a table that cannot be read."""
    try:
        Snapshot.load(store)
    except TableNotFoundError:
        return False
    return True


def _create(store: ObjectStore, mode: str, definition: TableDefinition) -> int:
    """Create the table at a location without one; returns the version. Raises as build_table."""
    if mode == "replace":
        raise table_not_found(store)
    check_definition(definition.config, store, read_version=-1)  # -1: there is no version before the first
    if mode != "createOrReplace":
        check_empty(store)
    try:
        return create_table(store, definition, OPERATIONS[mode])
    except ProtocolChangedException:  # another writer has created the table in the meantime
        if mode != "createIfNotExists":
            raise
        return Snapshot.load(store).version


def table_not_found(store: ObjectStore) -> TableNotFoundError:
    """The error for a missing table that was to be replaced."""
    return TableNotFoundError(
        f"The table at {store.root} cannot be replaced: it cannot be found, it did not exist. Create it with create() or "
        "createOrReplace().",
        error_class="TABLE_OR_VIEW_NOT_FOUND",
        sql_state="42P01",
        path=store.root,
    )


def _exists_error(store: ObjectStore, version: int) -> TableAlreadyExistsError:
    """The error for a create at a location with a table. version: its newest."""
    return TableAlreadyExistsError(
        f"The table at {store.root} already exists (version {version}); nothing was changed. Use createIfNotExists, "
        "createOrReplace, or another location.",
        error_class="TABLE_OR_VIEW_ALREADY_EXISTS",
        sql_state="42P07",
        path=store.root,
    )


# ---------------------------------------------------------------- replace


@dataclass(frozen=True, slots=True)
class Replacement:
    """The actions of a commit that replaces an existing table, except its files. Small and picklable. definition: the requested
    one. metadata: the definition's, with new column ids and the properties of the table's log. protocol: None if it does not
    change. domains: metadata domains, which change the clustering. timestamp_ms: the time that the commit must have because its
    metadata names it; None for any time.
    """

    definition: TableDefinition
    metadata: Metadata
    protocol: Protocol | None
    domains: tuple[DomainMetadata, ...]
    timestamp_ms: int | None

    @classmethod
    def of(cls, snapshot: Snapshot, definition: TableDefinition) -> Replacement:
        """Decide how the definition replaces the table of the snapshot. Raises UnsupportedTableFeatureError for a table that
        could not be written afterwards."""
        protocol = with_features(snapshot.protocol, definition.config.features)
        metadata, at_ms = keep_log_properties(snapshot, protocol, _with_new_column_ids(snapshot, definition.metadata))
        domains = tuple(_clustering_actions(snapshot, metadata, definition))
        return cls(definition, metadata, None if protocol == snapshot.protocol else protocol, domains, at_ms)

    def config(self, snapshot: Snapshot) -> TableConfig:
        return TableConfig(self.protocol or snapshot.protocol, self.metadata)

    def begin(self, snapshot: Snapshot, isolation: IsolationLevel | None = None) -> Transaction:
        """A transaction that gives the table its definition; the caller removes the rows."""
        transaction = transaction_at(snapshot, self.timestamp_ms, isolation)
        transaction.set_metadata(self.metadata)
        if self.protocol is not None:
            transaction.set_protocol(self.protocol)
        for domain in self.domains:
            transaction.set_domain(domain)
        return transaction


def replace_table(snapshot: Snapshot, definition: TableDefinition, operation: str) -> int:
    """Commit the definition over the existing table, and remove all of its rows; returns the version."""
    replacement = Replacement.of(snapshot, definition)
    check_definition(replacement.config(snapshot), snapshot.store, snapshot.version)
    transaction = replacement.begin(snapshot)
    now_ms = time.time_ns() // 1_000_000
    scan = transaction.scan(None, options=ScanOptions(keep_all=True))
    transaction.add(WrittenFiles(removes=tuple(remove_action_of(file, now_ms=now_ms) for file in scan.scan_files())))
    return transaction.commit(operation, create_parameters(definition))


def _with_new_column_ids(snapshot: Snapshot, metadata: Metadata) -> Metadata:
    """The definition's metadata, with new ids and physical names for all columns. No column gets an id that a former column of
    the table had."""
    config = TableConfig(snapshot.protocol, metadata)
    # A catalog that manages the table may demand properties that the new definition does not name.
    demanded = demanded_properties(snapshot.store, snapshot.config)
    mode, configuration = column_mapping.mode(config.properties), {**demanded, **metadata.configuration}
    last_id = snapshot.config.properties.integer(column_mapping.MAX_ID_PROPERTY, 0)
    schema = config.schema
    if mode != "none":
        schema_without_ids = map_fields(schema, _without_id)
        schema, last_id = column_mapping.assign(
            schema_without_ids, lambda f: f"col-{uuid.uuid4()}", config.properties, last_id + 1
        )
        configuration[column_mapping.MAX_ID_PROPERTY] = str(last_id)
    return replace(metadata, schema_string=schema_to_json(schema), configuration=configuration)


def _without_id(f: StructField) -> StructField:
    """The field without its id, physical name and other keys of column mapping."""
    metadata = {key: value for key, value in f.metadata.items() if key not in column_mapping.FIELD_KEYS}
    return replace(f, metadata=metadata)


def _clustering_actions(snapshot: Snapshot, metadata: Metadata, definition: TableDefinition) -> Iterator[DomainMetadata]:
    """The action that sets the clustering columns of the new definition; or, if it has none, one that removes the clustering of
    the table; or nothing if neither is clustered."""
    columns = clustering_columns(definition.config.schema, next(iter(definition.domains), None))
    if columns:
        config = TableConfig(snapshot.protocol, metadata)
        yield clustering_domain(config.schema, columns, column_mapping.mode(config.properties))
    elif (old_domain := snapshot.clustering_domain()) is not None:
        yield replace(old_domain, removed=True)


# ---------------------------------------------------------------- an existing table with the same definition


def check_same_definition(snapshot: Snapshot, definition: TableDefinition) -> None:
    """Raises SchemaMismatchError when the table differs in columns, partitioning, clustering or a named property; for a
    definition without columns, only when a property differs.
    """
    new_metadata, metadata = definition.metadata, snapshot.metadata
    properties = snapshot.config.properties
    compared_properties = [
        name
        for name in new_metadata.configuration
        if name not in definition.defaulted and not name.lower().startswith(_GENERATED_PREFIXES)
    ]
    clustering = clustering_columns(snapshot.schema, snapshot.clustering_domain())
    new_clustering = clustering_columns(definition.config.schema, next(iter(definition.domains), None))
    # For each error class, whether the tables differ so.
    differs_by_condition = {
        "DELTA_CREATE_TABLE_SCHEME_MISMATCH": _comparable_schema(snapshot.schema) != _comparable_schema(definition.config.schema),
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING": metadata.partition_columns != new_metadata.partition_columns,
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING": clustering != new_clustering,
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY": any(
            properties.get(name) != new_metadata.configuration[name] for name in compared_properties
        ),
    }
    if not definition.config.schema.fields:
        differs_by_condition = {
            condition: differs for condition, differs in differs_by_condition.items() if condition.endswith("PROPERTY")
        }
    mismatch = next((condition for condition, differs in differs_by_condition.items() if differs), None)
    if mismatch is not None:
        raise SchemaMismatchError(
            f"There is a table at {snapshot.table_root} already, and it is not the one that was to be created: its columns, "
            f"partitioning, clustering or properties differ. It has {schema_to_json(snapshot.schema)}, partitioned by "
            f"({', '.join(metadata.partition_columns)}), with {dict(metadata.configuration)}. Nothing was changed. Leave the "
            "columns and properties out to take it as it is, or choose another location.",
            error_class=mismatch,
            sql_state="42KD7",
            path=snapshot.table_root,
        )


# Beginnings, in lower case, of names of properties with generated values. They differ in each definition, so they are not
# compared.
_GENERATED_PREFIXES = ("delta.columnmapping.maxcolumnid", "delta.rowtracking.")


def _comparable_schema(schema: StructType) -> StructType:
    """The schema with only those metadata of fields that must agree: comments, generation and identity, without ids."""
    keys = ("comment", GENERATION, identity_columns.START, identity_columns.STEP)
    return map_fields(schema, lambda f: replace(f, metadata={key: f.metadata[key] for key in keys if key in f.metadata}))
