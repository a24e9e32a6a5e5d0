"""DELETE and UPDATE that are invalid, that are stopped midway, and that meet other writers: errors, and the remaining rows."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin.exceptions import (
    ConcurrentAppendException,
    InvalidOptionError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from tests.spark.row_changes.dml_tables import files_on_disk, last, make, metrics, path_of, plain_rows, same

pytestmark = pytest.mark.usefixtures("plain_plans")

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(scope="module")
def plain(spark: SparkSession) -> DataFrame:
    return plain_rows(spark)


def test_update_carries_columns_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    typed_rows = spark.range(6).selectExpr(
        "id",
        "parse_json(concat('{\"a\": ', id, '}')) as doc",
        "null as nothing",
        "cast(timestamp'2024-03-31 02:30:00' as timestamp_ntz) as ntz",
        "cast(cast(id as string) as binary) as raw",
        "cast(id as tinyint) as tiny",
        "cast('ab' as char(4)) as fixed",
        "cast(id as decimal(38,10)) as wide",
        "cast(id as float) as real",
        "array(named_struct('p', id), null) as list",
        "map(id, array(date'0001-01-01')) as nested",
    )
    table = make(typed_rows.coalesce(1), tmp_path / "t", VECTORS, partition_by="")
    before = {row["id"]: row.asDict() for row in table.toDF().selectExpr("* except (doc)", "to_json(doc) doc").collect()}
    table.update("id % 2 = 0", {"tiny": "tiny + 50"})
    after = {row["id"]: row.asDict() for row in table.toDF().selectExpr("* except (doc)", "to_json(doc) doc").collect()}
    assert after == {n: {**row, "tiny": row["tiny"] + 50 * (n % 2 == 0)} for n, row in before.items()}
    assert before[3]["doc"] == '{"a":3}' and metrics(table)["numUpdatedRows"] == 3


def test_bad_input_is_refused_and_leaves_nothing_behind(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain, tmp_path / "t", {**VECTORS, **FEED})
    before = files_on_disk(table)
    bad: list[tuple[type[Exception], str, Any]] = [
        (AnalysisException, "UNRESOLVED_COLUMN", lambda: table.delete("nothere = 1")),
        (AnalysisException, "FILTER_NOT_BOOLEAN", lambda: table.delete("id + 1")),
        (AnalysisException, "PARSE_SYNTAX_ERROR", lambda: table.delete("id >")),
        (AnalysisException, "UNRESOLVED_COLUMN", lambda: table.alias("t").delete("u.id = 1")),
        (UnsupportedOperationError, "DELTA_NON_DETERMINISTIC", lambda: table.delete("rand() < 0.5")),
        (AnalysisException, "DELTA_NON_DETERMINISTIC", lambda: table.update(F.rand() < 0.5, {"x": "1"})),
        (AnalysisException, "UNRESOLVED_COLUMN", lambda: table.update("id = 1", {"nothere": "1"})),
        (AnalysisException, "UNRESOLVED_COLUMN", lambda: table.update("id = 1", {"x": "nothere"})),
        (AnalysisException, "FIELD_NOT_FOUND", lambda: table.update("id = 1", {"st.nothere": "1"})),
        (AnalysisException, "DELTA_CONFLICT_SET_COLUMN", lambda: table.update("id = 1", {"st": "null", "st.a": "1"})),
        (AnalysisException, "DELTA_CONFLICT_SET_COLUMN", lambda: table.update("id = 1", {"x": "1", "X": "2"})),
        (AnalysisException, "DELTA_UNSUPPORTED_NESTED", lambda: table.update("id = 1", {"m.k": "1"})),
        (AnalysisException, "UNRESOLVED_COLUMN", lambda: table.update("id = 1", {"__pydelta.row_index": "1"})),
        (SchemaMismatchError, "DELTA_UPDATE_SCHEMA_MISMATCH", lambda: table.update("id = 1", {"st": "named_struct('z', 1)"})),
        (SchemaMismatchError, "DELTA_UPDATE_SCHEMA_MISMATCH", lambda: table.update("id = 1", {"st": "named_struct('a', 1)"})),
        (UnsupportedOperationError, "row at a time", lambda: table.update("id = 1", {"x": "max(x)"})),
        (UnsupportedOperationError, "row at a time", lambda: table.update("id = 1", {"x": "max(x)", "day": "day"})),
        (
            UnsupportedOperationError,
            "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
            lambda: table.update("id = 1", {"x": "explode(array(1))"}),
        ),
        (UnsupportedOperationError, "row at a time", lambda: table.update("id = 1", {"x": "row_number() OVER (ORDER BY id)"})),
        (PySparkException, "CAST_INVALID_INPUT", lambda: table.update("id = 1", {"x": "'no number'"})),
        (TypeError, "condition", lambda: table.delete(5)),
        (ValueError, "set", lambda: table.update("id = 1")),
    ]
    for kind, text, call in bad:
        with pytest.raises(kind, match=text):
            call()
    assert files_on_disk(table) == before
    table.setProperties({"delta.appendOnly": "true"})
    for call in (lambda: table.delete("id = 1"), lambda: table.update("id = 1", {"x": "1"}), lambda: table.delete()):
        with pytest.raises(UnsupportedOperationError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
            call()


def test_missing_data_file_fails_the_rewrite_and_leaves_nothing(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain.coalesce(1), tmp_path / "t", FEED, partition_by="")
    (data,) = Path(path_of(table)).glob("*.parquet")
    file_bytes = data.read_bytes()
    before = files_on_disk(table)

    def matches(n):  # type: ignore[no-untyped-def]  # Spark would take hints for those of a pandas function
        data.unlink(missing_ok=True)
        return n % 2 == 0

    with pytest.raises(PySparkException, match=r"missing|No such file|FAILED_READ_FILE"):
        table.delete(F.udf(matches, "boolean")(F.col("id")))
    data.write_bytes(file_bytes)
    assert files_on_disk(table) == before


def test_a_job_that_is_cancelled_leaves_nothing_behind(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain.repartitionByRange(4, "id"), tmp_path / "t", {**VECTORS, **FEED})
    before = files_on_disk(table)
    began = tmp_path / "began"

    def slowly(n):  # type: ignore[no-untyped-def]  # as above
        began.touch()
        time.sleep(0.5)
        return float(n)

    def cancel() -> None:
        wait_for(began)
        plain.sparkSession.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises((PySparkException, Py4JJavaError), match=r"cancel"):
        table.update(F.lit(True), {"x": F.udf(slowly, "double")(F.col("id"))})
    thread.join()
    assert files_on_disk(table) == before and PlainTable(path_of(table)).version == 0


def test_delete_with_subquery_conflicts_with_any_new_rows(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain, tmp_path / "t", VECTORS)
    table.toDF().createOrReplaceTempView("the_table")
    began, appended = tmp_path / "began", tmp_path / "appended"

    def append() -> None:
        wait_for(began)
        write_delta(path_of(table), PlainTable(path_of(table)).to_arrow().slice(0, 1), mode="append")
        appended.touch()

    def when_appended(n):  # type: ignore[no-untyped-def]  # as above
        began.touch()
        wait_for(appended)
        return True

    thread = threading.Thread(target=append)
    thread.start()
    with pytest.raises(ConcurrentAppendException):
        table.delete(F.expr("id = (select min(id) from the_table)") & F.udf(when_appended, "boolean")(F.col("id")))
    thread.join()
    assert table.toDF().count() == 61


def wait_for(file: Path) -> None:
    for _ in range(600):
        if file.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{file} did not appear")


def test_the_sessions_transaction_without_its_version_is_refused(plain: DataFrame, tmp_path: Path) -> None:
    spark, table = plain.sparkSession, make(plain, tmp_path / "t", VECTORS)
    spark.conf.set("spark.databricks.delta.write.txnAppId", "job")
    try:
        with pytest.raises(InvalidOptionError, match="txnAppId is given without txnVersion") as caught:
            table.delete("part = 'a'")
    finally:
        spark.conf.unset("spark.databricks.delta.write.txnAppId")
    assert caught.value.error_class == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"
    same(table.toDF(), plain)


def test_the_sessions_transaction_is_done_once(plain: DataFrame, tmp_path: Path) -> None:
    spark, table = plain.sparkSession, make(plain, tmp_path / "t", VECTORS)
    confs = {"write.txnAppId": "job", "write.txnVersion": "1", "commitInfo.userMetadata": "why"}
    try:
        for name, value in confs.items():
            spark.conf.set(f"spark.databricks.delta.{name}", value)
        table.delete("part = 'a'")
        table.delete("part = 'with space'")
        assert last(table)["version"] == 1 and last(table)["userMetadata"] == "why"
        spark.conf.set("spark.databricks.delta.write.txnVersion.autoReset.enabled", "true")
        spark.conf.set("spark.databricks.delta.write.txnVersion", "2")
        table.delete("part = 'with space'")
        assert spark.conf.get("spark.databricks.delta.write.txnVersion", None) is None
        spark.conf.set("spark.databricks.delta.write.txnVersion", "2")
        table.delete("part = 'ü'")
        assert spark.conf.get("spark.databricks.delta.write.txnVersion", None) is None
        spark.conf.set("spark.databricks.delta.write.txnVersion", "3")
        replacing = plain.where("part = 'a'").write.format("pydelta").mode("overwrite").option("replaceUsing", "part")
        replacing.options(txnAppId="other", txnVersion="1").save(str(tmp_path / "t"))
        assert spark.conf.get("spark.databricks.delta.write.txnVersion", None) == "3"
    finally:
        for name in (*confs, "write.txnVersion.autoReset.enabled"):
            spark.conf.unset(f"spark.databricks.delta.{name}")
    same(table.toDF(), plain.where("not (part <=> 'with space')"))
