"""Lookups of single values in a table whose files may each hold any value, without an index and with one; prints JSON.

    python benchmarks/library/index_run.py --files 10000 --rows 1000
    python benchmarks/library/index_run.py --files 10000 --rows 1000 --spark

The seconds are those of `DeltaTable(path).to_arrow(filter="id = ...")`, including the log, or of the same query through Spark:
medians of three lookups without an index and of all lookups with it, and of these the first, for which no footer is in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from delta_py import DeltaTable, write_delta

Lookup = Callable[[int], int]
"""A value -> the number of rows that have it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1_000, help="of a file")
    parser.add_argument("--lookups", type=int, default=20)
    parser.add_argument("--spark", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/table"
        ids = make_table(path, arguments.files, arguments.rows)
        wanted_ids = [int(ids[place]) for place in np.linspace(0, len(ids) - 1, arguments.lookups).astype(int)]
        print(json.dumps(measured(path, wanted_ids, through_spark(path) if arguments.spark else by_python(path))))


def make_table(path: str, files: int, rows: int) -> Any:
    """Returns the ids of all rows."""
    generator = np.random.default_rng(0)
    ids = generator.integers(0, 2**62, files * rows)
    write_delta(path, pa.table({"id": ids, "value": generator.random(len(ids))}), max_records_per_file=rows)
    DeltaTable(path).checkpoint()
    return ids


def by_python(path: str) -> Lookup:
    return lambda value: DeltaTable(path).to_arrow(filter=f"id = {value}").num_rows


def through_spark(path: str) -> Lookup:
    from pyspark.sql import SparkSession

    from spark_plugin import register

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    register(spark)
    return lambda value: len(spark.read.format("pydelta").load(path).filter(f"id = {value}").collect())


def measured(path: str, values: list[int], lookup: Lookup) -> dict[str, Any]:
    lookup(values[0])
    without = [seconds(lookup, value) for value in values[:3]]
    start = time.perf_counter()
    DeltaTable(path).index.create("id")
    created = time.perf_counter() - start
    first, *later = [seconds(lookup, value) for value in values]
    opened = [DeltaTable(path).scan(filter=f"id = {value}").report.files_kept for value in values]
    (index,) = DeltaTable(path).index.list().to_pylist()
    return {
        "files": index["files"],
        "without_seconds": statistics.median(without),
        "first_seconds": first,
        "with_seconds": statistics.median(later),
        "most_files_opened": max(opened),
        "create_seconds": created,
        "index_bytes": index["bytes"],
        "segments": index["segments"],
    }


def seconds(lookup: Lookup, value: int) -> float:
    start = time.perf_counter()
    row_count = lookup(value)
    took = time.perf_counter() - start
    assert row_count >= 1, value
    return took


if __name__ == "__main__":
    main()
