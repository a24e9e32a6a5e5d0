"""A scan for a limit: only files that certainly have the rows, and only the part of the log that is needed to find them."""

from __future__ import annotations

from typing import Any

import pytest

from delta_py.expressions.parse import parse_predicate
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, stats, vector


@pytest.fixture
def builder() -> TableBuilder:
    """Ten files of ten rows, one of which has lost six, and one without statistics."""
    builder = TableBuilder(MemoryStore())
    columns = (("id", "long"), ("p", "integer"))
    files = [add(f"{n}", stats=stats(10, n, n), partitionValues={"p": str(n % 2)}) for n in range(2, 10)]
    odd = [
        add("0", partitionValues={"p": "0"}),
        add("1", stats=stats(10, 1, 1), deletionVector=vector(), partitionValues={"p": "1"}),
    ]
    head = (builder.protocol(features=["deletionVectors"]), builder.metadata(*columns, partition_by=["p"]))
    builder.commit(*head, *odd, *files)
    return builder


def planned(builder: TableBuilder, limit: int | None, condition: str | None = None, **options: Any) -> list[str]:
    snapshot = Snapshot.load(builder.store)
    predicate = None if condition is None else parse_predicate(condition, snapshot.schema)
    return plan_scan(snapshot, None, predicate, ScanOptions(limit=limit, **options)).paths()


@pytest.mark.parametrize(
    ("limit", "files"), [(1, 2), (4, 2), (5, 3), (14, 3), (15, 4), (84, 10), (85, 10), (1000, 10), (None, 10)]
)
def test_limit_keeps_only_files_that_surely_have_the_rows(limit: int, files: int, builder: TableBuilder) -> None:
    assert planned(builder, limit) == [str(n) for n in range(files)]


def test_filter_on_partitions_chooses_before_rows_are_counted(builder: TableBuilder) -> None:
    assert planned(builder, 11, "p = 1") == ["1", "3"]
    assert planned(builder, 15, "p = 1") == ["1", "3", "5"]


@pytest.mark.parametrize(
    ("condition", "options"), [("id >= 0", {}), ("id >= 0", {"drop_rows": True}), (None, {"ignore_missing_files": True})]
)
def test_limit_has_no_effect_if_rows_may_be_fewer_than_in_log(
    condition: str | None, options: dict[str, bool], builder: TableBuilder
) -> None:
    assert len(planned(builder, 1, condition, **options)) == 10


def test_scan_for_a_limit_leaves_the_rest_of_the_log_unread(builder: TableBuilder) -> None:
    builder.checkpoint()
    builder.commit(add("new", stats=stats(10, 1, 1), partitionValues={"p": "1"}))
    snapshot = Snapshot.load(builder.store)
    reads = len(builder.store.calls)  # type: ignore[attr-defined]
    scan = plan_scan(snapshot, None, None, ScanOptions(limit=10))
    assert scan.paths() == ["new"]
    assert str(scan.report) == "1 of 1 files, 100 of 100 bytes"
    assert not any("checkpoint" in path for _, path in builder.store.calls[reads:])  # type: ignore[attr-defined]


def test_scan_for_a_limit_holds_its_files_alone(builder: TableBuilder) -> None:
    builder.commit(*(add(f"many{n}", stats=stats(10, n, n), partitionValues={"p": "1"}) for n in range(5000)))
    builder.checkpoint()
    plan = plan_scan(Snapshot.load(builder.store), None, None, ScanOptions(limit=1))
    assert 0 < plan.files.num_rows < 10
    assert plan.files.get_total_buffer_size() < 10_000
