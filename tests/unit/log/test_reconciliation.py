"""Batches of files combined for readers that work on each for a long time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from delta_py.log import reconciliation
from delta_py.log.reconciliation import FileBatch, gather_batches
from delta_py.statistics.stats import FileStats, parse_stats
from delta_py.types.schema import LONG

COLUMNS = ["path", "size"]


def batch(first: int, count: int, stats: bool | None = True) -> FileBatch:
    """Files named by number. stats: false for files without known statistics, None if none were requested."""
    numbers = range(first, first + count)
    kinds = pa.schema([("path", pa.string()), ("size", pa.int64()), ("path_text", pa.string())])
    files = pa.record_batch([[f"{n}" for n in numbers], [*numbers], ["..."] * count], schema=kinds)
    if stats is None:
        return FileBatch(files, None)
    texts = [f'{{"numRecords":{n},"minValues":{{"id":{n}}},"maxValues":{{"id":{n}}},"nullCount":{{"id":0}}}}' for n in numbers]
    return FileBatch(files, parse_stats(pa.array(texts if stats else [None] * count, pa.string()), {("id",): LONG}))


def batches(sizes: list[int], stats: list[bool | None]) -> Iterator[FileBatch]:
    first = 0
    for size, is_known in zip(sizes, stats, strict=True):
        yield batch(first, size, is_known)
        first += size


def test_gathered_batches_grow_to_a_bound_with_the_same_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation, "_MOST_GATHERED_ROWS", 50)
    gathered_batches = list(gather_batches(batches([10] * 20 + [3], [True] * 21), COLUMNS))
    assert [part.files.num_rows for part in gathered_batches] == [10, 10, 20, 40, 50, 50, 23]
    assert [name for part in gathered_batches for name in part.files["path"].to_pylist()] == [f"{n}" for n in range(203)]
    assert {tuple(part.files.schema.names) for part in gathered_batches} == {("path", "size")}
    for part in gathered_batches:
        stats = known(part)
        assert stats.file_count == part.files.num_rows
        for column in (stats.num_records, stats.minimum[("id",)], stats.maximum[("id",)]):
            assert column.to_pylist() == part.files["size"].to_pylist()


def test_gathered_files_without_statistics_stay_unknown() -> None:
    *_, last = gather_batches(batches([2, 2, 1, 1, 2], [True, True, True, None, False]), COLUMNS)
    stats = known(last)
    assert last.files["path"].to_pylist() == ["4", "5", "6", "7"]
    assert stats.num_records.to_pylist() == [4, None, None, None]
    assert stats.minimum[("id",)].to_pylist() == [4, None, None, None]
    assert stats.tight_bounds.to_pylist() == [True] * 4


def test_gathered_batches_without_requested_statistics_have_none() -> None:
    assert [part.stats for part in gather_batches(batches([1, 1, 1, 1], [None] * 4), COLUMNS)] == [None] * 3


def test_gather_accepts_no_batches_and_batches_without_files() -> None:
    assert list(gather_batches(iter(()), COLUMNS)) == []
    assert sum(part.files.num_rows for part in gather_batches(batches([0, 2, 0, 1], [True] * 4), COLUMNS)) == 3


def known(part: FileBatch) -> FileStats:
    assert part.stats is not None
    return part.stats
