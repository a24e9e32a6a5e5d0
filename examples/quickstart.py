# %% [markdown]
# # pydelta in ten cells
#
# Open this file as a notebook (VS Code, or `jupytext --to notebook`), or run it as a script:
# `.venv/bin/python examples/quickstart.py`. The data, four years of Seattle's weather, comes with the package
# `vega_datasets`.

# %%
import tempfile

from pyspark.sql import SparkSession
from vega_datasets import data

import delta_py
from spark_plugin import DeltaTable, register

spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
register(spark)
path = tempfile.mkdtemp(prefix="pydelta-quickstart-") + "/weather"

# %% [markdown]
# ## Write a table in two commits
# The first `save` makes the table. `partitionBy` puts each year's files into a directory of their own.

# %%
days = spark.createDataFrame(data.seattle_weather()).selectExpr(
    "cast(date AS date) AS date", "temp_min", "temp_max", "weather", "year(date) AS year"
)
days.filter("year < 2015").write.format("pydelta").mode("append").partitionBy("year").save(path)
days.filter("year = 2015").write.format("pydelta").mode("append").save(path)

# %% [markdown]
# ## Read it
# Only the columns and the files that the query needs are read; `explain` says how many.

# %%
table = spark.read.format("pydelta").load(path)
hot = table.filter("year = 2014 AND temp_max > 32").select("date", "temp_max")
hot.show()
hot.explain()

# %% [markdown]
# ## Travel in time
# By version, or by a timestamp in the session's time zone.

# %%
first = spark.read.format("pydelta").option("versionAsOf", 0).load(path)
print(f"version 0 has {first.count():,} rows, the newest version {table.count():,}")
DeltaTable.forPath(spark, path).history().select("version", "timestamp", "operation").show(truncate=False)

# %% [markdown]
# ## The same table without Spark
# Arrow comes out, and whatever takes Arrow can take the table itself.

# %%
weather = delta_py.DeltaTable(path)
print(weather.to_arrow(columns=["date", "weather"], filter="weather = 'snow' AND year = 2012").to_pandas())
