"""A reading with a budget: what is over it is not begun, and of the first rows only what was decoded counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from delta_py.expressions.tree import Column, Comparison, Literal
from delta_py.parquet.decode_budget import DecodeBudget, OverBudgetError
from delta_py.parquet.reader import read_files
from delta_py.protocol.deletion_vectors import inline_descriptor
from delta_py.protocol.schema import LONG, STRING
from delta_py.scan.scan_state import ScanFile, ScanState
from tests.support.data_files import column, scan_state, write_file

GROUP_ROWS, GROUPS = 1000, 4
PLENTY = {"rows": 10**9, "leaf_bytes": 10**9, "vector_bytes": 10**9}


@pytest.fixture
def file(tmp_path: Path) -> ScanFile:
    rows = {"x": np.arange(GROUP_ROWS * GROUPS), "s": ["some text"] * (GROUP_ROWS * GROUPS)}
    return write_file(tmp_path, "a.parquet", rows, row_group_size=GROUP_ROWS)


def state(root: Path, first: int = 0) -> ScanState:
    predicate = Comparison(">=", Column(("x",)), Literal(first, LONG))
    return scan_state(root, [column("x", LONG)], predicate=predicate, batch_rows=100)


def row_count(root: Path, file: ScanFile, budget: DecodeBudget, first: int = 0) -> int:
    return sum(batch.num_rows for batch in read_files(state(root, first), [file], budget=budget))


def test_rows_of_groups_that_are_read_count(tmp_path: Path, file: ScanFile) -> None:
    last = GROUP_ROWS * (GROUPS - 1)
    assert row_count(tmp_path, file, DecodeBudget(**{**PLENTY, "rows": GROUP_ROWS}), last) == GROUP_ROWS
    with pytest.raises(OverBudgetError):
        row_count(tmp_path, file, DecodeBudget(**{**PLENTY, "rows": GROUP_ROWS}), last - 1)


def test_columns_that_are_read_count(tmp_path: Path, file: ScanFile) -> None:
    budget = DecodeBudget(**{**PLENTY, "leaf_bytes": 40_000})
    assert row_count(tmp_path, file, budget) == GROUP_ROWS * GROUPS
    with pytest.raises(OverBudgetError):
        next(read_files(scan_state(tmp_path, [column("x", LONG), column("s", STRING)]), [file], budget=budget))


def test_nothing_is_decoded_that_is_over_the_budget(tmp_path: Path, file: ScanFile) -> None:
    before = pa.total_allocated_bytes()
    with pytest.raises(OverBudgetError):
        next(read_files(state(tmp_path), [file], budget=DecodeBudget(**{**PLENTY, "rows": GROUP_ROWS})))
    assert pa.total_allocated_bytes() == before


def test_what_files_take_adds_up(tmp_path: Path, file: ScanFile) -> None:
    whole = GROUP_ROWS * GROUPS
    batches = read_files(state(tmp_path), [file, file], budget=DecodeBudget(**{**PLENTY, "rows": 2 * whole - 1}))
    with pytest.raises(OverBudgetError):
        list(batches)
    twice = read_files(state(tmp_path), [file, file], budget=DecodeBudget(**{**PLENTY, "rows": 2 * whole}))
    assert sum(batch.num_rows for batch in twice) == 2 * whole


def test_vectors_count_before_they_are_read(tmp_path: Path, file: ScanFile) -> None:
    vector = inline_descriptor(BitMap64(range(0, 100, 3)))
    with_vector = ScanFile(file.path, file.size_bytes, file.modification_time_ms, deletion_vector=vector)
    enough = DecodeBudget(**{**PLENTY, "vector_bytes": vector.size_in_bytes})
    assert row_count(tmp_path, with_vector, enough) == GROUP_ROWS * GROUPS - 34
    with pytest.raises(OverBudgetError):
        row_count(tmp_path, with_vector, DecodeBudget(**{**PLENTY, "vector_bytes": vector.size_in_bytes - 1}))


def test_reader_that_stops_early_pays_for_what_was_decoded(tmp_path: Path, file: ScanFile) -> None:
    budget = DecodeBudget(rows=250, leaf_bytes=0, vector_bytes=0, stops_early=True)
    batches = read_files(scan_state(tmp_path, [column("x", LONG)], batch_rows=100), [file], budget=budget)
    assert [next(batches).num_rows for _ in range(2)] == [100, 100]
    with pytest.raises(OverBudgetError):
        next(batches)
