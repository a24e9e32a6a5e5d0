"""Tables of Unity Catalog by their URLs in Spark: read, written, changed and streamed, with one request for credentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py.storage import publication
from spark_plugin import DeltaTransaction
from spark_plugin.tables import DeltaTable
from tests.support.servers.unity_catalog import UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed

pytestmark = pytest.mark.usefixtures("plain_plans")

ROADS = ("driver", "worker")


@pytest.fixture
def server(tmp_path: Path, conf: Callable[[dict[str, str]], None]) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path) as server:
        assert server.token is not None
        conf({"spark.pydelta.unity.uri": server.uri, "spark.pydelta.unity.token": server.token})
        yield server
    publication.finish()


@pytest.fixture(params=ROADS)
def planning(request: pytest.FixtureRequest, conf: Callable[[dict[str, str]], None]) -> str:
    """Who plans and commits: the driver's own Python, or workers of Spark."""
    if request.param == "worker":
        conf({"spark.pydelta.driverPlanning.enabled": "false"})
    return str(request.param)


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def test_table_is_read_and_written(spark: SparkSession, server: UnityCatalogServer, planning: str) -> None:
    create_managed(server, "t", pa.table({"id": pa.array([1, 2], pa.int64())}))
    url = server.table_url("t")
    assert ids(spark.read.format("pydelta").load(url)) == [1, 2]
    spark.range(3, 5).write.format("pydelta").mode("append").save(url)
    assert ids(spark.read.format("pydelta").load("uc://uc.s.t")) == [1, 2, 3, 4]
    assert ids(spark.read.format("pydelta").option("versionAsOf", 0).load(url)) == [1, 2]
    assert ids(spark.read.format("pydelta").load(f"{url}@v0")) == [1, 2]
    spark.range(7, 8).write.format("pydelta").mode("overwrite").save(url)
    assert ids(spark.read.format("pydelta").load(url)) == [7]
    assert PlainTable(url, storage_options=server.options).version == 2


def test_missing_table_becomes_a_managed_one(spark: SparkSession, server: UnityCatalogServer, planning: str) -> None:
    spark.range(3).write.format("pydelta").save("uc://uc.s.new")
    assert server.state.tables["uc", "s", "new"].kind == "MANAGED"
    assert ids(spark.read.format("pydelta").load("uc://uc.s.new")) == [0, 1, 2]
    with pytest.raises(Exception, match="DELTA_PATH_EXISTS"):
        spark.range(3).write.format("pydelta").save("uc://uc.s.new")


def test_rows_are_changed_by_delta_table(spark: SparkSession, server: UnityCatalogServer, planning: str) -> None:
    create_managed(server, "t", pa.table({"id": pa.array(range(10), pa.int64()), "n": pa.array([0] * 10, pa.int64())}))
    url = server.table_url("t")
    table = DeltaTable.forPath(spark, url)
    table.delete("id < 3")
    table.update("id = 3", {"n": "7"})
    source = spark.createDataFrame([(4, 9), (20, 9)], "id long, n long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    rows = {row.id: row.n for row in table.toDF().collect()}
    assert rows == {3: 7, 4: 9, **dict.fromkeys(range(5, 10), 0), 20: 9}
    assert [row.operation for row in table.history().collect()] == ["MERGE", "UPDATE", "DELETE", "WRITE"]
    plain = PlainTable(url, storage_options=server.options)
    assert plain.to_arrow().num_rows == len(rows)


def test_table_is_the_source_and_the_sink_of_a_stream(
    spark: SparkSession, server: UnityCatalogServer, planning: str, tmp_path: Path
) -> None:
    create_managed(server, "t", pa.table({"id": pa.array([1, 2], pa.int64())}))
    stream = spark.readStream.format("pydelta").load(server.table_url("t"))
    for round in range(2):
        writer = stream.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start("uc://uc.s.copy")
        query.awaitTermination()
        assert ids(spark.read.format("pydelta").load("uc://uc.s.copy")) == [1, 2, 3][: 2 + round]
        spark.range(3, 4).write.format("pydelta").mode("append").save(server.table_url("t"))


def test_changes_are_read(spark: SparkSession, server: UnityCatalogServer) -> None:
    create_managed(server, "t", pa.table({"id": pa.array([1, 2], pa.int64())}), delta__enableChangeDataFeed="true")
    DeltaTable.forPath(spark, server.table_url("t")).delete("id = 1")
    changes = spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 1)
    rows = changes.load(server.table_url("t")).collect()
    assert [(row.id, row._change_type) for row in rows] == [(1, "delete")]


# ---------------------------------------------------------------- requests and secrets


def test_tasks_send_no_requests(spark: SparkSession, server: UnityCatalogServer, planning: str) -> None:
    create_managed(server, "t", pa.table({"id": pa.array([], pa.int64())}))
    url = server.table_url("t")

    def requests_of(partitions: int) -> int:
        before = len(server.requests)
        spark.range(0, 40, 1, partitions).write.format("pydelta").mode("append").save(url)
        assert spark.read.format("pydelta").load(url).count() % 40 == 0
        publication.finish()
        return len(server.requests) - before

    requests_of(1)
    of_eight_tasks, of_one_task = requests_of(8), requests_of(1)
    # On a slow machine the driver may load the table once more. Tasks that send requests would be seven more, or fourteen.
    assert abs(of_eight_tasks - of_one_task) < 4


def test_token_is_not_shown(spark: SparkSession, server: UnityCatalogServer, capfd: pytest.CaptureFixture[str]) -> None:
    create_managed(server, "t", pa.table({"id": pa.array([1], pa.int64())}))
    token, url = str(server.token), server.table_url("t")
    frame = spark.read.format("pydelta").option("unity.token", token).load(url)
    frame.explain(extended=True)
    with pytest.raises(Exception, match="Table not found") as missing:
        spark.read.format("pydelta").option("unity.token", token).load(server.table_url("none"))
    with pytest.raises(Exception, match="401") as refused:
        spark.read.format("pydelta").option("unity.token", "wrong-secret").load(url)
    printed = capfd.readouterr()
    texts = [str(missing.value), str(refused.value), printed.out, printed.err, repr(frame)]
    assert not [text for text in texts if token in text or "wrong-secret" in text]
    assert url in str(refused.value) or "127.0.0.1" in str(refused.value)


def test_token_of_the_session_goes_to_its_server_alone(spark: SparkSession, server: UnityCatalogServer, tmp_path: Path) -> None:
    with UnityCatalogServer(tmp_path / "other") as other, pytest.raises(Exception, match="401"):
        spark.read.format("pydelta").load(other.table_url("t"))
    assert other.requests and not any(other.authorizations)


def test_table_cannot_be_in_a_transaction(spark: SparkSession, server: UnityCatalogServer, tmp_path: Path) -> None:
    create_managed(server, "t", pa.table({"id": pa.array([1], pa.int64())}))
    ledger = f"sqlite://{tmp_path}/ledger.db"
    with pytest.raises(Exception, match="cannot be part of a transaction"):  # noqa: SIM117
        with DeltaTransaction(spark, ledger) as tx:
            tx.append(server.table_url("t"), spark.range(1))
    assert ids(spark.read.format("pydelta").load(server.table_url("t"))) == [1]
