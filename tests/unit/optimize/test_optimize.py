"""OPTIMIZE: which files become one, what it keeps of their rows, and other writers during it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.commit.transaction import Transaction
from delta_py.copies.restore import restore
from delta_py.errors import (
    ConcurrentDeleteReadException,
    ExpressionError,
    InvalidOptionError,
    RowCountMismatchError,
)
from delta_py.layout.row_order import RowOrder
from delta_py.optimize import optimize_bins as module
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import Bin, OptimizeRequest
from delta_py.optimize.optimize_metrics import Optimized
from delta_py.parquet.file_reader import read_files
from delta_py.row_changes.dml import Dml
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.storage.local import LocalStore
from delta_py.write.arranging import Arrangement
from delta_py.write.data_files import WrittenFiles, delete_files_of
from delta_py.write.rewrite import Rewrite, add_action_of
from delta_py.write.task_changes import DELETED
from tests.support.tables.plain_dml import changed, run, target_rows

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def append(path: str, ids: Sequence[int], properties: dict[str, str] | None = None, **columns: Any) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64()), **columns})
    write_delta(path, rows, mode="append", partition_by=["p"] if "p" in columns else None, configuration=properties)


def make(path: str, files: int = 4, rows: int = 10, properties: dict[str, str] | None = None) -> None:
    for number in range(files):
        append(path, range(number * rows, (number + 1) * rows), properties if number == 0 else None)


def delete(path: str, is_deleted: Callable[[int], bool]) -> None:
    dml = Dml.begin(LocalStore(path), "DELETE", time_zone="UTC")
    rows = target_rows(dml, dml.find_candidates(None))
    rows = rows.filter(pa.array([is_deleted(number) for number in rows["id"].to_pylist()], pa.bool_()))
    run(dml, [[changed(rows, DELETED)]])


def compacted(path: str, **options: Any) -> Optimized:
    return optimize(LocalStore(path), OptimizeRequest(**options), LocalBinWriters())


def ids(path: str) -> list[int]:
    read_ids: list[int] = DeltaTable(path).to_arrow(["id"])["id"].to_pylist()
    return read_ids


def newest_actions(path: str, kind: str) -> list[dict[str, Any]]:
    table = DeltaTable(path)
    lines = (Path(path) / "_delta_log" / f"{table.version:020}.json").read_bytes().splitlines()
    return [action[kind] for action in map(orjson.loads, lines) if kind in action]


# ---------------------------------------------------------------- files


def test_small_files_become_one_with_the_rows_as_they_came(path: str) -> None:
    make(path)
    before = ids(path)
    outcome = compacted(path)
    assert (outcome.version, outcome.bins, outcome.batches, len(outcome.added), len(outcome.removed)) == (4, 1, 1, 1, 4)
    assert ids(path) == sorted(before) == list(range(40))
    assert DeltaTable(path, version=3).to_arrow(["id"])["id"].to_pylist() == before
    DeltaTable(path).snapshot.check_integrity()


def test_commit_changes_no_data_and_says_what_it_was(path: str) -> None:
    make(path, properties={"delta.enableChangeDataFeed": "true"})
    compacted(path)
    assert [add["dataChange"] for add in newest_actions(path, "add")] == [False]
    assert [remove["dataChange"] for remove in newest_actions(path, "remove")] == [False] * 4
    (info,) = newest_actions(path, "commitInfo")
    assert (info["operation"], info["operationParameters"]["auto"]) == ("OPTIMIZE", "false")
    assert info["operationMetrics"]["numRemovedFiles"] == "4"
    assert DeltaTable(path).changes(starting_version=4).read_all().num_rows == 0


def test_second_run_does_nothing_and_a_new_file_joins(path: str) -> None:
    make(path)
    compacted(path)
    second = compacted(path)
    assert (second.version, second.bins, second.metrics()["numBatches"], DeltaTable(path).version) == (None, 0, 1, 4)
    append(path, [40])
    assert (len(compacted(path).removed), DeltaTable(path).files().num_rows) == (2, 1)
    assert ids(path) == list(range(41))


def test_bins_hold_no_more_than_the_target(path: str) -> None:
    make(path, files=6)
    size = DeltaTable(path).files()["size"][0].as_py()
    outcome = compacted(path, target_file_bytes=2 * size + 1)
    assert (outcome.bins, len(outcome.added)) == (3, 3)
    assert compacted(path, target_file_bytes=2 * size + 1).bins == 0, "they were aimed at this size"


def test_target_of_the_table_and_files_that_are_large_enough(path: str) -> None:
    make(path, properties={"delta.targetFileSize": "1"})
    assert compacted(path).bins == 0
    assert compacted(path, min_file_bytes=1, target_file_bytes=10**6).bins == 0
    assert compacted(path, target_file_bytes=10**6).bins == 1


def test_partitions_are_kept_apart_and_chosen(path: str) -> None:
    for number in range(3):
        append(path, range(4 * number, 4 * number + 4), p=pa.array(["a b", None, "ü/%", "a b"]))
    outcome = compacted(path, predicate="p IS NULL OR p = 'a b'")
    assert (len(outcome.added), len(outcome.removed), outcome.considered, len(outcome.partitions)) == (2, 6, 6, 2)
    assert DeltaTable(path).files().num_rows == 5
    by_id = DeltaTable(path).to_arrow().sort_by("id")
    assert by_id["p"].to_pylist() == ["a b", None, "ü/%", "a b"] * 3


def test_metrics_are_the_references(path: str) -> None:
    make(path, files=2)
    metrics = DeltaTable(path).optimize.compact()
    assert list(metrics) == [
        *("numFilesAdded", "numFilesRemoved", "filesAdded", "filesRemoved", "partitionsOptimized", "zOrderStats"),
        *("clusteringStats", "numBins", "numBatches", "totalConsideredFiles", "totalFilesSkipped", "preserveInsertionOrder"),
        *("numFilesSkippedToReduceWriteAmplification", "numBytesSkippedToReduceWriteAmplification", "startTimeMs", "endTimeMs"),
        *("totalClusterParallelism", "totalScheduledTasks", "autoCompactParallelismStats", "deletionVectorStats"),
        *("numTableColumns", "numTableColumnsWithStats"),
    ]
    sizes = DeltaTable(path, version=1).files()["size"].to_pylist()
    assert metrics["filesRemoved"] == {
        "min": min(sizes),
        "max": max(sizes),
        "avg": sum(sizes) / 2,
        "totalFiles": 2,
        "totalSize": sum(sizes),
    }


# ---------------------------------------------------------------- rows


def test_deleted_rows_are_left_out_and_statistics_are_filled_in(path: str) -> None:
    make(path, properties=VECTORS)
    delete(path, lambda number: number in (3, 17))
    outcome = compacted(path)
    assert ids(path) == [number for number in range(40) if number not in (3, 17)]
    assert (outcome.vectors, outcome.vector_rows) == (2, 2)
    (add,) = newest_actions(path, "add")
    assert '"numRecords":38' in add["stats"] and "deletionVector" not in add


def test_large_file_is_written_anew_only_for_many_deleted_rows(path: str) -> None:
    make(path, files=1, rows=100, properties=VECTORS)
    delete(path, lambda number: number < 5)
    assert compacted(path, min_file_bytes=1).bins == 0
    delete(path, lambda number: number < 6)
    assert compacted(path, min_file_bytes=1).bins == 1
    assert ids(path) == list(range(6, 100))


def test_file_without_rows_leaves_no_file(path: str) -> None:
    make(path, files=2, properties=VECTORS)
    delete(path, lambda number: number < 10 and number != 4)
    delete(path, lambda number: number in range(10, 20) and number != 14)
    assert compacted(path).bins == 1
    assert ids(path) == [4, 14]


def test_rows_keep_their_ids(path: str) -> None:
    make(path, properties={"delta.enableRowTracking": "true", **VECTORS})
    delete(path, lambda number: number == 11)
    before = row_ids(path)
    compacted(path)
    assert row_ids(path) == before
    assert len({row_id for row_id, _ in before.values()}) == 39


def row_ids(path: str) -> dict[int, tuple[int, int]]:
    scan = plan_scan(DeltaTable(path).snapshot, ["id", "_metadata"], None, ScanOptions(metadata_column=True))
    rows = [row for batch in read_files(scan.state, scan.scan_files()) for row in batch.to_pylist()]
    return {row["id"]: (row["_metadata"]["row_id"], row["_metadata"]["row_commit_version"]) for row in rows}


def test_compact_reads_older_schemas_with_the_current_columns(path: str) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    append(path, [1], properties)
    write_delta(path, pa.table({"id": [2], "more": ["x"]}), mode="append", merge_schema=True)
    compacted(path)
    assert DeltaTable(path).files().num_rows == 1
    assert DeltaTable(path).to_arrow().to_pylist() == [{"id": 1, "more": None}, {"id": 2, "more": "x"}]


def purge_vectors(path: str) -> None:
    DeltaTable(path, session_timezone="America/New_York").delete("id = 1")
    DeltaTable(path).alter.drop_feature("deletionVectors")


@pytest.mark.parametrize(
    ("arrange", "properties"),
    [
        (lambda path: DeltaTable(path).optimize.compact(), {}),
        (lambda path: DeltaTable(path).optimize.z_order(["id"]), {}),
        (purge_vectors, VECTORS),
        (
            lambda path: set_properties(LocalStore(path), {"delta.columnMapping.mode": "none"}),
            {"delta.columnMapping.mode": "name"},
        ),
    ],
    ids=["compact", "z_order", "drop_feature", "remove_mapping"],
)
def test_rewrite_keeps_instants_of_zoneless_partition_values(
    path: str, arrange: Callable[[str], object], properties: dict[str, str]
) -> None:
    """As older clients wrote them: in their own session's zone."""
    midnight = datetime(2024, 1, 1, tzinfo=UTC)
    append(path, [0, 1], properties, p=pa.array([midnight] * 2, pa.timestamp("us", "UTC")))
    append(path, [2], p=pa.array([midnight], pa.timestamp("us", "UTC")))
    snapshot = DeltaTable(path).snapshot
    files = plan_scan(snapshot, None, None, ScanOptions(keep_all=True)).scan_files()
    adds = [add_action_of(file, data_change=False) for file in files]
    zoneless = [replace(add, partition_values=dict.fromkeys(add.partition_values, "2024-01-01 00:00:00")) for add in adds]
    Transaction(snapshot).add(WrittenFiles(adds=tuple(zoneless))).commit("FOREIGN", {})
    paths = set(DeltaTable(path).files()["path"].to_pylist())
    arrange(path)
    assert not paths <= set(DeltaTable(path).files()["path"].to_pylist())
    for zone, hour in (("America/New_York", 5), ("UTC", 0)):
        partition_values = DeltaTable(path, session_timezone=zone).to_arrow()["p"].to_pylist()
        assert {value.astimezone(UTC) for value in partition_values} == {midnight.replace(hour=hour)}, zone


