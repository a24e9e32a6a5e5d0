"""How a Spark session becomes delta-spark's: the settings that name its jars (those of `make interop`)."""

from __future__ import annotations

import os
from pathlib import Path


def settings() -> dict[str, str]:
    """Nothing without PYDELTA_PEER_JARS."""
    folder = os.environ.get("PYDELTA_PEER_JARS")
    if not folder:
        return {}
    jars = sorted(str(jar) for name in ("delta-*.jar", "unitycatalog-*.jar") for jar in Path(folder).glob(name))
    return {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",  # of 50, most are empty for tables as small as those of tests
    }
