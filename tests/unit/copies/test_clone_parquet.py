"""Shallow clones of directories of Parquet files: their content, and refusals. The files never change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.checkpoint.clone_notes import list_notes
from delta_py.copies.clone_parquet import clone_parquet
from delta_py.copies.convert_to_delta import ConvertRequest
from delta_py.copies.restore import restore
from delta_py.errors import DeltaError
from delta_py.object_stores.open_store import open_store
from delta_py.parquet.foreign_files import FooterReading
from delta_py.snapshot import Snapshot
from delta_py.types.schema import DATE, INTEGER, STRING, StructField, StructType

DAY = ConvertRequest(StructType((StructField("day", DATE),)))


def put(directory: Path, name: str, rows: pa.Table | dict[str, Any]) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.table(rows), path)


def tree(directory: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Rows 1 and 2 of one day, row 3 of another, in a directory whose name needs escapes."""
    directory = tmp_path / "the source%20"
    put(directory, "day=2024-05-01/a b.parquet", {"id": pa.array([1, 2], pa.int64())})
    put(directory, "day=2024-05-02/c.parquet", {"id": pa.array([3], pa.int64())})
    (directory / "_SUCCESS").write_bytes(b"")
    return directory


def clone(source: Path, target: Path, request: ConvertRequest = DAY, **options: Any) -> dict[str, Any]:
    return clone_parquet(open_store(str(source)), open_store(str(target)), request, **options)


def ids(target: Path) -> list[int]:
    return sorted(DeltaTable(str(target)).to_arrow()["id"].to_pylist())


def refused(source: Path, target: Path, condition: str, *parts: str, request: ConvertRequest = DAY, **options: Any) -> None:
    """A clone that is refused, and changes nothing."""
    before = tree(source.parent)
    with pytest.raises(DeltaError) as caught:
        clone(source, target, request, **options)
    assert caught.value.error_class == condition, caught.value
    for part in (*parts, "Nothing was"):
        assert part.lower() in caught.value.message.lower(), caught.value.message
    assert tree(source.parent) == before


# ---------------------------------------------------------------- what a clone is


def test_clone_has_the_rows_and_nothing_is_written_at_the_source(source: Path, tmp_path: Path) -> None:
    before, target = tree(source), tmp_path / "clone"
    size = sum(path.stat().st_size for path in source.rglob("*.parquet"))
    result = clone(source, target, properties={"team": "b"})
    assert result["version"] == 0
    assert result["metrics"] == {
        "sourceTableSize": size,
        "sourceNumOfFiles": 2,
        "numRemovedFiles": 0,
        "numCopiedFiles": 0,
        "removedFilesSize": 0,
        "copiedFilesSize": 0,
    }
    table = DeltaTable(str(target))
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], str(row["day"])) for row in rows] == [(1, "2024-05-01"), (2, "2024-05-01"), (3, "2024-05-02")]
    assert dict(table.metadata.configuration) == {"team": "b"}
    assert table.metadata.partition_columns == ("day",)
    assert tree(source) == before
    assert [path.name for path in target.iterdir()] == ["_delta_log"]
    Snapshot.load(open_store(str(target))).check_integrity()


def test_log_names_files_by_absolute_paths_with_statistics(source: Path, tmp_path: Path) -> None:
    clone(source, tmp_path / "clone")
    files = {file["path"]: file for file in DeltaTable(str(tmp_path / "clone")).files().to_pylist()}
    assert set(files) == {f"{source}/day=2024-05-01/a b.parquet", f"{source}/day=2024-05-02/c.parquet"}
    stats = json.loads(files[f"{source}/day=2024-05-01/a b.parquet"]["stats"])
    assert (stats["numRecords"], stats["minValues"], stats["maxValues"]) == (2, {"id": 1}, {"id": 2})
    assert DeltaTable(str(tmp_path / "clone")).to_arrow(filter="day = '2024-05-02'")["id"].to_pylist() == [3]


