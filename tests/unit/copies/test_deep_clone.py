"""Deep clones: copies of the source's files, made once; what they keep of the source; and what a run that died leaves."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import add_feature
from delta_py.alter.drop_feature import drop_feature
from delta_py.commit.row_count_check import highest_assigned_row_id
from delta_py.copies.clone import clone_table
from delta_py.copies.deep_clone import DeepClone, deep_clone
from delta_py.errors import DataFileError, DeltaConcurrentModificationException, DeltaError, StorageError
from delta_py.object_stores.open_store import open_store
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.paths import encode_path
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.write.file_copies import Copy, copy_files
from tests.support.stores.memory_store import MemoryStore

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
    "team": "a",
}
NONE = pa.table({"id": pa.array([], pa.int64()), "day": pa.array([], pa.string())})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "day": ["a b/%" if n % 2 else "_mon" for n in ids]})


@pytest.fixture
def source(tmp_path: Path) -> ObjectStore:
    """Partitioned by day, rows 1 3 4; a deletion vector deletes row 2; rows have ids; columns are mapped."""
    path = str(tmp_path / "the source%20")
    write_delta(path, rows(1, 2, 4), partition_by=["day"], configuration=PROPERTIES)
    write_delta(path, NONE, mode="overwrite", replace_where="id = 2")
    write_delta(path, rows(3), mode="append")
    return open_store(path)


@pytest.fixture
def target(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "clone"))


class Counted:
    """CopyAll that records its requests."""

    def __init__(self) -> None:
        self.copies: list[str] = []

    def __call__(self, source: ObjectStore, target: ObjectStore, copies: Any) -> None:
        self.copies += [copy["source_path"] for copy in copies]
        copy_files(source, target, copies)


def clone(source: ObjectStore, target: ObjectStore, version: int | None = None, **options: Any) -> tuple[dict[str, Any], int]:
    """The result of deep_clone, and the number of files that it copied."""
    counted = Counted()
    result = deep_clone(Snapshot.load(source, version=version), target, copy_all=counted, **options)
    return result, len(counted.copies)


def tracked(store: ObjectStore) -> list[tuple[Any, ...]]:
    """Rows with their ids and the versions that changed them."""
    snapshot = Snapshot.load(store)
    scan = plan_scan(snapshot, [*snapshot.schema.names, "_metadata"], None, ScanOptions(metadata_column=True))
    tracked_rows = [row for batch in read_files(scan.state, scan.scan_files()) for row in batch.to_pylist()]
    return sorted((r["id"], r["day"], r["_metadata"]["row_id"], r["_metadata"]["row_commit_version"]) for r in tracked_rows)


def ids(store: ObjectStore) -> list[int]:
    return sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist())


def own_files(store: ObjectStore) -> set[str]:
    return {info.path for info in store.list_recursive("") if not info.path.startswith("_delta_log/")}


def test_clone_is_a_table_of_its_own(source: ObjectStore, target: ObjectStore) -> None:
    before, expected = Snapshot.load(source), tracked(source)
    result, copied = clone(source, target, properties={"team": "b"})
    assert (result["version"], copied) == (0, 4)  # three data files and one of a vector
    files = Snapshot.load(target).files().to_pylist()
    assert {file["path"] for file in files} <= own_files(target) and len(own_files(target)) == 4
    assert result["metrics"] == {
        "sourceTableSize": sum(file["size"] for file in files),
        "sourceNumOfFiles": 3,
        "numRemovedFiles": 0,
        "numCopiedFiles": 3,
        "removedFilesSize": 0,
        "copiedFilesSize": sum(file["size"] for file in files),
    }
    entry = DeltaTable(target.root).history().to_pylist()[0]
    parameters = dict(entry["operationParameters"])
    assert (entry["operation"], parameters["isShallow"], parameters["sourceVersion"]) == ("CLONE", "false", "2")
    assert parameters["sourceTableId"] == before.metadata.id
    shutil.rmtree(source.root)
    snapshot = Snapshot.load(target)
    assert tracked(target) == expected
    assert (snapshot.metadata.configuration["team"], snapshot.metadata.partition_columns) == ("b", ("day",))
    assert snapshot.schema == before.schema and snapshot.metadata.id != before.metadata.id
    write_delta(target.root, rows(5), mode="append")
    assert len({row_id for _, _, row_id, _ in tracked(target)}) == 4
    assert DeltaTable(target.root).fsck().num_rows == 0


def test_second_clone_copies_only_what_is_new(source: ObjectStore, target: ObjectStore) -> None:
    clone(source, target)
    copied_files = own_files(target)
    assert clone(source, target, replace_table=True)[1] == 0
    write_delta(source.root, rows(7), mode="append")
    write_delta(source.root, NONE, mode="overwrite", replace_where="id = 3")  # a whole file
    write_delta(target.root, rows(100), mode="append")
    result, copied = clone(source, target, replace_table=True)
    assert (copied, result["metrics"]["numCopiedFiles"], result["metrics"]["numRemovedFiles"]) == (1, 1, 2)
    assert tracked(target) == tracked(source)
    assert len(own_files(target) - copied_files) == 2
    Snapshot.load(target).check_integrity()


def test_rows_that_were_deleted_since_need_no_data_file_again(source: ObjectStore, target: ObjectStore) -> None:
    write_delta(source.root, rows(*range(11, 31, 2)), mode="append")
    clone(source, target)
    write_delta(source.root, NONE, mode="overwrite", replace_where="id IN (13, 15)")
    counted = Counted()
    result = deep_clone(Snapshot.load(source), target, replace_table=True, copy_all=counted)
    assert [path.rpartition("/")[2].split("_")[0] for path in counted.copies] == ["deletion"]
    assert (result["metrics"]["numCopiedFiles"], result["metrics"]["numRemovedFiles"]) == (0, 0)
    assert tracked(target) == tracked(source)
    Snapshot.load(target).check_integrity()


def test_what_the_target_changed_by_itself_is_undone(source: ObjectStore, target: ObjectStore) -> None:
    clone(source, target)
    write_delta(target.root, NONE, mode="overwrite", replace_where="id = 4")
    DeltaTable(target.root).optimize.compact()
    clone(source, target, replace_table=True)
    assert tracked(target) == tracked(source)
    assert DeltaTable(target.root).fsck().num_rows == 0


def test_files_of_another_table_are_never_taken_for_copies(tmp_path: Path, target: ObjectStore) -> None:
    """Two tables with files of the same names, sizes and times, but with different numbers in them."""
    sources = []
    for number in (1, 2):
        store = MemoryStore(root=f"/memory/{number}")
        write_delta(store.root, pa.table({"id": pa.array([number], pa.int64())}), store=store)
        sources.append(store)
    (name,), (other,) = (Snapshot.load(store).files()["path"].to_pylist() for store in sources)
    text = sources[1].objects[f"_delta_log/{0:020d}.json"][0].replace(other.encode(), name.encode())
    time_of = {store.root: Snapshot.load(store).files()["modification_time"][0].as_py() for store in sources}
    text = text.replace(str(time_of["/memory/2"]).encode(), str(time_of["/memory/1"]).encode())
    sources[1].objects[f"_delta_log/{0:020d}.json"] = (text, sources[1].now_ms)
    sources[1].objects[name] = sources[1].objects.pop(other)
    assert len(sources[1].objects[name][0]) == len(sources[0].objects[name][0])
    for number, store in enumerate(sources, 1):
        clone(store, target, replace_table=True)
        assert ids(target) == [number]


def test_clone_of_an_older_version_and_back(source: ObjectStore, target: ObjectStore) -> None:
    clone(source, target, version=0)
    assert ids(target) == [1, 2, 4]
    clone(source, target, replace_table=True)
    assert (ids(target), clone(source, target, version=0, replace_table=True)[1]) == ([1, 3, 4], 0)
    assert ids(target) == [1, 2, 4]


def test_deep_clone_of_a_shallow_clone_copies_the_source_files(
    source: ObjectStore, target: ObjectStore, tmp_path: Path
) -> None:
    shallow = open_store(str(tmp_path / "shallow"))
    clone_table(Snapshot.load(source), shallow)
    write_delta(shallow.root, NONE, mode="overwrite", replace_where="id = 4")
    expected = tracked(shallow)
    clone(shallow, target)
    shutil.rmtree(source.root)
    shutil.rmtree(shallow.root)
    assert tracked(target) == expected


def test_stores_of_other_kinds(source: ObjectStore) -> None:
    target, back = MemoryStore(root="/memory/clone"), MemoryStore(root="/memory/back")
    clone(source, target)
    clone(target, back)
    assert tracked(back) == tracked(target) == tracked(source)


def test_target_that_is_there_is_replaced_only_when_asked(source: ObjectStore, target: ObjectStore) -> None:
    write_delta(target.root, pa.table({"x": [1]}))
    with pytest.raises(DeltaError, match="DELTA_TABLE_ALREADY_EXISTS"):
        clone(source, target)
    assert (Snapshot.load(target).version, len(own_files(target))) == (0, 1)
    table_id = Snapshot.load(target).metadata.id
    result, _ = clone(source, target, replace_table=True)
    assert (result["version"], result["metrics"]["numRemovedFiles"], Snapshot.load(target).metadata.id) == (1, 1, table_id)
    assert DeltaTable(target.root, version=0).to_arrow().to_pylist() == [{"x": 1}]


def test_own_place_and_other_files_are_refused(source: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x.parquet").write_text("x")
    for path in (source.root, str(tmp_path / "full")):
        with pytest.raises(DeltaError):
            clone(source, open_store(path), replace_table=True)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["x.parquet"]


def test_run_that_died_is_gone_on_with(source: ObjectStore, target: ObjectStore) -> None:
    def die_after_two(source: ObjectStore, target: ObjectStore, copies: Any) -> None:
        copy_files(source, target, copies[:2])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deep_clone(Snapshot.load(source), target, copy_all=die_after_two)
    (Path(target.root) / f"{next(iter(own_files(target)))}.{'0' * 32}.part").write_text("half")
    result, copied = clone(source, target)
    assert (copied, result["metrics"]["numCopiedFiles"]) == (2, 3)
    assert tracked(target) == tracked(source)


def test_old_copies_that_nothing_names_are_made_anew(source: ObjectStore, target: ObjectStore) -> None:
    """VACUUM may be about to delete them."""
    copies = DeepClone(Snapshot.load(source), target, None).find_missing_copies().to_pylist()
    copy_files(source, target, copies)
    old = time.time() - 4 * 86_400
    for copy in copies[:2]:
        os.utime(Path(target.root) / copy["path"], (old, old))
    assert clone(source, target)[1] == 2


def test_copy_that_is_cut_short_is_made_anew(source: ObjectStore, target: ObjectStore) -> None:
    copies: list[Copy] = DeepClone(Snapshot.load(source), target, None).find_missing_copies().to_pylist()
    copy_files(source, target, copies)
    for copy in copies:
        file = Path(target.root) / copy["path"]
        file.write_bytes(file.read_bytes()[:-1])
    assert clone(source, target)[1] == 4
    assert tracked(target) == tracked(source)


@pytest.mark.parametrize("what", ["*.parquet", "deletion_vector*"])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_source_that_lacks_a_file_is_not_cloned(source: ObjectStore, target: ObjectStore, what: str, damage: str) -> None:
    live = set(Snapshot.load(source).files()["path"].to_pylist())
    data_files = [file for file in Path(source.root).rglob(what) if "_delta_log" not in str(file)]
    file = next(file for file in data_files if what != "*.parquet" or str(file.relative_to(source.root)) in live)
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(data[:-1])
    with pytest.raises(DataFileError, match="The target is as it was"):
        clone(source, target)
    with pytest.raises(DeltaError, match="DELTA_MISSING_DELTA_TABLE"):
        Snapshot.load(target)
    file.write_bytes(data)
    assert clone(source, target)[1] < 4
    assert tracked(target) == tracked(source)


def test_copies_that_vanish_before_the_commit_are_an_error(source: ObjectStore, target: ObjectStore) -> None:
    def lose_one(source: ObjectStore, target: ObjectStore, copies: Any) -> None:
        copy_files(source, target, copies)
        target.delete(copies[0]["path"])

    with pytest.raises(StorageError, match="are gone"):
        deep_clone(Snapshot.load(source), target, copy_all=lose_one)
    clone(source, target)
    assert tracked(target) == tracked(source)


def test_deep_clone_conflicts_with_an_append_to_its_target(source: ObjectStore, target: ObjectStore) -> None:
    clone(source, target, version=0)

    def append_too(source: ObjectStore, target: ObjectStore, copies: Any) -> None:
        copy_files(source, target, copies)
        write_delta(target.root, rows(50), mode="append")

    with pytest.raises(DeltaConcurrentModificationException):
        deep_clone(Snapshot.load(source), target, replace_table=True, copy_all=append_too)
    assert ids(target) == [1, 2, 4, 50]


def test_names_in_the_source_cannot_reach_into_the_targets_log(source: ObjectStore, target: ObjectStore) -> None:
    (name, *_) = Snapshot.load(source).files()["path"].to_pylist()
    shutil.move(f"{source.root}/{name}", f"{source.root}/_delta_log/{0:020d}.checkpoint.parquet.x")
    commit = Path(source.root) / f"_delta_log/{2:020d}.json"
    text = commit.read_text()
    assert encode_path(name) in text
    commit.write_text(text.replace(encode_path(name), f"_delta_log/{0:020d}.checkpoint.parquet.x"))
    clone(source, target)
    assert tracked(target) == tracked(source)
    assert not any("checkpoint" in info.path for info in target.list_recursive("_delta_log"))


def test_table_method_clones_a_version(source: ObjectStore, tmp_path: Path) -> None:
    old = DeltaTable(source.root, version=0)
    deep = old.clone(str(tmp_path / "deep"), properties={"team": "c"})
    shallow = old.clone(str(tmp_path / "shallow"), shallow=True)
    assert sorted(deep.to_arrow()["id"].to_pylist()) == sorted(shallow.to_arrow()["id"].to_pylist()) == [1, 2, 4]
    assert deep.metadata.configuration["team"] == "c"
    assert len(own_files(LocalStore(str(tmp_path / "shallow")))) == 0


STEPS = ("append", "delete", "compact", "purge", "target append", "target compact", "clone")


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(STEPS), max_size=8))
def test_clone_is_what_the_source_is_whatever_happened_before(steps: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.mktemp("steps")
    source, target = open_store(str(base / "source")), open_store(str(base / "target"))
    write_delta(source.root, rows(*range(6)), partition_by=["day"], configuration=PROPERTIES)
    clone(source, target)
    for number, step in enumerate(steps, 1):
        match step:
            case "append":
                write_delta(source.root, rows(*range(10 * number, 10 * number + 4)), mode="append")
            case "delete":
                write_delta(source.root, NONE, mode="overwrite", replace_where=f"id % 7 = {number % 7}")
            case "compact":
                DeltaTable(source.root).optimize.compact()
            case "purge":
                DeltaTable(source.root).reorg.purge()
            case "target append":
                write_delta(target.root, rows(1000 + number), mode="append")
            case "target compact":
                DeltaTable(target.root).optimize.compact()
            case "clone":
                clone(source, target, replace_table=True)
    clone(source, target, replace_table=True)
    assert tracked(target) == tracked(source)
    Snapshot.load(target).check_integrity()
    assert clone(source, target, replace_table=True)[1] == 0


def test_repeated_clone_restores_row_ids_that_its_target_dropped(source: ObjectStore, target: ObjectStore) -> None:
    clone(source, target)
    drop_feature(target, "rowTracking")
    write_delta(target.root, NONE, mode="overwrite", replace_where="id = 4")
    result, copied = clone(source, target, replace_table=True)
    assert (copied, result["metrics"]["numCopiedFiles"], result["metrics"]["numRemovedFiles"]) == (0, 1, 0)
    assert tracked(target) == tracked(source)
    marks = [highest_assigned_row_id(Snapshot.load(store)) for store in (source, target)]
    assert marks[0] == marks[1]
    write_delta(target.root, rows(5), mode="append")
    assert len({row_id for _, _, row_id, _ in tracked(target)}) == 4
    Snapshot.load(target).check_integrity()


def test_repeated_clone_keeps_the_ids_that_its_target_has_given(tmp_path: Path) -> None:
    """The source tracks rows only since its last file; the target gives the other rows ids, once."""
    source, target = LocalStore(str(tmp_path / "source")), LocalStore(str(tmp_path / "target"))
    for number in range(2):
        write_delta(source.root, rows(number), mode="append")
    add_feature(source, "rowTracking")
    write_delta(source.root, rows(2), mode="append")

    def ids() -> list[Any]:
        deep_clone(Snapshot.load(source), target, replace_table=True, properties={"delta.enableRowTracking": "true"})
        ids_by_path = Snapshot.load(target).files().select(["path", "base_row_id"]).to_pylist()
        assert len({one["base_row_id"] for one in ids_by_path}) == len(ids_by_path)
        return sorted(map(str, ids_by_path))

    first = ids()
    assert ids() == first
    write_delta(source.root, rows(3), mode="append")  # the target has given its id to another row
    second = ids()
    assert len(second) == 4 and ids() == second
