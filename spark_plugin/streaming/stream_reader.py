"""Streaming reads: `spark.readStream.format("pydelta")`.

A DeltaStreamReader returns offsets and the tasks of each batch. It runs in the driver's own Python
(driver_planning/stream_requests.py), or in a process that Spark runs for the driver's side of a stream. Another process makes
the function that tasks run. delta_py decides which files are in a batch (streaming/source.py). Tasks read them like the files of
any scan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from delta_py.changes.change_feed import CHANGE_COLUMNS
from delta_py.checkpoint.leases import HeldLease, Lease
from delta_py.errors import UnsupportedOperationError
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.identity_columns import is_equal_ignoring_marks
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.streaming.batch_limits import Limits
from delta_py.streaming.offset import StreamOffset
from delta_py.streaming.schema_log import TrackedSchema
from delta_py.streaming.source import StreamSource
from delta_py.streaming.stream_options import StreamOptions, StreamStart
from delta_py.types.schema import StructType as DeltaSchema
from delta_py.types.schema import to_arrow_schema as delta_arrow_schema
from spark_plugin.options.streaming_options import StreamReadOptions, stream_read_options
from spark_plugin.pruning import ANSWER, MessagePartition, ScanRequest, parse_batch_start, plan_message, question_of
from spark_plugin.schema_conversion import check_requested, from_spark_schema
from spark_plugin.source.pinned import offered, scan_options, selected, with_filter
from spark_plugin.source.task_batches import DeltaPartition, check_layout, partitions_of, relabelled
from spark_plugin.spark_versions import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
    json_of_read_limit,
    read_limit_of_json,
    to_arrow_schema,
)
from spark_plugin.streaming.schema_log_location import look_up, open_tracker
from spark_plugin.tasks.tcp_nodelay import PromptTask

if TYPE_CHECKING:
    from delta_py.expressions.tree import Expression
    from delta_py.scan.planning import Scan
    from spark_plugin.source.read_plan import ReadPlan


@dataclass(frozen=True, slots=True)
class PinnedStream:
    """A stream whose columns were fixed when it was loaded.

    snapshot: the version that defines the columns; its list of files is not used. tracked: the schema that the stream has
    reached, from its log of schemas (the option schemaTrackingLocation); it replaces the schema of the snapshot. None if the
    stream has no such log, or if the log is new."""

    options: StreamReadOptions
    snapshot: Snapshot
    tracked: TrackedSchema | None = None

    @property
    def config(self) -> TableConfig:
        """The table's definition, with the schema that the stream reads."""
        return self.snapshot.config if self.tracked is None else self.tracked.config(self.snapshot.config)

    @property
    def schema(self) -> DeltaSchema:
        """The columns of the stream: of those on offer the ones that the option `columns` names, or all."""
        return selected(self.options.batch, self.offered)

    @property
    def offered(self) -> DeltaSchema:
        """All columns that a query can request: the table's, those of the change feed, and `_metadata` if the options ask for
        it."""
        change_columns = [column.logical for column in CHANGE_COLUMNS] if self.options.change_feed else []
        return offered(self.options.batch, DeltaSchema((*self.config.schema.fields, *change_columns)))

    def source(self, columns: DeltaSchema) -> StreamSource:
        """Return delta_py's source of the stream, which decides what each batch reads. columns: those that the stream reads.
        Raises the errors of open_tracker if the stream has a log of schemas."""
        options = self.options
        tracking = options.tracking
        # Without a log of schemas the columns of the stream are fixed, so the source must begin with a version that has them.
        return StreamSource(
            self._newest_snapshot(requires_same_columns=tracking is None),
            StreamOptions(
                rules=options.rules,
                exclude=options.exclude,
                fail_on_data_loss=options.fail_on_data_loss,
                change_feed=options.change_feed,
                has_start=options.start != StreamStart(),
                event_time=options.event_time,
                columns=columns,
                predicate=with_filter(options.batch, self.offered, None),
                scan=replace(scan_options(options.batch), metadata_column=options.batch.metadata_column),
            ),
            None if tracking is None else open_tracker(tracking, self.snapshot, self.config),
        )

    def _newest_snapshot(self, *, requires_same_columns: bool) -> Snapshot:
        """Return the newest version: a query may start long after the pinned one was written. requires_same_columns: return the
        pinned version if the newest one has other columns. Raises the errors of Snapshot.check_log."""
        newest, pinned = Snapshot.load(self.snapshot.store), self.snapshot
        is_same_table = newest.metadata.id == pinned.metadata.id
        has_same_partitions = newest.metadata.partition_columns == pinned.metadata.partition_columns
        if is_same_table and has_same_partitions and is_equal_ignoring_marks(newest.schema, pinned.schema):
            return newest
        pinned.check_log()  # another table may be there by now
        return pinned if requires_same_columns else newest


