"""delta-spark and pydelta take turns on one Hive metastore: each reads, writes and alters what the other entered.

Each turn is an application of its own, since Derby serves one at a time. The same script runs on both; `engine` says which.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.peers import delta_spark, orders_peers
from tests.support.spark.spark_script import run_script

SCRIPT = """
import json, logging, os, sys
from pyspark.sql import SparkSession
home, engine, jars = sys.argv[1:4]
builder = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", home + "/warehouse")
    .config("spark.databricks.delta.snapshotPartitions", "2")
    .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={home}/metastore;create=true")
    .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home}").enableHiveSupport()
)
if engine == "delta-spark":
    builder = (
        builder.config("spark.jars", jars).config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    )
spark = builder.getOrCreate()
if engine == "pydelta":
    from spark_plugin import register
    register(spark)

def entry(name):
    facts = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
    return [facts["Provider"], facts["Type"]]

def state(name):
    engines = [row.engineInfo.split("/")[0] for row in spark.sql(f"DESCRIBE HISTORY {name}").collect()]
    names = sorted(spark.table(name).columns)
    return [names, sorted(list(row) for row in spark.table(name).select("id").collect()), engines[0], entry(name)]

found = {}
"""

MAKE = """
name = engine.replace("-", "_")
spark.sql(f"CREATE TABLE {name}_made (id BIGINT, day STRING) USING delta PARTITIONED BY (day)")
spark.sql(f"INSERT INTO {name}_made VALUES (1, 'a')")
spark.range(1, 3).write.format("delta").saveAsTable(f"{name}_saved")
spark.range(3).write.format("delta").save(f"{home}/{name}_outside")
spark.sql(f"CREATE TABLE {name}_outside USING delta LOCATION '{home}/{name}_outside'")
spark.sql(f"CREATE TABLE {name}_selected USING delta AS SELECT 5L AS id")
"""

CHANGE = """
other = {"pydelta": "delta_spark", "delta-spark": "pydelta"}[engine]
found["tables"] = sorted(row.tableName for row in spark.sql("SHOW TABLES").collect())
for kind in ("made", "saved", "outside", "selected"):
    name = f"{other}_{kind}"
    found[f"{kind} before"] = state(name)
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (note STRING COMMENT 'of the other')")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    spark.range(7, 8).selectExpr("id", *(["'b' AS day"] if kind == "made" else []), "'n' AS note").write.format("delta").mode(
        "append").saveAsTable(name)
    spark.sql(f"UPDATE {name} SET id = id + 10 WHERE id = 7")
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    found[kind] = state(name)
spark.sql(f"CREATE OR REPLACE TABLE {other}_selected (id BIGINT, z INT) USING delta")
spark.sql(f"ALTER TABLE {other}_saved RENAME TO {other}_renamed")
"""

LOOK = """
name = engine.replace("-", "_")
for kind in ("made", "renamed", "outside", "selected"):
    spark.sql(f"INSERT INTO {name}_{kind} (id) VALUES (30)")
    found[kind] = state(f"{name}_{kind}")
place = spark.sql(f"DESCRIBE DETAIL {name}_made").first()["location"].removeprefix("file:")
for kind in ("made", "outside"):
    spark.sql(f"DROP TABLE {name}_{kind}")
found["kept"] = [os.path.exists(place), os.path.exists(f"{home}/{name}_outside/_delta_log")]
"""

END = """
print(json.dumps(found))
spark.stop()
"""


def turn(home: Path, engine: str, steps: str) -> dict[str, object]:
    return run_script(SCRIPT + steps + END, str(home), engine, delta_spark.settings()["spark.jars"], timeout_seconds=550)


@pytest.mark.parametrize(("first", "second"), [("delta-spark", "pydelta"), ("pydelta", "delta-spark")])
def test_each_engine_reads_writes_and_alters_tables_of_the_other(first: str, second: str, tmp_path: Path) -> None:
    turn(tmp_path, first, MAKE)
    found = turn(tmp_path, second, CHANGE)
    writers = {"delta-spark": "Apache-Spark", "pydelta": "pydelta"}
    name = first.replace("-", "_")
    assert found["tables"] == sorted(f"{name}_{kind}" for kind in ("made", "saved", "outside", "selected"))
    managed, external = ["delta", "MANAGED"], ["delta", "EXTERNAL"]
    assert found["made before"] == [["day", "id"], [[1]], writers[first], managed]
    assert found["outside before"] == [["id"], [[0], [1], [2]], writers[first], external]
    assert found["made"] == [["day", "id", "note"], [[17]], writers[second], managed]
    assert found["saved"] == [["id", "note"], [[2], [17]], writers[second], managed]
    assert found["outside"] == [["id", "note"], [[0], [2], [17]], writers[second], external]
    assert found["selected"] == [["id", "note"], [[5], [17]], writers[second], managed]
    after = turn(tmp_path, first, LOOK)
    assert after["made"] == [["day", "id", "note"], [[17], [30]], writers[first], managed]
    assert after["renamed"] == [["id", "note"], [[2], [17], [30]], writers[first], managed]
    assert after["outside"] == [["id", "note"], [[0], [2], [17], [30]], writers[first], external]
    assert after["selected"] == [["id", "z"], [[30]], writers[first], managed]
    assert after["kept"] == [False, True], "the files of the managed table went with it, those of the other one stay"


def test_script_of_delta_spark_checks_itself_on_delta_spark(tmp_path: Path) -> None:
    script = orders_peers.of_delta_spark(delta_spark.settings()["spark.jars"])
    found = run_script(script, str(tmp_path), timeout_seconds=550)
    assert (found["engine"], found["providers"]) == ("Apache-Spark", ["delta", "delta"])
