"""The table with which tests of streams begin."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_py import write_delta

FEED = {"delta.enableChangeDataFeed": "true"}


def rows(*ids: int, day: str = "mon") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "day": [day] * len(ids)})


def daily_table(path: Path) -> str:
    """Versions 0 to 2 append 1, 2 (mon), 3 (tue), 4 (wed); partitioned by day; with a change feed."""
    write_delta(str(path), rows(1, 2), partition_by=["day"], configuration=FEED)
    write_delta(str(path), rows(3, day="tue"), mode="append")
    write_delta(str(path), rows(4, day="wed"), mode="append")
    return str(path)
