"""write_delta with input that no table can take, and with extreme input: right rows, or a refusal that leaves no files."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable
from delta_py.errors import (
    DeltaError,
    ExpressionError,
    InvalidOptionError,
    InvariantViolationError,
    SchemaMismatchError,
    StorageError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_py.row_changes.write import write_delta
from delta_py.storage.local import LocalStore
from tests.support.tables.table_builder import TableBuilder

ROWS = pa.table({"id": [1, 2], "p": ["a", "b"]})


def files(path: Path) -> dict[str, int]:
    return {str(file.relative_to(path)): file.stat().st_size for file in path.rglob("*") if file.is_file()}


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in DeltaTable(str(path)).to_arrow().to_pylist()), key=str)


# ---------------------------------------------------------------- tables that cannot be written to


@pytest.mark.parametrize(("first", "second"), [("id", "id"), ("id", "ID")])
def test_append_to_a_table_with_duplicate_columns_is_refused(tmp_path: Path, first: str, second: str) -> None:
    store = LocalStore(str(tmp_path))
    table = TableBuilder(store)  # type: ignore[arg-type]
    table.commit(table.protocol(), table.metadata((first, "long"), (second, "long")))
    before = files(tmp_path)
    with pytest.raises(SchemaMismatchError, match="have one name") as caught:
        write_delta(str(tmp_path), pa.table({"id": [1]}), mode="append")
    assert caught.value.error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"
    assert files(tmp_path) == before


# ---------------------------------------------------------------- frames


def test_data_nested_too_deep_for_an_arrow_stream_is_refused(tmp_path: Path) -> None:
    kind: pa.DataType = pa.int64()
    for _ in range(90):
        kind = pa.struct([("x", kind)])
    with pytest.raises(UnsupportedOperationError, match="nested more than 60 levels deep"):
        write_delta(str(tmp_path / "t"), pa.table({"deep": pa.nulls(1, kind)}), mode="error")
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (pd.DataFrame({"id": [1, "x"]}), "Could not convert 'x'.*column id"),
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), "Duplicate column names"),
        (pd.DataFrame({"id": pd.arrays.SparseArray([0, 1])}), "column id"),
    ],
    ids=["two types", "one name", "sparse"],
)
def test_pandas_frame_that_is_no_table_is_refused(tmp_path: Path, frame: pd.DataFrame, why: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=why):
        write_delta(str(tmp_path / "t"), frame)
    assert files(tmp_path) == {}


def test_columns_with_uneven_chunks_are_written_and_merged(tmp_path: Path) -> None:
    numbers, path = pa.array([1, 2, 3]), str(tmp_path)
    ids = pa.chunked_array([numbers[1:], numbers[:0], numbers[:1]])
    rows = pa.table({"id": ids, "n": pa.chunked_array([pa.array([0]), pa.array([1, 2])])})
    write_delta(path, rows)
    write_delta(path, pa.RecordBatchReader.from_stream(rows), mode="append")
    assert rows_of(tmp_path) == [(1, 2), (1, 2), (2, 0), (2, 0), (3, 1), (3, 1)]
    DeltaTable(path).merge(rows, "t.id = s.id", "s", "t").when_matched_update({"n": "s.n + 10"}).execute()
    assert rows_of(tmp_path) == [(1, 12), (1, 12), (2, 10), (2, 10), (3, 11), (3, 11)]


@pytest.mark.parametrize("data", [pa.table({}), ROWS.select([]), pd.DataFrame()], ids=["nothing", "rows only", "pandas"])
@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_write_delta_without_columns_creates_nothing(tmp_path: Path, data: Any, mode: str) -> None:
    with pytest.raises(SchemaMismatchError, match="column") as caught:
        write_delta(str(tmp_path / "t"), data, mode=mode)
    assert caught.value.error_class == "DELTA_EMPTY_DATA"
    assert files(tmp_path) == {}


@pytest.mark.parametrize("data", [pa.table({}), ROWS.select([]), pd.DataFrame()], ids=["nothing", "rows only", "pandas"])
@pytest.mark.parametrize(
    "options",
    [
        {"mode": "append"},
        {"mode": "append", "merge_schema": True},
        {"mode": "overwrite"},
        {"mode": "overwrite", "overwrite_schema": True},
        {"mode": "overwrite", "replace_where": "id = 1"},
    ],
    ids=str,
)
def test_write_delta_without_columns_leaves_a_table_as_it_is(tmp_path: Path, data: Any, options: dict[str, Any]) -> None:
    write_delta(str(tmp_path), ROWS)
    before = files(tmp_path)
    with pytest.raises(SchemaMismatchError, match="column") as caught:
        write_delta(str(tmp_path), data, **options)
    assert caught.value.error_class == "DELTA_EMPTY_DATA"
    assert files(tmp_path) == before


@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_write_delta_without_rows_commits_only_changes(tmp_path: Path, partition_by: list[str] | None) -> None:
    none, path = ROWS.slice(0, 0), str(tmp_path)
    assert write_delta(path, none, partition_by=partition_by) == 0
    assert DeltaTable(path).to_arrow().schema.names == ["id", "p"]
    assert write_delta(path, ROWS, mode="append") == 1
    assert write_delta(path, none, mode="append") == 1
    assert write_delta(path, none, mode="append", txn_app_id="app", txn_version=1) == 2  # it is recorded
    replaced = write_delta(path, none, mode="overwrite", partition_overwrite_mode="dynamic")
    assert replaced == (2 if partition_by else 3)
    if partition_by:
        assert rows_of(tmp_path) == [(1, "a"), (2, "b")]
    else:
        assert rows_of(tmp_path) == []
        write_delta(path, ROWS, mode="append")
    write_delta(path, none, mode="overwrite", replace_where="id = 1")
    assert rows_of(tmp_path) == [(2, "b")]
    write_delta(path, none, mode="overwrite")
    assert rows_of(tmp_path) == []


STRUCT = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "X"])


@pytest.mark.parametrize(
    "data",
    [
        pa.table([[1], [2]], names=["id", "id"]),
        pa.table([[1], [2]], names=["id", "ID"]),
        pa.table({"id": STRUCT}),
        pa.table({"id": pa.ListArray.from_arrays([0, 1], STRUCT)}),
    ],
    ids=["same", "case", "in a struct", "in a list"],
)
@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_write_delta_duplicate_names_are_refused(tmp_path: Path, data: pa.Table, mode: str) -> None:
    if mode != "error":
        write_delta(str(tmp_path), ROWS)
    before = files(tmp_path)
    options: dict[str, Any] = (
        {"merge_schema": True} if mode == "append" else {"overwrite_schema": True} if mode == "overwrite" else {}
    )
    with pytest.raises(SchemaMismatchError, match=r"(?i)one name|more than once") as caught:
        write_delta(str(tmp_path), data, mode=mode, **options)
    assert caught.value.error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"
    assert files(tmp_path) == before


def test_write_delta_source_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise ValueError("the source broke")

    write_delta(str(tmp_path), ROWS, partition_by="p")
    before = files(tmp_path)
    with pytest.raises(ValueError, match="the source broke"):
        write_delta(str(tmp_path), pa.RecordBatchReader.from_batches(ROWS.schema, batches()), mode="append")
    assert files(tmp_path) == before


def test_write_delta_row_that_breaks_a_rule_shows_its_values(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS, configuration={"delta.constraints.small": "id < 10 AND p <> 'x'"})
    before = files(tmp_path)
    with pytest.raises(InvariantViolationError) as caught:
        write_delta(str(tmp_path), pa.table({"id": [3, 77], "p": ["c", "long ☃"]}), mode="append")
    assert all(part in caught.value.message for part in ("small", "77", "long ☃"))
    assert files(tmp_path) == before
    with pytest.raises(InvariantViolationError) as caught:
        write_delta(str(tmp_path), pa.table({"id": [5, 6], "p": ["q", "r"]}), mode="overwrite", replace_where="id = 5")
    assert "id = 5" in caught.value.message and "6" in caught.value.message
    assert files(tmp_path) == before


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize("below", ["", "/t", "/t/u"])
@pytest.mark.parametrize("mode", ["error", "append", "overwrite", "ignore"])
@pytest.mark.parametrize("data", [ROWS, ROWS.slice(0, 0)], ids=["rows", "no rows"])
def test_write_delta_to_a_file_or_below_one_is_refused(tmp_path: Path, below: str, mode: str, data: pa.Table) -> None:
    (tmp_path / "file").write_text("keep me")
    with pytest.raises(StorageError, match=r"(?i)not a directory|exists"):
        write_delta(f"{tmp_path}/file{below}", data, mode=mode)
    assert files(tmp_path) == {"file": 7}
    with pytest.raises(TableNotFoundError):
        DeltaTable(f"{tmp_path}/file{below}")


def test_write_delta_where_the_log_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").write_text("keep me")
    with pytest.raises(StorageError):
        write_delta(str(tmp_path), ROWS, mode="append")
    assert files(tmp_path) == {"_delta_log": 7}


def test_write_delta_to_an_empty_path_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="path"):
        write_delta("", ROWS)


def test_write_delta_beside_parquet_files_takes_only_its_own(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "old.parquet")
    (tmp_path / "p=a").mkdir()
    pq.write_table(ROWS.select(["id"]), tmp_path / "p=a" / "old.parquet")
    before = files(tmp_path)
    assert write_delta(str(tmp_path), pa.table({"id": [9], "p": ["a"]}), partition_by="p") == 0
    write_delta(str(tmp_path), pa.table({"id": [8], "p": ["a"]}), mode="overwrite")
    assert rows_of(tmp_path) == [(8, "a")]
    assert before.items() <= files(tmp_path).items()


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    "options",
    [
        {"name": "\ud800"},
        {"description": "a\udfff"},
        {"user_metadata": "\ud800"},
        {"configuration": {"my.key": "\udc00"}},
        {"configuration": {"my.\udc00": "v"}},
        {"txn_app_id": "\ud800", "txn_version": 1},
        {"txn_app_id": "a", "txn_version": 2**63},
        {"txn_app_id": "a", "txn_version": -(2**63) - 1},
    ],
    ids=ascii,
)
def test_write_delta_option_that_the_log_cannot_hold_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError):
        write_delta(str(tmp_path / "t"), ROWS, **options)
    assert files(tmp_path) == {}


@pytest.mark.parametrize("version", [2**63 - 1, -(2**63), 0])
def test_write_delta_transaction_version_may_be_any_of_64_bits(tmp_path: Path, version: int) -> None:
    for _ in range(2):
        assert write_delta(str(tmp_path), ROWS, mode="append", txn_app_id="a ☃", txn_version=version) == 0
    assert len(rows_of(tmp_path)) == 2


@pytest.mark.parametrize(
    ("predicate", "error"),
    [
        ("nope = 1", SchemaMismatchError),
        ("id = = 1", ExpressionError),
        ("id + 1", ExpressionError),
        ("", InvalidOptionError),
        ("id = 1; DROP TABLE t", ExpressionError),
        ("unheard_of(id) = 1", DeltaError),
    ],
)
def test_write_delta_predicate_that_is_none_leaves_the_table(tmp_path: Path, predicate: str, error: type[DeltaError]) -> None:
    write_delta(str(tmp_path), ROWS)
    before = files(tmp_path)
    with pytest.raises(error):
        write_delta(str(tmp_path), ROWS, mode="overwrite", replace_where=predicate)
    assert files(tmp_path) == before


# ---------------------------------------------------------------- much, long, and from everywhere


LONG_VALUES = ["x" * 100_000, "☃" * 5_000, "a" * 250, "..", ".", "a/b", "a\nb\tc", "100%", "p=q", "\U0001f600", " ", "'\"\\"]


def test_write_delta_partition_values_of_any_text_come_back(tmp_path: Path) -> None:
    data = pa.table({"id": range(len(LONG_VALUES)), "p": LONG_VALUES})
    write_delta(str(tmp_path), data, partition_by="p")
    write_delta(str(tmp_path), data, mode="append")
    assert rows_of(tmp_path) == sorted([*enumerate(LONG_VALUES)] * 2, key=str)
    write_delta(str(tmp_path), data.slice(0, 3), mode="overwrite", partition_overwrite_mode="dynamic")
    assert len(rows_of(tmp_path)) == 2 * len(LONG_VALUES) - 3
    filtered = DeltaTable(str(tmp_path)).to_arrow(filter=f"p = '{LONG_VALUES[1]}'")
    assert filtered["id"].to_pylist() == [1]


def test_write_delta_very_long_texts_keep_short_statistics(tmp_path: Path) -> None:
    text = "é" * 4_000_000
    write_delta(str(tmp_path), pa.table({"id": [1, 2], "t": [text, text + "x"]}))
    assert (tmp_path / "_delta_log" / f"{0:020}.json").stat().st_size < 5_000
    assert DeltaTable(str(tmp_path)).to_arrow(["id"], filter="t > 'éé'")["id"].to_pylist() == [1, 2]
    assert DeltaTable(str(tmp_path)).to_arrow(["id"], filter="t > 'éê'")["id"].to_pylist() == []


def test_write_delta_names_of_any_script_come_back(tmp_path: Path) -> None:
    names = ["naïve☃", "列", "п", "e\u0301", "😀"]
    path = tmp_path / "täble ☃ 100%"
    data = pa.table({name: [f"{name} {i}" for i in range(3)] for name in names})
    for mode in ("error", "append"):
        write_delta(str(path), data, mode=mode, partition_by=["列"])
    assert DeltaTable(str(path)).to_arrow().schema.names == names
    assert len(DeltaTable(str(path)).to_arrow(filter="`列` = '列 1' AND `😀` = '😀 1'")) == 2


MANY = """
import resource, sys
import pyarrow as pa
from delta_py import DeltaTable, write_delta
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
path, count = sys.argv[1], 2000
data = pa.table({"id": range(count * 3), "p": [i % count for i in range(count * 3)]})
write_delta(path, data, partition_by="p")
assert DeltaTable(path).snapshot.num_files == count
found = DeltaTable(path).to_arrow()
assert found.num_rows == count * 3 and sorted(found["id"].to_pylist()) == list(range(count * 3))
write_delta(path, data.slice(0, 5), mode="overwrite", partition_overwrite_mode="dynamic")
assert DeltaTable(path).to_arrow(["id"]).num_rows == count * 3 - 10
print("done")
"""


def test_write_delta_of_2000_partitions_needs_few_open_files(tmp_path: Path) -> None:
    process = subprocess.run([sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert process.stdout.strip() == "done", process.stderr[-2000:]


def test_write_delta_dates_far_away_come_back(tmp_path: Path) -> None:
    data = pa.table({"d": [dt.date.min, dt.date.max, dt.date(1582, 10, 4)], "n": [1, 2, 3]})
    write_delta(str(tmp_path), data, partition_by="d")
    assert rows_of(tmp_path) == sorted(zip(*data.to_pydict().values(), strict=True), key=str)
