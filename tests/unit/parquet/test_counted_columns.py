"""A column is not decoded if a query only needs to know whether it has a value, and the file says that it always has one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.errors import DataFileError
from delta_py.expressions.tree import Column, Comparison, Literal
from delta_py.object_stores.open_store import open_store
from delta_py.parquet.file_reader import read_files
from delta_py.row_changes.write import write_delta
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from tests.support.tables.data_files import column, inline_vector, read_table, scan_state, write_file

X, NAME = column("x", LONG), column("name", STRING)
COUNTED = frozenset({"name"})
ROWS: dict[str, Any] = {"x": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]}


def damage(path: Path, name: str) -> None:
    """Overwrite all bytes of a column in the file, so that it cannot be decoded."""
    footer, content = pq.read_metadata(path), bytearray(path.read_bytes())
    place = footer.schema.names.index(name)
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(place)
        first = chunk.dictionary_page_offset or chunk.data_page_offset
        content[first : first + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)


def test_column_without_nulls_is_not_decoded(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", ROWS, row_group_size=2)
    damage(tmp_path / "a.parquet", "name")
    with pytest.raises(DataFileError):
        read_table(scan_state(tmp_path, [X, NAME]), file)
    read = read_table(scan_state(tmp_path, [X, NAME], counted=COUNTED), file)
    assert read["x"].to_pylist() == [1, 2, 3, 4] and read["name"].null_count == 0
    alone = read_table(scan_state(tmp_path, [NAME], counted=COUNTED), file)
    assert (len(alone), alone["name"].null_count) == (4, 0)
    less = read_table(scan_state(tmp_path, [X, NAME], counted=COUNTED), replace(file, deletion_vector=inline_vector([1])))
    assert less["x"].to_pylist() == [1, 3, 4] and less["name"].null_count == 0


@pytest.mark.parametrize("options", [{}, {"row_group_size": 2}, {"write_statistics": False}, {"write_statistics": ["x"]}])
def test_column_with_nulls_or_without_statistics_is_decoded(options: dict[str, Any], tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {**ROWS, "name": ["a", "b", None, "d"]}, **options)
    read = read_table(scan_state(tmp_path, [X, NAME], counted=COUNTED), file)
    assert read["name"].is_valid().to_pylist() == [True, True, False, True]


def test_files_differ_in_what_is_decoded(tmp_path: Path) -> None:
    files = [
        write_file(tmp_path, "a.parquet", ROWS),
        write_file(tmp_path, "b.parquet", {**ROWS, "name": [None, "b", "c", None]}),
        write_file(tmp_path, "c.parquet", {"x": [9]}),
        write_file(tmp_path, "d.parquet", ROWS),
    ]
    read = read_table(scan_state(tmp_path, [NAME, X], counted=COUNTED), files)
    missing = [index for index, is_valid in enumerate(read["name"].is_valid().to_pylist()) if not is_valid]
    assert missing == [4, 7, 8]
    assert read["x"].to_pylist() == [1, 2, 3, 4, 1, 2, 3, 4, 9, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (STRING, "a"),
        (BINARY, b"a"),
        (BOOLEAN, True),
        (INTEGER, 7),
        (DOUBLE, 1.5),
        (DecimalType(38, 3), Decimal("1.500")),
        (DecimalType(5, 2), Decimal("1.50")),
        (DATE, date(2024, 1, 1)),
        (TIMESTAMP_NTZ, datetime(2024, 1, 1)),
    ],
)
def test_values_of_every_type_are_some_value_of_it(kind: DataType, value: Any, tmp_path: Path) -> None:
    plain = column("v", kind)
    types = {INTEGER: pa.int32(), BINARY: pa.binary(), TIMESTAMP_NTZ: pa.timestamp("us")}
    decimal = pa.decimal128(kind.precision, kind.scale) if isinstance(kind, DecimalType) else None
    array = pa.array([value] * 3, types.get(kind, decimal))
    file = write_file(tmp_path, "a.parquet", {"v": array})
    assert read_table(scan_state(tmp_path, [plain]), file)["v"].to_pylist() == [value] * 3
    read = read_table(scan_state(tmp_path, [plain], counted=frozenset({"v"})), file)
    assert len(read) == 3 and read["v"].null_count == 0


def test_columns_of_columns_are_decoded(tmp_path: Path) -> None:
    struct = column("s", StructType((StructField("a", LONG),)))
    file = write_file(tmp_path, "a.parquet", {"s": [{"a": 1}, None, {"a": None}]})
    read = read_table(scan_state(tmp_path, [struct], counted=frozenset({"s"})), file)
    assert read["s"].to_pylist() == [{"a": 1}, None, {"a": None}]


def test_column_of_the_predicate_is_decoded(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table(ROWS))
    predicate = Comparison("=", Column(("name",)), Literal("c", STRING))
    options = ScanOptions(drop_rows=True, counted=COUNTED)
    scan = plan_scan(Snapshot.load(open_store(path)), ["x", "name"], predicate, options)
    assert scan.state.counted == frozenset()
    assert pa.Table.from_batches(read_files(scan.state, scan.scan_files())).to_pylist() == [{"x": 3, "name": "c"}]
