"""FSCK: missing and damaged files that it finds, and the results of a repair."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.copies.clone import clone_table
from delta_py.errors import CorruptTableError, DataFileError, TableNotFoundError, UnsupportedOperationError
from delta_py.object_stores.open_store import open_store
from delta_py.repair import file_check
from delta_py.repair.fsck import fsck
from delta_py.repair.log_check import CHECKPOINT, CHECKSUM, COMMIT, COMPACTION, LAST_CHECKPOINT
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.runs.sampling import takes_all
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.flipped_bits import chunk_places, flipped

pytestmark = pytest.mark.usefixtures("harmless_post_commit")

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def make(path: str, commits: int = 3, properties: dict[str, str] | None = None) -> None:
    """One file of ten rows for each commit."""
    for number in range(commits):
        rows = pa.table({"id": pa.array(range(10 * number, 10 * number + 10), pa.int64())})
        write_delta(path, rows, mode="append", configuration=properties)


def ids(path: str, version: int | None = None) -> list[int]:
    sorted_ids: list[int] = sorted(DeltaTable(path, version=version).to_arrow()["id"].to_pylist())
    return sorted_ids


def file_of(path: str, row: int) -> str:
    """The data file that holds a row."""
    for file in DeltaTable(path).files().to_pylist():
        if json.loads(file["stats"])["minValues"]["id"] <= row <= json.loads(file["stats"])["maxValues"]["id"]:
            return str(file["path"])
    raise AssertionError(row)


def found(path: str, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = fsck(open_store(path), **options).to_pylist()
    return rows


def log(path: str, name: str) -> Path:
    return Path(path) / "_delta_log" / name


def test_sound_table_has_no_faults(path: str) -> None:
    make(path, 12, VECTORS)
    write_delta(path, pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", replace_where="id = 3")
    assert found(path) == [] == found(path, dry_run=False)
    assert DeltaTable(path).version == 12
    assert DeltaTable(path).fsck().num_rows == 0


def test_repair_drops_a_missing_file_only_if_loss_is_allowed(path: str) -> None:
    make(path)
    missing_path = file_of(path, 15)
    (Path(path) / missing_path).unlink()
    (row,) = found(path)
    assert (row["kind"], row["path"], row["data_file"], row["version"]) == ("dataFile", missing_path, missing_path, 2)
    assert (row["can_repair"], row["rows_lost"]) == (True, 10)
    with pytest.raises(DataFileError, match="would lose 10 rows") as caught:
        found(path, dry_run=False)
    assert caught.value.error_class == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert DeltaTable(path).version == 2
    assert len(found(path, dry_run=False, allow_data_loss=True)) == 1
    assert ids(path) == [*range(10), *range(20, 30)]
    assert found(path) == []
    newest = DeltaTable(path).history(1).to_pylist()[0]
    assert newest["operation"] == "FSCK"
    metrics = dict(newest["operationMetrics"])
    assert (metrics["numRemovedFiles"], metrics["numMissingFiles"], metrics["numMissingDeletionVectors"]) == ("1", "1", "0")
    assert '"dataChange":true' in log(path, f"{3:020d}.json").read_text()
    DeltaTable(path).snapshot.check_integrity()


def test_file_of_another_size_is_told_and_left(path: str) -> None:
    make(path)
    name = file_of(path, 5)
    data = (Path(path) / name).read_bytes()
    (Path(path) / name).write_bytes(data[:-1])
    (row,) = found(path)
    assert (row["size"], row["can_repair"], row["rows_lost"]) == (len(data), False, 0)
    assert f"{len(data) - 1} bytes" in row["reason"]
    assert found(path, dry_run=False, allow_data_loss=True) == [row]
    assert DeltaTable(path).version == 2


def test_file_that_cannot_be_looked_at_is_not_taken_for_missing(path: str) -> None:
    make(path)

    class Blind(LocalStore):
        def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> Any:
            if path.endswith(".parquet"):
                raise PermissionError(13, "Permission denied", path)
            return super().open_input(path, size_bytes, is_size_verified=is_size_verified)

    faults = fsck(Blind(path), dry_run=False, allow_data_loss=True).to_pylist()
    assert [row["can_repair"] for row in faults] == [False] * 3
    assert DeltaTable(path).version == 2


def test_many_files_are_compared_with_a_listing(path: str) -> None:
    store = MemoryStore(root="/memory/fsck")
    rows = pa.table({"id": range(200), "p": range(200)})
    write_delta(store.root, rows, partition_by=["p"], store=store)
    names = Snapshot.load(store).files()["path"].to_pylist()
    store.objects.pop(names[7])
    data, time_ms = store.objects[names[11]]
    store.objects[names[11]] = (data + b"x", time_ms)
    store.calls.clear()
    faults = fsck(store).to_pylist()
    assert {row["path"]: row["can_repair"] for row in faults} == {names[7]: True, names[11]: False}
    opened = {name for call, name in store.calls if call == "open_input" and not name.startswith("_delta_log")}
    assert opened == {names[7], names[11]}
    assert store.calls.count(("list_recursive", "")) == 1


def test_files_behind_links_and_elsewhere_are_not_missing(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_check, "_FEW_FILES", 0)
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "p": ["a", "b"]})
    write_delta(path, rows, partition_by=["p"])
    shutil.move(f"{path}/p=a", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", f"{path}/p=a")
    clone_table(Snapshot.load(open_store(path)), open_store(str(tmp_path / "clone")))
    assert found(path) == [] == found(str(tmp_path / "clone"))


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
def test_repair_of_bad_deletion_vector_drops_rows_of_its_file(path: str, damage: str) -> None:
    make(path, properties=VECTORS)
    write_delta(path, pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", replace_where="id IN (12, 13)")
    (vector,) = Path(path).glob("deletion_vector_*")
    data = vector.read_bytes()
    if damage == "missing":
        vector.unlink()
    else:
        vector.write_bytes(data[:-1] if damage == "cut" else data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    (row,) = found(path)
    assert (row["kind"], row["path"], row["data_file"]) == ("deletionVector", vector.name, file_of(path, 12))
    assert (row["can_repair"], row["rows_lost"]) == (True, 8)
    with pytest.raises(DataFileError, match="would lose 8 rows"):
        found(path, dry_run=False)
    found(path, dry_run=False, allow_data_loss=True)
    assert ids(path) == [*range(10), *range(20, 30)]
    assert dict(DeltaTable(path).history(1)["operationMetrics"].to_pylist()[0])["numMissingDeletionVectors"] == "1"


def test_missing_file_without_live_rows_loses_nothing(path: str) -> None:
    """A vector, which another writer left with it, deletes both of its two rows."""
    make(path, properties=VECTORS)
    write_delta(path, pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", replace_where="id < 9")
    name, commit = file_of(path, 5), log(path, f"{3:020d}.json")
    text = commit.read_text()
    stats = '{\\"numRecords\\":10'
    assert stats in text
    commit.write_text(text.replace(stats, '{\\"numRecords\\":9'))
    log(path, f"{3:020d}.crc").unlink()
    (Path(path) / name).unlink()
    assert [row["rows_lost"] for row in found(path) if row["kind"] == "dataFile"] == [0]
    found(path, dry_run=False)
    assert ids(path) == [*range(10, 30)]


def test_file_that_came_back_stays(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path)
    missing_path = Path(path) / file_of(path, 15)
    missing_path.rename(f"{path}/kept aside")
    from delta_py.repair import fsck as module

    original: Callable[..., Any] = module._repair_log

    def bring_back(*arguments: Any) -> None:
        original(*arguments)
        Path(f"{path}/kept aside").rename(missing_path)

    monkeypatch.setattr(module, "_repair_log", bring_back)
    found(path, dry_run=False, allow_data_loss=True)
    assert (DeltaTable(path).version, ids(path)) == (2, [*range(30)])


def test_append_only_table_keeps_the_names_of_its_files(path: str) -> None:
    make(path, properties={"delta.appendOnly": "true"})
    (Path(path) / file_of(path, 15)).unlink()
    with pytest.raises(UnsupportedOperationError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        found(path, dry_run=False, allow_data_loss=True)
    assert DeltaTable(path).version == 2


# ---------------------------------------------------------------- the log


def kinds(path: str) -> list[tuple[str, bool]]:
    return [(row["kind"], row["can_repair"]) for row in found(path)]


def check_repaired(path: str, expected: list[int], *, allowed: bool = False) -> None:
    """allowed: it may lose rows, because nothing shows that it loses none."""
    version = DeltaTable(path).version
    if allowed:
        with pytest.raises(DataFileError, match="an unknown number for"):
            found(path, dry_run=False)
    found(path, dry_run=False, allow_data_loss=allowed)
    assert found(path) == []
    assert (ids(path), DeltaTable(path).version) == (expected, version)
    DeltaTable(path).snapshot.check_integrity()


def test_bad_or_missing_newest_checksum_is_rewritten(path: str) -> None:
    make(path)
    file = log(path, f"{2:020d}.crc")
    right = json.loads(file.read_bytes())
    for wrong in (json.dumps(right | {"numFiles": 7}).encode(), json.dumps(right | {"setTransactions": []}).encode(), b"{", None):
        if wrong is None:
            file.unlink()
        else:
            file.write_bytes(wrong)
        if wrong is not None and b'"setTransactions": []' in wrong:
            continue  # the table has none
        assert kinds(path) == [(CHECKSUM, True)]
        check_repaired(path, [*range(30)], allowed=wrong is not None and wrong != b"{")
        assert json.loads(file.read_bytes()) == right


def test_checksum_that_forgot_a_transaction_is_written_anew(path: str) -> None:
    for number in range(2):
        write_delta(path, pa.table({"id": [number]}), mode="append", txn_app_id="app", txn_version=number)
    file = log(path, f"{1:020d}.crc")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"setTransactions": []}))
    assert kinds(path) == [(CHECKSUM, True)]
    check_repaired(path, [0, 1], allowed=True)


def test_table_that_nobody_writes_checksums_for_lacks_none(path: str) -> None:
    make(path)
    for file in Path(path).glob("_delta_log/*.crc"):
        file.unlink()
    assert found(path) == []


@pytest.mark.parametrize(
    ("policy", "damage"), [("classic", "cut"), ("classic", "lacks a file"), ("v2", "cut"), ("v2", "sidecar gone")]
)
def test_broken_checkpoint_is_put_aside_and_written_anew(path: str, policy: str, damage: str) -> None:
    make(path, 12, {"delta.checkpointPolicy": policy} if policy == "v2" else None)
    file = next(file for file in Path(path).glob("_delta_log/*.checkpoint*") if f"{10:020d}" in file.name)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-30])
    elif damage == "lacks a file":
        other = str(Path(path).with_name("other"))
        shutil.copytree(path, other)
        write_delta(other, pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", replace_where="id < 20")
        DeltaTable(other).checkpoint()
        shutil.copy(log(other, f"{12:020d}.checkpoint.parquet"), file)
    else:
        next(Path(path).glob("_delta_log/_sidecars/*.parquet")).unlink()
    assert kinds(path)[0] == (CHECKPOINT, True)
    assert {kind for kind, _ in kinds(path)} <= {CHECKPOINT, LAST_CHECKPOINT}
    check_repaired(path, [*range(120)])
    assert not file.exists() and file.with_name(f"{file.name}.broken").exists()
    assert Snapshot.load(open_store(path)).segment.checkpoint is not None
    assert ids(path, 10) == [*range(110)]


def test_broken_checkpoint_that_is_the_only_copy_is_left(path: str) -> None:
    make(path, 12)
    for version in range(5):
        log(path, f"{version:020d}.json").unlink()
    file = log(path, f"{10:020d}.checkpoint.parquet")
    file.write_bytes(file.read_bytes()[:-30])
    faults = found(path)
    assert {row["can_repair"] for row in faults if row["kind"] == CHECKPOINT} == {False}
    assert any("only copy" in row["reason"] for row in faults)
    with pytest.raises(CorruptTableError, match="cannot be rebuilt"):
        found(path, dry_run=False)
    assert file.exists() and not file.with_name(f"{file.name}.broken").exists()


def test_checksum_against_a_right_checkpoint_is_rewritten(path: str) -> None:
    make(path, 12)
    file = log(path, f"{10:020d}.crc")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"numFiles": 3}))
    assert kinds(path) == [(CHECKSUM, True)]
    check_repaired(path, [*range(120)])
    assert log(path, f"{10:020d}.checkpoint.parquet").exists()
    assert json.loads(file.read_text())["numFiles"] == 11


def test_incomplete_older_checkpoint_keeps_the_newer_one_valid(path: str) -> None:
    """Only the newer checkpoint's checksum shows which of the two is right."""
    make(path, 10)
    DeltaTable(path).checkpoint()
    write_delta(path, pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", replace_where="id < 10")
    DeltaTable(path).checkpoint()
    shutil.copy(log(path, f"{10:020d}.checkpoint.parquet"), log(path, f"{9:020d}.checkpoint.parquet"))
    log(path, f"{9:020d}.crc").unlink()
    make(path, 1)
    log(path, f"{0:020d}.json").unlink()
    assert found(path, dry_run=False) == []
    assert log(path, f"{10:020d}.checkpoint.parquet").exists()
    assert ids(path) == sorted([*range(10, 100), *range(10)])


def test_contradiction_without_an_older_log_is_not_repaired(path: str) -> None:
    make(path, 12)
    for version in range(5):
        log(path, f"{version:020d}.json").unlink()
    file = log(path, f"{10:020d}.crc")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"numFiles": 3}))
    assert (CHECKPOINT, False) in kinds(path)
    assert not any(can_repair for _, can_repair in kinds(path))


