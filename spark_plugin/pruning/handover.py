"""What the rule hands to the source with a scan's schema, and the report that goes back.

The rule writes JSON text into the metadata of the first field, under MARKER_KEY: `{"predicates": [...], "limit": n,
"nonce": "..."}`. With `"again": true` the scan has been planned before, and the predicates are more now than they were then
(JoinedScan.java); with `"statistics": true` the numbers that `facts_text` may tell are worth some time; with
`"metadata_column": true` one of the columns is the metadata column that the rule offers (MetadataTable.java); with
`"native": true` files may be told of that Spark's own Parquet reader can read (NativeScan.java). Where the log may
answer a query it asks too, with a `question` (delta_py.scan.log_answers.Question); `"only": true` in it says that the scan will
not be read in any case. With `partial` (delta_py.scan.partial_rows.PartialRows) the schema is of partial rows, and the
predicates must hold exactly; a `partial` note says that they are given.

A batch of a stream is asked for with such a schema too, beside the offset where it begins (StreamView.java): of the marker only
the predicates, the nonce and `native` say something.

What goes back is text inside the first pickled partition (on files of a task: inside its own), where there may be any other text:
names of files, values of the table. So it bears the nonce, which the rule makes anew for each call and looks for
(PlannedScan.java).

A predicate is `{"name": "<", "children": [...]}`, a column `{"column": ["st", "x"]}`, a constant
`{"type": "integer", "value": 5}` as PredicateJson.java describes. A schema without fields carries no marker and needs
none: filters and limits come with the columns that they are about.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from delta_py.expressions import tree
from delta_py.protocol.schema import primitive_from_name

if TYPE_CHECKING:
    from delta_py.scan.log_answers import Question
    from delta_py.scan.partial_rows import PartialRows
    from delta_py.scan.planning import ScanReport

MARKER_KEY = "pydelta.pruning"
QUESTION_KEY = "pydelta.question"
_START = "start"

_EPOCH = dt.datetime(1970, 1, 1)
_COMPARISONS = frozenset({"=", "<=>", "<", "<=", ">", ">="})
_STRING_MATCHES = {"STARTS_WITH": "startswith", "ENDS_WITH": "endswith", "CONTAINS": "contains"}


class NativeWish(Enum):
    """Which simple files are for Spark's own Parquet reader."""

    WHERE_QUICKER = "where quicker"
    WHEREVER_POSSIBLE = "wherever possible"


def is_pruned(schema: StructType) -> bool:
    """Whether the pruning rule made this schema. A schema without fields is one that it made."""
    return not schema.fields or _marker(schema) is not None


def strip_marker(schema: StructType) -> StructType:
    """The schema without the rule's marker; the same object when there is none."""
    if _marker(schema) is None:
        return schema
    return StructType([_without_marker(field) for field in schema.fields])


def pushed_predicate(schema: StructType) -> tree.Expression | None:
    """What is asked of the rows, as far as it could be handed over; None if nothing.

    Columns are logical paths in the schema's own spelling and are part of the schema. Rows for which it is not true may
    be left out of what is read; Spark filters again.
    """
    predicates = (_predicate(text) for text in _handed_over(schema).get("predicates", ()))
    parts = tuple(part for part in predicates if part is not None)
    return tree.conjunction(parts) if parts else None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan wants of one of its scans. predicate: true for all rows that matter, None for any. exact: the plan is
    just these rows. none: the plan gives no rows at all."""

    predicate: tree.Expression | None
    exact: bool = False
    none: bool = False

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """text: of WantedRows.java. A scan that is not there, or more than once, may be asked for any row."""
        answer = json.loads(text)
        if answer["found"] != 1:
            return cls(None, none=bool(answer["empty"]) and answer["found"] == 0)
        predicates = [_predicate(value) for value in answer["predicates"]]
        known = tuple(part for part in predicates if part is not None)
        return cls(tree.conjunction(known) if known else None, exact=bool(answer["exact"]) and len(known) == len(predicates))

    def without(self, column: str) -> Wanted:
        """As far as it does not depend on a column, which the scan makes itself and no file's statistics speak of."""
        parts = () if self.predicate is None else tree.conjuncts(self.predicate)
        known = tuple(part for part in parts if all(path[0] != column for path in tree.columns_of(part)))
        return self if len(known) == len(parts) else Wanted(tree.conjunction(known) if known else None, none=self.none)


def predicate_of(text: str) -> tree.Expression:
    """Conditions in a JSON list, all of which hold, to be taken exactly. Raises ValueError for one that Python cannot hold."""
    parts = tuple(_predicate(value) for value in json.loads(text))
    known = tuple(part for part in parts if part is not None)
    if len(known) != len(parts):
        raise ValueError(f"The conditions {text} hold a constant that Python does not have.")
    return tree.conjunction(known) if known else tree.And(())


def pushed_limit(schema: StructType) -> int | None:
    """Exactly this many rows are wanted, or all if there are fewer; None if there is no limit. Never with a predicate.

    Spark does not count again: there must be one partition, and reading must stop at that row.
    """
    limit = _handed_over(schema).get("limit")
    return None if limit is None else int(limit)