def pin_stream(options: Mapping[str, str]) -> PinnedStream:
    """Fix the columns of a stream when it is loaded. Raises the errors of stream_read_options and Snapshot.load."""
    parsed = stream_read_options(options)
    snapshot = Snapshot.load(parsed.batch.open_store())
    return PinnedStream(parsed, snapshot, None if parsed.tracking is None else look_up(parsed.tracking, snapshot))


def make_stream_reader(pinned: PinnedStream, schema: StructType) -> DeltaStreamReader:
    """Return the reader of a stream. schema: all columns of the stream, or those of the user's `.schema(...)`."""
    return DeltaStreamReader(pinned, schema)


class DeltaStreamReader(PromptTask, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of one stream. On the driver it returns offsets and the tasks of each batch. Spark pickles it, without its
    source and its lease, into these tasks, which call only `read`."""

    def __init__(self, pinned: PinnedStream, schema: StructType) -> None:
        requested = from_spark_schema(schema)
        self._options = pinned.options
        self._source: StreamSource | None = pinned.source(requested)
        self._state = self._source.state()
        output = DeltaSchema(tuple(column.logical for column in self._state.columns))
        check_requested(output, requested)
        self._schema: pa.Schema = to_arrow_schema(schema)
        check_layout(delta_arrow_schema(output), self._schema)
        # With the trigger availableNow, the version at which the query ends; None if it goes on.
        self._last_version: int | None = None
        # Where the last batch ends that latestOffset planned; None before the first.
        self._place: StreamOffset | None = None
        self._lease: HeldLease | None = None

    @property
    def writes(self) -> bool:
        """Whether it does more than read: it records schemas, or holds a lease on its files."""
        return self._options.tracking is not None or self._options.batch.lease_seconds is not None

    # ------------------------------------------------------------ offsets

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new stream begins. Spark stores offsets as JSON in its checkpoint."""
        return self._with_lease_from(self._driver.initial_offset(self._options.start)).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch. Spark passes it back to latestOffset, unless the trigger reads all available data. Spark's
        limits are of files or of bytes: if the options limit both, the limit of files stands for both, and latestOffset takes the
        real limits from the options."""
        limits = self._options.limits
        if limits.files is not None:
            return ReadMaxFiles(limits.files)
        assert limits.bytes is not None, "a stream has a limit of its own"
        return ReadMaxBytes(limits.bytes)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Return where the next batch ends. start: where it begins. limit: only whether it is ReadAllAvailable matters.

        Raises UnsupportedOperationError without a start: Spark 4.1's own stream of a Python source has neither limits nor a
        start."""
        if start is None:
            raise UnsupportedOperationError(
                "A stream of Spark 4.1 does not tell a Python source where it goes on, unless a registered classic session reads "
                "it. Call register(spark) before readStream. Over Spark Connect use Spark 4.2 or newer, or read in batches. "
                "Nothing was read."
            )
        limits = Limits() if isinstance(limit, ReadAllAvailable) else self._options.limits
        begin = self._with_lease_from(StreamOffset.from_json(start))
        self._place = self._driver.admit(begin, limits, last_version=self._last_version)
        return self._place.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Note the newest version: commits after it do not belong to the query."""
        self._last_version = self._driver.newest_version()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return, for the query's progress, the position after all available data, and how much the stream still has to read."""
        if self._place is None:
            return None
        lag = self._driver.lag(self._place)
        # After the initial state of a version the stream continues with the next version, so is_initial (a bool) adds 1.
        end = StreamOffset(self._place.table_id, self._place.version + lag.versions + self._place.is_initial)
        outstanding = {"numFilesOutstanding": lag.files, "numBytesOutstanding": lag.bytes, "numVersionsOutstanding": lag.versions}
        return {**end.to_json(), **outstanding, "outstandingIsAtLeast": lag.at_least}

    def answer(self, call: str, arguments: Sequence[str]) -> str:
        """Return the answer to a call about offsets that not every version of Spark has, as text; empty if there is no answer.
        Raises the errors of the call, and ValueError for an unknown call."""
        match call:
            case "latestOffset":
                start, limit = arguments
                return json.dumps(self.latestOffset(json.loads(start), read_limit_of_json(limit)))
            case "getDefaultReadLimit":
                return json_of_read_limit(self.getDefaultReadLimit())
            case "prepareForTriggerAvailableNow":
                self.prepareForTriggerAvailableNow()
                return ""
            case "reportLatestOffset":
                place = self.reportLatestOffset()
                return "" if place is None else json.dumps(place)
        raise ValueError(f"a stream's source has no call {call}")

    def commit(self, end: dict[str, Any]) -> None:
        """Note that all batches up to this offset are done. If the last one ended before a change of the schema, the change is
        recorded in the log of schemas, and SchemaMismatchError stops the query."""
        self._driver.commit(self._with_lease_from(StreamOffset.from_json(end)))

    def stop(self) -> None:
        if self._lease is not None:
            self._lease.release()

    def _with_lease_from(self, place: StreamOffset) -> StreamOffset:
        """Move the stream's lease to this position, from which on the stream still reads files, and return the position
        unchanged. Does nothing if the options ask for no lease. A lease tells VACUUM which files a reader still needs.

        In the initial state these are the files of the position's version. Later they are files that this version and newer ones
        add or change, so the lease covers the state before this version too.
        """
        seconds = self._options.batch.lease_seconds
        if seconds is None:
            return place
        version = place.version if place.is_initial else max(0, place.version - 1)
        if self._lease is None:
            self._lease = HeldLease(Lease(self._options.batch.open_store(), version, seconds))
        else:
            self._lease.move(version)
        return place

    # ------------------------------------------------------------ batches

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch, which begins after `start` and ends with `end`.

        start: an offset; or an offset together with the rule's request, which says which columns the batch needs
        (parse_batch_start); or a call about offsets, whose answer is the message of the only partition (question_of)."""
        question = question_of(start)
        if question is not None:
            return [MessagePartition({ANSWER: self.answer(question.call, question.arguments)})]
        start, request = parse_batch_start(start)
        begin, until = StreamOffset.from_json(start), StreamOffset.from_json(end)
        self._with_lease_from(begin.true_start(until))
        message, native, state = {}, None, self._state
        if request is None:
            scan = self._driver.plan(begin, until)
        else:
            columns = from_spark_schema(request.columns)
            scan = self._driver.plan(begin, until, columns, self._predicate_of(request))
            state = self._driver.state(columns)
            plan = self._plan_tasks(scan, request)
            message, native = plan_message(plan.message(), request.scan_id), plan.native
        partitions = partitions_of(scan, self._options.batch.session, message, native)
        # `state` is what the reader in the tasks has. If this scan needs another one, its partitions bring it.
        if scan.state != state:
            for partition in partitions:
                partition.state = scan.state
        return partitions

    def _predicate_of(self, request: ScanRequest) -> Expression | None:
        """Return the predicate by which the read may leave out rows; None if it must return all rows, as for a change feed."""
        options = self._options
        return request.predicate if options.batch.pruning and not options.change_feed else None

    def _plan_tasks(self, scan: Scan, request: ScanRequest) -> ReadPlan:
        """Return how the tasks of a batch read its files."""
        from spark_plugin.source.read_plan import plan_tasks  # not needed in a task, which imports this module too

        why_not_native = None
        if self._options.change_feed:
            why_not_native = "the rows are changes"
        elif self._lease is not None:
            why_not_native = "the read keeps a lease, which tasks in Python renew"
        return plan_tasks(scan, request, why_not_native=why_not_native)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, DeltaPartition)
        for batch in read_files(partition.state or self._state, partition.scan_files()):
            yield relabelled(batch, self._schema)

    @property
    def _driver(self) -> StreamSource:
        """The source of the stream, which exists only on the driver."""
        assert self._source is not None, "tasks only read"
        return self._source

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only the driver needs: tasks get their files in their partition."""
        return {**self.__dict__, "_source": None, "_lease": None}
