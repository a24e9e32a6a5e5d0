"""Names of tables in catalogs of Unity Catalog servers: which catalogs the session has, and the URL of a name.

    install(spark)                                    # register(spark) calls it
    url_of_name(spark, ("main", "sales", "orders"))   # uc://main.sales.orders

The settings `spark.sql.catalog.<name>.uri` and `.token` are enough: `install` sets the class of such a catalog. A class that the
user has set stays, except that of Unity Catalog's connector if it is not loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_py.types.names import split_name
from delta_py.unity.server_urls import url_of
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.wrapping import spark_sql
from spark_plugin.options.settings import conf
from spark_plugin.options.unity_settings import CATALOG_PREFIX, unity_catalogs
from spark_plugin.sql_catalog.delta_names import DELTA

UNITY_CATALOG = "pydelta.catalog.UnityCatalog"
_CONNECTOR = "io.unitycatalog.spark.UCSingleCatalog"
_RESERVED = ("spark_catalog", "pydelta", DELTA)

_catalogs_by_client: dict[str, frozenset[str]] = {}
"""The names of Unity Catalog's catalogs, by the id of a Spark Connect session: it takes a while to read a setting from a
server."""


def install(spark: Any) -> None:
    """Set the class of each catalog that has a server."""
    adapter = adapter_of(spark)
    catalogs = [name for name in unity_catalogs(adapter.settings()) if name not in _RESERVED]
    for name in catalogs:
        class_name = conf(spark, f"{CATALOG_PREFIX}{name}")
        if class_name is None or (class_name == _CONNECTOR and _is_connector_missing(adapter)):
            spark.conf.set(f"{CATALOG_PREFIX}{name}", UNITY_CATALOG)
    if not adapter.is_driver:
        our_catalogs = (name for name in catalogs if conf(spark, f"{CATALOG_PREFIX}{name}") == UNITY_CATALOG)
        _catalogs_by_client[adapter.session_id] = frozenset(our_catalogs)


def _is_connector_missing(adapter: Any) -> bool:
    """Return whether the class of Unity Catalog's connector is not in the session. False over Spark Connect, where a client
    cannot find out."""
    return adapter.internals is not None and not adapter.internals.has_java_class(_CONNECTOR)


def is_unity_catalog(spark: Any, name: str) -> bool:
    """Return whether a catalog of the session is one of a Unity Catalog server."""
    adapter = adapter_of(spark)
    if not adapter.is_driver:
        return name in _catalogs_by_client.get(adapter.session_id, ())
    return conf(spark, f"{CATALOG_PREFIX}{name}") == UNITY_CATALOG


def full_unity_name(spark: Any, parts: Sequence[str]) -> tuple[str, ...] | None:
    """Return catalog, schema and table of a name, as Spark looks it up; None for a name of another catalog, and for a temporary
    view."""
    if len(parts) == 3:
        return tuple(parts) if is_unity_catalog(spark, parts[0]) else None
    if len(parts) > 2 or not _may_have_catalogs(spark):
        return None
    if len(parts) == 2 and conf(spark, f"{CATALOG_PREFIX}{parts[0]}") is not None:
        return None  # a catalog and a table without a schema name no table
    catalog = spark.catalog.currentCatalog()
    if not is_unity_catalog(spark, catalog):
        return None
    if len(parts) == 2:
        return (catalog, *parts)
    # A table has exactly one schema in Unity Catalog.
    schema = split_name(spark.catalog.currentDatabase())
    return (catalog, *schema, *parts) if len(schema) == 1 and not _is_temporary_view(spark, parts[0]) else None


def url_of_name(spark: Any, parts: Sequence[str]) -> str | None:
    """Return the path of a table in a catalog of a Unity Catalog server; None for any other name."""
    full_name = full_unity_name(spark, parts)
    return None if full_name is None else url_of(full_name)


def _may_have_catalogs(spark: Any) -> bool:
    """Return whether the session may have catalogs of Unity Catalog. False for most clients of Spark Connect: further questions
    would each cost a request to the server."""
    adapter = adapter_of(spark)
    return adapter.is_driver or bool(_catalogs_by_client.get(adapter.session_id))


def _is_temporary_view(spark: Any, name: str) -> bool:
    """Return whether the session has a temporary view of this name. SHOW VIEWS lists these for every database."""
    rows = spark_sql(spark, "SHOW VIEWS IN spark_catalog.default").collect()
    return any(row["isTemporary"] and row["viewName"].lower() == name.lower() for row in rows)
