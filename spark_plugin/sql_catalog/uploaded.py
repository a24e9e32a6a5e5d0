"""The rule and the catalogs for a session of Spark Connect: its client sends their classes to the server.

    install(spark)                                                  # once a session; register(spark) calls it
    spark.sql("SELECT * FROM pydelta.`/data/sales` VERSION AS OF 3")

The classes are compiled for the server's version of Spark (`compiled_java.release_archive`) and go there as an artifact of the
session, which public API allows. Beside them lies a file with what the catalogs are told; `Uploaded.java` reads it when Spark
makes the catalog `pydelta`, for which a statement asks at once: then the session has the optimizer rule too.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from spark_plugin.compiled_java import DRIVER_PACKAGES, archive_of, release_archive
from spark_plugin.data_source import FORMAT
from spark_plugin.options.settings import conf, is_on
from spark_plugin.options.told_settings import SETTINGS
from spark_plugin.pruning.rule import metadata_schema, warn_once
from spark_plugin.session_source import nonce_of
from spark_plugin.sql_catalog.install import DELTA_NAMES_CONF, PATH_CATALOG, TABLES_CATALOG, catalog_conf, set_catalog
from spark_plugin.sql_catalog.procedures import procedures_json
from spark_plugin.wrapping import spark_sql

ENABLED = "spark.pydelta.connectClasses.enabled"
"""Set to false before `register` to send nothing to the server."""

_KEY_CONF = f"{catalog_conf('pydelta')}.uploaded"
_OTHER_DELTA_CONF = f"{catalog_conf('pydelta')}.deltaSpark"

_done: set[str] = set()  # ids of sessions: each call asks the server


def install(spark: Any) -> bool:
    """Whether the session has the rule and the catalogs now. If not, a warning has said why, once; all else goes on."""
    if spark.session_id in _done:
        return True
    try:
        _install(spark)
    except Exception as error:  # whatever a server forbids, reads and writes without it must go on
        warn_once(spark, str(error).strip().partition("\n")[0])
        return False
    _done.add(spark.session_id)
    return True


def _install(spark: Any) -> None:
    if conf(spark, catalog_conf("pydelta")) is not None:  # of another client of this session, or somebody else's
        return
    if not is_on(spark, ENABLED):
        raise NotImplementedError(f"{ENABLED} is false")
    classes = release_archive(DRIVER_PACKAGES, spark.version)
    if classes is None:
        raise NotImplementedError(
            f"this pydelta has no classes for the server's Spark {spark.version}. The wheel brings those of the versions that it "
            "is made for, and a classic session leaves those of its version in the cache directory"
        )
    _send(spark, classes)
    try:
        set_catalog(spark, "pydelta", PATH_CATALOG)
        spark_sql(spark, "SHOW TABLES IN pydelta").collect()
    except Exception:
        spark.conf.unset(catalog_conf("pydelta"))
        raise
    set_catalog(spark, "spark_catalog", TABLES_CATALOG)
    if _has_delta_names(spark) and conf(spark, _OTHER_DELTA_CONF) == "false":
        set_catalog(spark, "delta", PATH_CATALOG)


def _send(spark: Any, classes: bytes) -> None:
    nonce = nonce_of(spark)
    key = hashlib.sha256(f"key {nonce}".encode()).hexdigest()  # sessions may share a loader of classes
    said = {
        "formats": [FORMAT],
        "metadata": metadata_schema(),
        "told": {
            "nonce": nonce,
            "settings": "\n".join(SETTINGS),
            "procedures": procedures_json(),
            "deltaNames": "true" if _has_delta_names(spark) else "false",
        },
    }
    with zipfile.ZipFile(io.BytesIO(classes)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    jar = archive_of({**files, f"pydelta/{key}.json": json.dumps(said).encode()})
    with tempfile.TemporaryDirectory(prefix="pydelta-") as directory:
        path = Path(directory) / f"pydelta-{key}.jar"
        path.write_bytes(jar)
        spark.addArtifacts(str(path))
    spark.conf.set(_KEY_CONF, key)


def _has_delta_names(spark: Any) -> bool:
    return is_on(spark, DELTA_NAMES_CONF)
