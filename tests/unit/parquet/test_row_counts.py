"""Row counts from footers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.parquet.row_counts import read_first_group_row_count, read_row_count
from delta_py.storage.local import LocalStore

MOST = 1 << 20


@pytest.mark.parametrize(("rows", "group", "first"), [(10, 4, 4), (10, 10, 10), (3, 4, 3), (0, 4, None)])
def test_rows_of_a_file_and_of_its_first_group(rows: int, group: int, first: int | None, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array(range(rows), pa.int64())}), tmp_path / "a.parquet", row_group_size=group)
    size, store = (tmp_path / "a.parquet").stat().st_size, LocalStore(str(tmp_path))
    assert read_row_count(store, "a.parquet", size) == rows
    row_count = read_first_group_row_count(store, "a.parquet", size, most_bytes=MOST)
    assert (row_count or None) == first, "pyarrow writes an empty group for no rows"
    assert read_first_group_row_count(store, "a.parquet", size, most_bytes=10) is None


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1\x05\0\0\0PAR1", b"PAR1\xff\xff\x0f\0PAR1", b"x" * 100])
def test_file_that_is_no_parquet_is_an_error_or_unknown(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    store = LocalStore(str(tmp_path))
    if data.startswith(b"x"):
        row_count = read_first_group_row_count(store, "a.parquet", len(data), most_bytes=MOST)
        assert row_count is None, "its last bytes are a large length"
        return
    with pytest.raises((OSError, pa.ArrowException)):
        read_first_group_row_count(store, "a.parquet", len(data), most_bytes=MOST)
