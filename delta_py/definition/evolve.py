"""Changes of a table's definition by a write: new columns with mergeSchema, or a new schema with overwriteSchema, which may also
change the clustering columns.

Protocol: Change Metadata; Writer Requirements for Column Mapping; Writer Requirements for Clustered Table.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from delta_py.commit.transaction import Transaction
from delta_py.definition.create import check_schema, check_types
from delta_py.definition.definition_settings import current_definition_settings
from delta_py.definition.protocols import raised_protocol
from delta_py.definition.request import WriteRequest
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_py.protocol.clustering import clustering_domain, clustering_paths, with_changed_columns
from delta_py.protocol.features import Properties
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.evolution import merged_schema, replaced_schema
from delta_py.snapshot import Snapshot
from delta_py.types.schema import StructType, schema_to_json


@dataclass(frozen=True, slots=True)
class DefinitionChanges:
    """The parts of an existing table's definition that a commit replaces; None for a part that does not change. Small and
    picklable. clustering: the domain that names the clustering columns.
    """

    metadata: Metadata | None = None
    protocol: Protocol | None = None
    clustering: DomainMetadata | None = None

    @property
    def is_empty(self) -> bool:
        return self.metadata is None and self.protocol is None and self.clustering is None

    def config(self, snapshot: Snapshot) -> TableConfig:
        """The table after the commit. snapshot: the table before it."""
        return TableConfig(self.protocol or snapshot.protocol, self.metadata or snapshot.metadata)

    def add_to(self, transaction: Transaction) -> None:
        """Add the actions of the changed parts to a transaction."""
        if self.metadata is not None:
            transaction.set_metadata(self.metadata)
        if self.protocol is not None:
            transaction.set_protocol(self.protocol)
        if self.clustering is not None:
            transaction.set_domain(self.clustering)


def changed_definition(snapshot: Snapshot, data_schema: StructType, request: WriteRequest) -> DefinitionChanges:
    """How a write of rows with this schema changes the table's definition.

    Raises SchemaMismatchError for a schema that cannot be merged, UnsupportedTableFeatureError for one that needs features
    which the table lacks.
    """
    metadata, protocol = _changed_metadata(snapshot, data_schema, request)
    changes = DefinitionChanges(metadata, protocol)
    return replace(changes, clustering=_changed_clustering(snapshot, changes.config(snapshot), request))


def _changed_metadata(
    snapshot: Snapshot, data_schema: StructType, request: WriteRequest
) -> tuple[Metadata | None, Protocol | None]:
    """The metadata and the protocol after the write; None for each that does not change."""
    config = snapshot.config
    if not _overwrites_schema(request) and not request.merge_schema:
        return None, None
    if _overwrites_schema(request):
        keeps_not_null = current_definition_settings().keeps_not_null
        schema = replaced_schema(config, data_schema, keeps_not_null=keeps_not_null)
        partitions = request.partition_by or ()
    else:
        widen = config.properties.boolean("delta.enableTypeWidening")
        schema = merged_schema(config, data_schema, widen=widen, casts=request.merge_casts)
        partitions = config.partition_columns
    if schema == config.schema and tuple(partitions) == tuple(config.partition_columns):
        return None, None
    metadata = metadata_with_schema(config, schema, tuple(partitions))
    protocol = raised_protocol(snapshot.protocol, schema, Properties(metadata.configuration))
    return metadata, None if protocol == snapshot.protocol else protocol


def _overwrites_schema(request: WriteRequest) -> bool:
    return request.mode.lower() == "overwrite" and request.overwrite_schema


def _changed_clustering(snapshot: Snapshot, config: TableConfig, request: WriteRequest) -> DomainMetadata | None:
    """The clustering domain after the write, None if unchanged. config: the table after the write.

    A table stays clustered by the columns of the same names, if all of them exist. A table that becomes partitioned is clustered
    by none. Protocol: Writer Requirements for Clustered Table.
    """
    domain = snapshot.clustering_domain() if _overwrites_schema(request) else None
    if domain is None:
        return None
    if config.partition_columns:
        new_domain = clustering_domain(config.schema, (), config.column_mapping_mode)
    else:
        new_domain = with_changed_columns(domain, snapshot.schema, config.schema, config.column_mapping_mode)
    return None if clustering_paths(new_domain) == clustering_paths(domain) else new_domain


def metadata_with_schema(
    config: TableConfig, schema: StructType, partition_by: Sequence[str], properties: Mapping[str, str] | None = None
) -> Metadata:
    """The metadata of a table that gets this schema, with ids and physical names for columns that have none yet. config: the
    table before the change. properties: all properties of the table after the change; None for the present ones.

    Raises SchemaMismatchError as check_schema, UnsupportedOperationError as check_types.
    """
    check_types(schema, config.schema)
    mode = config.column_mapping_mode
    configuration = dict(config.metadata.configuration if properties is None else properties)
    if mode != "none":
        first_free = config.properties.integer(column_mapping.MAX_ID_PROPERTY, 0) + 1  # the first id that was never used
        schema, last_id = column_mapping.assign(schema, lambda _: f"col-{uuid.uuid4()}", Properties(configuration), first_free)
        configuration[column_mapping.MAX_ID_PROPERTY] = str(last_id)
    partitions = check_schema(schema, partition_by, mode, Properties(configuration), config.schema)
    return replace(
        config.metadata, schema_string=schema_to_json(schema), partition_columns=partitions, configuration=configuration
    )
