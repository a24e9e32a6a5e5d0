"""Reports from a session: what it adds to delta_py's reports, which tests/unit/report tests."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from tests.support.tables.advised_tables import advised_table, clustered_table

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    for first in range(0, 50, 10):
        write_delta(path, pa.table({"id": range(first, first + 10), "other": range(10)}), mode="append")
    return path


def test_report_has_the_facts_of_delta_py(spark: SparkSession, path: str) -> None:
    actual, expected = DeltaTable.forPath(spark, path).report().facts, PlainTable(path).report().facts
    assert (actual.files, actual.commits, actual.log, actual.vectors) == (
        expected.files,
        expected.commits,
        expected.log,
        expected.vectors,
    )


def test_report_counts_queries_by_the_columns_that_they_filter(spark: SparkSession, path: str) -> None:
    assert spark.read.format("pydelta").load(path).filter("other = 3").count() == 5
    skipping = DeltaTable.forPath(spark, path).report().facts.skipping
    assert {column.column: column.queries for column in skipping.columns} == {"id": 0, "other": 1}  # type: ignore[union-attr]
    assert (skipping.map.x, skipping.map.y) == ("other", "id")  # type: ignore[union-attr]


def test_report_makes_a_dry_run_of_vacuum_if_asked(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = DeltaTable.forPath(spark, path)
    report = table.report(vacuum=True, checkLog=False)
    assert report.facts.retention.vacuum.files == 0  # type: ignore[union-attr]
    assert report.facts.log.faults.unknown == "not requested: the check of the log"  # type: ignore[union-attr]
    report.write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().endswith("</html>")
    with pytest.raises(ValueError, match="vacuum"):
        table.report(vacuum="yes")  # type: ignore[arg-type]


def test_sql_of_advice_does_what_was_advised(spark: SparkSession, tmp_path: Path) -> None:
    path = advised_table(tmp_path)
    rows = PlainTable(path).to_arrow().num_rows
    advice = DeltaTable.forPath(spark, path).report().facts.advice
    statements = [item.sql for item in advice if item.sql is not None]
    assert [statement.split(" ")[0] for statement in statements] == ["OPTIMIZE", "REORG", "OPTIMIZE"]
    for statement in statements:
        spark.sql(statement)
    remaining_advice = PlainTable(path).report().facts.advice
    assert [item.title for item in remaining_advice] == [
        advice[-1].title.replace("7 commits", f"{PlainTable(path).version + 1} commits")
    ]
    assert PlainTable(path).to_arrow().num_rows == rows


def test_sql_of_advice_clusters_by_what_queries_ask_for(spark: SparkSession, tmp_path: Path) -> None:
    path = clustered_table(tmp_path)
    assert spark.read.format("pydelta").load(path).filter("y = 3").count() == 6
    table = DeltaTable.forPath(spark, path)
    (item,) = [item for item in table.report().facts.advice if "order" in item.title]
    assert item.sql is not None
    spark.sql(item.sql)
    assert table.detail().first()["clusteringColumns"] == ["y"]  # type: ignore[index]


def test_sql_of_advice_deletes_what_its_dry_run_lists(spark: SparkSession, tmp_path: Path) -> None:
    path = advised_table(tmp_path)
    PlainTable(path).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    PlainTable(path).optimize.compact()
    (item,) = [item for item in DeltaTable.forPath(spark, path).report(vacuum=True).facts.advice if "VACUUM" in item.title]
    assert item.sql is not None and item.after_dry_run is not None and item.after_dry_run.sql is not None
    files = data_files(path)
    listed = {Path(row.path).name for row in spark.sql(item.sql).collect()}
    assert data_files(path) == files
    spark.sql(item.after_dry_run.sql)
    assert files - data_files(path) == {name for name in listed if name.endswith(".parquet")} != set()


def data_files(path: str) -> set[str]:
    return {file.name for file in Path(path).glob("*.parquet")}


def test_sql_of_advice_repairs_after_its_dry_run(spark: SparkSession, path: str) -> None:
    (Path(path) / "_delta_log" / f"{4:020d}.crc").write_text("{")
    table = DeltaTable.forPath(spark, path)
    (item,) = [item for item in table.report().facts.advice if item.urgent]
    assert item.sql is not None and item.after_dry_run is not None and item.after_dry_run.sql is not None
    spark.sql(item.sql)
    assert item in table.report().facts.advice
    spark.sql(item.after_dry_run.sql)
    assert not [item for item in table.report().facts.advice if item.urgent]
