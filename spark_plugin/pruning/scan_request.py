"""The rule's request to the source for one scan: it comes with the schema that Spark passes to `DataSource.reader`.

The rule writes JSON text into the metadata of the schema's first field, under MARKER_KEY (ScanRequest.java). A schema without
fields has no marker and needs none: filters and limits come with the columns that they are about. The request for a batch of a
stream has such a schema next to the offset where the batch begins (StreamView.java). messages.json describes the text.

The source reads it so:

    def reader(self, schema):
        request = ScanRequest.parse(schema)
        request.columns             # only the columns, and nested fields, that the query needs; may be empty
        request.predicate           # Expression over logical paths that skips files, row groups and rows; or None
        ...
        return limited(my_reader, request.limit)    # stops when the query needs no more rows

A frame that `with_metadata_column(frame)` returns has the hidden column `_metadata` next to those of the table. Only queries
that name it request it; `request.wants_metadata_column` is then true.

`request.is_pruned` says whether the rule made the request. Without the rule the schema is complete and there is no predicate:
Spark's stock push-down never reaches the source, whatever the session's settings, because the reader must not define
`pushFilters` at all. The source need not apply the predicate exactly: it may return rows for which the predicate is not true, but
it must not leave out any others. The limit is exact, because Spark does not count again: so every reader goes through `limited`.
A limit never comes with a predicate.

If a query only counts rows, or takes smallest and largest values, `request.log_question` describes an answer that can replace the
rows. If a query only aggregates values of the rows, `request.partial` describes partial rows that can replace them: the schema
is then that of partial rows, and rows for which `request.exact_predicate()` is not true must be left out.

The first partition of `partitions()` may be a `MessagePartition` whose messages are `plan_message(message, request.scan_id)`.
messages.json describes the message. Each part is optional:
- `kept`: `explain()`, the driver's log and `status(spark).last_scan` show how many files and bytes are read. This does not apply
  to a scan without columns: it has no predicate either, and reads all files.
- `joins`: Spark gets the size of the scan when it plans joins. Files are chosen once more by the values that the other side of a
  join has in a partition column: Spark calls `reader(schema)` again with one more predicate (`request.is_planned_again`), and the
  read function of the first call gets the partitions of the second.
- `answer`: the log's answer; the rule puts it into the plan, and nothing is read. A source that does not know the answer
  continues as if there were no question.
- `road`, `partial`: the rows are partial rows. If a source does not return partial rows, the rule requests the rows once more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField, StructType

from delta_py.expressions import tree
from spark_plugin.pruning.predicate_json import conjunction_of, parse_predicate

if TYPE_CHECKING:
    from delta_py.scan.log_answers import Question
    from delta_py.scan.partial_rows import PartialRows

MARKER_KEY = "pydelta.pruning"
_START = "start"
_NOT_REQUESTED = "the pruning rule does not ask for Spark's Parquet reader"


class NativeWish(Enum):
    """Which simple files Spark's own Parquet reader may read."""

    WHERE_QUICKER = "where quicker"
    WHEREVER_POSSIBLE = "wherever possible"


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """A question that the table's log may answer, so that no rows are read.

    question: what the query computes, such as the row count or the largest value of a column. is_only_question: this request is
    for the answer only. If the log has no answer, the scan reads nothing, and the rule makes another request, for the rows."""

    question: Question
    is_only_question: bool


