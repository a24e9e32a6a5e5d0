"""Two Spark applications change rows of the same files at the same time: both changes are in the table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable, write_delta
from delta_py.log.history import history
from delta_py.storage.local import LocalStore
from tests.support.spark.spark_script import run_script

STEPS, ROWS = 3, 60

SCRIPT = """
import json, os, sys, time
from pyspark.sql import SparkSession
from spark_plugin import DeltaTable, register

path, me, steps, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
register(spark)
table = DeltaTable.forPath(spark, path)
open(f"{path}-ready-{me}", "w").close()
while not os.path.exists(f"{path}-ready-{1 - me}"):
    time.sleep(0.05)
for step in range(steps):
    table.delete(f"id = {step * rows // steps + me}")
    table.update(f"id % 2 = {me}", {"n": "n + 1"}, retries=30)
spark.stop()
print(json.dumps({"done": True}))
"""


def test_two_applications_change_rows_of_same_files_without_loss(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    data = pa.table({"id": range(ROWS), "n": [0] * ROWS})
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    write_delta(path, data, configuration=properties, max_records_per_file=ROWS // 2)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda me: run_script(SCRIPT, path, str(me), str(STEPS), str(ROWS)), range(2)))
    assert [each["done"] for each in results] == [True, True]
    rows_by_id = {row["id"]: row["n"] for row in DeltaTable(path).to_arrow().to_pylist()}
    deleted_ids = {step * (ROWS // STEPS) + me for step in range(STEPS) for me in range(2)}
    assert rows_by_id == {id: STEPS for id in range(ROWS) if id not in deleted_ids}
    operations = history(LocalStore(path))["operation"].to_pylist()
    assert (operations.count("DELETE"), operations.count("UPDATE")) == (2 * STEPS, 2 * STEPS)
    feed = DeltaTable(path).changes(starting_version=1).read_all().to_pylist()
    deleted = sorted(row["id"] for row in feed if row["_change_type"] == "delete")
    assert deleted == sorted(deleted_ids)
    changes = [row for row in feed if row["_change_type"] == "update_postimage"]
    assert sum(row["n"] for row in changes if row["n"] == STEPS) == STEPS * (ROWS - len(deleted_ids))
