"""Puts the catalogs (the .java files beside this one) into a session, so that SQL knows tables by their paths and names.

    install(spark)                                                  # after pruning.install, whose rule tells them of the session
    spark.sql("SELECT * FROM pydelta.`/data/sales` VERSION AS OF 3")
    spark.sql("SELECT * FROM shop.sales VERSION AS OF 3")

A catalog is a setting of the session (`spark.sql.catalog.<name>`), and one that is set already stays as it is, delta-spark's too.
Where delta-spark is absent, ``delta.`/path` `` and what is entered `USING delta` are ours; DELTA_NAMES_CONF turns that off.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from spark_plugin.options.settings import conf, is_on
from spark_plugin.options.told_settings import SETTINGS
from spark_plugin.pruning.rule import installed_rule
from spark_plugin.session_source import nonce_of
from spark_plugin.spark_internals import SparkInternals, java_exception_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_NAMES_CONF = "spark.pydelta.deltaNames.enabled"
"""Set to false before `register` to leave the name `delta` alone, where delta-spark is absent."""

_PATH_CATALOG = "pydelta.sql_catalog.PathCatalog"
_SESSION_CATALOG = "pydelta.sql_catalog.SessionTables"
_SPARKS_OWN = "builtin"
_OF_DELTA_SPARK = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

_log = logging.getLogger("pydelta")


def install(spark: SparkSession) -> bool:
    """Whether the session has the catalogs now. If not, a warning has said why; all else goes on."""
    try:
        internals, rule = SparkInternals(spark), installed_rule(spark)
        if rule is None or not internals.loads_by_name(rule):
            raise NotImplementedError("Spark does not load classes of pydelta by their names here")
        rule.tell("nonce", nonce_of(spark))
        rule.tell("settings", "\n".join(SETTINGS))
        if _set(spark, "pydelta", _PATH_CATALOG):
            problem = internals.prepare_catalogs()
            if problem is not None:
                _log.info("TIMESTAMP AS OF takes only texts for pydelta.`/path` in this session: %s", problem)
        _set(spark, "spark_catalog", _SESSION_CATALOG)
        if not internals.has_java_class(_OF_DELTA_SPARK) and is_on(spark, DELTA_NAMES_CONF):
            rule.tell("deltaNames", "true")
            _set(spark, "delta", _PATH_CATALOG)
    except Exception as error:  # whatever a locked-down or foreign Spark answers, reads and writes without SQL must go on
        _log.warning(
            "SQL does not know tables by their paths in this session: %s. Use spark.read.format('pydelta').load(path) and "
            "df.write.format('pydelta').save(path).",
            java_exception_of(error) or f"{type(error).__name__}: {error}",
        )
        return False
    return True


def _set(spark: SparkSession, name: str, class_name: str) -> bool:
    """Unless there is a catalog of this name. Whether it was set."""
    key = f"spark.sql.catalog.{name}"
    if conf(spark, key) not in (None, _SPARKS_OWN):
        return False
    spark.conf.set(key, class_name)
    return True
