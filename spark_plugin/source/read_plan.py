"""Decides how a scan is read, and why. This is the only place for the decision.

    plan = plan_read(pinned, request)       # ReadPlan
    plan.road, plan.why                     # what explain() and status(spark) show
    plan.message()                          # what the rule gets, as messages.json describes `plan`

The sizes by which it decides are in options/read_limits.py, with their measurements. Facts that only Spark's plan knows come
with the request. Some roads depend on Spark's plan: whether a query only filters the rows of one scan, or sorts them. For these
the plan says whether its sizes allow them, and `skipped` says why not. Java looks at the query and compares no sizes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_py.protocol.collations import is_collated
from delta_py.scan.scan_state import ColumnSource
from delta_py.types.sizes import bytes_text
from spark_plugin.options import read_limits
from spark_plugin.options.roads import Road
from spark_plugin.pruning.partition_messages import kept_part
from spark_plugin.pruning.scan_request import LogQuestion, PartialRowsRequest, ScanRequest
from spark_plugin.schema_conversion import check_requested, from_spark_schema
from spark_plugin.source.pinned import PinnedChanges, PinnedTable
from spark_plugin.source.small_scan import SmallScan

if TYPE_CHECKING:
    from delta_py.scan.planning import Scan, ScanReport
    from spark_plugin.source.native_files import NativeFiles


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How one scan is read. A road is a way in which the rows of a query are read (Road, in options/roads.py).

    road: None if the rule requested only an answer from the log, or only partial rows, and cannot get them. The source then
    reads nothing, and the rule makes another request, for the rows.
    why: why this road, or why none; one line for explain().
    scan: the files to read; None if nothing is read.
    native: the files of the scan that Spark's own Parquet reader reads; None if Python reads them all.
    small_scan: the same scan, if its rows may be few enough for the driver's own Python; None if they are not.
    answer: what the log says, an Arrow table that replaces the rows; None if rows are read.
    join_facts: facts about the scan that Spark uses when it plans joins; None for no facts.
    skipped: the roads that the scan might have taken, and why it does not.
    """

    road: Road | None
    why: str
    scan: Scan | None = None
    native: NativeFiles | None = None
    small_scan: SmallScan | None = None
    answer: pa.Table | None = None
    join_facts: Mapping[str, Any] | None = None
    skipped: Mapping[Road, str] = field(default_factory=dict)

    def message(self) -> dict[str, Any]:
        """Return the message for the rule: the part `plan` of messages.json. Parts without a value are left out."""
        parts: dict[str, Any] = {
            "road": self.road,
            "why": self.why,
            "kept": None if self.scan is None else kept_part(self.scan.report),
            "joins": self.join_facts,
            "driver": None if self.small_scan is None else _DRIVER_LIMITS,
            "small": None if self.scan is None else _why_not_one_task(self.scan.report) is None,
            "partial_from": None if self.scan is None else _least_work_for_partial_rows(self.scan.report.bytes_kept),
            "parquet": None if self.native is None else self.native.facts,
            "answer": None if self.answer is None else _arrow_text(self.answer),
            "skipped": self._all_skipped() or None,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _all_skipped(self) -> dict[Road, str]:
        """Return `skipped`, and the road ONE_TASK if the scan is too large for it."""
        why_not_one_task = None if self.scan is None else _why_not_one_task(self.scan.report)
        return dict(self.skipped) if why_not_one_task is None else {**self.skipped, Road.ONE_TASK: why_not_one_task}


_DRIVER_LIMITS = {"most_bytes": read_limits.DRIVER_RESULT_BYTES, "most_ms": read_limits.DRIVER_COMPUTE_MS}


def plan_read(pinned: PinnedTable | PinnedChanges, request: ScanRequest) -> ReadPlan:
    """Choose the road of one scan, the first that is possible: an answer from the log, partial rows, or rows that tasks read; for
    these plan_tasks chooses the road. If the driver may read the rows instead of tasks, the plan also has a small_scan.

    Raises the errors of planning.
    """
    skipped: dict[Road, str] = {}
    if request.log_question is not None:
        answer, why = _log_answer(pinned, request.log_question, request)
        if answer is not None:
            return ReadPlan(Road.LOG, why, answer=answer)
        skipped[Road.LOG] = why
        if request.log_question.is_only_question:  # the rule requests the rows separately, so planning a scan would be wasted
            return ReadPlan(None, why, skipped=skipped)
    if request.partial is not None:
        return _plan_partial_rows(pinned, request, request.partial)
    requested = from_spark_schema(request.columns)
    predicate = request.predicate if pinned.options.pruning else None  # Spark filters the rows again in any case
    scan = pinned.plan(requested, predicate, request.limit, count_rows=request.wants_statistics)
    check_requested(scan.output_schema, requested)
    plan = plan_tasks(scan, request, why_not_native=_why_not_native(pinned, request))
    plan = replace(plan, join_facts=_join_facts(pinned, scan, request))
    why_not_driver = _why_not_driver(scan, request)
    if why_not_driver is None:
        plan = replace(plan, small_scan=SmallScan(scan, request.columns, request.limit))
    else:
        skipped[Road.DRIVER] = why_not_driver
    return replace(plan, skipped={**plan.skipped, **skipped})


def plan_tasks(scan: Scan, request: ScanRequest, *, why_not_native: str | None) -> ReadPlan:
    """Decide how the tasks of a scan, or of a stream's batch, read: with Spark's own Parquet reader, or with Python, which
    returns columns or rows to Spark. why_not_native: why Spark's own Parquet reader cannot be used, whatever the files are; None
    if that depends on the files."""
    native, why = None, why_not_native or request.why_not_native
    if why_not_native is None and request.native is not None:
        from spark_plugin.source.native_files import native_files  # few sessions need it

        native, why = native_files(scan, request.native)
    if native is not None:
        return ReadPlan(Road.PARQUET, why, scan, native)
    # Python reads all files. `why` says from here on why Spark's own Parquet reader reads none.
    skipped = {} if request.native is None else {Road.PARQUET: why}
    if request.is_columnar:
        return ReadPlan(Road.COLUMNS, why, scan, skipped=skipped)
    if request.why_not_columnar:
        skipped = {**skipped, Road.COLUMNS: request.why_not_columnar}
        why = "; ".join(dict.fromkeys([request.why_not_columnar, why]))
    return ReadPlan(Road.ROWS, why, scan, skipped=skipped)


# ---------------------------------------------------------------- answers instead of rows


def _log_answer(pinned: PinnedTable | PinnedChanges, question: LogQuestion, request: ScanRequest) -> tuple[pa.Table | None, str]:
    """Return the log's answer, which replaces the rows, or None if the rows must be read; and why."""
    if not isinstance(pinned, PinnedTable):
        return None, "the log does not count changes"
    if not pinned.options.pruning or Road.LOG in pinned.options.disabled:
        return None, "an option of the read forbids it"
    answer = pinned.answer(question.question, request.predicate)
    if answer is None:
        return None, "the log does not say it exactly of every file"
    return answer, "the log says exactly what the aggregate needs of every file"


def _plan_partial_rows(
    pinned: PinnedTable | PinnedChanges, request: ScanRequest, partial_request: PartialRowsRequest
) -> ReadPlan:
    """Plan a scan whose tasks return partial rows. If that is impossible or does not pay, the plan has no road: the rule then
    requests the rows themselves."""
    if not isinstance(pinned, PinnedTable) or pinned.options.files is not None or not pinned.options.pruning:
        return _no_partial_rows("the rows are changes, or of a DELETE, UPDATE or MERGE, or an option of the read forbids it")
    try:
        predicate = request.exact_predicate()
    except ValueError as error:
        return _no_partial_rows(str(error))
    if not pinned.has_few_groups(partial_request.rows.by, predicate):
        return _no_partial_rows("there are likely many groups, by what the log says of the columns")
    requested = from_spark_schema(partial_request.read_columns)
    scan = pinned.plan(requested, predicate, is_exact=True, counted=partial_request.rows.counted)
    check_requested(scan.output_schema, requested)
    return ReadPlan(Road.PARTIAL, "tasks add up what the aggregate needs, and there are likely few groups", scan)


def _no_partial_rows(why: str) -> ReadPlan:
    return ReadPlan(None, why, skipped={Road.PARTIAL: why})


# ---------------------------------------------------------------- what the sizes of a scan allow


def _why_not_driver(scan: Scan, request: ScanRequest) -> str | None:
    """Return why tasks must read the rows, or None if the driver's own Python may."""
    state, file_count, limit = scan.state, scan.files.num_rows, request.limit
    # How many rows the result has at most; None if that is not known before the read.
    row_count = scan.report.rows_kept if state.predicate is None and limit is None else limit
    most_files = read_limits.DRIVER_REMOTE_FILES if state.store.is_remote else read_limits.DRIVER_FILES
    if file_count > most_files:
        return f"{file_count:,} files, and the driver reads at most {most_files:,}"
    if row_count is not None and row_count > read_limits.DRIVER_ROWS:
        return f"{row_count:,} rows, and the driver reads at most {read_limits.DRIVER_ROWS:,}"
    if not request.columns.fields:
        return "no column is read"
    if any(is_collated(column.logical) for column in state.columns):
        # The JVM gets the driver's rows as an Arrow stream, from which it does not accept texts with a collation.
        return "texts have a collation"
    return None


def _why_not_one_task(report: ScanReport) -> str | None:
    """Return why the scan is too large to be grouped or sorted in the task that reads it; None if it is small enough."""
    if report.bytes_kept > read_limits.ONE_TASK_BYTES:
        return f"the files have more than {bytes_text(read_limits.ONE_TASK_BYTES)}"
    if report.rows_kept is None:
        return "the number of rows is not known"
    if report.rows_kept > read_limits.ONE_TASK_ROWS:
        return f"there are more than {read_limits.ONE_TASK_ROWS:,} rows"
    return None


def _least_work_for_partial_rows(size_bytes: int) -> int | None:
    """Return how many values per row must be added up before partial rows pay; None if they never do. size_bytes: of the files
    that are read."""
    if size_bytes >= read_limits.PARTIAL_BYTES:
        return 0
    return -(-read_limits.PARTIAL_WORK // size_bytes) if size_bytes else None  # the quotient, rounded up


def _why_not_native(pinned: PinnedTable | PinnedChanges, request: ScanRequest) -> str | None:
    """Return why Spark's own Parquet reader cannot read this scan, whatever its files are; None if it can."""
    if not isinstance(pinned, PinnedTable) or pinned.options.files is not None:
        return "the rows are changes, or those of a DELETE, UPDATE or MERGE"
    if pinned.options.lease_seconds is not None:
        return "the read keeps a lease, which tasks in Python renew"
    return "the query has a limit" if request.limit is not None else None


def _join_facts(pinned: PinnedTable | PinnedChanges, scan: Scan, request: ScanRequest) -> dict[str, Any] | None:
    """Return the facts about the scan that Spark may use when it plans joins: `joins` in messages.json. Columns have the names
    that Spark's plan uses. Returns None if an option or setting forbids it."""
    if not (pinned.options.pruning and Road.JOINS not in pinned.options.disabled):
        return None
    partitions = {
        name: column
        for name, column in zip(request.columns.names, scan.state.columns, strict=True)
        if column.source is ColumnSource.PARTITION
    }
    numbers = {}  # by partition column: the entries `distinct`, `nulls`, `min` and `max` of partition_numbers
    if request.wants_statistics:
        from delta_py.scan.partition_numbers import partition_numbers  # few sessions need it

        numbers = partition_numbers(scan.files, partitions, pinned.options.session.time_zone)
    rows = scan.report.rows_kept if request.wants_statistics else None
    return {"rows": rows, "partition_columns": [*partitions], "columns": numbers}


# ---------------------------------------------------------------- the message for the rule


def _arrow_text(answer: pa.Table) -> str:
    """Return an Arrow stream in base64."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, answer.schema) as writer:
        writer.write_table(answer.combine_chunks())
    return base64.b64encode(sink.getvalue().to_pybytes()).decode()
