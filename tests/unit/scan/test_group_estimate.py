"""Whether the log shows that consecutive rows likely have few values of integer columns."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from delta_py.errors import SchemaMismatchError
from delta_py.expressions.parse import parse_predicate
from delta_py.scan.group_estimate import has_few_groups
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add, stats

COLUMNS = (("id", "long"), ("number", "integer"), ("small", "short"), ("name", "string"), ("part", "integer"))


def table(adds: Sequence[Json]) -> Snapshot:
    builder = TableBuilder(MemoryStore())
    builder.commit(builder.protocol(), builder.metadata(*COLUMNS, partition_by=["part"]), *adds)
    return Snapshot.load(builder.store)


def of_ranges(*ranges: tuple[int, int, int], column: str = "id") -> Snapshot:
    """One file for each range: its number of rows, and its smallest and largest value."""
    return table([add(f"{place}.parquet", stats=stats(*file, column=column)) for place, file in enumerate(ranges)])


def in_a_row(files: int, values: int, rows: int) -> list[tuple[int, int, int]]:
    return [(rows, place * values, (place + 1) * values - 1) for place in range(files)]


def test_few_values_of_all_files_together_are_few_groups() -> None:
    assert has_few_groups(of_ranges((10**6, 1, 16_384), (10**6, 5, 90)), ["id"])
    assert not has_few_groups(of_ranges((10**6, 1, 16_385), (10**6, 5, 90)), ["id"])
    assert not has_few_groups(of_ranges((10, -(2**63), 2**63 - 1)), ["id"])


def test_consecutive_ranges_of_large_files_mean_few_groups() -> None:
    assert has_few_groups(of_ranges(*in_a_row(4, 100_000, 200_000)), ["id"])
    assert not has_few_groups(of_ranges(*in_a_row(3, 100_000, 200_000)), ["id"]), "so few may do so by chance"
    assert not has_few_groups(of_ranges(*in_a_row(4, 100_000, 199_999)), ["id"])
    assert not has_few_groups(of_ranges(*[(200_000, place, 100_000 + place) for place in range(4)]), ["id"])


def test_group_count_of_two_columns_is_the_product_of_values() -> None:
    def both(rows: int, ids: tuple[int, int], numbers: tuple[int, int]) -> str:
        low, high = (f'{{"id": {ids[end]}, "number": {numbers[end]}}}' for end in (0, 1))
        return f'{{"numRecords": {rows}, "minValues": {low}, "maxValues": {high}}}'

    def found(*files: tuple[int, tuple[int, int], tuple[int, int]]) -> bool:
        adds = [add(f"{place}.parquet", stats=both(*file)) for place, file in enumerate(files)]
        return has_few_groups(table(adds), ["id", "number", "name"])

    assert found((10**6, (1, 128), (1, 128)))
    assert not found((10**6, (1, 129), (1, 128)))
    rising = [(place * 100_000, place * 100_000 + 99_999) for place in range(4)]
    assert found(*((2_000_000, ids, (1, 10)) for ids in rising))
    assert not found(*((1_999_999, ids, (1, 10)) for ids in rising))
    assert not found(*((10**7, ids, ids) for ids in rising)), "where one rises the other may, or may not"


def test_only_files_that_are_read_count() -> None:
    snapshot = of_ranges((10**6, 1, 100), (10**6, 1_000_000, 9_000_000))
    assert not has_few_groups(snapshot, ["id"])
    assert has_few_groups(snapshot, ["id"], parse_predicate("id < 1000", snapshot.schema))
    assert has_few_groups(snapshot, ["id"], parse_predicate("id < 0", snapshot.schema)), "no file is read"
    assert has_few_groups(table([]), ["id"])


@pytest.mark.parametrize(
    "stats_text", [None, "{}", '{"numRecords": 5}', '{"minValues": {"id": 1}, "maxValues": {"id": 2}}', "no JSON"]
)
def test_files_that_do_not_say_enough_do_not_count(stats_text: str | None) -> None:
    silent = add("0.parquet", **({} if stats_text is None else {"stats": stats_text}))
    assert has_few_groups(table([silent]), ["id"])
    assert has_few_groups(table([silent, add("1.parquet", stats=stats(100, 1, 2))]), ["id"])
    assert not has_few_groups(table([silent, add("1.parquet", stats=stats(100, 1, 10**9))]), ["id"])


def test_ends_in_the_wrong_order_are_no_error() -> None:
    assert not has_few_groups(of_ranges((5, 10**6, 0), (5, 0, 10**6), (5, 10**6 + 1, -1), (5, 7, 7)), ["id"])
    assert has_few_groups(of_ranges((5, 10**6, 0)), ["id"])


def test_many_files_are_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.scan.group_estimate._MOST_FILES", 2)
    assert has_few_groups(of_ranges((5, 1, 2), (5, 1, 2)), ["id"])
    three = of_ranges((5, 1, 2), (5, 1, 2), (5, 1, 2))
    assert not has_few_groups(three, ["id"])
    assert has_few_groups(three, []) and has_few_groups(three, ["name", "part"])


@pytest.mark.parametrize("by", [[], ["small"], ["name"], ["part"], ["name", "part"]])
def test_group_estimate_ignores_other_types_and_partitions(by: list[str]) -> None:
    assert has_few_groups(of_ranges((5, 1, 10**9)), by)


def test_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SchemaMismatchError, match="nothing"):
        has_few_groups(of_ranges((5, 1, 2)), ["nothing"])
