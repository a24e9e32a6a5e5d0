"""Two commands on one table at the same time: both are committed, or the later one fails with the condition of the reference, and
changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import add_feature, set_properties, unset_properties
from delta_py.alter.alter_columns import add_columns, change_columns, drop_columns, rename_column
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.alter.drop_feature import drop_feature
from delta_py.alter.sync_identity import sync_identity
from delta_py.alter.table_constraints import add_constraint, drop_constraint
from delta_py.definition.cluster_by import cluster_by
from delta_py.definition.create import create_table, define_table
from delta_py.errors import DeltaConcurrentModificationException
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import OptimizeRequest
from delta_py.row_changes.merge import TableMerger
from delta_py.row_changes.row_commands import delete, update
from delta_py.row_changes.write import WriteRequest, commit_write, plan_write
from delta_py.row_changes.write_plans import WritePlan
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, STRING, StructField, StructType, from_arrow_schema
from delta_py.write.data_files import write_files
from tests.support.runs.sampling import sampled

_IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
SCHEMA = StructType(
    (
        StructField("id", LONG, True, _IDENTITY),
        StructField("name", STRING),
        StructField("x", LONG),
    )
)
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.constraints.named": "name IS NOT NULL",
    "delta.feature.clustering": "supported",
    "delta.feature.vacuumProtocolCheck": "supported",
    "delta.feature.checkConstraints": "supported",
    "team": "a",
}


class MeanwhileStore(LocalStore):
    """Calls `meanwhile` before its first commit."""

    meanwhile: Callable[[], object] | None = None

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        if path.endswith(".json") and self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        super().put_if_absent(path, data, durably=durably)


def rows(*ids: int, x: int = 5) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": ["n"] * len(ids), "x": pa.array([x] * len(ids), pa.int64())})


def make(path: Path) -> None:
    store = LocalStore(str(path))
    create_table(store, define_table(SCHEMA, configuration=PROPERTIES))
    for ids in ((10, 11), (12, 13)):
        write_delta(str(path), rows(*ids), mode="append")


def append(store: Any, data: pa.Table) -> None:
    plan = plan_write(store, from_arrow_schema(data.schema), WriteRequest(mode="append"))
    assert isinstance(plan, WritePlan)
    commit_write(store, plan, [write_files(plan.state, data.to_batches())])


def compact(store: Any) -> None:
    optimize(store, OptimizeRequest(), LocalBinWriters())


def merge(store: Any) -> None:
    merger = TableMerger(store, rows(10, 20), "source.id = target.id", None, None)
    merger.when_matched_update({"x": "source.x"}).execute()


COMMANDS: dict[str, Callable[[Any], object]] = {
    "append": lambda store: append(store, rows(30, x=40)),
    "append with new numbers": lambda store: append(store, rows(30).drop_columns(["id"])),
    "update": lambda store: update(store, {"x": "x + 1"}, predicate="id = 10"),
    "delete": lambda store: delete(store, "id = 10"),
    "merge": merge,
    "optimize": compact,
    "set properties": lambda store: set_properties(store, {"team": "b"}),
    "unset properties": lambda store: unset_properties(store, ["team"]),
    "add a feature": lambda store: add_feature(store, "deletionVectors"),
    "drop a feature": lambda store: drop_feature(store, "vacuumProtocolCheck"),
    "add columns": lambda store: add_columns(store, [NewColumn("y", LONG)]),
    "rename a column": lambda store: rename_column(store, "x", "z"),
    "drop a column": lambda store: drop_columns(store, ["x"]),
    "change a column": lambda store: change_columns(store, [ColumnChange("x", comment="c")]),
    "add a constraint": lambda store: add_constraint(store, "small", "x < 30 OR x IS NULL"),
    "drop a constraint": lambda store: drop_constraint(store, "named"),
    "sync identity": lambda store: sync_identity(store, "id"),
    "cluster by": lambda store: cluster_by(store, ["name"]),
    "remove column mapping": lambda store: set_properties(store, {"delta.columnMapping.mode": "none"}),
}


def state(path: Path) -> tuple[Any, ...]:
    snapshot = Snapshot.load(LocalStore(str(path)))
    table = DeltaTable(str(path)).to_arrow().sort_by("id").to_pylist()
    return snapshot.version, snapshot.protocol, snapshot.metadata, snapshot.domain_metadata(), table


def outcome(directory: Path, ours: str, theirs: str) -> str:
    """The condition with which our command fails after theirs has committed first; `-` if both are committed."""
    make(directory)
    store, between = MeanwhileStore(str(directory)), list[Any]()

    def meanwhile() -> None:
        COMMANDS[theirs](LocalStore(str(directory)))
        between.append(state(directory))

    store.meanwhile = meanwhile
    try:
        COMMANDS[ours](store)
    except DeltaConcurrentModificationException as error:
        assert state(directory) == between[0], "a conflict leaves the table as the other left it"
        return error.error_class
    assert between and state(directory) != between[0], "both have committed"
    DeltaTable(str(directory)).snapshot.check_integrity()
    return "-"


# ---------------------------------------------------------------- what conflicts; all else follows

_METADATA, _PROTOCOL = "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED"
_APPENDED, _READ_LOST, _BOTH = "DELTA_CONCURRENT_APPEND", "DELTA_CONCURRENT_DELETE_READ", "DELTA_CONCURRENT_DELETE_DELETE"
_CHANGE_METADATA = (
    "set properties",
    "unset properties",
    "add columns",
    "rename a column",
    "drop a column",
    "change a column",
    "add a constraint",
    "drop a constraint",
    "sync identity",
    "remove column mapping",
)
_CHANGE_PROTOCOL = ("add a feature", "drop a feature")
_CHANGE_ROWS = ("update", "delete", "merge")
_CHANGED = {**dict.fromkeys(_CHANGE_METADATA, _METADATA), **dict.fromkeys(_CHANGE_PROTOCOL, _PROTOCOL)}
# Numbers of identity columns are metadata. This matters to commands that change metadata themselves.
_NUMBERED = {"append with new numbers": _METADATA}
_SAME_FILES = dict.fromkeys((*_CHANGE_ROWS, "optimize"), _BOTH)
CONFLICTS: dict[str, dict[str, str]] = {
    "append": _CHANGED,
    "append with new numbers": {**_CHANGED, **_NUMBERED},
    **{key: {**_CHANGED, **_SAME_FILES} for key in _CHANGE_ROWS},
    "optimize": {},  # it starts again on the newer version
    **{key: {**_CHANGED, **_NUMBERED} for key in _CHANGE_METADATA},
    **dict.fromkeys(_CHANGE_PROTOCOL, _CHANGED),
    # These have checked all rows, the constraint in all files.
    "add a constraint": {
        **_CHANGED,
        **_NUMBERED,
        "append": _APPENDED,
        **dict.fromkeys((*_CHANGE_ROWS, "optimize"), _READ_LOST),
    },
    "sync identity": {**_CHANGED, **_NUMBERED, "append": _APPENDED, **dict.fromkeys(_CHANGE_ROWS, _READ_LOST)},
    # Every file has to be replaced, and the domain has the old names of columns.
    "remove column mapping": {
        **_CHANGED,
        **_NUMBERED,
        **_SAME_FILES,
        "append": _APPENDED,
        "cluster by": "DELTA_CONCURRENT_DOMAIN_METADATA",
    },
    "cluster by": {**_CHANGED, "cluster by": "DELTA_CONCURRENT_DOMAIN_METADATA"},
}
_NOTHING_LEFT = [("optimize", "optimize"), ("optimize", "remove column mapping")]  # for our command
_PAIRS = [pair for pair in itertools.product(COMMANDS, COMMANDS) if pair not in _NOTHING_LEFT]


@pytest.mark.parametrize(("ours", "theirs"), sampled(_PAIRS, 12))
def test_command_beside_another_follows_or_conflicts(tmp_path: Path, ours: str, theirs: str) -> None:
    assert outcome(tmp_path / "table", ours, theirs) == CONFLICTS[ours].get(theirs, "-")


def test_row_that_a_new_constraint_forbids_never_joins_it(tmp_path: Path) -> None:
    for ours, theirs in (("append", "add a constraint"), ("add a constraint", "append")):
        path = tmp_path / ours
        assert outcome(path, ours, theirs) != "-"
        snapshot = Snapshot.load(LocalStore(str(path)))
        broken = [row for row in DeltaTable(str(path)).to_arrow().to_pylist() if row["x"] >= 30]
        assert bool(broken) != ("delta.constraints.small" in snapshot.metadata.configuration)
