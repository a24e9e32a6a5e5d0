"""Symlink manifests: their lines and places, what is deleted, updates after commits, and refusals."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.commit import symlink_manifests
from delta_py.commit.symlink_manifests import MANIFEST_DIRECTORY, write_manifests
from delta_py.copies.generate import generate
from delta_py.errors import ConcurrentWriteException, DeltaError, InvalidOptionError, UnsupportedOperationError
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.vacuum.vacuum import VacuumRequest, vacuum
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add

FOLLOWS = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}


def manifests(path: Path) -> dict[str, list[str]]:
    """The lines of each manifest by its directory."""
    root = path / MANIFEST_DIRECTORY
    return {
        str(file.parent.relative_to(root)): file.read_text().splitlines() for file in sorted(root.rglob("*")) if file.is_file()
    }


def expected(path: Path) -> dict[str, list[str]]:
    """The lines for the newest version's files; names of directories as the files have them."""
    lines: dict[str, list[str]] = {}
    for name in sorted(DeltaTable(str(path)).files()["path"].to_pylist()):
        lines.setdefault(str(Path(name).parent), []).append(f"file:{path}/{name}")
    return lines


def append(path: Path, days: list[Any], **options: Any) -> None:
    write_delta(str(path), pa.table({"id": list(range(len(days))), "day": days}), mode="append", partition_by=["day"], **options)


# ---------------------------------------------------------------- all of them


def test_unpartitioned_table_has_one_manifest_of_all_files(tmp_path: Path) -> None:
    for number in range(3):
        write_delta(str(tmp_path), pa.table({"id": [number]}), mode="append")
    assert DeltaTable(str(tmp_path)).generate() == 1
    text = (tmp_path / MANIFEST_DIRECTORY / "manifest").read_text()
    assert text.endswith("\n") and len(text.splitlines()) == 3
    assert manifests(tmp_path) == expected(tmp_path)


def test_a_table_without_files_has_a_manifest_without_lines(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": pa.array([], pa.int64())}))
    assert generate(LocalStore(str(tmp_path)), "Symlink_Format_Manifest") == 1
    assert manifests(tmp_path) == {".": []}


def test_manifest_directories_are_escaped_like_those_of_files(tmp_path: Path) -> None:
    append(tmp_path, ["2024-05-01", "a/b:c %", None, "é ü"])
    DeltaTable(str(tmp_path)).generate("symlink_format_manifest")
    actual_manifests = manifests(tmp_path)
    assert actual_manifests == expected(tmp_path)
    assert set(actual_manifests) == {"day=2024-05-01", "day=a%2Fb%3Ac %25", "day=__HIVE_DEFAULT_PARTITION__", "day=é ü"}


def test_files_at_absolute_paths_keep_them() -> None:
    store = MemoryStore()
    table = TableBuilder(store)
    table.commit(table.protocol(), table.metadata(), add("s3://other/t/a%20b.parquet"), add("file:/data/c%25d"), add("e%20f"))
    write_manifests(store)
    lines = store.read(f"{MANIFEST_DIRECTORY}/manifest").decode().splitlines()
    assert lines == ["file:/data/c%d", f"file:{store.root}/e f", "s3://other/t/a b.parquet"]


def test_generate_deletes_manifests_of_removed_partitions_only(tmp_path: Path) -> None:
    append(tmp_path, ["mon", "tue"])
    DeltaTable(str(tmp_path)).generate()
    for stray in (
        f"{MANIFEST_DIRECTORY}/day=mon/.manifest.crc",
        f"{MANIFEST_DIRECTORY}/day=mon/other",
        f"{MANIFEST_DIRECTORY}/manifest",
    ):
        (tmp_path / stray).write_text("x")
    write_delta(str(tmp_path), pa.table({"id": [9], "day": ["tue"]}), mode="overwrite")
    DeltaTable(str(tmp_path)).generate()
    (tmp_path / MANIFEST_DIRECTORY / "day=mon" / "other").unlink()  # nobody knows what it is
    assert manifests(tmp_path) == expected(tmp_path)


def test_checksums_that_hadoop_left_beside_a_manifest_go_with_it(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1]}))
    DeltaTable(str(tmp_path)).generate()
    (tmp_path / MANIFEST_DIRECTORY / ".manifest.crc").write_text("of the old one")
    DeltaTable(str(tmp_path)).generate()
    assert [file.name for file in (tmp_path / MANIFEST_DIRECTORY).iterdir()] == ["manifest"]


