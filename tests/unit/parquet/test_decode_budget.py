"""A read with a budget: it starts no work beyond the budget, and only decoded data of the first rows counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from delta_py.expressions.tree import Column, Comparison, Literal
from delta_py.parquet import file_reader
from delta_py.parquet.decode_budget import DecodeBudget, Limits, OverBudgetError
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.deletion_vectors import inline_descriptor
from delta_py.scan.scan_state import ScanFile, ScanState
from delta_py.types.schema import LONG, STRING, ArrayType
from tests.support.tables.data_files import column, scan_state, write_file

GROUP_ROWS, GROUPS = 1000, 4
PLENTY = Limits(*[10**9] * 5)


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
    assert row_count(tmp_path, file, DecodeBudget(replace(PLENTY, rows=GROUP_ROWS)), last) == GROUP_ROWS
    with pytest.raises(OverBudgetError):
        row_count(tmp_path, file, DecodeBudget(replace(PLENTY, rows=GROUP_ROWS)), last - 1)


def test_columns_that_are_read_count(tmp_path: Path, file: ScanFile) -> None:
    budget = DecodeBudget(replace(PLENTY, encoded_bytes=40_000))
    assert row_count(tmp_path, file, budget) == GROUP_ROWS * GROUPS
    with pytest.raises(OverBudgetError):
        next(read_files(scan_state(tmp_path, [column("x", LONG), column("s", STRING)]), [file], budget=budget))


@pytest.mark.parametrize("limit", ["rows", "values", "encoded_bytes"])
def test_nothing_is_decoded_that_is_over_the_budget(
    limit: str, tmp_path: Path, file: ScanFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = []
    decode = file_reader.ScanReader._decode
    monkeypatch.setattr(file_reader.ScanReader, "_decode", lambda *args: decoded.append(1) or decode(*args))
    assert row_count(tmp_path, file, DecodeBudget(PLENTY)) == GROUP_ROWS * GROUPS
    assert decoded, "what the test watches is what decodes"
    decoded.clear()
    with pytest.raises(OverBudgetError):
        row_count(tmp_path, file, DecodeBudget(replace(PLENTY, **{limit: GROUP_ROWS})))
    assert decoded == []


def test_elements_of_lists_are_values(tmp_path: Path) -> None:
    file = write_file(tmp_path, "l.parquet", pa.table({"l": pa.array([[0] * 1000] * 10, pa.list_(pa.int64()))}))
    wanted_state = scan_state(tmp_path, [column("l", ArrayType(LONG))])
    with pytest.raises(OverBudgetError, match="10,000 values"):
        next(read_files(wanted_state, [file], budget=DecodeBudget(replace(PLENTY, values=9_999))))


@pytest.mark.parametrize("stops_early", [False, True])
def test_bytes_count_when_they_have_been_decoded(stops_early: bool, tmp_path: Path) -> None:
    """A dictionary makes few bytes of them in the file."""
    file = write_file(tmp_path, "d.parquet", {"s": ["x" * 10_000] * 1000})
    budget = DecodeBudget(replace(PLENTY, decoded_bytes=1_000_000, encoded_bytes=100_000), stops_early=stops_early)
    batches = read_files(scan_state(tmp_path, [column("s", STRING)], batch_rows=80), [file], budget=budget)
    next(batches)
    with pytest.raises(OverBudgetError, match="decoded bytes"):
        next(batches)


def test_what_files_take_adds_up(tmp_path: Path, file: ScanFile) -> None:
    row_total = GROUP_ROWS * GROUPS
    batches = read_files(state(tmp_path), [file, file], budget=DecodeBudget(replace(PLENTY, rows=2 * row_total - 1)))
    with pytest.raises(OverBudgetError):
        list(batches)
    twice = read_files(state(tmp_path), [file, file], budget=DecodeBudget(replace(PLENTY, rows=2 * row_total)))
    assert sum(batch.num_rows for batch in twice) == 2 * row_total


def test_vectors_count_before_they_are_read(tmp_path: Path, file: ScanFile) -> None:
    vector = inline_descriptor(BitMap64(range(0, 100, 3)))
    with_vector = ScanFile(file.path, file.size_bytes, file.modification_time_ms, deletion_vector=vector)
    enough = DecodeBudget(replace(PLENTY, vector_bytes=vector.size_in_bytes))
    assert row_count(tmp_path, with_vector, enough) == GROUP_ROWS * GROUPS - 34
    with pytest.raises(OverBudgetError):
        row_count(tmp_path, with_vector, DecodeBudget(replace(PLENTY, vector_bytes=vector.size_in_bytes - 1)))


def test_reader_that_stops_early_pays_for_what_was_decoded(tmp_path: Path, file: ScanFile) -> None:
    budget = DecodeBudget(replace(PLENTY, rows=250, values=0, encoded_bytes=0), stops_early=True)
    batches = read_files(scan_state(tmp_path, [column("x", LONG)], batch_rows=100), [file], budget=budget)
    assert [next(batches).num_rows for _ in range(2)] == [100, 100]
    with pytest.raises(OverBudgetError):
        next(batches)
