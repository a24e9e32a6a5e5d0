"""The share of a scan's bytes that bounds of columns have excluded."""

from __future__ import annotations

import json

import pytest

from delta_py.expressions.parse import parse_predicate
from delta_py.scan.planning import plan_scan
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add


@pytest.fixture
def builder() -> TableBuilder:
    """Ten files of ten bytes in two partitions; the bounds of ids do not overlap, those of n are the same for all."""
    builder = TableBuilder(MemoryStore())
    head = (builder.protocol(), builder.metadata(("id", "long"), ("n", "long"), ("p", "integer"), partition_by=["p"]))

    def bounds(number: int) -> str:
        return json.dumps({"numRecords": 10, "minValues": {"id": number, "n": 0}, "maxValues": {"id": number, "n": 9}})

    builder.commit(*head, *(add(f"{n}", size=10, stats=bounds(n), partitionValues={"p": str(n % 2)}) for n in range(10)))
    return builder


SHARES = {
    None: 0.0,
    "id >= 0": 0.0,
    "id = 3": 0.9,
    "id < 4": 0.6,
    "n = 5": 0.0,
    "p = 1": 0.0,
    "p = 7": 0.0,
    "p = 1 and n = 5": 0.0,
    "p = 1 and id = 3": 0.8,
    "p = 1 or id = 4": 0.4,
    "id = 77": 1.0,
}


@pytest.mark.parametrize("condition", SHARES)
def test_partition_values_rule_nothing_out_by_bounds(condition: str | None, builder: TableBuilder) -> None:
    snapshot = Snapshot.load(builder.store)
    predicate = None if condition is None else parse_predicate(condition, snapshot.schema)
    assert plan_scan(snapshot, None, predicate).ruled_out == pytest.approx(SHARES[condition])
