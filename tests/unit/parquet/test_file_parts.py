"""A file that several tasks read: each row is in exactly one of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py import DeltaTable
from delta_py.expressions.parse import parse_predicate
from delta_py.parquet.file_reader import read_files
from delta_py.scan.planning import Scan, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.tables.small_table import WITH_VECTORS, make_table

ROWS = 1_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One file of 17 row groups, without the rows 100 to 130 and 650."""
    rows = pa.table({"id": range(ROWS), "text": [f"{i * 7919 % 1000}" * (i % 5) for i in range(ROWS)]})
    directory = tmp_path_factory.mktemp("parts") / "t"
    path = make_table(directory, [rows], row_group_size=60, **WITH_VECTORS)
    DeltaTable(path).delete("id between 100 and 130 or id = 650")
    assert len(list(Path(path).glob("*.parquet"))) == 1
    return path


def ids(scan: Scan, cuts: Sequence[int]) -> list[int]:
    """The ids of the parts that begin at these bytes."""
    (file,) = scan.scan_files()
    read_ids: list[int] = []
    for start, stop in pairwise([0, *sorted(cuts), file.size_bytes]):
        for batch in read_files(scan.state, [replace(file, part=(start, stop - start))]):
            read_ids += batch["id"].to_pylist()
    return read_ids


@given(st.lists(st.integers(0, 20_000), max_size=6))
def test_each_row_is_in_one_part(table: str, cuts: list[int]) -> None:
    scan = plan_scan(Snapshot.load(LocalStore(table)))
    (file,) = scan.scan_files()
    cuts = [min(cut, file.size_bytes) for cut in cuts]
    assert ids(scan, cuts) == [i for i in range(ROWS) if not 100 <= i <= 130 and i != 650]
    narrow = parse_predicate("id between 640 and 700", scan.output_schema)
    some = plan_scan(Snapshot.load(LocalStore(table)), ["id"], narrow)
    assert set(ids(some, cuts)) >= set(range(640, 701)) - {650}
    assert len(ids(some, cuts)) <= 180


def test_parts_have_about_as_many_rows_as_bytes(table: str) -> None:
    scan = plan_scan(Snapshot.load(LocalStore(table)))
    (file,) = scan.scan_files()
    half = file.size_bytes // 2
    first = [i for batch in read_files(scan.state, [replace(file, part=(0, half))]) for i in batch["id"].to_pylist()]
    assert 300 < len(first) < 700 and first == sorted(first) and first[0] == 0


def test_last_part_has_what_is_behind_the_size_that_the_log_says(table: str) -> None:
    scan = plan_scan(Snapshot.load(LocalStore(table)))
    (file,) = scan.scan_files()
    stated_size = 500
    parts = [replace(file, size_bytes=stated_size, part=part) for part in ((0, 250), (250, 250))]
    read_ids = [i for part in parts for batch in read_files(scan.state, [part]) for i in batch["id"].to_pylist()]
    assert read_ids == [i for i in range(ROWS) if not 100 <= i <= 130 and i != 650]
