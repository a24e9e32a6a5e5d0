"""Settings of delta-spark in a session that does not have its jar: pydelta warns of them, and replaces the session catalog.

    drop_settings_of_delta_spark(spark)          # register(spark) calls it once a session
    replace_catalog_of_delta_spark(spark)        # and this each time

Spark cannot load delta-spark's catalog without the jar, so each statement about a table would fail with CANNOT_LOAD_CATALOG. The
other settings have no effect.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options.settings import conf
from spark_plugin.sql_catalog.delta_names import (
    DELTA_SPARK_CATALOG,
    DELTA_SPARK_EXTENSION,
    EXTENSIONS_CONF,
    SESSION_CATALOG_CONF,
    has_catalog_of_delta_spark,
    is_loaded,
)

_CATALOGS = "spark.sql.catalog."
_LOG_STORES = "spark.delta.logStore."
_LOG_STORE_OF_PYDELTA_TOO = "S3DynamoDBLogStore"  # options/storage.py reads it
_BUILT_IN = "builtin"

_log = logging.getLogger("pydelta")


def drop_settings_of_delta_spark(spark: Any) -> None:
    """Warn of settings without an effect, and let Spark use its own session catalog if it would look for delta-spark's. Does
    nothing if delta-spark is loaded."""
    if is_loaded(spark):
        return
    settings = settings_without_jar(_settings(spark))
    if not settings:
        return
    was_replaced = replace_catalog_of_delta_spark(spark)
    _log.warning(
        "This session has settings of delta-spark, but not its jar: %s. Remove them where the session is made.%s",
        ", ".join(f"{name}={value}" for name, value in settings.items()),
        " Until then pydelta's catalog replaces delta-spark's in it." if was_replaced else "",
    )


def replace_catalog_of_delta_spark(spark: Any) -> bool:
    """Let Spark use its own session catalog if it would look for delta-spark's, which is not loaded. Returns whether the catalog
    was replaced. Each `register` does this again: a second `getOrCreate` of the same builder sets delta-spark's catalog again,
    and clones of the session, which batches of streams have, would load it."""
    if is_loaded(spark) or not has_catalog_of_delta_spark(spark):
        return False
    spark.conf.set(SESSION_CATALOG_CONF, _BUILT_IN)
    return True


def settings_without_jar(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that have no effect without delta-spark's jar, with the part of their values that is delta-spark's.
    The log store that decides commits in DynamoDB is not one of them: pydelta's writes follow that setting."""
    without_effect: dict[str, str] = {}
    for name, value in sorted(settings.items()):
        if name.startswith(_CATALOGS) and value == DELTA_SPARK_CATALOG:
            without_effect[name] = value
        elif name == EXTENSIONS_CONF and DELTA_SPARK_EXTENSION in (part.strip() for part in value.split(",")):
            without_effect[name] = DELTA_SPARK_EXTENSION
        elif name.startswith(_LOG_STORES) and not value.endswith(_LOG_STORE_OF_PYDELTA_TOO):
            without_effect[name] = value
    return without_effect


def _settings(spark: Any) -> Mapping[str, str]:
    """Return the session's settings; over Spark Connect only two of them."""
    if adapter_of(spark).is_driver:
        return SparkInternals(spark).settings()
    names = (SESSION_CATALOG_CONF, EXTENSIONS_CONF)  # a server may refuse to list all settings
    return {name: value for name in names if (value := conf(spark, name)) is not None}
