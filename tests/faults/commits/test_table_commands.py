"""ALTER, RESTORE, CLONE and OPTIMIZE with each storage call failed in turn: the table is as before or as after, and no error
follows a commit that succeeded.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable
from delta_py.alter.alter import set_properties, unset_properties
from delta_py.alter.alter_columns import add_columns, change_columns, drop_columns, rename_column
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.alter.drop_feature import drop_feature
from delta_py.alter.sync_identity import sync_identity
from delta_py.alter.table_constraints import add_constraint, drop_constraint
from delta_py.copies.clone import clone_table
from delta_py.copies.deep_clone import deep_clone
from delta_py.copies.restore import restore
from delta_py.definition.cluster_by import cluster_by
from delta_py.definition.create import create_table, define_table
from delta_py.definition.replace import build_table
from delta_py.errors import TableNotFoundError
from delta_py.index_commands.index import TableIndexes
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import OptimizeRequest
from delta_py.optimize.reorg import Purge
from delta_py.protocol.clustering import clustering_columns
from delta_py.protocol.identity_columns import identity_columns
from delta_py.row_changes.write import write_delta
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import INTEGER, LONG, StructField, StructType
from tests.support.runs.sampling import sampled
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits")

VECTORS = {"delta.enableDeletionVectors": "true"}

State = tuple[int, dict[str, str], list[int]]
"""Version, properties and ids of a table."""


def state(path: Path) -> State | None:
    try:
        table = DeltaTable(str(path))
    except TableNotFoundError:
        return None
    return table.version, dict(table.metadata.configuration), sorted(table.to_arrow(["id"])["id"].to_pylist())


def make(path: Path, batches: int = 3) -> None:
    for number in range(batches):
        write_delta(str(path), pa.table({"id": range(4 * number, 4 * number + 4)}), mode="append")


def clone(store: Any, **options: Any) -> int:
    source = Path(store.root).with_name("source")
    return clone_table(Snapshot.load(LocalStore(str(source))), store, **options)


def optimized(store: Any, **request: Any) -> int:
    version = optimize(store, OptimizeRequest(**request), LocalBinWriters()).version
    assert version is not None
    return version


def deep(store: Any, **options: Any) -> int:
    source = Path(store.root).with_name("source")
    return int(deep_clone(Snapshot.load(LocalStore(str(source))), store, **options)["version"])


def purged(store: Any) -> int:
    version = optimize(store, OptimizeRequest(), LocalBinWriters(), kind=Purge).version
    assert version is not None
    return version


@dataclass(frozen=True)
class Command:
    """before: the number of commits of the table before; 0 if there is no table. steps: the commits that the command makes.
    after: the state afterwards. prepare: other changes of the table before. every: only one in this many calls fails, for a
    command with very many calls. makes_table: prepare makes the table. holds: an additional condition of the table afterwards."""

    run: Callable[[Any], int]
    before: int
    after: State
    steps: int = 1
    prepare: Callable[[Path], object] = lambda path: None
    every: int = 1
    makes_table: bool = False
    holds: Callable[[Path], bool] = lambda path: True


def delete_a_row(path: Path) -> None:
    set_properties(LocalStore(str(path)), VECTORS)
    write_delta(str(path), pa.table({"id": pa.array([], pa.int64())}), mode="overwrite", replace_where="id = 0")


def mapped_with_more(path: Path) -> None:
    set_properties(LocalStore(str(path)), {"delta.columnMapping.mode": "name"})
    add_columns(LocalStore(str(path)), [NewColumn("x", LONG), NewColumn("y", LONG)])


def mapped_with_index(path: Path) -> None:
    store = LocalStore(str(path))
    set_properties(store, {"delta.columnMapping.mode": "name"})
    cluster_by(store, ["id"])
    TableIndexes(store).create("id", "by_id")


def has_no_mapping(path: Path) -> bool:
    """Neither files nor schema have column mapping."""
    snapshot = Snapshot.load(LocalStore(str(path)))
    names = {name for file in snapshot.files()["path"].to_pylist() for name in pq.read_schema(path / file).names}
    return names == {"id"} and "columnMapping" not in snapshot.metadata.schema_string


def make_wide(path: Path) -> None:
    store = LocalStore(str(path))
    set_properties(store, {"delta.enableTypeWidening": "true"})
    add_columns(store, [NewColumn("n", INTEGER)])
    write_delta(str(path), pa.table({"id": [12], "n": pa.array([1], pa.int32())}), mode="append")
    change_columns(store, [ColumnChange("n", data_type=LONG)])


def make_numbered(path: Path) -> None:
    """With rows that bring their own numbers, so that the high water mark is too low."""
    rules = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
    create_table(LocalStore(str(path)), define_table(StructType((StructField("id", LONG, True, rules),))))
    write_delta(str(path), pa.table({"id": range(12)}), mode="append")


def is_synced(path: Path) -> bool:
    return identity_columns(Snapshot.load(LocalStore(str(path))).schema)[0].mark == 11


def is_clustered(path: Path) -> bool:
    snapshot = Snapshot.load(LocalStore(str(path)))
    return clustering_columns(snapshot.schema, snapshot.clustering_domain()) == ("id",)


def replaced(store: Any) -> int:
    return build_table(store, "replace", define_table(StructType((StructField("id", LONG),)), configuration={"team": "c"}))


def renamed_and_dropped(store: Any) -> int:
    if "y" in Snapshot.load(store).schema.names:
        rename_column(store, "y", "z")
    return drop_columns(store, ["x"])


COMMANDS = {
    "ALTER": Command(
        lambda store: set_properties(store, {"delta.appendOnly": "true"}), 3, (3, {"delta.appendOnly": "true"}, [*range(12)])
    ),
    "ALTER that gives row ids": Command(
        lambda store: set_properties(store, {"delta.enableRowTracking": "true"}),
        3,
        (5, {"delta.enableRowTracking": "true"}, [*range(12)]),
        3,
    ),
    "ADD COLUMNS": Command(lambda store: add_columns(store, [NewColumn("x", LONG)]), 3, (3, {}, [*range(12)])),
    "ADD CONSTRAINT": Command(
        lambda store: add_constraint(store, "c", "id >= 0"), 3, (3, {"delta.constraints.c": "id >= 0"}, [*range(12)])
    ),
    "column mapping turned off": Command(
        lambda store: set_properties(store, {"delta.columnMapping.mode": "none"}),
        3,
        (6, {"delta.columnMapping.mode": "none"}, [*range(12)]),
        prepare=mapped_with_index,
        holds=has_no_mapping,
    ),
    "DROP FEATURE columnMapping": Command(
        lambda store: drop_feature(store, "columnMapping"),
        3,
        (8, {}, [*range(12)]),
        5,
        prepare=lambda path: set_properties(LocalStore(str(path)), {"delta.columnMapping.mode": "name"}),
        every=5,
        holds=has_no_mapping,
    ),
    "RENAME and DROP COLUMN": Command(
        renamed_and_dropped, 3, (6, {"delta.columnMapping.mode": "name"}, [*range(12)]), 2, prepare=mapped_with_more
    ),
    "CHANGE COLUMN": Command(lambda store: change_columns(store, [ColumnChange("id", comment="c")]), 3, (3, {}, [*range(12)])),
    "UNSET": Command(
        lambda store: unset_properties(store, ["team"]),
        3,
        (4, {}, [*range(12)]),
        prepare=lambda path: set_properties(LocalStore(str(path)), {"team": "a"}),
    ),
    "DROP CONSTRAINT": Command(
        lambda store: drop_constraint(store, "c"),
        3,
        (4, {}, [*range(12)]),
        prepare=lambda path: add_constraint(LocalStore(str(path)), "c", "id >= 0"),
    ),
    "CLUSTER BY": Command(lambda store: cluster_by(store, ["id"]), 3, (3, {}, [*range(12)]), holds=is_clustered),
    "SYNC IDENTITY": Command(
        lambda store: sync_identity(store, "id"),
        0,
        (2, {}, [*range(12)]),
        prepare=make_numbered,
        makes_table=True,
        holds=is_synced,
    ),
    "REPLACE": Command(replaced, 3, (3, {"team": "c"}, [])),
    "DROP FEATURE typeWidening": Command(
        lambda store: drop_feature(store, "typeWidening"), 3, (13, {}, [*range(13)]), 7, prepare=make_wide, every=9
    ),
    "DROP FEATURE rowTracking": Command(
        lambda store: drop_feature(store, "rowTracking"),
        3,
        (8, {}, [*range(12)]),
        3,
        prepare=lambda path: set_properties(LocalStore(str(path)), {"delta.enableRowTracking": "true"}),
        every=3,
    ),
    "DROP FEATURE": Command(
        lambda store: drop_feature(store, "deletionVectors"),
        3,
        (11, {}, [*range(1, 12)]),
        7,
        prepare=delete_a_row,
        every=5,
    ),
    "RESTORE": Command(lambda store: restore(store, version=1).version, 3, (3, {}, [*range(8)])),
    "OPTIMIZE": Command(optimized, 3, (3, {}, [*range(12)])),
    "OPTIMIZE in Z-order": Command(partial(optimized, z_order=("id",), target_file_bytes=700), 3, (3, {}, [*range(12)])),
    "CLONE": Command(clone, 0, (0, {}, [*range(12)])),
    "CLONE in place of a table": Command(lambda store: clone(store, replace_table=True), 1, (1, {}, [*range(12)])),
    "deep CLONE": Command(deep, 0, (0, {}, [*range(12)])),
    "deep CLONE in place of a table": Command(lambda store: deep(store, replace_table=True), 1, (1, {}, [*range(12)])),
    "REORG": Command(purged, 3, (5, VECTORS, [*range(1, 12)]), prepare=delete_a_row),
}


@pytest.mark.parametrize(("command", "kind"), sampled(itertools.product(COMMANDS, FAULTS), 3))
def test_command_with_one_call_failed_is_done_once_or_not_at_all(tmp_path: Path, command: str, kind: str) -> None:
    count = prepare(tmp_path / "count", COMMANDS[command])
    store = FaultyStore(LocalStore(str(count)))
    assert COMMANDS[command].run(store) == COMMANDS[command].after[0]
    check_after(count, COMMANDS[command])
    outcomes = Counter(
        one_fault(tmp_path / str(number), COMMANDS[command], Fault(number, **FAULTS[kind]))
        for number in sampled(range(len(store.calls)), COMMANDS[command].every)
    )
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


def prepare(directory: Path, command: Command) -> Path:
    """The table that the command changes."""
    make(directory / "source")
    if command.before:
        make(directory / "table", command.before)
    if command.before or command.makes_table:
        command.prepare(directory / "table")
    return directory / "table"


def check_after(path: Path, command: Command) -> None:
    actual_state = state(path)
    assert actual_state is not None
    _, properties, ids = command.after
    assert properties.items() <= actual_state[1].items() and actual_state[2] == ids and command.holds(path), actual_state


def one_fault(directory: Path, command: Command, fault: Fault) -> str:
    path = prepare(directory, command)
    before, store = state(path), FaultyStore(LocalStore(str(path)), fault)
    version, outcome = outcome_of(lambda: command.run(store))
    assert version == command.after[0] or outcome != "done"
    actual_state, call = state(path), store.calls[fault.call]
    newest = -1 if actual_state is None else actual_state[0]
    is_committed = newest == command.after[0]
    assert (is_committed, outcome) not in ((False, "done"), (True, "refused")), call
    if is_committed:
        check_after(path, command)
    else:
        assert (
            (actual_state == before)
            if command.steps == 1
            else (actual_state is not None and before is not None and actual_state[2] == before[2])
        ), call
        command.run(LocalStore(str(path)))  # a second run succeeds
        check_after(path, command)
    DeltaTable(str(path)).snapshot.check_integrity()
    return outcome
