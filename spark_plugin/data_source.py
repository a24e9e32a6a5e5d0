"""The data source that Spark knows as `pydelta`: batch reads and writes.

Spark asks Python in several processes on the driver: one makes the DeltaSource and asks for the schema, others plan a
read, make a writer, and commit; tasks run elsewhere. What they share travels in the pickled values of this file.

    read    DeltaSource (pinned table) -> DeltaReader (ScanState) + DeltaPartitions (files) -> Arrow batches
    write   DeltaSource -> DeltaWriter (WriteState) -> WrittenFiles -> one commit
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
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
from delta_py.expressions.to_sql import to_sql
from delta_py.protocol.schema import StructType as DeltaSchema
from delta_py.scan.planning import cut_to
from delta_py.scan.scan_state import ColumnSource
from delta_py.snapshot import Snapshot
from spark_plugin.convert import (
    check_requested,
    from_spark_schema,
    metadata_value,
    to_spark_schema,
    with_metadata,
    without_metadata,
)
from spark_plugin.options.common import (
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
from spark_plugin.options.told_settings import with_session
from spark_plugin.pruning import (
    answer_text,
    columns_of_partial_rows,
    exact_predicate,
    explain_text,
    facts_text,
    few_text,
    is_only_question,
    is_planned_again,
    limited,
    log_question,
    native_wish,
    partial_rows,
    partial_text,
    predicate_of,
    pushed_limit,
    pushed_predicate,
    strip_marker,
    wants_metadata_column,
    wants_statistics,
)
from spark_plugin.source.few_rows import FewRows
from spark_plugin.source.pinned import Pinned, PinnedChanges, PinnedTable, PinnedView, pin
from spark_plugin.source.readers import FORMAT as FORMAT
from spark_plugin.source.readers import DeltaReader, TaskSource
from spark_plugin.spark_versions import refuse_older, to_arrow_schema

if TYPE_CHECKING:
    from delta_py.scan.partial_rows import PartialRows
    from delta_py.scan.planning import Scan
    from spark_plugin.source.native_files import NativeFiles
    from spark_plugin.streaming.stream_reader import DeltaStreamReader, PinnedStream

_CREATE_WORKER = "pyspark.sql.worker.create_data_source"
_is_whole: ContextVar[bool] = ContextVar("_is_whole", default=False)


class DeltaSource(DataSource):
    """One `load` or `save` of a Delta table.

    In the process that Spark asks for the schema the table is looked at once, and what was found travels with this object,
    so that every later planning reads the same version. `load` with a schema of the user's never asks for the schema;
    that is why it happens when the object is made there. A table of a catalog comes without options, and is looked at anew
    in each planning: its path is in the schema.

    nonce: beside which private options are taken; None, as in the class itself, to take none.
    """

    nonce: str | None = None
    _snapshots: type[Snapshot] = Snapshot

    def __init__(self, options: dict[str, str]) -> None:
        """Raises InvalidOptionError for private options that pydelta's own methods have not set, and UnsupportedOperationError
        for a Spark that is older than all supported versions."""
        refuse_older(pyspark.__version__)
        super().__init__(with_session(admitted(options, self.nonce)))
        self._pinned: Pinned | None = None
        self._stream: PinnedStream | None = None
        if _CREATE_WORKER in sys.modules and has_path(self.options):
            self._look()

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        pinned = self._stream or self._pin()
        schema, entry = to_spark_schema(pinned.schema), catalog_entry(self.options)
        if FACTS in self.options and isinstance(pinned, PinnedTable):
            from spark_plugin.source.table_facts import with_table_facts  # tables of catalogs alone are asked for them

            return with_table_facts(schema, pinned, of_writes=self.options[FACTS] == FACTS_OF_WRITES)
        return schema if entry is None else with_metadata(schema, CATALOG_KEY, entry)

    def reader(self, schema: StructType) -> DataSourceReader:
        """schema: the columns that are wanted: all, those of the user's `.schema(...)`, or those of the pruning rule."""
        entry = None if has_path(self.options) else metadata_value(schema, CATALOG_KEY)
        self.options = with_catalog_entry(self.options, entry)
        pinned, columns = self._pin(), strip_marker(schema)
        if isinstance(pinned, PinnedView):
            return limited(RowsReader(pinned.rows(), columns), schema)
        _check_asked(pinned)
        if wants_metadata_column(schema):
            pinned = _with_metadata_column(pinned)
        answer = _answer_from_log(pinned, schema)
        if answer is not None or is_only_question(schema):
            return AnswerReader("" if answer is None else answer_text(answer, schema))
        partial = partial_rows(schema)
        if partial is not None:
            return _partial_reader(pinned, schema, partial)
        requested = from_spark_schema(columns)
        try:
            predicate = pushed_predicate(schema) if pinned.options.pruning else None
            scan = pinned.plan(requested, predicate, pushed_limit(schema), count_rows=wants_statistics(schema))
            check_requested(scan.output_schema, requested)
        except SchemaMismatchError as error:
            if entry is None:
                raise
            raise _stale_entry(error, pinned.options.path) from error
        note = explain_text(scan.report, schema) + _facts(pinned, scan, schema)
        again, lease = is_planned_again(schema), pinned.lease()
        native = None if lease is not None or pushed_limit(schema) is not None else _native_files(pinned, scan, schema)
        note += "" if native is None else native.note
        few = FewRows.of(scan, columns, pushed_limit(schema))
        note += "" if few is None else few_text(schema)
        session = pinned.options.session
        reader = DeltaReader(scan, columns, session, note=note, again=again, lease=lease, native=native, few=few)
        return limited(reader, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if COMMAND in self.options:
            from spark_plugin.source.commands import CommandWriter, command_store

            return CommandWriter(command_store(self.options), self.options[COMMAND], confs_of_session(self.options))
        from spark_plugin.options.write_options import write_options  # every worker process that reads would pay for these
        from spark_plugin.source.writer import DeltaWriter

        try:
            return DeltaWriter.open(
                write_options(_with_replace_where(self.options), overwrite=overwrite), _written_columns(schema)
            )
        except UnsupportedTableFeatureError as error:
            if FROM_CATALOG not in self.options:
                raise
            raise _not_from_a_catalog(error) from error

    def streamReader(self, schema: StructType) -> DeltaStreamReader:
        from spark_plugin.streaming.stream_reader import make_stream_reader, pin_stream

        return make_stream_reader(self._stream or pin_stream(_without_facts(self.options)), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from spark_plugin.options.streaming_options import stream_write_options
        from spark_plugin.streaming.stream_writer import DeltaStreamWriter

        return DeltaStreamWriter.open(stream_write_options(self.options, complete=overwrite), _written_columns(schema))

    def _look(self) -> None:
        from spark_plugin.options.streaming_options import (  # the workers that plan would pay for it
            is_stream_read,
            is_stream_write,
        )

        if is_stream_write(self.options):
            return
        if is_stream_read(self.options):
            from spark_plugin.streaming.stream_reader import pin_stream

            self._stream = pin_stream(self.options)
        else:
            self._pin()

    def _pin(self) -> Pinned:
        if self._pinned is None:
            self._pinned = pin(read_options(self.options), self._snapshots)
        return self._pinned

    def keeping(self) -> Self:
        """This source, in a process that lives long, and so keeps what it reads of logs."""
        from delta_py.kept_snapshots import KeptSnapshot  # of no use in a worker

        self._snapshots = KeptSnapshot
        if isinstance(self._pinned, PinnedTable):
            self._pinned = self._pinned.keeping()
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Other processes keep nothing."""
        return {name: value for name, value in self.__dict__.items() if name != "_snapshots"}

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Spark pickles this object into every task too, where nobody asks it anything."""
        is_whole = _CREATE_WORKER in sys.modules or _is_whole.get()
        return super().__reduce_ex__(protocol) if is_whole else (TaskSource, (self.options,))


def pickled_whole(source: DeltaSource) -> bytes:
    """As the worker that Spark asks for the schema hands a source on, in a process that is not that worker."""
    token = _is_whole.set(True)
    try:
        return bytes(cloudpickle.dumps(source))  # type: ignore[no-untyped-call]
    finally:
        _is_whole.reset(token)


def _written_columns(schema: StructType) -> DeltaSchema:
    """The columns of rows that are to be written. A catalog entry in the fields' metadata is of the table that the rows come
    from, not of the one they go to. That rows happen to have no nulls (of a range, of a literal) makes no column NOT NULL,
    there as in the reference."""
    return from_spark_schema(without_metadata(schema, CATALOG_KEY).toNullable())


def _with_replace_where(options: Mapping[str, str]) -> dict[str, str]:
    """A condition that SQL hands over is printed and parsed again by the same rules: what is in its constants stays in them."""
    given = dict(options)
    predicate = given.pop(REPLACE_PREDICATE, None)
    if predicate is None:
        return given
    if any(name.lower() == "replacewhere" for name in given):
        raise InvalidOptionError(
            "The statement says which rows to replace, and so does the option replaceWhere. Nothing was written. Leave it out.",
            option="replaceWhere",
        )
    return {**given, "replaceWhere": to_sql(predicate_of(predicate))}


def _not_from_a_catalog(error: UnsupportedTableFeatureError) -> UnsupportedTableFeatureError:
    """A save has Spark compute what the gate of rows cannot; a write that Spark's catalogs make has no such second try."""
    return UnsupportedTableFeatureError(
        f"{error.message} A save of a registered session may have Spark compute it: df.write.format('{FORMAT}') or insertInto of "
        "Python, in the place of this INSERT.",
        error_class=error.error_class,
        sql_state=error.sql_state,
    )


def _without_facts(options: Mapping[str, str]) -> dict[str, str]:
    """Of a table of a catalog, whose facts have been told."""
    return {name: value for name, value in options.items() if name.lower() != FACTS}


def _check_asked(pinned: PinnedTable | PinnedChanges) -> None:
    """A schema of the user's must be right in the columns too that the rule finds to be of no use to a query.

    Raises SchemaMismatchError.
    """
    if pinned.options.asked_schema is not None:
        schema = from_spark_schema(StructType.fromJson(json.loads(pinned.options.asked_schema)))
        check_requested(cut_to(pinned.everything, schema), schema)


def _with_metadata_column(pinned: PinnedTable | PinnedChanges) -> PinnedTable:
    assert isinstance(pinned, PinnedTable), "only tables are loaded with a metadata column"
    return pinned.with_metadata_column()


def _answer_from_log(pinned: Pinned, schema: StructType) -> pa.Table | None:
    """What the rule asks of the log instead of rows; None if it does not ask or the log does not say."""
    question = log_question(schema)
    if question is None or not isinstance(pinned, PinnedTable):
        return None
    allowed = pinned.options.pruning and pinned.options.log_answers
    return pinned.answer(question, pushed_predicate(schema)) if allowed else None


def _facts(pinned: Pinned, scan: Scan, schema: StructType) -> str:
    """What Spark may know of the scan when it plans joins. schema: of the scan, as Spark names its columns."""
    if not (pinned.options.pruning and pinned.options.join_planning):
        return ""
    partitions = {
        name: column
        for name, column in zip(schema.names, scan.state.columns, strict=True)
        if column.source is ColumnSource.PARTITION
    }
    numbers = {}
    if wants_statistics(schema):
        from delta_py.scan.partition_numbers import partition_numbers  # few sessions want them

        numbers = partition_numbers(scan.files, partitions, pinned.options.session.time_zone)
    rows = scan.report.rows_kept if wants_statistics(schema) else None
    return facts_text({"rows": rows, "partition_columns": [*partitions], "columns": numbers}, schema)


def _partial_reader(pinned: Pinned, schema: StructType, wanted: PartialRows) -> DataSourceReader:
    """schema: of the partial rows. Without the note of `partial_text` the rule reads the rows themselves."""
    from spark_plugin.source.partial_reader import PartialReader  # few scans are read so

    if not isinstance(pinned, PinnedTable) or pinned.options.files is not None or not pinned.options.pruning:
        return AnswerReader("")
    try:
        predicate = exact_predicate(schema)
    except ValueError:
        return AnswerReader("")
    if not pinned.has_few_groups(wanted.by, predicate):
        return AnswerReader("")
    columns = columns_of_partial_rows(schema)
    requested = from_spark_schema(columns)
    scan = pinned.plan(requested, predicate, is_exact=True, counted=wanted.counted)
    check_requested(scan.output_schema, requested)
    note = explain_text(scan.report, schema) + partial_text(schema)
    rows = DeltaReader(scan, columns, pinned.options.session, note=note, lease=pinned.lease())
    return PartialReader(rows, wanted, strip_marker(schema))


def _native_files(pinned: Pinned, scan: Scan, schema: StructType) -> NativeFiles | None:
    """The files that Spark's own Parquet reader may read; None where Python reads them all. schema: that which asked."""
    wish = native_wish(schema)
    if wish is None or not isinstance(pinned, PinnedTable) or pinned.options.files is not None:
        return None
    from spark_plugin.source.native_files import native_files  # few sessions want them

    return native_files(scan, schema, wish)


def _stale_entry(error: SchemaMismatchError, path: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"{error.message} Spark's catalog has the columns that the table had when its name was entered. DROP TABLE the name, "
        f"which leaves the data, and enter it again: CREATE TABLE ... USING {FORMAT} LOCATION '{path}'.",
        error_class=error.error_class,
        sql_state=error.sql_state,
        path=path,
    )


# ---------------------------------------------------------------- reading


class _Answer(InputPartition):
    def __init__(self, note: str) -> None:
        super().__init__(None)
        self.note = note


class AnswerReader(DataSourceReader):
    """What the pruning rule asked of the log, in place of rows; an empty text: the log does not say it. Never read."""

    def __init__(self, note: str) -> None:
        self._note = note

    def partitions(self) -> list[InputPartition]:
        return [_Answer(self._note)]

    def read(self, partition: InputPartition) -> NoReturn:
        raise AssertionError("the pruning rule asked for an answer and reads rows")


class RowsReader(DataSourceReader):
    """Rows that are there already."""

    def __init__(self, rows: pa.Table, columns: StructType) -> None:
        self._rows = rows
        self._schema: pa.Schema = to_arrow_schema(columns)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in self._rows.to_batches():
            yield _columns_of(
                batch, self._schema
            )  # here and not before: without columns a batch would lose its rows when pickled


def _columns_of(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows cut down to the columns, and nested fields, of the schema."""
    chosen = rows.select(schema.names)
    return pa.RecordBatch.from_pylist(chosen.to_pylist(), schema=schema) if schema.names else chosen