def test_history_says_what_the_reference_says(source: Path, tmp_path: Path) -> None:
    clone(source, tmp_path / "by path")
    clone(source, tmp_path / "by name", ConvertRequest(DAY.partition_schema, catalog_table="spark_catalog.shop.visits"))
    parameters = {}
    for name in ("by path", "by name"):
        (entry,) = DeltaTable(str(tmp_path / name)).history().to_pylist()
        assert (entry["operation"], dict(entry["operationMetrics"])["sourceNumOfFiles"]) == ("CLONE", "2")
        parameters[name] = dict(entry["operationParameters"])
    escaped = str(source).replace("%", "%25").replace(" ", "%20")
    assert parameters["by path"] == {"source": f"parquet.`file:{escaped}`", "sourceVersion": "-1"}
    assert parameters["by name"] == {"source": "spark_catalog.shop.visits", "sourceVersion": "-1"}


def test_columns_are_those_of_all_files_and_widen(tmp_path: Path) -> None:
    put(tmp_path / "files", "a.parquet", {"id": pa.array([1], pa.int32())})
    put(tmp_path / "files", "b.parquet", {"id": pa.array([2**40], pa.int64()), "name": ["x"]})
    clone(tmp_path / "files", tmp_path / "clone", ConvertRequest())
    table = DeltaTable(str(tmp_path / "clone"))
    assert table.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "name": None}, {"id": 2**40, "name": "x"}]
    assert "typeWidening" in table.protocol.reader_features
    assert dict(table.metadata.configuration) == {}


def test_statement_properties_override_those_of_the_source(source: Path, tmp_path: Path) -> None:
    request = ConvertRequest(DAY.partition_schema, configuration={"team": "a", "delta.appendOnly": "true"})
    clone(source, tmp_path / "clone", request, properties={"team": "b"})
    assert dict(DeltaTable(str(tmp_path / "clone")).metadata.configuration) == {"team": "b", "delta.appendOnly": "true"}


@pytest.mark.parametrize("collect_stats", [True, False])
def test_clone_may_track_rows(source: Path, tmp_path: Path, collect_stats: bool) -> None:
    request = ConvertRequest(DAY.partition_schema, collect_stats=collect_stats)
    clone(source, tmp_path / "clone", request, properties={"delta.enableRowTracking": "true"})
    assert sorted(file["base_row_id"] for file in DeltaTable(str(tmp_path / "clone")).files().to_pylist()) in ([0, 1], [0, 2])


# ---------------------------------------------------------------- what becomes of it


