"""Properties and features that describe a table's log, not its rows; and the high water marks of identity columns.

    with_log_of(current_table, configuration)                            # RESTORE; None for a new table
    metadata, at_ms = keep_log_properties(current_table, protocol, metadata)       # REPLACE, CLONE
    with_marks_of(current_table.schema, metadata)                        # RESTORE, CLONE
    properties_of_new(source)                                    # CREATE TABLE LIKE, SHOW CREATE TABLE

Such properties and features stay unchanged when a command gives the table the metadata of another table or version, and no other
table takes them over.
Protocol: Writer Requirements for In-Commit Timestamps; Catalog-managed Table Enablement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from delta_py.definition.properties import without_bookkeeping
from delta_py.definition.timestamps import SINCE, timestamped_properties
from delta_py.log.coordination import FEATURE as COORDINATED
from delta_py.log.coordination import IDENTITY_PROPERTY, UNITY_PROPERTY, properties_with_coordinator
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.column_mapping import PHYSICAL_NAME
from delta_py.protocol.features import PROTECTED_BEFORE, PROTECTION
from delta_py.protocol.identity_columns import identity_columns, identity_of, with_marks
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.types.schema import StructField, StructType, parse_schema, schema_to_json

# Properties that describe a log: the start of in-commit timestamps, the version before which checkpoints are protected, and the
# table's ids at coordinators.
LOG_PROPERTIES = (*SINCE, PROTECTED_BEFORE, IDENTITY_PROPERTY, UNITY_PROPERTY)
LOG_FEATURES = frozenset({PROTECTION, COORDINATED})


def with_log_of(current_table: Snapshot | None, configuration: Mapping[str, str], *more: str) -> dict[str, str]:
    """The properties, in which those that describe a log come from the current table. current_table: the table that gets the
    properties; None for a new table, which has no such properties. more: names of other properties to take from the current
    table.
    """
    names = {name.lower() for name in (*LOG_PROPERTIES, *more)}
    properties = {name: value for name, value in configuration.items() if name.lower() not in names}
    present_properties = {} if current_table is None else current_table.metadata.configuration
    return properties | {name: value for name, value in present_properties.items() if name.lower() in names}


def properties_of_new(source: Snapshot) -> dict[str, str]:
    """The properties that give a new table the properties and the features of the source. The feature clustering is left out:
    CREATE TABLE names the clustering columns in a clause of its own."""
    protocol = source.protocol
    listed_features = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    return {
        **without_bookkeeping(with_log_of(None, source.metadata.configuration)),
        **{f"delta.feature.{name}": "supported" for name in sorted(listed_features - LOG_FEATURES - {"clustering"})},
    }


def with_marks_of(current_schema: StructType, metadata: Metadata) -> Metadata:
    """The new metadata of a table. Identity columns get the high water mark (the last generated number) of the current schema if
    it is beyond that in the metadata, so that no number is generated twice. Columns are matched by physical name; or else by
    name, because column mapping may have been enabled or removed.
    """
    schema = parse_schema(metadata.schema_string)
    marks = {identity.name: identity.mark for identity in identity_columns(current_schema) if identity.mark is not None}
    marks_by_physical_name = {_physical_name(f): marks[f.name] for f in current_schema.fields if f.name in marks}
    fields = [f for f in schema.fields if identity_of(f) is not None]
    column_marks = [(f.name, marks_by_physical_name.get(_physical_name(f), marks.get(f.name))) for f in fields]
    new_schema = with_marks(schema, [(name, mark) for name, mark in column_marks if mark is not None])
    return metadata if new_schema == schema else replace(metadata, schema_string=schema_to_json(new_schema))


def _physical_name(f: StructField) -> str:
    """The physical name, in any column mapping mode."""
    return str(f.metadata.get(PHYSICAL_NAME, f.name))


def keep_log_properties(current_table: Snapshot, protocol: Protocol, metadata: Metadata) -> tuple[Metadata, int | None]:
    """Keep the properties of the current table's log in the metadata that replaces the table's: its coordinator, the version
    before which checkpoints are protected, and the start of in-commit timestamps. Returns the metadata, and the time (ms) that
    the commit must have, or None for any time. protocol: the table's, after the commit.
    """
    metadata = replace(metadata, configuration=with_log_of(current_table, metadata.configuration))
    configuration, at_ms = timestamped_properties(
        current_table, properties_with_coordinator(current_table.store, TableConfig(protocol, metadata))
    )
    return replace(metadata, configuration=configuration), at_ms
