"""Opens and commits of a managed table of Unity Catalog by one client in its own process; prints the measurements as JSON.

    python benchmarks/spark/unity_run.py delta --uri URI --token TOKEN --commits 25 --writers 8

The client `delta` is delta-spark with the catalog of tests/support/peers/java, `pydelta` is pydelta in Spark, and `library`
is delta_py without Spark. The server runs elsewhere and has the schema uc.s. Each append has one row. Several writers are threads
of the same process. At the end the rows are counted.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa

COMMITS_OF_A_WRITER = 5


@dataclass(frozen=True)
class Client:
    """create: makes the table with one row. append: adds one row. count: opens the table and counts its rows."""

    create: Callable[[str], None]
    append: Callable[[str], None]
    count: Callable[[str], int]


def library(uri: str, token: str) -> Client:
    from delta_py import DeltaTable, write_delta

    options, row = {"unity.token": token}, pa.table({"id": [1], "text": ["x"]})

    def url(table: str) -> str:
        return f"unity://{uri.partition('://')[2]}/uc.s.{table}"

    def append(table: str) -> None:
        write_delta(url(table), row, mode="append", storage_options=options)

    return Client(append, append, lambda table: DeltaTable(url(table), storage_options=options).to_arrow(columns=["id"]).num_rows)


def spark_client(name: str, uri: str, token: str, directory: Path) -> Client:
    from pyspark.sql import SparkSession

    from tests.support.peers.delta_spark import make_unity_catalog, unity_catalog_settings

    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "ERROR").config("spark.sql.shuffle.partitions", "4")
    if name == "delta":
        for key, value in unity_catalog_settings(str(make_unity_catalog(directory)), "uc", uri, token).items():
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if name == "pydelta":
        from spark_plugin import register

        register(spark, catalogs={"uc": {"uri": uri, "token": token}})
    provider = "delta" if name == "delta" else "pydelta"

    def create(table: str) -> None:
        spark.sql(f"CREATE TABLE uc.s.{table} (id BIGINT, text STRING) USING {provider}")
        append(table)

    def append(table: str) -> None:
        spark.sql(f"INSERT INTO uc.s.{table} VALUES (1, 'x')")

    def count(table: str) -> int:
        return int(spark.sql(f"SELECT count(id) FROM uc.s.{table}").first()[0])

    return Client(create, append, count)


def seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("client", choices=["delta", "pydelta", "library"])
    parser.add_argument("--uri", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--commits", type=int, default=25)
    parser.add_argument("--writers", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if arguments.client == "library":
            client = library(arguments.uri, arguments.token)
        else:
            client = spark_client(arguments.client, arguments.uri, arguments.token, Path(directory))
        print(json.dumps(measured(client, f"of_{arguments.client}", arguments.commits, arguments.writers)))


def measured(client: Client, table: str, commits: int, writers: int) -> dict[str, float]:
    client.create(table)
    for _ in range(5):  # warms up
        client.append(table)
        client.count(table)
    opens = [seconds(lambda: client.count(table)) for _ in range(11)]
    appends = [seconds(lambda: client.append(table)) for _ in range(commits)]

    def several(_: int) -> None:
        for _ in range(COMMITS_OF_A_WRITER):
            client.append(table)

    with ThreadPoolExecutor(writers) as pool:
        race = seconds(lambda: list(pool.map(several, range(writers))))
    rows = 1 + 5 + commits + writers * COMMITS_OF_A_WRITER
    assert client.count(table) == rows, f"{client.count(table)} rows of {rows}"
    return {
        "open": statistics.median(opens),
        "append": statistics.median(appends),
        "appends": sum(appends),
        "commits_per_second": writers * COMMITS_OF_A_WRITER / race,
    }


if __name__ == "__main__":
    main()
