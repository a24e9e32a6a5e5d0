"""What the log answers about a table's rows, and when it does not answer."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py.expressions.parse import parse_predicate
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.object_stores.open_store import open_store
from delta_py.parquet.file_reader import read_files
from delta_py.scan import log_answers
from delta_py.scan.log_answers import Question, answer_from_log
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.small_table import make_table
from tests.support.tables.table_builder import Json, TableBuilder, add, stats, vector

BOTH = Question(valued=("id",), minima=("id",), maxima=("id",))


@pytest.fixture
def builder() -> TableBuilder:
    return TableBuilder(MemoryStore())


def answered(builder: TableBuilder, question: Question, **options: Any) -> list[tuple[Any, ...]] | None:
    answer = answer_from_log(Snapshot.load(builder.store), question, options=ScanOptions(**options))
    return None if answer is None else [tuple(row.values()) for row in answer.to_pylist()]


def test_answer_of_a_written_table_is_what_reading_it_gives(tmp_path: Path) -> None:
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=n) for n in range(20)]
    rows = pa.table({"id": pa.array(range(20), pa.int64()), "part": [n % 3 for n in range(20)], "day": days})
    path = make_table(tmp_path, [rows.slice(0, 12), rows.slice(12)], partition_by=["part"])
    snapshot = Snapshot.load(open_store(path))
    scan = plan_scan(snapshot)
    read = pa.Table.from_batches(read_files(scan.state, scan.scan_files()))

    answer = answer_from_log(snapshot, Question(by=("part",), valued=("id",), minima=("id",), maxima=("id",)))

    assert answer is not None
    grouped = {
        part: read.filter(pa.compute.equal(read["part"], part))["id"].to_pylist() for part in set(read["part"].to_pylist())
    }
    assert {row["by0"]: tuple(row.values())[1:] for row in answer.to_pylist()} == {
        part: (len(ids), len(ids), min(ids), max(ids)) for part, ids in grouped.items()
    }


def test_table_without_files_has_no_row_in_the_answer(builder: TableBuilder) -> None:
    builder.create()
    assert answered(builder, BOTH) == []


def test_deleted_rows_are_not_counted_and_leave_bounds_open(builder: TableBuilder) -> None:
    builder.commit(
        builder.protocol(features=["deletionVectors"]),
        builder.metadata(),
        add("a", stats=stats(10, 1, 9)),
        add("b", stats=stats(10, 5, 20), deletionVector=vector()),
    )
    assert answered(builder, Question()) == [(14,)]
    assert answered(builder, Question(valued=("id",))) == [(14, 14)]
    assert answered(builder, Question(maxima=("id",))) is None


@pytest.mark.parametrize(("nulls", "valued"), [(0, 4), (10, 0), (3, None)])
def test_null_count_with_deleted_rows_needs_none_or_all_null(
    nulls: int, valued: int | None, builder: TableBuilder
) -> None:
    head = (builder.protocol(features=["deletionVectors"]), builder.metadata())
    builder.commit(*head, add("a", stats=stats(10, None, None, nulls=nulls), deletionVector=vector()))
    assert answered(builder, Question(valued=("id",))) == (None if valued is None else [(4, valued)])


@pytest.mark.parametrize(
    "fault",
    [
        {"stats": None},
        {"stats": "no json"},
        {"stats": json.dumps({"minValues": {"id": 1}, "maxValues": {"id": 2}, "nullCount": {"id": 0}})},
        {"stats": json.dumps({"numRecords": -1})},
        {"stats": stats(5, 1, 2), "deletionVector": vector()},
        {"stats": stats(10, 1, 2), "deletionVector": {**vector(), "cardinality": None}},
    ],
)
def test_file_whose_rows_are_not_known_leaves_everything_open(fault: Json, builder: TableBuilder) -> None:
    head = (builder.protocol(features=["deletionVectors"]), builder.metadata())
    builder.commit(*head, add("a", stats=stats(10, 1, 9)), add("b", **fault))
    assert answered(builder, Question()) is None


@pytest.mark.parametrize(
    "stats_fields",
    [
        {"minValues": {"id": 1}, "maxValues": {}, "nullCount": {"id": 0}},
        {"minValues": {"id": 3}, "maxValues": {"id": 2}, "nullCount": {"id": 0}},
        {"minValues": {"id": 1}, "maxValues": {"id": 2}, "nullCount": {"id": 11}},
        {"minValues": {"id": 1}, "maxValues": {"id": 2}, "nullCount": {"id": 1}, "tightBounds": False},
        {},
    ],
)
def test_statistics_with_a_gap_or_a_contradiction_are_no_answer(stats_fields: Json, builder: TableBuilder) -> None:
    builder.create(add("a", stats=json.dumps({"numRecords": 10, **stats_fields})))
    assert answered(builder, BOTH) is None
    assert answered(builder, Question()) == [(10,)]


def test_file_with_nothing_but_nulls_has_no_bounds_and_is_known(builder: TableBuilder) -> None:
    nothing = json.dumps({"numRecords": 3, "nullCount": {"id": 3}})
    builder.create(add("a", stats=nothing))
    assert answered(builder, BOTH) == [(3, 0, None, None)]
    builder.commit(add("b", stats=stats(10, 1, 9)))
    assert answered(builder, BOTH) == [(13, 10, 1, 9)]


def test_file_without_rows_has_no_say(builder: TableBuilder) -> None:
    columns = (("id", "long"), ("p", "integer"))
    head = (builder.protocol(features=["deletionVectors"]), builder.metadata(*columns, partition_by=["p"]))
    empty_file = add("b", stats=stats(6, 100, 200), partitionValues={"p": "2"}, deletionVector=vector())
    builder.commit(*head, add("a", stats=stats(10, 1, 9), partitionValues={"p": "1"}), empty_file)
    assert answered(builder, Question(by=("p",), maxima=("p", "id"))) == [(1, 10, 1, 9)]


@pytest.mark.parametrize(
    ("kind", "low", "high", "answer"),
    [
        ("byte", -128, 127, (-128, 127)),
        ("long", -(2**63), 2**63 - 1, (-(2**63), 2**63 - 1)),
        ("date", "1582-10-15", "9999-12-31", (datetime.date(1582, 10, 15), datetime.date(9999, 12, 31))),
        ("date", "1582-10-04", "2020-01-01", None),
        ("decimal(15,2)", 0.07, 9999999999999.99, (Decimal("0.07"), Decimal("9999999999999.99"))),
        ("decimal(16,2)", 1, 2, None),
        ("decimal(15,2)", 1, 9999999.99, None),
        ("long", 1, 2**31 - 1, None),
        ("date", "1970-01-01", "2262-04-11", None),
        ("boolean", False, True, (False, True)),
        ("float", 1.0, 2.0, None),
        ("double", 1.0, 2.0, None),
        ("string", "a", "b", None),
        ("timestamp", "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z", None),
        ("timestamp_ntz", "2020-01-01T00:00:00.000", "2020-01-01T00:00:00.000", None),
    ],
)
def test_bounds_are_answers_only_for_types_stored_exactly(
    kind: str, low: Any, high: Any, answer: tuple[Any, Any] | None, builder: TableBuilder
) -> None:
    head = (builder.protocol(features=["timestampNtz"]), builder.metadata(("c", kind)))
    builder.commit(*head, add("a", stats=stats(10, low, high, column="c")))
    assert answered(builder, Question(minima=("c",), maxima=("c",))) == (None if answer is None else [(10, *answer)])
    assert answered(builder, Question(valued=("c",))) == [(10, 10)]


@pytest.mark.parametrize(
    ("kind", "low", "high", "values"),
    [
        ("string", "Z", "é", ("Z", "é")),
        ("decimal(38,0)", "9" * 37, "9" * 38, (Decimal("9" * 37), Decimal("9" * 38))),
        ("timestamp_ntz", "2020-01-01 00:00:00.000001", "2020-01-01 00:00:00.000002", None),
        ("double", "1.0", "NaN", ()),
    ],
)
def test_partition_values_are_exact_but_for_floats(
    kind: str, low: str, high: str, values: tuple[Any, ...] | None, builder: TableBuilder
) -> None:
    if values is None:
        values = (datetime.datetime(2020, 1, 1, microsecond=1), datetime.datetime(2020, 1, 1, microsecond=2))
    head = (builder.protocol(features=["timestampNtz"]), builder.metadata(("id", "long"), ("p", kind), partition_by=["p"]))
    builder.commit(*head, *(add(text, stats=stats(1, 1, 1), partitionValues={"p": text}) for text in (high, low)))
    assert answered(builder, Question(minima=("p",), maxima=("p",))) == ([(2, *values)] if values else None)
    assert answered(builder, Question(valued=("p",))) == [(2, 2)]


@pytest.mark.parametrize(
    "question",
    [
        Question(by=("id",)),
        Question(valued=("st",)),
        Question(valued=("missing",)),
        Question(maxima=("st",)),
        Question(by=("_metadata",)),
    ],
)
def test_question_about_what_the_log_does_not_know_has_no_answer(question: Question, builder: TableBuilder) -> None:
    struct = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]}
    builder.commit(builder.protocol(), builder.metadata(("id", "long"), ("st", struct)), add("a", stats=stats(10, 1, 9)))
    assert answered(builder, question) is None


@pytest.mark.parametrize("question", [Question(by=("p",)), Question(minima=("p",)), Question(maxima=("p",)), Question()], ids=str)
def test_log_does_not_answer_order_or_equality_under_collation(question: Question, tmp_path: Path) -> None:
    p = {"name": "p", "type": "string", "nullable": True, "metadata": {"__COLLATIONS": {"p": "spark.UTF8_LCASE"}}}
    n = {"name": "n", "type": "long", "nullable": True, "metadata": {}}
    rows = pa.table({"p": ["a", "B"], "n": pa.array([1, 2], pa.int64())})
    schema_text = json.dumps({"type": "struct", "fields": [p, n]})
    path = make_table(tmp_path / "t", [rows], partition_by=["p"], schema_json=schema_text)
    answer = answer_from_log(Snapshot.load(open_store(path)), question)
    assert (answer is None) == (question != Question())


def test_rows_that_must_be_dropped_are_no_business_of_the_log(builder: TableBuilder) -> None:
    head = builder.metadata(("id", "long"), ("p", "integer"), partition_by=["p"])
    adds = [add(f"f{p}", stats=stats(10, 1, 9), partitionValues={"p": str(p)}) for p in range(3)]
    builder.commit(builder.protocol(), head, *adds)
    snapshot = Snapshot.load(builder.store)

    def count(condition: str, **options: Any) -> int | None:
        predicate = parse_predicate(condition, snapshot.schema)
        answer = answer_from_log(snapshot, Question(), predicate, ScanOptions(**options))
        return None if answer is None else sum(answer["rows"].to_pylist())

    assert count("p > 0", drop_rows=True) == 20
    assert count("p > 0 and id > 5", drop_rows=True) is None
    assert count("p > 0", ignore_missing_files=True) is None


def test_more_partitions_than_an_answer_may_have_are_no_answer(builder: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_answers, "MAX_GROUPS", 3)
    head = builder.metadata(("id", "long"), ("p", "integer"), partition_by=["p"])
    adds = [add(f"f{n}", stats=stats(1, 1, 1), partitionValues={"p": str(n % 3)}) for n in range(20)]
    builder.commit(builder.protocol(), head, *adds)
    assert answered(builder, Question(by=("p",))) == [(0, 7), (1, 7), (2, 6)]
    builder.commit(add("g", stats=stats(1, 1, 1), partitionValues={"p": "3"}))
    assert answered(builder, Question(by=("p",))) is None
    assert answered(builder, Question()) == [(21,)]


@pytest.mark.parametrize("json_too", [True, False])
@pytest.mark.parametrize("kind", ["classic", "v2-parquet", "multipart"])
def test_count_from_a_checkpoint_reads_numbers_and_no_text(
    kind: str, json_too: bool, builder: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = builder.protocol(features=["v2Checkpoint"])
    builder.commit(protocol, builder.metadata(), *(add(f"{n}", stats=stats(10, n, n)) for n in range(9)))
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct([("id", pa.int64())]))])
    builder.checkpoint(kind=kind, stats_json=json_too, stats_parsed=parsed)
    has_text: list[bool] = []
    files = CheckpointReader.files

    def seen(self: CheckpointReader, wanted_stats: Any) -> Any:
        for raw in files(self, wanted_stats):
            has_text.append(raw.json is not None)
            yield raw

    monkeypatch.setattr(CheckpointReader, "files", seen)
    assert answered(builder, Question()) == [(90,)]
    assert has_text and not any(has_text)


def test_count_reads_text_if_checkpoint_lacks_parsed_statistics(builder: TableBuilder) -> None:
    builder.create(*(add(f"{n}", stats=stats(10, n, n)) for n in range(9)))
    builder.checkpoint()
    builder.commit(add("later", stats=stats(5, 1, 2)))
    assert answered(builder, Question()) == [(95,)]
