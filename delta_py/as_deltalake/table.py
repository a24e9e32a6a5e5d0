"""deltalake's DeltaTable: an object that moves to the new version with each of its operations.

    dt = DeltaTable("/data/events")
    dt.delete("day < date'2024-01-01'")
    dt.version()

`dt.as_delta` is the delta_py.DeltaTable of the same version, for everything that deltalake does not have. Conditions and
expressions are SQL in Spark's dialect, which is DataFusion's in nearly all that conditions use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from delta_py.as_deltalake.arguments import (
    COMMIT_FIRST,
    HOOKS_FIRST,
    as_file_system,
    known_properties,
    named_arguments,
    version_of,
    version_or_time,
    without_statistics,
)
from delta_py.as_deltalake.arrow_exchange import reader_out, table_out
from delta_py.as_deltalake.descriptions import DeltaTableConfig, Metadata, ProtocolVersions
from delta_py.as_deltalake.exceptions import DeltaError, raises_deltalake_errors
from delta_py.as_deltalake.operations import metrics
from delta_py.as_deltalake.operations.alterer import TableAlterer
from delta_py.as_deltalake.operations.merger import TableMerger
from delta_py.as_deltalake.operations.optimizer import TableOptimizer
from delta_py.as_deltalake.operations.sessions import TableSession, operation, table_operation
from delta_py.as_deltalake.operations.written_files import commit_files, deletion_masks
from delta_py.as_deltalake.properties import WriterProperties
from delta_py.as_deltalake.pruning import condition_of
from delta_py.as_deltalake.schema import Schema, columns_of
from delta_py.as_deltalake.sql_dialects import spark_condition, spark_expression, spark_sql, with_lenient_casts
from delta_py.as_deltalake.transaction import AddAction, CommitProperties, PostCommitHookProperties
from delta_py.deltalake_methods import absolute_paths, create_at, distinct_partitions, is_delta_table
from delta_py.log.history import commit_infos
from delta_py.object_stores.open_store import open_or_stage, open_store
from delta_py.scan.file_groups import CHANGE_FIELDS
from delta_py.storage.addresses import has_scheme
from delta_py.storage.store_options import StorageOptions
from delta_py.table import DeltaTable as Table
from delta_py.types.schema import StructType

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DeltaTable", "DeltaTableConfig", "Metadata", "ProtocolVersions", "TableAlterer", "TableMerger", "TableOptimizer"]

# *args of the methods: arguments that older versions of deltalake took by position, in the order of one of these tuples
# (COMMIT_FIRST, HOOKS_FIRST, ...).
_CREATE_ORDER = (*COMMIT_FIRST, "raise_if_key_not_exists")
_VACUUM_ORDER = (*HOOKS_FIRST, "full", "keep_versions")


@raises_deltalake_errors
class DeltaTable:
    """One version of a table, as in deltalake. without_files: methods that need the list of files raise DeltaError. skip_stats:
    get_add_actions returns nulls for statistics. log_buffer_size has no effect."""

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        without_files: bool = False,
        log_buffer_size: int | None = None,
        skip_stats: bool = False,
    ) -> None:
        self._storage_options = storage_options
        self._config = DeltaTableConfig(without_files, log_buffer_size or 4 * (os.cpu_count() or 1), skip_stats)
        store = open_store(table_uri, StorageOptions.of(storage_options or {}))
        self.as_delta = Table(store.root, version=version, store=store)

    @property
    def table_config(self) -> DeltaTableConfig:
        return self._config

    @staticmethod
    def is_deltatable(table_uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> bool:
        return is_delta_table(table_uri, storage_options)

    @classmethod
    def create(
        cls,
        table_uri: str | os.PathLike[str],
        schema: Any,
        mode: str = "error",
        partition_by: Sequence[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | None] | None = None,
        storage_options: Mapping[str, str] | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        raise_if_key_not_exists: bool | None = None,
    ) -> Self:
        """Create a table. mode: error, ignore or overwrite, for a table that exists already. raise_if_key_not_exists: False
        leaves out properties that begin with `delta.` and that Delta does not know, with a warning."""
        keywords = named_arguments(
            "create",
            args,
            _CREATE_ORDER,
            {
                "commit_properties": commit_properties,
                "post_commithook_properties": post_commithook_properties,
                "raise_if_key_not_exists": raise_if_key_not_exists,
            },
        )
        store, rules = open_or_stage(table_uri, StorageOptions.of(storage_options or {}))
        properties = {key: value for key, value in (configuration or {}).items() if value is not None}
        if keywords["raise_if_key_not_exists"] is False:
            properties = known_properties(properties)
        with operation(None, keywords):
            create_at(
                store,
                columns_of(schema),
                mode=mode,
                partition_by=partition_by,
                name=name,
                description=description,
                configuration=properties,
                rules=rules,
            )
        return cls(table_uri, storage_options=storage_options)

    # ------------------------------------------------------------ description

    def __repr__(self) -> str:
        return repr(self.as_delta)

    def _repr_html_(self) -> str:
        return self.as_delta._repr_html_()

    def version(self) -> int:
        return self.as_delta.version

    @property
    def table_uri(self) -> str:
        root = self.as_delta.snapshot.table_root
        return f"{root if has_scheme(root) else f'file://{root}'}/"

    def schema(self) -> Schema:
        return Schema._of(self.as_delta.struct_type)

    def metadata(self) -> Metadata:
        return Metadata(self.as_delta)

    def protocol(self) -> ProtocolVersions:
        protocol = self.as_delta.protocol
        writer, reader = protocol.writer_features, protocol.reader_features
        return ProtocolVersions(
            protocol.min_reader_version,
            protocol.min_writer_version,
            None if writer is None else sorted(writer),
            None if reader is None else sorted(reader),
        )

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commitInfo of each commit that the log still has, newest first, and its version."""
        return [{**metrics.with_numeric_metrics(info), "version": version} for version, info in commit_infos(self._store, limit)]

    def transaction_version(self, app_id: str) -> int | None:
        return self.as_delta.transaction_version(app_id)

    # ------------------------------------------------------------ versions

    def load_as_version(self, version: int | str | datetime) -> None:
        """Move to a version, or to the newest one at or before a time; a text needs an offset, such as `2024-05-01T00:00:00Z`."""
        self.as_delta.load_as_version(version_of(self._store, version_or_time(version)))

    def update_incremental(self) -> None:
        self.as_delta.update_incremental()

    # ------------------------------------------------------------ files

    def file_uris(self, partition_filters: Any = None, *, file_pruning_predicate: Any = None) -> list[str]:
        return absolute_paths(self._pruned_scan(partition_filters, file_pruning_predicate), self.as_delta.snapshot.table_root)

    def partitions(self, partition_filters: Any = None, *, file_pruning_predicate: Any = None) -> list[dict[str, str | None]]:
        config = self.as_delta.snapshot.config
        if not config.partition_columns:
            return []
        return distinct_partitions(self._pruned_scan(partition_filters, file_pruning_predicate), config)

    def get_add_actions(self, flatten: bool = False) -> Any:
        self._check_files()
        actions = self.as_delta.get_add_actions(flatten)
        if self._config.skip_stats:
            actions = without_statistics(actions)
        return table_out(actions)

    def deletion_vectors(self) -> Any:
        """filepath and selection_vector (false for a deleted row) of each file with a deletion vector."""
        self._check_files()
        return reader_out(deletion_masks(self.as_delta.snapshot))

    def count(self) -> int:
        return self.as_delta.count()

    # ------------------------------------------------------------ rows

    def scan(self, columns: Sequence[str] | None = None, predicate: str | None = None) -> Any:
        return reader_out(self.as_delta.to_batches(columns, _in_spark_dialect(predicate, self.as_delta.struct_type)))

    def to_pyarrow_dataset(
        self,
        partitions: Any = None,
        filesystem: Any = None,
        parquet_read_options: Any = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,
        file_pruning_predicate: Any = None,
    ) -> Any:
        """Also for tables with deletion vectors and column mapping: see delta_py/exchange/arrow_dataset.py."""
        from delta_py.exchange.arrow_dataset import arrow_dataset

        self._check_files()
        if as_large_types and schema is None:
            schema = pa.schema(self.schema().to_arrow(as_large_types=True))
        return arrow_dataset(
            self.as_delta.snapshot,
            self._condition(partitions, file_pruning_predicate),
            filesystem=as_file_system(filesystem),
            read_options=parquet_read_options,
            schema=schema,
        )

    def to_pyarrow_table(
        self, partitions: Any = None, columns: Sequence[str] | None = None, filesystem: Any = None, filters: Any = None
    ) -> pa.Table:
        """filters: an expression of pyarrow, or lists of (column, operator, value)."""
        from pyarrow.parquet import filters_to_expression

        condition = None if filters is None else filters_to_expression(filters)
        dataset = self.to_pyarrow_dataset(partitions=partitions, filesystem=filesystem)
        return dataset.to_table(columns=None if columns is None else list(columns), filter=condition)

    def to_pandas(
        self,
        partitions: Any = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> pd.DataFrame:
        return self.to_pyarrow_table(partitions, columns, filesystem, filters).to_pandas(types_mapper=types_mapper)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.as_delta.__arrow_c_stream__(requested_schema)

    def load_cdf(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | None = None,
        ending_timestamp: str | datetime | None = None,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        allow_out_of_range: bool = False,
    ) -> Any:
        """allow_out_of_range: no rows, instead of an error, for a start after the newest version."""
        from delta_py.as_deltalake.operations.change_feed import read_changes

        bounds = (starting_version, ending_version, version_or_time(starting_timestamp), version_or_time(ending_timestamp))
        feed_columns = StructType((*self.as_delta.struct_type.fields, *CHANGE_FIELDS))
        condition = None if predicate is None else spark_expression(predicate, feed_columns)
        return reader_out(read_changes(self.as_delta, *bounds, columns, condition, allow_out_of_range=allow_out_of_range))

    # ------------------------------------------------------------ changing rows

    def delete(
        self,
        predicate: str | None = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        block = partial(self._block, "delete", args, HOOKS_FIRST, commit_properties, post_commithook_properties)
        with block(writer_properties):
            operation_metrics = self.as_delta.delete(_in_spark_dialect(predicate, self.as_delta.struct_type))
            return metrics.by_deltalake_names(operation_metrics, metrics.DELETE)

    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: str | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """error_on_type_mismatch: whether a value that does not fit its column is an error; otherwise it becomes null."""
        block = partial(self._block, "update", args, HOOKS_FIRST, commit_properties, post_commithook_properties)
        if (updates is None) == (new_values is None):
            raise ValueError("Give updates (SQL expressions) or new_values (values), one of the two.")
        if updates is not None and not all(isinstance(text, str) for pair in updates.items() for text in pair):
            raise TypeError(f"updates are SQL expressions by column, as texts, and not {updates}. new_values are Python values.")
        with block(writer_properties):
            schema, by_column = self.as_delta.struct_type, None
            if updates is not None:
                by_column = {spark_sql(name): spark_condition(sql, schema) for name, sql in updates.items()}
                if not error_on_type_mismatch:
                    by_column = with_lenient_casts(by_column, schema)
            values = None if new_values is None else {spark_sql(name): value for name, value in new_values.items()}
            operation_metrics = self.as_delta.update(by_column, values, _in_spark_dialect(predicate, schema))
            return metrics.by_deltalake_names(operation_metrics, metrics.UPDATE)

    def merge(
        self,
        source: Any,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> TableMerger:
        """streamed_exec, max_spill_size, max_temp_directory_size have no effect: the source is in memory, the table's rows
        stream."""
        block = partial(self._block, "merge", args, HOOKS_FIRST, commit_properties, post_commithook_properties)
        return TableMerger(
            self.as_delta,
            source,
            predicate,
            source_alias,
            target_alias,
            merge_schema=merge_schema,
            is_lenient=not error_on_type_mismatch,
            block=partial(block, writer_properties),
        )

    def create_write_transaction(
        self,
        actions: Sequence[AddAction],
        mode: str,
        schema: Any,
        partition_by: Sequence[str] | str | None = None,
        partition_filters: Any = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit data files that the caller has written below the table's root. mode: append or overwrite."""
        block = partial(
            self._block, "create_write_transaction", args, COMMIT_FIRST, commit_properties, post_commithook_properties
        )
        columns = [partition_by] if isinstance(partition_by, str) else list(partition_by or ())
        with block():
            condition = self._condition(partition_filters, None)
            commit_files(self.as_delta.snapshot, actions, mode, columns_of(schema), columns, condition)

    # ------------------------------------------------------------ maintenance

    @property
    def optimize(self) -> TableOptimizer:
        return TableOptimizer(TableSession(self.as_delta))

    @property
    def alter(self) -> TableAlterer:
        return TableAlterer(TableSession(self.as_delta))

    def vacuum(
        self,
        retention_hours: int | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        full: bool | None = None,
        keep_versions: Sequence[int] | None = None,
    ) -> list[str]:
        """The paths of the files that were, or would be, deleted. full: list the table's directories; else use the log alone."""
        keywords = named_arguments(
            "vacuum",
            args,
            _VACUUM_ORDER,
            {
                "commit_properties": commit_properties,
                "post_commithook_properties": post_commithook_properties,
                "full": full,
                "keep_versions": keep_versions,
            },
        )
        if retention_hours is not None and retention_hours < 0:
            raise ValueError("The retention periods should be positive.")
        with table_operation(self.as_delta, keywords):
            files = self.as_delta.vacuum(
                retention_hours,
                dry_run=dry_run,
                enforce_retention_duration=enforce_retention_duration,
                keep_versions=tuple(keywords["keep_versions"] or ()),
                lite=not keywords["full"],
            )
            paths: list[str] = files["path"].to_pylist()
            return paths

    def restore(
        self,
        target: int | datetime | str,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """protocol_downgrade_allowed has no effect: the table keeps its protocol."""
        with self._block("restore", (), COMMIT_FIRST, commit_properties, post_commithook_properties):
            version = version_of(self._store, version_or_time(target))
            operation_metrics = self.as_delta.restore(version, ignore_missing_files=ignore_missing_files)
            return metrics.by_deltalake_names(operation_metrics, metrics.RESTORE)

    def repair(
        self,
        dry_run: bool = False,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        block = partial(self._block, "repair", args, HOOKS_FIRST, commit_properties, post_commithook_properties)
        with block():
            return self.as_delta.repair(dry_run)

    def create_checkpoint(self) -> None:
        self.as_delta.checkpoint()

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        self.as_delta.compact_log(starting_version, ending_version)

    def cleanup_metadata(self) -> None:
        self.as_delta.clean_log()

    def generate(self) -> None:
        self.as_delta.generate()

    # ------------------------------------------------------------ helpers

    @property
    def _store(self) -> Any:
        return self.as_delta.snapshot.store

    @property
    def _block(self) -> Any:
        """TableSession.block for this table: it makes the `with` block in which a method runs its operation. In the block, the
        caller's commit properties count, and errors are deltalake's; after it, this object is at the newest version."""
        return TableSession(self.as_delta).block

    def _check_files(self) -> None:
        if self._config.without_files:
            raise DeltaError("Table is instantiated without files. Open it again without the argument without_files.")

    def _condition(self, filters: Any, file_pruning_predicate: Any) -> Any:
        """The condition that selects files; None for all files. `filters` (of partitions) is the older name of the argument
        `file_pruning_predicate`. Raises ValueError if both are given."""
        if filters is not None and file_pruning_predicate is not None:
            raise ValueError("Give file_pruning_predicate alone: the filters of partitions are its older name.")
        return condition_of(self.as_delta.snapshot, filters if file_pruning_predicate is None else file_pruning_predicate)

    def _pruned_scan(self, filters: Any, file_pruning_predicate: Any) -> Any:
        """The scan of the files that may have rows for which the condition is true. Raises DeltaError for a table that was opened
        without files."""
        from delta_py.scan.planning import plan_scan

        self._check_files()
        return plan_scan(self.as_delta.snapshot, None, self._condition(filters, file_pruning_predicate))


def _in_spark_dialect(predicate: str | None, schema: StructType) -> str | None:
    """A condition on the columns of the schema, in Spark's dialect; None if there is no condition."""
    return None if predicate is None else spark_condition(predicate, schema)
