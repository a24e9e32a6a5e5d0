"""Options that pydelta sets itself, given in SQL, the catalog and a user's own calls: refused wherever Spark takes options."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from spark_plugin.exceptions import InvalidOptionError
from spark_plugin.session_source import nonce_of, private, source_with

pytestmark = pytest.mark.usefixtures("plain_plans")

OPTIONS = {"pydelta.files": "/etc/passwd", "PyDelta.View": "history", "pydelta.session": "{}", "pydelta.nonce": "0"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    write_delta(str(tmp_path / "t"), pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    return str(tmp_path / "t")


@pytest.fixture
def entered(spark: SparkSession, path: str) -> Iterator[str]:
    spark.sql(f"create table private_t using pydelta location '{path}'")
    yield "private_t"
    spark.sql("drop table private_t")


def refused(read: Callable[[], Any], name: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"(?i)gives the options .*{name}"):
        read()


@pytest.mark.parametrize(("name", "value"), OPTIONS.items())
def test_query_and_view_of_somebody_may_not_give_private_options(
    spark: SparkSession, entered: str, path: str, name: str, value: str
) -> None:
    query = f"select * from {entered} with ('{name}' = '{value}', path = '{path}')"
    refused(lambda: spark.sql(query).collect(), name)
    refused(lambda: spark.sql(f"create temporary view hostile using pydelta options (path '{path}', '{name}' '{value}')"), name)
    refused(lambda: spark.sql(f"create table hostile using pydelta options (path '{path}', '{name}' '{value}')").collect(), name)


def test_view_with_a_nonce_is_refused_in_other_sessions(spark: SparkSession, entered: str, path: str) -> None:
    """Its author may have known the nonce of another session."""
    other = spark.newSession()
    other.dataSource.register(source_with("his own"))
    text = f"select * from {entered} with ('pydelta.session' = '{{}}', 'pydelta.nonce' = 'his own', path = '{path}')"
    assert other.sql(text).count() == 3
    other.sql(f"create view of_another as {text}")
    try:
        refused(lambda: spark.table("of_another").collect(), "pydelta.session")
    finally:
        spark.sql("drop view of_another")


@pytest.mark.parametrize(("name", "value"), OPTIONS.items())
def test_user_may_not_give_private_options(spark: SparkSession, path: str, tmp_path: Path, name: str, value: str) -> None:
    frame, stream = spark.range(1), spark.readStream.format("pydelta").load(path)
    checkpoint = str(tmp_path / "checkpoint")
    roads: list[Callable[[], Any]] = [
        lambda: spark.read.format("pydelta").option(name, value).load(path),
        lambda: spark.read.format("pydelta").options(**{name: value}).load(path),
        lambda: spark.read.load(path, format="pydelta", **{name: value}),
        lambda: spark.readStream.format("pydelta").option(name, value).load(path),
        lambda: frame.write.format("pydelta").mode("append").option(name, value).save(path),
        lambda: frame.write.save(path, format="pydelta", mode="append", **{name: value}),
        lambda: frame.writeTo("private_new").using("pydelta").option(name, value).create(),
        lambda: stream.writeStream.format("pydelta").option(name, value).option("checkpointLocation", checkpoint).start(path),
    ]
    for road in roads:
        refused(road, name)
    assert PlainTable(path).version == 0


def test_reused_reader_and_writer_refuse_private_options(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    reader, streams = spark.read.format("pydelta"), spark.readStream.format("pydelta")
    assert reader.load(path).count() == reader.load(path).count() == 3
    stream = streams.load(path)
    refused(lambda: reader.option("pydelta.view", "history").load(path), "pydelta.view")
    refused(lambda: streams.option("pydelta.view", "history").load(path), "pydelta.view")
    writer = stream.writeStream.format("pydelta").trigger(availableNow=True)
    for number in range(2):
        target, checkpoint = str(tmp_path / f"target{number}"), str(tmp_path / f"checkpoint{number}")
        writer.option("checkpointLocation", checkpoint).start(target).awaitTermination()
        assert PlainTable(target).to_arrow().num_rows == 3
    refused(lambda: writer.option("pydelta.partitionBy", '["id"]').start(path), "pydelta.partitionBy")


def test_nonce_is_shown_by_no_plan_and_stands_in_no_setting(spark: SparkSession, path: str) -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        spark.read.format("pydelta").load(path).where("id > 1").explain("extended")
        DeltaTable.forPath(spark, path).history().explain("formatted")
    settings = [str(row) for row in spark.sql("set").collect()]
    assert "pydelta" in shown.getvalue()
    assert not any(nonce_of(spark) in text for text in (shown.getvalue(), *settings, str(spark.conf.getAll)))


def test_new_session_has_the_methods_of_a_registered_session(spark: SparkSession, path: str) -> None:
    for session in (spark.newSession(), spark.newSession()):
        assert session.read.format("pydelta").load(path).count() >= 3
        session.range(5, 6).write.format("pydelta").mode("append").save(path)
        assert [row["operation"] for row in DeltaTable.forPath(session, path).history(1).collect()] == ["WRITE"]
    assert PlainTable(path).to_arrow().num_rows == 5


def test_clone_of_a_session_has_its_sources(spark: SparkSession) -> None:
    of_session = spark._jsparkSession.sessionState().dataSourceManager().registered()
    of_clone = spark._jsparkSession.cloneSession().sessionState().dataSourceManager().registered()
    assert of_clone.get("pydelta").equals(of_session.get("pydelta"))
    of_clone.remove("pydelta")
    assert of_session.containsKey("pydelta")


def test_stream_batches_are_written_in_the_copy_of_the_session(spark: SparkSession, path: str, tmp_path: Path) -> None:
    target = str(tmp_path / "target")

    def write(batch: Any, number: int) -> None:
        batch.write.format("pydelta").mode("append").save(target)
        assert batch.sparkSession.read.format("pydelta").load(target).count() == 3
        assert spark.read.format("pydelta").load(target).count() == 3

    stream = spark.readStream.format("pydelta").load(path).writeStream.foreachBatch(write)
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert private(spark, {})["pydelta.nonce"] == nonce_of(spark)
    assert PlainTable(target).to_arrow().num_rows == 3
