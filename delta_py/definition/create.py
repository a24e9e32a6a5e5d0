"""New tables: the protocol and metadata that a schema and properties need, and the commit that creates the table.

    definition = define_table(schema, partition_by=("day",), configuration={"delta.enableChangeDataFeed": "true"})
    create_table(store, definition)     # version 0 without data; a first write commits the definition with its files

The protocol is the lowest that supports what the table uses: (1,2), or table features if something newer is requested.
Protocol: Change Metadata; Table Features for New and Existing Tables; Table Properties.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delta_py.commit.transaction import Transaction
from delta_py.definition.definition_settings import current_definition_settings
from delta_py.definition.properties import READER_VERSION, WRITER_VERSION, check_manifests, split_configuration, with_defaults
from delta_py.definition.protocols import lowest_protocol
from delta_py.errors import InvalidOptionError, SchemaMismatchError, UnsupportedOperationError
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_py.protocol.clustering import clustering_columns, clustering_domain
from delta_py.protocol.features import Properties
from delta_py.protocol.iceberg_compat import property_of
from delta_py.protocol.identity_columns import check_new_identities
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.row_rules.new_columns import check_new_rules, check_new_schema, names_needing_mapping
from delta_py.scan.file_groups import CHANGE_FIELDS
from delta_py.statistics.stats_columns import check_clustering, check_stats_columns
from delta_py.storage.store import ObjectStore
from delta_py.types.char_types import with_char_as_string
from delta_py.types.schema import (
    VARIANT,
    VOID,
    ArrayType,
    GeospatialType,
    MapType,
    StructType,
    find_path,
    is_known_type,
    schema_to_json,
    type_name,
)
from delta_py.types.type_walk import all_types

CHANGE_COLUMNS = tuple(f.name for f in CHANGE_FIELDS)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What the first commit of a table defines. Small and picklable. domains: the domain that names the clustering columns; empty
    without clustering. defaulted: names of properties that the caller did not set; defaults or other properties did."""

    protocol: Protocol
    metadata: Metadata
    domains: tuple[DomainMetadata, ...] = ()
    defaulted: frozenset[str] = frozenset()

    @property
    def config(self) -> TableConfig:
        return TableConfig(self.protocol, self.metadata)


def define_table(
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
    may_lack_columns: bool = False,
) -> TableDefinition:
    """The definition of a new table that this library can write.

    partition_by, cluster_by: column names in order, any case; not both. name, description: texts about the table, for people.
    configuration: table properties, those of Delta and any others. defaults: properties that the table gets if configuration does
    not name them. may_lack_columns: accept a table without columns, which are added later.
    Raises SchemaMismatchError for names, a partitioning or a clustering that no table can have, InvalidOptionError for a property
    that is unknown, internal or has a senseless value, UnsupportedTableFeatureError for a table that could not be written,
    UnsupportedOperationError for properties that exclude each other, and what check_new_rules raises for defaults and generation.
    """
    _check_layout(schema, partition_by, cluster_by, may_lack_columns=may_lack_columns)
    properties, features = split_configuration(with_defaults(configuration or {}, defaults or {}))
    check_manifests(Properties(properties))
    add_properties_for_iceberg(properties)
    check_types(schema)
    # Properties that defaults or add_properties_for_iceberg have added.
    defaulted = properties.keys() - split_configuration(configuration or {})[0].keys()
    mode = column_mapping.mode(Properties(properties))
    lacks_columns = may_lack_columns and not schema.fields
    partitions = () if lacks_columns else check_schema(schema, partition_by, mode, Properties(properties))
    check_new_rules(schema)
    if mode != "none":
        schema, last_id = column_mapping.assign(schema, lambda _: f"col-{uuid.uuid4()}", Properties(properties))
        properties[column_mapping.MAX_ID_PROPERTY] = str(last_id)
    properties = with_id_columns(properties)
    # The versions are part of the protocol and not stored as properties.
    versions = tuple(int(properties.pop(key, lowest)) for key, lowest in ((READER_VERSION, 1), (WRITER_VERSION, 2)))
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema_to_json(schema),
        partition_columns=partitions,
        configuration=properties,
        name=name,
        description=description,
        created_time_ms=time.time_ns() // 1_000_000,
    )
    domains = (clustering_domain(schema, cluster_by, mode),) if cluster_by else ()
    if cluster_by:
        features |= {"clustering"}
    protocol = lowest_protocol(schema, Properties(properties), features, (versions[0], versions[1]))
    definition = TableDefinition(protocol, metadata, domains, frozenset(defaulted))
    definition.config.require(Operation.WRITE)
    check_stats_columns(definition.config)
    for domain in domains:
        check_clustering(definition.config, domain)
    return definition


