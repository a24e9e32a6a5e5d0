"""How well columns let readers skip files, by the statistics."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import SchemaMismatchError
from delta_py.expressions.parse import parse_predicate
from delta_py.layout.skipping_report import LAYOUT_SCHEMA
from delta_py.scan import filtered_columns
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, stats

FILES, ROWS = 20, 500


@pytest.fixture(scope="module")
def original_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sorted rises from file to file, anywhere does not, none has no statistics, pairs is the same in two files each."""
    directory, numbers = tmp_path_factory.mktemp("layout") / "table", np.random.default_rng(3)
    for number in range(FILES):
        rows = {
            "sorted": np.arange(ROWS) + number * ROWS,
            "s": pa.StructArray.from_arrays([pa.array([f"{number // 2:02}"] * ROWS)], ["pairs"]),
            "anywhere": numbers.integers(0, 10**9, ROWS),
            "l": [[1]] * ROWS,
            "none": numbers.random(ROWS),
        }
        configuration = {"delta.dataSkippingStatsColumns": "sorted,s,anywhere"}
        write_delta(str(directory), pa.table(rows), mode="append", configuration=configuration if number == 0 else None)
    return directory


@pytest.fixture
def path(original_table: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(original_table, tmp_path / "table"))


def test_shares_of_each_column(path: str) -> None:
    layout = DeltaTable(path).layout()
    assert layout.schema == LAYOUT_SCHEMA
    rows = {row["column"]: row for row in layout.to_pylist()}
    assert list(rows) == ["sorted", "s.pairs", "anywhere", "none"]
    assert rows["sorted"]["point_share"] == pytest.approx(1 / FILES)
    assert rows["sorted"]["range_share"] == pytest.approx(3 / FILES, abs=0.05)
    assert rows["s.pairs"]["point_share"] == pytest.approx(2 / FILES)
    assert rows["anywhere"]["point_share"] > 0.6 and "Z-order" in rows["anywhere"]["advice"]
    assert rows["none"]["point_share"] is None and "dataSkippingStatsColumns" in rows["none"]["advice"]
    assert (rows["none"]["with_bounds"], rows["sorted"]["advice"]) == (0, None)


def test_layout_says_what_z_order_gained(path: str) -> None:
    DeltaTable(path).optimize.z_order(["anywhere"], target_file_bytes=sum(DeltaTable(path).files()["size"].to_pylist()) // FILES)
    (row,) = DeltaTable(path).layout(["ANYWHERE"]).to_pylist()
    assert row["point_share"] < 2 / FILES


def test_expected_share_is_what_queries_read(path: str) -> None:
    table = DeltaTable(path)
    values = np.random.default_rng(1).choice(table.to_arrow(["anywhere"])["anywhere"].to_numpy(), 200)
    read_shares = [table.scan(filter=f"anywhere = {value}").files.num_rows / FILES for value in values]
    (row,) = table.layout(["anywhere"]).to_pylist()
    assert row["point_share"] == pytest.approx(np.mean(read_shares), abs=0.05)


def test_files_without_statistics_are_read_by_every_query(path: str) -> None:
    log = Path(path) / "_delta_log" / f"{FILES - 1:020}.json"
    log.write_text(log.read_text().replace('minValues', 'noValues'))
    (row,) = DeltaTable(path).layout(["sorted"]).to_pylist()
    assert (row["with_bounds"], row["point_share"]) == (FILES - 1, pytest.approx(2 / FILES))


def test_empty_table_and_column_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "empty")
    write_delta(path, pa.table({"id": pa.array([], pa.int64())}))
    assert DeltaTable(path).layout()["point_share"].to_pylist() == [None]
    with pytest.raises(SchemaMismatchError, match="nosuch"):
        DeltaTable(path).layout(["nosuch"])


def test_layout_says_which_columns_queries_were_filtered_by(path: str) -> None:
    table = DeltaTable(path)
    assert set(table.layout()["queries"].to_pylist()) == {0}
    for number in range(3):
        table.to_arrow(filter=f"anywhere = {number} AND anywhere IS NOT NULL AND s.pairs IS NOT NULL")
    table.to_arrow(filter="s.pairs IN ('01', '02') OR sorted < 4")
    table.optimize.compact()
    rows = {row["column"]: row for row in DeltaTable(path).layout().to_pylist()}
    assert [rows[name]["queries"] for name in ("sorted", "s.pairs", "anywhere", "none")] == [1, 1, 3, 0]
    assert "3 recent queries were filtered by it: Z-order" in table.layout(["anywhere"])["advice"][0].as_py()


def test_what_is_remembered_of_filters_is_bounded(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_columns, "_MAX_TABLES", 2)
    monkeypatch.setattr(filtered_columns, "_MAX_COLUMNS", 1)
    memory, snapshot = filtered_columns.FilteredColumns(), DeltaTable(path).snapshot
    memory.count_filter(snapshot, parse_predicate("sorted = 1", snapshot.schema))
    memory.count_filter(snapshot, parse_predicate("sorted = 1 AND anywhere = 2", snapshot.schema))
    assert memory.of(snapshot) == {("sorted",): 2}
    for number in range(2):
        other = f"{path}-{number}"
        write_delta(other, pa.table({"id": [1]}))
        memory.count_filter(DeltaTable(other).snapshot, parse_predicate("id = 1", DeltaTable(other).struct_type))
    assert memory.of(snapshot) == {}, "the table that was read longest ago is forgotten"


def test_column_without_possible_bounds_gets_no_advice(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    columns = {"p": [1], "b": [b"x"], "f": [True], "l": [[1]], "m": [{"x": 1}]}
    for _ in range(4):
        write_delta(path, pa.table(columns), mode="append", partition_by=["p"])
    layout = DeltaTable(path).layout(["p", "b", "f", "l", "m"])
    assert layout["advice"].to_pylist() == [None] * 5


@pytest.mark.filterwarnings("error")
def test_values_whose_distance_is_no_number(tmp_path: Path) -> None:
    """Then their distance is that of their ranks."""
    path, largest = str(tmp_path / "t"), 1.7e308
    for number, low in enumerate([-largest, -largest / 2, 0.0, largest / 2]):
        write_delta(path, pa.table({"x": [low, low + largest / 2], "n": [number, number]}), mode="append")
    (row,) = DeltaTable(path).layout(["x"]).to_pylist()
    assert 0.25 <= row["point_share"] <= 0.5 and 0.25 <= row["range_share"] <= 0.75


def test_layout_counts_files_without_statistics_as_unbounded() -> None:
    store = MemoryStore()
    table = TableBuilder(store)
    table.create(*(add(f"{number}.parquet", stats=stats(10, 1, 9)) for number in range(3)))
    table.checkpoint(stats_json=False)
    table.commit(add("new.parquet", stats=stats(10, 1, 9)))
    (row,) = DeltaTable("/table", store=store).layout().to_pylist()
    assert (row["files"], row["with_bounds"]) == (4, 1)
