"""Tables whose commits a ledger ratifies: for their users they are like other tables, and nobody can open them without it."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.alter.drop_feature import drop_feature
from delta_py.checkpoint.cleanup import clean_log
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.copies.restore import restore
from delta_py.definition.create import define_table
from delta_py.definition.replace import build_table
from delta_py.errors import (
    CorruptTableError,
    DeltaError,
    LogFileNotFoundError,
    StorageError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_py.log.history import history
from delta_py.log.log_writer import LogWriter
from delta_py.object_stores.open_store import coordination_of
from delta_py.repair.fsck import fsck
from delta_py.storage.coordinated import CoordinatedStore, place_of, root_of
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.types.schema import STRING, StructField, StructType
from tests.support.stores.coordination import MANAGED, coordinated, create_coordinated, ledger_url, rows_of

pytestmark = pytest.mark.usefixtures("publication_at_once")

PATH_BLOCKED = "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ledger_url(tmp_path)


@pytest.fixture
def path(tmp_path: Path, url: str) -> Path:
    create_coordinated(tmp_path / "t", url, {"id": [0]})
    return tmp_path / "t"


def append(path: Path, url: str, *ids: int) -> int:
    return write_delta(str(path), pa.table({"id": ids}), mode="append", store=coordinated(path, url))


def without_publication(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CoordinatedStore, "publish", lambda self: None)


def names(path: Path, directory: str = "_delta_log") -> list[str]:
    return sorted(file.name for file in (path / directory).iterdir() if file.name.endswith(".json"))


def test_table_of_a_coordinator_is_written_and_read_like_others(path: Path, url: str) -> None:
    assert [append(path, url, number) for number in range(1, 12)] == list(range(1, 12))
    table = DeltaTable(str(path), store=coordinated(path, url))
    table.snapshot.check_integrity()
    assert table.version == 11 and rows_of(path, url) == list(range(12))
    assert names(path, "_delta_log/_staged_commits") == []
    assert len([name for name in names(path) if name.count(".") == 1]) == 12
    assert (path / "_delta_log/00000000000000000010.checkpoint.parquet").exists()
    assert {"catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"} <= set(table.snapshot.config.features)
    assert table.snapshot.config.enabled("inCommitTimestamp")
    assert history(coordinated(path, url))["version"].to_pylist() == list(range(11, -1, -1))


def test_table_is_refused_without_its_coordinator(path: Path, url: str, tmp_path: Path) -> None:
    other = ledger_url(tmp_path / "..").replace("ledger.db", f"{tmp_path.name}-other.db")
    for store in (LocalStore(str(path)), coordinated(path, other)):
        with pytest.raises(DeltaError, match=PATH_BLOCKED):
            DeltaTable(str(path), store=store)
        with pytest.raises(DeltaError, match=PATH_BLOCKED):
            write_delta(str(path), pa.table({"id": [1]}), mode="append", store=store)
    assert names(path) == ["00000000000000000000.json"]


def test_table_of_another_catalog_is_refused_by_name(path: Path, url: str) -> None:
    commit = path / "_delta_log/00000000000000000000.json"
    commit.write_bytes(commit.read_bytes().replace(b"pydelta.coordinator", b"acme.coordinator"))
    (path / "_delta_log/00000000000000000000.crc").unlink()
    with pytest.raises(DeltaError, match=f"{PATH_BLOCKED}.*through its catalog"):
        DeltaTable(str(path), store=coordinated(path, url))


def test_table_without_a_named_coordinator_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match=rf"{PATH_BLOCKED}.*spark\.pydelta\.coordinator"):
        write_delta(str(tmp_path / "t"), pa.table({"id": [1]}), configuration=MANAGED)
    with pytest.raises(TableNotFoundError):
        DeltaTable(str(tmp_path / "t"))


def test_coordinator_option_leaves_ordinary_tables_unchanged(tmp_path: Path, url: str) -> None:
    path = tmp_path / "plain"
    for number in range(3):
        write_delta(str(path), pa.table({"id": [number]}), mode="append", store=coordinated(path, url))
    assert sorted(DeltaTable(str(path)).to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert open_ledger(url).tail(place_of(str(path))) is None


def test_table_that_is_there_comes_to_a_coordinator(tmp_path: Path, url: str) -> None:
    path = tmp_path / "plain"
    for number in range(3):
        write_delta(str(path), pa.table({"id": [number]}), mode="append")
    assert set_properties(coordinated(path, url), MANAGED) == 3
    assert append(path, url, 3) == 4
    tail = open_ledger(url).tail(place_of(str(path)))
    assert tail is not None and tail.version == 4
    assert DeltaTable(str(path), version=1, store=coordinated(path, url)).to_arrow().num_rows == 2
    times = history(coordinated(path, url))["timestamp"].to_pylist()
    assert times == sorted(times, reverse=True) and len(set(times)) == 5
    with pytest.raises(DeltaError, match=PATH_BLOCKED):
        DeltaTable(str(path))


def test_table_leaves_its_coordinator_with_all_commits(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        without_publication(coordinated(path, url), patched)
        append(path, url, 1)
    drop_feature(coordinated(path, url), "catalogManaged")
    assert sorted(DeltaTable(str(path)).to_arrow()["id"].to_pylist()) == [0, 1]
    assert "pydelta.coordinator" not in DeltaTable(str(path)).metadata.configuration
    assert rows_of(path, url) == [0, 1]
    assert open_ledger(url).tail(place_of(str(path))) is None, "the ledger has forgotten it"
    write_delta(str(path), pa.table({"id": [2]}), mode="append")
    assert append(path, url, 3) == DeltaTable(str(path)).version
    assert rows_of(path, url) == [0, 1, 2, 3]


def test_ratified_commits_are_read_before_they_are_published(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        without_publication(coordinated(path, url), patched)
        for number in range(1, 4):
            append(path, url, number)
    assert names(path) == ["00000000000000000000.json"] and len(names(path, "_delta_log/_staged_commits")) == 3
    reader = coordinated(path, url)
    assert rows_of(path, url) == [0, 1, 2, 3]
    assert DeltaTable(str(path), version=2, store=reader).to_arrow().num_rows == 3
    table = pickle.loads(pickle.dumps(DeltaTable(str(path), store=reader).snapshot))
    append(path, url, 4)  # publishes all of them
    assert len(names(path)) == 5 and names(path, "_delta_log/_staged_commits") == []
    table.check_integrity()  # the file that was listed as staged is at its place by now
    assert rows_of(path, url) == [0, 1, 2, 3, 4]


def test_checkpoint_of_what_is_not_published_is_not_written(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_publication(coordinated(path, url), monkeypatch)
    append(path, url, 1)
    table = DeltaTable(str(path), store=coordinated(path, url))
    with pytest.raises(StorageError, match="not yet published"):
        table.checkpoint()
    assert not list((path / "_delta_log").glob("*.checkpoint.parquet"))


def test_commit_that_nobody_ratified_does_not_count(path: Path, url: str) -> None:
    append(path, url, 1)
    log = path / "_delta_log"
    rogue = (log / "00000000000000000001.json").read_bytes()
    (log / "00000000000000000002.json").write_bytes(rogue)
    (log / "_staged_commits" / "00000000000000000002.00000000-0000-0000-0000-000000000000.json").write_bytes(rogue)
    assert DeltaTable(str(path), store=coordinated(path, url)).version == 1
    for _ in range(2):
        with pytest.raises(CorruptTableError, match="is no commit that the coordinator"):
            append(path, url, 2)
    assert rows_of(path, url) == [0, 1], "nothing was ratified"
    (log / "00000000000000000002.json").unlink()
    assert append(path, url, 2) == 2


def test_old_ledger_backup_deletes_no_file_and_says_why(path: Path, url: str) -> None:
    append(path, url, 1)
    with sqlite3.connect(url.removeprefix("sqlite://")) as ledger, sqlite3.connect(path.parent / "backup.db") as backup:
        ledger.backup(backup)
    append(path, url, 2)
    old = url.replace("ledger.db", "backup.db")
    for operation in (
        lambda: append(path, old, 3),  # version 2 is known to be ratified here
        lambda: append(path, old, 3),
        lambda: DeltaTable(str(path), store=coordinated(path, old)).vacuum(0, dry_run=False, enforce_retention_duration=False),
    ):
        with pytest.raises(CorruptTableError, match=r"restored from a backup.*rebuild_ledger"):
            operation()
    assert rows_of(path, url) == [0, 1, 2]


def test_newest_commit_that_was_published_and_lost_is_missed(path: Path, url: str) -> None:
    assert (append(path, url, 1), append(path, url, 2)) == (1, 2)
    lost = path / "_delta_log/00000000000000000002.json"
    data = lost.read_bytes()
    lost.unlink()
    with pytest.raises(LogFileNotFoundError, match="has ratified version 2 of the table"):
        DeltaTable(str(path), store=coordinated(path, url))
    with pytest.raises(LogFileNotFoundError):
        append(path, url, 3)
    assert DeltaTable(str(path), version=1, store=coordinated(path, url)).to_arrow()["id"].to_pylist() == [1, 0]
    (fault,) = fsck(coordinated(path, url)).to_pylist()
    assert (fault["kind"], fault["path"]) == ("commit", "_delta_log/00000000000000000002.json")
    lost.write_bytes(data)
    assert append(path, url, 3) == 3 and rows_of(path, url) == [0, 1, 2, 3]


def test_commit_ratified_after_the_listing_is_not_missed(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store, listed = coordinated(path, url), CoordinatedStore.list_from

    def then_others_write(self: CoordinatedStore, *where: str) -> Iterator[ObjectInfo]:
        listed_files = list(listed(self, *where))
        if self is coordination_of(store):
            monkeypatch.setattr(CoordinatedStore, "list_from", listed)
            append(path, url, 1)
            self.tail()
        return iter(listed_files)

    monkeypatch.setattr(CoordinatedStore, "list_from", then_others_write)
    assert DeltaTable(str(path), store=store).version == 0
    assert DeltaTable(str(path), store=store).version == 1


def test_place_of_a_deleted_table_must_be_forgotten_first(path: Path, url: str) -> None:
    shutil.rmtree(path)
    with pytest.raises(StorageError, match="forget"):
        write_delta(str(path), pa.table({"id": [1]}), store=coordinated(path, url), configuration=MANAGED)
    coordination = coordination_of(coordinated(path, url))
    assert coordination is not None
    coordination.ledger.forget(coordination.place)
    create_coordinated(path, url, {"id": [5]})
    assert rows_of(path, url) == [5]


def test_only_checksums_of_coordinated_tables_are_synced_to_disk(
    path: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def watched(descriptor: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", watched)
    append(path, url, 1)
    assert any(".crc." in name for name in synced)
    synced.clear()
    write_delta(str(tmp_path / "plain"), pa.table({"id": [1]}))
    assert any(".json." in name for name in synced) and not any(".crc." in name for name in synced)


def test_coordinator_forgets_a_deleted_table_but_no_existing_one(path: Path, url: str) -> None:
    coordination = coordination_of(coordinated(path, url))
    assert coordination is not None
    coordination.forget_deleted()
    assert coordination.tail() is not None and append(path, url, 1) == 1
    shutil.rmtree(path)
    coordination.forget_deleted()
    assert coordination.tail() is None
    create_coordinated(path, url, {"id": [5]})
    assert rows_of(path, url) == [5]


def test_orphan_staged_commits_are_deleted_with_the_old_log(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = coordinated(path, url)
    with monkeypatch.context() as patched:
        without_publication(store, patched)
        append(path, url, 1)
    orphan = path / "_delta_log/_staged_commits/00000000000000000002.dead.json"
    orphan.write_bytes(b"{}")
    snapshot = DeltaTable(str(path), store=store).snapshot
    for days, left in ((6, 2), (8, 1)):
        now_ms = int(orphan.stat().st_mtime * 1000) + days * 86_400_000
        clean_log(store, LogWriter(store, snapshot.config), snapshot.config, now_ms=now_ms)
        assert len(names(path, "_delta_log/_staged_commits")) == left
    assert rows_of(path, url) == [0, 1]


def test_link_to_a_table_is_that_table_and_a_copy_is_refused(path: Path, url: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    assert append(tmp_path / "link", url, 1) == 1
    assert append(path, url, 2) == 2
    assert rows_of(tmp_path / "link", url) == rows_of(path, url) == [0, 1, 2]
    shutil.copytree(path, tmp_path / "copy")
    with pytest.raises(UnsupportedOperationError, match=f"knows it as {path}"):
        append(tmp_path / "copy", url, 3)


def test_table_that_has_left_is_not_taken_back_by_who_is_late(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ledger = tmp_path / "late", open_ledger(url)
    write_delta(str(path), pa.table({"id": [0]}), store=coordinated(path, url), configuration=MANAGED)
    register = ledger.register

    def others_first(*table: Any) -> None:
        monkeypatch.setattr(ledger, "register", register)
        append(path, url, 1)
        drop_feature(coordinated(path, url), "catalogManaged")
        assert append(path, url, 2) and ledger.tail(place_of(str(path))) is None
        register(*table)

    monkeypatch.setattr(ledger, "register", others_first)
    assert rows_of(path, url) == rows_of(path, url) == [0, 1, 2]
    assert ledger.tail(place_of(str(path))) is None


def test_table_that_has_left_is_not_taken_back_by_time_travel(path: Path, url: str) -> None:
    drop_feature(coordinated(path, url), "catalogManaged")
    assert rows_of(path, url) == [0]
    assert DeltaTable(str(path), version=0, store=coordinated(path, url)).to_arrow().num_rows == 1
    write_delta(str(path), pa.table({"id": [1]}), mode="append")
    assert rows_of(path, url) == [0, 1]
    restored = restore(coordinated(path, url), version=0)
    assert restored.version and sorted(DeltaTable(str(path)).to_arrow()["id"].to_pylist()) == [0]


def test_plain_table_at_the_place_of_a_deleted_one_is_refused(path: Path, url: str) -> None:
    shutil.rmtree(path)
    for number in range(3):
        write_delta(str(path), pa.table({"id": [number]}), mode="append")
    with pytest.raises(UnsupportedOperationError, match="knows another table at that place"):
        DeltaTable(str(path), store=coordinated(path, url))


def test_table_is_replaced_and_keeps_its_coordinator(path: Path, url: str) -> None:
    build_table(coordinated(path, url), "createOrReplace", define_table(StructType((StructField("y", STRING),))))
    assert DeltaTable(str(path), store=coordinated(path, url)).to_arrow().num_rows == 0
    write_delta(str(path), pa.table({"x": ["a"]}), mode="overwrite", overwrite_schema=True, store=coordinated(path, url))
    metadata = DeltaTable(str(path), store=coordinated(path, url)).metadata
    assert metadata.configuration["pydelta.coordinator"] == open_ledger(url).identity
    with pytest.raises(UnsupportedOperationError, match="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"):
        set_properties(coordinated(path, url), {"delta.enableInCommitTimestamps": "false"})


@pytest.mark.parametrize(
    ("root", "place"),
    [
        ("/data/t", "/data/t"),
        ("s3a://bucket/a/t/", "s3://bucket/a/t"),
        ("s3://bucket/a/t", "s3://bucket/a/t"),
        ("abfss://c@acc.dfs.core.windows.net/t", "az://c@acc/t"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("az://c/t", "az://c/t"),
        ("abfss://c@acc.dfs.core.chinacloudapi.cn/a/t", "az://c@acc.core.chinacloudapi.cn/a/t"),
    ],
)
def test_spellings_of_a_url_are_one_place(root: str, place: str) -> None:
    assert place_of(root) == place
    assert place_of(root_of(place)) == place
