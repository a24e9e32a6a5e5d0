"""A Spark that is newer than this release uses the newest jar, after a self-test that switches off what does not work."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from delta_py import write_delta
from spark_plugin import pruning, register
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.java import jars
from spark_plugin.java.build import archive_of, compile_sources, jars_of_pyspark
from spark_plugin.options.roads import DISABLE_CONF, OLDER_SETTINGS, Road, parse_disabled
from spark_plugin.pruning import self_test
from spark_plugin.pruning.self_test import PARTS, Part
from tests.support.spark.settings import restore


@pytest.fixture
def newer(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session whose Spark reports version 4.9.0. Only this environment's version is known."""
    monkeypatch.setattr(jars, "MINOR_VERSIONS", (jars.minor_version_of(pyspark.__version__),))
    jars.jar_for.cache_clear()
    session = spark.newSession()
    names = (DISABLE_CONF, OLDER_SETTINGS[Road.DRIVER])  # the session of the tests has the driver's reads off
    before = {name: session.conf.get(name, None) for name in names}
    session.conf.unset(OLDER_SETTINGS[Road.DRIVER])
    monkeypatch.setattr(type(spark), "version", "4.9.0")
    yield session
    restore(session, before)
    jars.jar_for.cache_clear()


def link_problems(monkeypatch: pytest.MonkeyPatch, problems: dict[str, list[str]]) -> None:
    monkeypatch.setattr(SparkInternals, "link_problems", lambda self: problems)


def disabled(session: SparkSession) -> frozenset[str]:
    return parse_disabled(session.conf.get(DISABLE_CONF, None) or "")


