"""The tombstones of a log: of commits, compactions and checkpoints of every kind."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_py.checkpoint.tombstones import TOMBSTONE_SCHEMA
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add

V2 = ["v2Checkpoint"]
VECTOR = {"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "offset": 1, "sizeInBytes": 36, "cardinality": 2}
REMOVED = {"a b.parquet": 1_700_000_005_000, "c.parquet": None, "d.parquet": 1_700_000_006_000}


def remove(path: str, time_ms: int | None, **fields: Any) -> dict[str, Any]:
    time = {} if time_ms is None else {"deletionTimestamp": time_ms}
    return {"remove": {"path": path, "dataChange": True, **time, **fields}}


def builder() -> TableBuilder:
    """Three files are removed, one of which is added again; one stays."""
    table = TableBuilder(MemoryStore())
    files = [add(name) for name in ("a%20b.parquet", "c.parquet", "d.parquet", "e.parquet")]
    table.commit(table.protocol(features=V2), table.metadata(), *files)
    table.commit(remove("a%20b.parquet", REMOVED["a b.parquet"], deletionVector=VECTOR), remove("c.parquet", None))
    table.commit(remove("d.parquet", REMOVED["d.parquet"]))
    return table


def found(table: TableBuilder) -> dict[str, int | None]:
    rows: pa.Table = Snapshot.load(table.store).tombstones()
    assert rows.schema == TOMBSTONE_SCHEMA
    (vector,) = rows["deletion_vector"].drop_null().to_pylist()
    assert vector == VECTOR
    return dict(zip(rows["path"].to_pylist(), rows["deletion_timestamp"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "sidecars"),
    [("classic", 0), ("multipart", 0), ("v2-parquet", 0), ("v2-parquet", 2), ("v2-json", 0), ("v2-json", 2), ("v2-classic", 1)],
)
def test_checkpoints_of_every_kind_hold_them(kind: str, sidecars: int) -> None:
    table = builder()
    table.checkpoint(kind=kind, sidecars=sidecars)
    assert found(table) == REMOVED


def test_commits_hold_them() -> None:
    assert found(builder()) == REMOVED


def test_compaction_stands_for_its_commits() -> None:
    table = builder()
    table.compact(1, 2)
    assert found(table) == REMOVED


def test_one_that_was_added_again_has_its_tombstone_still() -> None:
    table = builder()
    table.checkpoint()
    table.commit(add("d.parquet"))
    assert found(table) == REMOVED


def test_a_table_without_any_has_none() -> None:
    table = TableBuilder(MemoryStore())
    table.create(add("a.parquet"))
    assert Snapshot.load(table.store).tombstones().num_rows == 0
