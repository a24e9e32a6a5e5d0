"""DELETE, UPDATE and MERGE INTO of temporary views: the table that a view shows is changed, or the statement is refused."""

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


def test_changes_of_a_view_of_a_loaded_frame_and_of_a_global_one_are_the_tables(spark: SparkSession, path: str) -> None:
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
        ("SELECT id + 1 AS id, v FROM pydelta.`{path}`", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT CAST(id AS INT) AS id, v FROM pydelta.`{path}`", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT id, v AS w FROM pydelta.`{path}`", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT id FROM pydelta.`{path}`", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT v, id FROM pydelta.`{path}`", "DELTA_UNSUPPORTED_SOURCE"),
    ],
)
def test_changes_of_a_view_of_other_rows_are_refused(spark: SparkSession, path: str, query: str, condition: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW shown AS {query.format(path=path)}")
    for change in ("DELETE FROM shown WHERE id = 1", "UPDATE shown SET id = 2", CHANGES[2].format(v="shown")):
        with pytest.raises(PySparkException) as refused:
            spark.sql(change)
        assert refused.value.getCondition() == condition
    assert DeltaTable(path).version == 0


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
