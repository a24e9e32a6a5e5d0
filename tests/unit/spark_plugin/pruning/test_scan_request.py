"""What the source reads from a schema that the pruning rule marked. There is no session: test_pruning_rule.py tests the Java
side.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from delta_py.expressions.tree import FALSE, TRUE, Column, Comparison, In, IsNull, Literal, Not, Or, StringMatch
from delta_py.scan.file_groups import FileGroup
from delta_py.scan.log_answers import Question
from delta_py.scan.planning import ScanReport
from delta_py.types.schema import INTEGER, STRING
from spark_plugin.pruning import (
    MessagePartition,
    NativeWish,
    ScanRequest,
    kept_part,
    limited,
    parse_batch_start,
    partition_messages,
    plan_message,
)
from spark_plugin.pruning.scan_request import MARKER_KEY
from spark_plugin.source.task_batches import DeltaPartition
from tests.support.documents.message_schema import violations

PLAIN = StructType([StructField("a", IntegerType(), False, {"comment": "kept"}), StructField("s", StringType())])

A, S, ONE, X = Column(("a",)), Column(("s",)), Literal(1, INTEGER), Literal("x", STRING)


def marked(predicates: list[Any], limit: int | None = None) -> StructType:
    marker = json.dumps({"predicates": predicates, "limit": limit})
    return StructType([StructField("a", IntegerType(), False, {"comment": "kept", MARKER_KEY: marker}), PLAIN["s"]])


def told(name: str, *children: Any) -> dict[str, Any]:
    return {"name": name, "children": list(children)}


a, s = {"column": ["a"]}, {"column": ["s"]}
one, x, nothing = {"type": "integer", "value": 1}, {"type": "string", "value": "x"}, {"type": "integer", "value": None}


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (told("=", a, one), Comparison("=", A, ONE)),
        (told("<=>", a, one), Comparison("<=>", A, ONE)),
        (told("<>", a, one), Not(Comparison("=", A, ONE))),
        (told(">=", one, a), Comparison(">=", ONE, A)),
        (told("IS_NULL", a), IsNull(A)),
        (told("IS_NOT_NULL", a), Not(IsNull(A))),
        (told("IN", a, one, nothing), In(A, (ONE, Literal(None, INTEGER)))),
        (told("IN", a), In(A, ())),
        (told("STARTS_WITH", s, x), StringMatch("startswith", S, "x")),
        (told("ENDS_WITH", s, x), StringMatch("endswith", S, "x")),
        (told("CONTAINS", s, x), StringMatch("contains", S, "x")),
        (told("NOT", told("=", a, one)), Not(Comparison("=", A, ONE))),
        (told("OR", told("IS_NULL", a), told("IS_NULL", s)), Or((IsNull(A), IsNull(S)))),
        (told("AND"), TRUE),
        (told("OR"), FALSE),
        (told("<", {"column": ["st", "odd.name"]}, one), Comparison("<", Column(("st", "odd.name")), ONE)),
    ],
)
def test_predicate_of_each_kind_becomes_its_tree(predicate: Any, expected: object) -> None:
    assert ScanRequest.parse(marked([predicate])).predicate == expected


@pytest.mark.parametrize(
    "predicate", [told("LIKE", s, x), told("=", a), told("IN", a, s), told("CONTAINS", s, s), told("NOT", a, a)]
)
def test_predicate_of_an_unknown_kind_is_an_error(predicate: Any) -> None:
    with pytest.raises(ValueError, match="does not know"):
        ScanRequest.parse(marked([predicate]))


def test_predicate_on_a_huge_date_alone_is_left_to_spark() -> None:
    far = told("=", {"column": ["d"]}, {"type": "date", "value": 10_000_000})
    assert ScanRequest.parse(marked([far, told("=", a, one)])).predicate == Comparison("=", A, ONE)
    assert ScanRequest.parse(marked([far])).predicate is None


def test_several_predicates_become_one_conjunction() -> None:
    predicate = ScanRequest.parse(marked([told("=", a, one), told("IS_NULL", s)])).predicate
    assert repr(predicate) == repr(type(TRUE)((Comparison("=", A, ONE), IsNull(S))))


def test_schema_without_a_marker_hands_nothing_over() -> None:
    assert not ScanRequest.parse(PLAIN).is_pruned
    assert ScanRequest.parse(PLAIN).columns is PLAIN
    assert ScanRequest.parse(PLAIN).predicate is None
    assert ScanRequest.parse(PLAIN).limit is None


def test_marked_schema_is_known_and_comes_back_as_it_was() -> None:
    assert ScanRequest.parse(marked([])).is_pruned
    assert ScanRequest.parse(marked([])).columns == PLAIN
    assert ScanRequest.parse(marked([])).columns["a"].metadata == {"comment": "kept"}
    assert ScanRequest.parse(marked([])).predicate is None


def test_schema_without_columns_counts_as_pruned() -> None:
    empty = StructType([])
    assert ScanRequest.parse(empty).is_pruned
    assert ScanRequest.parse(empty).columns is empty
    assert ScanRequest.parse(empty).predicate is None


class Numbers(DataSourceReader):
    """Partition n returns n batches of 10 rows, counting from 0."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.batches_read = 0

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(size) for size in self.sizes]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for start in range(0, partition.value * 10, 10):
            self.batches_read += 1
            yield pa.record_batch({"n": pa.array(range(start, start + 10))})


