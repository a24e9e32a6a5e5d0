"""Commands that change a table's definition, run where the table is. A command is a name and arguments in JSON.

Over Spark Connect a command travels as an option of a write without rows. CommandWriter runs it when the write is committed,
which happens once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from delta_py.errors import InvalidOptionError
from delta_py.object_stores.open_store import open_or_stage, open_store
from delta_py.object_stores.table_store import NO_RULES, NewTableRules
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from spark_plugin.options.common import COMMAND, property_defaults, single_path, storage_of_session
from spark_plugin.options.storage import storage_options, without_storage
from spark_plugin.source import catalog_objects
from spark_plugin.source.batch_writer import BatchWriter

BUILD_TABLE = "buildTable"
_CLONE = "clone"


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """The table that a command acts on. rules: the properties that the table's catalog requires or suggests if the command
    creates the table; NO_RULES if no catalog manages it."""

    store: ObjectStore
    rules: NewTableRules = NO_RULES


@dataclass(frozen=True, slots=True)
class CatalogObject:
    """What a command of CATALOG_COMMANDS acts on: a table or a schema in Unity Catalog. Only requests to the catalog are needed,
    so no table is opened. url: the name, such as `uc://main.sales`. options: access to the catalog."""

    url: str
    options: StorageOptions


def open_target(path: str, options: StorageOptions, command: str) -> CommandTarget | CatalogObject:
    """Return what a command acts on. The table need not exist for a command that creates one.

    path: a directory, or the name of a table or schema in Unity Catalog. If the command creates a table there, the catalog
    chooses its directory and has rules for its properties; open_or_stage asks the catalog for both. Raises as open_store and
    open_or_stage.
    """
    if command in CATALOG_COMMANDS:
        return CatalogObject(path, options)
    if command in (BUILD_TABLE, _CLONE):
        return CommandTarget(*open_or_stage(path, options))
    return CommandTarget(open_store(path, options))


def target_of_write(options: Mapping[str, str]) -> CommandTarget | CatalogObject:
    """Return the target of a write that is a command, from its options."""
    write_options = without_storage(options)
    storage = storage_options(options, storage_of_session(write_options))
    command = json.loads(options[COMMAND])["name"]
    return open_target(single_path(write_options), storage, command)


def carry_out(target: CommandTarget | CatalogObject, name: str, arguments: Mapping[str, Any]) -> Any:
    """Run a command and return its result: for most commands the table's new version. name: a key of COMMANDS, or of
    CATALOG_COMMANDS for a CatalogObject. arguments: the keyword arguments of its function. Raises InvalidOptionError for a name
    that is no command."""
    if isinstance(target, CatalogObject):
        return CATALOG_COMMANDS[name](target.url, target.options, **arguments)
    command = COMMANDS.get(name)
    if command is None:
        raise InvalidOptionError(f"There is no command {name!r}. Known are {', '.join(COMMANDS)}.", option=COMMAND)
    if target.rules != NO_RULES:  # compared by value: pickling makes another object of NO_RULES
        arguments = _with_catalog_properties(target.rules, name, arguments)
    return command(target.store, **arguments)


def _with_catalog_properties(rules: NewTableRules, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command that creates a table, with the properties that its catalog requires and suggests.

    A property in the arguments takes precedence. The command `clone` has no defaults, so it gets only the required properties.
    """
    defaults = {} if name == _CLONE else {"defaults": rules.defaults(arguments.get("defaults"))}
    return {**arguments, "properties": rules.properties(arguments["properties"]), **defaults}


