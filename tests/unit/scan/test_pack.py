"""How a scan's files are divided among tasks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.log.reader import FILE_SCHEMA
from delta_py.scan.file_groups import FileGroup
from delta_py.scan.planning import Scan, ScanReport, plan_scan
from delta_py.scan.scan_state import ScanState
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.memory_store import MemoryStore
from tests.support.table_builder import TableBuilder, add, vector


def packed(sizes: list[int], wanted: int, limit: int = 10**9, cost: int = 0) -> list[list[int]]:
    told = {"path": [str(place) for place in range(len(sizes))], "size": sizes, "modification_time": [0] * len(sizes)}
    files = pa.table([told.get(f.name, [None] * len(sizes)) for f in FILE_SCHEMA], schema=FILE_SCHEMA)
    scan = Scan(ScanState(LocalStore("/t"), ()), files, ScanReport(0, 0, 0, 0))
    groups = scan.pack(max_group_bytes=limit, open_cost_bytes=cost, wanted_groups=wanted)
    return [[file.size_bytes for file in group.scan_files()] for group in groups]


@pytest.mark.parametrize(
    ("sizes", "wanted", "groups"),
    [
        ([], 4, []),
        ([5], 4, [[5]]),
        ([5] * 7, 4, [[5, 5], [5], [5, 5], [5, 5]]),
        ([5] * 16, 4, [[5] * 4] * 4),
        ([5] * 3, 4, [[5], [5], [5]]),
        ([100, 1, 1, 1], 2, [[100], [1, 1, 1]]),
        ([1, 1, 1, 100], 2, [[1, 1, 1], [100]]),
        ([0, 0], 4, [[0, 0]]),
    ],
)
def test_small_table_comes_in_as_many_groups_as_are_wanted(sizes: list[int], wanted: int, groups: list[list[int]]) -> None:
    assert packed(sizes, wanted) == groups


def test_group_is_bounded_and_a_larger_file_stands_alone() -> None:
    assert packed([30, 30, 30, 200, 30, 30], 1, limit=100) == [[30, 30, 30], [200], [30, 30]]
    assert packed([1] * 10, 1, limit=100, cost=24) == [[1] * 3, [1] * 4, [1] * 3]


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 20), st.integers(1, 3000), st.integers(0, 50))
def test_groups_hold_all_files_in_order_within_the_bound(sizes: list[int], wanted: int, limit: int, cost: int) -> None:
    groups = packed(sizes, wanted, limit, cost)
    assert [size for group in groups for size in group] == sizes
    assert all(len(group) == 1 or sum(group) + cost * len(group) <= limit for group in groups)
    if sum(sizes) + cost * len(sizes) <= limit:
        assert len(groups) <= wanted


def test_group_of_a_table_carries_its_files_as_they_are() -> None:
    builder = TableBuilder(MemoryStore())
    head = (builder.protocol(features=["deletionVectors"]), builder.metadata(("id", "long"), ("p", "string"), partition_by=["p"]))
    files = [add(f"f%20{n}", size=n, partitionValues={"p": "a" if n else None}, baseRowId=n) for n in range(5)]
    builder.commit(*head, *files, add("v", size=3, deletionVector=vector(), partitionValues={"p": "b"}))
    scan = plan_scan(Snapshot.load(builder.store))
    groups = scan.pack(max_group_bytes=10**9, open_cost_bytes=10, wanted_groups=3)
    assert len(groups) == 3 and all(isinstance(group, FileGroup) and group.table_ipc is not None for group in groups)
    assert [file for group in groups for file in group.scan_files()] == list(scan.scan_files())
