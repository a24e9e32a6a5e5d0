"""The data source that Spark knows as `pydelta`: batch reads and writes.

Spark calls Python in several processes on the driver. One makes the DeltaSource and returns the schema. Others plan a read, make
a writer, and commit. Tasks run elsewhere. These processes share only the pickled values of this file.

    read    DeltaSource (pinned table) -> DeltaReader (ScanState) + DeltaPartitions (files) -> Arrow batches
    write   DeltaSource -> DeltaWriter (WriteState) -> WrittenFiles -> one commit
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex

import pyarrow as pa
import pyspark
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from delta_py.errors import InvalidOptionError, SchemaMismatchError, UnsupportedTableFeatureError
from delta_py.expressions.sql_text.to_sql import to_sql
from delta_py.scan.planning import select_requested_fields
from delta_py.snapshot import Snapshot
from delta_py.types.schema import StructType as DeltaSchema
from spark_plugin.java.supported_versions import refuse_older
from spark_plugin.options.catalog_session_settings import with_session
from spark_plugin.options.common import (
    CATALOG_VIEW,
    COMMAND,
    FACTS,
    FACTS_OF_WRITES,
    FROM_CATALOG,
    REPLACE_PREDICATE,
    confs_of_session,
    has_path,
)
from spark_plugin.options.private import admitted
from spark_plugin.options.read_options import CATALOG_KEY, catalog_entry, read_options, with_catalog_entry
from spark_plugin.options.unity_settings import with_registered
from spark_plugin.pruning import MessagePartition, ScanRequest, limited, plan_message, predicate_of
from spark_plugin.schema_conversion import (
    check_requested,
    from_spark_schema,
    metadata_value,
    to_spark_schema,
    with_metadata,
    without_metadata,
)
from spark_plugin.source.pinned import Pinned, PinnedChanges, PinnedTable, PinnedView, pin
from spark_plugin.source.read_plan import ReadPlan, plan_read
from spark_plugin.source.readers import FORMAT as FORMAT
from spark_plugin.source.readers import DeltaReader, TaskSource
from spark_plugin.spark_versions import to_arrow_schema

if TYPE_CHECKING:
    from spark_plugin.streaming.stream_reader import DeltaStreamReader, PinnedStream

# This module is loaded only in the process that makes a source and returns its schema to Spark.
_CREATE_WORKER = "pyspark.sql.worker.create_data_source"
# Whether this process, which is not that worker, pickles sources as the worker does; see pickled_whole.
_is_whole: ContextVar[bool] = ContextVar("_is_whole", default=False)


class DeltaSource(DataSource):
    """One `load` or `save` of a Delta table.

    The process that returns the schema to Spark looks at the table once. The result travels with this object, so every later
    planning reads the same version. A `load` with a user's schema never calls `schema()`, so the constructor looks at the table
    in that case. A table of a catalog comes without options. Each planning looks at it again; its path is in the schema.

    nonce: private options are accepted only together with it. None, the value in the class itself, accepts no private options.
    catalogs: as registered_settings returns them.
    """

    nonce: str | None = None
    catalogs: Mapping[str, str] = MappingProxyType({})
    _snapshot_class: type[Snapshot] = Snapshot

    def __init__(self, options: dict[str, str]) -> None:
        """Raises InvalidOptionError for private options that pydelta's own methods have not set, and UnsupportedOperationError
        for a Spark that is older than all supported versions."""
        refuse_older(pyspark.__version__)
        super().__init__(with_registered(with_session(admitted(options, self.nonce)), self.catalogs))
        self._pinned: Pinned | None = None
        self._stream: PinnedStream | None = None
        # Other processes get the pinned table with the pickled source, or look at the table when they need it.
        if _CREATE_WORKER in sys.modules and has_path(self.options):
            self._pin_at_load()

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        if CATALOG_VIEW in self.options:
            from spark_plugin.source.catalog_views import names_schema  # only statements about catalogs need it

            return names_schema(self.options)
        pinned = self._stream or self._pin()
        schema, entry = to_spark_schema(pinned.schema), catalog_entry(self.options)
        if FACTS in self.options and isinstance(pinned, PinnedTable):
            from spark_plugin.source.table_facts import with_table_facts  # only tables of catalogs need the facts

            return with_table_facts(schema, pinned, of_writes=self.options[FACTS] == FACTS_OF_WRITES)
        return schema if entry is None else with_metadata(schema, CATALOG_KEY, entry)

    def reader(self, schema: StructType) -> DataSourceReader:
        """schema: the requested columns: all, those of the user's `.schema(...)`, or those of the pruning rule."""
        # A table of a catalog comes without options: they are in the metadata of the schema.
        entry = None if has_path(self.options) else metadata_value(schema, CATALOG_KEY)
        self.options = with_catalog_entry(self.options, entry)
        pinned, request = self._pin(), ScanRequest.parse(schema)
        if isinstance(pinned, PinnedView):
            return limited(RowsReader(pinned.rows(), request.columns), request.limit)
        _check_user_schema(pinned)
        if request.wants_metadata_column:
            pinned = _with_metadata_column(pinned)
        try:
            plan = plan_read(pinned, request)
        except SchemaMismatchError as error:
            if entry is None:
                raise
            raise _stale_entry_error(error, pinned.options.path) from error
        return _reader_of_plan(pinned, request, plan)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch of rows, or one that runs the command in the option COMMAND. schema: of the rows."""
        if COMMAND in self.options:
            from spark_plugin.source.commands import CommandWriter, target_of_write

            return CommandWriter(target_of_write(self.options), self.options[COMMAND], confs_of_session(self.options))
        from spark_plugin.options.write_options import write_options  # imported here, so that workers that only read skip it
        from spark_plugin.source.task_writer import DeltaWriter

        try:
            return DeltaWriter.open(
                write_options(_with_replace_where(self.options), overwrite=overwrite), _columns_to_write(schema)
            )
        except UnsupportedTableFeatureError as error:
            if FROM_CATALOG not in self.options:
                raise
            raise _catalog_write_error(error) from error

    def streamReader(self, schema: StructType) -> DeltaStreamReader:
        from spark_plugin.streaming.stream_reader import make_stream_reader, pin_stream

        return make_stream_reader(self._stream or pin_stream(_without_facts(self.options)), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from spark_plugin.options.streaming_options import stream_write_options
        from spark_plugin.streaming.stream_writer import DeltaStreamWriter

        return DeltaStreamWriter.open(stream_write_options(self.options, complete=overwrite), _columns_to_write(schema))

    def _pin_at_load(self) -> None:
        """Look at the table and fix the version that this load reads, unless this is the sink of a stream or a statement about a
        catalog, which need no version."""
        from spark_plugin.options.streaming_options import (  # imported here, so that workers that plan skip it
            is_stream_read,
            is_stream_write,
        )

        if is_stream_write(self.options) or CATALOG_VIEW in self.options:
            return
        if is_stream_read(self.options):
            from spark_plugin.streaming.stream_reader import pin_stream

            self._stream = pin_stream(self.options)
        else:
            self._pin()

    def _pin(self) -> Pinned:
        """Return the table at the version that this load reads. Looks at the table in the first call only."""
        if self._pinned is None:
            self._pinned = pin(read_options(self.options), self._snapshot_class)
        return self._pinned

    def with_snapshot_cache(self) -> Self:
        """Make this source take snapshots from the process's cache from now on, and return it: for a long-lived process."""
        from delta_py.cached_snapshots import CachedSnapshot  # a worker has no use for it

        self._snapshot_class = CachedSnapshot
        if isinstance(self._pinned, PinnedTable):
            self._pinned = self._pinned.with_snapshot_cache()
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the class of cached snapshots: other processes cache nothing."""
        return {name: value for name, value in self.__dict__.items() if name != "_snapshot_class"}

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Spark pickles this object into every task too, but no task calls it. So only the process that returns the schema, and
        pickled_whole, pickle the whole object. Otherwise a small TaskSource is pickled in its place."""
        is_whole = _CREATE_WORKER in sys.modules or _is_whole.get()
        return super().__reduce_ex__(protocol) if is_whole else (TaskSource, (self.options,))


