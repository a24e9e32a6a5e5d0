"""INSERT and EXPLAIN of a Spark Connect client, where the server's own way to a table does less than a saved DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from delta_py import DeltaTable
from delta_py.types.column_rules import GENERATION
from tests.support.spark.spark_script import run_script

CLASSIC = """
import json, sys
from pyspark.sql import SparkSession
from spark_plugin import pruning, register

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
made = {
    "numbers": "k BIGINT GENERATED ALWAYS AS IDENTITY, v STRING, n INT DEFAULT 3",
    "days": "id BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), p STRING",
    "plain": "id BIGINT, v STRING DEFAULT 'none'",
    "parts": "id BIGINT, p BIGINT, v STRING",
}
for name, columns in made.items():
    parts = {"days": "PARTITIONED BY (day, p)", "parts": "PARTITIONED BY (p)"}.get(name, "")
    properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    spark.sql(f"CREATE TABLE pydelta.`{sys.argv[1]}/{name}` ({columns}) USING pydelta {parts} {properties}")
spark.sql(f"INSERT INTO pydelta.`{sys.argv[1]}/parts` SELECT /*+ COALESCE(1) */ id, id % 3, concat('v', id) FROM range(9)")
print(json.dumps({"installed": pruning.status(spark).installed}))
"""

PRELUDE = """
import json, logging, os, sys
from pyspark.sql import SparkSession
from spark_plugin import register, sql_router
from spark_plugin.dataframe_api import batch_save

home = sys.argv[1]
spark = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
register(spark)
found, saved = {}, []
save_to = batch_save.Save.to

def noted(save, path):
    saved.append(path.rpartition("/")[2])
    save_to(save, path)

batch_save.Save.to = noted

def table(name):
    return f"pydelta.`{home}/{name}`"

def rows(text, **more):
    return [list(row) for row in spark.sql(text, **more).collect()]

def caught(text):
    try:
        spark.sql(text).collect()
    except Exception as error:
        return error.getCondition()
    return None
"""

INSERTS = """
t = table("numbers")
spark.sql(f"INSERT INTO {t} (v) VALUES ('a'), (:v)", args={"v": "it's"})
spark.sql(f"INSERT INTO {t} (v, n) VALUES ('c', DEFAULT), (?, 5)", args=["d"])
spark.sql(f"INSERT INTO {t} BY NAME SELECT 'e' AS v")
spark.sql(f"WITH c AS (SELECT 'f' AS v) INSERT INTO {t} (v) SELECT v FROM c")
spark.sql(f"FROM range(2) INSERT INTO {t} (n, v) SELECT id, DEFAULT WHERE id > 0")
spark.sql(f"INSERT INTO {t} (v) REPLACE WHERE v = 'a' SELECT 'a' AS v")
found["refused"] = [
    caught(f"INSERT INTO {t} VALUES (1, 'x', 1)"),
    caught(f"INSERT INTO {t} (nope) VALUES (1)"),
    caught(f"INSERT INTO {t} (v) REPLACE WHERE v = 'a' VALUES ('b')"),
    caught(f"INSERT INTO {t} (v, n) VALUES ('x', 99999999999)"),
    caught(f"INSERT INTO {t} (v) SELECT nope FROM range(1)"),
]
found["numbers"] = rows(f"SELECT k, v, n FROM {t} ORDER BY k")
spark.sql(f"INSERT OVERWRITE {t} (v) VALUES ('only')")
found["overwritten"] = rows(f"SELECT v, n FROM {t}")

t = table("days")
spark.sql(f"INSERT INTO {t} (id, at, p) VALUES (1, timestamp'2024-02-03 04:05:06', 'it''s'), (2, timestamp'2024-02-04', 'b')")
spark.sql(f"INSERT INTO {t} BY NAME SELECT 3L AS id, timestamp'2024-02-05 04:05:06' AS at, 'c' AS p")
spark.sql(f"INSERT INTO {t} PARTITION (p = 'd') (id) VALUES (4)")
spark.sql(f"INSERT OVERWRITE {t} PARTITION (day = DATE'2024-02-04') (id, at) VALUES (5, timestamp'2024-02-04 01:00:00')")
spark.sql(f"INSERT OVERWRITE {t} PARTITION (p = 'it''s') (id, at) VALUES (6, timestamp'2024-02-06 01:00:00')")
spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
spark.sql(f"INSERT OVERWRITE {t} (id, at, p) VALUES (7, timestamp'2024-02-05 09:00:00', 'c')")
spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
found["days"] = rows(f"SELECT id, CAST(day AS STRING), p FROM {t} ORDER BY id")
found["wrong_day"] = caught(f"INSERT INTO {t} (id, at, day) VALUES (9, timestamp'2024-02-03 00:00:00', date'2024-01-01')")

