"""Several sessions of one Spark Connect server in one program: inactive sessions, and clones."""

from __future__ import annotations

from pathlib import Path

from delta_py import DeltaTable
from tests.support.spark.needs_spark import needs_spark
from tests.support.spark.spark_script import run_script

PRELUDE = """
import json, os, sys, threading
from pyspark.sql import SparkSession, functions as F
from spark_plugin import DeltaTable, register

path = sys.argv[1]
table = f"pydelta.`{path}`"
spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
register(spark)
spark.range(3).selectExpr("id", "'old' AS name").write.format("pydelta").save(path)
found = {}

def rows(session):
    return [list(row) for row in session.sql(f"SELECT * FROM {table} ORDER BY id").collect()]
"""

OTHERS = """
other = spark.newSession() if hasattr(spark, "newSession") else spark.cloneSession()
register(other)

def merge(session, name):
    source = session.createDataFrame([(1, name), (9, name)], "id long, name string")
    target = DeltaTable.forPath(session, path).alias("t")
    return target.merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first()[0]

found["merged"] = [merge(other, "other")]
statement = f"MERGE INTO {table} t USING (SELECT 2L AS k) s ON t.id = k WHEN MATCHED THEN DELETE"
found["merged"].append(other.sql(statement).first()[0])
thread = threading.Thread(target=lambda: found["merged"].append(merge(other, "thread")))
thread.start()
thread.join()
other.sql(f"INSERT INTO {table} AS t REPLACE USING (id) SELECT 0L AS id, 'using' AS name")
found["rows"] = rows(other)
found["active"] = SparkSession.getActiveSession() is spark
"""

CLONES = """
spark.range(1).createOrReplaceTempView("one")
clone = spark.cloneSession()
found["read"] = [clone.read.format("pydelta").load(path).count(), rows(clone)]
clone.sql(f"INSERT INTO {table} SELECT 7L, 'view' FROM one")
clone.sql(f"DELETE FROM {table} WHERE id = 0")
clone.sql(f"UPDATE {table} SET name = 'clone' WHERE id = 1")
register(clone)
found["version"] = clone.sql(f"SELECT count(*) FROM {table} VERSION AS OF 0").first()[0]
found["history"] = [row["operation"] for row in DeltaTable.forPath(clone, path).history().collect()]
clone.sql(f"CREATE TABLE pydelta.`{path}-copy` USING pydelta AS SELECT * FROM {table}")
again = clone.cloneSession()
again.sql(f"INSERT INTO {table} VALUES (8, 'again')")
found["rows"] = [rows(clone), rows(spark), spark.read.format("pydelta").load(f"{path}-copy").count()]
"""


BATCHES = """
def change(batch, number):
    session = batch.sparkSession
    if asks:
        from spark_plugin import register
        register(session)
    batch.createOrReplaceTempView("batch")
    session.sql(f"INSERT INTO {table} SELECT id + 10, name FROM batch WHERE id < 2")
    session.sql(f"UPDATE {table} SET name = 'batch' WHERE id = 11")
    session.sql(f"MERGE INTO {table} t USING batch s ON t.id = s.id + 10 WHEN NOT MATCHED THEN INSERT *")

for asks in (False, True):
    query = spark.readStream.format("pydelta").load(f"{path}-source").writeStream.foreachBatch(change)
    query.option("checkpointLocation", f"{path}-checkpoint-{asks}").trigger(availableNow=True).start().awaitTermination()
found["rows"] = rows(spark)
"""


# The local server ends with the first session that stops, and pyspark waits long for it if another session ends later.
END = """
print(json.dumps(found), flush=True)
spark.stop()
os._exit(0)
"""


@needs_spark("4.2", "more than one session of a client")
def test_merge_of_a_session_that_is_not_the_active_one(tmp_path: Path) -> None:
    result = run_script(PRELUDE + OTHERS + END, str(tmp_path / "t"))
    assert result["merged"] == [2, 1, 2]
    assert result["rows"] == [[0, "using"], [1, "thread"], [9, "thread"]]
    assert result["active"], "the caller's session is the active one again"


@needs_spark("4.2", "streaming reads over Spark Connect")
def test_foreach_batch_function_has_sql_of_registered_session(tmp_path: Path) -> None:
    source = PRELUDE + """spark.range(3).selectExpr("id", "'new' AS name").write.format("pydelta").save(f"{path}-source")\n"""
    result = run_script(source + BATCHES + END, str(tmp_path / "t"))
    old = [[n, "old"] for n in range(3)]
    assert sorted(result["rows"]) == sorted([*old, *[[2, "new"], [10, "new"], [11, "batch"]] * 2])


@needs_spark("4.2", "cloneSession of Spark Connect")
def test_clone_of_a_registered_session_reads_and_writes_in_sql(tmp_path: Path) -> None:
    # Each clone starts processes of its own on the server: on a busy machine that takes minutes.
    result = run_script(PRELUDE + CLONES + END, str(tmp_path / "t"), timeout_seconds=550)
    assert result["read"] == [3, [[n, "old"] for n in range(3)]]
    assert (result["version"], result["history"]) == (3, ["UPDATE", "DELETE", "WRITE", "WRITE"])
    changed = [[1, "clone"], [2, "old"], [7, "view"]]
    assert result["rows"] == [[*changed, [8, "again"]], [*changed, [8, "again"]], 3]
    assert DeltaTable(str(tmp_path / "t")).version == 4
