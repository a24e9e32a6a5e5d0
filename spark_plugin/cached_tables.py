"""Tables of whose names Spark holds rows in memory (CACHE TABLE, `spark.table(name).cache()`).

    read_anew(spark, "shop.sales")      # behind a commit of ours

Spark itself does so behind its own writes. What it holds of a table under a name is not found by the table's path: a change by
the path leaves it as it is.
"""

from __future__ import annotations

import logging
from typing import Any

from pyspark.errors import PySparkException

from spark_plugin.spark_internals import SparkInternals, is_connect

_log = logging.getLogger("pydelta")


def read_anew(spark: Any, name: str | None) -> None:
    """Have Spark read the table again when it is next asked for, if it holds it. name: None for a table that was named by its
    path. That this fails is logged: the table has the new rows."""
    if name is None:
        return
    try:
        if spark.catalog.isCached(name) if is_connect(spark) else SparkInternals(spark).holds_tables():
            spark.catalog.refreshTable(name)
    except PySparkException as error:
        _log.warning("%s: Spark may go on with the rows that it holds of this table: %s. REFRESH TABLE ends it.", name, error)
