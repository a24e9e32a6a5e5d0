"""The settings that make a Spark session use delta-spark: they name its jars (those of `make interop`)."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

from spark_plugin.java.build import find_javac, jars_of_pyspark

PEER = Path(__file__).parent / "java"


def settings(*more_jars: str) -> dict[str, str]:
    """Empty without PYDELTA_PEER_JARS."""
    folder = os.environ.get("PYDELTA_PEER_JARS")
    if not folder:
        return {}
    jars = sorted(str(jar) for name in ("delta-*.jar", "unitycatalog-*.jar") for jar in Path(folder).glob(name))
    return {
        "spark.jars": ",".join([*jars, *more_jars]),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",  # with 50, most are empty for tables as small as those of tests
    }


def make_linking_log_store(folder: Path) -> Path:
    """The jar of the log store with which delta-spark can share local tables with other processes."""
    return _jar_of("LinkingLogStore", folder / "linking-log-store.jar")


def make_unity_catalog(folder: Path) -> Path:
    """The jar of the catalog with which delta-spark is a client of Unity Catalog."""
    return _jar_of("UCSingleCatalog", folder / "unity-catalog.jar")


def unity_catalog_settings(jar: str, catalog: str, uri: str, token: str) -> dict[str, str]:
    return {
        **settings(jar),
        f"spark.sql.catalog.{catalog}": "io.unitycatalog.spark.UCSingleCatalog",
        f"spark.sql.catalog.{catalog}.uri": uri,
        f"spark.sql.catalog.{catalog}.token": token,
        f"spark.sql.catalog.{catalog}.deltaRestApi.enabled": "true",
    }


def _jar_of(name: str, jar: Path) -> Path:
    source, javac = PEER / f"{name}.java", find_javac()
    classpath = os.pathsep.join(f"{jars}/*" for jars in (os.environ["PYDELTA_PEER_JARS"], jars_of_pyspark()))
    classes = jar.parent / "classes" / name
    subprocess.run([javac, "--release", "17", "-proc:none", "-cp", classpath, "-d", str(classes), str(source)], check=True)
    with zipfile.ZipFile(jar, "w") as packed:
        for file in classes.rglob("*.class"):
            packed.write(file, file.relative_to(classes))
    return jar


def linking_log_store_settings(jar: str) -> dict[str, str]:
    return {**settings(jar), "spark.delta.logStore.file.impl": "pydelta.peer.LinkingLogStore"}