@pytest.mark.parametrize("hint", [b"{", b'{"version":40}', b'{"version":10,"size":13,"numOfAddFiles":3}'])
def test_last_checkpoint_that_is_wrong_is_written_anew(path: str, hint: bytes) -> None:
    make(path, 12)
    log(path, "_last_checkpoint").write_bytes(hint)
    assert kinds(path) == [(LAST_CHECKPOINT, True)]
    check_repaired(path, [*range(120)])
    assert json.loads(log(path, "_last_checkpoint").read_text())["version"] == 11


def test_commits_that_lost_lines_keep_a_right_checkpoint(path: str) -> None:
    make(path, 12)
    commit = log(path, f"{6:020d}.json")
    commit.write_text("".join(line for line in commit.read_text().splitlines(True) if '"add"' not in line))
    assert (CHECKPOINT, False) in kinds(path)
    log(path, "_last_checkpoint").write_text("{")
    found(path, dry_run=False)
    assert not log(path, "_last_checkpoint").exists(), "nobody knows what a new checkpoint should hold"
    assert ids(path) == [*range(120)] and log(path, f"{10:020d}.checkpoint.parquet").exists()


def test_compaction_that_lost_lines_is_put_aside(path: str) -> None:
    make(path, 9)
    compaction = next(iter(sorted(Path(path).glob("_delta_log/*.compacted.json"))))
    lines = compaction.read_text().splitlines(True)
    compaction.write_text("".join(line for line in lines if line is not next(line for line in lines if '"add"' in line)))
    assert len(ids(path)) == 80
    assert kinds(path) == [(COMPACTION, True)]
    check_repaired(path, [*range(90)])


