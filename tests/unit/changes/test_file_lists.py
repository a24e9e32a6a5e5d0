"""Lists of files: the same order and rows whether they fit into memory or not."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py.changes.spilling_file_list import collect_batches, sorted_by
from delta_py.streaming.commits import stream_schema

SCHEMA = stream_schema(with_stats=True)
BY_AGE = ("modification_time", "path")


def batch(keys: list[tuple[int, str]]) -> pa.RecordBatch:
    rows = [
        {"path": path, "modification_time": time, "size": len(path), "partition_values": [("p", path)]} for time, path in keys
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def keys(table: pa.Table) -> list[tuple[int, str]]:
    return list(zip(table["modification_time"].to_pylist(), table["path"].to_pylist(), strict=True))


@pytest.mark.parametrize("in_memory", [10, 64, 500, 100_000])
@pytest.mark.parametrize("times", [1, 5, 10_000], ids=["one-time", "few-times", "many-times"])
def test_sorted_by_is_sorted_whatever_fits_into_memory(tmp_path: Path, in_memory: int, times: int) -> None:
    chosen = random.Random(times)
    every = [(chosen.randrange(times), f"file-{number}") for number in range(1500)]
    chosen.shuffle(every)
    batches = [batch(every[start : start + 37]) for start in range(0, len(every), 37)]
    table = sorted_by(BY_AGE, batches, SCHEMA, in_memory=in_memory)
    assert table.schema.equals(SCHEMA)
    assert keys(table) == sorted(every)
    assert table.slice(700, 3)["partition_values"].to_pylist() == [[("p", path)] for _, path in sorted(every)[700:703]]


@pytest.mark.parametrize("in_memory", [10, 100_000])
def test_collected_keeps_the_order(in_memory: int) -> None:
    every = [(number % 7, f"file-{number}") for number in range(500)]
    assert keys(collect_batches([batch(every[:100]), batch(every[100:])], SCHEMA, in_memory=in_memory)) == every


def test_no_files_make_an_empty_list() -> None:
    assert collect_batches([], SCHEMA).num_rows == sorted_by(BY_AGE, [], SCHEMA).num_rows == 0


def test_long_list_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = sorted_by(BY_AGE, [batch([(n, f"f{n}")]) for n in range(100, 0, -1)], SCHEMA, in_memory=10)
    assert list(tmp_path.iterdir()) == []
    assert keys(table)[0] == (1, "f1")