@pytest.mark.parametrize(
    ("sizes", "limit", "rows", "batches"),
    [
        ([2, 3], 5, 5, 1),
        ([2, 3], 20, 20, 2),
        ([2, 0, 3], 21, 21, 3),
        ([2, 3], 500, 50, 5),
        ([], 5, 0, 0),
        ([0], 1, 0, 0),
        ([3], 0, 0, 1),
    ],
)
def test_limited_reader_stops_after_enough_rows_of_a_partition(
    sizes: list[int], limit: int, rows: int, batches: int
) -> None:
    numbers = Numbers(sizes)
    reader = limited(numbers, ScanRequest.parse(marked([], limit)).limit)
    (partition,) = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(partition)) == rows
    assert numbers.batches_read == batches


def test_limited_reader_keeps_the_message_of_the_first_partition() -> None:
    class Planned(Numbers):
        def partitions(self) -> list[InputPartition]:
            return [MessagePartition(plan_message({"why": "x"}, "n-1")), MessagePartition()]

    (partition,) = limited(Planned([]), 5).partitions()
    copy = pickle.loads(pickle.dumps(partition))
    assert copy.messages == {"plan": '{"why": "x"}'}
    assert len(copy.partitions) == 2


def test_limited_without_a_limit_is_the_reader_itself() -> None:
    numbers = Numbers([1])
    assert limited(numbers, ScanRequest.parse(marked([])).limit) is numbers
    assert limited(numbers, ScanRequest.parse(PLAIN).limit) is numbers


# ---------------------------------------------------------------- questions for the log, and what goes back


def asking(only: bool) -> StructType:
    question = {"by": ["a"], "valued": ["s", "b"], "minima": [], "maxima": ["s"], "only": only}
    marker = json.dumps({"predicates": [], "limit": None, "scan_id": "n-1", "question": question})
    return StructType([StructField("a", IntegerType(), True, {MARKER_KEY: marker})])


@pytest.mark.parametrize("only", [True, False])
def test_question_comes_out_as_it_was_asked(only: bool) -> None:
    question = ScanRequest.parse(asking(only)).log_question
    assert question is not None
    assert question.question == Question(("a",), ("s", "b"), (), ("s",))
    assert question.is_only_question is only


@pytest.mark.parametrize("schema", [PLAIN, StructType([]), marked([])])
def test_schema_without_a_question_asks_none(schema: StructType) -> None:
    assert ScanRequest.parse(schema).log_question is None


# ---------------------------------------------------------------- joins


@pytest.mark.parametrize("is_again", [True, False])
@pytest.mark.parametrize("statistics", [True, False])
def test_what_a_join_needs_is_in_the_marker(is_again: bool, statistics: bool) -> None:
    marker = {
        "predicates": [],
        "limit": None,
        **({"again": True} if is_again else {}),
        **({"statistics": True} if statistics else {}),
    }
    schema = StructType([StructField("a", IntegerType(), True, {MARKER_KEY: json.dumps(marker)})])
    assert ScanRequest.parse(schema).is_planned_again is is_again
    assert ScanRequest.parse(schema).wants_statistics is statistics


@pytest.mark.parametrize("schema", [PLAIN, StructType([]), marked([])])
def test_schema_of_an_only_planning_asks_for_nothing_more(schema: StructType) -> None:
    assert not ScanRequest.parse(schema).is_planned_again
    assert not ScanRequest.parse(schema).wants_statistics


# ---------------------------------------------------------------- messages


def test_pickled_partition_keeps_its_files_and_messages() -> None:
    message = {"why": "ä;:", "kept": kept_part(ScanReport(files_kept=1, files_total=2, bytes_kept=30, bytes_total=40))}
    partition = DeltaPartition(FileGroup(b"files"), plan_message(message, "n-1"))
    partition.messages["files"] = b"\0:;"
    copy = pickle.loads(pickle.dumps(partition))
    assert (type(copy), copy.files, copy.state) == (DeltaPartition, partition.files, None)
    assert json.loads(copy.messages["plan"]) == message
    assert copy.messages["files"] == b"\0:;"
    assert violations("messages", copy.messages) == []


def test_pickle_begins_with_the_call_that_java_looks_for() -> None:
    pickled = cloudpickle.dumps(MessagePartition({"plan": "{}"}))
    assert pickled[11:13] == bytes([0x8C, len(partition_messages.__name__)])
    assert pickled[13:].startswith(partition_messages.__name__.encode())


@pytest.mark.parametrize("schema", [PLAIN, StructType([]), marked([])])
def test_no_message_where_no_rule_listens(schema: StructType) -> None:
    assert plan_message({"why": "x"}, ScanRequest.parse(schema).scan_id) == {}


def test_batch_of_a_stream_is_asked_for_beside_its_offset() -> None:
    schema = StructType([StructField("a", LongType(), True, {MARKER_KEY: '{"native": "where quicker", "scan_id": "n"}'})])
    start, request = parse_batch_start({MARKER_KEY: schema.json(), "start": '{"reservoirVersion": 3}'})
    assert (start, request) == ({"reservoirVersion": 3}, ScanRequest.parse(schema))
    assert request is not None and request.native is NativeWish.WHERE_QUICKER


@pytest.mark.parametrize("offset", [{"index": 3}, {MARKER_KEY: "{}", "index": 3}, {MARKER_KEY: "{}"}, None, [1], "x"], ids=str)
def test_offset_of_sparks_own_asks_for_nothing(offset: Any) -> None:
    assert parse_batch_start(offset) == (offset, None)
