"""OPTIMIZE, VACUUM, DESCRIBE HISTORY and other statements that Spark's own parser does not know, by `spark.sql` in a classic
session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.errors import DeltaError
from delta_py.types.names import quoted
from spark_plugin.options.catalog_session_settings import IGNORE_MISSING_FILES
from spark_plugin.source.view_source import VIEW_SCHEMAS


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """Two versions, four files."""
    path = str(tmp_path / "sql's `t`")
    for start in (0, 10):
        rows = spark.range(start, start + 10).selectExpr("id", "id % 2 AS p")
        rows.coalesce(1).write.format("pydelta").mode("append").partitionBy("p").save(path)
    return path


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE DATABASE sql_utilities")
    yield "sql_utilities"
    spark.sql("DROP DATABASE sql_utilities CASCADE")


def test_upkeep_by_path(spark: SparkSession, path: str, tmp_path: Path) -> None:
    name, text = f"pydelta.{quoted(path)}", "'" + path.replace("'", "\\'") + "'"
    assert spark.sql(f"/* all */ optimize {name} WHERE p = 0").first()["metrics"]["numFilesRemoved"] == 2
    assert spark.sql(f"OPTIMIZE {text} ZORDER BY (id)").columns == ["path", "metrics"]
    history = spark.sql(f"DESCRIBE HISTORY {text} LIMIT 2")
    assert [row["operation"] for row in history.collect()] == ["OPTIMIZE", "OPTIMIZE"]
    assert spark.sql("DESC HISTORY IDENTIFIER(?)", [name]).count() == PlainTable(path).version + 1
    assert spark.sql(f"DESC DETAIL delta.{quoted(path)}").first()["numFiles"] == PlainTable(path).files().num_rows
    with pytest.raises(DeltaError, match="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"):
        spark.sql(f"VACUUM {name} RETAIN 0 HOURS")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        removable = spark.sql("VACUUM :t RETAIN :hours HOURS DRY RUN", {"t": path, "hours": 0})
        assert removable.columns == ["path"] and removable.count() > 0
        listed = "SELECT path, 1L AS length, false AS isDir, 0L AS modificationTime FROM {files} WHERE path LIKE '%.parquet'"
        removed_rows = spark.sql(f"VACUUM {name} USING INVENTORY ({listed}) RETAIN 0 HOURS DRY RUN", files=removable.limit(1))
        assert removed_rows.count() == 1
        assert spark.sql(f"VACUUM {name} RETAIN 0 HOURS").first()["path"].endswith("t`")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert spark.sql(f"FSCK REPAIR TABLE {name} DRY RUN").count() == 0
    spark.sql(f"GENERATE symlink_format_manifest FOR TABLE {name}")
    assert (Path(path) / "_symlink_format_manifest").is_dir()


def test_restore_and_clones(spark: SparkSession, path: str, database: str, tmp_path: Path) -> None:
    name, new = f"pydelta.{quoted(path)}", f"pydelta.{quoted(str(tmp_path / 'new'))}"
    restored = spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 0")
    assert restored.first()["num_removed_files"] == 2 and PlainTable(path).to_arrow().num_rows == 10
    cloned = spark.sql(f"CREATE TABLE {new} SHALLOW CLONE {name} VERSION AS OF 1 TBLPROPERTIES ('team' = 'b')")
    assert cloned.first().asDict() == {
        "source_table_size": cloned.first()["source_table_size"],
        "source_num_of_files": 4,
        "num_removed_files": 0,
        "num_copied_files": 0,
        "removed_files_size": 0,
        "copied_files_size": 0,
    }
    assert spark.sql(f"DESCRIBE DETAIL {new}").first()["properties"]["team"] == "b"
    assert spark.sql(f"CREATE TABLE IF NOT EXISTS {new} CLONE {name}").count() == 0
    with pytest.raises(DeltaError, match="ALREADY_EXISTS"):
        spark.sql(f"CREATE TABLE {new} CLONE {name}")
    assert spark.sql(f"CREATE OR REPLACE TABLE {new} DEEP CLONE {name}").first()["num_copied_files"] == 2
    location = str(tmp_path / "it's")
    spark.sql(f"CREATE TABLE {database}.c CLONE {name} LOCATION ?", [location])
    assert PlainTable(location).to_arrow().num_rows == 10 and spark.table(f"{database}.c").count() == 10
    assert spark.sql(f"DESCRIBE HISTORY {database}.c").first()["operation"] == "CLONE"
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"REPLACE TABLE {database}.nowhere CLONE {name}")


def test_restore_skips_missing_files_if_the_session_says_so(
    spark: SparkSession, tmp_path: Path, conf: Callable[[Mapping[str, str]], None]
) -> None:
    path = str(tmp_path / "t")
    for start in (0, 5, 10):
        write_delta(path, pa.table({"id": range(start, start + 5)}), mode="append")
    (missing_path,) = PlainTable(path, version=0).files()["path"].to_pylist()
    PlainTable(path).delete("id < 10")
    (Path(path) / missing_path).unlink()
    statements = [
        f"RESTORE TABLE pydelta.`{path}` TO VERSION AS OF 2",
        f"CALL pydelta.system.restore(table => '{path}', version => 2)",
        f"CALL pydelta.system.restore(table => '{path}', version => 2, ignore_missing_files => false)",
    ]
    for statement in statements:
        with pytest.raises(DeltaError, match="ignoreMissingFiles"):
            spark.sql(statement)
    call = f"CALL pydelta.system.restore(table => '{path}', version => 2, ignore_missing_files => true)"
    assert spark.sql(call).first()["num_restored_files"] == 1
    for statement in statements[:2]:
        PlainTable(path).delete("id < 10")
        conf({IGNORE_MISSING_FILES: "true"})
        row = spark.sql(statement).first()
        assert (row["num_restored_files"], row["num_of_files_after_restore"]) == (1, 2)
        assert sorted(PlainTable(path).to_arrow()["id"].to_pylist()) == [*range(5, 15)]
    with pytest.raises(DeltaError, match="ignoreMissingFiles"):
        spark.sql(statements[2])


@pytest.fixture
def other_objects(spark: SparkSession, database: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Objects that are not Delta tables, as statements name them."""
    more = "PARTITIONED BY (day) COMMENT 'of days' TBLPROPERTIES (k = 'v')"
    spark.sql(f"CREATE TABLE {database}.p (id BIGINT, day INT) USING parquet {more}")
    spark.sql(f"CREATE TABLE {database}.c (id BIGINT) USING csv")
    spark.sql(f"CREATE VIEW {database}.v AS SELECT 1 AS id")
    spark.sql("CREATE TEMPORARY VIEW others_v AS SELECT 1 AS id")
    files = tmp_path / "files"
    spark.range(2).write.parquet(str(files))
    yield {
        "table": f"{database}.p",
        "csv": f"{database}.c",
        "view": f"{database}.v",
        "temporary view": "others_v",
        "nothing": f"{database}.nothing",
        "no database": "nowhere.nothing",
        "files": f"parquet.`{files}`",
        "directory": f"'{files}'",
        "no directory": f"'{files}-none'",
        "path": f"pydelta.`{files}`",
    }
    spark.sql("DROP VIEW others_v")


