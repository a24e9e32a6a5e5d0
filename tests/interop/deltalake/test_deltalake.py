"""deltalake (delta-rs) and delta_py: each reads the other's tables, and they write to one table in turns."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit.post_commit import checkpoint
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from tests.support.oracles.rows import difference

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("number", pa.int32()),
        ("ratio", pa.float64()),
        ("price", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("bytes", pa.binary()),
        ("nested", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
    ]
)
PARTS = ("plain", "with space", "per%cent", "a/b=c", "ünïcode", None)


def rows(start: int, stop: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": i,
                "part": PARTS[i % len(PARTS)],
                "number": None if i % 4 == 0 else i,
                "ratio": float("nan") if i % 5 == 0 else i / 3,
                "price": Decimal(i) / 4,
                "day": date(2024, 1, 1 + i % 28),
                "at": datetime(2024, 1, 1, i % 24, microsecond=123456, tzinfo=UTC),
                "flag": i % 2 == 0,
                "bytes": bytes([i % 256]),
                "nested": {"a": i, "b": ["x", None]} if i % 3 else None,
            }
            for i in range(start, stop)
        ],
        schema=SCHEMA,
    )


def theirs(path: Path) -> pa.Table:
    return pa.table(deltalake.DeltaTable(path).to_pyarrow_table()).select(SCHEMA.names).cast(SCHEMA)


def ours(path: Path) -> pa.Table:
    return DeltaTable(str(path)).to_arrow(columns=SCHEMA.names)


def test_table_of_deltalake_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "table"
    deltalake.write_deltalake(path, rows(0, 20), partition_by=["part"])
    deltalake.write_deltalake(path, rows(20, 30), mode="append")
    assert difference(rows(0, 30), ours(path)) is None
    assert difference(rows(0, 20), DeltaTable(str(path), version=0).to_arrow(columns=SCHEMA.names)) is None


def test_deletes_and_checkpoint_of_deltalake_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "table"
    deltalake.write_deltalake(path, rows(0, 20), partition_by=["part"])
    deltalake.DeltaTable(path).delete("id = 7")
    deltalake.DeltaTable(path).create_checkpoint()
    deltalake.write_deltalake(path, rows(20, 24), mode="append")
    assert difference(theirs(path), ours(path)) is None
    assert ours(path).num_rows == 23


@pytest.mark.parametrize("partition_by", [None, ["part"], ["day", "flag"]])
def test_table_of_ours_reads_the_same_in_deltalake(partition_by: list[str] | None, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_delta(str(path), rows(0, 20), partition_by=partition_by)
    write_delta(str(path), rows(20, 30), mode="append")
    assert difference(rows(0, 30), theirs(path)) is None
    assert difference(rows(0, 30), ours(path)) is None


def test_writers_take_turns_on_one_table(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_delta(str(path), rows(0, 2), partition_by=["part"])
    for turn in range(1, 12):
        data = rows(2 * turn, 2 * turn + 2)
        if turn % 2:
            deltalake.write_deltalake(path, data, mode="append")
        else:
            write_delta(str(path), data, mode="append")
    assert DeltaTable(str(path)).version == 11
    assert difference(rows(0, 24), ours(path)) is None
    assert difference(rows(0, 24), theirs(path)) is None


@pytest.mark.parametrize(
    ("condition", "is_true"),
    [
        ("part = 'a/b=c'", lambda row: row["part"] == "a/b=c"),
        ("part IS NULL AND id > 10", lambda row: row["part"] is None and row["id"] > 10),
        ("price >= 3.5", lambda row: row["price"] >= Decimal("3.5")),
        ("day = date'2024-01-03'", lambda row: row["day"] == date(2024, 1, 3)),
        ("nested.a < 5", lambda row: row["nested"] is not None and row["nested"]["a"] < 5),
        ("number IS NULL", lambda row: row["number"] is None),
    ],
)
def test_filter_on_deltalake_table_returns_the_matching_rows(
    condition: str, is_true: Callable[[dict[str, Any]], bool], tmp_path: Path
) -> None:
    path = tmp_path / "table"
    deltalake.write_deltalake(path, rows(0, 40), partition_by=["part"])
    filtered = DeltaTable(str(path)).to_arrow(columns=["id"], filter=condition)
    assert sorted(filtered["id"].to_pylist()) == [row["id"] for row in rows(0, 40).to_pylist() if is_true(row)]


VOID_FIELDS = pa.struct([("x", pa.null()), ("y", pa.int64())])


def void_rows(*numbers: int) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("v", pa.null()), ("s", VOID_FIELDS)])
    return pa.Table.from_pylist([{"id": i, "v": None, "s": {"x": None, "y": i} if i % 2 else None} for i in numbers], schema)


def test_void_columns_read_the_same_and_take_a_type_later(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_delta(str(path), void_rows(1, 2))
    deltalake.write_deltalake(path, void_rows(3), mode="append")
    write_delta(str(path), void_rows(4), mode="append")
    assert DeltaTable(str(path)).to_arrow().sort_by("id").to_pylist() == void_rows(1, 2, 3, 4).to_pylist()
    assert pa.table(deltalake.DeltaTable(path).to_pyarrow_table()).sort_by("id").to_pylist() == void_rows(1, 2, 3, 4).to_pylist()
    write_delta(str(path), pa.table({"id": [5], "v": [1], "s": [{"x": 2, "y": 3}]}), mode="append", merge_schema=True)
    expected_rows = [*void_rows(1, 2, 3, 4).to_pylist(), {"id": 5, "v": 1, "s": {"x": 2, "y": 3}}]
    assert DeltaTable(str(path)).to_arrow().sort_by("id").to_pylist() == expected_rows
    assert pa.table(deltalake.DeltaTable(path).to_pyarrow_table()).sort_by("id").to_pylist() == expected_rows


@pytest.mark.parametrize("value", [[], [None], {"x": None}, [{"x": None, "y": 1}]], ids=str)
def test_void_that_deltalake_alone_writes_is_read(value: Any, tmp_path: Path) -> None:
    table = pa.table({"id": [1], "c": [value]})
    deltalake.write_deltalake(tmp_path, table)
    assert DeltaTable(str(tmp_path)).to_arrow().to_pylist() == table.to_pylist()


# ---------------------------------------------------------------- logs that we write


def forget_commits(path: Path, before: int) -> None:
    """Delete the commits that a checkpoint replaces, as log cleanup does."""
    for version in range(before):
        (path / "_delta_log" / f"{version:020d}.json").unlink()


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.checkpoint.writeStatsAsJson": "false"},
        {"delta.checkpoint.writeStatsAsStruct": "false"},
    ],
)
def test_checkpoint_reads_the_same_in_deltalake(properties: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_delta(str(path), rows(0, 2), partition_by=["part"], configuration=properties)
    for start in range(2, 24, 2):
        write_delta(str(path), rows(start, start + 2), mode="append")
    assert [name for name in os.listdir(path / "_delta_log") if name.startswith(f"{10:020d}.checkpoint")]
    forget_commits(path, 10)
    assert difference(rows(0, 24), theirs(path)) is None
    assert difference(rows(0, 24), ours(path)) is None
    assert difference(rows(0, 22), DeltaTable(str(path), version=10).to_arrow(columns=SCHEMA.names)) is None
    filtered = deltalake.DeltaTable(path).to_pyarrow_table(filters=[("id", ">=", 20)])
    assert sorted(filtered["id"].to_pylist()) == [20, 21, 22, 23]
    deltalake.write_deltalake(path, rows(24, 26), mode="append")
    write_delta(str(path), rows(26, 28), mode="append")
    assert difference(rows(0, 28), theirs(path)) is None
    assert difference(rows(0, 28), ours(path)) is None


def test_our_checkpoint_follows_on_one_of_deltalake(tmp_path: Path) -> None:
    path = tmp_path / "table"
    deltalake.write_deltalake(path, rows(0, 20), partition_by=["part"])
    deltalake.DeltaTable(path).delete("id = 7")
    deltalake.DeltaTable(path).create_checkpoint()
    deltalake.write_deltalake(path, rows(20, 24), mode="append")
    checkpoint(Snapshot.load(open_store(str(path))))
    forget_commits(path, 2)
    assert difference(theirs(path), ours(path)) is None
    assert ours(path).num_rows == 23


def test_v2_checkpoint_reads_the_same_in_deltalake(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_delta(str(path), rows(0, 2), partition_by=["part"], configuration={"delta.checkpointPolicy": "v2"})
    for start in range(2, 24, 2):
        write_delta(str(path), rows(start, start + 2), mode="append")
    assert len(os.listdir(path / "_delta_log/_sidecars")) == 1
    forget_commits(path, 10)
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("select * from t")
    assert difference(rows(0, 24), pa.table(query.read_all()).select(SCHEMA.names).cast(SCHEMA)) is None
    assert difference(rows(0, 24), ours(path)) is None


def test_delete_update_and_merge_match_those_of_deltalake(tmp_path: Path) -> None:
    """The same calls, with the same names, on two tables of the same rows; each library reads both."""
    ids = list(range(60))
    start = pa.table({"id": ids, "part": [f"p{n % 3}" for n in ids], "price": [float(n) for n in ids], "note": ["x"] * 60})
    source = pa.table({"id": [1, 2, 30, 100, 101], "part": ["p9"] * 5, "price": [0.5] * 5, "note": ["new"] * 5})
    for name in ("ours", "theirs"):
        write_delta(str(tmp_path / name), start, partition_by="part")
    for name, open_table in (("ours", DeltaTable), ("theirs", deltalake.DeltaTable)):
        path = str(tmp_path / name)
        open_table(path).delete("id % 7 = 3 AND price > 5")  # type: ignore[attr-defined]
        open_table(path).update(updates={"price": "price + 1"}, predicate="part = 'p1'")  # type: ignore[attr-defined]
        open_table(path).update(new_values={"note": "set"}, predicate="id = 40")  # type: ignore[attr-defined]
        merger = open_table(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")  # type: ignore[attr-defined]
        merger = merger.when_matched_delete("s.id = 1").when_matched_update_all()
        merger = merger.when_not_matched_insert({"id": "s.id", "part": "'p0'", "price": "s.price"}, "s.id > 100")
        merger.when_not_matched_by_source_update({"note": "'lone'"}, "t.id > 55").execute()
    seen = [
        read(tmp_path / name).sort_by("id").to_pylist()
        for name in ("ours", "theirs")
        for read in (_all_of_ours, _all_of_theirs)
    ]
    assert len(seen[0]) == 60 - 8 - 1 + 1
    assert seen[1:] == seen[:1] * 3


def _all_of_ours(path: Path) -> pa.Table:
    return DeltaTable(str(path)).to_arrow(["id", "part", "price", "note"])


def _all_of_theirs(path: Path) -> pa.Table:
    return pa.table(deltalake.DeltaTable(path).to_pyarrow_table()).select(["id", "part", "price", "note"])
