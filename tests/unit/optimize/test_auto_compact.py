"""Auto compaction: when it is due, what it merges, and that it never harms the commit before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit.table_cache import CountPerTable, table_key
from delta_py.definition.request import AutoCompact, WriteRequest
from delta_py.log.history import history
from delta_py.optimize import auto_compact
from delta_py.optimize.optimize import LocalBinWriters
from delta_py.row_changes.write import commit_write, plan_write
from delta_py.row_changes.write_plans import NothingToDo
from delta_py.row_rules.write_state import WriteState
from delta_py.storage.local import LocalStore
from delta_py.types.schema import from_arrow_schema
from delta_py.write.data_files import WrittenFiles, write_files
from tests.unit.optimize.test_optimize import delete

ON = {"delta.autoOptimize.autoCompact": "true"}
FEW = AutoCompact(enabled=True, min_files=5)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """As in a new process."""
    for memory in (auto_compact._small_files, auto_compact._small_count_offsets):
        memory.clear()
    yield
    for memory in (auto_compact._small_files, auto_compact._small_count_offsets):
        memory.clear()


def append(path: str, number: int, auto_compact: AutoCompact = FEW, **columns: object) -> None:
    store, rows = LocalStore(path), pa.table({"id": pa.array([number], pa.int64()), **columns})
    partition_by = ["p"] if "p" in columns else None
    request = WriteRequest(mode="append", partition_by=partition_by, auto_compact=auto_compact)
    plan = plan_write(store, from_arrow_schema(rows.schema), request)
    assert not isinstance(plan, NothingToDo)
    commit_write(store, plan, [write_files(plan.state, rows.to_batches())])


def files(path: str) -> int:
    return DeltaTable(path).files().num_rows


def ids(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_arrow(["id"])["id"].to_pylist())


def compactions(path: str) -> list[int]:
    log = history(LocalStore(path)).to_pylist()
    return sorted(row["version"] for row in log if row["operation"] == "OPTIMIZE")


def test_many_appends_leave_few_files(path: str) -> None:
    for number in range(120):
        write_delta(path, pa.table({"id": [number]}), mode="append", configuration=ON if number == 0 else None)
    assert files(path) <= 60 and len(compactions(path)) == 2
    assert ids(path) == list(range(120))
    log = history(LocalStore(path)).to_pylist()
    assert [dict(row["operationParameters"])["auto"] for row in log if row["operation"] == "OPTIMIZE"] == ["true"] * 2
    DeltaTable(path).snapshot.check_integrity()


@pytest.mark.parametrize("auto_compact", [AutoCompact(min_files=5), AutoCompact(enabled=False, min_files=5)])
def test_it_is_off_unless_asked_for(path: str, auto_compact: AutoCompact) -> None:
    for number in range(30):
        append(path, number, auto_compact)
    assert files(path) == 30


def test_session_says_no_where_the_table_says_yes(path: str) -> None:
    write_delta(path, pa.table({"id": [0]}), configuration=ON)
    for number in range(1, 21):
        append(path, number, AutoCompact(enabled=False, min_files=5))
    assert compactions(path) == []


def test_legacy_property(path: str) -> None:
    write_delta(path, pa.table({"id": [0]}), configuration={"delta.autoOptimize": "true"})
    for number in range(1, 11):
        append(path, number, AutoCompact(min_files=5))
    assert compactions(path) != []


def test_only_partitions_with_enough_small_files(path: str) -> None:
    for number in range(21):
        append(path, number, p=pa.array(["rare" if number % 10 == 0 else "often"]))
    parts = [dict(values)["p"] for values in DeltaTable(path).files()["partition_values"].to_pylist()]
    assert parts.count("rare") == 3 and parts.count("often") < 6
    assert ids(path) == list(range(21))


def test_files_that_are_not_small_are_no_reason(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After it has listed the files, it lists them again when there are new small files."""
    looks = counted(monkeypatch)
    for number in range(40):
        append(path, number, AutoCompact(enabled=True, min_files=5, min_file_bytes=1, max_file_bytes=10**9))
    assert (files(path), len(looks)) == (40, 1)


