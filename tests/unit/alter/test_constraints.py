"""CHECK constraints of tables that have rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter import table_constraints
from delta_py.alter.table_constraints import CheckedVersion, add_constraint, add_constraints, drop_constraint
from delta_py.errors import ConcurrentAppendException, DeltaError
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """Six rows in two files, one value null."""
    for ids in ([1, 2, -3], [4, None, 6]):
        write_delta(str(tmp_path), pa.table({"id": pa.array(ids, pa.int64()), "s": ["a"] * 3}), mode="append")
    return LocalStore(str(tmp_path))


def refused(run: Callable[[], Any]) -> DeltaError:
    with pytest.raises(DeltaError) as caught:
        run()
    return caught.value


def test_constraint_that_holds_is_added_and_kept_by_writes(store: ObjectStore) -> None:
    assert add_constraint(store, "Small", "id is null or id < 10") == 2
    snapshot = Snapshot.load(store)
    assert dict(snapshot.metadata.configuration) == {"delta.constraints.small": "id is null or id < 10"}
    assert (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version) == (1, 3)
    error = refused(lambda: write_delta(store.root, pa.table({"id": [10]}), mode="append"))
    assert error.error_class == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert drop_constraint(store, "SMALL") == 3
    write_delta(store.root, pa.table({"id": [10]}), mode="append")


def test_violated_constraint_counts_rows_including_nulls(store: ObjectStore) -> None:
    error = refused(lambda: add_constraint(store, "c", "id > 0"))
    assert error.error_class == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    assert error.message_parameters["row_count"] == 2
    assert Snapshot.load(store).version == 1


def test_constraint_compares_existing_rows_with_the_current_time(tmp_path: Path) -> None:
    day = dt.timedelta(days=1)
    write_delta(str(tmp_path), pa.table({"at": [dt.datetime.now(dt.UTC) - day]}))
    store = LocalStore(str(tmp_path))
    assert add_constraint(store, "past", "at <= current_timestamp() AND to_date(at) <= current_date()") == 1
    error = refused(lambda: add_constraint(store, "future", "at >= current_timestamp()"))
    assert error.error_class == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"


@pytest.mark.parametrize(
    ("name", "sql", "condition"),
    [
        ("c", "id + 1", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("c", "nowhere > 1", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
        ("c", "rand() > 1", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
        ("c", "id in (select 1)", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
        ("c", "id >", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
        ("c", "hash(id) <> 1", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
        ("", "id is null or id < 10", "DELTA_INVALID_CONSTRAINT_NAME"),
        ("__CHAR_VARCHAR_STRING_LENGTH_CHECK__", "id is null or id < 10", "DELTA_INVALID_CONSTRAINT_NAME"),
    ],
)
def test_condition_that_is_none_is_refused(store: ObjectStore, name: str, sql: str, condition: str) -> None:
    assert refused(lambda: add_constraint(store, name, sql)).error_class == condition
    assert Snapshot.load(store).version == 1


def test_condition_checked_by_spark_may_use_spark_functions(store: ObjectStore) -> None:
    assert add_constraint(store, "c", "hash(id) <> 1", checked=CheckedVersion(1, 0)) == 2
    assert refused(lambda: add_constraint(store, "C", "id > 1")).error_class == "DELTA_CONSTRAINT_ALREADY_EXISTS"


def test_rows_added_since_they_were_looked_at_are_a_conflict(store: ObjectStore) -> None:
    with pytest.raises(ConcurrentAppendException):
        add_constraint(store, "c", "hash(id) <> 1", checked=CheckedVersion(0, 0))
    assert add_constraint(store, "c", "id is null or id < 10") == 2


def test_rows_added_after_the_check_conflict_at_any_isolation(tmp_path: Path) -> None:
    root = str(tmp_path)
    write_delta(root, pa.table({"id": [1]}), configuration={"delta.isolationLevel": "SnapshotIsolation"})
    write_delta(root, pa.table({"id": [-1]}), mode="append")
    with pytest.raises(ConcurrentAppendException):
        add_constraint(LocalStore(root), "c", "id > 0", checked=CheckedVersion(0, 0))


def test_rows_added_while_they_are_looked_at_are_a_conflict(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    count = table_constraints._count_broken_rows

    def late(*arguments: Any) -> int:
        row_count = count(*arguments)
        write_delta(store.root, pa.table({"id": [11]}), mode="append")
        return row_count

    monkeypatch.setattr(table_constraints, "_count_broken_rows", late)
    with pytest.raises(ConcurrentAppendException):
        add_constraint(store, "c", "id is null or id < 10")


def test_constraints_are_added_in_one_commit_or_not_at_all(store: ObjectStore) -> None:
    before = Snapshot.load(store).version
    assert add_constraints(store, {}) == before
    error = refused(lambda: add_constraints(store, {"known": "s IS NOT NULL", "small": "id < -5"}))
    assert error.message_parameters["constraint"] == "small"
    error = refused(lambda: add_constraints(store, {"known": "s IS NOT NULL", "KNOWN": "s IS NOT NULL"}))
    assert error.error_class == "DELTA_CONSTRAINT_ALREADY_EXISTS"
    assert add_constraints(store, {"known": "s IS NOT NULL", "large": "id IS NULL OR id > -5"}) == before + 1
    assert table_constraints.constraint_names(Snapshot.load(store).config) == ["known", "large"]


def test_missing_constraint_can_be_dropped_only_with_if_exists(store: ObjectStore) -> None:
    assert refused(lambda: drop_constraint(store, "c")).error_class == "DELTA_CONSTRAINT_DOES_NOT_EXIST"
    assert drop_constraint(store, "c", if_exists=True) == 1


def test_constraint_reads_only_the_columns_it_names(store: ObjectStore) -> None:
    assert add_constraint(store, "always", "1 < 2") == 2
    assert DeltaTable(store.root).to_arrow().num_rows == 6
