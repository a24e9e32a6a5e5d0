"""Compiles the classes that a wheel brings along for clients of Spark Connect, with the Spark that this Python has.

    python -m spark_plugin.sql_catalog.build_classes DIRECTORY      # make dist, once for each version of Spark
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spark_plugin.compiled_java import DRIVER_PACKAGES, class_archive, release_name
from spark_plugin.spark_internals import SparkInternals


def build(directory: Path) -> Path:
    """Write the jar into the directory, in the place of others for the same version of Spark."""
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        internals = SparkInternals(spark)
        internals.require_known_version()
        archive = class_archive(DRIVER_PACKAGES, internals.java_platform, internals.compile_java)
        jar = directory / release_name(DRIVER_PACKAGES, spark.version)
    finally:
        spark.stop()
    directory.mkdir(exist_ok=True)
    for old in directory.glob(f"spark-{spark.version}-*.jar"):
        old.unlink()
    jar.write_bytes(archive)
    return jar


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