def _check_layout(schema: StructType, partition_by: Sequence[str], cluster_by: Sequence[str], *, may_lack_columns: bool) -> None:
    """Raise SchemaMismatchError for a table that would be both partitioned and clustered, or that is partitioned or clustered and
    has no columns yet."""
    if partition_by and cluster_by:
        raise SchemaMismatchError(
            f"A table is either partitioned ({', '.join(partition_by)}) or clustered ({', '.join(cluster_by)}). Choose one.",
            error_class="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
            sql_state="42613",
        )
    names = [*partition_by, *cluster_by]
    if names and may_lack_columns and not schema.fields:
        raise SchemaMismatchError(
            f"The table would be partitioned or clustered by {', '.join(names)}, and it has no columns. Nothing was created. "
            "Name its columns with their types.",
            error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
            sql_state="42703",
            columns=names,
        )


def add_properties_for_iceberg(properties: dict[str, str]) -> None:
    """Add the properties that IcebergCompat and IcebergWriterCompat need, where `properties` does not set them: column mapping,
    row tracking, and for IcebergWriterCompatV1 also IcebergCompatV2.
    Protocol: Writer Requirements for IcebergCompatV1.
    """
    if Properties(properties).boolean(column_mapping.NAMED_BY_ID):
        properties.setdefault(property_of(2), "true")
        properties.setdefault(column_mapping.MODE_PROPERTY, "id")
    compat_versions = [version for version in (1, 2, 3) if Properties(properties).boolean(property_of(version))]
    if compat_versions:
        properties.setdefault(column_mapping.MODE_PROPERTY, "name")
    if 3 in compat_versions:
        properties.setdefault("delta.enableRowTracking", "true")


def create_table(store: ObjectStore, definition: TableDefinition, operation: str = "CREATE TABLE") -> int:
    """Commit a table without data; returns its version, 0. operation: for the history.

    Raises ProtocolChangedException when the table already exists.
    """
    transaction = Transaction(None, store=store).set_protocol(definition.protocol).set_metadata(definition.metadata)
    for domain in definition.domains:
        transaction.set_domain(domain)
    return transaction.commit(operation, create_parameters(definition))