def test_append_only_tables_may_be_compacted(path: str) -> None:
    make(path, properties={"delta.appendOnly": "true"})
    assert compacted(path).bins == 1


def test_file_that_was_replaced_is_found_out(path: str) -> None:
    make(path, files=2)
    first, second = DeltaTable(path).files()["path"].to_pylist()
    other = str(Path(path).with_name("other"))
    append(other, range(3))
    (Path(path) / first).write_bytes((Path(other) / DeltaTable(other).files()["path"][0].as_py()).read_bytes())
    with pytest.raises(RowCountMismatchError, match="20 rows, and 13"):
        compacted(path)
    assert data_files(path) == {first, second}


def data_files(path: str) -> set[str]:
    return {file.name for file in Path(path).glob("*.parquet")}


# ---------------------------------------------------------------- batches, and others meanwhile


def test_each_batch_is_a_commit_and_what_is_done_stays_done(path: str) -> None:
    for number in range(4):
        append(path, range(6 * number, 6 * number + 6), p=pa.array([0, 1, 2] * 2))
    calls = 0

    class FailsSecond(LocalBinWriters):
        def compact(self, rewrite: Rewrite, bins: Sequence[Bin]) -> list[WrittenFiles]:
            nonlocal calls
            calls += 1
            if calls == 2:
                delete_files_of(LocalStore(path), rewrite.state.write_id)  # as the Spark job does
                raise OSError("the disk is full")
            return super().compact(rewrite, bins)

    with pytest.raises(OSError, match="full"):
        optimize(LocalStore(path), OptimizeRequest(batch_bytes=1), FailsSecond())
    assert (DeltaTable(path).version, DeltaTable(path).files().num_rows) == (4, 1 + 8)
    assert sorted(ids(path)) == list(range(24)), "what is deleted is of the second batch alone"
    outcome = compacted(path, batch_bytes=1)
    assert (outcome.version, outcome.batches, outcome.bins, DeltaTable(path).files().num_rows) == (6, 2, 2, 3)
    assert sorted(ids(path)) == list(range(24))