def test_gap_in_the_log_is_told_with_what_it_means(path: str) -> None:
    make(path, 13)
    log(path, f"{4:020d}.json").unlink()
    (row,) = found(path)
    assert (row["kind"], row["version"], row["can_repair"]) == (COMMIT, 4, False)
    assert "versions 4 to 9 cannot be read" in row["reason"]
    log(path, f"{11:020d}.json").unlink()
    reasons = " ".join(row["reason"] for row in found(path))
    assert "all versions from 11 on cannot be read" in reasons and "newest version cannot be rebuilt" in reasons
    with pytest.raises(CorruptTableError):
        found(path, dry_run=False, allow_data_loss=True)


def test_half_a_commit_of_a_checkpointed_version_is_told(path: str) -> None:
    make(path, 11)
    commit = log(path, f"{10:020d}.json")
    commit.write_bytes(commit.read_bytes()[:-20])
    (row,) = found(path)
    assert (row["kind"], row["version"], row["path"]) == (COMMIT, 10, f"_delta_log/{10:020d}.json")
    assert "no writer follows it" in row["reason"] and not row["can_repair"]
    assert found(path, dry_run=False) == [row] and ids(path) == [*range(110)]


def test_repair_behind_half_a_commit_changes_nothing(path: str) -> None:
    make(path, 11)
    (Path(path) / file_of(path, 15)).unlink()
    commit, checkpoint_hint = log(path, f"{10:020d}.json"), log(path, "_last_checkpoint")
    commit.write_bytes(commit.read_bytes()[:-20])
    checkpoint_hint.write_bytes(b"{")
    assert len(found(path)) == 3
    with pytest.raises(CorruptTableError, match="cannot be followed by another"):
        found(path, dry_run=False, allow_data_loss=True)
    assert checkpoint_hint.read_bytes() == b"{" and DeltaTable(path).version == 10


