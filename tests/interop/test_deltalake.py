"""deltalake (delta-rs) and delta_py: each reads what the other wrote, and they take turns on one table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from tests.support.rows import difference

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


def test_table_of_deltalake_with_deletions_and_checkpoint_reads_the_same(tmp_path: Path) -> None:
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
    ("condition", "wanted"),
    [
        ("part = 'a/b=c'", lambda row: row["part"] == "a/b=c"),
        ("part IS NULL AND id > 10", lambda row: row["part"] is None and row["id"] > 10),
        ("price >= 3.5", lambda row: row["price"] >= Decimal("3.5")),
        ("day = date'2024-01-03'", lambda row: row["day"] == date(2024, 1, 3)),
        ("nested.a < 5", lambda row: row["nested"] is not None and row["nested"]["a"] < 5),
        ("number IS NULL", lambda row: row["number"] is None),
    ],
)
def test_filter_on_a_table_of_deltalake_keeps_the_rows_it_is_true_for(
    condition: str, wanted: Callable[[dict[str, Any]], bool], tmp_path: Path
) -> None:
    path = tmp_path / "table"
    deltalake.write_deltalake(path, rows(0, 40), partition_by=["part"])
    found = DeltaTable(str(path)).to_arrow(columns=["id"], filter=condition)
    assert sorted(found["id"].to_pylist()) == [row["id"] for row in rows(0, 40).to_pylist() if wanted(row)]
