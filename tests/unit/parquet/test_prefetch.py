"""Remote files: which ranges the reader announces before it reads them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
import pytest

from delta_py.parquet import file_reader
from delta_py.storage.arrow_files import ByteRange, PrefetchingFile
from delta_py.types.schema import LONG
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.data_files import column, read_table, scan_state, write_file

GROUPS, GROUP_ROWS = 10, 1000


class Announced(io.BytesIO):
    """A Prefetcher that only records announcements."""

    def __init__(self, data: bytes, told_ranges: list[list[ByteRange]]) -> None:
        super().__init__(data)
        self._told = told_ranges

    def expect(self, ranges: Sequence[ByteRange]) -> None:
        self._told.append(list(ranges))


@dataclass
class FarStore(MemoryStore):
    """told: the ranges of each call of `expect`."""

    told: list[list[ByteRange]] = field(default_factory=list)

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        return PrefetchingFile.over(Announced(self._data(path), self.told))


def told(tmp_path_factory: pytest.TempPathFactory) -> list[list[ByteRange]]:
    """Of a scan of one of two columns, with 8,000 bytes in each row group."""
    directory = tmp_path_factory.mktemp("far")
    numbers = list(range(GROUPS * GROUP_ROWS))
    rows = {"n": numbers, "m": numbers}
    options = {"row_group_size": GROUP_ROWS, "use_dictionary": False, "compression": "none", "column_encoding": "PLAIN"}
    file = write_file(directory, "a.parquet", rows, **options)
    store = FarStore(objects={"a.parquet": ((directory / "a.parquet").read_bytes(), 0)})
    assert read_table(scan_state(directory, [column("n", LONG)], store=store), file)["n"].to_pylist() == numbers
    return store.told


@pytest.mark.parametrize(("ahead_bytes", "window", "calls"), [(100_000, 10, 1), (30_000, 4, 4), (10_000, 2, 9), (100, 1, 10)])
def test_reader_prefetches_as_many_row_groups_as_it_may_hold(
    ahead_bytes: int, window: int, calls: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "_AHEAD_BYTES", ahead_bytes)
    announced = told(tmp_path_factory)
    assert (max(len(ranges) for ranges in announced), len(announced)) == (window, calls)
    assert len({offset for ranges in announced for offset, _ in ranges}) == GROUPS
    assert all(earlier[0] < later[0] for earlier, later in pairwise(announced))


def test_a_column_of_few_bytes_is_announced_whole(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert [len(ranges) for ranges in told(tmp_path_factory)] == [GROUPS]
