"""Whether the name `delta` is pydelta's in a session: as a format, as the provider of tables, and in delta.`/path`.

    look_for_delta_spark(spark)                  # register(spark) calls it
    delta_is_ours(spark)                         # format("delta") is pydelta's

It is pydelta's if delta-spark's classes are not loaded, unless DELTA_NAMES_CONF says otherwise. If they are loaded, `delta` is
delta-spark's.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException

from spark_plugin.data_source import FORMAT
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options.settings import conf, is_on

DELTA = "delta"

DELTA_NAMES_CONF = "spark.pydelta.deltaNames.enabled"
"""Set it to false before `register` so that pydelta does not handle the name `delta` if delta-spark is absent."""

DELTA_SPARK_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
DELTA_SPARK_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
EXTENSIONS_CONF = "spark.sql.extensions"
SESSION_CATALOG_CONF = "spark.sql.catalog.spark_catalog"

_LOADED_CONF = "spark.pydelta.deltaSpark.loaded"
"""Set in registered sessions: a clone of such a session has it too."""

NOTED_BY_CLASSES_CONF = "spark.sql.catalog.pydelta.deltaSpark"
"""The same as _LOADED_CONF, set by Uploaded.java in the server of a Spark Connect session."""

_loaded_by_client: dict[str, bool] = {}
"""The value of _LOADED_CONF by the id of a Spark Connect session: it takes a while to read a setting from a server."""


def delta_is_ours(spark: Any) -> bool:
    """Return whether the format `delta` is pydelta's. False for a session that is not registered."""
    return is_loaded(spark) is False and is_on(spark, DELTA_NAMES_CONF)


def dataframe_formats(spark: Any) -> tuple[str, ...]:
    """Return the formats of DataFrames that are pydelta's."""
    return (FORMAT, DELTA) if delta_is_ours(spark) else (FORMAT,)


def has_delta_names(spark: Any) -> bool:
    """Return whether statements about delta.`/path`, and about tables of the provider `delta`, are pydelta's."""
    return not has_delta_spark(spark) and is_on(spark, DELTA_NAMES_CONF)


def has_delta_spark(spark: Any) -> bool:
    """Return whether delta-spark handles its own tables in this session: its classes are loaded, and the session's settings name
    its extension or its catalog."""
    is_configured = DELTA_SPARK_EXTENSION in (conf(spark, EXTENSIONS_CONF) or "") or has_catalog_of_delta_spark(spark)
    return is_configured and is_loaded(spark) is not False


def has_catalog_of_delta_spark(spark: Any) -> bool:
    """Return whether the session catalog is delta-spark's by the session's settings. Its class may be missing."""
    return conf(spark, SESSION_CATALOG_CONF) == DELTA_SPARK_CATALOG


def is_loaded(spark: Any) -> bool | None:
    """Return whether delta-spark's classes are in the session. None for a session that is not registered."""
    if not adapter_of(spark).is_driver:
        return _loaded_by_client.get(spark.session_id)
    value = conf(spark, _LOADED_CONF)
    return None if value is None else value == "true"


def look_for_delta_spark(spark: Any) -> bool:
    """Find out whether delta-spark's classes are in the session, and note it there. Returns whether this call found it out. If it
    was known, nothing is done: a search for a class takes a while, and every DeltaTable registers its session."""
    if is_loaded(spark) is not None:
        return False
    if adapter_of(spark).is_driver:
        has_delta_spark_classes = SparkInternals(spark).has_java_class(DELTA_SPARK_CATALOG)
    else:
        has_delta_spark_classes = _loaded_by_client[spark.session_id] = _is_on_server(spark)
    spark.conf.set(_LOADED_CONF, str(has_delta_spark_classes).lower())
    return True


def _is_on_server(spark: Any) -> bool:
    """Return whether the server of a Spark Connect session has a format `delta` that is not pydelta's."""
    # Another client of this session may have noted it, or the classes that pydelta uploaded.
    for name in (_LOADED_CONF, NOTED_BY_CLASSES_CONF):
        value = conf(spark, name)
        if value is not None:
            return value == "true"
    # If the server has the format, it reports another error, because `/` is no table.
    try:
        spark.read.format(DELTA).load("/").schema  # noqa: B018 - reading the schema makes the server look for the format
    except PySparkException as error:
        return error.getCondition() != "DATA_SOURCE_NOT_FOUND"
    return True
