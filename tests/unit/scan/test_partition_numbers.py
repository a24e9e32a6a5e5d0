"""Numbers of rows and partition values from the log, for estimates of joins."""

from __future__ import annotations

from typing import Any

import pytest

from delta_py.expressions.parse import parse_predicate
from delta_py.scan.partition_numbers import partition_numbers
from delta_py.scan.planning import Scan, ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, stats, vector

TYPES = {"p": "integer", "d": "date", "s": "string", "price": "decimal(9,2)", "ts": "timestamp", "flag": "boolean"}


def values(**partition_values: str | None) -> dict[str, str | None]:
    return {**{name: None for name in TYPES}, **partition_values}


@pytest.fixture
def builder() -> TableBuilder:
    builder = TableBuilder(MemoryStore())
    head = (
        builder.protocol(features=["deletionVectors"]),
        builder.metadata(("id", "long"), *TYPES.items(), partition_by=[*TYPES]),
    )
    files = [
        add("0", stats=stats(10, 0, 9), partitionValues=values(p="3", d="1970-01-11", s="a", price="1.5")),
        add("1", stats=stats(10, 0, 9), deletionVector=vector(), partitionValues=values(p="-7", d="1969-12-31", s="ä")),
        add("2", stats=stats(10, 0, 9), partitionValues=values(p="03", d="1970-01-11", s="")),
    ]
    builder.commit(*head, *files)
    builder.commit(add("3", stats=stats(5, 0, 9), partitionValues=values(d="1970-01-11", s="a")))
    return builder


def scan(builder: TableBuilder, condition: str | None = None, **options: Any) -> Scan:
    snapshot = Snapshot.load(builder.store)
    predicate = None if condition is None else parse_predicate(condition, snapshot.schema)
    return plan_scan(snapshot, None, predicate, ScanOptions(**options))


def numbers(planned: Scan) -> dict[str, dict[str, int]]:
    columns = {column.logical.name: column for column in planned.state.columns if column.logical.name != "id"}
    return partition_numbers(planned.files, columns, "UTC")


def test_numbers_are_of_values_and_not_of_their_spelling(builder: TableBuilder) -> None:
    assert numbers(scan(builder)) == {
        "p": {"distinct": 2, "min": -7, "max": 3},
        "d": {"distinct": 2, "nulls": 0, "min": -1, "max": 10},
        "s": {"distinct": 2},
    }


def test_numbers_are_of_the_files_that_are_kept(builder: TableBuilder) -> None:
    kept_numbers = numbers(scan(builder, "p > 0"))
    assert kept_numbers["p"] == {"distinct": 1, "nulls": 0, "min": 3, "max": 3}
    assert kept_numbers["d"] == {"distinct": 1, "nulls": 0, "min": 10, "max": 10}


def test_no_files_have_no_values(builder: TableBuilder) -> None:
    assert numbers(scan(builder, "p > 100"))["p"] == {"distinct": 0, "nulls": 0}


def test_rows_are_counted_where_that_is_asked_for(builder: TableBuilder) -> None:
    assert scan(builder).report.rows_kept is None
    assert scan(builder, count_rows=True).report.rows_kept == 29
    assert scan(builder, "p = 3", count_rows=True).report.rows_kept == 20
    assert scan(builder, "p > 100", count_rows=True).report.rows_kept == 0


def test_rows_are_unknown_where_one_file_does_not_say(builder: TableBuilder) -> None:
    builder.commit(add("4", partitionValues=values(p="8")))
    assert scan(builder, count_rows=True).report.rows_kept is None
    assert scan(builder, "p < 8", count_rows=True).report.rows_kept == 24
