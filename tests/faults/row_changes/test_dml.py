"""DELETE, UPDATE, MERGE and saves that replace matching rows, with each call of the store failed in turn: each runs once or not
at all, reports which, and leaves no files if it is refused.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.parquet.file_reader import read_files
from delta_py.row_changes.dml import Dml
from delta_py.scan.planning import ROW_ADDRESS, ScanOptions, plan_listed_files, row_address_column
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType
from delta_py.write.rewrite import RemovedRows, remove_rows
from delta_py.write.task_changes import CHANGE, DELETED, FILE, INSERTED, NEW, ROW, ROW_ID, UPDATED, write_changes
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

Change = Callable[[ObjectStore, str], int]

pytestmark = pytest.mark.usefixtures("no_waits")

ROWS = 40
CONFIGURATIONS = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "vectors and feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "rewriting": {"delta.enableRowTracking": "true"},
    "rewriting and feed": {"delta.enableChangeDataFeed": "true"},
}


def make(path: Path, configuration: dict[str, str]) -> None:
    for start in (0, ROWS // 2):
        ids = range(start, start + ROWS // 2)
        table = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([0] * len(ids), pa.int64())})
        write_delta(str(path), table, mode="append", configuration=None if start else configuration)


KINDS = {
    "DELETE": [DELETED],
    "UPDATE": [UPDATED],
    "MERGE": [DELETED, UPDATED, INSERTED],
    "WRITE": [DELETED, INSERTED],  # of replaceUsing and replaceOn
}


COMMANDS = ("DELETE", "UPDATE", "MERGE")  # those that a table has without Spark


def rows_to_change(dml: Dml) -> pa.RecordBatch:
    """Every fourth row, with the operation's kinds in turn. An inserted row deletes no row of a file."""
    columns = StructType((*dml.snapshot.schema.fields, row_address_column().logical))
    files = dml.find_candidates(None).files.to_batches()
    scan = plan_listed_files(dml.snapshot.config, dml.state.store, files, columns, None, ScanOptions(row_address=True))
    rows = pa.Table.from_batches(list(read_files(scan.state, scan.scan_files()))).sort_by("id")
    rows = rows.filter(pa.array([n % 4 == 1 for n in rows["id"].to_pylist()]))
    address = rows[ROW_ADDRESS].combine_chunks()
    kinds = [kind for kind, _ in zip(itertools.cycle(KINDS[dml.operation]), range(rows.num_rows), strict=False)]
    inserted = pa.array([kind == INSERTED for kind in kinds])
    ids = [id + 1000 * (kind == INSERTED) for id, kind in zip(rows["id"].to_pylist(), kinds, strict=True)]
    new = pa.StructArray.from_arrays([pa.array(ids, pa.int64()), pa.array([1] * len(ids), pa.int64())], ["id", "x"])
    place = {FILE: "file_number", ROW: "row_index", ROW_ID: "row_id"}
    columns_of_place = {name: _null_where(inserted, address.field(field)) for name, field in place.items()}
    return pa.record_batch({**columns_of_place, CHANGE: pa.array(kinds, pa.int8()), NEW: new})