def meanwhile(action: Callable[[], object], times: int = 1) -> LocalBinWriters:
    """Writes, and lets another writer act this many times, once before each commit."""
    actions = [action] * times

    class Meanwhile(LocalBinWriters):
        def compact(self, rewrite: Rewrite, bins: Sequence[Bin]) -> list[WrittenFiles]:
            written = super().compact(rewrite, bins)
            if actions:
                actions.pop()()
            return written

        def arrange(self, arrangement: Arrangement, bins: Sequence[Bin], orders: Sequence[RowOrder | None]) -> list[WrittenFiles]:
            written = super().arrange(arrangement, bins, orders)
            if actions:
                actions.pop()()
            return written

    return Meanwhile()


def test_append_meanwhile_is_no_conflict(path: str) -> None:
    make(path)
    outcome = optimize(LocalStore(path), OptimizeRequest(), meanwhile(lambda: append(path, [40])))
    assert (outcome.version, outcome.bins) == (5, 1)
    assert ids(path) in ([*range(40), 40], [40, *range(40)])


@pytest.mark.parametrize("earlier", [(), (0, 12, 13, 39)])
def test_rows_deleted_meanwhile_are_deleted_from_the_new_file(path: str, earlier: tuple[int, ...]) -> None:
    make(path, properties=VECTORS)
    if earlier:
        delete(path, lambda number: number in earlier)
    now = {5, 11, 14, 20, 38}
    outcome = optimize(LocalStore(path), OptimizeRequest(), meanwhile(lambda: delete(path, lambda number: number in now)))
    assert (outcome.bins, DeltaTable(path).files().num_rows) == (1, 1)
    assert ids(path) == [number for number in range(40) if number not in (*earlier, *now)]
    (add,) = newest_actions(path, "add")
    assert add["deletionVector"]["cardinality"] == 5 and '"tightBounds":false' in add["stats"]
    DeltaTable(path).snapshot.check_integrity()
    assert compacted(path).bins == 1
    assert ids(path) == [number for number in range(40) if number not in (*earlier, *now)]