def test_incomplete_checkpoint_is_put_aside(path: str) -> None:
    make(path, 12)
    parts = [log(path, f"{8:020d}.checkpoint.{number:010d}.{3:010d}.parquet") for number in (1, 3)]
    for part in parts:
        shutil.copy(log(path, f"{10:020d}.checkpoint.parquet"), part)
    shutil.copy(parts[0], parts[0].with_name(f"{parts[0].name}.broken"))  # by a repair that died
    assert kinds(path) == [(CHECKPOINT, True)]
    check_repaired(path, [*range(120)])
    assert not any(part.exists() for part in parts)
    assert all(part.with_name(f"{part.name}.broken").exists() for part in parts)


def test_place_without_a_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        found(str(tmp_path))


# ---------------------------------------------------------------- pages of data files


def make_wide(path: str, files: int = 3) -> list[Path]:
    """A table of files with several columns; returns the files in the log's order."""
    for number in range(files):
        ids = range(20 * number, 20 * number + 20)
        rows = {"id": pa.array(ids, pa.int64()), "s": [f"text{n % 3}" for n in ids], "st": [{"a": n, "l": [n, n]} for n in ids]}
        write_delta(path, pa.table(rows), mode="append", configuration=VECTORS)
    return [Path(path) / name for name in DeltaTable(path).files()["path"].to_pylist()]


