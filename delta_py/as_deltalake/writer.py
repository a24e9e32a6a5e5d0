"""deltalake's write_deltalake and convert_to_deltalake."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_py.as_deltalake.arguments import COMMIT_FIRST, named_arguments, refuse_generated_columns
from delta_py.as_deltalake.arrow_exchange import reader_in
from delta_py.as_deltalake.exceptions import CommitFailedError, TableNotFoundError, with_deltalake_errors
from delta_py.as_deltalake.operations.sessions import DEFINITIONS, operation
from delta_py.as_deltalake.operations.written_files import commit_empty
from delta_py.as_deltalake.properties import BloomFilterProperties, ColumnProperties, WriterProperties
from delta_py.as_deltalake.schema import columns_of
from delta_py.as_deltalake.sql_dialects import spark_condition, spark_sql
from delta_py.as_deltalake.table import DeltaTable
from delta_py.as_deltalake.transaction import CommitProperties, PostCommitHookProperties
from delta_py.definition.arrow_data import arrow_stream
from delta_py.definition.catalog_entry import enter_in_catalog
from delta_py.definition.create import define_table
from delta_py.definition.definition_settings import definition_settings
from delta_py.definition.replace import has_table
from delta_py.definition.request import WriteRequest
from delta_py.errors import InvalidOptionError, TableAlreadyExistsError
from delta_py.object_stores.open_store import open_or_stage
from delta_py.object_stores.table_store import NO_RULES, NewTableRules
from delta_py.protocol.table_config import TableConfig
from delta_py.row_changes.write import write_rows
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.table import DeltaTable as Table
from delta_py.types.schema import StructType
from delta_py.unity.external_tables import LOCATION_OPTION

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]


@with_deltalake_errors
def write_deltalake(
    table_or_uri: str | os.PathLike[str] | DeltaTable,
    data: Any,
    *,
    partition_by: Sequence[str] | str | None = None,
    mode: str = "error",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    schema_mode: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    predicate: str | None = None,
    target_file_size: int | None = None,
    writer_properties: WriterProperties | None = None,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> None:
    """Write rows to a table, which is created if it does not exist. Times are cut to microseconds. name, description and
    configuration are those of a new table; an existing one keeps its own. A DeltaTable moves to the new version."""
    table = table_or_uri if isinstance(table_or_uri, DeltaTable) else _existing_table(table_or_uri, storage_options)
    if table is not None:
        _move_to_newest(table, commit_properties)
        if mode == "ignore":
            return
    rows = reader_in(data)
    columns = columns_of(rows.schema)
    schema_flags = _schema_flags(table, columns, mode, schema_mode, predicate)
    request = WriteRequest(
        mode=mode,
        partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
        replace_where=None if table is None or predicate is None else _replace_where_condition(predicate, table, schema_mode),
        target_file_bytes=target_file_size,
        truncate_nanoseconds=True,
        tasks=1,
        columns=columns,
        **({} if table is not None else _new_table_arguments(name, description, configuration)),
        **schema_flags,
    )
    store, rules = _open_store_and_rules(table_or_uri, table, storage_options)
    properties = {"commit_properties": commit_properties, "post_commithook_properties": post_commithook_properties}
    _write_rows(store, table, rows, request.following(rules), properties, writer_properties)
    if table is not None:
        table.update_incremental()


def _move_to_newest(table: DeltaTable, properties: CommitProperties | None) -> None:
    """Move the object to the newest version of its table. Raises CommitFailedError if another writer has recorded a transaction
    of one of the commit's applications since the table was opened."""
    versions_before = _recorded_versions(table, properties)
    table.update_incremental()
    if _recorded_versions(table, properties) != versions_before:
        raise CommitFailedError(
            f"Another writer has recorded a transaction of {', '.join(versions_before)} since the table was opened. Nothing was "
            "written. Compare transaction_version with your own before you write again."
        )


def _replace_where_condition(predicate: str, table: DeltaTable, schema_mode: str | None) -> str:
    """The predicate in Spark's dialect. With schema_mode it may name a column that only the new rows have, so it is not checked
    with the table's columns."""
    return spark_sql(predicate) if schema_mode else spark_condition(predicate, table.as_delta.struct_type)


def _schema_flags(
    table: DeltaTable | None, columns: StructType, mode: str, schema_mode: str | None, predicate: str | None
) -> dict[str, Any]:
    """The arguments merge_schema, merge_casts and overwrite_schema of the WriteRequest. columns: of the new rows. Raises
    InvalidOptionError; SchemaMismatchError for new columns that would be generated."""
    if schema_mode == "overwrite" and mode != "overwrite":
        raise InvalidOptionError(
            f"schema_mode='overwrite' goes with mode='overwrite', and the mode is {mode!r}. Nothing was written.",
            option="schema_mode",
        )
    if schema_mode not in (None, "merge", "overwrite"):
        raise InvalidOptionError(f"There is no schema_mode {schema_mode!r}. Use merge or overwrite.", option="schema_mode")
    if table is not None and schema_mode == "merge":
        refuse_generated_columns(table.as_delta.struct_type, columns)
    # An overwrite with a predicate replaces only some rows. If the columns are those of the table, its schema stays as it is.
    has_table_columns = predicate is not None and _has_columns(table, columns)
    overwrites = schema_mode == "overwrite" and table is not None and not has_table_columns
    merges = schema_mode == "merge"
    return {"merge_schema": merges, "merge_casts": merges, "overwrite_schema": overwrites}


