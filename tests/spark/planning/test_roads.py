"""The roads of a session: what explain and status show about them, how they are switched off, and the messages behind them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_py.errors import InvalidOptionError
from spark_plugin import data_source, register
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options import roads
from spark_plugin.options.roads import DISABLE_CONF, PREFER_CONF, Road
from spark_plugin.pruning import scan_request, status
from spark_plugin.pruning.scan_request import MARKER_KEY
from tests.support.documents.message_schema import violations
from tests.support.oracles.frames import rows
from tests.support.tables.small_table import make_table

Conf = Callable[[Mapping[str, str]], None]
DRIVER_READS = roads.OLDER_SETTINGS[Road.DRIVER]  # the session of the tests has it off


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("roads") / "t")
    frame = spark.range(0, 500, 1, 1).selectExpr("id", "id % 7 k", "concat('n', id % 90) name", "id % 2 part")
    frame.write.format("pydelta").partitionBy("part").save(path)
    return path


def load(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("pydelta").load(path)


QUERIES: dict[str, tuple[str, dict[str, str]]] = {
    "log": ("select count(*), max(id) from {t}", {}),
    "driver": ("select name from {t} where id = 5", {}),
    "partial": ("select k, sum(id) from {t} group by k", {PREFER_CONF: "partial"}),
    "parquet": ("select name from {t} where id > 5", {}),
    "columns": ("select name from {t} where id > 5", {}),
    "one-task": ("select k, count(distinct name) from {t} group by k", {}),
    "joins": ("select t.id from {t} t join (select 1 p) u on t.part = u.p", {}),
    "driver-planning": ("select name from {t} where id > 5", {}),
    "pruning": ("select name from {t} where id > 5", {}),
}


@pytest.mark.parametrize("name", QUERIES)
def test_disabled_read_path_is_not_used_and_rows_are_equal(name: str, spark: SparkSession, path: str, conf: Conf) -> None:
    query, confs = QUERIES[name]
    frame = load(spark, path)
    frame.where("part = 1" if name == "one-task" else "true").createOrReplaceTempView("roads")  # of one file
    conf({DRIVER_READS: "true" if name == "driver" else "false", DISABLE_CONF: "parquet" if name == "columns" else "", **confs})

    def run() -> tuple[Any, int]:
        before = status(spark)[name].used
        return rows(spark.sql(query.format(t="roads"))), status(spark)[name].used - before

    road_rows, used = run()
    assert used > 0 or name == "joins"  # joins choose files only if the other side has a filter
    conf({DISABLE_CONF: f"parquet,{name}" if name == "columns" else name})
    assert run() == (road_rows, 0)
    spark.catalog.dropTempView("roads")


@pytest.mark.parametrize(
    ("disabled", "road", "why"),
    [
        ("", "parquet", "at most 48 MiB"),
        ("parquet", "columns", "a setting of the session disables Spark's Parquet reader"),
        ("parquet, COLUMNS", "rows", "a setting of the session disables columns"),
    ],
)
def test_explain_and_status_show_the_road_and_why(
    disabled: str, road: str, why: str, spark: SparkSession, path: str, conf: Conf, capsys: pytest.CaptureFixture[str]
) -> None:
    conf({DISABLE_CONF: disabled, DRIVER_READS: "false"})
    df = load(spark, path).filter("id > 5").select("name")
    df.explain()
    shown = re.search(r"Road: ([\w-]+) \((.*?)\), ReadSchema", capsys.readouterr().out)
    assert shown is not None
    assert shown[1] == road
    assert why in shown[2]
    df.explain("formatted")
    assert f"Road: {road} ({shown[2]})" in capsys.readouterr().out
    assert len(df.collect()) == 494
    last = status(spark).scans[-1]
    assert (last.path, last.road, last.why) == (path, road, shown[2])
    assert str(last).startswith(f"{path}: {road} ({shown[2]}), 2 of 2 files")
    assert str(last) in str(status(spark))


LINES = {
    "select count(*), max(id) from roads": ("log", {}),
    "select name from roads where id = 5": ("driver", {DRIVER_READS: "true"}),
    "select k, sum(id) from roads group by k": ("partial", {PREFER_CONF: "partial"}),
    "select name from roads where id > 5": ("parquet", {}),
    "select name, id from roads where id > 6": ("columns", {DISABLE_CONF: "parquet"}),
    "select name, k from roads where id > 7": ("rows", {DISABLE_CONF: "columns"}),
    "select count(*) from roads where part = 1": ("parquet", {DISABLE_CONF: "log, driver, partial"}),
    "select 1 from roads": ("columns", {DISABLE_CONF: "log, driver"}),
}


@pytest.mark.parametrize("query", LINES)
def test_status_counts_the_road_that_was_taken_and_no_other(query: str, spark: SparkSession, path: str, conf: Conf) -> None:
    road, confs = LINES[query]
    conf({DRIVER_READS: "false", DISABLE_CONF: "", **confs})
    load(spark, path).createOrReplaceTempView("roads")
    before = status(spark)
    spark.sql(query).collect()
    now = status(spark)
    used = {name: now[name].used - before[name].used for name in (*QUERIES, "rows")}
    assert used.pop(road) == 1
    assert not any(used[name] for name in ("log", "driver", "partial", "parquet", "columns", "rows") if name != road), used
    assert now.scans[:-1] == (*before.scans, now.scans[-1])[-len(now.scans) : -1]  # one line more, of at most 20
    assert now.scans[-1].road == road
    spark.catalog.dropTempView("roads")


def test_status_and_explain_agree_where_a_udf_needs_rows(
    spark: SparkSession, path: str, conf: Conf, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark 4.2 gives such queries rows, also for the scan of a subquery, which was planned without the UDF."""
    conf({DRIVER_READS: "false", DISABLE_CONF: ""})
    load(spark, path).createOrReplaceTempView("roads")
    spark.udf.register("shout", lambda name: name.upper(), "string")
    frame = spark.sql("select shout(name) from roads where id in (select id from roads where k = 3 and id < 100)")
    frame.explain()
    explained = sorted(re.findall(r"Road: ([\w-]+)", capsys.readouterr().out))
    assert len(frame.collect()) == 14
    assert sorted(line.road for line in status(spark).scans[-len(explained) :]) == explained
    spark.catalog.dropTempView("roads")


