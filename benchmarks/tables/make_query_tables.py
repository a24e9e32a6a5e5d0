"""Make the tables for the queries of query_run.py: plain rows, the same partitioned, and a small warehouse like TPC-H's.

    python benchmarks/tables/make_query_tables.py DIRECTORY --rows 8000000 --scale 0.5

    plain        make_scan_table's rows, one version, 16 files, sorted by id
    deleted      the same files, a tenth of the rows deleted by deletion vectors
    partitioned  the same rows, partitioned by kind (20 values)
    hundred      the same rows with the column part, id modulo 100, partitioned by it
    small        the same rows in 200 files
    large        such rows as Spark's own writer lays them out: sorted by id, 4 files of one row group
    parted       the same in 4 partitions
    tpch/...     region, nation, customer, supplier, part, orders, lineitem: the columns that the queries use. Scale 1 is
                 6 million lines as in TPC-H; the values are drawn evenly, so results are not TPC-H's

The rows are the same in every run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables import make_scan_table
from delta_py import DeltaTable, write_delta

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_LINES, _ORDERS, _CUSTOMERS, _PARTS, _SUPPLIERS = 6_000_000, 1_500_000, 150_000, 200_000, 10_000
_FIRST_DAY, _DAYS = 8_035, 2_400  # 1992-01-01 and about six and a half years
_REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
_SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
_MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]
_PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
_KINDS = ["ECONOMY ANODIZED STEEL", "PROMO BURNISHED COPPER", "PROMO PLATED TIN", "STANDARD BRUSHED BRASS"]


def make_tables(directory: Path, rows: int, scale: float) -> None:
    """Write all tables into `directory`, which is emptied."""
    shutil.rmtree(directory, ignore_errors=True)
    make_scan_table.make_table(str(directory / "deleted"), rows=rows)
    _only_first_version(directory / "deleted", directory / "plain")
    _make_partitioned(directory / "plain", directory / "partitioned", "kind")
    _make_partitioned(directory / "plain", directory / "hundred", "part")
    _make_small(directory / "plain", directory / "small", rows)
    make_scan_table.make_large_files(str(directory / "large"), rows, partitioned=False)
    make_scan_table.make_large_files(str(directory / "parted"), rows, partitioned=True)
    _make_warehouse(directory / "tpch", scale)


def _only_first_version(source: Path, target: Path) -> None:
    """Data files are linked, not copied."""
    (target / "_delta_log").mkdir(parents=True)
    for file in source.glob("*.parquet"):
        os.link(file, target / file.name)
    shutil.copy(source / "_delta_log" / f"{0:020d}.json", target / "_delta_log")


def _make_partitioned(source: Path, target: Path, column: str) -> None:
    batches = _rows_with_part(source)
    first = next(batches)
    write_delta(
        str(target),
        pa.RecordBatchReader.from_batches(first.schema, chain([first], batches)),
        partition_by=column,
        compression="snappy",
        configuration={"delta.enableDeletionVectors": "true"},
    )


def _make_small(source: Path, target: Path, rows: int) -> None:
    reader = DeltaTable(str(source)).to_batches()
    configuration = {"delta.enableDeletionVectors": "true"}
    write_delta(str(target), reader, max_records_per_file=rows // 200, compression="snappy", configuration=configuration)


def _rows_with_part(source: Path) -> Iterator[pa.RecordBatch]:
    for file in sorted(source.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(batch_size=1 << 17):
            part = pa.array(batch["id"].to_numpy() % 100).cast(pa.int32())
            yield batch.append_column("part", part)


# ---------------------------------------------------------------- the warehouse


def _make_warehouse(directory: Path, scale: float) -> None:
    random = np.random.default_rng(7)
    orders, customers = int(_ORDERS * scale), max(10, int(_CUSTOMERS * scale))
    parts, suppliers = max(10, int(_PARTS * scale)), max(10, int(_SUPPLIERS * scale))
    days = random.integers(_FIRST_DAY, _FIRST_DAY + _DAYS, orders)
    tables = {
        "region": pa.table({"r_regionkey": np.arange(5), "r_name": _REGIONS}),
        "nation": pa.table(
            {"n_nationkey": np.arange(25), "n_name": [f"NATION {i}" for i in range(25)], "n_regionkey": np.arange(25) % 5}
        ),
        "customer": _customers(random, customers),
        "supplier": pa.table({"s_suppkey": np.arange(suppliers), "s_nationkey": random.integers(0, 25, suppliers)}),
        "part": pa.table({"p_partkey": np.arange(parts), "p_type": _drawn(random, _KINDS, parts)}),
        "orders": _orders(random, days, customers),
        "lineitem": _lines(random, days, int(_LINES * scale), parts, suppliers),
    }
    for name, table in tables.items():
        rows_per_file = max(1000, -(-table.num_rows // 8)) if name in ("orders", "lineitem") else None
        write_delta(str(directory / name), table, max_records_per_file=rows_per_file, compression="snappy")


def _customers(random: np.random.Generator, rows: int) -> pa.Table:
    return pa.table(
        {
            "c_custkey": np.arange(rows),
            "c_name": [f"Customer#{i:09d}" for i in range(rows)],
            "c_nationkey": random.integers(0, 25, rows),
            "c_mktsegment": _drawn(random, _SEGMENTS, rows),
            "c_acctbal": _money(random, rows, -99_999, 999_999),
        }
    )


def _orders(random: np.random.Generator, days: Integers, customers: int) -> pa.Table:
    rows = len(days)
    return pa.table(
        {
            "o_orderkey": np.arange(rows),
            "o_custkey": random.integers(0, customers, rows),
            "o_orderdate": pa.array(days.astype(np.int32)).cast(pa.date32()),
            "o_orderpriority": _drawn(random, _PRIORITIES, rows),
            "o_shippriority": np.zeros(rows, np.int32),
            "o_totalprice": _money(random, rows, 90_000, 50_000_000),
        }
    )


def _lines(random: np.random.Generator, days: Integers, rows: int, parts: int, suppliers: int) -> pa.Table:
    orders = np.sort(random.integers(0, len(days), rows))
    shipped = days[orders] + random.integers(1, 122, rows)
    received = shipped + random.integers(1, 31, rows)
    return pa.table(
        {
            "l_orderkey": orders,
            "l_partkey": random.integers(0, parts, rows),
            "l_suppkey": random.integers(0, suppliers, rows),
            "l_quantity": _money(random, rows, 100, 5_001),
            "l_extendedprice": _money(random, rows, 90_000, 10_500_000),
            "l_discount": _money(random, rows, 0, 11),
            "l_tax": _money(random, rows, 0, 9),
            "l_returnflag": _drawn(random, ["A", "N", "R"], rows),
            "l_linestatus": _drawn(random, ["F", "O"], rows),
            "l_shipdate": pa.array(shipped.astype(np.int32)).cast(pa.date32()),
            "l_commitdate": pa.array((shipped + random.integers(-30, 60, rows)).astype(np.int32)).cast(pa.date32()),
            "l_receiptdate": pa.array(received.astype(np.int32)).cast(pa.date32()),
            "l_shipmode": _drawn(random, _MODES, rows),
        }
    )


def _drawn(random: np.random.Generator, values: list[str], rows: int) -> pa.Array:
    return pa.array(values).take(pa.array(random.integers(0, len(values), rows)))


def _money(random: np.random.Generator, rows: int, low_cents: int, high_cents: int) -> pa.Array:
    """decimal(12,2), drawn evenly from [low, high)."""
    cents = pa.array(random.integers(low_cents, high_cents, rows)).cast(pa.decimal128(21, 0))
    return pa.Array.from_buffers(pa.decimal128(12, 2), rows, cents.buffers())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--scale", type=float, default=0.5)
    arguments = parser.parse_args()
    make_tables(Path(arguments.directory), arguments.rows, arguments.scale)