def test_newer_spark_takes_the_newest_jar_after_a_self_test(newer: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    before = disabled(newer)
    with caplog.at_level(logging.INFO, "pydelta"):
        register(newer)
        register(newer)
    assert [record.getMessage() for record in caplog.records if "self-test" in record.getMessage()] == [
        "This release of pydelta is older than Spark 4.9.0, and its self-test has passed there."
    ]
    assert pruning.status(newer).installed
    used = pruning.status(newer)
    assert [part.name for part in PARTS if not used[part.name].used] == [], "the self-test did not take these"
    assert disabled(newer) == before


def test_part_whose_classes_do_not_fit_is_switched_off_by_name(
    newer: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    link_problems(monkeypatch, {"readers": ["ColumnarReader needs a field of Spark's"]})
    register(newer)
    register(newer)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "columns: ColumnarReader needs a field of Spark's" in warning
    assert disabled(newer) == {Road.COLUMNS}
    write_delta(str(tmp_path / "t"), pa.table({"id": [1]}))
    assert [row.id for row in newer.read.format("pydelta").load(str(tmp_path / "t")).collect()] == [1]


@pytest.mark.parametrize("failure", ["other rows", "an error"])
def test_self_test_disables_a_part_with_wrong_rows_or_an_error(
    failure: str, newer: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def query(table: DataFrame) -> DataFrame:
        is_on = Road.ONE_TASK not in disabled(newer)
        if is_on and failure == "an error":
            raise RuntimeError("no such method")
        return newer.range(1 if is_on else 2)

    monkeypatch.setattr(self_test, "PARTS", (Part(Road.ONE_TASK, "rule", query),))
    register(newer)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    other_rows = "it gives ['Row(id=0)'] and not ['Row(id=0)', 'Row(id=1)']"
    reason = "RuntimeError: no such method" if failure == "an error" else other_rows
    assert f"one-task: {reason}" in warning
    assert disabled(newer) == {Road.ONE_TASK}


def test_self_test_without_visible_table_disables_nothing(
    newer: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a cluster whose executors are on other machines. Only the classes are checked then."""
    monkeypatch.setattr(self_test, "_make_table", lambda path: None)
    link_problems(monkeypatch, {"joins": ["JoinRules needs a rule of Spark's"]})
    before = disabled(newer)
    with caplog.at_level(logging.INFO, "pydelta"):
        register(newer)
    assert "The self-test compares no rows" in caplog.text
    assert disabled(newer) == before | {Road.JOINS}


def test_rule_whose_classes_do_not_fit_is_not_installed(
    newer: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    link_problems(monkeypatch, {"scan": ["PrunedScan needs a method of Spark's"]})
    register(newer)
    assert not pruning.status(newer).installed
    assert "PrunedScan needs a method of Spark's" in caplog.text


# ---------------------------------------------------------------- which classes fit


def test_all_classes_of_the_jar_fit_the_spark_of_their_build(spark: SparkSession) -> None:
    check = SparkInternals(spark).java_class("pydelta.rule.LinkCheck").newInstance()
    assert json.loads(check.problems()) == {}


def test_classes_that_do_not_fit_are_found_with_what_they_need(spark: SparkSession, tmp_path: Path) -> None:
    missing_class = "pydelta.other.Gone"
    needs = (
        f"package pydelta.readers; class Needs {{ Object get() {{ return {missing_class}.method(1) + {missing_class}.FIELD; }} }}"
    )
    kept_source = "package pydelta.rule; class Kept { Object get() { return pydelta.other.Gone.kept(); } }"
    lacks = "package pydelta.joins; class Lacks implements pydelta.other.Wide { public void one() {} }"
    before = {
        "Needs": needs,
        "Kept": kept_source,
        "Lacks": lacks,
        "Gone": "package pydelta.other; public class Gone { public static String method(int a) { return null; } "
        "public static String kept() { return null; } public static final Object FIELD = null; }",
        "Wide": "package pydelta.other; public interface Wide { void one(); }",
    }
    after = {
        "Gone": "package pydelta.other; public class Gone { public static String method(long a) { return null; } "
        "public static String kept() { return null; } }",
        "Wide": "package pydelta.other; public interface Wide { void one(); void two(); }",
    }
    classes = {}
    for number, texts in enumerate((before, after)):
        sources = {f"{name}.java": tmp_path / str(number) / f"{name}.java" for name in texts}
        for name, text in texts.items():
            sources[f"{name}.java"].parent.mkdir(exist_ok=True)
            sources[f"{name}.java"].write_text(text)
        classes |= compile_sources(sources, jars_of_pyspark())
    check = {"rule/LinkCheck.java": jars.SOURCES / "rule" / "LinkCheck.java"}
    jar = tmp_path / "changed.jar"
    jar.write_bytes(archive_of({**classes, **compile_sources(check, jars_of_pyspark())}))
    assert problems_of(spark, jar) == {
        "joins": ["pydelta.joins.Lacks lacks public abstract void pydelta.other.Wide.two()"],
        "readers": [
            "pydelta/readers/Needs needs Member[owner=pydelta/other/Gone, name=method, descriptor=(I)Ljava/lang/String;]",
            "pydelta/readers/Needs needs Member[owner=pydelta/other/Gone, name=FIELD, descriptor=Ljava/lang/Object;]",
        ],
    }


def problems_of(spark: SparkSession, jar: Path) -> dict[str, list[str]]:
    """The result of this jar's LinkCheck; the jar has a separate class loader."""
    gateway: Any = spark.sparkContext._gateway
    urls = gateway.new_array(gateway.jvm.java.net.URL, 1)
    urls[0] = gateway.jvm.java.io.File(str(jar)).toURI().toURL()
    loader = gateway.jvm.java.net.URLClassLoader(urls, SparkInternals(spark)._spark_loader())
    check = loader.loadClass("pydelta.rule.LinkCheck")
    method = check.getMethod("problems", gateway.new_array(gateway.jvm.java.lang.Class, 0))
    # Py4J itself would call the method of the first class of this name.
    problems: dict[str, list[str]] = json.loads(method.invoke(check.newInstance(), gateway.new_array(gateway.jvm.Object, 0)))
    return problems
