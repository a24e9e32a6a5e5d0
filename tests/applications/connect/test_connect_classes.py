"""Spark Connect with the package's jar, which the client sends to the server: the rule, the readers and the catalogs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from tests.support.spark.spark_script import run_script

CONNECT = """
import json, logging, sys
logging.basicConfig(format="LOG %(name)s %(message)s")
from pyspark.sql import SparkSession
from pyspark.errors import AnalysisException
from spark_plugin import register
from spark_plugin.exceptions import InvalidOptionError, TableNotFoundError, UnsupportedOperationError, VersionNotFoundError

path, home, off = sys.argv[1:]
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").config("spark.sql.warehouse.dir", home)
    .getOrCreate()
)
if off == "off":
    spark.conf.set("spark.pydelta.disable", "connect")
register(spark)
register(spark)

def rows(text, **more):
    return [list(row) for row in spark.sql(text, **more).collect()]

def caught(text):
    try:
        spark.sql(text).collect()
    except Exception as error:
        return [type(error).__name__, error.getCondition()]
    return None

table = f"pydelta.`{path}`"
found = {}
if off == "off":
    found["refused"] = caught(f"SELECT * FROM {table}")
    spark.sql(f"INSERT INTO {table} (id) VALUES (:id)", args={"id": 7})
    found["inserted"] = spark.read.format("pydelta").load(path).filter("id = 7").count()