def test_query_that_is_only_planned_counts_for_no_road(spark: SparkSession, path: str, conf: Conf) -> None:
    conf({DRIVER_READS: "false", DISABLE_CONF: ""})
    before = status(spark)
    load(spark, path).filter("id > 9").select("k").explain()
    now = status(spark)
    assert now.scans == before.scans
    assert all(now[name].used == before[name].used for name in ("parquet", "columns", "rows"))


@pytest.mark.parametrize(
    ("query", "settings", "why"),
    [
        ("select id from roads", {DISABLE_CONF: "columns"}, "a setting of the session disables columns"),
        ("select id from roads", {"spark.sql.caseSensitive": "true"}, "spark.sql.caseSensitive is true"),
        ("select k from roads", {DISABLE_CONF: "parquet"}, "a setting of the session disables Spark's Parquet reader"),
    ],
)
def test_reason_names_what_rules_the_native_reader_out(
    query: str, settings: Mapping[str, str], why: str, spark: SparkSession, path: str, conf: Conf
) -> None:
    conf({DRIVER_READS: "false", DISABLE_CONF: "", **settings})
    load(spark, path).createOrReplaceTempView("roads")
    spark.sql(query).collect()
    assert why in status(spark).scans[-1].why
    spark.catalog.dropTempView("roads")


def test_scan_without_files_says_so(spark: SparkSession, path: str, conf: Conf) -> None:
    conf({DRIVER_READS: "false", DISABLE_CONF: ""})
    assert load(spark, path).filter("id > 1000").select("name").collect() == []
    assert "no file is read" in str(status(spark).scans[-1].why)


def test_road_that_is_skipped_says_why(spark: SparkSession, path: str, conf: Conf) -> None:
    before = status(spark)
    load(spark, path).groupBy("k").sum("id").collect()
    load(spark, path).agg({"name": "max"}).collect()
    now = status(spark)
    assert now["partial"].skipped > before["partial"].skipped
    assert "too small" in str(now["partial"].last_reason)
    assert now["log"].skipped > before["log"].skipped
    assert "does not say it exactly" in str(now["log"].last_reason)


