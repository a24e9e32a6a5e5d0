"""Tables in object stores through Spark: reads, writes, DML, streams, names, clones; and secrets that do not leak."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chispa.dataframe_comparer import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from delta_py.errors import DeltaError
from spark_plugin import DeltaTable
from tests.storage.conftest import CONTAINER, new_url
from tests.support.documents import pages
from tests.support.servers.emulators import Emulator
from tests.support.spark.settings import restore

SCHEMA = "id bigint, part bigint, text string"


@pytest.fixture
def url(spark: SparkSession, emulator: Emulator) -> Iterator[str]:
    """The URL of a new table; the session's settings open its store."""
    settings = {f"spark.pydelta.{name}": value for name, value in emulator.settings().items()}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield new_url(emulator)
    restore(spark, before)


def numbers(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last).selectExpr("id", "id % 3 AS part", "concat('t', id) AS text")


def check(actual: DataFrame, expected: DataFrame) -> None:
    assert_df_equality(actual, expected, ignore_row_order=True, ignore_nullable=True)


def load(spark: SparkSession, url: str, **options: object) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(url)


def test_rows_are_written_read_pruned_and_travelled(spark: SparkSession, url: str) -> None:
    numbers(spark, 0, 100).write.format("pydelta").partitionBy("part").save(url)
    numbers(spark, 100, 150).write.format("pydelta").mode("append").save(url)
    check(load(spark, url), numbers(spark, 0, 150))
    check(load(spark, url).filter("part = 1 AND id < 20"), numbers(spark, 0, 20).filter("part = 1"))
    plan = load(spark, url).filter("part = 1")._jdf.queryExecution().toString()
    read_count, total = (int(number) for number in re.findall(r"(\d+) of (\d+) files", plan)[0])
    assert read_count * 3 == total
    check(load(spark, url, versionAsOf=0), numbers(spark, 0, 100))
    check(load(spark, f"{url}@v0"), numbers(spark, 0, 100))


def test_rows_are_changed(spark: SparkSession, url: str) -> None:
    numbers(spark, 0, 100).write.format("pydelta").option("delta.enableDeletionVectors", "true").save(url)
    table = DeltaTable.forPath(spark, url)
    table.delete("id < 10")
    table.update("id = 10", {"text": "'new'"})
    source = spark.createDataFrame([(11, 2, "merged"), (500, 2, "inserted")], SCHEMA)
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    changed = spark.createDataFrame([(10, 1, "new"), (11, 2, "merged"), (500, 2, "inserted")], SCHEMA)
    check(table.toDF(), numbers(spark, 12, 100).unionByName(changed))
    assert [row.operation for row in table.history().orderBy("version").collect()] == ["WRITE", "DELETE", "UPDATE", "MERGE"]
    table.setProperties({"delta.checkpointInterval": "2"})
    table.restoreToVersion(0)
    check(table.toDF(), numbers(spark, 0, 100))


def test_stream_takes_each_row_once(spark: SparkSession, url: str, tmp_path: Path) -> None:
    copy = f"{url}_copy"
    for first in (0, 50):
        numbers(spark, first, first + 50).write.format("pydelta").mode("append").save(url)
        stream = spark.readStream.format("pydelta").option("maxFilesPerTrigger", 1).load(url)
        sink = stream.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        query = sink.start(copy)
        assert query.awaitTermination(120)
    check(load(spark, copy), numbers(spark, 0, 100))


def test_clones_go_from_store_to_store(spark: SparkSession, url: str, emulator: Emulator, tmp_path: Path) -> None:
    numbers(spark, 0, 10).write.format("pydelta").save(url)
    table = DeltaTable.forPath(spark, url)
    beside = table.clone(f"{url}_clone", isShallow=True)
    beside.delete("id = 0")
    check(beside.toDF(), numbers(spark, 1, 10))
    here = str(tmp_path / "clone")
    table.clone(here, isShallow=True)
    check(load(spark, here, **emulator.settings()), numbers(spark, 0, 10))


def test_deep_clones_go_from_store_to_store_and_back(spark: SparkSession, url: str, tmp_path: Path) -> None:
    numbers(spark, 0, 10).write.format("pydelta").save(url)
    table, here = DeltaTable.forPath(spark, url), str(tmp_path / "clone")
    for target in (f"{url}_deep", here):
        table.clone(target)
    DeltaTable.forPath(spark, here).clone(f"{url}_back")
    table.delete("true")
    table.vacuum()
    for target in (f"{url}_deep", here, f"{url}_back"):
        check(load(spark, target), numbers(spark, 0, 10))


def test_options_of_a_read_count_before_the_sessions(spark: SparkSession, url: str, emulator: Emulator) -> None:
    numbers(spark, 0, 10).write.format("pydelta").save(url)
    (endpoint,) = [name for name in emulator.settings() if name.endswith(".endpoint")]
    with pytest.raises(DeltaError, match="did not"):
        load(spark, url, **{endpoint: "http://127.0.0.1:9", "storage.retry_timeout": "1"}).collect()


@pytest.fixture
def logged(spark: SparkSession, emulators: Callable[[str], Emulator], tmp_path: Path) -> tuple[Emulator, str]:
    emulator = emulators("s3")
    return emulator, new_url(emulator)


def test_hadoops_settings_of_a_call_open_the_store(spark: SparkSession, logged: tuple[Emulator, str]) -> None:
    emulator, url = logged
    settings = emulator.settings()
    numbers(spark, 0, 10).write.format("pydelta").options(**settings).save(url)
    hadoop = {
        "fs.s3a.endpoint": settings["s3.endpoint"],
        "fs.s3a.access.key": settings["s3.access_key_id"],
        "fs.s3a.secret.key": settings["s3.secret_access_key"],
    }
    table = DeltaTable.forPath(spark, url, hadoop)
    table.delete("id < 5")
    check(table.toDF(), numbers(spark, 5, 10))


def test_secrets_show_in_no_plan_schema_or_message(spark: SparkSession, logged: tuple[Emulator, str]) -> None:
    emulator, url = logged
    settings = emulator.settings()
    secret = settings["s3.secret_access_key"]
    numbers(spark, 0, 10).write.format("pydelta").options(**settings).save(url)
    frame = load(spark, url, **settings).filter("id > 3")
    frame.collect()
    with pytest.raises(DeltaError) as caught:
        load(spark, f"{url}_nothing", **settings)
    history = DeltaTable.forPath(spark, url, {f"fs.s3a.{k}": v for k, v in _hadoop(settings).items()}).history()
    texts = [frame._jdf.queryExecution().toString(), frame.schema.json(), str(caught.value), str(history.collect())]
    assert all(secret not in text for text in texts)


def _hadoop(settings: dict[str, str]) -> dict[str, str]:
    names = {"endpoint": "s3.endpoint", "access.key": "s3.access_key_id", "secret.key": "s3.secret_access_key"}
    return {hadoop: settings[name] for hadoop, name in names.items()}


def test_code_of_the_page_of_object_stores_runs(
    spark: SparkSession, emulators: Callable[[str], Emulator], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = emulators("s3").settings()
    session = {f"spark.pydelta.{name}": value for name, value in settings.items()}
    before = {name: spark.conf.get(name, None) for name in [*session, "spark.pydelta.storage.retry_timeout"]}
    for name, value in session.items():
        spark.conf.set(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", settings["s3.endpoint"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", settings["s3.access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", settings["s3.secret_access_key"])
    assert pages.run(pages.ON_OBJECT_STORES, f"s3://{CONTAINER}/{uuid.uuid4().hex}") == 2
    restore(spark, before)
