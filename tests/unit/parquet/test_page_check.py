"""Pages of a data file, all read and compared with their checksums: the faults that are found, and the memory for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.parquet.page_check import find_page_fault
from tests.support.tables.data_files import write_file
from tests.support.tables.flipped_bits import chunk_places, flipped


def fault_of(file: Path) -> str | None:
    with pa.OSFile(str(file)) as source:
        return find_page_fault(source, file.stat().st_size)


@pytest.mark.parametrize("group", [0, 2])
def test_fault_of_any_row_group_is_found(tmp_path: Path, group: int) -> None:
    write_file(tmp_path, "a.parquet", {"x": np.arange(300)}, row_group_size=100, write_page_checksum=True)
    file = tmp_path / "a.parquet"
    assert fault_of(file) is None
    places = chunk_places(file)
    with flipped(file, places[len(places) * group // 3 + 40]):
        assert "CRC" in str(fault_of(file))


def test_page_without_a_checksum_only_has_to_be_decodable(tmp_path: Path) -> None:
    write_file(tmp_path, "a.parquet", {"x": [2**40]}, write_page_checksum=False, compression="none", use_dictionary=False)
    file = tmp_path / "a.parquet"
    with flipped(file, file.read_bytes().index((2**40).to_bytes(8, "little"))):
        assert fault_of(file) is None
    with flipped(file, chunk_places(file)[0]):
        assert fault_of(file) is not None


def test_file_that_is_none_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"x" * 100)
    assert "Parquet magic bytes" in str(fault_of(tmp_path / "a.parquet"))


def test_many_rows_of_one_long_text_are_read_in_little_memory(tmp_path: Path) -> None:
    size, count = 200_000, 2_000
    column = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * size]))
    write_file(tmp_path, "a.parquet", pa.table({"s": column}), store_schema=False)
    file, allocated_bytes, finished = tmp_path / "a.parquet", [], []

    def note(rows: int, total: int) -> None:
        allocated_bytes.append(pa.total_allocated_bytes())
        finished.append((rows, total))

    before = pa.total_allocated_bytes()
    with pa.OSFile(str(file)) as source:
        assert find_page_fault(source, file.stat().st_size, note) is None
    assert max(allocated_bytes) - before < 40 << 20 < size * count
    assert finished[-1] == (count, count) and finished == sorted(finished)
    assert pq.read_metadata(file).num_rows == count
