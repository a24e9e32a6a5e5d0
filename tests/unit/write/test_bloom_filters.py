"""Bloom filters in the Parquet files of tables whose properties enable them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.errors import DeltaError, InvalidOptionError, UnsupportedOperationError
from delta_py.storage.local import LocalStore

ENABLED, VALUES, SHARE = (f"parquet.bloom.filter.{name}#" for name in ("enabled", "expected.ndv", "fpp"))
ROWS = pa.table({"id": range(50), "s": [{"key": f"k{number}"} for number in range(50)], "flag": [True] * 50})


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def filters(path: str) -> list[dict[str, int]]:
    """For each file: columns with a filter, and its bytes."""
    filters_by_file = []
    for name in DeltaTable(path).files()["path"].to_pylist():
        group = pq.read_metadata(f"{path}/{name}").row_group(0)
        columns = [group.column(number) for number in range(group.num_columns)]
        filters_by_file.append({c.path_in_schema: c.bloom_filter_length for c in columns if c.bloom_filter_offset is not None})
    return filters_by_file


def test_columns_that_the_properties_name_have_filters(path: str) -> None:
    properties = {f"{ENABLED}ID": "true", f"{ENABLED}s.key": "true", f"{VALUES}s.key": "100", f"{SHARE}s.key": "0.1"}
    write_delta(path, ROWS, configuration={**properties, f"{ENABLED}flag": "false", f"{ENABLED}gone": "true"})
    (file_filter,) = filters(path)
    assert file_filter.keys() == {"id", "s.key"}
    assert all(0 < size < 1000 for size in file_filter.values()), "small ones for few values"
    assert DeltaTable(path).to_arrow(filter="s.key = 'k7'")["id"].to_pylist() == [7]


def test_files_of_optimize_have_them_under_physical_names(path: str) -> None:
    for _ in range(2):
        write_delta(path, ROWS, mode="append", configuration={"delta.columnMapping.mode": "name"})
    set_properties(LocalStore(path), {f"{ENABLED}id": "true", f"{VALUES}id": "50"})
    assert filters(path) == [{}, {}]
    DeltaTable(path).optimize.compact()
    (file_filter,) = filters(path)
    assert len(file_filter) == 1 and next(iter(file_filter)).startswith("col-")


@pytest.mark.parametrize(
    ("properties", "error", "message"),
    [
        ({f"{ENABLED}flag": "true"}, UnsupportedOperationError, "boolean"),
        ({f"{ENABLED}s": "true"}, UnsupportedOperationError, "struct"),
        ({f"{ENABLED}id": "true", f"{VALUES}id": "0"}, InvalidOptionError, "ndv"),
        ({f"{ENABLED}id": "true", f"{VALUES}id": "many"}, InvalidOptionError, "ndv"),
        ({f"{ENABLED}id": "true", f"{SHARE}id": "1"}, InvalidOptionError, "fpp"),
        ({f"{ENABLED}id": "true", f"{SHARE}id": "few"}, InvalidOptionError, "fpp"),
    ],
)
def test_what_cannot_be_is_refused(path: str, properties: dict[str, str], error: type[DeltaError], message: str) -> None:
    with pytest.raises(error, match=message):
        write_delta(path, ROWS, configuration=properties)


def test_a_pyarrow_that_cannot_write_them_is_an_error(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.row_rules.bloom_filters.pq.ParquetWriter", dict)
    with pytest.raises(UnsupportedOperationError, match="pyarrow 26"):
        write_delta(path, ROWS, configuration={f"{ENABLED}id": "true"})
