"""Tables whose rows Spark caches in memory by name (CACHE TABLE, `spark.table(name).cache()`).

    refresh_cached(spark, "shop.sales", "/data/sales")       # after a commit of pydelta
    refresh_all_cached(spark)                                # after a transaction

Spark refreshes its cache after its own writes, for the name that was written to. But a table may be cached by several names, such
as its name in the catalog and pydelta.`/path`. If the session has our catalogs, Spark lists the names that it caches. Over Spark
Connect only the given name is refreshed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

from pyspark.errors import PySparkException

from delta_py.storage.addresses import has_scheme
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options.read_options import local_path

_log = logging.getLogger("pydelta")


def refresh_cached(spark: Any, name: str | None, path: str | None = None) -> None:
    """Make Spark read a cached table again at its next use. name: the name that the caller used, or None if there is none. path:
    where the table is, to refresh all its other names; None refreshes only `name`. A failure is logged: the table has the new
    rows."""
    caller_names = () if name is None else (name,)
    internals = adapter_of(spark).internals
    if internals is None:
        _refresh(spark, (cached_name for cached_name in caller_names if _is_cached(spark, cached_name)))
    elif internals.has_cached_tables():
        normalized_path = None if path is None else _normalized_path(path)
        cached_tables = () if normalized_path is None else _cached_tables(internals)
        other_names = (name for name, cached_path in cached_tables if _normalized_path(cached_path) == normalized_path)
        _refresh(spark, dict.fromkeys((*other_names, *caller_names)))


def refresh_all_cached(spark: Any) -> None:
    """Refresh all tables under the names that Spark caches; not over Spark Connect."""
    internals = adapter_of(spark).internals
    if internals is not None and internals.has_cached_tables():
        _refresh(spark, dict.fromkeys(name for name, _ in _cached_tables(internals)))


def _cached_tables(internals: SparkInternals) -> list[tuple[str, str]]:
    """Return the names under which Spark caches Delta tables, each with the table's path; none if Spark does not list them."""
    try:
        return internals.cached_delta_tables()
    except NotImplementedError as error:
        _log.warning("Spark may go on with the rows that it holds of a table by its other names: %s", error)
        return []


def _normalized_path(path: str) -> str:
    """Return the same text for all spellings of a table's path."""
    local_or_url = local_path(path)
    return local_or_url.rstrip("/") if has_scheme(local_or_url) else os.path.abspath(local_or_url)


def _is_cached(spark: Any, name: str) -> bool:
    """Return whether Spark caches the table of this name. An error is logged, and then the result is False."""
    try:
        return bool(spark.catalog.isCached(name))
    except PySparkException as error:
        _warn(name, error)
        return False


def _refresh(spark: Any, names: Iterable[str]) -> None:
    """Make Spark read the tables of these names again. A failure is logged, and the other names are still refreshed."""
    for name in names:
        try:
            spark.catalog.refreshTable(name)
        except PySparkException as error:
            _warn(name, error)


def _warn(name: str, error: Exception) -> None:
    _log.warning("%s: Spark may go on with the rows that it holds of this table: %s. REFRESH TABLE ends it.", name, error)