def with_id_columns(configuration: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table. If it tracks rows, names are added for two hidden columns of data files: rows that are written
    to another file keep their ids and commit versions there. Protocol: Row Tracking.
    """
    properties = Properties(configuration)
    if not properties.boolean("delta.enableRowTracking"):
        return dict(configuration)
    column_names = {name: f"{prefix}{uuid.uuid4()}" for name, prefix in _ID_COLUMNS.items() if name not in properties}
    return {**configuration, **column_names}


# Properties that name the hidden columns, and the beginnings of the names.
_ID_COLUMNS = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-",
}


def check_types(schema: StructType, table_schema: StructType | None = None) -> None:
    """Raises UnsupportedOperationError (DELTA_UNSUPPORTED_DATA_TYPES) for types that a table column cannot have, such as
    intervals.
    table_schema: schema of the existing table, which may have such types from other writers.
    """
    table_types = () if table_schema is None else all_types(table_schema)
    # Unknown types that the table has already are accepted: a change of other columns must not fail because of them.
    accepted_names = {type_name(data_type) for data_type in table_types if not is_known_type(data_type)}
    column_types = ((f.name, data_type) for f in with_char_as_string(schema).fields for data_type in all_types(f.data_type))
    unsupported = {name: type_name(data_type) for name, data_type in column_types if not is_known_type(data_type)}
    unsupported = {name: kind for name, kind in unsupported.items() if kind not in accepted_names}
    if unsupported:
        raise UnsupportedOperationError(
            f"Found columns using unsupported data types: {', '.join(f'{name}: {kind}' for name, kind in unsupported.items())}. "
            "Nothing was changed. Give them other types: an interval may be a number of days or months.",
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
            sql_state="0AKDC",
            columns=list(unsupported),
        )


def check_empty(store: ObjectStore) -> None:
    """Raises InvalidOptionError (DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION) when the directory has files but no table."""
    first_file = next(iter(store.list_recursive("")), None)
    if first_file is not None:
        raise InvalidOptionError(
            f"There is no table at {store.root}, and the directory is not empty: it has {first_file.path}. Nothing was created. "
            "Empty it, or choose another location.",
            error_class="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
            sql_state="42601",
            path=store.root,
        )


def create_parameters(definition: TableDefinition) -> Mapping[str, Any]:
    """The parameters of the operation that creates or replaces a table, for the history."""
    metadata = definition.metadata
    return {
        "partitionBy": list(metadata.partition_columns),
        "clusterBy": list(clustering_columns(definition.config.schema, next(iter(definition.domains), None))),
        "description": metadata.description,
        "isManaged": "false",
        "properties": dict(metadata.configuration),
    }


# ---------------------------------------------------------------- schema and partitioning


def check_schema(
    schema: StructType, partition_by: Sequence[str], mode: str, properties: Properties, table_schema: StructType | None = None
) -> tuple[str, ...]:
    """Check a table's schema, and return its partition columns in the schema's spelling. mode: the column mapping mode.
    properties: the table's properties after the change. table_schema: the current schema of an existing table; None for a new
    one.

    Raises SchemaMismatchError for names, identity columns or partition columns that a table cannot have.
    """
    if not schema.fields:
        raise SchemaMismatchError("A table needs at least one column.", error_class="DELTA_EMPTY_DATA", sql_state="428GU")
    # The mode `name` skips the check for characters that only tables with column mapping may have in names.
    check_new_schema(schema, "name" if _may_keep_names(schema, table_schema) else mode, table_schema)
    check_new_identities(schema, [find_path(schema, (name,))[0].name for name in partition_by])
    if properties.boolean("delta.enableChangeDataFeed"):
        reserved = [f.name for f in schema.fields if f.name.lower() in CHANGE_COLUMNS]
        if reserved:
            raise SchemaMismatchError(
                f"Columns {', '.join(reserved)} have names that the change data feed adds itself. Rename them, or create the "
                "table without delta.enableChangeDataFeed.",
                error_class="RESERVED_CDC_COLUMNS_ON_WRITE",
                sql_state="42939",
                columns=reserved,
            )
    return _partition_columns(schema, partition_by)


def _may_keep_names(schema: StructType, table_schema: StructType | None) -> bool:
    """Whether names with characters that need column mapping are accepted without it: other writers have given the table all of
    these names already, or the caller's DefinitionSettings allow any name."""
    present_names = () if table_schema is None else names_needing_mapping(table_schema)
    return current_definition_settings().allows_any_name or set(names_needing_mapping(schema)) <= set(present_names)


def _partition_columns(schema: StructType, partition_by: Sequence[str]) -> tuple[str, ...]:
    """The partition columns in the schema's spelling. Raises SchemaMismatchError for a column that does not exist or occurs
    twice, for a type without partition values, and if no other column remains."""
    fields = [find_path(schema, (name,))[0] for name in partition_by]
    names = tuple(f.name for f in fields)
    if len(set(names)) < len(names):
        raise SchemaMismatchError(
            f"The table would be partitioned by one column twice: {', '.join(names)}.",
            error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            sql_state="42711",
        )
    for f in fields:
        if isinstance(f.data_type, StructType | ArrayType | MapType | GeospatialType) or f.data_type in (VARIANT, VOID):
            raise SchemaMismatchError(
                f"Column {f.name} is {type_name(f.data_type)}, which no partition value can have. Partition by another.",
                error_class="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                sql_state="42996",
                column=f.name,
            )
    if len(names) == len(schema.fields):
        raise SchemaMismatchError(
            f"All columns ({', '.join(names)}) are partition columns, so no data would be left for the files.",
            error_class="DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
            sql_state="428FT",
        )
    return names