def test_generate_takes_the_newest_version(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1]}))
    old = DeltaTable(str(tmp_path))
    write_delta(str(tmp_path), pa.table({"id": [2]}), mode="append")
    old.generate()
    assert manifests(tmp_path) == expected(tmp_path)


def test_vacuum_leaves_manifests_alone(tmp_path: Path) -> None:
    append(tmp_path, ["mon", "tue"])
    DeltaTable(str(tmp_path)).generate()
    before = manifests(tmp_path)
    vacuum(LocalStore(str(tmp_path)), VacuumRequest(retention_hours=0, check_retention=False), lambda: 2**42)
    assert manifests(tmp_path) == before != {}


# ---------------------------------------------------------------- what is refused


def refused(path: Path, kind: type[DeltaError], condition: str, mode: str = "symlink_format_manifest") -> None:
    with pytest.raises(kind) as caught:
        DeltaTable(str(path)).generate(mode)
    assert caught.value.error_class == condition
    assert not (path / MANIFEST_DIRECTORY).exists()


def test_other_modes_are_refused(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1]}))
    refused(tmp_path, InvalidOptionError, "DELTA_MODE_NOT_SUPPORTED", "manifest")


def test_mapped_columns_are_refused(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1]}), configuration={"delta.columnMapping.mode": "name"})
    refused(tmp_path, UnsupportedOperationError, "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING")


def with_vectors(path: Path) -> None:
    write_delta(str(path), pa.table({"id": list(range(9))}), configuration={"delta.enableDeletionVectors": "true"})
    write_delta(str(path), pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", replace_where="id = 3")
    assert DeltaTable(str(path)).files()["deletion_vector"].null_count == 0


def test_deletion_vectors_are_refused_as_long_as_a_file_has_one(tmp_path: Path) -> None:
    with_vectors(tmp_path)
    refused(tmp_path, UnsupportedOperationError, "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS")
    DeltaTable(str(tmp_path)).optimize.compact(max_deleted_ratio=0)
    DeltaTable(str(tmp_path)).generate()
    assert manifests(tmp_path) == expected(tmp_path)


def test_line_breaks_in_names_are_refused() -> None:
    store = MemoryStore()
    table = TableBuilder(store)
    table.commit(table.protocol(), table.metadata(), add("a%0Ab"))
    with pytest.raises(UnsupportedOperationError, match="line break"):
        write_manifests(store)


def test_property_and_deletion_vectors_exclude_each_other(tmp_path: Path) -> None:
    both = {**FOLLOWS, "delta.enableDeletionVectors": "true"}
    with pytest.raises(UnsupportedOperationError) as at_creation:
        write_delta(str(tmp_path), pa.table({"id": [1]}), configuration=both)
    assert at_creation.value.error_class.endswith(".PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION")
    with_vectors(tmp_path)
    with pytest.raises(UnsupportedOperationError) as later:
        set_properties(LocalStore(str(tmp_path)), {**FOLLOWS, "delta.enableDeletionVectors": "false"})
    assert later.value.error_class.endswith(".EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION")


# ---------------------------------------------------------------- behind commits


def written_by(path: Path, work: Any) -> set[str]:
    """The manifests that the work has written."""
    before = {file: file.stat().st_mtime_ns for file in (path / MANIFEST_DIRECTORY).rglob("manifest")}
    work()
    after = {file: file.stat().st_mtime_ns for file in (path / MANIFEST_DIRECTORY).rglob("manifest")}
    return {file.parent.name for file, time in after.items() if before.get(file) != time}


def test_commits_write_manifests_of_the_changed_partitions(tmp_path: Path) -> None:
    append(tmp_path, ["mon", "tue"], configuration=FOLLOWS)
    assert manifests(tmp_path) == expected(tmp_path)
    assert written_by(tmp_path, lambda: append(tmp_path, ["tue", "wed"])) == {"day=tue", "day=wed"}
    assert manifests(tmp_path) == expected(tmp_path)
    no_rows = pa.table({"id": pa.array([], pa.int64()), "day": pa.array([], pa.string())})
    assert (
        written_by(tmp_path, lambda: write_delta(str(tmp_path), no_rows, mode="overwrite", replace_where="day = 'mon'")) == set()
    )
    assert manifests(tmp_path) == expected(tmp_path)
    assert written_by(tmp_path, DeltaTable(str(tmp_path)).optimize.compact) == {"day=tue"}
    assert manifests(tmp_path) == expected(tmp_path) and len(expected(tmp_path)) == 2


def test_property_writes_manifests_for_existing_files(tmp_path: Path) -> None:
    append(tmp_path, ["mon", "tue"])
    set_properties(LocalStore(str(tmp_path)), FOLLOWS)
    assert manifests(tmp_path) == expected(tmp_path)
    set_properties(LocalStore(str(tmp_path)), {"delta.compatibility.symlinkFormatManifest.enabled": "false"})
    append(tmp_path, ["wed"])
    assert len(manifests(tmp_path)) == 2


def test_another_partitioning_takes_the_old_manifests_away(tmp_path: Path) -> None:
    append(tmp_path, ["mon"], configuration=FOLLOWS)
    rows = pa.table({"id": [1], "day": ["mon"]})
    write_delta(str(tmp_path), rows, mode="overwrite", overwrite_schema=True, partition_by=["id"])
    assert manifests(tmp_path) == expected(tmp_path)
    assert list(manifests(tmp_path)) == ["id=1"]


def test_commits_without_files_write_no_manifests(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1]}), configuration=FOLLOWS)
    request = VacuumRequest(retention_hours=0, check_retention=False)
    assert written_by(tmp_path, lambda: vacuum(LocalStore(str(tmp_path)), request)) == set()


