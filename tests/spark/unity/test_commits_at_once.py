"""Commits of Spark to tables of Unity Catalog: next to another writer, and with answers that are lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.storage import publication
from tests.support.servers.unity_catalog import Failure, UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed

pytestmark = pytest.mark.usefixtures("plain_plans", "no_waits")

OF_SPARK, OF_OTHERS = 20, 180


@pytest.fixture
def server(tmp_path: Path, conf: Callable[[dict[str, str]], None]) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path) as server:
        create_managed(server, "t", pa.table({"id": pa.array([], pa.int64())}))
        conf({"spark.pydelta.unity.uri": server.uri, "spark.pydelta.unity.token": str(server.token)})
        yield server
        publication.finish()


def test_commits_of_two_writers_are_all_there(spark: SparkSession, server: UnityCatalogServer) -> None:
    errors: list[BaseException] = []

    def append() -> None:
        try:
            for number in range(OF_OTHERS):
                rows = pa.table({"id": pa.array([1000 + number], pa.int64())})
                write_delta(server.table_url("t"), rows, mode="append", storage_options=server.options)
        except BaseException as error:
            errors.append(error)

    other = threading.Thread(target=append)
    other.start()
    for number in range(OF_SPARK):
        spark.range(number, number + 1, 1, 1).write.format("pydelta").mode("append").save("uc://uc.s.t")
    other.join()
    assert not errors
    expected = [*range(OF_SPARK), *range(1000, 1000 + OF_OTHERS)]
    row = spark.read.format("pydelta").load("uc://uc.s.t").selectExpr("count(*)", "sum(id)").first()
    assert tuple(row) == (len(expected), sum(expected))
    plain = PlainTable(server.table_url("t"), storage_options=server.options)
    assert plain.version == len(expected) and sorted(plain.to_arrow()["id"].to_pylist()) == expected


@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER, Failure.UNKNOWN, Failure.THROTTLED])
def test_commit_is_made_once_although_its_answer_is_lost(
    spark: SparkSession, server: UnityCatalogServer, failure: Failure
) -> None:
    for committed in ("POST", "GET"):
        server.fail(committed, "/tables/t", failure)
        spark.range(3).write.format("pydelta").mode("append").save("uc://uc.s.t")
    assert spark.read.format("pydelta").load("uc://uc.s.t").count() == 6
    assert PlainTable(server.table_url("t"), storage_options=server.options).version == 2


def test_table_is_made_once_although_the_answer_is_lost(spark: SparkSession, server: UnityCatalogServer) -> None:
    server.fail("POST", "/schemas/s/tables", Failure.LOST_ANSWER)
    spark.range(3).write.format("pydelta").save("uc://uc.s.new")
    assert spark.read.format("pydelta").load("uc://uc.s.new").count() == 3
    assert sorted(server.state.tables) == [("uc", "s", "new"), ("uc", "s", "t")]
