"""VACUUM of files that the caller has listed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_py import DeltaTable
from delta_py.errors import InvalidOptionError
from delta_py.log.last_vacuum import read_last_vacuum
from delta_py.storage.addresses import root_pattern
from delta_py.storage.local import LocalStore
from delta_py.vacuum.vacuum import REMOVED, UNKNOWN, Vacuum, VacuumKind, VacuumRequest, vacuum
from tests.unit.vacuum.test_vacuum import WEEK, append, files_of, ids, in_hours, on_disk
from tests.unit.vacuum.test_vacuum_lite import Unlisted

SCHEMA = pa.schema([("path", pa.string()), ("length", pa.int64()), ("isDir", pa.bool_()), ("modificationTime", pa.int64())])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a table.x")


def rows(*listed: tuple[str | None, int | None, bool | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in listed], schema=SCHEMA)


def inventory_of(path: str, scheme: str = "file:") -> pa.Table:
    """All existing objects, including the log and directories, as a store's own report has them."""
    return rows(*((f"{scheme}{file}", file.stat().st_size, file.is_dir(), 5) for file in Path(path).rglob("*")))


def dry(path: str, inventory: Any, **options: Any) -> dict[str, str]:
    request = VacuumRequest(inventory=inventory, **options)
    removable = Vacuum.begin(Unlisted(path), request, in_hours(WEEK + 1)).find()
    return dict(zip(removable["path"].to_pylist(), removable["reason"].to_pylist(), strict=True))


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_what_is_listed_and_not_needed_goes(path: str, scheme: str) -> None:
    append(path, 1)
    old = files_of(path)
    append(path, 2, mode="overwrite")
    (Path(path) / "stray").write_bytes(b"x")
    (Path(path) / "not listed").write_bytes(b"x")
    listed = inventory_of(path, scheme)
    listed = listed.filter(pa.array(["not listed" not in name for name in listed["path"].to_pylist()]))
    assert dry(path, listed) == {**dict.fromkeys(old, REMOVED), "stray": UNKNOWN}
    assert vacuum(Unlisted(path), VacuumRequest(inventory=listed), in_hours(WEEK + 1)).deleted == 2
    assert (on_disk(path), ids(path)) == (files_of(path) | {"not listed"}, [2])
    assert read_last_vacuum(LocalStore(path)) is None, "nobody knows whether all was listed"


def test_streams_of_batches_and_other_integers_do(path: str) -> None:
    append(path, 1)
    (Path(path) / "stray").write_bytes(b"x")
    listed = inventory_of(path).cast(pa.schema([*list(SCHEMA)[:1], ("length", pa.int32()), *list(SCHEMA)[2:]]))
    listed = listed.append_column("more", pa.nulls(listed.num_rows))
    reader = pa.RecordBatchReader.from_batches(listed.schema, listed.to_batches(max_chunksize=1))
    assert dry(path, reader) == {"stray": UNKNOWN}


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string_view())], ids=str)
def test_inventory_with_paths_in_any_layout_names_the_same_files(path: str, kind: pa.DataType) -> None:
    append(path, 1)
    (Path(path) / "stray").write_bytes(b"x")
    listed = inventory_of(path)
    paths = listed["path"].combine_chunks()
    if pa.types.is_dictionary(kind):
        path_column = pa.DictionaryArray.from_arrays(pa.array(range(len(paths)), pa.int32()), paths.cast(kind.value_type))
    else:
        path_column = paths.cast(kind)
    assert dry(path, listed.set_column(0, "path", path_column)) == {"stray": UNKNOWN}


def test_what_lies_elsewhere_is_young_or_says_too_little_stays(path: str, caplog: pytest.LogCaptureFixture) -> None:
    append(path, 1)
    append(f"{path}/inner/t", 5)
    listed = rows(
        ("stray", 1, False, 5),
        (f"{path}y/stray", 1, False, 5),
        (f"{path}/../stray", 1, False, 5),
        (f"{path}/_delta_log/{0:020}.json", 1, False, 5),
        (f"{path}/.hidden/x", 1, False, 5),
        (f"{path}/inner/t/{next(iter(files_of(path + '/inner/t')))}", 1, False, 5),
        (f"s3://bucket{path}/stray", 1, False, 5),
        (f"{path}/young", 1, False, in_hours(2)()),
        (f"{path}/twice", 1, False, 5),
        (f"{path}/twice", 1, False, in_hours(2)()),
        (f"{path}/timeless", 1, False, None),
        (f"{path}/directory", 1, True, 5),
        (f"{path}/unclear", 1, None, 5),
        (None, 1, False, 5),
        (f"{path}/goes", None, False, 5),
        (f"{path}/goes", 7, False, 6),
    )
    with caplog.at_level(logging.WARNING):
        removable = dry(path, listed, retention_hours=WEEK)
    assert removable == {"goes": UNKNOWN}
    assert "7 of the 16 rows of the inventory name no file below the table" in caplog.text
    assert "inner/t is a table of its own" in caplog.text


@pytest.mark.parametrize(
    "wrong",
    [
        SCHEMA.remove(0),
        SCHEMA.set(3, pa.field("modificationTime", pa.timestamp("ms"))),
        SCHEMA.set(2, pa.field("isDir", pa.string())),
        SCHEMA.append(pa.field("path", pa.string())),
        pa.schema([]),
    ],
)
def test_other_columns_are_refused(path: str, wrong: pa.Schema) -> None:
    append(path, 1)
    with pytest.raises(InvalidOptionError, match="path string, length bigint, isDir boolean, modificationTime bigint") as result:
        DeltaTable(path).vacuum(dry_run=False, inventory=wrong.empty_table())
    assert (result.value.error_class, DeltaTable(path).version) == ("DELTA_INVALID_INVENTORY_SCHEMA", 0)


def test_lite_has_none(path: str) -> None:
    append(path, 1)
    with pytest.raises(InvalidOptionError, match="leave out the inventory"):
        dry(path, rows(), kind=VacuumKind.LITE)


@pytest.mark.parametrize(
    ("root", "inside", "outside"),
    [
        ("s3://b/t", ["s3a://b/t/x", "s3://b/t/x"], ["s3://b/tt/x", "gs://b/t/x", "/b/t/x", "t/x"]),
        ("gs://b", ["gs://b/x"], ["gs://c/x"]),
        ("abfss://c@a.dfs.core.windows.net/t", ["abfs://c@a.dfs.core.windows.net/t/x"], ["abfs://c@b.dfs.core.windows.net/t/x"]),
        ("/t (1)", ["/t (1)/x", "file:/t (1)/x", "file://localhost/t (1)/x"], ["/t 1/x", "file://host/t (1)/x"]),
    ],
)
def test_paths_below_a_root(root: str, inside: list[str], outside: list[str]) -> None:
    paths = pa.array(inside + outside)
    assert pc.replace_substring_regex(paths, root_pattern(root), "").to_pylist() == ["x"] * len(inside) + outside