class CommandWriter(BatchWriter):
    """Runs a command when Spark commits a write without rows. Spark commits once, so the command runs once.

    text: JSON with `name`, a command, and `arguments`, an object of its keyword arguments. confs: the session's settings, which
    may have defaults for the properties of new tables."""

    def __init__(self, target: CommandTarget | CatalogObject, text: str, confs: Mapping[str, str]) -> None:
        self._target, self._command = target, json.loads(text)
        if self._command["name"] == BUILD_TABLE:
            self._command["arguments"]["defaults"] = property_defaults(confs)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        assert not any(batch.num_rows for batch in iterator), "a command has no rows"
        return WriterCommitMessage()

    def commit_here(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        carry_out(self._target, self._command["name"], self._command["arguments"])


# ---------------------------------------------------------------- the commands
# Each takes the table's store and the arguments from the JSON, and returns the table's new version unless it says otherwise. It
# imports what it needs itself, because most processes that import this module run no command, or only one.


def _build_table(
    store: ObjectStore,
    *,
    mode: str,
    schema: str,
    partition_by: list[str],
    cluster_by: list[str],
    description: str | None,
    properties: Mapping[str, str],
    join: bool,
    defaults: Mapping[str, str] | None = None,
) -> int:
    """Create or replace a table; returns its version.

    mode: create, createIfNotExists, replace or createOrReplace. schema: a StructType in JSON; without fields the table gets its
    columns later. join: with mode create, accept an existing table that has the same definition. defaults: properties that the
    table gets if `properties` does not name them."""
    from delta_py.definition.create import define_table
    from delta_py.definition.replace import build_table, has_table
    from delta_py.types.schema import parse_schema

    if mode == "createIfNotExists" and has_table(store):
        defaults = None  # defaults are for new tables, and may not fit the existing one

    definition = define_table(
        parse_schema(schema),
        partition_by=partition_by,
        cluster_by=cluster_by,
        description=description,
        configuration=properties,
        defaults=defaults,
        may_lack_columns=True,
    )
    return build_table(store, mode, definition, join=join)


def _set_properties(store: ObjectStore, *, properties: Mapping[str, str]) -> int:
    from delta_py.alter.alter import set_properties

    return set_properties(store, properties)


def _unset_properties(store: ObjectStore, *, names: list[str], if_exists: bool) -> int:
    from delta_py.alter.alter import unset_properties

    return unset_properties(store, names, if_exists=if_exists)


def _upgrade_protocol(store: ObjectStore, *, reader_version: int, writer_version: int) -> int:
    from delta_py.alter.alter import upgrade_protocol

    return upgrade_protocol(store, reader_version, writer_version)


def _add_feature(store: ObjectStore, *, name: str) -> int:
    from delta_py.alter.alter import add_feature

    return add_feature(store, name)


def _cluster_by(store: ObjectStore, *, columns: list[str]) -> int:
    from delta_py.definition.cluster_by import cluster_by

    return cluster_by(store, columns)


def _new_column(*, name: Any, schema: str, **attributes: Any) -> Any:
    """Return a NewColumn. schema: a StructType in JSON, whose only field has the type, nullability and metadata of the column.
    attributes: other fields of NewColumn; they replace the comment and the metadata of the schema."""
    from delta_py.alter.column_changes import COMMENT, NewColumn
    from delta_py.types.schema import parse_schema

    (field,) = parse_schema(schema).fields
    metadata = {key: value for key, value in field.metadata.items() if key != COMMENT}
    attributes = {"comment": field.metadata.get(COMMENT), "metadata": metadata, **attributes}
    return NewColumn(name, field.data_type, field.nullable, **attributes)


def _add_columns(store: ObjectStore, *, columns: list[Mapping[str, Any]]) -> int:
    from delta_py.alter.alter_columns import add_columns

    return add_columns(store, [_new_column(**column) for column in columns])


def _rename_column(store: ObjectStore, *, name: str, new_name: str) -> int:
    from delta_py.alter.alter_columns import rename_column

    return rename_column(store, name, new_name)


def _drop_columns(store: ObjectStore, *, names: list[str], if_exists: bool) -> int:
    from delta_py.alter.alter_columns import drop_columns

    return drop_columns(store, names, if_exists=if_exists)


def _change_columns(store: ObjectStore, *, changes: list[dict[str, Any]]) -> int:
    """changes: the fields of each ColumnChange, with a new type as `schema`: a StructType in JSON that has one field."""
    from delta_py.alter.alter_columns import change_columns
    from delta_py.alter.column_changes import ColumnChange
    from delta_py.types.schema import parse_schema

    arguments = [dict(change) for change in changes]
    types = [parse_schema(change.pop("schema")).fields[0].data_type if "schema" in change else None for change in arguments]
    return change_columns(store, [ColumnChange(data_type=kind, **change) for kind, change in zip(types, arguments, strict=True)])


def _replace_columns(store: ObjectStore, *, schema: str) -> int:
    from delta_py.alter.alter_columns import replace_columns
    from delta_py.types.schema import parse_schema

    return replace_columns(store, parse_schema(schema))


def _sync_identity(store: ObjectStore, *, name: str) -> int:
    from delta_py.alter.sync_identity import sync_identity

    return sync_identity(store, name)


def _add_constraint(store: ObjectStore, *, name: str, sql: str, version: int, broken_rows: int, time_zone: str) -> int:
    """version: the version whose rows Spark has checked. broken_rows: how many of them violate the condition."""
    from delta_py.alter.table_constraints import CheckedVersion, add_constraint

    return add_constraint(store, name, sql, checked=CheckedVersion(version, broken_rows), time_zone=time_zone)


def _drop_constraint(store: ObjectStore, *, name: str, if_exists: bool) -> int:
    from delta_py.alter.table_constraints import drop_constraint

    return drop_constraint(store, name, if_exists=if_exists)


def _drop_feature(store: ObjectStore, *, name: str, truncate_history: bool) -> int:
    from delta_py.alter.drop_feature import drop_feature

    return drop_feature(store, name, truncate_history=truncate_history)


def _restore(
    store: ObjectStore, *, version: int | None, timestamp: str | None, time_zone: str, ignore_missing_files: bool
) -> Any:
    """Restore a version, or the newest version at or before a time. timestamp: as the user wrote it, in the time zone if it names
    none. Returns delta_py's Restored."""
    from delta_py.copies.restore import restore
    from delta_py.scan.time_travel import parse_timestamp_ms

    timestamp_ms = None if timestamp is None else parse_timestamp_ms(timestamp, time_zone)
    return restore(
        store,
        version=version,
        timestamp_ms=timestamp_ms,
        timestamp=timestamp,
        ignore_missing_files=ignore_missing_files,
    )


def _clone_table(
    store: ObjectStore,
    *,
    source: str,
    version: int | None,
    timestamp: str | None,
    time_zone: str,
    replace_table: bool,
    properties: Mapping[str, str],
) -> dict[str, Any]:
    """Make the table at the store a shallow clone of the source. source: the path of the other table. Returns the clone's version
    and the metrics of its commit."""
    from delta_py.copies.clone import shallow_clone
    from delta_py.scan.time_travel import parse_timestamp_ms
    from delta_py.snapshot import Snapshot

    timestamp_ms = None if timestamp is None else parse_timestamp_ms(timestamp, time_zone)
    snapshot = Snapshot.load(open_store(source, store.options), version=version, timestamp_ms=timestamp_ms)
    return shallow_clone(snapshot, store, replace_table=replace_table, properties=properties)


def _generate(store: ObjectStore, *, mode: str) -> int:
    from delta_py.copies.generate import generate

    return generate(store, mode)


def _create_index(store: ObjectStore, *, column: str, name: str | None) -> int:
    from delta_py.index_commands.index import TableIndexes

    return TableIndexes(store).create(column, name)


def _drop_index(store: ObjectStore, *, name: str) -> int:
    from delta_py.index_commands.index import TableIndexes

    return TableIndexes(store).drop(name)


def _refresh_index(store: ObjectStore, *, name: str | None) -> int:
    from delta_py.index_commands.index import TableIndexes

    return TableIndexes(store).refresh(name)


COMMANDS: Mapping[str, Callable[..., Any]] = {
    BUILD_TABLE: _build_table,
    "setProperties": _set_properties,
    "unsetProperties": _unset_properties,
    "upgradeProtocol": _upgrade_protocol,
    "addFeature": _add_feature,
    "clusterBy": _cluster_by,
    "dropFeature": _drop_feature,
    "addColumns": _add_columns,
    "renameColumn": _rename_column,
    "dropColumns": _drop_columns,
    "changeColumns": _change_columns,
    "replaceColumns": _replace_columns,
    "syncIdentity": _sync_identity,
    "addConstraint": _add_constraint,
    "dropConstraint": _drop_constraint,
    "restore": _restore,
    _CLONE: _clone_table,
    "generate": _generate,
    "createIndex": _create_index,
    "dropIndex": _drop_index,
    "refreshIndex": _refresh_index,
}

CATALOG_COMMANDS: Mapping[str, Callable[..., Any]] = {
    "dropTable": catalog_objects.drop_table,
    "renameTable": catalog_objects.rename_table,
    "createSchema": catalog_objects.create_schema,
    "dropSchema": catalog_objects.drop_schema,
}
"""Commands for which no table is opened."""