def test_all_rows_deleted_meanwhile_leave_no_file(path: str) -> None:
    make(path, files=2, properties=VECTORS)

    def nearly_all() -> None:
        delete(path, lambda number: number not in (0, 10))
        delete(path, lambda number: number == 0)

    optimize(LocalStore(path), OptimizeRequest(), meanwhile(nearly_all))
    assert ids(path) == [10]


def test_bin_of_which_a_file_went_is_planned_anew(path: str) -> None:
    make(path)
    outcome = optimize(LocalStore(path), OptimizeRequest(), meanwhile(lambda: delete(path, lambda number: number == 5)))
    assert (outcome.bins, DeltaTable(path).files().num_rows) == (1, 1)
    assert sorted(ids(path)) == [*range(5), *range(6, 40)]
    live = set(DeltaTable(path).files()["path"].to_pylist())
    removed = {remove["path"] for remove in newest_actions(path, "remove")}
    assert live <= data_files(path) and len(data_files(path) - live - removed) == 1, "what was given up is deleted"


def test_rows_that_came_back_meanwhile_are_not_lost(path: str) -> None:
    make(path, properties=VECTORS)
    delete(path, lambda number: number % 2 == 0)
    outcome = optimize(LocalStore(path), OptimizeRequest(), meanwhile(lambda: restore_to(path, 3)))
    assert outcome.bins == 1
    assert ids(path) == list(range(40))


