"""Writes to tables with identity columns: numbers, high water marks, and other writers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit.transaction import Transaction
from delta_py.definition.create import create_table, define_table
from delta_py.errors import DeltaError, InvariantViolationError, MetadataChangedException
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.identity_columns import identity_columns
from delta_py.row_changes.write import WriteRequest, commit_write, plan_write
from delta_py.row_changes.write_plans import NothingToDo
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, STRING, StructField, StructType, from_arrow_schema
from delta_py.write.data_files import write_files

ROWS = pa.table({"name": ["a", "b", "c"]})


def identity(start: int = 1, step: int = 1, *, explicit: bool = False) -> StructField:
    metadata = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": explicit,
    }
    return StructField("id", LONG, False, metadata)


def table(path: Path, column: StructField, **properties: str) -> ObjectStore:
    store = open_store(str(path))
    configuration = {name.replace("__", "."): value for name, value in properties.items()}
    create_table(store, define_table(StructType((column, StructField("name", STRING))), configuration=configuration))
    return store


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """An empty table: id GENERATED ALWAYS from 1, and name."""
    return table(tmp_path, identity())


def ids(store: ObjectStore) -> list[int]:
    return sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist())


def mark(store: ObjectStore) -> int | None:
    return identity_columns(Snapshot.load(store).schema)[0].mark


def commit_lines(store: ObjectStore, version: int) -> dict[str, Any]:
    data = store.read(f"_delta_log/{version:020}.json")
    return {name: body for line in data.splitlines() for name, body in orjson.loads(line).items()}


# ---------------------------------------------------------------- numbers and marks


def test_rows_get_numbers_and_the_mark_rises(store: ObjectStore) -> None:
    protocol = Snapshot.load(store).protocol
    assert protocol.writer_features == frozenset({"appendOnly", "invariants", "identityColumns"})
    assert mark(store) is None
    write_delta(store.root, ROWS, mode="append")
    assert (ids(store), mark(store)) == ([1, 2, 3], 3)
    lines = commit_lines(store, 1)
    assert lines["commitInfo"]["tags"] == {"delta.identity.schemaUpdate": "true"}
    assert lines["commitInfo"]["isBlindAppend"] is True
    write_delta(store.root, ROWS, mode="overwrite")
    assert (ids(store), mark(store)) == ([4, 5, 6], 6)
    write_delta(store.root, ROWS.slice(0, 0), mode="append", txn_app_id="app", txn_version=1)  # a version without rows
    assert mark(store) == 6
    assert "metaData" not in commit_lines(store, 3)
    Snapshot.load(store).check_integrity()


def test_negative_step_counts_down_and_lowers_the_mark(tmp_path: Path) -> None:
    store = table(tmp_path, identity(-1, -10))
    write_delta(store.root, ROWS, mode="append")
    assert (ids(store), mark(store)) == ([-21, -11, -1], -21)


def test_numbers_are_used_by_generated_columns_and_constraints(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    twice = StructField("twice", LONG, True, {"delta.generationExpression": "length(name) * 2L"})
    schema = StructType((identity(), StructField("name", STRING), twice))
    create_table(store, define_table(schema, configuration={"delta.constraints.few": "id < 5"}))
    write_delta(store.root, ROWS, mode="append")
    with pytest.raises(InvariantViolationError, match="few"):
        write_delta(store.root, ROWS, mode="append")
    assert (ids(store), mark(store)) == ([1, 2, 3], 3)
    assert sorted(path.name for path in tmp_path.glob("*.parquet"))[1:] == []


def test_merge_schema_and_numbers_are_one_commit(store: ObjectStore) -> None:
    write_delta(store.root, ROWS.append_column("more", [[1, 2, 3]]), mode="append", merge_schema=True)
    assert (mark(store), Snapshot.load(store).schema.names) == (3, ("id", "name", "more"))
    assert "tags" not in commit_lines(store, 1)["commitInfo"], "others must mind the new column"


def test_column_mapping_and_row_tracking_go_with_numbers(tmp_path: Path) -> None:
    store = table(tmp_path, identity(), delta__columnMapping__mode="name", delta__enableRowTracking="true")
    write_delta(store.root, ROWS, mode="append")
    assert (ids(store), mark(store)) == ([1, 2, 3], 3)


# ---------------------------------------------------------------- values of the caller's


def test_generated_always_refuses_values(store: ObjectStore) -> None:
    rows = ROWS.append_column("ID", pa.array([7, 8, 9], pa.int64()))
    for mode in ("append", "overwrite"):
        with pytest.raises(InvariantViolationError) as caught:
            write_delta(store.root, rows, mode=mode)
        assert caught.value.error_class == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    assert Snapshot.load(store).version == 0


def test_generated_by_default_takes_values_and_leaves_the_mark(tmp_path: Path) -> None:
    store = table(tmp_path, identity(explicit=True))
    write_delta(store.root, ROWS.append_column("id", pa.array([70, 80, 90], pa.int64())), mode="append")
    assert (ids(store), mark(store)) == ([70, 80, 90], None)
    assert "metaData" not in commit_lines(store, 1)
    write_delta(store.root, ROWS, mode="append")
    assert (ids(store), mark(store)) == ([1, 2, 3, 70, 80, 90], 3)


def test_new_table_from_a_frame_takes_no_identity_along(store: ObjectStore, tmp_path: Path) -> None:
    write_delta(store.root, ROWS, mode="append")
    path = str(tmp_path / "copy")
    write_delta(path, DeltaTable(store.root).to_arrow())
    assert identity_columns(DeltaTable(path).struct_type) == ()


# ---------------------------------------------------------------- many tasks


@pytest.mark.parametrize("tasks", [4, None])
def test_tasks_write_disjoint_numbers_in_one_commit(store: ObjectStore, tasks: int | None) -> None:
    plan = plan_write(store, from_arrow_schema(ROWS.schema), WriteRequest("append"))
    assert not isinstance(plan, NothingToDo)
    state = replace(plan.state, tasks=tasks)
    parts = [write_files(state, ROWS.to_batches() * 50, task=task) for task in range(4)]
    commit_write(store, plan, parts)
    number_list = ids(store)
    assert len(number_list) == len(set(number_list)) == 600
    assert mark(store) == max(number_list)


# ---------------------------------------------------------------- other writers


def add_row(store: ObjectStore) -> object:
    return write_delta(store.root, ROWS.slice(0, 1), mode="append")


def add_explicit(store: ObjectStore) -> object:
    return write_delta(store.root, ROWS.slice(0, 1).append_column("id", pa.array([99], pa.int64())), mode="append")


def set_other(store: ObjectStore) -> object:
    snapshot = Snapshot.load(store)
    changed = replace(snapshot.metadata, configuration={"a": "b"})
    return Transaction(snapshot).set_metadata(changed).commit("SET TBLPROPERTIES", {})


CONFLICTS: dict[str, tuple[Callable[[ObjectStore], object], Callable[[ObjectStore], object], bool]] = {
    "numbers, numbers": (add_row, add_row, True),
    "values, numbers": (add_explicit, add_row, False),
    "numbers, values": (add_row, add_explicit, False),
    "other, numbers": (set_other, add_row, True),
    "values, other": (add_explicit, set_other, True),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_numbers_beside_another_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Our write, the one that commits before it, and whether ours must fail."""
    store = table(tmp_path, identity(explicit=True))
    ours, theirs, conflicts = CONFLICTS[case]
    commit = Transaction.commit

    def late(self: Transaction, *args: Any, **kwargs: Any) -> int:
        monkeypatch.setattr(Transaction, "commit", commit)
        theirs(store)
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    if conflicts:
        with pytest.raises(MetadataChangedException):
            ours(store)
    else:
        ours(store)
        assert sorted(ids(store)) == [1, 99]
        assert mark(store) == 1
    snapshot = Snapshot.load(store)
    snapshot.check_integrity()
    assert snapshot.version == (1 if conflicts else 2)
    write_delta(store.root, ROWS, mode="append")
    assert len(set(ids(store))) == len(ids(store)), "no number twice, whatever the checksum of the commit said"


def test_running_out_of_numbers_writes_nothing(tmp_path: Path) -> None:
    store = table(tmp_path, identity(2**63 - 2))
    with pytest.raises(DeltaError) as caught:
        write_delta(store.root, ROWS, mode="append")
    assert caught.value.error_class == "ARITHMETIC_OVERFLOW"
    assert (ids(store), list(tmp_path.glob("*.parquet"))) == ([], [])