def is_planned_again(schema: StructType) -> bool:
    """Whether the partitions go to the read function of an earlier planning of this scan, perhaps of another version."""
    return bool(_handed_over(schema).get("again", False))


def wants_statistics(schema: StructType) -> bool:
    """Whether the session uses numbers of rows and of values where it plans joins."""
    return bool(_handed_over(schema).get("statistics", False))


def wants_metadata_column(schema: StructType) -> bool:
    """Whether one of the columns is none of the table's but the metadata column."""
    return bool(_handed_over(schema).get("metadata_column", False))


def native_wish(schema: StructType) -> NativeWish | None:
    """Where Spark's own Parquet reader shall read; None for nowhere."""
    wish = _handed_over(schema).get("native")
    return None if wish is None else NativeWish(wish)


def asked_of_batch(start: Any) -> tuple[Any, StructType | None]:
    """Where a batch of a stream begins, and the schema with which the rule asks for its files: the columns that it is read in.
    None for Spark's own offset, with which nothing is asked.

    A stream's process is asked for files by offsets alone, so StreamView.java puts both into one.
    """
    if not isinstance(start, dict) or start.keys() != {MARKER_KEY, _START}:
        return start, None
    return json.loads(start[_START]), StructType.fromJson(json.loads(start[MARKER_KEY]))


@dataclass(frozen=True, slots=True)
class StreamQuestion:
    """A call about offsets, which a stream's process gets in the form of a request for a batch's partitions: Spark 4.1 has no
    other call with arguments. nonce: begins and ends the answer."""

    call: str
    arguments: tuple[str, ...]
    nonce: str

    def note(self, answer: str) -> str:
        """As StreamRunner.java finds it in the pickled partition: pickle stores a str as its bytes. answer: ASCII."""
        return f"{self.nonce}:{answer}:{self.nonce}"


def question_of(start: Any) -> StreamQuestion | None:
    """What StreamRunner.java asks by the start of a batch; None for a start. No offset of a stream has such a key."""
    if not isinstance(start, dict) or start.keys() != {QUESTION_KEY}:
        return None
    question = start[QUESTION_KEY]
    return StreamQuestion(question["call"], tuple(question["arguments"]), question["nonce"])


def log_question(schema: StructType) -> Question | None:
    """What the rule asks of the log, so that nothing need be read; None if it does not ask."""
    question = _handed_over(schema).get("question")
    if question is None:
        return None
    from delta_py.scan.log_answers import Question  # few scans are asked

    return Question(*(tuple(question[name]) for name in ("by", "valued", "minima", "maxima")))


def partial_rows(schema: StructType) -> PartialRows | None:
    """What the rule adds up, so that partial rows are enough; None where it wants the rows themselves."""
    wanted = _handed_over(schema).get("partial")
    if wanted is None:
        return None
    from delta_py.scan.partial_rows import PartialRows  # few scans are read so
    from delta_py.scan.summands import Summand

    by, valued, minima, maxima = (tuple(wanted[name]) for name in ("by", "valued", "minima", "maxima"))
    return PartialRows(by, valued, minima, maxima, tuple(map(Summand.parse, wanted["sums"])))


def columns_of_partial_rows(schema: StructType) -> StructType:
    """Those that are read for the partial rows, with the types that the query knows."""
    return StructType.fromJson(_handed_over(schema)["partial"]["read"])


def partial_text(schema: StructType) -> str:
    """That partial rows are given, in the form that PartialAggregates.java finds."""
    return _note("partial", "given", schema)


def exact_predicate(schema: StructType) -> tree.Expression | None:
    """As pushed_predicate, of rows for which it must be true. Raises ValueError for one that Python cannot hold."""
    conditions = _handed_over(schema).get("predicates", ())
    return predicate_of(json.dumps(conditions)) if conditions else None


def is_only_question(schema: StructType) -> bool:
    """Whether the scan will not be read, whatever the answer is."""
    question = _handed_over(schema).get("question")
    return question is not None and bool(question["only"])


