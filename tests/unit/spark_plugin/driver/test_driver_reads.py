"""Rows that the driver's own Python reads for the JVM, without a JVM: which queries are small, and which go to tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StringType, StructType

from delta_py.errors import DataFileError
from spark_plugin.data_source import DeltaSource, pickled_whole
from spark_plugin.driver_planning import reads
from spark_plugin.driver_planning.planner import planned
from spark_plugin.driver_planning.reads import SmallScans
from spark_plugin.options import read_limits
from spark_plugin.pruning.scan_request import MARKER_KEY
from tests.support.spark.driver_requests import planning_body
from tests.support.tables.small_table import make_table


@pytest.fixture
def table(tmp_path: Path) -> str:
    return make_table(tmp_path / "t", [pa.table({"id": range(n, n + 10), "s": [str(n)] * 10}) for n in (0, 100)])


def plan(scans: SmallScans, table: str, **marker_fields: Any) -> bytes:
    """marker_fields: of the request. Returns the request for the rows of the planned scan."""
    source = DeltaSource({"path": table})
    schema = json.loads(source.schema().json())
    schema["fields"][0]["metadata"][MARKER_KEY] = json.dumps({"predicates": [], "limit": None, "scan_id": "n", **marker_fields})
    planned(planning_body(pickled_whole(source), json.dumps(schema)), scans.keep)
    return str(marker_fields.get("scan_id", "n")).encode()


def read(table: str, **marker_fields: Any) -> bytes:
    scans = SmallScans()
    return scans.read(plan(scans, table, **marker_fields))


def equals(value: int) -> dict[str, Any]:
    return {"name": "=", "children": [{"column": ["id"]}, {"type": "long", "value": value}]}


def rows(stream: bytes) -> list[dict[str, Any]]:
    read_rows: list[dict[str, Any]] = pa.ipc.open_stream(stream).read_all().to_pylist()
    return read_rows


def test_read_streams_arrow_rows_that_match_the_predicate(table: str) -> None:
    assert rows(read(table, predicates=[equals(105)])) == [{"id": 105, "s": "100"}]
    assert len(rows(read(table))) == 20


def test_stream_without_rows_has_the_columns(table: str) -> None:
    stream = read(table, predicates=[equals(55)])
    assert rows(stream) == []
    assert pa.ipc.open_stream(stream).schema.names == ["id", "s"]


def test_limit_is_kept_over_files(table: str) -> None:
    read_ids = [row["id"] for row in rows(read(table, limit=12))]
    assert len(set(read_ids)) == 12
    assert set(read_ids) < {*range(10), *range(100, 110)}
    assert rows(read(table, limit=0)) == []


def test_more_rows_than_few_are_nothing(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limits, "DRIVER_ROWS", 19)
    assert read(table) == b""
    assert len(rows(read(table, limit=19))) == 19
    assert read(table, limit=20) == b""


def test_driver_leaves_several_remote_files_to_parallel_tasks(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_py.storage.local import LocalStore

    monkeypatch.setattr(LocalStore, "is_remote", True)
    assert read(table) == b""
    assert rows(read(table, predicates=[equals(105)])) == [{"id": 105, "s": "100"}]


def test_file_that_is_gone_is_an_error(table: str) -> None:
    scans = SmallScans()
    request = plan(scans, table)
    for file in Path(table).glob("*.parquet"):
        file.unlink()
    with pytest.raises(DataFileError):
        scans.read(request)


def test_unknown_or_old_scan_is_left_to_tasks(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_SCANS", 2)
    scans = SmallScans()
    requests = [plan(scans, table, scan_id=scan_id) for scan_id in ("a", "b", "c")]
    assert [bool(scans.read(scan_id)) for scan_id in requests] == [False, True, True]
    assert scans.read(b"of a worker") == b""


COLLATED = StringType("UTF8_LCASE")
TEXT = StringType()


@pytest.mark.parametrize(
    ("kind", "value", "is_read"),
    [
        (COLLATED, "x", False),
        (StructType().add("a", ArrayType(COLLATED)), {"a": ["x"]}, False),
        (MapType(TEXT, COLLATED), [("k", "x")], False),
        (TEXT, "x", True),
        (MapType(TEXT, ArrayType(TEXT)), [("k", ["x"])], True),
    ],
)
def test_texts_with_a_collation_are_left_to_tasks(kind: DataType, value: Any, is_read: bool, tmp_path: Path) -> None:
    columns = StructType().add("id", LongType()).add("s", kind)
    arrow = to_arrow_schema(columns)
    rows_of_table = pa.Table.from_pylist([{"id": 1, "s": value}], arrow)
    table = make_table(tmp_path / "c", [rows_of_table], schema_json=columns.json())
    assert bool(read(table)) == is_read
