"""Installs the catalogs (the .java files next to this one) into a session, so that SQL knows tables by their paths and names.

    install(spark)                                                  # after pruning.install, whose rule gives them the session
    spark.sql("SELECT * FROM pydelta.`/data/sales` VERSION AS OF 3")
    spark.sql("SELECT * FROM shop.sales VERSION AS OF 3")

A catalog is a setting of the session (`spark.sql.catalog.<name>`). A catalog that is already set is not changed, also not
delta-spark's. Without delta-spark, pydelta handles ``delta.`/path` `` and tables entered `USING delta` (delta_names.py).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from spark_plugin.internals.pyspark_internals import reason_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options.catalog_session_settings import SETTINGS
from spark_plugin.options.settings import conf
from spark_plugin.pruning.rule import installed_rule
from spark_plugin.session_source import nonce_of
from spark_plugin.sql_catalog import unity_names
from spark_plugin.sql_catalog.delta_names import DELTA, DELTA_SPARK_CATALOG, delta_is_ours
from spark_plugin.sql_catalog.procedures import procedures_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATH_CATALOG = "pydelta.catalog.PathCatalog"
TABLES_CATALOG = "pydelta.catalog.SessionTables"
_BUILT_IN = "builtin"  # Spark's own session catalog

_log = logging.getLogger("pydelta")


def install(spark: SparkSession) -> bool:
    """Install the catalogs. Returns whether the session has them now. If not, a warning has said why, and everything else
    continues."""
    try:
        internals, rule = SparkInternals(spark), installed_rule(spark)
        is_installed = conf(spark, catalog_conf("pydelta")) == PATH_CATALOG
        if rule is None or not (is_installed or internals.loads_by_name(rule)):
            raise NotImplementedError("Spark does not load classes of pydelta by their names here")
        internals.require_links("catalog", "tables", "statements")
        rule.tell("nonce", nonce_of(spark))
        rule.tell("settings", "\n".join(SETTINGS))
        rule.tell("procedures", procedures_json())
        # A clone of a session has its settings but not its analyzer: this matters if another catalog has the names.
        is_new = set_catalog(spark, "pydelta", PATH_CATALOG)
        if is_new or conf(spark, catalog_conf("spark_catalog")) == DELTA_SPARK_CATALOG:
            problem = internals.prepare_catalogs()
            if problem is not None:
                _log.info("TIMESTAMP AS OF takes only texts for pydelta.`/path` in this session: %s", problem)
            internals.enter_functions()
        set_catalog(spark, "spark_catalog", TABLES_CATALOG)
        if delta_is_ours(spark):
            rule.tell("deltaNames", "true")
            set_catalog(spark, DELTA, PATH_CATALOG)
        unity_names.install(spark)
    except Exception as error:  # whatever a locked-down or unknown Spark raises, reads and writes without SQL must continue
        _log.warning(
            "SQL does not know tables by their paths in this session: %s. Use spark.read.format('pydelta').load(path) and "
            "df.write.format('pydelta').save(path).",
            reason_of(error),
        )
        return False
    return True


def set_catalog(spark: SparkSession, name: str, class_name: str) -> bool:
    """Set the catalog, unless there is one of this name. Returns whether it was set."""
    if conf(spark, catalog_conf(name)) not in (None, _BUILT_IN):
        return False
    spark.conf.set(catalog_conf(name), class_name)
    return True


def catalog_conf(name: str) -> str:
    """Return the setting that names the class of the catalog."""
    return f"spark.sql.catalog.{name}"