else:
    def scan(plan):
        return next(line for line in plan.splitlines() if "BatchScan" in line)

    found["rows"] = rows(f"SELECT count(*) FROM {table}")
    found["version"] = rows(f"SELECT count(*) FROM {table} VERSION AS OF 0")
    found["timestamp"] = caught(f"SELECT * FROM {table} TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY")
    found["sql_scan"] = scan(rows(f"EXPLAIN SELECT name FROM {table} WHERE id = 3")[0][0])
    found["load_scan"] = scan(spark.read.format("pydelta").load(path).filter("id = 3").select("name")._explain_string())
    # Both readers of the executors, and Spark's own, by rows.
    found["read"] = {}
    for name, columnar, native in (("columns", True, False), ("parquet", True, True), ("rows", False, False)):
        spark.conf.set("spark.pydelta.columnarReader.enabled", str(columnar).lower())
        spark.conf.set("spark.pydelta.nativeReader.enabled", str(native).lower())
        frame = spark.read.format("pydelta").load(path).select("id", "name").filter("id > 0")
        found["read"][name] = ["ColumnarToRow" in frame._explain_string(), [list(row) for row in frame.sort("id").collect()]]
    for name in ("columnarReader", "nativeReader"):
        spark.conf.unset(f"spark.pydelta.{name}.enabled")
    found["metadata"] = rows(f"SELECT count(DISTINCT _metadata.file_name) FROM {table}")
    spark.sql(f"INSERT INTO {table} VALUES (:id, :name)", args={"id": 9, "name": "n9"})
    spark.sql(f"INSERT INTO {table} REPLACE WHERE id = 9 VALUES (9, 'new')")
    spark.sql(f"INSERT INTO delta.`{path}` (id) VALUES (10)")
    found["inserted"] = rows(f"SELECT id, name FROM {table} WHERE id > 8 ORDER BY id")
    found["deleted"] = rows(f"DELETE FROM {table} WHERE id = 10")
    spark.sql("CREATE TABLE made USING pydelta CLUSTER BY (one) AS SELECT 1 AS one")
    spark.sql("ALTER TABLE made SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')")
    spark.sql("ALTER TABLE made ADD COLUMNS (two varchar(3))")
    spark.sql("ALTER TABLE made RENAME COLUMN two TO `t.o`")
    spark.sql("INSERT INTO made VALUES (2, 'abc')")
    found["script"] = rows("BEGIN INSERT INTO made VALUES (3, 'x'); SELECT * FROM made ORDER BY one; END")
    found["changes"] = rows("SELECT one, _change_type FROM table_changes('made', 4) ORDER BY one")
    found["made"] = [spark.table("made").columns, [row[4] for row in rows("DESCRIBE HISTORY made")]]
    spark.sql("CREATE TABLE parted USING pydelta PARTITIONED BY (day) AS SELECT id, id % 2 AS day FROM range(5)")
    spark.sql("CREATE TABLE later LIKE parted TBLPROPERTIES ('own' = 'x')")
    spark.sql("CREATE TABLE IF NOT EXISTS later LIKE parted")
    shown = [rows("SHOW PARTITIONS parted"), rows("SHOW PARTITIONS parted PARTITION (day = :day)", args={"day": 1})]
    spark.sql("TRUNCATE TABLE parted")
    found["parted"] = [sorted(shown[0]), shown[1], rows("SHOW PARTITIONS parted"), rows("SELECT * FROM parted")]
    found["later"] = [spark.table("later").columns, rows("SHOW PARTITIONS later"), rows("SHOW TBLPROPERTIES later ('own')")]
    shown = [caught("SHOW PARTITIONS made")]
    found["wrong"] = [*shown, caught("SHOW PARTITIONS parted PARTITION (id = 1)"), caught("SHOW PARTITIONS")]
    spark.range(1, 3).selectExpr("cast(id AS int) AS one", "'r' AS `t.o`").write.format("pydelta").mode("overwrite").option(
        "replaceUsing", "one"
    ).saveAsTable("made")
    found["replaced"] = rows("SELECT * FROM made ORDER BY one")
    spark.sql("DROP TABLE made")
    spark.sql("CREATE TABLE kinds (id bigint, at timestamp, day date GENERATED ALWAYS AS (cast(at AS date))) USING pydelta")
    spark.sql("INSERT INTO kinds VALUES (1, timestamp'2024-02-03 04:05:06', date'2024-02-03')")
    found["kinds"] = rows("SELECT id, cast(day AS string) FROM kinds")
    spark.sql("CREATE TABLE empty USING pydelta")
    spark.sql("ALTER TABLE empty ADD COLUMNS (id BIGINT, v STRING)")
    spark.sql("INSERT INTO empty VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql("INSERT INTO empty (v, id) REPLACE USING (id) VALUES (:v, 1), ('new', 4)", args={"v": "using"})
    on = "t.id = s.id AND t.v = :v (SELECT 'on' AS v, 2L AS id) AS s"
    spark.sql(f"INSERT INTO empty AS t BY NAME REPLACE ON {on}", args={"v": "b"})
    found["matching"] = [rows("SELECT * FROM empty ORDER BY id"), caught("INSERT INTO empty REPLACE USING (nope) SELECT 1L, 'x'")]
    found["matching"].append([row[4] for row in rows("DESCRIBE HISTORY empty")])
    place = rows("SELECT _metadata.row_index FROM empty WHERE id = 3")[0][0]
    found["of_metadata"] = [
        rows("DELETE FROM empty WHERE _metadata.file_name = 'none'"),
        rows("UPDATE empty SET v = _metadata.row_index WHERE _metadata.row_index >= 0 AND id = 3"),
        rows(f"SELECT v = '{place}' FROM empty WHERE id = 3"),
    ]
    spark.range(2).write.format("pydelta").saveAsTable("saved")
    spark.range(2).write.insertInto("saved")
    spark.range(3).write.saveAsTable("plain")
    found["names"] = [rows(f"SELECT count(*) FROM {name}")[0][0] for name in ("saved", "plain", "saved VERSION AS OF 0")]
    found["errors"] = [
        caught(f"SELECT * FROM pydelta.`{path}x`"),
        caught(f"SELECT * FROM {table} VERSION AS OF 99"),
        caught(f"SELECT * FROM {table} WITH ('pydelta.view' = 'history')"),
        caught(f"DROP TABLE {table}"),
    ]
    found["called"] = [
        rows("CALL pydelta.system.history(limit => 1, table => :t)", args={"t": path})[0][4],
        rows("CALL pydelta.system.optimize('saved')")[0][1]["numFilesRemoved"] > 1,
        caught("CALL pydelta.system.history()"),
        caught("CALL pydelta.system.nothing('saved')"),
        caught("BEGIN CALL pydelta.system.optimize('saved'); END"),
    ]
    other = spark if spark.version.startswith(("4.1.", "4.2.")) else spark.newSession()  # which came with 4.3
    register(other)
    found["other"] = [list(row) for row in other.sql(f"SELECT count(*) FROM {table}").collect()]
    if other is not spark:
        other.client.close()  # at its end the process would wait for an answer of the server, which stops before
spark.stop()
print(json.dumps(found))
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Two files: 1 and 2; 3."""
    place = str(tmp_path / "a b'ü")
    write_delta(place, pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["n1", "n2"]}))
    write_delta(place, pa.table({"id": pa.array([3], pa.int64()), "name": ["n3"]}), mode="append")
    return place


def test_session_has_the_catalogs_the_rule_and_the_readers(path: str, tmp_path: Path) -> None:
    result = run_script(CONNECT, path, str(tmp_path / "warehouse"), "on")
    assert (result["rows"], result["version"], result["metadata"]) == ([[3]], [[2]], [[2]])
    assert result["timestamp"][0] == "TimestampOutOfRangeError"
    expected = [[1, "n1"], [2, "n2"], [3, "n3"]]
    assert result["read"] == {"columns": [True, expected], "parquet": [True, expected], "rows": [False, expected]}
    for scan in (result["sql_scan"], result["load_scan"]):
        assert "1 of 2 files" in scan and "id = 3" in scan
    assert (result["inserted"], result["deleted"]) == ([[9, "new"], [10, None]], [[1]])
    assert result["script"] == [[1, None], [2, "abc"], [3, "x"]]
    assert result["changes"] == [[2, "insert"], [3, "insert"]]
    operations = ["WRITE", "WRITE", "RENAME COLUMN", "ADD COLUMNS", "SET TBLPROPERTIES"]
    assert result["made"][0] == ["one", "t.o"] and result["made"][1][:5] == operations
    assert result["parted"] == [[[0], [1]], [[1]], [], []]
    assert result["later"] == [["id", "day"], [], [["own", "x"]]]
    assert [condition for _, condition in result["wrong"]] == [
        "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
        "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
        "PARSE_SYNTAX_ERROR",
    ]
    assert result["replaced"] == [[1, "r"], [2, "r"], [3, "x"]]
    assert result["kinds"] == [[1, "2024-02-03"]]
    assert result["matching"] == [
        [[1, "using"], [2, "on"], [3, "c"], [4, "new"]],
        ["SchemaMismatchError", "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"],
        ["WRITE", "WRITE", "WRITE", "ADD COLUMNS", "CREATE TABLE"],
    ]
    assert result["of_metadata"] == [[[0]], [[1]], [[True]]]
    assert result["names"] == [4, 3, 2]
    assert result["errors"] == [
        ["TableNotFoundError", "DELTA_PATH_DOES_NOT_EXIST"],
        ["VersionNotFoundError", "DELTA_VERSION_NOT_FOUND"],
        ["InvalidOptionError", "DELTA_ILLEGAL_OPTION"],
        ["UnsupportedOperationError", "DELTA_OPERATION_NOT_SUPPORTED"],
    ]
    assert result["called"] == [
        "DELETE",
        True,
        ["AnalysisException", "REQUIRED_PARAMETER_NOT_FOUND"],
        ["AnalysisException", "ROUTINE_NOT_FOUND"],
        ["UnsupportedOperationError", "DELTA_OPERATION_NOT_SUPPORTED"],
    ]
    assert result["other"] == [[4]]
    assert "without column pruning" not in result["stderr"]
    assert not (tmp_path / "warehouse" / "made").exists()
    assert sorted(DeltaTable(path).to_arrow().column("id").to_pylist()) == [1, 2, 3, 9]


def test_setting_keeps_the_classes_at_home(path: str, tmp_path: Path) -> None:
    result = run_script(CONNECT, path, str(tmp_path / "warehouse"), "off")
    assert result["refused"] is not None and result["inserted"] == 1
    assert result["stderr"].count("without column pruning") == 1 and "the session disables connect" in result["stderr"]
