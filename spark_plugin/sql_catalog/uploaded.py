"""The rule, the readers and the catalogs for a session of Spark Connect: its client sends the package's jar to the server.

    install(spark)                                                  # once a session; register(spark) calls it
    spark.sql("SELECT * FROM pydelta.`/data/sales` VERSION AS OF 3")

The jar for the server's minor version of Spark (`java/jars.py`) is sent as an artifact of the session, which public API
allows. The session's executors get it too. A file next to the classes contains the settings of the catalogs. `Uploaded.java`
reads it when Spark makes the catalog `pydelta`; a statement requests the catalog at once, and then the session has the optimizer
rule too.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from spark_plugin.data_source import FORMAT
from spark_plugin.internals.wrapping import spark_sql
from spark_plugin.java.jars import Jar, jar_for
from spark_plugin.options import read_limits
from spark_plugin.options.catalog_session_settings import SETTINGS
from spark_plugin.options.roads import CONNECT, DISABLE_CONF, OLDER_SETTINGS
from spark_plugin.options.settings import conf, is_enabled, is_on
from spark_plugin.pruning.rule import metadata_schema, warn_once
from spark_plugin.session_source import nonce_of
from spark_plugin.sql_catalog import unity_names
from spark_plugin.sql_catalog.delta_names import DELTA, DELTA_NAMES_CONF, NOTED_BY_CLASSES_CONF
from spark_plugin.sql_catalog.install import PATH_CATALOG, TABLES_CATALOG, catalog_conf, set_catalog
from spark_plugin.sql_catalog.procedures import procedures_json

_KEY_CONF = f"{catalog_conf('pydelta')}.uploaded"
_PROBLEMS_CONF = f"{catalog_conf('pydelta')}.linkProblems"

_installed_sessions: set[str] = set()  # by session id: each check would be a call to the server


def install(spark: Any) -> bool:
    """Send the jar, and install the rule and the catalogs, unless that is done. Returns whether the session has them now. If not,
    one warning has said why; everything else continues."""
    if spark.session_id in _installed_sessions:
        return True
    try:
        _install(spark)
    except Exception as error:  # whatever a server forbids, reads and writes without it must continue
        warn_once(spark, str(error).strip().partition("\n")[0])
        return False
    _installed_sessions.add(spark.session_id)
    return True


def _install(spark: Any) -> None:
    """Upload the classes and enter them as catalogs. The first statement shows whether the server loads them."""
    if conf(spark, catalog_conf("pydelta")) is not None:  # set by another client of this session, or by another user
        unity_names.install(spark)
        return
    if not is_enabled(spark, CONNECT):
        raise NotImplementedError(f"the session disables {CONNECT}, by {DISABLE_CONF} or {OLDER_SETTINGS[CONNECT]}")
    _send(spark, jar_for(spark.version))
    try:
        set_catalog(spark, "pydelta", PATH_CATALOG)
        spark_sql(spark, "SHOW TABLES IN pydelta").collect()
    except Exception:
        spark.conf.unset(catalog_conf("pydelta"))  # the session has no such catalog if its class cannot be loaded
        raise
    set_catalog(spark, "spark_catalog", TABLES_CATALOG)
    # The uploaded classes have noted whether the server has delta-spark, which then handles the name `delta`.
    if _has_delta_names(spark) and conf(spark, NOTED_BY_CLASSES_CONF) == "false":
        set_catalog(spark, DELTA, PATH_CATALOG)
    unity_names.install(spark)


def link_problems(spark: Any) -> dict[str, list[str]]:
    """Return what does not fit the server's version of Spark, by package of the Java code, as Uploaded.java has noted it."""
    problems: dict[str, list[str]] = json.loads(conf(spark, _PROBLEMS_CONF) or "{}")
    return problems


def _send(spark: Any, jar: Jar) -> None:
    """Send the server a copy of the jar with one more file: the settings for Uploaded.java, under a name that only this session
    knows."""
    nonce = nonce_of(spark)
    key = hashlib.sha256(f"key {nonce}".encode()).hexdigest()  # sessions may share a loader of classes
    settings = {
        "checkLinks": jar.is_for_older_spark,
        "formats": [FORMAT, DELTA],
        "metadata": metadata_schema(),
        "limits": read_limits.for_the_rule(),
        "told": {
            "nonce": nonce,
            "settings": "\n".join(SETTINGS),
            "procedures": procedures_json(),
            "deltaNames": "true" if _has_delta_names(spark) else "false",
        },
    }
    with tempfile.TemporaryDirectory(prefix="pydelta-") as directory:
        copy = Path(directory) / f"pydelta-{key}.jar"
        copy.write_bytes(jar.path.read_bytes())
        with zipfile.ZipFile(copy, "a") as archive:
            archive.writestr(f"pydelta/{key}.json", json.dumps(settings))
        spark.addArtifacts(str(copy))
    spark.conf.set(_KEY_CONF, key)


def _has_delta_names(spark: Any) -> bool:
    """Return whether the session's settings allow pydelta to handle the name `delta`."""
    return is_on(spark, DELTA_NAMES_CONF)
