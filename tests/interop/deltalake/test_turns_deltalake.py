"""deltalake (delta-rs) and delta_py change one table in turns, in every way that each supports; both read the same after each
turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import deltalake
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from tests.support.oracles.rows import difference

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("name", pa.string()), ("price", pa.decimal128(10, 2))])
# No letters beyond ASCII: deltalake removes a file of ours (or of delta-spark's) with such letters under another spelling of its
# path, does not recognise that spelling itself, and leaves the file in its checkpoints.
PARTS = ("a", "b c", None, "u/=%")


def rows(*ids: int, part: int | None = None) -> pa.Table:
    new_rows = [
        {"id": i, "part": PARTS[(i if part is None else part) % 4], "name": None if i % 4 == 3 else f"näme {i}", "price": i}
        for i in ids
    ]
    return pa.Table.from_pylist(new_rows, schema=SCHEMA)


@dataclass(frozen=True)
class Peers:
    path: str

    def ours(self, data: pa.Table, mode: str = "append", **options: Any) -> int:
        return write_delta(self.path, data, mode=mode, **options)

    def theirs(self, data: pa.Table, mode: Any = "append", **options: Any) -> None:
        deltalake.write_deltalake(self.path, data, mode=mode, **options)

    def table(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.path)

    def read_theirs(self, version: int | None = None) -> pa.Table:
        table = deltalake.DeltaTable(self.path, version=version)
        query = deltalake.QueryBuilder().register("t", table).execute("select * from t")
        return pa.table(query.read_all())

    def check(self, turn: object, version: int | None = None) -> None:
        theirs, ours = self.read_theirs(version), DeltaTable(self.path, version=version)
        ours.snapshot.check_integrity()
        expected = ours.to_arrow()
        assert sorted(theirs.column_names) == sorted(expected.column_names), turn
        assert difference(theirs.select(expected.column_names).cast(expected.schema), expected) is None, turn

    def check_changes(self, first: int, last: int) -> None:
        theirs = pa.table(self.table().load_cdf(starting_version=first, ending_version=last).read_all())
        ours = DeltaTable(self.path).changes(starting_version=first, ending_version=last).read_all()
        names = [name for name in ours.column_names if name != "_commit_timestamp"]
        schema = pa.schema([ours.schema.field(name) for name in names])
        assert difference(theirs.select(names).cast(schema), ours.select(names)) is None, (first, last)


Turn: TypeAlias = Callable[[Peers], object]


def wide(*ids: int) -> pa.Table:
    return rows(*ids).append_column("more", pa.array([f"more {i}" for i in ids]))


def merge(t: Peers) -> None:
    merger = t.table().merge(wide(20, 41), "target.id = source.id", source_alias="source", target_alias="target")
    merger.when_matched_update({"name": "'merged'"}).when_not_matched_insert_all().execute()


TURNS: dict[str, Turn] = {
    "theirs: append": lambda t: t.theirs(rows(*range(6, 12))),
    "ours: replaceWhere on rows": lambda t: t.ours(rows(4, 8), "overwrite", replace_where="id % 4 = 0 AND id > 2"),
    "theirs: delete": lambda t: t.table().delete("id in (1, 7, 8)"),
    "ours: append": lambda t: t.ours(rows(*range(12, 18)), max_records_per_file=4),
    "theirs: update": lambda t: t.table().update({"name": "'updated'"}, predicate="id in (2, 13)"),
    "ours: replaceWhere on a partition": lambda t: t.ours(rows(32, 36), "overwrite", replace_where="part = 'a'"),
    "theirs: compact": lambda t: t.table().optimize.compact(),
    "theirs: checkpoint": lambda t: t.table().create_checkpoint(),
    "ours: new column": lambda t: t.ours(wide(18, 19), merge_schema=True),
    "theirs: append of all columns": lambda t: t.theirs(wide(20, 21)),
    "ours: transaction": lambda t: t.ours(rows(22, 23), txn_app_id="app", txn_version=5),
    "theirs: merge": merge,
    "ours: transaction that is recorded": lambda t: t.ours(rows(99), txn_app_id="app", txn_version=5),
    "theirs: overwrite of rows": lambda t: t.theirs(wide(22), "overwrite", predicate="id in (22, 23)"),
    "ours: partitions of the data": lambda t: t.ours(rows(48, 49), "overwrite", partition_overwrite_mode="dynamic"),
    "theirs: new column": lambda t: t.theirs(wide(60).append_column("last", pa.array([1])), schema_mode="merge"),
    "ours: append without the new columns": lambda t: t.ours(rows(61, 62)),
    "theirs: z-order": lambda t: t.table().optimize.z_order(["id"]),
    "ours: overwrite": lambda t: t.ours(rows(*range(80, 86)), "overwrite"),
    "theirs: delete of a few": lambda t: t.table().delete("id = 81"),
    "ours: last": lambda t: t.ours(rows(90), user_metadata="last"),
}
KINDS: dict[str, Mapping[str, str]] = {
    "plain": {"delta.checkpointInterval": "3"},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "struct statistics": {"delta.checkpointInterval": "2", "delta.checkpoint.writeStatsAsJson": "false"},
}


@pytest.mark.parametrize("partition_by", [None, ["part"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("kind", KINDS)
def test_deltalake_and_delta_py_take_turns_in_every_way(kind: str, partition_by: list[str] | None, tmp_path: Path) -> None:
    table = Peers(str(tmp_path / "table"))
    table.ours(rows(*range(6)), configuration=KINDS[kind], partition_by=partition_by)
    for turn, act in TURNS.items():
        act(table)
        table.check(turn)
    newest = DeltaTable(table.path).version
    for version in range(newest + 1):
        table.check(version, version)
    if kind == "feed" and partition_by is None:  # deltalake's feed does not find files whose paths have escapes
        for version in range(newest + 1):
            table.check_changes(version, version)


def test_overwrite_removes_files_with_paths_encoded_by_deltalake(tmp_path: Path) -> None:
    table = Peers(str(tmp_path / "table"))
    data = pa.table({"id": [1, 2], "ü": ["x", "y"]})
    table.theirs(data, partition_by=["ü"])
    table.ours(data.slice(0, 1), "overwrite")
    table.check("overwrite")