def test_a_commit_whose_manifests_fail_stands_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, harmless_post_commit: None
) -> None:
    append(tmp_path, ["mon"], configuration=FOLLOWS)

    def fail(*_: Any) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(symlink_manifests, "_write_snapshot", fail)
    with caplog.at_level(logging.WARNING):
        append(tmp_path, ["tue"])
    assert "version 1 is committed, but its symlink manifests are not up to date" in caplog.text
    monkeypatch.undo()
    assert DeltaTable(str(tmp_path)).version == 1
    append(tmp_path, ["mon"])
    assert set(manifests(tmp_path)) == {"day=mon"}, "of the partitions that the commit changed"
    DeltaTable(str(tmp_path)).generate()
    assert manifests(tmp_path) == expected(tmp_path)


# ---------------------------------------------------------------- beside other writers


def test_manifests_of_an_older_version_are_rewritten_by_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(tmp_path, ["mon"], configuration=FOLLOWS)
    original, other_days = symlink_manifests._write_snapshot, [["mon"], ["tue"]]

    def late(snapshot: Snapshot, directories: frozenset[str] | None) -> Any:
        if other_days:
            days = other_days.pop()
            monkeypatch.setattr(symlink_manifests, "_write_snapshot", original)
            append(tmp_path, days)  # another writer, which finishes before us
            monkeypatch.setattr(symlink_manifests, "_write_snapshot", late)
        return original(snapshot, directories)

    monkeypatch.setattr(symlink_manifests, "_write_snapshot", late)
    append(tmp_path, ["mon"])
    assert manifests(tmp_path) == expected(tmp_path)
    assert DeltaTable(str(tmp_path)).version == 3 and not other_days


def test_writers_that_never_stop_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1]}))
    original = symlink_manifests._write_snapshot

    def overtaken(snapshot: Snapshot, directories: frozenset[str] | None) -> Any:
        write_delta(str(tmp_path), pa.table({"id": [1]}), mode="append")
        return original(snapshot, directories)

    monkeypatch.setattr(symlink_manifests, "_write_snapshot", overtaken)
    with pytest.raises(ConcurrentWriteException, match="not up to date"):
        DeltaTable(str(tmp_path)).generate()
