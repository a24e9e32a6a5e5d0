"""DELETE and UPDATE without Spark: what tasks make from changed rows, and what is committed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.definition.request import WriteRequest
from delta_py.errors import RowCountMismatchError, UnsupportedOperationError
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.tree import Expression
from delta_py.protocol.actions import AddFile, RemoveFile, parse_action
from delta_py.row_changes.dml import Dml
from delta_py.scan.planning import ROW_ADDRESS
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.write.rewrite import RemovedRows, Repeats, remove_rows
from delta_py.write.task_changes import (
    DELETED,
    FILE,
    INSERTED,
    ROW,
    ROW_ID,
    UPDATED,
    TaskChanges,
    write_changes,
)
from tests.support.tables.plain_dml import changed, run, target_rows

NO_OPTIONS = WriteRequest()
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKING = {"delta.enableRowTracking": "true"}
ODD = ["plain", "with space", "sl/ash%20", "ü=é", None]


def make(path: Path, configuration: Mapping[str, str], **options: Any) -> LocalStore:
    """100 rows in partitions with odd names, two files each."""
    for start in (0, 50):
        ids = list(range(start, start + 50))
        rows = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "part": [ODD[n % 5] for n in ids],
                "value": pa.array([math.nan if n % 10 == 3 else None if n % 10 == 4 else float(n) for n in ids]),
            }
        )
        write_delta(str(path), rows, mode="append", partition_by="part", configuration=configuration if start == 0 else None)
    return LocalStore(str(path))


def begin(store: LocalStore, operation: str, request: WriteRequest = NO_OPTIONS) -> Dml:
    return Dml.on(Snapshot.load(store), operation, request)


def predicate(dml: Dml, text: str) -> Expression:
    return parse_predicate(text, dml.config.schema)


def by_id(store: LocalStore) -> dict[int, dict[str, Any]]:
    """All rows, with their positions."""
    dml = begin(store, "DELETE")
    return {row["id"]: row for row in target_rows(dml, dml.find_candidates(None)).to_pylist()}


def ids_of(path: Path) -> list[int]:
    id_values: list[int] = DeltaTable(str(path)).to_arrow()["id"].to_pylist()
    return sorted(id_values)


def actions_of(path: Path, version: int) -> list[Any]:
    return [parse_action(line) for line in (path / f"_delta_log/{version:020}.json").read_bytes().splitlines()]


def feed_of(path: Path, version: int) -> list[tuple[str, int]]:
    rows = DeltaTable(str(path)).changes(starting_version=version, ending_version=version).read_all().to_pylist()
    return sorted((row["_change_type"], row["id"]) for row in rows)


def files_on_disk(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and "_delta_log" not in str(file)}


EVERY_KIND = [
    {**vectors, **feed, **tracking, "delta.columnMapping.mode": mapping}
    for vectors in ({}, VECTORS)
    for feed, tracking, mapping in (({}, {}, "none"), (FEED, TRACKING, "name"), (FEED, {}, "id"), ({}, TRACKING, "id"))
]


@pytest.mark.parametrize("configuration", EVERY_KIND, ids=lambda c: "-".join(c).replace("delta.", ""))
def test_delete_twice_keeps_other_rows_and_records_the_feed(tmp_path: Path, configuration: dict[str, str]) -> None:
    store = make(tmp_path, configuration)
    left = set(range(100))
    for version, divisor in ((2, 7), (3, 3)):
        dml = begin(store, "DELETE")
        rows = target_rows(dml, dml.find_candidates(None))
        going = sorted(n for n in left if n % divisor == 0)
        chosen = rows.filter(pa.array([n % divisor == 0 for n in rows["id"].to_pylist()]))
        half = chosen.num_rows // 2
        committed_version, metrics = run(dml, [[changed(chosen.slice(0, half), DELETED)], [changed(chosen.slice(half), DELETED)]])
        left -= set(going)
        assert (committed_version, metrics["numDeletedRows"]) == (version, len(going))
        assert ids_of(tmp_path) == sorted(left)
        if FEED.items() <= configuration.items():
            assert feed_of(tmp_path, version) == [("delete", n) for n in going]
        vector_files = {
            add.deletion_vector.path for add in actions_of(tmp_path, version) if isinstance(add, AddFile) and add.deletion_vector
        }
        assert len(vector_files) <= 2  # one for each task of the second job
        assert bool(vector_files) == (VECTORS.items() <= configuration.items())


@pytest.mark.parametrize("configuration", EVERY_KIND, ids=lambda c: "-".join(c).replace("delta.", ""))
def test_update_moves_rows_between_partitions_with_their_ids(tmp_path: Path, configuration: dict[str, str]) -> None:
    store = make(tmp_path, configuration)
    before = by_id(store)
    dml = begin(store, "UPDATE")
    rows = target_rows(dml, dml.find_candidates(predicate(dml, "id < 30")))
    chosen = rows.filter(pa.array([n < 30 and n % 2 == 0 for n in rows["id"].to_pylist()]))
    touched = len(set(chosen[ROW_ADDRESS].combine_chunks().field("file_number").to_pylist()))
    _, metrics = run(dml, [[changed(chosen, UPDATED, lambda row: {**row, "part": "new=1/2", "value": -1.0})]])
    assert (metrics["numUpdatedRows"], metrics["numRemovedFiles"]) == (15, touched)
    after = by_id(store)
    assert after.keys() == before.keys()
    for n, row in after.items():
        is_new = n < 30 and n % 2 == 0
        assert (row["part"], row["value"]) == ("new=1/2", -1.0) if is_new else row["part"] == before[n]["part"]
        if TRACKING.items() <= configuration.items():
            old, address = before[n][ROW_ADDRESS], row[ROW_ADDRESS]
            assert address["row_id"] == old["row_id"]
            assert address["row_commit_version"] == (2 if is_new else old["row_commit_version"])
    if FEED.items() <= configuration.items():
        images = [("update_postimage", n) for n in range(0, 30, 2)] + [("update_preimage", n) for n in range(0, 30, 2)]
        assert feed_of(tmp_path, 2) == sorted(images)


def test_update_and_insert_together_number_only_new_rows(tmp_path: Path) -> None:
    store = make(tmp_path, {**VECTORS, **FEED, **TRACKING})
    dml = begin(store, "MERGE")
    rows = target_rows(dml, dml.find_candidates(None))
    one = changed(rows.slice(0, 1), UPDATED, lambda row: {**row, "value": 0.5})
    other = changed(rows.slice(1, 1), INSERTED, lambda row: {**row, "id": 1000})
    nulls = {name: pa.nulls(1, one.schema.field(name).type) for name in (FILE, ROW, ROW_ID)}
    other = pa.record_batch({name: nulls.get(name, other.column(name)) for name in other.schema.names})
    run(dml, [[pa.concat_batches([one, other])]])
    rows_by_id = by_id(store)
    updated = rows["id"][0].as_py()
    assert len(rows_by_id) == 101 and rows_by_id[1000][ROW_ADDRESS]["row_id"] >= 100
    assert (
        rows_by_id[updated]["value"] == 0.5
        and rows_by_id[updated][ROW_ADDRESS]["row_id"] == rows[ROW_ADDRESS][0]["row_id"].as_py()
    )
    assert feed_of(tmp_path, 2) == sorted([("insert", 1000), ("update_postimage", updated), ("update_preimage", updated)])


@pytest.mark.parametrize("checkpointed", [False, True])
def test_file_with_new_vector_keeps_tags_and_clustering_provider(tmp_path: Path, checkpointed: bool) -> None:
    store = make(tmp_path, VECTORS)
    fields = {"tags": {"ZCUBE_ID": "a", "nothing": None}, "clusteringProvider": "liquid"}
    log = tmp_path / f"_delta_log/{1:020}.json"
    actions = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    log.write_bytes(b"\n".join(orjson.dumps({"add": {**a["add"], **fields}} if "add" in a else a) for a in actions))
    if checkpointed:
        DeltaTable(str(tmp_path)).checkpoint()
    dml = begin(store, "DELETE")
    rows = target_rows(dml, dml.find_candidates(None))
    run(dml, [[changed(rows.filter(pa.array([n in (50, 55) for n in rows["id"].to_pylist()])), DELETED)]])
    (removed,) = (action for action in actions_of(tmp_path, 2) if isinstance(action, RemoveFile))
    (added,) = (action for action in actions_of(tmp_path, 2) if isinstance(action, AddFile))
    assert added.deletion_vector is not None and added.path == removed.path
    assert (added.tags, added.clustering_provider, removed.tags) == (fields["tags"], "liquid", fields["tags"])


@pytest.mark.parametrize("configuration", [{}, VECTORS], ids=["rewriting", "vectors"])
def test_delete_of_all_rows_of_a_file_only_removes_it(tmp_path: Path, configuration: dict[str, str]) -> None:
    store = make(tmp_path, configuration)
    dml = begin(store, "DELETE")
    rows = target_rows(dml, dml.find_candidates(None))
    chosen = rows.filter(pa.array([n < 50 and n % 5 == 0 for n in rows["id"].to_pylist()]))
    before = files_on_disk(tmp_path)
    _, metrics = run(dml, [[changed(chosen, DELETED)]])
    actions = actions_of(tmp_path, 2)
    assert [type(a) for a in actions if isinstance(a, AddFile | RemoveFile)] == [RemoveFile] and files_on_disk(tmp_path) == before
    assert (metrics["numRemovedFiles"], metrics["numCopiedRows"], metrics["numDeletedRows"]) == (1, 0, 10)


def test_vector_that_is_updated_counts_as_removed_and_as_added(tmp_path: Path) -> None:
    """As the reference counts it. A file that is removed with its vector counts one removed vector."""
    store = make(tmp_path, VECTORS)
    vector_counts = []
    for ids in ({0, 5}, {10, 1}, {n for n in range(50) if n % 5 == 0}):
        dml = begin(store, "DELETE")
        rows = target_rows(dml, dml.find_candidates(None))
        chosen = rows.filter(pa.array([n in ids for n in rows["id"].to_pylist()]))
        _, metrics = run(dml, [[changed(chosen, DELETED)]])
        vector_counts.append(tuple(metrics[f"numDeletionVectors{what}"] for what in ("Added", "Updated", "Removed")))
    assert vector_counts == [(1, 0, 0), (2, 1, 1), (0, 0, 1)]


@pytest.mark.parametrize("configuration", [{}, VECTORS, FEED], ids=["rewriting", "vectors", "feed"])
@pytest.mark.parametrize(
    ("condition", "whole_count", "left"),
    [
        (None, 10, 0),
        ("part = 'with space'", 2, 0),
        ("part is null or part like 'sl%'", 4, 0),
        ("id >= 50", 5, 0),
        ("id >= 20", 5, 5),
        ("part = 'plain' and id < 60", 1, 1),
    ],
)
def test_whole_files_are_told_by_partitions_and_statistics(
    tmp_path: Path, configuration: dict[str, str], condition: str | None, whole_count: int, left: int
) -> None:
    store = make(tmp_path, configuration)
    dml = begin(store, "DELETE")
    condition_tree = None if condition is None else predicate(dml, condition)
    dml.find_candidates(condition_tree)
    rest = dml.split_off_whole_files(condition_tree)
    if configuration == FEED and condition is not None and "part = 'with" not in condition and "part is" not in condition:
        whole_count, left = 0, whole_count + left  # rows of the feed must be written
    assert len(rest) == left
    _, metrics = dml.commit({}, [], RemovedRows())
    assert metrics["numRemovedFiles"] == whole_count


def test_whole_files_are_never_those_with_nan_null_or_other_rows(tmp_path: Path) -> None:
    """Compared with the rows: a file is only removed as a whole if the condition is true for each of its rows."""
    rows = {
        "nan": [1.0, math.nan],
        "null": [1.0, None],
        "low": [1.0, 2.0],
        "high": [5.0, 9.0],
        "mixed": [-1.0, 7.0],
    }
    for name, values in rows.items():
        write_delta(str(tmp_path), pa.table({"name": [name] * 2, "x": values, "day": [date(2024, 1, 1)] * 2}), mode="append")
    store = LocalStore(str(tmp_path))
    for condition, true_of in {
        "x >= 1": {"nan", "low", "high"},
        "x < 3": {"low"},
        "x <=> null": set(),
        "x is null": set(),
        "x is not null": {"nan", "low", "high", "mixed"},
        "not (x < 5)": {"high"},
        "x in (1, 2)": set(),
        "x > 0 and name = 'low'": {"low"},
        "x > 0 or name = 'null'": {"nan", "null", "low", "high"},
        "x = null": set(),
        "x > 0 or null": {"nan", "low", "high"},
        "cast(x as decimal(10, 1)) >= 1": {"low", "high"},
        "not (cast(cast(x as decimal(10, 1)) as double) < 1)": {"low", "high"},
        "floor(cast(x as decimal(10, 1))) in (1, 2)": {"low"},
        "cast(x as int) > 0": {"low", "high"},
        "cast(x as bigint) <= 1": set(),
        "trunc(day, 'day') is not null": set(),
        "trunc(day, 'month') is not null": rows.keys(),
    }.items():
        dml = begin(store, "DELETE")
        condition_tree = predicate(dml, condition)
        dml.find_candidates(None)
        rest = dml.split_off_whole_files(condition_tree)
        kept_names = set(target_rows(dml, rest)["name"].to_pylist()) if len(rest) else set()
        assert rows.keys() - kept_names <= true_of, condition


def test_rows_that_come_twice_are_refused_and_nothing_stays(tmp_path: Path) -> None:
    for configuration in ({}, VECTORS, {**VECTORS, **FEED}):
        path = tmp_path / "-".join(configuration)
        store = make(path, configuration)
        before = files_on_disk(path)
        for repeats, error in ((Repeats.FORBIDDEN, RowCountMismatchError), (Repeats.AMBIGUOUS, UnsupportedOperationError)):
            dml = begin(store, "MERGE")
            dml.repeats = repeats
            rows = target_rows(dml, dml.find_candidates(None)).slice(0, 3)
            tasks = [[changed(rows, UPDATED)], [changed(rows.slice(2, 1), DELETED)]]
            with pytest.raises(error):
                run(dml, tasks)
            dml.abort()
            assert files_on_disk(path) == before and ids_of(path) == list(range(100))


def test_rows_deleted_twice_count_once_where_that_is_allowed(tmp_path: Path) -> None:
    store = make(tmp_path, VECTORS)
    dml = begin(store, "MERGE")
    dml.repeats = Repeats.IGNORED
    rows = target_rows(dml, dml.find_candidates(None)).slice(0, 3)
    run(dml, [[changed(rows, DELETED)], [changed(rows.slice(1), DELETED)]])
    assert len(ids_of(tmp_path)) == 97


@pytest.mark.parametrize("place", [-1, 10_000])
def test_rows_that_are_not_there_are_refused(tmp_path: Path, place: int) -> None:
    """place -1: a row that is deleted already."""
    store = make(tmp_path, VECTORS)
    dml = begin(store, "DELETE")
    rows = target_rows(dml, dml.find_candidates(None)).slice(0, 1)
    batch = changed(rows, DELETED)
    if place < 0:
        run(dml, [[batch]])
        dml = begin(store, "DELETE")
        dml.find_candidates(None)
        numbers = {file.path: n for n, file in enumerate(dml.find_candidates(None).of(range(10)))}
        deleted = next(a.path for a in actions_of(tmp_path, 2) if isinstance(a, AddFile))
        batch = batch.set_column(0, FILE, pa.array([numbers[deleted]], pa.int32()))
    else:
        batch = batch.set_column(1, ROW, pa.array([place], pa.int64()))
    before = files_on_disk(tmp_path)
    with pytest.raises(RowCountMismatchError, match="do not add up"):
        run(dml, [[batch]])
    assert files_on_disk(tmp_path) == before


def test_large_row_sets_use_a_scratch_file_that_is_deleted(tmp_path: Path) -> None:
    count = 1_000_000
    write_delta(str(tmp_path), pa.table({"id": pa.array(range(count), pa.int64())}), configuration=VECTORS)
    dml = begin(LocalStore(str(tmp_path)), "DELETE")
    rows = target_rows(dml, dml.find_candidates(None))
    chosen = rows.filter(pa.array(np.random.default_rng(5).random(count) < 0.5))
    batches = [changed(chosen.slice(start, 50_000), DELETED) for start in range(0, chosen.num_rows, 50_000)]
    changes = [write_changes(dml.change_state(), batches)]
    assert len(changes[0].scratch) == 1 and (tmp_path / changes[0].scratch[0]).exists()
    removed_rows = remove_rows(dml.touched_files(changes), dml.rewrite)
    dml.commit({}, changes, removed_rows)
    dml.close(changes)
    assert not (tmp_path / changes[0].scratch[0]).exists()
    assert len(ids_of(tmp_path)) == count - chosen.num_rows
    add = next(a for a in actions_of(tmp_path, 1) if isinstance(a, AddFile))
    stats = orjson.loads(add.stats or "")
    assert (stats["numRecords"], stats["tightBounds"], stats["minValues"]["id"]) == (count, False, 0)


def test_abort_deletes_what_the_tasks_wrote(tmp_path: Path) -> None:
    store = make(tmp_path, {**VECTORS, **FEED})
    before = files_on_disk(tmp_path)
    dml = begin(store, "UPDATE")
    chosen = target_rows(dml, dml.find_candidates(None))
    changes = [write_changes(dml.change_state(), [changed(chosen, UPDATED)])]
    remove_rows(dml.touched_files(changes)[:3], dml.rewrite)
    assert files_on_disk(tmp_path) > before
    dml.abort()
    assert files_on_disk(tmp_path) == before


def test_commit_that_changes_nothing_makes_no_version(tmp_path: Path) -> None:
    store = make(tmp_path, {})
    dml = begin(store, "DELETE")
    dml.find_candidates(predicate(dml, "id = 1000"))
    assert dml.commit({}, [], RemovedRows())[0] == 1 == DeltaTable(str(tmp_path)).version


def test_commit_refuses_rows_that_are_not_accounted_for(tmp_path: Path) -> None:
    store = make(tmp_path, VECTORS)
    before = files_on_disk(tmp_path)
    dml = begin(store, "UPDATE")
    rows = target_rows(dml, dml.find_candidates(None)).slice(0, 4)
    changes = [write_changes(dml.change_state(), [changed(rows, UPDATED)])]
    removed_rows = remove_rows(dml.touched_files(changes), dml.rewrite)
    with pytest.raises(RowCountMismatchError, match="took 0 and 3"):
        dml.commit({}, changes, replace(removed_rows, updated=3))
    assert files_on_disk(tmp_path) == before
    with pytest.raises(RowCountMismatchError, match="4 rows by 3"):
        dml.touched_files([TaskChanges(changes[0].written, changes[0].touched, updated=3)])


def test_append_only_table_is_refused_before_anything(tmp_path: Path) -> None:
    store = make(tmp_path, {"delta.appendOnly": "true"})
    for operation in ("DELETE", "UPDATE"):
        with pytest.raises(UnsupportedOperationError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
            begin(store, operation)


def test_identities_of_fields_do_not_reach_the_row_id_columns(tmp_path: Path) -> None:
    """A copied file has the materialized columns under their own names, without column ids."""
    store = make(tmp_path, {**TRACKING, "delta.columnMapping.mode": "id"})
    dml = begin(store, "DELETE")
    rows = target_rows(dml, dml.find_candidates(None)).slice(0, 1)
    run(dml, [[changed(rows, DELETED)]])
    (added,) = (a for a in actions_of(tmp_path, 2) if isinstance(a, AddFile))
    schema = pq.read_schema(tmp_path / added.path)
    tracked = [f for f in schema if f.name.startswith("_row-")]
    assert len(tracked) == 2 and all(b"PARQUET:field_id" not in (f.metadata or {}) for f in tracked)


def test_whole_files_of_no_candidates_are_none(tmp_path: Path) -> None:
    dml = begin(make(tmp_path, {}), "DELETE")
    condition_tree = predicate(dml, "id < 0")
    assert len(dml.find_candidates(condition_tree)) == 0 and len(dml.split_off_whole_files(condition_tree)) == 0
    assert dml.commit({}, [], RemovedRows())[0] == 1


def test_commit_has_transaction_and_metadata_of_the_session(tmp_path: Path) -> None:
    store = make(tmp_path, VECTORS)
    request = WriteRequest(txn_app_id="job", txn_version=4, user_metadata="why", max_records_per_file=2)
    dml = begin(store, "UPDATE", request)
    assert not dml.transaction.is_recorded
    rows = target_rows(dml, dml.find_candidates(None)).slice(0, 5)
    _, metrics = run(dml, [[changed(rows, UPDATED)]])
    assert metrics["numAddedFiles"] == 3
    assert DeltaTable(str(tmp_path)).history(limit=1).to_pylist()[0]["userMetadata"] == "why"
    assert begin(store, "UPDATE", request).transaction.is_recorded


def test_transaction_that_changes_nothing_is_recorded(tmp_path: Path) -> None:
    store = make(tmp_path, {})
    request = WriteRequest(txn_app_id="job", txn_version=4)
    dml = begin(store, "DELETE", request)
    assert len(dml.find_candidates(predicate(dml, "id < 0"))) == 0
    assert dml.commit({}, [], RemovedRows())[0] == 2
    assert begin(store, "DELETE", request).transaction.is_recorded
