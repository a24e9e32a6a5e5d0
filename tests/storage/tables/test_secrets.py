"""An application that writes, changes, streams and fails leaves its secrets in no file: not in the event log, the checkpoint,
Spark's directories or the table's log, nor in its output.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from delta_py.object_stores.remote import RemoteStore
from tests.storage.conftest import new_url
from tests.support.servers.emulators import Emulator
from tests.support.spark.spark_script import run_script

APPLICATION = """
import json, sys
from pyspark.sql import SparkSession
from spark_plugin import DeltaTable, register

url, place, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
key, secret, endpoint = (settings[f"s3.{name}"] for name in ("access_key_id", "secret_access_key", "endpoint"))
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
for name, value in {
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"{place}/events", "spark.eventLog.compress": "false",
    "spark.local.dir": f"{place}/local", "spark.sql.warehouse.dir": f"{place}/warehouse",
    "spark.hadoop.fs.s3a.endpoint": endpoint, "spark.hadoop.fs.s3a.access.key": key,
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext._jsc.hadoopConfiguration().set("fs.s3a.secret.key", secret)
register(spark)
given = {"s3.secret_access_key": secret}
rows = spark.range(2000).selectExpr("id", "id % 3 AS part")
rows.write.format("pydelta").options(**given).partitionBy("part").save(url)
table = DeltaTable.forPath(spark, url)
table.delete("id < 10")
table.update("id = 10", {"part": "id"})
source = spark.createDataFrame([(11, 2), (9000, 1)], "id bigint, part bigint")
table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
frame = spark.read.format("pydelta").options(**given).load(url).filter("part = 1")
frame.explain(True)
print(frame.collect()[:1], frame.schema.json())
stream = spark.readStream.format("pydelta").options(**given).load(url)
sink = stream.writeStream.format("pydelta").options(**given).option("checkpointLocation", f"{place}/checkpoint")
sink.trigger(availableNow=True).start(url + "_copy").awaitTermination()
failures = []
for options in ({"versionAsOf": 99}, {"s3.access_key_id": "nobody", "storage.retry_timeout": "1"}):
    try:
        spark.read.format("pydelta").options(**given, **options).load(url).collect()
    except Exception as error:
        failures.append(str(error))
        print(repr(error), file=sys.stderr)
count = spark.read.format("pydelta").load(url + "_copy").count()
spark.stop()
print(json.dumps({"count": count, "failures": failures}))
"""


def test_secrets_are_in_no_file_that_an_application_leaves(emulators: Callable[[str], Emulator], tmp_path: Path) -> None:
    emulator = emulators("s3")
    settings, url = emulator.settings(), new_url(emulator)
    (tmp_path / "events").mkdir()
    result = run_script(APPLICATION, url, str(tmp_path), json.dumps(settings))
    assert result["count"] == 1991 and len(result["failures"]) == 2
    secret = settings["s3.secret_access_key"]
    assert secret not in json.dumps(result)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("checkpoint" in str(path) for path in files) and any(path.stat().st_size > 10_000 for path in files)
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
    store = RemoteStore(url, emulator.options())
    logged = [info.path for info in store.list_recursive("_delta_log")]
    assert len(logged) > 4 and all(secret.encode() not in store.read(path) for path in logged)
