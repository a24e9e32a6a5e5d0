"""Tables of Unity Catalog over Spark Connect: by name and by URL, and no token in what the server records."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_py.storage import publication
from tests.support.servers.unity_catalog import UnityCatalogServer
from tests.support.spark.spark_script import run_script
from tests.support.tables.catalog_tables import create_managed

SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from spark_plugin import DeltaTable, register

uri, token, home = sys.argv[1:]
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", f"{home}/events")
    .config("spark.eventLog.compress", "false").getOrCreate()
)


register(spark, catalogs={"uc": {"uri": uri, "token": token}})
found = {}

def ids(frame):
    return sorted(row["id"] for row in frame.select("id").collect())

def caught(call):
    try:
        call()
    except Exception as error:
        return str(error)
    return None

found["read"] = [ids(spark.table("uc.s.t")), ids(spark.read.format("pydelta").load("uc://uc.s.t"))]
spark.sql("INSERT INTO uc.s.t VALUES (3), (4)")
spark.sql("DELETE FROM uc.s.t WHERE id = 1")
spark.sql("UPDATE uc.s.t SET id = 20 WHERE id = 2")
spark.sql("MERGE INTO uc.s.t t USING (SELECT 5L AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
spark.range(6, 7).write.format("pydelta").mode("append").save("uc://uc.s.t")
found["changed"] = ids(spark.table("uc.s.t"))
found["travelled"] = ids(spark.sql("SELECT * FROM uc.s.t VERSION AS OF 0"))
spark.sql("USE uc.s")
DeltaTable.forName(spark, "t").delete("id = 5")
found["in_schema"] = ids(spark.table("t"))
spark.sql("USE spark_catalog.default")
spark.sql("CREATE TABLE uc.s.made AS SELECT id FROM range(2)")
spark.sql("CREATE TABLE uc.s.empty (id BIGINT) USING delta")
spark.range(2, 3).write.format("pydelta").mode("append").saveAsTable("uc.s.made")
spark.range(3, 4).writeTo("uc.s.made").append()
found["made"] = ids(spark.table("uc.s.made"))
stream = spark.readStream.table("uc.s.made").writeStream.format("pydelta").option("checkpointLocation", f"{home}/c")
stream.trigger(availableNow=True).toTable("uc.s.copy").awaitTermination()
found["copy"] = ids(spark.table("uc.s.copy"))
found["tables"] = [row["tableName"] for row in spark.sql("SHOW TABLES IN uc.s").collect()]
found["history"] = [row["operation"] for row in spark.sql("DESCRIBE HISTORY uc.s.made").collect()]
found["optimize"] = caught(lambda: spark.sql("OPTIMIZE uc.s.made"))
spark.sql("ALTER TABLE uc.s.made RENAME TO s.renamed")
spark.sql("DROP TABLE uc.s.renamed")
found["missing"] = caught(lambda: spark.table("uc.s.renamed").collect())
print(json.dumps(found))
"""


def test_tables_are_used_over_connect(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    with UnityCatalogServer(tmp_path / "catalog") as server:
        create_managed(server, "t", pa.table({"id": pa.array([1, 2], pa.int64())}))
        found = run_script(SCRIPT, server.uri, str(server.token), str(tmp_path))
        publication.finish()
    assert found["read"] == [[1, 2], [1, 2]]
    assert found["changed"] == [3, 4, 5, 6, 20] and found["travelled"] == [1, 2] and found["in_schema"] == [3, 4, 6, 20]
    assert found["made"] == [0, 1, 2, 3] == found["copy"]
    assert found["tables"] == ["copy", "empty", "made", "t"] and len(found["history"]) == 3
    assert "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION" in found["optimize"]
    assert "TABLE_OR_VIEW_NOT_FOUND" in found["missing"]
    recorded = [path for path in (tmp_path / "events").rglob("*") if path.is_file()]
    assert recorded and not [path for path in recorded if str(server.token).encode() in path.read_bytes()]
    assert str(server.token) not in found["stderr"]
