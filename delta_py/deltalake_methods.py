"""Methods of DeltaTable by the names that users of deltalake know, on top of the methods that DeltaTable has by its own names.

docs/from-deltalake.md lists all names of deltalake, and what they are here. delta_py/as_deltalake has a DeltaTable that behaves
as deltalake's in every detail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, Self, SupportsIndex

import pyarrow as pa

from delta_py.errors import InvalidOptionError, TableNotFoundError, shown
from delta_py.object_stores.open_store import PathLike, open_or_stage, open_store
from delta_py.object_stores.table_store import NO_RULES, NewTableRules
from delta_py.scan.time_travel import to_timestamp_ms
from delta_py.snapshot import Snapshot
from delta_py.storage.storage_errors import raises_storage_errors, storage_failures
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.types.schema import StructType, from_arrow_schema

if TYPE_CHECKING:
    from delta_py.expressions.tree import Expression
    from delta_py.protocol.table_config import TableConfig
    from delta_py.scan.planning import Scan

# The modes of `create`, and the modes of build_table that they become.
_BUILD_MODES = {"error": "create", "ignore": "createIfNotExists", "overwrite": "createOrReplace"}


class _ArrowSchema(Protocol):
    def __arrow_c_schema__(self) -> object: ...


def is_delta_table(path: PathLike, storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether there is a table at a path. Raises what opening it raises, except TableNotFoundError."""
    try:
        store = open_store(path, StorageOptions.of(storage_options or {}))
        with storage_failures(store.root):
            Snapshot.load(store)
    except TableNotFoundError:
        return False
    return True


