"""A table that is deleted and created again while another process works on it: no work goes into the new table, whatever its
version is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py import snapshot as snapshot_module
from delta_py.commit.transaction import Transaction
from delta_py.copies.restore import restore
from delta_py.definition.request import StreamBatch, WriteRequest
from delta_py.errors import DeltaError, SchemaMismatchError, VersionNotFoundError
from delta_py.row_changes.write import commit_write, plan_write
from delta_py.row_changes.write_plans import WritePlan
from delta_py.types.schema import from_arrow_schema
from delta_py.write.data_files import write_files
from tests.support.stores.memory_store import MemoryStore

VERSIONS = 3
ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})
OTHER_ROWS = pa.table({"id": ["text"], "count": [1]})


def table_of(rows: pa.Table, versions: int) -> MemoryStore:
    store = MemoryStore()
    for _ in range(versions):
        write_delta(store.root, rows, mode="append", store=store)
    return store


def replace_by(store: MemoryStore, other: MemoryStore) -> None:
    store.objects.clear()
    store.objects.update(other.objects)


WRITERS: dict[str, Callable[[DeltaTable], object]] = {
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"name": "'x'"}),
    "merge": lambda table: table.merge(ROWS, "s.id = t.id", "s", "t").when_matched_delete().execute(),
    "properties": lambda table: table.alter.set_table_properties({"a.b": "c"}),
    "add column": lambda table: table.alter.add_columns(pa.schema([("more", pa.int64())])),
    "restore": lambda table: restore(table.snapshot.store, version=0),
}


@pytest.mark.parametrize("versions", [VERSIONS - 1, VERSIONS, VERSIONS + 1])
@pytest.mark.parametrize("name", WRITERS)
def test_commit_to_a_table_that_was_made_anew_is_refused(name: str, versions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work took longer than a second."""
    store, other, commit = table_of(ROWS, VERSIONS), table_of(OTHER_ROWS, versions), Transaction.commit

    def commit_late(self: Transaction, *args: Any, **options: Any) -> int:
        replace_by(store, other)
        return commit(self, *args, **options)

    monkeypatch.setattr(snapshot_module, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(Transaction, "commit", commit_late)
    with pytest.raises(SchemaMismatchError) as caught:
        WRITERS[name](DeltaTable(store.root, store=store))
    assert caught.value.error_class == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert store.objects == other.objects


def test_optimize_of_a_table_that_was_made_anew_leaves_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lists the files of the new table again, and may merge those."""
    store, other = table_of(ROWS, VERSIONS), table_of(OTHER_ROWS, VERSIONS)
    table, open_output = DeltaTable(store.root, store=store), MemoryStore.open_output

    def made_anew_before(self: MemoryStore, path: str) -> Any:
        replace_by(store, other)
        return open_output(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(MemoryStore, "open_output", made_anew_before)
        table.optimize.compact()
    assert DeltaTable(store.root, store=store).to_arrow().to_pylist() == OTHER_ROWS.to_pylist() * VERSIONS


@pytest.mark.parametrize("batch", [None, StreamBatch("query", 3, "Append")], ids=["batch", "stream"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("versions", [VERSIONS - 1, VERSIONS, VERSIONS + 1])
def test_planned_write_is_not_committed_to_a_recreated_table(
    mode: str, versions: int, batch: StreamBatch | None
) -> None:
    store, other = table_of(ROWS, VERSIONS), table_of(OTHER_ROWS, versions)
    plan = plan_write(store, from_arrow_schema(ROWS.schema), WriteRequest(mode))
    assert isinstance(plan, WritePlan)
    replace_by(store, other)
    files = write_files(plan.state, ROWS.to_batches())
    with pytest.raises(DeltaError) as caught:
        commit_write(store, plan, [files], batch=batch)
    assert isinstance(caught.value, VersionNotFoundError if versions < VERSIONS else SchemaMismatchError)
    assert store.objects == other.objects
