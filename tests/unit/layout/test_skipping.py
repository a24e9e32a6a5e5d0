"""How well columns skip, as the statistics tell it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import SchemaMismatchError
from delta_py.layout.skipping import LAYOUT_SCHEMA

FILES, ROWS = 20, 500


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def path(made: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(made, tmp_path / "table"))


def test_shares_of_each_column(path: str) -> None:
    found = DeltaTable(path).layout()
    assert found.schema == LAYOUT_SCHEMA
    rows = {row["column"]: row for row in found.to_pylist()}
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
    kept = [table.scan(filter=f"anywhere = {value}").files.num_rows / FILES for value in values]
    (row,) = table.layout(["anywhere"]).to_pylist()
    assert row["point_share"] == pytest.approx(np.mean(kept), abs=0.05)


def test_files_without_statistics_are_read_by_every_query(path: str) -> None:
    log = Path(path) / "_delta_log" / f"{FILES - 1:020}.json"
    log.write_text(log.read_text().replace("minValues", "noValues"))
    (row,) = DeltaTable(path).layout(["sorted"]).to_pylist()
    assert (row["with_bounds"], row["point_share"]) == (FILES - 1, pytest.approx(2 / FILES))


def test_empty_table_and_column_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "empty")
    write_delta(path, pa.table({"id": pa.array([], pa.int64())}))
    assert DeltaTable(path).layout()["point_share"].to_pylist() == [None]
    with pytest.raises(SchemaMismatchError, match="nosuch"):
        DeltaTable(path).layout(["nosuch"])
