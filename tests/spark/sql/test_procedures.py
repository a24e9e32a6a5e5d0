"""CALL pydelta.system.<procedure>: from spark.sql, scripts, EXECUTE IMMEDIATE and the JVM, in a classic session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py.errors import DeltaError
from delta_py.types.names import quoted
from spark_plugin import register
from spark_plugin.sql_catalog.procedures import PROCEDURES


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """Two versions, two files; its name may not become part of any text."""
    path = str(tmp_path / "t`; DROP TABLE it's \"x\"")
    for start in (0, 10):
        spark.range(start, start + 10).coalesce(1).write.format("pydelta").mode("append").save(path)
    return path


@pytest.fixture
def scripts(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.scripting.enabled", "true")
    yield
    spark.conf.unset("spark.sql.scripting.enabled")


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def operations(path: str) -> list[str]:
    return PlainTable(path).history()["operation"].to_pylist()


def test_procedures_do_and_return_what_the_statements_do(spark: SparkSession, path: str, tmp_path: Path) -> None:
    name, called = f"pydelta.{quoted(path)}", "CALL pydelta.system"
    by_statement = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1")
    by_call = spark.sql(f"{called}.history(limit => 1, table => :t)", {"t": path})
    assert by_call.schema == by_statement.schema and by_call.collect() == by_statement.collect()
    assert spark.sql(f"{called}.detail(?)", [name]).collect() == spark.sql(f"DESCRIBE DETAIL {name}").collect()
    result = spark.sql(f"{called}.optimize(:t, zorder_by => array('id'))", {"t": name}).first()
    assert result["metrics"]["numFilesRemoved"] == 2 and operations(path)[0] == "OPTIMIZE"
    assert spark.sql(f"{called}.vacuum({literal(path)}, retain_hours => 200, dry_run => true)").columns == ["path"]
    assert spark.sql(f"{called}.generate(?)", [path]).columns == []
    assert (Path(path) / "_symlink_format_manifest").is_dir()
    copy = str(tmp_path / "copy's `")
    metrics = spark.sql(
        f"{called}.clone(:t, target => :copy, shallow => true, version => 0, properties => map('a.b', 'c;'))",
        {"t": path, "copy": copy},
    )
    assert metrics.columns[0] == "source_table_size"
    assert spark.sql(f"{called}.detail(:copy)", {"copy": copy}).first()["properties"]["a.b"] == "c;"
    assert spark.sql(f"{called}.restore(:t, timestamp => current_timestamp())", {"t": copy}).first()["num_restored_files"] == 0
    assert spark.sql("EXECUTE IMMEDIATE 'CALL pydelta.system.history(?)' USING :t", {"t": copy}).count() == 1


def test_procedures_are_shown_and_explained(spark: SparkSession) -> None:
    shown = spark.sql("SHOW PROCEDURES IN pydelta.system").collect()
    assert {row["procedure_name"] for row in shown} == set(PROCEDURES)
    plan = spark.sql("EXPLAIN CALL pydelta.system.restore('/nowhere', 0)").first()[0]
    assert "restore" in plan, "a plan is shown, and nothing is called"


@pytest.mark.usefixtures("scripts")
def test_script_calls_procedures_and_handles_their_errors(spark: SparkSession, path: str) -> None:
    frame = spark.sql(f"""
        BEGIN
          DECLARE place STRING DEFAULT {literal(path)};
          DECLARE EXIT HANDLER FOR SQLSTATE '22003' BEGIN SELECT 'refused' AS outcome; END;
          INSERT INTO pydelta.{quoted(path)} VALUES (100);
          CALL pydelta.system.optimize(table => place);
          INSERT INTO pydelta.{quoted(path)} VALUES (101);
          CALL pydelta.system.restore(table => place, version => 1);
          CALL pydelta.system.vacuum(table => place, retain_hours => 0);
          INSERT INTO pydelta.{quoted(path)} VALUES (102);
        END""")
    assert frame.first()["outcome"] == "refused"
    assert operations(path) == ["RESTORE", "WRITE", "OPTIMIZE", "WRITE", "WRITE", "WRITE"]


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("history('/nowhere')", "DELTA_TABLE_ONLY_OPERATION"),
        ("generate('/nowhere')", "DELTA_MISSING_DELTA_TABLE"),
        ("restore(:t, 77)", "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        ("optimize(:t, where => 'id = ')", "DELTA_FAILED_RECOGNIZE_PREDICATE"),
        ("history(NULL)", "DELTA_ILLEGAL_OPTION"),
        ("nothing(:t)", "ROUTINE_NOT_FOUND"),
        ("history()", "REQUIRED_PARAMETER_NOT_FOUND"),
        ("history(:t, wrong => 1)", "UNRECOGNIZED_PARAMETER_NAME"),
        ("history(:t, array(1))", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
    ],
)
def test_errors_keep_their_conditions_and_nothing_is_changed(
    spark: SparkSession, path: str, call: str, condition: str | None
) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.sql(f"CALL pydelta.system.{call}", {"t": path} if ":t" in call else None)
    if condition is not None:
        assert raised.value.getCondition() == condition
        assert isinstance(raised.value, DeltaError) == condition.startswith("DELTA_")
    assert operations(path) == ["WRITE", "WRITE"]


def test_names_of_the_catalog_and_other_sessions(spark: SparkSession, path: str) -> None:
    other = spark.newSession()
    register(other)
    spark.sql(f"CREATE TABLE called USING pydelta LOCATION {literal(path)}")
    try:
        for session, zone in ((spark, "UTC"), (other, "Asia/Tokyo")):
            session.conf.set("spark.sql.session.timeZone", zone)
            called: Any = session.sql("CALL pydelta.system.history('default.called', 1)")
            assert called.sparkSession is session and called.first()["version"] == 1
        with pytest.raises(DeltaError, match=r"2001-01-01 00:00:00\.000 UTC"):
            spark.sql("CALL pydelta.system.restore('called', timestamp => '2001-01-01')")
        with pytest.raises(DeltaError, match=r"2000-12-31 15:00:00\.000 UTC"):
            other.sql("CALL pydelta.system.restore('called', timestamp => '2001-01-01')")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.sql("DROP TABLE called")