t = table("plain")
saved.clear()
spark.sql(f"INSERT INTO {t} VALUES (1, DEFAULT)")
spark.sql(f"INSERT INTO {t} (id) SELECT 2")
found["of_the_server"] = list(saved)
spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 3L AS id, 1.5D AS price")
spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
spark.sql(f"INSERT INTO {t} BY NAME SELECT 4L AS id, true AS gift")
spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
spark.sql(f"INSERT INTO {t} WITH ('mergeSchema' = 'true') BY NAME SELECT 5L AS id, 'n' AS note")
transaction = "spark.databricks.delta.write.txn"
spark.conf.set(f"{transaction}AppId", "app")
spark.conf.set(f"{transaction}Version", "5")
spark.sql(f"INSERT INTO {t} (id) VALUES (6)")
spark.conf.set(f"{transaction}Version.autoReset.enabled", "true")
found["reset"] = []
for number in (5, 6):
    spark.conf.set(f"{transaction}Version", str(number))
    spark.sql(f"INSERT INTO {t} (id) VALUES (7)")
    found["reset"].append(spark.conf.get(f"{transaction}Version", None))
spark.conf.unset(f"{transaction}AppId")
found["of_the_client"] = list(saved)
found["plain"] = rows(f"SELECT id, v, price, gift, note FROM {t} ORDER BY id")
spark.conf.set("spark.databricks.delta.optimizeWrite.enabled", "true")
spark.sql(f"INSERT INTO {t} (id) SELECT id FROM range(10, 26, 1, 8)")
spark.conf.unset("spark.databricks.delta.optimizeWrite.enabled")
found["optimized"] = rows(f"SELECT count(DISTINCT _metadata.file_name) FROM {t} WHERE id >= 10")[0][0]

t, frame = table("numbers"), spark.createDataFrame([("only", 8)], "v string, n int")
spark.sql(f"MERGE INTO {t} t USING {{source}} s ON t.v = s.v WHEN MATCHED THEN UPDATE SET n = s.n", source=frame)
spark.sql(f"INSERT INTO {t} (v) SELECT v || {{end}} FROM {{source}}", source=frame, end="2")
spark.sql(f"DELETE FROM {t} WHERE v IN (SELECT v FROM {{gone}})", gone=frame.filter("n < 8"))
found["frames"] = rows(f"SELECT v, n FROM {t} ORDER BY v")
found["views"] = [each.name for each in spark.catalog.listTables() if each.isTemporary]

spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
spark.sql(f"DELETE FROM {t} WHERE " + '"v"' + " <> 'only'")
refused = caught(f"INSERT INTO {t} (v) REPLACE WHERE " + '"v"' + " <> 'x' VALUES ('y')")
found["quoted"] = [rows(f"SELECT v FROM {t}"), refused]
spark.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")
spark.stop()
print(json.dumps(found))
"""

EXPLAINS = """
t, before = table("parts"), sorted(os.listdir(f"{home}/parts"))
into = f"MERGE INTO {t} t USING (SELECT 4L AS id) s ON t.id = s.id"
for name, text in {
    "delete": f"EXPLAIN DELETE FROM {t} AS t WHERE t.id = :id",
    "whole": f"EXPLAIN DELETE FROM {t}",
    "none": f"EXPLAIN DELETE FROM {t} WHERE id > 100",
    "formatted": f"EXPLAIN FORMATTED UPDATE {t} SET v = upper(v) WHERE p = 1",
    "extended": f"EXPLAIN EXTENDED {into} WHEN MATCHED AND s.id > 0 THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "inserts": f"EXPLAIN {into} AND t.p = 99 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "of_spark": f"EXPLAIN SELECT 'DELETE' FROM {t}",
}.items():
    frame = spark.sql(text, args={"id": 8} if ":id" in text else None)
    ((found[name],),) = [list(row) for row in frame.collect()]