@dataclass(frozen=True, slots=True)
class PartialRowsRequest:
    """Partial rows, which the tasks return in place of the rows: each has aggregates over some rows of one task, and Spark
    combines them into the query's result. rows: the columns that group the rows, and the aggregates. read_columns: the columns
    that tasks read to compute them, with the types in the query."""

    rows: PartialRows
    read_columns: StructType


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """The request for one scan.

    columns: the schema without the rule's marker; the schema of partial rows if these are requested.
    is_pruned: the rule made the schema. The rule makes every schema without fields.
    predicates: all are true for the requested rows. Columns are logical paths in the schema's own spelling; None stands for a
    predicate with a constant that Python cannot represent. Rows for which one is not true may be left out; Spark filters again.
    limit: exactly this many rows are requested, or all if there are fewer; Spark does not count again. Never with a predicate.
    scan_id: names this planning of the scan; None if no rule is installed.
    is_planned_again: Spark has planned this scan before, and gives the new partitions to the reader of that planning, which may
    have read another version of the table.
    wants_statistics: the session uses row counts and value counts when it plans joins, so the plan must contain them.
    wants_metadata_column: one of the columns is not the table's but the metadata column.
    native: whether Spark's own Parquet reader reads all files that it can, or only if that is likely quicker; None if it must
    read no files.
    why_not_native: why it must read no files.
    is_columnar: Spark gets the batches that Python reads as columns; otherwise Spark makes rows of the batches.
    why_not_columnar: why Spark makes rows.
    log_question: a question that the log may answer instead of a read; None if the query needs rows.
    partial: the partial rows that can replace the rows; None if the query needs rows.
    """

    columns: StructType
    is_pruned: bool = False
    predicates: tuple[tree.Expression | None, ...] = ()
    limit: int | None = None
    scan_id: str | None = None
    is_planned_again: bool = False
    wants_statistics: bool = False
    wants_metadata_column: bool = False
    native: NativeWish | None = None
    why_not_native: str = _NOT_REQUESTED
    is_columnar: bool = False
    why_not_columnar: str = ""
    log_question: LogQuestion | None = None
    partial: PartialRowsRequest | None = None

    @classmethod
    def parse(cls, schema: StructType) -> ScanRequest:
        """Return the request that the rule wrote into the schema. Raises ValueError for a predicate of an unknown kind."""
        text = next((field.metadata[MARKER_KEY] for field in schema.fields if MARKER_KEY in (field.metadata or {})), None)
        if text is None:
            # The rule puts no marker only into a schema without fields. Without the rule, a schema has all columns of the table.
            return cls(schema, is_pruned=not schema.fields)
        request = json.loads(text)
        limit, native, scan_id = request.get("limit"), request.get("native"), request.get("scan_id")
        return cls(
            StructType([_without_marker(field) for field in schema.fields]),
            is_pruned=True,
            predicates=tuple(parse_predicate(value) for value in request.get("predicates", ())),
            limit=None if limit is None else int(limit),
            scan_id=None if scan_id is None else str(scan_id),
            is_planned_again=bool(request.get("again", False)),
            wants_statistics=bool(request.get("statistics", False)),
            wants_metadata_column=bool(request.get("metadata_column", False)),
            native=None if native is None else NativeWish(native),
            why_not_native=str(request.get("why_not_native", _NOT_REQUESTED)),
            is_columnar=bool(request.get("columnar", False)),
            why_not_columnar=str(request.get("why_not_columnar", "")),
            log_question=_log_question(request.get("question")),
            partial=_partial_rows(request.get("partial")),
        )

    @property
    def predicate(self) -> tree.Expression | None:
        """All predicates that Python can represent; None if there are none."""
        return conjunction_of(self.predicates)

    def exact_predicate(self) -> tree.Expression | None:
        """Return all predicates combined, for a read that must apply them exactly; None if there are none. Raises ValueError if
        Python cannot represent one."""
        if None in self.predicates:
            raise ValueError("A predicate of the query holds a constant that Python does not have.")
        return self.predicate


def parse_batch_start(start: Any) -> tuple[Any, ScanRequest | None]:
    """Return where a batch of a stream begins, and the rule's request for its files. The request is None for Spark's own offset.

    A stream's process gets only offsets when Spark requests files, so StreamView.java puts both into one.
    """
    if not isinstance(start, dict) or start.keys() != {MARKER_KEY, _START}:
        return start, None
    return json.loads(start[_START]), ScanRequest.parse(StructType.fromJson(json.loads(start[MARKER_KEY])))


def _without_marker(field: StructField) -> StructField:
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != MARKER_KEY}
    return StructField(field.name, field.dataType, field.nullable, metadata)


def _log_question(request: dict[str, Any] | None) -> LogQuestion | None:
    """Parse the part `question` of the request. None if the rule does not ask the log."""
    if request is None:
        return None
    from delta_py.scan.log_answers import Question  # few scans need it

    question = Question(*(tuple(request[name]) for name in ("by", "valued", "minima", "maxima")))
    return LogQuestion(question, is_only_question=bool(request["only"]))


def _partial_rows(request: dict[str, Any] | None) -> PartialRowsRequest | None:
    """Parse the part `partial` of the request. None if the rule does not request partial rows."""
    if request is None:
        return None
    from delta_py.scan.partial_rows import PartialRows  # few scans need it
    from delta_py.scan.summands import Summand

    by, valued, minima, maxima = (tuple(request[name]) for name in ("by", "valued", "minima", "maxima"))
    rows = PartialRows(by, valued, minima, maxima, tuple(map(Summand.parse, request["sums"])))
    return PartialRowsRequest(rows, StructType.fromJson(request["read"]))