def _new_table_arguments(
    name: str | None, description: str | None, configuration: Mapping[str, str | None] | None
) -> dict[str, Any]:
    """The arguments of the WriteRequest that only a new table takes. Properties without a value are left out."""
    properties = {key: text for key, text in (configuration or {}).items() if text is not None}
    return {"name": name, "description": description, "configuration": properties}


def _write_rows(
    store: ObjectStore,
    table: DeltaTable | None,
    rows: pa.RecordBatchReader,
    request: WriteRequest,
    properties: Mapping[str, Any],
    writer_properties: WriterProperties | None,
) -> None:
    """Write the rows and commit. table: None for a new one. properties: commit_properties and post_commithook_properties."""
    config = None if writer_properties is None else _config_for_files(table, request)
    with operation(config, properties, writer_properties):
        version = write_rows(store, arrow_stream(rows), request)
        if table is not None and version == table.version():
            # There were no rows, so nothing was committed. deltalake commits all the same, and records the application's
            # transactions.
            parameters = {"mode": request.save_mode, "partitionBy": list(request.partition_by or ())}
            commit_empty(table.as_delta.snapshot, "WRITE", parameters)


def _open_store_and_rules(
    table_or_uri: str | os.PathLike[str] | DeltaTable, table: DeltaTable | None, storage_options: Mapping[str, str] | None
) -> tuple[ObjectStore, NewTableRules]:
    """The store to write to, and the properties that Unity Catalog demands of a new table: NO_RULES for an existing table."""
    if table is not None:
        return table.as_delta.snapshot.store, NO_RULES
    assert not isinstance(table_or_uri, DeltaTable), "it is the table"
    return open_or_stage(table_or_uri, StorageOptions.of(storage_options or {}))


def _recorded_versions(table: DeltaTable, properties: CommitProperties | None) -> dict[str, int | None]:
    """The transaction versions that the table records for the applications of a commit; None where it has none."""
    transactions = () if properties is None else properties.app_transactions or ()
    return {transaction.app_id: table.transaction_version(transaction.app_id) for transaction in transactions}


def _existing_table(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> DeltaTable | None:
    """The table at a path or URL; None if there is none. If the options name a location in Unity Catalog, a table that is there
    already is entered first."""
    try:
        return DeltaTable(uri, storage_options=storage_options)
    except TableNotFoundError:
        options = StorageOptions.of(storage_options or {})
        if options.get(LOCATION_OPTION) is None:
            return None
        store, _ = open_or_stage(uri, options)
        if not has_table(store):
            return None
    enter_in_catalog(store)
    return DeltaTable(uri, storage_options=storage_options)


def _has_columns(table: DeltaTable | None, columns: StructType) -> bool:
    """Whether the table has columns with these names. Then an overwrite with a predicate need not overwrite the schema."""
    return table is not None and table.as_delta.struct_type.names == columns.names


def _config_for_files(table: DeltaTable | None, request: WriteRequest) -> TableConfig:
    """The table's definition after the write, which names the columns in the files: the existing table's, or that of the new rows
    if the write creates the table or overwrites its schema."""
    assert request.columns is not None, "write_deltalake has set them"
    if table is not None and not request.overwrite_schema:
        return table.as_delta.snapshot.config
    with definition_settings(DEFINITIONS):
        return define_table(request.columns, partition_by=request.partition_by or ()).config


@with_deltalake_errors
def convert_to_deltalake(
    uri: str | os.PathLike[str],
    mode: str = "error",
    partition_by: Any = None,
    partition_strategy: str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    *args: Any,
    collect_stats: bool = True,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> None:
    """Make a directory of Parquet files a table. mode: error, or ignore for an existing table. partition_by: a Schema of the
    columns in the names of directories, in the only strategy `hive` (`day=2024-05-01/`)."""
    keywords = named_arguments(
        "convert_to_deltalake",
        args,
        COMMIT_FIRST,
        {"commit_properties": commit_properties, "post_commithook_properties": post_commithook_properties},
    )
    if partition_by is not None and partition_strategy is None:
        raise ValueError("Partition strategy has to be provided with partition_by.")
    if partition_strategy not in (None, "hive"):
        raise ValueError("Currently only `hive` partition strategy is supported to be converted.")
    if DeltaTable.is_deltatable(uri, storage_options):
        if mode == "ignore":
            return
        raise TableAlreadyExistsError(f"There is a table at {os.fspath(uri)} already. Use mode='ignore' to leave it as it is.")
    with operation(None, keywords):
        Table.convert(
            uri,
            None if partition_by is None else columns_of(partition_by, "partition_by"),
            collect_stats=collect_stats,
            configuration={key: text for key, text in (configuration or {}).items() if text is not None},
            name=name,
            description=description,
            storage_options=storage_options,
        )
