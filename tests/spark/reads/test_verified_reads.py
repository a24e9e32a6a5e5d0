"""Reads with verifyChecksums on each road from a file to Spark: a flipped bit is an error, or changes no row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable, write_delta
from spark_plugin import pruning
from spark_plugin.options.catalog_session_settings import VERIFY_CHECKSUMS
from tests.support.runs.sampling import sampled
from tests.support.spark.older_settings import COLUMNAR_CONF, NATIVE_CONF, PARTIAL_CONF
from tests.support.tables.flipped_bits import chunk_places, flipped

DRIVER_CONF = "spark.pydelta.driverReads.enabled"
PYTHON = {NATIVE_CONF: "false", COLUMNAR_CONF: "true", DRIVER_CONF: "false", PARTIAL_CONF: "false"}
NATIVE = {**PYTHON, NATIVE_CONF: "true", "spark.sql.parquet.filterPushdown": "true"}
ROW_COUNT = 24


@dataclass(frozen=True)
class Road:
    """confs: settings with which Spark takes the road. query: of the table. counter: of the rule's status; it shows that the road
    was taken."""

    confs: dict[str, str]
    query: Callable[[DataFrame], DataFrame]
    counter: str | None = None
    has_deleted_rows: bool = False


def all_rows(table: DataFrame) -> DataFrame:
    return table


ROADS = {
    "Spark's reader": Road(NATIVE, all_rows, "parquet"),
    "Spark's reader with deleted rows": Road(NATIVE, all_rows, "parquet", has_deleted_rows=True),
    "Spark's reader with a filter": Road(NATIVE, lambda table: table.filter("name = 'name3' and id > 4"), "parquet"),
    "columns from Python": Road(PYTHON, all_rows, "columns"),
    "rows from Python": Road({**PYTHON, COLUMNAR_CONF: "false"}, all_rows),
    "rows from the driver": Road({**PYTHON, DRIVER_CONF: "true"}, all_rows, "driver"),
    "partial aggregates": Road(
        {**PYTHON, PARTIAL_CONF: "true"}, lambda table: table.filter("id > 0").groupBy("name").sum("id"), "partial"
    ),
}


def make(path: Path, *, has_deleted_rows: bool) -> Path:
    """A table of one file; returns the file."""
    rows = pa.table({"id": pa.array(range(ROW_COUNT), pa.int64()), "name": [f"name{number % 5}" for number in range(ROW_COUNT)]})
    write_delta(str(path), rows, mode="error", configuration={"delta.enableDeletionVectors": "true"})
    if has_deleted_rows:
        DeltaTable(str(path)).delete("id = 7")
    (file,) = path.glob("*.parquet")
    return file


@pytest.mark.parametrize("name", sampled(ROADS, 4))
def test_flipped_bit_gives_the_same_rows_or_an_error(name: str, spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    road = ROADS[name]
    file = make(tmp_path / "t", has_deleted_rows=road.has_deleted_rows)
    conf(road.confs)
    outcomes = {"true": Counter[str](), "false": Counter[str]()}

    def read(verify: str) -> list[str]:
        table = spark.read.format("pydelta").option("verifyChecksums", verify).load(str(tmp_path / "t"))
        return sorted(map(str, road.query(table).collect()))

    def outcome(verify: str, expected: list[str]) -> str:
        try:
            return "same" if read(verify) == expected else "wrong"
        except (PySparkException, Py4JJavaError) as error:
            # Spark decodes its own reader's dictionaries after it has passed the batch on, when the file is no longer known.
            is_lazy = road.counter == "parquet" and "ArrayIndexOutOfBoundsException" in str(error)
            assert verify == "false" or is_lazy or file.name in str(error)
            return "error of decoding" if is_lazy else "error"

    before = pruning.status(spark)
    expected = read("true")
    assert len(expected) >= 4
    if road.counter is not None:
        assert pruning.status(spark)[road.counter].used > before[road.counter].used
    places = chunk_places(file)
    for number, place in enumerate(sampled(places, len(places) // 4)):
        with flipped(file, place):
            outcomes["true"][outcome("true", expected)] += 1
            if number % 8 == 0:
                outcomes["false"][outcome("false", expected)] += 1
    print(
        f"{name}: {outcomes['true'].total()} of {len(places)} flips: {outcomes['true']}; some without checksums: "
        f"{outcomes['false']}"
    )
    assert outcomes["true"]["wrong"] == 0


def test_setting_of_the_session_verifies_reads_and_sql(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    path = tmp_path / "t"
    write_delta(str(path), pa.table({"id": [1000, 1001]}), mode="error", compression="uncompressed")
    (file,) = path.glob("*.parquet")
    place = file.read_bytes().index((1001).to_bytes(8, "little"))

    reads: dict[str, Callable[[], list[Any]]] = {
        "load": lambda: [row.id for row in spark.read.format("pydelta").load(str(path)).collect()],
        "SQL": lambda: [row.id for row in spark.sql(f"SELECT id FROM pydelta.`{path}`").collect()],
    }
    with flipped(file, place):
        assert all(sorted(read()) == [1000, 1001 ^ 1 << place % 8] for read in reads.values())
        conf({VERIFY_CHECKSUMS: "true"})
        for read in reads.values():
            with pytest.raises(PySparkException, match=file.name):
                read()