_NOT_THERE = dict.fromkeys(("nothing", "no database", "files"), "TABLE_OR_VIEW_NOT_FOUND")
_VIEWS = dict.fromkeys(("view", "temporary view"), "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE")
_TABLES = dict.fromkeys(("table", "csv"), "DELTA_ONLY_OPERATION")
_DIRECTORIES = dict.fromkeys(("directory", "no directory"), "DELTA_TABLE_ONLY_OPERATION")
_REFUSED: dict[str, dict[str, str]] = {
    "OPTIMIZE {}": {**_TABLES, **_VIEWS, **_NOT_THERE, **_DIRECTORIES, "path": "DELTA_MISSING_DELTA_TABLE"},
    "VACUUM {} DRY RUN": {**_TABLES, **_VIEWS, **_NOT_THERE, **_DIRECTORIES, "path": "DELTA_MISSING_DELTA_TABLE"},
    "DESCRIBE HISTORY {}": {**_TABLES, **_VIEWS, **_NOT_THERE, **_DIRECTORIES, "path": "DELTA_TABLE_ONLY_OPERATION"},
    "DESCRIBE DETAIL {}": {**_VIEWS, **_NOT_THERE, "no directory": "DELTA_FILE_NOT_FOUND", "path": "DELTA_MISSING_DELTA_TABLE"},
    "RESTORE TABLE {} TO VERSION AS OF 0": {**_TABLES, **dict.fromkeys(_VIEWS, "DELTA_ONLY_OPERATION"), **_NOT_THERE},
    "REORG TABLE {} APPLY (PURGE)": {
        **dict.fromkeys(_TABLES, "DELTA_NOT_A_DELTA_TABLE"),
        **_VIEWS,
        **_NOT_THERE,
        "path": "DELTA_ONLY_OPERATION",
    },
    "GENERATE symlink_format_manifest FOR TABLE {}": {**_TABLES, **_VIEWS, **_NOT_THERE, "path": "DELTA_MISSING_DELTA_TABLE"},
    "FSCK REPAIR TABLE {} DRY RUN": {**_TABLES, **_VIEWS, **_NOT_THERE, "path": "DELTA_MISSING_DELTA_TABLE"},
    "ALTER TABLE {} DROP FEATURE deletionVectors": {**_TABLES, **_VIEWS, **_NOT_THERE, "path": "DELTA_MISSING_DELTA_TABLE"},
    "CREATE TABLE others_clone SHALLOW CLONE {}": {
        **dict.fromkeys(("csv", "view", "temporary view"), "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        "nothing": "TABLE_OR_VIEW_NOT_FOUND",
        "path": "DELTA_MISSING_DELTA_TABLE",
    },
}


@pytest.mark.parametrize("statement", _REFUSED)
def test_statement_on_non_delta_object_fails_as_in_delta_spark(
    spark: SparkSession, other_objects: dict[str, str], statement: str
) -> None:
    conditions = {}
    for kind in _REFUSED[statement]:
        with pytest.raises(AnalysisException) as raised:
            spark.sql(statement.format(other_objects[kind]))
        conditions[kind] = raised.value.getCondition()
        assert other_objects[kind].strip("'").replace("`", "").removeprefix("pydelta.") in str(raised.value).replace("`", "")
    assert conditions == _REFUSED[statement]


def test_detail_of_another_format_shows_what_the_catalog_knows(
    spark: SparkSession, other_objects: dict[str, str], database: str
) -> None:
    row = spark.sql(f"DESCRIBE DETAIL {other_objects['table']}").first().asDict()
    created, location = row.pop("createdAt"), row.pop("location")
    assert created is not None and location.startswith("file:/") and location.endswith("/p")
    assert {name: value for name, value in row.items() if value is not None} == {
        "format": "parquet",
        "name": f"spark_catalog.{database}.p",
        "description": "of days",
        "partitionColumns": ["day"],
        "properties": {"k": "v"},
    }
    assert tuple(row) == tuple(name for name in VIEW_SCHEMAS["detail"].names if name not in ("createdAt", "location"))
    assert spark.sql(f"CALL pydelta.system.detail('{other_objects['csv']}')").first()["format"] == "csv"
    directory = spark.sql(f"DESC DETAIL {other_objects['directory']}").first().asDict()
    assert {name: value for name, value in directory.items() if value is not None} == {
        "location": other_objects["directory"].strip("'"),
        "properties": {},
    }


def test_convert_and_what_a_table_is(spark: SparkSession, database: str, tmp_path: Path) -> None:
    files = str(tmp_path / "files")
    spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(files)
    assert spark.sql(f"CONVERT TO DELTA parquet.{quoted(files)} PARTITIONED BY (p BIGINT)").columns == []
    spark.sql(f"CREATE TABLE {database}.t USING pydelta LOCATION '{files}'")
    spark.sql(f"ALTER TABLE {database}.t ADD FEATURE domainMetadata")
    assert "domainMetadata" in spark.sql(f"DESC DETAIL {database}.t").first()["tableFeatures"]
    spark.sql(f"CREATE INDEX by_id ON {database}.t (id)")
    spark.sql(f"DROP INDEX by_id ON {database}.t")
    spark.sql(f"ALTER TABLE {database}.t ADD CONSTRAINT `few rows` CHECK (id < 100 AND (id > -1))")
    with pytest.raises(DeltaError, match="DELTA_CONSTRAINT_ALREADY_EXISTS"):
        spark.sql(f"ALTER TABLE {database}.t ADD CONSTRAINT `few rows` CHECK (id < 9)")
    spark.sql(f"ALTER TABLE {database}.t DROP CONSTRAINT IF EXISTS `few rows`")
    with pytest.raises(DeltaError):
        spark.sql(f"ALTER TABLE {database}.t ALTER COLUMN id SYNC IDENTITY")
    with pytest.raises(DeltaError, match="Iceberg"):
        spark.sql(f"REORG TABLE {database}.t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")


def test_settings_are_put_in_as_in_spark_s_own_statements(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """${...} was data: a constraint kept it, and OPTIMIZE found no partition of this name."""
    spark.sql(f"CREATE TABLE {database}.t (id INT, p STRING) USING pydelta PARTITIONED BY (p)")
    for number in range(2):
        spark.sql(f"INSERT INTO {database}.t VALUES ({number}, 'x')")
    clone = str(tmp_path / "clone")
    spark.sql(f"SET utilities.table={database}.t")
    spark.sql("SET utilities.p=x")
    spark.sql(f"SET utilities.path={clone}")
    assert spark.sql("OPTIMIZE ${utilities.table} WHERE p = '${utilities.p}'").first()["metrics"]["numFilesRemoved"] == 2
    spark.sql("ALTER TABLE ${utilities.table} ADD CONSTRAINT c CHECK (p <> '${utilities.p}y')")
    assert spark.sql(f"DESCRIBE DETAIL {database}.t").first()["properties"]["delta.constraints.c"] == "p <> 'xy'"
    spark.sql("CREATE TABLE pydelta.`${utilities.path}` SHALLOW CLONE ${utilities.table} VERSION AS OF ${utilities.v}1")
    assert PlainTable(clone).to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("OPTIMIZE nowhere_at_all", AnalysisException, "nowhere_at_all"),
        ("DESCRIBE HISTORY nowhere_at_all", DeltaError, "nowhere_at_all"),
        ("OPTIMIZE t\n  FOO", ParseException, r"near 'FOO'.*\(line 2, pos 2\)\s+== SQL ==\nOPTIMIZE t\n  FOO\n--\^\^\^"),
        ("OPTIMIZE 'x", ParseException, ""),
        ("RESTORE", ParseException, "end of input"),
        ("ALTER TABLE t ADD CONSTRAINT c PRIMARY", ParseException, ""),
    ],
)
def test_what_cannot_be_is_said(spark: SparkSession, text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=f"(?s){message}"):
        spark.sql(text)


def test_other_statements_with_the_same_first_words_are_spark_s(spark: SparkSession, database: str) -> None:
    spark.sql(f"USE {database}")
    try:
        spark.sql("CREATE TABLE history (clone INT, detail INT) USING parquet")
        assert spark.sql("DESCRIBE history").count() == 2
        assert rows(spark, "DESCRIBE history clone")[0][1] == "clone"
    finally:
        spark.sql("USE default")


def rows(spark: SparkSession, text: str) -> Any:
    return spark.sql(text).collect()