found["schema"] = frame.schema.simpleString()
found["wrong"] = [rows(f"EXPLAIN DELETE FROM {t} WHERE nope = 1"), rows(f"EXPLAIN UPDATE {table('nothing')} SET a = 1")]
found["files"] = sorted(os.listdir(f"{home}/parts")) == before
found["count"] = rows(f"SELECT count(*) FROM {t}")
spark.stop()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with the tables."""
    directory = tmp_path_factory.mktemp("connect_sql")
    assert run_script(CLASSIC, str(directory))["installed"]
    return str(directory)


def test_inserts_of_a_client_get_what_saved_rows_get(home: str) -> None:
    result = run_script(PRELUDE + INSERTS, home)
    numbers = [row[0] for row in result["numbers"]]
    assert sorted(map(str, (row[1:] for row in result["numbers"]))) == sorted(
        map(str, [["a", 3], ["it's", 3], ["c", 3], ["d", 5], ["e", 3], ["f", 3], [None, 1]])
    )
    assert len(set(numbers)) == 7
    assert result["refused"] == [
        "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "DELTA_REPLACE_WHERE_MISMATCH",
        "CAST_OVERFLOW_IN_TABLE_INSERT",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    ]
    assert result["overwritten"] == [["only", 3]]
    assert result["days"] == [
        [4, None, "d"],
        [5, "2024-02-04", None],
        [6, "2024-02-06", "it's"],
        [7, "2024-02-05", "c"],
    ]
    assert result["wrong_day"] == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert (result["of_the_server"], result["of_the_client"], result["reset"]) == ([], ["plain"] * 5, [None, None])
    assert result["plain"] == [
        [1, "none", None, None, None],
        [2, "none", None, None, None],
        [3, "none", 1.5, None, None],
        [4, "none", None, True, None],
        [5, "none", None, None, "n"],
        [6, "none", None, None, None],
        [7, "none", None, None, None],
    ]
    assert result["optimized"] == 1
    assert operations(home, "numbers")[-5]["mode"] == "Overwrite"
    assert (result["frames"], result["views"]) == ([["only", 8], ["only2", 3]], [])
    assert result["quoted"] == [[["only"]], "DELTA_ILLEGAL_OPTION"]
    schema = DeltaTable(f"{home}/days").struct_type
    assert [f.name for f in schema.fields if GENERATION in f.metadata] == ["day"]


def operations(home: str, name: str) -> list[Mapping[str, Any]]:
    """The parameters of a table's commits, the oldest first."""
    commits = DeltaTable(f"{home}/{name}").history().to_pylist()
    return [dict(commit["operationParameters"]) for commit in reversed(commits)]


def test_explain_of_a_change_of_a_client_changes_nothing(home: str) -> None:
    result = run_script(PRELUDE + EXPLAINS, home)
    assert result["schema"] == "struct<plan:string>"
    for name in ("delete", "formatted", "extended", "inserts"):
        assert "version 1" in result[name], name
    assert result["delete"].startswith("== Physical Plan ==\n") and "== DELETE ==" in result["delete"]
    assert "predicate: t.id = CAST(8 AS INT)" in result["delete"] and "Files: 1 of 3 are read" in result["delete"]
    assert "Files: 0 of 3 are read, 3 are removed" in result["whole"]
    assert "No row has to be read" in result["none"] and "Files: 0 of 3 are read\n" in result["none"]
    assert "== UPDATE ==" in result["formatted"] and "(1) " in result["formatted"]
    assert "== Parsed Logical Plan ==" in result["extended"] and "Join" in result["extended"]
    assert "matchedPredicates: predicate s.id > 0, actionType delete" in result["extended"]
    assert "== MERGE ==" in result["inserts"] and "Files: 0 of 3 are read" in result["inserts"]
    assert "== Physical Plan ==" in result["of_spark"] and "== DELETE ==" not in result["of_spark"]
    for lines, fault in zip(result["wrong"], ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "DELTA_PATH_DOES_NOT_EXIST"), strict=True):
        assert lines[0] == ["Error occurred during query planning: "] and fault in lines[1][0]
        assert "JVM stacktrace" not in str(lines)
    assert result["files"] and result["count"] == [[9]]
