"""DELETE, UPDATE and MERGE INTO of temporary views: the statement changes the table that a view shows, or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable, write_delta

pytestmark = pytest.mark.usefixtures("plain_plans")

ROWS = pa.table({"id": [1, 2, 3, 4], "v": ["a", "b", "c", "d"]})
CHANGES = (
    "DELETE FROM {v} WHERE {v}.id = 1",
    "UPDATE {v} SET v = 'z' WHERE id = 2",
    "MERGE INTO {v} USING (SELECT 3 AS id, 'm' AS v) s ON {v}.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT *",
    "DELETE FROM {v} AS x WHERE x.id = 4",
)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    write_delta(str(tmp_path), ROWS)
    yield str(tmp_path)
    for view in ("shown", "shown_again"):
        spark.sql(f"DROP VIEW IF EXISTS {view}")


@pytest.mark.parametrize(
    "query",
    [
        "AS SELECT * FROM pydelta.`{path}`",
        "AS SELECT q.id, q.v FROM pydelta.`{path}` AS q",
        "AS TABLE pydelta.`{path}`",
        "USING pydelta OPTIONS (path '{path}')",
    ],
)
def test_changes_of_a_view_of_a_whole_table_are_the_tables(spark: SparkSession, path: str, query: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW shown {query.format(path=path)}")
    spark.sql("CREATE TEMPORARY VIEW shown_again AS SELECT * FROM shown")
    for view, change in zip(["shown", "shown_again"] * 2, CHANGES, strict=True):
        assert spark.sql(change.format(v=view)).first()[0] == 1  # type: ignore[index]
    assert sorted(map(tuple, (row.values() for row in DeltaTable(path).to_arrow().to_pylist()))) == [(2, "z"), (3, "m")]
    assert DeltaTable(path).version == 4


def test_dml_on_local_and_global_views_changes_the_table(spark: SparkSession, path: str) -> None:
    spark.read.format("pydelta").load(path).createOrReplaceTempView("shown")
    spark.read.format("pydelta").load(path).createOrReplaceGlobalTempView("shown_by_all")
    try:
        assert spark.sql("DELETE FROM shown WHERE id = 1").first() == (1,)
        assert spark.sql("UPDATE global_temp.shown_by_all SET v = 'z' WHERE shown_by_all.id = 2").first() == (1,)
    finally:
        spark.catalog.dropGlobalTempView("shown_by_all")
    assert DeltaTable(path).to_arrow(filter="v = 'z'")["id"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("SELECT * FROM pydelta.`{path}` WHERE id > 1", "DELTA_UNEXPECTED_PARTIAL_SCAN"),
        ("SELECT * FROM pydelta.`{path}` VERSION AS OF 0", "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"),
        ("SELECT * FROM pydelta.`{path}` LIMIT 1", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT DISTINCT * FROM pydelta.`{path}`", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT id, max(v) AS v FROM pydelta.`{path}` GROUP BY id", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT * FROM pydelta.`{path}` UNION ALL SELECT 9, 'x'", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT id, v, rand() AS r FROM pydelta.`{path}`", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT v FROM (SELECT v, id AS k FROM pydelta.`{path}`) WHERE k > 1", "DELTA_UNEXPECTED_PARTIAL_SCAN"),
        ("SELECT v AS w, id FROM pydelta.`{path}` VERSION AS OF 0", "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"),
    ],
)
def test_changes_of_a_view_of_other_rows_are_refused(spark: SparkSession, path: str, query: str, condition: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW shown AS {query.format(path=path)}")
    for change in ("DELETE FROM shown WHERE id = 1", "UPDATE shown SET id = 2", CHANGES[2].format(v="shown")):
        with pytest.raises(PySparkException) as refused:
            spark.sql(change)
        assert refused.value.getCondition() == condition
    assert DeltaTable(path).version == 0


@pytest.mark.parametrize(
    ("query", "change"),
    [
        ("SELECT id FROM pydelta.`{path}`", "DELETE FROM {v} WHERE id = 2"),
        ("SELECT v, id FROM pydelta.`{path}`", "DELETE FROM {v} WHERE {v}.v = 'b'"),
        ("SELECT id AS v, v AS id FROM pydelta.`{path}`", "DELETE FROM {v} x WHERE x.v = 2 AND id = 'b'"),
        ("SELECT id * 2 AS k, upper(v) AS u FROM pydelta.`{path}`", "DELETE FROM {v} WHERE k = 4 AND u LIKE 'B%'"),
        ("SELECT *, (SELECT max(id) FROM pydelta.`{path}`) AS top FROM pydelta.`{path}`", "DELETE FROM {v} WHERE id = top - 2"),
    ],
)
def test_rows_are_deleted_through_views_of_other_columns(spark: SparkSession, path: str, query: str, change: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW shown AS {query.format(path=path)}")
    spark.sql("CREATE TEMPORARY VIEW shown_again AS SELECT *, 1 AS one FROM shown")
    assert spark.sql(change.format(v="shown_again")).first() == (1,)
    assert spark.sql(change.format(v="shown")).first() == (0,)
    assert sorted(DeltaTable(path).to_arrow()["id"].to_pylist()) == [1, 3, 4]


@pytest.mark.parametrize("columns", ["id", "v, id", "id, v AS w", "id + 1 AS id, v", "CAST(id AS INT) AS id, v"])
def test_values_are_not_written_through_views_of_other_columns(spark: SparkSession, path: str, columns: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW shown AS SELECT {columns} FROM pydelta.`{path}`")
    for change in ("UPDATE shown SET id = 2", CHANGES[2].format(v="shown")):
        with pytest.raises(PySparkException) as refused:
            spark.sql(change)
        assert refused.value.getCondition() == "DELTA_UNSUPPORTED_SOURCE"
    assert DeltaTable(path).version == 0


def test_nothing_is_changed_through_a_stored_view(spark: SparkSession, path: str) -> None:
    spark.sql(f"CREATE VIEW shown AS SELECT * FROM pydelta.`{path}`")
    for change in ("DELETE FROM shown WHERE id = 1", "UPDATE default.shown SET id = 2", CHANGES[2].format(v="shown")):
        with pytest.raises(PySparkException) as refused:
            spark.sql(change)
        assert refused.value.getCondition() == "DELTA_UNSUPPORTED_SOURCE"
    assert DeltaTable(path).version == 0


def test_delete_through_a_view_with_old_columns_is_refused(spark: SparkSession, path: str) -> None:
    spark.read.format("pydelta").load(path).selectExpr("v AS w", "id").createOrReplaceTempView("shown")
    write_delta(path, pa.table({"id": ["1"], "v": ["a"]}), mode="overwrite", overwrite_schema=True)
    with pytest.raises(PySparkException) as refused:
        spark.sql("DELETE FROM shown WHERE id = 1")
    assert refused.value.getCondition() == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert DeltaTable(path).version == 1


def test_options_of_a_read_make_another_table_of_it(spark: SparkSession, path: str) -> None:
    for option, condition in (
        ("versionAsOf '0'", "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"),
        ("filter 'id > 1'", "DELTA_UNSUPPORTED_SOURCE"),
    ):
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW shown USING pydelta OPTIONS (path '{path}', {option})")
        with pytest.raises(PySparkException) as refused:
            spark.sql("DELETE FROM shown WHERE id = 1")
        assert refused.value.getCondition() == condition
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW shown AS VALUES (1, 'a') AS x(id, v)")
    with pytest.raises((PySparkException, Py4JJavaError)) as spark_says:
        spark.sql("DELETE FROM shown WHERE id = 1")
    assert "DELTA" not in str(spark_says.value)
