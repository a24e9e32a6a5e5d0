"""What the rule asks of the source for one scan: it comes with the schema that Spark passes to `DataSource.reader`.

    request = ScanRequest.parse(schema)

The rule writes JSON text into the metadata of the schema's first field, under MARKER_KEY (ScanRequest.java). A schema without
fields carries no marker and needs none: filters and limits come with the columns that they are about. A batch of a stream is
asked for with such a schema next to the offset where it begins (StreamView.java). messages.json describes the text.
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
_NOT_ASKED = "the pruning rule does not ask for Spark's Parquet reader"


class NativeWish(Enum):
    """Which simple files are for Spark's own Parquet reader."""

    WHERE_QUICKER = "where quicker"
    WHEREVER_POSSIBLE = "wherever possible"


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """What the log may answer in the place of reading. is_only_question: the scan is not read, whatever the answer is."""

    question: Question
    is_only_question: bool


@dataclass(frozen=True, slots=True)
class PartialRowsRequest:
    """Partial rows in the place of the rows. read_columns: those that are read for them, with the types that the query knows."""

    rows: PartialRows
    read_columns: StructType


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What one scan asks.

    columns: the schema without the rule's marker; of partial rows where these are requested.
    is_pruned: the rule has made the schema. A schema without fields is one that it made.
    predicates: all hold for the rows that are wanted. Columns are logical paths in the schema's own spelling; None stands for a
    predicate with a constant that Python cannot hold. Rows for which one is not true may be left out; Spark filters again.
    limit: exactly this many rows are wanted, or all if there are fewer; Spark does not count again. Never with a predicate.
    scan_id: names this planning of the scan; None if no rule listens.
    is_planned_again: the partitions go to the read function of an earlier planning of this scan, perhaps of another version.
    wants_statistics: the session uses numbers of rows and of values where it plans joins.
    wants_metadata_column: one of the columns is none of the table's but the metadata column.
    native: where Spark's own Parquet reader shall read; None for nowhere.
    why_not_native: why nowhere.
    is_columnar: Spark gets columns of what Python reads; otherwise it makes rows of the batches.
    why_not_columnar: why it makes rows.
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
    why_not_native: str = _NOT_ASKED
    is_columnar: bool = False
    why_not_columnar: str = ""
    log_question: LogQuestion | None = None
    partial: PartialRowsRequest | None = None

    @classmethod
    def parse(cls, schema: StructType) -> ScanRequest:
        """Raises ValueError for a predicate of an unknown kind."""
        text = next((field.metadata[MARKER_KEY] for field in schema.fields if MARKER_KEY in (field.metadata or {})), None)
        if text is None:
            return cls(schema, is_pruned=not schema.fields)
        asked = json.loads(text)
        limit, native, scan_id = asked.get("limit"), asked.get("native"), asked.get("scan_id")
        return cls(
            StructType([_without_marker(field) for field in schema.fields]),
            is_pruned=True,
            predicates=tuple(parse_predicate(value) for value in asked.get("predicates", ())),
            limit=None if limit is None else int(limit),
            scan_id=None if scan_id is None else str(scan_id),
            is_planned_again=bool(asked.get("again", False)),
            wants_statistics=bool(asked.get("statistics", False)),
            wants_metadata_column=bool(asked.get("metadata_column", False)),
            native=None if native is None else NativeWish(native),
            why_not_native=str(asked.get("why_not_native", _NOT_ASKED)),
            is_columnar=bool(asked.get("columnar", False)),
            why_not_columnar=str(asked.get("why_not_columnar", "")),
            log_question=_log_question(asked.get("question")),
            partial=_partial(asked.get("partial")),
        )

    @property
    def predicate(self) -> tree.Expression | None:
        """All predicates that Python can hold; None if there is none."""
        return conjunction_of(self.predicates)

    def exact_predicate(self) -> tree.Expression | None:
        """All predicates, to be taken exactly. Raises ValueError if Python cannot hold one."""
        if None in self.predicates:
            raise ValueError("A predicate of the query holds a constant that Python does not have.")
        return self.predicate


def parse_batch_start(start: Any) -> tuple[Any, ScanRequest | None]:
    """Where a batch of a stream begins, and what the rule asks of its files. None for Spark's own offset, which asks nothing.

    A stream's process is asked for files by offsets alone, so StreamView.java puts both into one.
    """
    if not isinstance(start, dict) or start.keys() != {MARKER_KEY, _START}:
        return start, None
    return json.loads(start[_START]), ScanRequest.parse(StructType.fromJson(json.loads(start[MARKER_KEY])))


def _without_marker(field: StructField) -> StructField:
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != MARKER_KEY}
    return StructField(field.name, field.dataType, field.nullable, metadata)


def _log_question(asked: dict[str, Any] | None) -> LogQuestion | None:
    if asked is None:
        return None
    from delta_py.scan.log_answers import Question  # few scans are asked

    question = Question(*(tuple(asked[name]) for name in ("by", "valued", "minima", "maxima")))
    return LogQuestion(question, is_only_question=bool(asked["only"]))


def _partial(asked: dict[str, Any] | None) -> PartialRowsRequest | None:
    if asked is None:
        return None
    from delta_py.scan.partial_rows import PartialRows  # few scans are read so
    from delta_py.scan.summands import Summand

    by, valued, minima, maxima = (tuple(asked[name]) for name in ("by", "valued", "minima", "maxima"))
    rows = PartialRows(by, valued, minima, maxima, tuple(map(Summand.parse, asked["sums"])))
    return PartialRowsRequest(rows, StructType.fromJson(asked["read"]))
