"""Footers of data files from the cache directory: fetched once, the same rows, and the same errors as without it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.errors import DataFileError
from delta_py.expressions.parse import parse_predicate
from delta_py.parquet.file_reader import read_files
from delta_py.scan.scan_state import ScanFile, ScanState
from delta_py.storage.cache import cached_objects
from delta_py.types.schema import LONG, STRING, StructField, StructType
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.data_files import column, scan_state

COLUMNS = (column("n", LONG), column("s", StructType((StructField("t", STRING),))))
TIME_MS = 1_700_000_000_123


class RangedStore(MemoryStore):
    """Opened files are read by ranges, like remote ones. asked: the ranges of each file since it was cleared."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, int]] = []

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self.asked.append((offset, length))
        return super().read_range(path, offset, length)

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        return pa.PythonFile(_Ranges(self, path, len(self._data(path))), mode="r")


class _Ranges(io.RawIOBase):
    def __init__(self, store: RangedStore, path: str, size: int) -> None:
        super().__init__()
        self.store, self.path, self.size, self.position = store, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset + (0, self.position, self.size)[whence]
        return self.position

    def read(self, size: int | None = -1) -> bytes:
        data = self.store.read_range(self.path, self.position, self.size if size is None or size < 0 else size)
        self.position += len(data)
        return data


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def store() -> RangedStore:
    return RangedStore()


def put(store: RangedStore, first: int = 0, time_ms: int = TIME_MS) -> ScanFile:
    """A file of three row groups with 1000 rows each, of the same size for all numbers."""
    numbers = range(first, first + 3000)
    rows = pa.table({"n": pa.array(numbers, pa.int64()), "s": [{"t": f"{number:09d}"} for number in numbers]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=1000, use_dictionary=False, compression="none", column_encoding="PLAIN")
    store.put("a.parquet", sink.getvalue().to_pybytes())
    return ScanFile("a.parquet", len(store.objects["a.parquet"][0]), time_ms)


def read(store: RangedStore, file: ScanFile, predicate: str | None = None, table_id: str = "one") -> list[Any]:
    schema = StructType(tuple(field.logical for field in COLUMNS))
    expression = None if predicate is None else parse_predicate(predicate, schema)
    state: ScanState = scan_state(Path(store.root), COLUMNS, store=store, predicate=expression, table_id=table_id)
    store.asked.clear()
    return [row["n"] for batch in read_files(state, [file]) for row in batch.to_pylist()]


@pytest.mark.parametrize("first_bytes", [64 * 1024, 50, 8])
def test_a_footer_is_fetched_once(store: RangedStore, cache: Path, monkeypatch: pytest.MonkeyPatch, first_bytes: int) -> None:
    monkeypatch.setattr(cached_objects, "_FOOTER_BYTES", first_bytes)
    file = put(store)
    assert read(store, file) == list(range(3000))
    assert [end for end in store.asked if sum(end) == file.size_bytes + 1] == store.asked[: 1 if first_bytes > 1000 else 2]
    assert len(list(cache.iterdir())) == 1
    assert read(store, file) == list(range(3000))
    assert store.asked and all(offset + length < file.size_bytes - 8 for offset, length in store.asked)


def test_a_cold_read_has_as_many_requests_as_one_without_a_cache(store: RangedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(store)
    with monkeypatch.context() as patch:
        patch.setenv("PYDELTA_CACHE_DIR", "")
        read(store, file)
        without = list(store.asked)
    read(store, file)
    assert len(store.asked) == len(without) and sum(size for _, size in store.asked) <= sum(size for _, size in without) + 1


def test_row_groups_are_chosen_by_a_kept_footer(store: RangedStore) -> None:
    file = put(store)
    expected = read(store, file, "n >= 2000")
    assert expected == list(range(2000, 3000))
    assert read(store, file, "n >= 2000") == expected
    assert sum(size for _, size in store.asked) < file.size_bytes // 2


def test_equal_file_of_another_table_has_its_own_footer(store: RangedStore) -> None:
    """A job that names its files part-00000.parquet and gives all of them one time, at the place of the earlier one."""
    assert read(store, put(store), "n >= 2000") == list(range(2000, 3000))
    assert read(store, put(store, 50_000), "n >= 52000", table_id="two") == list(range(52_000, 53_000))


def test_recreated_file_of_the_same_name_has_a_new_footer(store: RangedStore) -> None:
    old = put(store)
    assert read(store, old, "n >= 2000") == list(range(2000, 3000))
    new = put(store, 50_000, TIME_MS + 1)
    assert new.size_bytes == old.size_bytes
    assert read(store, new, "n >= 52000") == list(range(52_000, 53_000))


@pytest.mark.parametrize("time_ms", [0, 1, 2**62])
def test_a_file_without_a_time_that_tells_is_read_without(store: RangedStore, cache: Path, time_ms: int) -> None:
    assert read(store, put(store, time_ms=time_ms)) == list(range(3000))
    assert not list(cache.glob("*"))


@pytest.mark.parametrize("off_by", [-1000, -1, 1, 1000])
def test_file_of_another_size_than_in_the_log_is_read_uncached(store: RangedStore, cache: Path, off_by: int) -> None:
    file = put(store)
    wrong = ScanFile(file.path, file.size_bytes + off_by, file.modification_time_ms)
    assert read(store, wrong) == list(range(3000))
    assert not list(cache.glob("*"))


def damaged(data: bytes) -> dict[str, bytes]:
    length = int.from_bytes(data[-8:-4], "little")
    return {
        "magic": data[:-4] + b"PAR2",
        "length": data[:-8] + (1 << 30).to_bytes(4, "little") + data[-4:],
        "short length": data[:-8] + (3).to_bytes(4, "little") + data[-4:],
        "content": data[: -8 - length] + b"\xff" * length + data[-8:],
        "text": b"no Parquet file",
        "tiny": b"PAR1",
    }


@pytest.mark.parametrize("damage", damaged(b"\0" * 8))
def test_a_damaged_footer_is_the_same_error_as_without(
    store: RangedStore, cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    put(store)
    store.put("a.parquet", damaged(store.objects["a.parquet"][0])[damage])
    file = ScanFile("a.parquet", len(store.objects["a.parquet"][0]), TIME_MS)
    with pytest.raises(DataFileError) as expected_error:
        read(store, file)
    assert not list(cache.glob("*"))
    monkeypatch.setenv("PYDELTA_CACHE_DIR", "")
    with pytest.raises(DataFileError) as without:
        read(store, file)
    assert expected_error.value.message == without.value.message


def test_a_damaged_entry_is_fetched_again(store: RangedStore, cache: Path) -> None:
    file = put(store)
    read(store, file)
    (entry,) = cache.iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    assert read(store, file) == list(range(3000))
    assert sum(store.asked[0]) == file.size_bytes + 1


def test_a_missing_file_is_missed_though_its_footer_is_kept(store: RangedStore) -> None:
    file = put(store)
    read(store, file)
    store.delete("a.parquet")
    with pytest.raises(DataFileError, match="is missing"):
        read(store, file)
