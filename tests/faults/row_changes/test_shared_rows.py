"""Two writers delete different rows of the same files by deletion vectors, and every storage call of the second one fails in
turn. The rows of the first stay deleted; those of the second are all deleted or none.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable
from delta_py.protocol.actions import AddFile, parse_action
from delta_py.protocol.paths import commit_file_name
from delta_py.row_changes.write import write_delta
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits")

PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


class RacedStore(FaultyStore):
    """Before each of its commits one of the rivals writes, as long as there are some."""

    def __init__(self, inner: ObjectStore, rivals: Iterable[Callable[[], Any]], fault: Fault | None = None) -> None:
        super().__init__(inner, fault)
        self.rivals = list(rivals)

    def run(self, name: str, action: Callable[[], Any]) -> Any:
        if name.startswith("put_if_absent _delta_log/") and name.endswith(".json") and self.rivals:
            self.rivals.pop(0)()
        return super().run(name, action)


def make(root: Path) -> None:
    """Two files of ten rows."""
    rows = pa.table({"id": range(20), "part": ["a"] * 10 + ["b"] * 10})
    write_delta(str(root), rows, partition_by="part", configuration=PROPERTIES)


def take(store: Any, *ids: int) -> int:
    empty = pa.table({"id": pa.array([], pa.int64()), "part": pa.array([], pa.string())})
    return write_delta(store.root, empty, mode="overwrite", replace_where=f"id IN ({', '.join(map(str, ids))})", store=store)


def ids(root: Path, version: int | None = None) -> set[int]:
    id_counts = Counter(DeltaTable(str(root), version=version).to_arrow(["id"])["id"].to_pylist())
    assert set(id_counts.values()) <= {1}
    return set(id_counts)


def taken_by(root: Path, version: int) -> set[tuple[int, str]]:
    feed = DeltaTable(str(root)).changes(starting_version=version, ending_version=version).read_all().to_pylist()
    return {(row["id"], row["_change_type"]) for row in feed}


def files(root: Path) -> set[str]:
    paths = {str(path.relative_to(root)) for path in root.rglob("*") if path.suffix in (".parquet", ".bin")}
    return {path for path in paths if not path.startswith("_delta_log")}


def named_files(root: Path) -> set[str]:
    """The files that any commit names."""
    named: set[str] = set()
    for version in range(Snapshot.load(LocalStore(str(root))).version + 1):
        lines = (root / "_delta_log" / commit_file_name(version)).read_bytes().splitlines()
        adds = [action for action in map(parse_action, lines) if isinstance(action, AddFile)]
        vectors = [add.deletion_vector for add in adds if add.deletion_vector is not None]
        named |= {add.path for add in adds} | {vector.path for vector in vectors if vector.path is not None}
    return named


OURS, FIRST, SECOND = {3, 12}, {1, 11, 2}, {4, 13}


def rivals(root: Path) -> list[Callable[[], Any]]:
    other = LocalStore(str(root))
    return [lambda: take(other, *FIRST), lambda: take(other, *SECOND)]


def test_two_lost_races_keep_all_deletes_and_no_orphan_vector(tmp_path: Path) -> None:
    make(tmp_path)
    store = RacedStore(LocalStore(str(tmp_path)), rivals(tmp_path))
    assert take(store, *OURS) == 3 and not store.rivals
    assert ids(tmp_path) == set(range(20)) - OURS - FIRST - SECOND
    assert taken_by(tmp_path, 3) == {(number, "delete") for number in OURS}
    assert files(tmp_path) == named_files(tmp_path)
    assert all(f["stats"] is None or '"tightBounds":false' in f["stats"] for f in Snapshot.load(store.inner).files().to_pylist())


def test_delete_of_the_last_rows_by_two_leaves_no_unused_vector(tmp_path: Path) -> None:
    make(tmp_path)
    store = RacedStore(LocalStore(str(tmp_path)), [lambda: take(LocalStore(str(tmp_path)), *range(9))])
    assert take(store, 9) == 2 and not store.rivals
    assert ids(tmp_path) == set(range(10, 20))
    assert files(tmp_path) == named_files(tmp_path)


@pytest.mark.parametrize("kind", sampled(FAULTS, 3))
def test_rebased_commit_with_a_failed_call_happens_once_or_never(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "count"
    make(root)
    store = RacedStore(LocalStore(str(root)), rivals(root))
    take(store, *OURS)
    first_put = next(number for number, call in enumerate(store.calls) if call.startswith("put_if_absent"))
    assert sum(call.startswith("put_if_absent") and call.endswith(".bin") for call in store.calls) >= 3
    numbers = range(first_put, len(store.calls))
    make(tmp_path / "table")
    outcomes: Counter[str] = Counter()
    for number in numbers:
        shutil.copytree(tmp_path / "table", tmp_path / str(number))
        outcomes[one_fault(tmp_path / str(number), Fault(number, **FAULTS[kind]))] += 1
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


def one_fault(root: Path, fault: Fault) -> str:
    store = RacedStore(LocalStore(str(root)), rivals(root), fault)
    version, outcome = outcome_of(lambda: take(store, *OURS))
    while store.rivals:
        store.rivals.pop(0)()
    remaining_ids = ids(root)
    assert not remaining_ids & (FIRST | SECOND), "a rival's rows came back"
    is_committed = not remaining_ids & OURS
    assert remaining_ids == set(range(20)) - FIRST - SECOND - (OURS if is_committed else set()), store.calls[fault.call]
    assert (is_committed, outcome) not in ((False, "done"), (True, "refused")), store.calls[fault.call]
    if outcome == "done":
        assert taken_by(root, version) == {(number, "delete") for number in OURS}
    if outcome in ("done", "refused") and not fault.lasting:
        assert len(files(root) - named_files(root)) <= 1, "only the file whose delete failed may stay"
    if outcome == "unknown":  # the commit may still appear, and needs its vectors then
        assert {call.split()[1] for call in store.calls if call.startswith("put_if_absent") and ".bin" in call} <= files(root)
    assert named_files(root) <= files(root)
    if not is_committed:  # a second run succeeds
        take(LocalStore(str(root)), *OURS)
        assert ids(root) == set(range(20)) - FIRST - SECOND - OURS
    return outcome


def _replace_own(root: str, writer: int, writers: int, ids: int) -> None:
    """Replaces this writer's rows, one commit each: every third is deleted, the others get the writer's value. No other writer
    may cause a conflict."""
    for id in range(writer, ids, writers):
        new = [] if id % 3 == 0 else [id]
        data = pa.table({"id": pa.array(new, pa.int64()), "part": pa.array([f"by {writer}"] * len(new), pa.string())})
        write_delta(root, data, mode="overwrite", replace_where=f"id = {id}")


def test_processes_keep_all_changes_to_rows_of_the_same_files(tmp_path: Path) -> None:
    writers, count = 4, 40
    rows = pa.table({"id": range(count), "part": ["old"] * count})
    write_delta(str(tmp_path), rows, configuration={**PROPERTIES, "delta.enableRowTracking": "true"}, max_records_per_file=20)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_replace_own, args=(str(tmp_path), n, writers, count)) for n in range(writers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * writers, "each row is only one writer's: nobody conflicts"
    remaining_rows = DeltaTable(str(tmp_path)).to_arrow().to_pylist()
    assert sorted((row["id"], row["part"]) for row in remaining_rows) == [(n, f"by {n % writers}") for n in range(count) if n % 3]
    assert DeltaTable(str(tmp_path)).version == count
    feed = Counter(row["_change_type"] for row in DeltaTable(str(tmp_path)).changes(starting_version=1).read_all().to_pylist())
    assert feed == {"delete": count, "insert": len(remaining_rows)}
    assert files(tmp_path) == named_files(tmp_path)
    DeltaTable(str(tmp_path)).snapshot.check_integrity()