@pytest.mark.parametrize("text", ["parquett", "log,rows", "log,,driver"])
def test_unknown_name_is_an_error_that_lists_the_names(text: str, spark: SparkSession, path: str, conf: Conf) -> None:
    frame = load(spark, path).filter("id > 5")
    conf({DISABLE_CONF: text})
    listed = "pruning, log, driver, partial, parquet, columns, one-task, joins, driver-planning, connect, sql"
    with pytest.raises(InvalidOptionError, match=listed):
        register(spark)
    with pytest.raises(PySparkException, match=listed):
        frame.collect()
    assert spark.sql("SELECT 1").collect() == [(1,)]
    spark.sql(f"RESET {DISABLE_CONF}")  # only SQL corrects it
    assert len(load(spark, path).filter("id > 5").collect()) == 494


def test_older_setting_still_disables(spark: SparkSession, path: str, conf: Conf) -> None:
    conf({roads.OLDER_SETTINGS[Road.LOG]: "false"})
    before = status(spark)["log"].used
    assert load(spark, path).count() == 500
    assert status(spark)["log"].used == before


# ---------------------------------------------------------------- messages


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[Any]]]:
    """The requests and the plans of all scans, which the driver's own Python plans in this process."""
    messages_by_kind: dict[str, list[Any]] = {"request": [], "plan": [], "messages": []}
    parse, of_partition = scan_request.ScanRequest.parse.__func__, data_source.plan_message  # type: ignore[attr-defined]

    def recorded(cls: Any, schema: Any) -> Any:
        messages_by_kind["request"] += [
            json.loads(f.metadata[MARKER_KEY]) for f in schema.fields if MARKER_KEY in (f.metadata or {})
        ]
        return parse(cls, schema)

    def noted(message: Any, scan_id: Any) -> Any:
        messages_by_kind["plan"].append(json.loads(json.dumps(message)))
        messages_by_kind["messages"].append(of_partition(message, scan_id))
        return messages_by_kind["messages"][-1]

    monkeypatch.setattr(scan_request.ScanRequest, "parse", classmethod(recorded))
    monkeypatch.setattr(data_source, "plan_message", noted)
    yield messages_by_kind


def test_messages_of_real_scans_are_as_the_schema_says(
    spark: SparkSession, path: str, tmp_path: Path, conf: Conf, messages: dict[str, list[Any]]
) -> None:
    conf({PREFER_CONF: "partial,parquet", DRIVER_READS: "true", "spark.sql.cbo.enabled": "true"})
    load(spark, path).createOrReplaceTempView("roads")
    other = make_table(tmp_path / "o", [pa.table({"p": [1], "day": pa.array([19000], pa.date32())})])
    load(spark, other).createOrReplaceTempView("other")
    for query in (
        "select * from roads where id in (1, 2) or not (name like 'n%' and k <=> null) or name > 'ä'",
        "select * from other where day >= date'2020-01-01' and p != 3 limit 7",
        "select count(*), max(id), count(name) from roads where part = 1",
        "select count(name), max(name) from roads",
        "select k, sum(id), min(id) from roads where id > 4 group by k",
        "select roads.id from roads join other on roads.part = other.p where other.day > date'2020-01-01'",
    ):
        spark.sql(query).collect()
    load(spark, path).where("id < 3").select("_metadata.file_name", "id").collect()  # views have no such column
    parts = {name for request in messages["request"] for name in request}
    assert parts >= {"predicates", "limit", "scan_id", "statistics", "native", "columnar", "question", "partial"}
    assert "metadata_column" in parts
    assert {plan.get("road") for plan in messages["plan"]} >= {"log", "partial", "parquet"}
    assert {name for plan in messages["plan"] for name in plan} >= {"kept", "joins", "driver", "parquet", "answer", "skipped"}
    for kind, messages_of_kind in messages.items():
        assert [each for message in messages_of_kind for each in violations(kind, message)] == []
    rule = SparkInternals(spark).pruning_rule()
    assert rule is not None
    assert violations("status", json.loads(rule.status())) == []
    spark.catalog.dropTempView("roads")
    spark.catalog.dropTempView("other")
