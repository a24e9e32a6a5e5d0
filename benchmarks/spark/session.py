"""The session and the clock of the programs that measure in Spark."""

from __future__ import annotations

import glob
import os
import sys
import time
from collections.abc import Callable, Collection

from pyspark.sql import SparkSession


def session(formats: Collection[str]) -> SparkSession:
    """A session with as many task threads as the machine has cores. formats: those that it has to know; the jars of delta-spark
    (`delta`) are in the directory PYDELTA_PEER_JARS. PYDELTA_BENCH_SETTINGS=tuned: with few partitions for shuffles (instead of
    200) and for the state of delta-spark's tables (instead of 50), which suits few cores."""
    builder = (
        SparkSession.builder.master(f"local[{os.cpu_count()}]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.pyspark.python", sys.executable)
    )
    if os.environ.get("PYDELTA_BENCH_SETTINGS") == "tuned":
        builder = builder.config("spark.sql.shuffle.partitions", "4")
        builder = builder.config("spark.databricks.delta.snapshotPartitions", str(os.cpu_count()))
    if "delta" in formats:
        directory = os.environ["PYDELTA_PEER_JARS"]
        jars = sorted(jar for kind in ("delta-*", "unitycatalog-*") for jar in glob.glob(f"{directory}/{kind}.jar"))
        builder = (
            builder.config("spark.jars", ",".join(jars))
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        )
    spark = builder.getOrCreate()
    if "pydelta" in formats:
        from spark_plugin import register

        register(spark)
    return spark


def timed(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
