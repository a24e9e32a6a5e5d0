"""How a scan's files are divided among tasks."""

from __future__ import annotations

from itertools import accumulate

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.log.commit_reader import FILE_SCHEMA
from delta_py.scan.file_groups import FileGroup, scan_files
from delta_py.scan.packing import pack_files
from delta_py.scan.planning import Scan, ScanReport, plan_scan
from delta_py.scan.scan_state import ScanFile, ScanState
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, vector


def file_table(sizes: list[int]) -> pa.Table:
    columns = {"path": [str(place) for place in range(len(sizes))], "size": sizes, "modification_time": [0] * len(sizes)}
    return pa.table([columns.get(f.name, [None] * len(sizes)) for f in FILE_SCHEMA], schema=FILE_SCHEMA)


def packed(sizes: list[int], wanted_count: int, limit: int = 10**9, cost: int = 0) -> list[list[int]]:
    files = file_table(sizes)
    groups = [FileGroup.of(group) for group in pack_files(files, limit, cost, wanted_count)]
    return [[file.size_bytes for file in group.scan_files()] for group in groups]


@pytest.mark.parametrize(
    ("sizes", "wanted_count", "groups"),
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
def test_small_table_comes_in_as_many_groups_as_are_wanted(sizes: list[int], wanted_count: int, groups: list[list[int]]) -> None:
    assert packed(sizes, wanted_count) == groups


def test_group_is_bounded_and_a_larger_file_stands_alone() -> None:
    assert packed([30, 30, 30, 200, 30, 30], 1, limit=100) == [[30, 30, 30], [200], [30, 30]]
    assert packed([1] * 10, 1, limit=100, cost=24) == [[1] * 3, [1] * 4, [1] * 3]


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 20), st.integers(1, 3000), st.integers(0, 50))
def test_groups_hold_all_files_in_order_within_the_bound(sizes: list[int], wanted_count: int, limit: int, cost: int) -> None:
    groups = packed(sizes, wanted_count, limit, cost)
    assert [size for group in groups for size in group] == sizes
    assert all(len(group) == 1 or sum(group) + cost * len(group) <= limit for group in groups)
    if sum(sizes) + cost * len(sizes) <= limit:
        assert len(groups) <= wanted_count


def test_sizes_that_no_file_has_lose_none() -> None:
    sizes = [2**63 - 1, 5, 2**62, 2**63 - 10, 7]
    assert [size for group in packed(sizes, 3, limit=100, cost=2**62) for size in group] == sizes


def test_group_of_a_table_carries_its_files_as_they_are() -> None:
    builder = TableBuilder(MemoryStore())
    head = (builder.protocol(features=["deletionVectors"]), builder.metadata(("id", "long"), ("p", "string"), partition_by=["p"]))
    files = [add(f"f%20{n}", size=n, partitionValues={"p": "a" if n else None}, baseRowId=n) for n in range(5)]
    builder.commit(*head, *files, add("v", size=3, deletionVector=vector(), partitionValues={"p": "b"}))
    scan = plan_scan(Snapshot.load(builder.store))
    groups = scan.pack(max_group_bytes=10**9, open_cost_bytes=10, target_groups=3)
    assert len(groups) == 3 and all(isinstance(group, FileGroup) and group.table_ipc is not None for group in groups)
    assert [file for group in groups for file in group.scan_files()] == list(scan.scan_files())


# ---------------------------------------------------------------- parts of files


def parts(sizes: list[int], wanted_count: int, limit: int = 10**9, cost: int = 1, *, to_write: bool = False) -> list[ScanFile]:
    state = ScanState(LocalStore("/t"), (), to_write=to_write)
    scan = Scan(state, file_table(sizes), ScanReport(0, 0, 0, 0))
    return list(scan_files(scan.cut_files(limit, cost, wanted_count).combine_chunks().to_batches()[0])) if sizes else []


def test_file_of_more_bytes_than_two_tasks_is_cut() -> None:
    assert [file.part for file in parts([900], 4)] == [(0, 225), (225, 225), (450, 225), (675, 225)]
    thirds = [("0", None), ("1", (0, 233)), ("1", (233, 233)), ("1", (466, 234))]
    assert [(file.path, file.part) for file in parts([100, 700], 4)] == thirds
    assert [file.part for file in parts([300, 200, 300], 4)] == [None, None, None]
    assert [file.part for file in parts([1000], 1, limit=400)] == [(0, 333), (333, 333), (666, 334)]
    assert [file.part for file in parts([1000], 4, cost=600)] == [None]
    assert [file.part for file in parts([1000], 4, to_write=True)] == [None]


@given(
    st.lists(st.integers(0, 500), max_size=8) | st.lists(st.integers(0, 2**63 - 1), max_size=2),
    st.integers(1, 20),
    st.integers(1, 300),
    st.integers(0, 50),
)
def test_parts_of_a_file_are_all_of_it(sizes: list[int], wanted_count: int, limit: int, cost: int) -> None:
    file_parts = parts(sizes, wanted_count, limit, cost)
    by_file = [
        [(part.part or (0, part.size_bytes)) for part in file_parts if part.path == str(place)] for place in range(len(sizes))
    ]
    for size, ranges in zip(sizes, by_file, strict=True):
        starts = [start for start, _ in ranges]
        assert starts == [0, *accumulate(length for _, length in ranges)][:-1]
        assert sum(length for _, length in ranges) == size
        assert len(ranges) <= 1_000


def test_files_of_a_change_feed_and_of_dml_stay_whole() -> None:
    for column in ("number", "selection"):
        files = file_table([1000]).append_column(column, pa.nulls(1, pa.int64()))
        scan = Scan(ScanState(LocalStore("/t"), ()), files, ScanReport(0, 0, 0, 0))
        assert scan.cut_files(10**9, 1, 4).num_rows == 1