def create_at(
    store: ObjectStore,
    schema: StructType | pa.Schema | _ArrowSchema,
    *,
    mode: str = "error",
    partition_by: Sequence[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    rules: NewTableRules = NO_RULES,
) -> int:
    """Create a table without rows; returns its version. mode: error, ignore (an existing table stays) or overwrite (an existing
    table gets this definition, and loses its rows). rules: what the catalog of a new table adds to its definition, from
    open_or_stage. Raises as definition/replace.py."""
    from delta_py.definition.create import define_table
    from delta_py.definition.replace import build_table

    if mode not in _BUILD_MODES:
        raise InvalidOptionError(
            f"A table cannot be created in the mode {mode!r}. Use error, ignore or overwrite; write_delta appends rows.",
            option="mode",
        )
    struct_type = columns_in(schema, "schema")
    columns = [partition_by] if isinstance(partition_by, str) else list(partition_by or ())
    definition = define_table(
        struct_type,
        partition_by=columns,
        name=name,
        description=description,
        configuration=rules.properties(configuration),
        defaults=rules.defaults(None),
    )
    return build_table(store, _BUILD_MODES[mode], definition)


def columns_in(schema: StructType | pa.Schema | _ArrowSchema, option: str) -> StructType:
    """The columns of a schema. option: the name of the caller's argument, for messages. Raises InvalidOptionError for a value
    that is no schema."""
    return schema if isinstance(schema, StructType) else from_arrow_schema(arrow_schema_in(schema, option))


def arrow_schema_in(schema: Any, option: str) -> pa.Schema:
    """An Arrow schema from any object with an Arrow schema. option: the name of the caller's argument, for messages. Raises
    InvalidOptionError for a value that is no schema, such as a text."""
    try:
        return pa.schema(schema)
    except (TypeError, ValueError) as error:
        raise InvalidOptionError(
            f"{option} is {shown(schema)}, which is no schema. Nothing was written. Give a schema of Arrow, such as "
            'pyarrow.schema([("id", pyarrow.int64())]), or an object that has one.',
            option=option,
        ) from error


def absolute_paths(scan: Scan, table_root: str) -> list[str]:
    """The absolute paths or URLs of a scan's files."""
    from delta_py.protocol.paths import resolve

    return [resolve(table_root, path) for path in scan.paths()]


def distinct_partitions(scan: Scan, config: TableConfig) -> list[dict[str, str | None]]:
    """The partition values of a scan's files, as texts by column, each combination once. Keys of a file's partition values that
    are no partition column of the table are left out."""
    logical_names = dict(zip(config.physical_partition_columns, config.partition_columns, strict=True))
    distinct = dict.fromkeys(tuple(values) for values in scan.files["partition_values"].to_pylist())
    return [{logical_names[key]: text for key, text in values if key in logical_names} for values in distinct]


@raises_storage_errors(lambda table: table._snapshot.table_root)
class DeltalakeMethods:
    """The base class that gives DeltaTable its methods by deltalake's names."""

    _snapshot: Snapshot
    _session_timezone: str

    @staticmethod
    def is_deltatable(path: PathLike, storage_options: Mapping[str, str] | None = None) -> bool:
        """Whether there is a table at the path."""
        return is_delta_table(path, storage_options)

    @classmethod
    def create(
        cls,
        path: PathLike,
        schema: StructType | pa.Schema | _ArrowSchema,
        mode: str = "error",
        partition_by: Sequence[str] | str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Create a table without rows, and return it. schema: of Arrow, or any object with an Arrow schema. mode: error, ignore
        (an existing table stays as it is) or overwrite (an existing table gets this definition, and loses its rows)."""
        store, rules = open_or_stage(path, StorageOptions.of(storage_options or {}))
        with storage_failures(store.root):
            create_at(
                store,
                schema,
                mode=mode,
                partition_by=partition_by,
                name=name,
                description=description,
                configuration=configuration,
                rules=rules,
            )
        return cls(path, store=store)  # type: ignore[call-arg]

    # ------------------------------------------------------------ versions

    def load_as_version(self, version: SupportsIndex | str | date) -> None:
        """Move this object to another version: its number, or the newest one at or before a time."""
        store = self._snapshot.store
        if isinstance(version, SupportsIndex):
            self._snapshot = Snapshot.load(store, version=index(version))
        else:
            self._snapshot = Snapshot.load(store, timestamp_ms=to_timestamp_ms(version, self._session_timezone))

    def update_incremental(self) -> None:
        """Move this object to the newest version."""
        self._snapshot = Snapshot.load(self._snapshot.store)

    # ------------------------------------------------------------ files and rows

    def count(self, filter: str | Expression | None = None) -> int:
        """The number of rows for which the filter is true. Without a filter it comes from the log if all files state their
        rows."""
        from delta_py.parquet.count_rows import count_rows

        return count_rows(self._snapshot, self._predicate(filter), self._session_timezone)

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """This version's data files, one row each, with typed statistics and partition values: path, size_bytes,
        modification_time (ms), num_records, null_count, min, max, partition. flatten: columns such as `min.price` instead of
        structs."""
        from delta_py.exchange.add_actions import add_actions

        return add_actions(self._snapshot, flatten, timezone=self._session_timezone)

    def file_uris(self, partition_filters: Sequence[Sequence[Any]] | None = None) -> list[str]:
        """The absolute paths or URLs of this version's data files. partition_filters: as in exchange/partition_filters.py."""
        from delta_py.scan.planning import plan_scan

        scan = plan_scan(self._snapshot, None, self._partition_predicate(partition_filters))
        return absolute_paths(scan, self._snapshot.table_root)

    def partitions(self, partition_filters: Sequence[Sequence[Any]] | None = None) -> list[dict[str, str | None]]:
        """The partition values of this version's files, as texts by column, each combination once."""
        from delta_py.scan.planning import plan_scan

        if not self._snapshot.config.partition_columns:
            return []
        scan = plan_scan(self._snapshot, None, self._partition_predicate(partition_filters))
        return distinct_partitions(scan, self._snapshot.config)

    def to_pyarrow_dataset(self, filter: str | Expression | None = None) -> Any:
        """This version as a pyarrow.dataset.Dataset, which duckdb and polars filter by themselves: partition values and
        statistics of each file let them skip it. filter: SQL; files that cannot hold such rows are left out.

        Files with deletion vectors, and all files of tables with column mapping, are read into memory at once. to_batches and
        `__arrow_c_stream__` read any table in bounded memory. Raises as exchange/arrow_dataset.py.
        """
        from delta_py.exchange.arrow_dataset import arrow_dataset

        return arrow_dataset(self._snapshot, self._predicate(filter), timezone=self._session_timezone)

    def to_pyarrow_table(self, columns: Sequence[str] | None = None, filter: str | Expression | None = None) -> pa.Table:
        """deltalake's name of `to_arrow`: the rows for which the filter (SQL) is true."""
        return self.to_arrow(columns, filter)  # type: ignore[attr-defined]

    def load_cdf(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | date | None = None,
        ending_timestamp: str | date | None = None,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
    ) -> pa.RecordBatchReader:
        """deltalake's name of `changes`: row changes between two versions or times, both inclusive. Without a start, they begin
        with version 0. predicate: SQL."""
        if starting_version is None and starting_timestamp is None:
            starting_version = 0
        return self.changes(  # type: ignore[attr-defined]
            starting_version=starting_version,
            ending_version=ending_version,
            starting_timestamp=starting_timestamp,
            ending_timestamp=ending_timestamp,
            columns=columns,
            filter=predicate,
        )

    # ------------------------------------------------------------ maintenance

    def create_checkpoint(self) -> int:
        """deltalake's name of `checkpoint`: write a checkpoint of this version; returns the number of files in it."""
        return self.checkpoint()  # type: ignore[attr-defined, no-any-return]

    def cleanup_metadata(self) -> int:
        """deltalake's name of `clean_log`: delete log files that are not needed any more; returns their number."""
        return self.clean_log()  # type: ignore[attr-defined, no-any-return]

    def compact_logs(self, starting_version: int, ending_version: int) -> tuple[int, int] | None:
        """deltalake's name of `compact_log`: write the commits of a range, both inclusive, as one file too. Returns the range;
        None if there is nothing to gain."""
        return self.compact_log(starting_version, ending_version)  # type: ignore[attr-defined, no-any-return]

    def repair(self, dry_run: bool = False) -> dict[str, Any]:
        """Remove the files from the table that are missing in its storage: their rows are lost. Returns dry_run and
        files_removed. fsck says more, and repairs more."""
        from delta_py.repair.fsck import fsck

        faults = fsck(self._snapshot.store, dry_run=dry_run, allow_data_loss=True)
        paths = faults.filter(faults["can_repair"])["data_file"].drop_null().unique()
        return {"dry_run": dry_run, "files_removed": paths.to_pylist()}

    def transaction_version(self, app_id: str) -> int | None:
        """The newest transaction version that this version records for an application; None if there is none."""
        transaction = self._snapshot.set_transactions().get(app_id)
        return None if transaction is None else transaction.version

    # ------------------------------------------------------------ helpers

    def _predicate(self, filter: str | Expression | None, schema: StructType | None = None) -> Expression | None:
        """The filter as an expression; None if there is no filter. A text is parsed as SQL over the columns of `schema`, or of
        the table."""
        if not isinstance(filter, str):
            return filter
        from delta_py.expressions.parse import parse_predicate

        return parse_predicate(filter, schema or self._snapshot.schema, session_timezone=self._session_timezone)

    def _partition_predicate(self, filters: Sequence[Sequence[Any]] | None) -> Expression | None:
        """The filters of partitions, (column, operator, value) each, as one expression; None if there are none."""
        from delta_py.exchange.partition_filters import partition_condition

        config = self._snapshot.config
        return self._predicate(partition_condition(config.schema, config.partition_columns, filters or ()))