def test_writes_and_vacuum_of_the_clone_leave_the_source(source: Path, tmp_path: Path) -> None:
    before, target = tree(source), tmp_path / "clone"
    clone(source, target, properties={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(str(target))
    table.delete("id = 1")
    table.update({"id": "id + 10"}, predicate="id = 3")
    write_delta(str(target), pa.table({"id": [7], "day": [None]}, schema=table.to_arrow().schema), mode="append")
    DeltaTable(str(target)).optimize.compact()
    assert ids(target) == [2, 7, 13]
    DeltaTable(str(target)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert ids(target) == [2, 7, 13]
    assert tree(source) == before
    write_delta(str(target), DeltaTable(str(target)).to_arrow().slice(0, 0), mode="overwrite")
    DeltaTable(str(target)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert (ids(target), tree(source)) == ([], before)


def test_clone_is_restored_checked_and_cloned_again(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "clone"
    clone(source, target)
    DeltaTable(str(target)).delete("id = 1")
    restore(open_store(str(target)), version=0)
    assert ids(target) == [1, 2, 3]
    assert DeltaTable(str(target)).fsck(dry_run=True).num_rows == 0
    for shallow in (True, False):
        DeltaTable(str(target)).clone(str(tmp_path / f"again {shallow}"), shallow=shallow)
        assert ids(tmp_path / f"again {shallow}") == [1, 2, 3]
    assert not (source / "_delta_log").exists()


def test_clone_takes_the_place_of_a_table_only_when_asked(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "clone"
    write_delta(str(target), pa.table({"x": [1]}), configuration={"delta.enableInCommitTimestamps": "true"})

    def read(reading: FooterReading, files: pa.Table) -> pa.Table:
        raise AssertionError("a clone that cannot be made reads no footers")

    refused(source, target, "DELTA_TABLE_ALREADY_EXISTS", read=read)
    result = clone(source, target, replace_table=True)
    assert (result["version"], result["metrics"]["numRemovedFiles"], ids(target)) == (1, 1, [1, 2, 3])
    put(source, "day=2024-05-02/d.parquet", {"id": pa.array([4], pa.int64())})
    assert ids(target) == [1, 2, 3]
    assert clone(source, target, replace_table=True)["version"] == 2
    assert ids(target) == [1, 2, 3, 4]


def test_repeated_clone_notices_overwritten_files(source: Path, tmp_path: Path) -> None:
    """Their former rows are gone, so there is nothing to remove."""
    target, rows = tmp_path / "clone", {"id": pa.array([7, 8, 9], pa.int64())}
    clone(source, target)
    put(source, "day=2024-05-02/c.parquet", rows)
    result = clone(source, target, replace_table=True)
    assert (result["metrics"]["numRemovedFiles"], ids(target)) == (0, [1, 2, 7, 8, 9])
    files = DeltaTable(str(target)).files()
    assert sum(files["size"].to_pylist()) == result["metrics"]["sourceTableSize"]
    assert sorted(json.loads(stats)["numRecords"] for stats in files["stats"].to_pylist()) == [2, 3]
    Snapshot.load(open_store(str(target))).check_integrity()


def test_table_around_the_source_is_told_of_the_clone(tmp_path: Path) -> None:
    """Its VACUUM would delete the files, because they are not its own."""
    around, target = tmp_path / "around", tmp_path / "clone"
    write_delta(str(around), pa.table({"x": [1]}))
    put(around, "raw/a.parquet", {"id": [1]})
    clone(around / "raw", target, ConvertRequest())
    assert len(list_notes(open_store(str(around)))) == 1
    assert not (around / "raw" / "_delta_log").exists()
    table, now = DeltaTable(str(around)), {"enforce_retention_duration": False}
    assert table.vacuum(0, keep_clones=False, **now)["path"].to_pylist() == ["raw/a.parquet"]
    table.vacuum(0, dry_run=False, **now)
    assert ids(target) == [1]


# ---------------------------------------------------------------- what is refused


def test_places_in_each_other_are_refused(source: Path, tmp_path: Path) -> None:
    refused(source, source, "DELTA_ILLEGAL_OPTION", "in each other")
    refused(source, source / "day=2024-05-01" / "clone", "DELTA_ILLEGAL_OPTION", "in each other")
    write_delta(str(tmp_path), pa.table({"x": [1]}))
    refused(source, tmp_path, "DELTA_ILLEGAL_OPTION", "in each other", replace_table=True)
    (tmp_path / "link").symlink_to(source)
    refused(source, tmp_path / "link" / "clone", "DELTA_ILLEGAL_OPTION", "in each other")


def test_sources_that_are_no_parquet_files_are_refused(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "clone"
    write_delta(str(tmp_path / "table"), pa.table({"id": [1]}))
    refused(tmp_path / "table", target, "DELTA_CLONE_UNSUPPORTED_SOURCE", "format is Delta", request=ConvertRequest())
    refused(tmp_path / "nothing", target, "DELTA_EMPTY_DIRECTORY", request=ConvertRequest())
    (source / "day=2024-05-01" / "notes.csv").write_text("id\n1\n")
    refused(source, target, "DELTA_FAILED_READ_FILE_FOOTER", "notes.csv")


def test_partitions_are_those_of_the_directories(source: Path, tmp_path: Path) -> None:
    target, count = tmp_path / "clone", "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"
    refused(source, target, count, "Expecting 0 partition column(s)", request=ConvertRequest())
    other = ConvertRequest(StructType((StructField("month", STRING),)))
    refused(source, target, "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME", "month", request=other)
    number = ConvertRequest(StructType((StructField("day", INTEGER),)))
    refused(source, target, "DELTA_FAILED_CAST_PARTITION_VALUE", "2024-05-01", request=number)


def test_properties_that_are_not_true_of_the_files_are_refused(source: Path, tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    refused(source, tmp_path / "clone", "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", properties=mapped)
    versions = {"delta.minWriterVersion": "7"}
    refused(source, tmp_path / "clone", "DELTA_ILLEGAL_OPTION", "delta.minWriterVersion", properties=versions)
