# %% [markdown]
# # pydelta in an object store
#
# Run this from the project's directory, as cells or as a script: `.venv/bin/python examples/object_store.py`. It starts a server
# that speaks S3's protocol on this machine (`make emulators` installs it). Another one is given by endpoint, bucket and keys:
# `AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... .venv/bin/python examples/object_store.py http://127.0.0.1:9000 bucket`.

# %%
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import uuid

import deltalake
from pyspark.sql import SparkSession
from vega_datasets import data

import delta_py
from spark_plugin import DeltaTable, register

server = contextlib.ExitStack()
if len(sys.argv) == 3:
    keys = {"s3.access_key_id": os.environ["AWS_ACCESS_KEY_ID"], "s3.secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
    store, bucket = {"s3.endpoint": sys.argv[1], **keys}, sys.argv[2]
else:
    sys.path.insert(0, os.getcwd())
    from tests.support.servers.emulator_programs import ToolError
    from tests.support.servers.emulators import KINDS, running

    try:
        emulator = server.enter_context(running(KINDS["s3"]))
    except ToolError as error:
        raise SystemExit(f"{error}\nOr give the endpoint and the bucket of another server.") from error
    store, bucket = emulator.settings(), "tour"
    emulator.make_container(bucket)

url = f"s3://{bucket}/{uuid.uuid4().hex}/weather"

# %% [markdown]
# ## Make a table
# A session is told once where the store is and who asks. From then on a URL is as good as a path.

# %%
spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
register(spark)
for name, value in store.items():
    spark.conf.set(f"spark.pydelta.{name}", value)

days = spark.createDataFrame(data.seattle_weather()).selectExpr("cast(date AS date) AS date", "temp_max", "weather")
days = days.selectExpr("*", "year(date) AS year")
days.filter("year < 2014").write.format("pydelta").partitionBy("year").save(url)

# %% [markdown]
# ## Append from two processes at once
# Neither has Spark. Each adds a year in four commits. The store decides who gets a version; the other one takes the next.

# %%
APPEND = """
import json, os, sys
import delta_py
from vega_datasets import data

days = data.seattle_weather().assign(year=lambda days: days.date.dt.year.astype("int32"))
days = days[days.year == int(sys.argv[2])].assign(date=lambda days: days.date.dt.date)[["date", "temp_max", "weather", "year"]]
for _, quarter in days.groupby(days.date.map(lambda date: (date.month - 1) // 3)):
    delta_py.write_delta(sys.argv[1], quarter, mode="append", storage_options=json.loads(os.environ["STORE"]))
"""
environment = {**os.environ, "STORE": json.dumps(store)}
writers = [subprocess.Popen([sys.executable, "-c", APPEND, url, year], env=environment) for year in ("2014", "2015")]
assert [writer.wait() for writer in writers] == [0, 0]
DeltaTable.forPath(spark, url).history().select("version", "operation", "operationMetrics.numOutputRows").show(truncate=False)

# %% [markdown]
# ## Read what a query needs
# Files that cannot hold such rows are not asked for, and of the others only the columns. `explain` says how many there are.

# %%
july = "date >= date'2014-07-01' AND date < date'2014-08-01'"
hot = spark.read.format("pydelta").load(url).filter(f"{july} AND temp_max > 31").select("date", "temp_max")
hot.show()
hot.explain()

# %% [markdown]
# ## Travel in time, and delete

# %%
DeltaTable.forPath(spark, url).delete("weather = 'fog'")
first = spark.read.format("pydelta").option("versionAsOf", 0).load(url)
newest = spark.read.format("pydelta").load(url)
for name, version in (("version 0", first), ("the newest version", newest)):
    print(f"{name} has {version.count():,} rows, {version.filter(version.weather == 'fog').count()} of them fog")

# %% [markdown]
# ## Stream it into another table
# The stream notes how far it has come in a directory of its own, which is Spark's: here it is on this machine.

# %%
stream = spark.readStream.format("pydelta").load(url).filter("weather = 'snow'").writeStream.format("pydelta")
with tempfile.TemporaryDirectory(prefix="pydelta-object-store-") as progress:
    query = stream.option("checkpointLocation", progress).trigger(availableNow=True).start(f"{url}-snow")
    query.awaitTermination()
print(f"{spark.read.format('pydelta').load(f'{url}-snow').count()} days of snow")

# %% [markdown]
# ## Others read the same table
# pydelta without Spark, and deltalake, which has its own names for what the store must know.

# %%
names = {"s3.endpoint": "aws_endpoint_url", "s3.region": "aws_region"}
options = {names.get(name, name.replace("s3.", "aws_")): value for name, value in store.items()} | {"aws_allow_http": "true"}
ours, theirs = delta_py.DeltaTable(url, storage_options=store), deltalake.DeltaTable(url, storage_options=options)
print(f"pydelta: version {ours.version}, {ours.to_arrow().num_rows:,} rows")
print(f"deltalake: version {theirs.version()}, {theirs.to_pyarrow_table().num_rows:,} rows")
server.close()