def test_flipped_byte_of_pages_is_found_or_changes_no_row(path: str) -> None:
    files = make_wide(path)
    store, rows = open_store(path), DeltaTable(path).to_arrow()
    assert found(path, check_data=True) == []
    places = chunk_places(files[1])[:: 1 if takes_all() else 7]
    found_count = 0
    for place in places:
        with flipped(files[1], place):
            faults = fsck(store, check_data=True).to_pylist()
            if not faults:
                assert DeltaTable(path).to_arrow().equals(rows)
                continue
            found_count += 1
            (fault,) = faults
            assert (fault["kind"], fault["path"], fault["data_file"]) == ("dataFile", files[1].name, files[1].name)
            assert (fault["can_repair"], fault["rows_lost"]) == (False, 0)
            assert "pages are damaged" in fault["reason"]
    assert found_count > 0.9 * len(places)


def test_flipped_byte_of_a_footer_ends_no_process(path: str) -> None:
    """If pyarrow reads a damaged column chunk, the process ends."""
    (file,) = make_wide(path, 1)
    data, store = file.read_bytes(), open_store(path)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for place in range(start, len(data), 1 if takes_all() else 5):
        with flipped(file, place):
            fsck(store, check_data=True)


def test_files_that_are_damaged_are_named_and_stay_in_the_table(path: str, caplog: pytest.LogCaptureFixture) -> None:
    files = make_wide(path, 4)
    files[0].unlink()
    with flipped(files[1], chunk_places(files[1])[-3]), flipped(files[3], chunk_places(files[3])[-3]):
        assert [row["path"] for row in found(path)] == [files[0].name], "bytes are looked at where it is asked for"
        assert [row["path"] for row in found(path, check_data=True)] == [files[0].name, files[1].name, files[3].name]
        with pytest.raises(DataFileError, match="would lose 20 rows"):
            found(path, check_data=True, dry_run=False)
        assert DeltaTable(path).version == 3
        found(path, check_data=True, dry_run=False, allow_data_loss=True)
        assert "2 faults cannot be repaired" in caplog.text and files[3].name in caplog.text
        assert DeltaTable(path).version == 4
        assert {file.name for file in files[1:]} == set(DeltaTable(path).files()["path"].to_pylist())


def test_columns_that_the_table_no_longer_has_are_looked_at(path: str) -> None:
    write_delta(path, pa.table({"id": [1, 2], "gone": ["aaaa", "bbbb"]}), configuration={"delta.columnMapping.mode": "name"})
    (file,) = Path(path).glob("*.parquet")
    places = chunk_places(file)
    DeltaTable(path).alter.drop_columns(["gone"])
    with flipped(file, places[-3]):
        assert DeltaTable(path).to_arrow(verify_checksums=True).num_rows == 2
        assert [row["path"] for row in found(path, check_data=True)] == [file.name]


def test_storage_that_fails_is_not_taken_for_damage(path: str) -> None:
    files = make_wide(path, 2)

    class Failing(LocalStore):
        def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> Any:
            source = super().open_input(path, size_bytes, is_size_verified=is_size_verified)
            return pa.PythonFile(FailingFile(source), mode="r") if path == files[1].name else source

    class FailingFile:
        closed = False

        def __init__(self, source: Any) -> None:
            self._source = source

        def size(self) -> int:
            return int(self._source.size())

        def seek(self, *where: int) -> int:
            return int(self._source.seek(*where))

        def tell(self) -> int:
            return int(self._source.tell())

        def close(self) -> None:
            self._source.close()

        def read(self, count: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    (fault,) = fsck(Failing(path), check_data=True).to_pylist()
    assert fault["path"] == files[1].name
    assert "cannot be looked at" in fault["reason"] and "Input/output error" in fault["reason"]