def restore_to(path: str, version: int) -> None:
    restore(LocalStore(path), version=version)


def test_properties_changed_meanwhile(path: str) -> None:
    make(path)
    outcome = optimize(LocalStore(path), OptimizeRequest(), meanwhile(lambda: alter(path, {"a.b": "c"})))
    assert (outcome.bins, ids(path)) == (1, list(range(40)))


def alter(path: str, properties: dict[str, str]) -> None:
    set_properties(LocalStore(path), properties)


def test_files_that_change_again_and_again_are_left(path: str, caplog: pytest.LogCaptureFixture) -> None:
    make(path)
    numbers = iter(range(40))

    def delete_another() -> None:
        deleted_id = next(numbers)
        delete(path, lambda number: number == deleted_id)

    outcome = optimize(LocalStore(path), OptimizeRequest(), meanwhile(delete_another, times=3))
    assert (outcome.version, outcome.bins) == (None, 0)
    assert sorted(ids(path)) == list(range(3, 40))
    assert "again and again" in caplog.text


def test_conflict_between_looking_and_committing(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One of these is planned again; if it happens each time, the files are left as they are."""
    make(path)
    calls = 0

    class Losing(Transaction):
        def commit(self, *args: Any, **options: Any) -> int:
            nonlocal calls
            calls += 1
            if calls == 1 or always:
                raise ConcurrentDeleteReadException("another writer removed a file")
            return super().commit(*args, **options)

    always = False
    monkeypatch.setattr(module, "Transaction", Losing)
    assert compacted(path).bins == 1
    always = True
    append(path, [40])
    assert compacted(path).bins == 0
    assert "again and again" in caplog.text
    assert sorted(ids(path)) == list(range(41))


@given(seed=st.integers(0, 2**32), files=st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_moved_rows_are_where_they_are_found(tmp_path_factory: pytest.TempPathFactory, seed: int, files: int) -> None:
    """Any rows deleted before, any other rows during it."""
    random = np.random.default_rng(seed)
    path = str(tmp_path_factory.mktemp("moved") / "t")
    make(path, files, 8, VECTORS)
    marks = random.integers(0, 3, 8 * files).tolist()  # 0 stays, 1 is deleted before, 2 during it
    if 1 in marks:
        delete(path, lambda number: marks[number] == 1)
    later = meanwhile(lambda: delete(path, lambda number: marks[number] == 2) if 2 in marks else None)
    optimize(LocalStore(path), OptimizeRequest(), later)
    assert sorted(ids(path)) == [number for number, mark in enumerate(marks) if mark == 0]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("predicate", "error", "condition"),
    [
        ("id > 3", InvalidOptionError, "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("p = 1 OR id > 3", InvalidOptionError, "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("nosuch = 1", InvalidOptionError, "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("p ===", ExpressionError, "DELTA_FAILED_RECOGNIZE_PREDICATE"),
    ],
)
def test_predicate_of_other_than_partitions(path: str, predicate: str, error: type[Exception], condition: str) -> None:
    append(path, [1], p=pa.array([1]))
    with pytest.raises(error) as raised:
        compacted(path, predicate=predicate)
    assert raised.value.error_class == condition  # type: ignore[attr-defined]
    assert DeltaTable(path).version == 0


@pytest.mark.parametrize(
    "options", [{"target_file_bytes": 0}, {"min_file_bytes": -1}, {"batch_bytes": 0}, {"max_deleted_ratio": 1.5}]
)
def test_numbers_that_make_no_sense(path: str, options: dict[str, Any]) -> None:
    make(path, 1)
    with pytest.raises(InvalidOptionError, match=next(iter(options))):
        compacted(path, **options)


@pytest.mark.parametrize(("deleted_count", "removed"), [(1, 0), (2, 1)])
def test_single_small_file_is_rewritten_only_for_many_deletes(path: str, deleted_count: int, removed: int) -> None:
    """More than 5 %, as with delta-spark."""
    make(path, files=1, rows=20, properties={"delta.enableDeletionVectors": "true"})
    delete(path, lambda number: number < deleted_count)
    assert len(compacted(path).removed) == removed
    assert ids(path) == list(range(deleted_count, 20))
