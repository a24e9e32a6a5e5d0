"""Contradictory footers: pyarrow ends the process if a chunk with statistics does not have its column's type."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import DataFileError
from delta_py.statistics.parquet_statistics import chunk_statistics

# Thrift: ColumnMetaData begins; its field 1, the type; then a list of encodings.
INT64, DOUBLE = bytes([0x1C, 0x15, 4, 0x19]), bytes([0x1C, 0x15, 10, 0x19])


def with_another_chunk_type(parquet: bytes) -> bytes:
    """A file of one int64 column whose chunk claims to have doubles."""
    length = int.from_bytes(parquet[-8:-4], "little")
    footer = parquet[-8 - length :]
    assert footer.count(INT64) == 1
    return parquet[: -8 - length] + footer.replace(INT64, DOUBLE)


def parquet_bytes() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(range(10), pa.int64())}), sink)
    return sink.getvalue()


def test_statistics_of_a_sound_chunk_are_those_of_pyarrow() -> None:
    footer = pq.read_metadata(io.BytesIO(parquet_bytes()))
    statistics = chunk_statistics(footer, 0, 0)
    assert statistics is not None and (statistics.min, statistics.max) == (0, 9)


def test_statistics_of_a_chunk_of_another_type_are_refused() -> None:
    footer = pq.read_metadata(io.BytesIO(with_another_chunk_type(parquet_bytes())))
    with pytest.raises(pa.ArrowInvalid, match="INT64 column 0 in row group 0 says it is of DOUBLE"):
        chunk_statistics(footer, 0, 0)


@pytest.mark.parametrize("filter", ["id > 3", None])
def test_data_file_with_such_a_footer_is_an_error_that_names_it(tmp_path: Path, filter: str | None) -> None:
    write_delta(str(tmp_path), pa.table({"id": range(10)}), mode="append")
    (file,) = tmp_path.glob("*.parquet")
    file.write_bytes(with_another_chunk_type(file.read_bytes()))
    # In a separate process, which may end here.
    code = f"from delta_py import DeltaTable; print(DeltaTable({str(tmp_path)!r}).to_arrow(filter={filter!r}).num_rows)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert process.returncode == 1 and f"DataFileError: [FAILED_READ_FILE.NO_HINT] Data file {file.name}" in process.stderr, (
        process
    )
    with pytest.raises(DataFileError):
        DeltaTable(str(tmp_path)).to_arrow(filter=filter)