def test_frequent_writers_count_small_files_of_other_processes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten processes, which have listed the first file, append in turn: each has added only a few files when there are many."""
    append(path, 0, AutoCompact(enabled=False))
    key = table_key(LocalStore(path), DeltaTable(path).snapshot.config)
    memories = [{name: CountPerTable() for name in ("_small_files", "_small_count_offsets")} for _ in range(10)]
    for memory in memories:
        memory["_small_files"].put(key, 1)
        memory["_small_count_offsets"].put(key, 0)
    for number in range(1, 101):
        for name, count in memories[number * 7 % 10].items():
            monkeypatch.setattr(auto_compact, name, count)
        append(path, number, AutoCompact(enabled=True, min_files=20))
        assert files(path) <= 30
    assert ids(path) == list(range(101)) and len(compactions(path)) >= 3


def test_process_that_misses_tenth_versions_still_compacts(path: str) -> None:
    """Every second version is from a writer that compacts nothing."""
    for number in range(20):
        append(path, number, AutoCompact(enabled=False) if number % 2 == 0 else FEW)
    assert compactions(path) != [] and files(path) < 15
    assert ids(path) == list(range(20))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    looks: list[str] = []
    compact = auto_compact._compact

    def look(store: LocalStore, auto_compact: AutoCompact) -> int | None:
        looks.append(store.root)
        return compact(store, auto_compact)

    monkeypatch.setattr(auto_compact, "_compact", look)
    return looks


def test_processes_that_write_once_look_at_every_tenth_version(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = counted(monkeypatch)
    for number in range(41):
        append(path, number, AutoCompact(enabled=True, min_files=30))
        auto_compact._small_files.clear()
    assert len(looks) == 1, "after version 30, and not before: the checksum tells that there are too few files"
    assert compactions(path) == [31] and files(path) == 11


def test_many_small_files_of_one_commit_are_compacted_at_once(path: str) -> None:
    rows = pa.table({"id": range(40), "p": [number % 8 for number in range(40)]})
    write_delta(path, rows, partition_by=["p"])
    store = LocalStore(path)
    plan = plan_write(store, from_arrow_schema(rows.schema), WriteRequest(mode="append", auto_compact=FEW))
    assert not isinstance(plan, NothingToDo)
    commit_write(store, plan, [written(plan.state, rows.filter(pa.compute.equal(rows["p"], 1)), number) for number in range(6)])
    assert compactions(path) == [2] and files(path) == 8


def written(state: WriteState, rows: pa.Table, task: int) -> WrittenFiles:
    return write_files(state, rows.to_batches(), task=task)


def test_files_that_a_delete_writes_count_too(path: str) -> None:
    write_delta(path, pa.table({"id": [-1, -2]}), configuration=ON)
    for number in range(49):
        append(path, number, AutoCompact(enabled=False))
    auto_compact._small_files.put(f"{LocalStore(path).root} {DeltaTable(path).metadata.id}", 48)
    delete(path, lambda number: number == 7)
    assert compactions(path) == [], "a file that goes whole adds none"
    delete(path, lambda number: number == -1)
    append(path, 50, AutoCompact())
    assert compactions(path) == [53] and files(path) == 1
    assert ids(path) == [-2, *(number for number in range(51) if number not in (7, 49))]


@pytest.mark.usefixtures("harmless_post_commit")
def test_failure_is_told_and_the_commit_stands(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> list[WrittenFiles]:
        raise OSError("the disk is full")

    monkeypatch.setattr(LocalBinWriters, "compact", full)
    for number in range(11):
        append(path, number)
    assert ids(path) == list(range(11)) and files(path) == 11
    assert "version 10 is committed, but small files were not compacted: the disk is full" in caplog.text


@pytest.mark.usefixtures("harmless_post_commit")
def test_property_that_is_neither_true_nor_false(path: str, caplog: pytest.LogCaptureFixture) -> None:
    write_delta(path, pa.table({"id": [0]}), configuration=ON)
    log = Path(path) / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('autoCompact":"true"', 'autoCompact":"maybe"'))
    log.with_suffix(".crc").unlink()
    append(path, 1, AutoCompact())
    assert ids(path) == [0, 1] and "maybe" in caplog.text


def test_whoever_is_quicker_leaves_it_to_the_next_commit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compact = LocalBinWriters.compact
    turns = iter(range(1))

    def slow(self: LocalBinWriters, *arguments: object) -> list[WrittenFiles]:
        compaction_version = compact(self, *arguments)  # type: ignore[arg-type]
        for _ in turns:
            DeltaTable(path).optimize.compact()
        return compaction_version

    monkeypatch.setattr(LocalBinWriters, "compact", slow)
    for number in range(30):
        append(path, number)
    assert ids(path) == list(range(30)) and files(path) < 6
    live = set(DeltaTable(path).files()["path"].to_pylist())
    assert live <= {file.name for file in Path(path).glob("*.parquet")}