def _null_where(places: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(places, pa.scalar(None, values.type), values)


def change(store: ObjectStore, operation: str) -> int:
    """As spark_plugin.dml.jobs does it: two tasks, then two file tasks. If one fails, the written files are deleted."""
    dml = Dml.begin(store, operation, time_zone="UTC")
    try:
        batch = rows_to_change(dml)
        half = batch.num_rows // 2
        tasks = [batch.slice(0, half), batch.slice(half)]
        changes = [write_changes(dml.change_state(), [rows], task=n) for n, rows in enumerate(tasks)]
        groups = dml.group_for_tasks(dml.touched_files(changes), 2)
        removed_rows = RemovedRows.of_all(remove_rows(group, dml.rewrite, task=n) for n, group in enumerate(groups))
    except BaseException:
        dml.abort()
        raise
    try:
        version, _ = dml.commit({"predicate": []}, changes, removed_rows)
    finally:
        dml.close(changes)
    return version


def state(path: Path) -> list[tuple[int, int]]:
    return sorted((row["id"], row["x"]) for row in DeltaTable(str(path)).to_arrow().to_pylist())


def expected(operation: str) -> list[tuple[int, int]]:
    rows = {n: 0 for n in range(ROWS)}
    for n, kind in zip(range(1, ROWS, 4), itertools.cycle(KINDS[operation]), strict=False):
        if kind == DELETED:
            del rows[n]
        else:
            rows[n + 1000 * (kind == INSERTED)] = 1
    return sorted(rows.items())


def data_files(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*") if f.is_file() and "_delta_log" not in f.parts}


@pytest.mark.parametrize(("operation", "configuration", "kind"), sampled(itertools.product(KINDS, CONFIGURATIONS, FAULTS), 11))
def test_change_with_one_call_failed_is_done_once_or_not_at_all(
    tmp_path: Path, operation: str, configuration: str, kind: str
) -> None:
    calls = with_each_call_failed(tmp_path, change, operation, configuration, kind)
    writes_rows = set() if operation == "DELETE" and "vectors" in configuration else {"open_output", "output", "close"}
    assert {"list_from", "read", "put_if_absent", *writes_rows} <= {call.split()[0] for call in calls}


def with_each_call_failed(tmp_path: Path, change: Change, operation: str, configuration: str, kind: str) -> list[str]:
    """Returns the calls that the change makes without a fault."""
    original_path, count = tmp_path / "made", tmp_path / "count"
    make(original_path, CONFIGURATIONS[configuration])
    shutil.copytree(original_path, count)
    store = FaultyStore(LocalStore(str(count)))
    assert change(store, operation) == 2
    assert state(count) == expected(operation)
    before, outcomes = (state(original_path), data_files(original_path)), Counter[str]()
    for number in range(len(store.calls)):
        path = tmp_path / str(number)
        shutil.copytree(original_path, path)
        outcomes[one_fault(path, change, operation, Fault(number, **FAULTS[kind]), *before)] += 1
        shutil.rmtree(path)
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"
    return store.calls


def one_fault(
    path: Path, change: Change, operation: str, fault: Fault, before: list[tuple[int, int]], files_before: set[str]
) -> str:
    store = FaultyStore(LocalStore(str(path)), fault)
    version_made, outcome = outcome_of(lambda: change(store, operation))
    assert version_made == 2 or outcome != "done"
    call = store.calls[fault.call] if fault.call < len(store.calls) else None
    is_committed = DeltaTable(str(path)).version == 2
    assert state(path) == (expected(operation) if is_committed else before), call
    assert (is_committed, outcome) not in ((False, "done"), (True, "refused")), call
    if outcome == "refused" and not fault.lasting:
        assert len(data_files(path) - files_before) <= 1, "only the file whose delete failed may stay"
    if not is_committed:  # a second run succeeds
        assert change(LocalStore(str(path)), operation) == 2
        assert state(path) == expected(operation)
    DeltaTable(str(path)).snapshot.check_integrity()
    return outcome


# ---------------------------------------------------------------- delta_py.DeltaTable's own DELETE, UPDATE and MERGE


def command(store: ObjectStore, operation: str) -> int:
    """DELETE of every fourth row, UPDATE of it, or a MERGE that deletes, updates and inserts in turn."""
    table = DeltaTable(store.root, store=store)
    if operation == "DELETE":
        table.delete("id % 4 = 1")
    elif operation == "UPDATE":
        table.update({"x": "1"}, predicate="id % 4 = 1")
    else:
        ids = list(range(1, ROWS, 4))
        kinds = [kind for kind, _ in zip(itertools.cycle(KINDS["MERGE"]), ids, strict=False)]
        keys = [id + 1000 * (kind == INSERTED) for id, kind in zip(ids, kinds, strict=True)]
        source = pa.table({"id": pa.array(keys, pa.int64()), "x": [1] * len(ids), "gone": [kind == DELETED for kind in kinds]})
        merger = table.merge(source, "target.id = source.id").when_matched_delete("gone")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
    return DeltaTable(store.root, store=LocalStore(store.root)).version


@pytest.mark.parametrize(("operation", "configuration", "kind"), sampled(itertools.product(COMMANDS, CONFIGURATIONS, FAULTS), 29))
def test_table_command_with_a_failed_call_happens_once_or_never(
    tmp_path: Path, operation: str, configuration: str, kind: str
) -> None:
    with_each_call_failed(tmp_path, command, operation, configuration, kind)
