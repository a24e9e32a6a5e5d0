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
from delta_py.protocol.identity_columns import is_alike
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
    """A stream with fixed columns. snapshot: the version that defines the columns; its list of files is not used. tracked: the
    schema from the stream's log of schemas, which replaces that of the snapshot."""

    options: StreamReadOptions
    snapshot: Snapshot
    tracked: TrackedSchema | None = None

    @property
    def config(self) -> TableConfig:
        return self.snapshot.config if self.tracked is None else self.tracked.config(self.snapshot.config)

    @property
    def schema(self) -> DeltaSchema:
        return selected(self.options.batch, self.offered)

    @property
    def offered(self) -> DeltaSchema:
        changes = CHANGE_COLUMNS if self.options.change_feed else ()
        return offered(self.options.batch, DeltaSchema((*self.config.schema.fields, *(column.logical for column in changes))))

    def source(self, columns: DeltaSchema) -> StreamSource:
        options = self.options
        tracking = options.tracking
        return StreamSource(
            self._newest(alike=tracking is None),
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

    def _newest(self, *, alike: bool) -> Snapshot:
        """Return the newest version: a query may start long after the pinned one was written. alike: only if its columns are
        those of the pinned version, otherwise the pinned one. Raises the errors of Snapshot.check_log."""
        newest = Snapshot.load(self.snapshot.store)
        now, then = newest.metadata, self.snapshot.metadata
        is_same = (now.id, now.partition_columns) == (then.id, then.partition_columns)
        if is_same and is_alike(newest.schema, self.snapshot.schema):
            return newest
        self.snapshot.check_log()
        return self.snapshot if alike else newest


def pin_stream(options: Mapping[str, str]) -> PinnedStream:
    """Raises the errors of stream_read_options and Snapshot.load."""
    parsed = stream_read_options(options)
    snapshot = Snapshot.load(parsed.batch.open_store())
    return PinnedStream(parsed, snapshot, None if parsed.tracking is None else look_up(parsed.tracking, snapshot))


def make_stream_reader(pinned: PinnedStream, schema: StructType) -> DeltaStreamReader:
    """schema: all columns of the stream, or those of the user's `.schema(...)`."""
    return DeltaStreamReader(pinned, schema)


class DeltaStreamReader(PromptTask, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The driver's side of a stream. Without its source it is the function of the stream's tasks."""

    def __init__(self, pinned: PinnedStream, schema: StructType) -> None:
        requested = from_spark_schema(schema)
        self._options = pinned.options
        self._source: StreamSource | None = pinned.source(requested)
        self._state = self._source.state()
        output = DeltaSchema(tuple(column.logical for column in self._state.columns))
        check_requested(output, requested)
        self._schema: pa.Schema = to_arrow_schema(schema)
        check_layout(delta_arrow_schema(output), self._schema)
        self._last_version: int | None = None
        self._place: StreamOffset | None = None
        self._lease: HeldLease | None = None

    @property
    def writes(self) -> bool:
        """Whether it does more than read: it records schemas, or holds a lease on its files."""
        return self._options.tracking is not None or self._options.batch.lease_seconds is not None

    # ------------------------------------------------------------ offsets

    def initialOffset(self) -> dict[str, Any]:
        return self._reading_from(self._driver.initial_offset(self._options.start)).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark passes it back to latestOffset, unless the trigger reads all available data. If both files and bytes are limited,
        this one limit stands for both."""
        limits = self._options.limits
        if limits.files is not None:
            return ReadMaxFiles(limits.files)
        assert limits.bytes is not None, "a stream has a limit of its own"
        return ReadMaxBytes(limits.bytes)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Spark 4.1 calls it without a start: its own stream of a Python source has neither limits nor a start.

        Raises UnsupportedOperationError in that case."""
        if start is None:
            raise UnsupportedOperationError(
                "A stream of Spark 4.1 does not tell a Python source where it goes on, unless a registered classic session reads "
                "it. Call register(spark) before readStream. Over Spark Connect use Spark 4.2 or newer, or read in batches. "
                "Nothing was read."
            )
        limits = Limits() if isinstance(limit, ReadAllAvailable) else self._options.limits
        begin = self._reading_from(StreamOffset.from_json(start))
        self._place = self._driver.admit(begin, limits, last_version=self._last_version)
        return self._place.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._last_version = self._driver.newest_version()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return, for the query's progress, the position after all available data, and how much the stream still has to read."""
        if self._place is None:
            return None
        lag = self._driver.lag(self._place)
        # After the initial state of a version the stream continues with the next version.
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
        self._driver.commit(self._reading_from(StreamOffset.from_json(end)))

    def stop(self) -> None:
        if self._lease is not None:
            self._lease.release()

    def _reading_from(self, place: StreamOffset) -> StreamOffset:
        """Return the position unchanged. If the options ask for it, a lease tells VACUUM which files the stream still reads.

        In the initial state these are the files of the position's version. Later they are files that this version and newer ones
        add or change, so the lease covers the state before this version too.
        """
        seconds, version = self._options.batch.lease_seconds, place.version if place.is_initial else max(0, place.version - 1)
        if seconds is None:
            return place
        if self._lease is None:
            self._lease = HeldLease(Lease(self._options.batch.open_store(), version, seconds))
        else:
            self._lease.move(version)
        return place

    # ------------------------------------------------------------ batches

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """start: the rule's, or Spark's own. The tasks are read by the function of a reader for the columns that the rule
        requests, or for all columns."""
        question = question_of(start)
        if question is not None:
            return [MessagePartition({ANSWER: self.answer(question.call, question.arguments)})]
        start, request = parse_batch_start(start)
        begin, until = StreamOffset.from_json(start), StreamOffset.from_json(end)
        self._reading_from(begin.true_start(until))
        message, native, state = {}, None, self._state
        if request is None:
            scan = self._driver.plan(begin, until)
        else:
            columns = from_spark_schema(request.columns)
            scan, state = self._driver.plan(begin, until, columns, self._pushed(request)), self._driver.state(columns)
            plan = self._plan_tasks(scan, request)
            message, native = plan_message(plan.message(), request.scan_id), plan.native
        parts = partitions_of(scan, self._options.batch.session, message, native)
        if scan.state != state:  # the readers of the tasks do not have the state of this scan
            for part in parts:
                part.state = scan.state
        return parts

    def _pushed(self, request: ScanRequest) -> Expression | None:
        """Return the predicate of the request that may leave out rows; None for all rows."""
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
        assert self._source is not None, "tasks only read"
        return self._source

    def __getstate__(self) -> dict[str, Any]:
        """Tasks get their files in their partition."""
        return {**self.__dict__, "_source": None, "_lease": None}
