"""A session that was set up for delta-spark and does not have its jar works, and is told what to remove."""

from __future__ import annotations

from pathlib import Path

from tests.support.spark.spark_script import run_script

SCRIPT = """
import json, logging, sys
logging.basicConfig(format="LOG %(name)s %(message)s")
from pyspark.sql import SparkSession
from spark_plugin import register

home = sys.argv[1]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = (
    builder.config("spark.sql.warehouse.dir", home + "/warehouse")
    .config("spark.sql.extensions", "a.b.Other,io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.delta.logStore.gs.impl", "io.delta.storage.GCSLogStore")
    .config("spark.delta.logStore.s3.impl", "io.delta.storage.S3DynamoDBLogStore")
)
spark = builder.getOrCreate()
register(spark)
register(spark)
path = home + "/t"
spark.range(3).write.format("delta").save(path)
found = {"reads": [spark.read.format("pydelta").load(path).count() for _ in range(3)]}
spark.sql("CREATE TABLE named (id BIGINT) USING delta")
spark.sql("INSERT INTO named SELECT * FROM delta.`" + path + "`")
spark.sql("DELETE FROM named WHERE id = 1")
found["named"] = [row.id for row in spark.table("named").orderBy("id").collect()]
spark.sql("OPTIMIZE named")
found["catalog"] = spark.conf.get("spark.sql.catalog.spark_catalog")
assert builder.getOrCreate() is spark  # as where a notebook runs the cell of its session again: this sets all settings again
register(spark)
found["catalog again"] = spark.conf.get("spark.sql.catalog.spark_catalog")
def count(batch, number):
    found["batch"] = batch.sparkSession.sql("SELECT count(*) FROM named").first()[0]
stream = spark.readStream.format("delta").load(path).writeStream.foreachBatch(count)  # batches have a clone of the session
stream.option("checkpointLocation", home + "/checkpoint").trigger(availableNow=True).start().awaitTermination()
clone = spark.newSession()
register(clone)
found["second"] = clone.sql("SELECT count(*) FROM named").first()[0]
print(json.dumps(found))
"""


def test_session_with_delta_spark_settings_works_without_its_jar(tmp_path: Path) -> None:
    found = run_script(SCRIPT, str(tmp_path))
    assert found["reads"] == [3, 3, 3]
    assert found["named"] == [0, 2]
    assert found["second"] == 2
    assert found["catalog"] == found["catalog again"] == "pydelta.catalog.SessionTables"
    assert found["batch"] == 2
    (first, second) = [line for line in found["stderr"].splitlines() if line.startswith("LOG pydelta This session has settings")]
    assert first == second, "one warning a session"
    for named in (
        "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.delta.logStore.gs.impl=io.delta.storage.GCSLogStore",
    ):
        assert named in first
    assert "a.b.Other" not in first
    assert "S3DynamoDBLogStore" not in first, "pydelta's writes follow this setting"