def answer_text(answer: pa.Table, schema: StructType) -> str:
    """The answer in the form that LogAnswer.java finds inside a pickled partition: an Arrow stream. schema: that which asked."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, answer.schema) as writer:
        writer.write_table(answer.combine_chunks())
    return _note("answer", base64.b64encode(sink.getvalue().to_pybytes()).decode(), schema)


def explain_text(report: ScanReport, schema: StructType) -> str:
    """The report in the form that KeptFiles.java finds inside a pickled partition. schema: the one that asked for the scan."""
    kept = f"{report.files_kept}/{report.files_total} files,{report.bytes_kept}/{report.bytes_total} bytes"
    rows = "" if report.rows_kept is None else f",{report.rows_kept} rows"
    return _note("kept", kept + rows, schema)


def few_text(schema: StructType) -> str:
    """That the rows may be few, in the form that PrunedSource.java finds. schema: the one that asked for the scan."""
    return _note("few", "rows", schema)


def nonce_of_request(schema: StructType) -> str | None:
    """By which what comes back is known; None where no rule listens."""
    nonce = _handed_over(schema).get("nonce")
    return None if nonce is None else str(nonce)


def facts_text(facts: Mapping[str, Any], schema: StructType) -> str:
    """What JoinedScan.java may tell Spark of a scan, in the form that ScanFacts.java finds inside a pickled partition.

    schema: the one that asked for the scan.
    facts: `rows`, how many there are, absent or None if that is not known; `partition_columns`, the names, as Spark has them,
    of the columns by whose values files can be left out; `columns`, by name what ColumnNumbers.java tells of a column.
    """
    return _note("facts", base64.b64encode(json.dumps(facts).encode()).decode(), schema)


def native_text(facts: Mapping[str, Any], schema: StructType) -> str:
    """How Spark's Parquet reader reads the files of the tasks that have a `files_text`, in the form that NativeScan.java finds.

    schema: the one that asked for the scan. facts: `kinds`, a letter for each column, d for one of data files and p for one of
    partitions; `schema`, the columns by the names in files, as of a table's metadata; `root`, the table's directory;
    `verifyChecksums`, whether pages are compared with their checksums.
    """
    return _note("native", base64.b64encode(json.dumps(facts).encode()).decode(), schema)


def files_text(stream: bytes, schema: StructType) -> str:
    """The files of a task, as native_files.py makes the stream, in the form that NativeScan.java finds in its partition."""
    return _note("files", base64.b64encode(stream).decode(), schema)


def files_of(text: str) -> bytes:
    """The stream of a files_text."""
    return base64.b64decode(text.removesuffix(";").rpartition(":")[2])


def _note(name: str, text: str, schema: StructType) -> str:
    """Empty where no rule listens."""
    nonce = nonce_of_request(schema)
    return "" if nonce is None else f"pydelta-{name}:{nonce}:{text};"


# ---------------------------------------------------------------- the marker


def _marker(schema: StructType) -> str | None:
    return next((field.metadata[MARKER_KEY] for field in schema.fields if MARKER_KEY in (field.metadata or {})), None)


def _without_marker(field: StructField) -> StructField:
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != MARKER_KEY}
    return StructField(field.name, field.dataType, field.nullable, metadata)


def _handed_over(schema: StructType) -> dict[str, Any]:
    text = _marker(schema)
    return {} if text is None else json.loads(text)


# ---------------------------------------------------------------- predicates


def _predicate(value: dict[str, Any]) -> tree.Expression | None:
    """None for a predicate with a constant that Python cannot hold (a date beyond the year 9999)."""
    try:
        return _expression(value)
    except (OverflowError, decimal.InvalidOperation):
        return None


def _expression(value: dict[str, Any]) -> tree.Expression:
    if "column" in value:
        return tree.Column(tuple(value["column"]))
    if "type" in value:
        return _literal(value)
    name, operands = value["name"], tuple(_expression(child) for child in value["children"])
    match name, operands:
        case "AND", _:
            return tree.And(operands)
        case "OR", _:
            return tree.Or(operands)
        case "NOT", (operand,):
            return tree.Not(operand)
        case "IS_NULL", (operand,):
            return tree.IsNull(operand)
        case "IS_NOT_NULL", (operand,):
            return tree.Not(tree.IsNull(operand))
        case "<>", (left, right):
            return tree.Not(tree.Comparison("=", left, right))
        case _, (left, right) if name in _COMPARISONS:
            return tree.Comparison(name, left, right)
        case _, (operand, tree.Literal(str(pattern))) if name in _STRING_MATCHES:
            return tree.StringMatch(_STRING_MATCHES[name], operand, pattern)
        case "IN", (operand, *options):
            constants = tuple(option for option in options if isinstance(option, tree.Literal))
            if len(constants) == len(options):
                return tree.In(operand, constants)
    raise ValueError(f"The pruning rule handed over a predicate that the source does not know: {value!r}.")


def _literal(value: dict[str, Any]) -> tree.Literal:
    data_type = primitive_from_name(value["type"])
    constant = value["value"]
    if constant is None:
        return tree.Literal(None, data_type)
    match value["type"]:
        case "date":
            return tree.Literal((_EPOCH + dt.timedelta(days=constant)).date(), data_type)
        case "timestamp":
            return tree.Literal((_EPOCH + dt.timedelta(microseconds=constant)).replace(tzinfo=dt.UTC), data_type)
        case "timestamp_ntz":
            return tree.Literal(_EPOCH + dt.timedelta(microseconds=constant), data_type)
        case "float" | "double":
            return tree.Literal(float(constant), data_type)
        case "binary":
            return tree.Literal(base64.b64decode(constant), data_type)
        case name if name.startswith("decimal"):
            return tree.Literal(decimal.Decimal(constant), data_type)
    return tree.Literal(constant, data_type)