def pickled_whole(source: DeltaSource) -> bytes:
    """Pickle the source as Spark's schema worker does, but in a process that is not that worker."""
    token = _is_whole.set(True)
    try:
        return bytes(cloudpickle.dumps(source))  # type: ignore[no-untyped-call]
    finally:
        _is_whole.reset(token)


def _columns_to_write(schema: StructType) -> DeltaSchema:
    """Return the columns of rows to write. A catalog entry in the fields' metadata describes the table that the rows come from,
    not the target table. Rows that happen to have no nulls (of a range, of a literal) make no column NOT NULL. delta-spark does
    the same."""
    return from_spark_schema(without_metadata(schema, CATALOG_KEY).toNullable())


def _with_replace_where(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with the condition that Spark's catalogs pass as JSON (REPLACE_PREDICATE) as the option replaceWhere.
    to_sql prints it so that the text is parsed to the same constants. Raises InvalidOptionError if the write has replaceWhere
    too."""
    parsed_options = dict(options)
    predicate = parsed_options.pop(REPLACE_PREDICATE, None)
    if predicate is None:
        return parsed_options
    if any(name.lower() == "replacewhere" for name in parsed_options):
        raise InvalidOptionError(
            "The statement says which rows to replace, and so does the option replaceWhere. Nothing was written. Leave it out.",
            option="replaceWhere",
        )
    return {**parsed_options, "replaceWhere": to_sql(predicate_of(predicate))}


def _catalog_write_error(error: UnsupportedTableFeatureError) -> UnsupportedTableFeatureError:
    """Return the error with the advice to use a save: a save lets Spark compute the rules that pydelta cannot, and a write
    through Spark's catalogs does not.
    """
    return UnsupportedTableFeatureError(
        f"{error.message} A save of a registered session may have Spark compute it: df.write.format('{FORMAT}') or insertInto of "
        "Python, in the place of this INSERT.",
        error_class=error.error_class,
        sql_state=error.sql_state,
    )


def _without_facts(options: Mapping[str, str]) -> dict[str, str]:
    """Remove the facts of a table of a catalog from its options; they were passed on already."""
    return {name: value for name, value in options.items() if name.lower() != FACTS}


def _check_user_schema(pinned: PinnedTable | PinnedChanges) -> None:
    """Check the whole schema of a user, also the columns that the pruning rule drops because the query does not need them.

    Raises SchemaMismatchError.
    """
    if pinned.options.user_schema is not None:
        schema = from_spark_schema(StructType.fromJson(json.loads(pinned.options.user_schema)))
        check_requested(select_requested_fields(pinned.everything, schema), schema)


def _with_metadata_column(pinned: PinnedTable | PinnedChanges) -> PinnedTable:
    assert isinstance(pinned, PinnedTable), "only tables are loaded with a metadata column"
    return pinned.with_metadata_column()


def _reader_of_plan(pinned: PinnedTable | PinnedChanges, request: ScanRequest, plan: ReadPlan) -> DataSourceReader:
    """Return the reader of a plan. A plan without a scan has only a message for the pruning rule."""
    message = plan_message(plan.message(), request.scan_id)
    if plan.scan is None:
        return AnswerReader(message)
    session, lease = pinned.options.session, pinned.lease()
    if request.partial is not None:
        from spark_plugin.source.partial_reader import PartialReader  # few scans need it

        rows = DeltaReader(plan.scan, request.partial.read_columns, session, message=message, lease=lease)
        return PartialReader(rows, request.partial.rows, request.columns)
    reader = DeltaReader(
        plan.scan,
        request.columns,
        session,
        message=message,
        is_replanned=request.is_planned_again,
        lease=lease,
        native=plan.native,
        small_scan=plan.small_scan,
    )
    return limited(reader, request.limit)


def _stale_entry_error(error: SchemaMismatchError, path: str) -> SchemaMismatchError:
    """Return the error for a read through a name whose catalog entry has older columns than the table."""
    return SchemaMismatchError(
        f"{error.message} Spark's catalog has the columns that the table had when its name was entered. DROP TABLE the name, "
        f"which leaves the data, and enter it again: CREATE TABLE ... USING {FORMAT} LOCATION '{path}'.",
        error_class=error.error_class,
        sql_state=error.sql_state,
        path=path,
    )


# ---------------------------------------------------------------- reading


class AnswerReader(DataSourceReader):
    """Answers the pruning rule instead of returning rows: the log's answer, or that there is none. It is never read."""

    def __init__(self, message: Mapping[str, str | bytes]) -> None:
        self._message = message

    def partitions(self) -> list[InputPartition]:
        return [MessagePartition(self._message)]

    def read(self, partition: InputPartition) -> NoReturn:
        raise AssertionError("the pruning rule asked for an answer and reads rows")


class RowsReader(DataSourceReader):
    """Returns rows that were already read."""

    def __init__(self, rows: pa.Table, columns: StructType) -> None:
        self._rows = rows
        self._schema: pa.Schema = to_arrow_schema(columns)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in self._rows.to_batches():
            # Columns are selected only here: a batch without columns would lose its row count when it is pickled.
            yield _columns_of(batch, self._schema)


def _columns_of(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows with only the columns, and nested fields, of the schema."""
    chosen = rows.select(schema.names)
    return pa.RecordBatch.from_pylist(chosen.to_pylist(), schema=schema) if schema.names else chosen
