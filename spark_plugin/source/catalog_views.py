"""Names in Unity Catalog for Spark's catalogs: java/tables/Source.java gets them in the metadata of a schema, without a job.

names_schema({"path": "uc://main.sales", CATALOG_VIEW: "names"})      # one field, whose metadata has the tables' names
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from pyspark.sql.types import StringType, StructField, StructType

from delta_py.errors import InvalidOptionError
from delta_py.storage.store_options import StorageOptions
from spark_plugin.options.common import CATALOG_VIEW, single_path, storage_of_session
from spark_plugin.options.storage import storage_options, without_storage
from spark_plugin.source import catalog_objects

_NAMES_KEY = "pydelta.names"


def names_schema(options: Mapping[str, str]) -> StructType:
    """Return a schema with one field, whose metadata has the requested names as a list in JSON. Raises InvalidOptionError for an
    unknown view, and the errors of catalog_objects."""
    read_options = without_storage(options)
    view = _VIEWS.get(options[CATALOG_VIEW])
    if view is None:
        raise InvalidOptionError(f"{CATALOG_VIEW} is {options[CATALOG_VIEW]!r}. It can be {', '.join(_VIEWS)}.")
    names = view(single_path(read_options), storage_options(options, storage_of_session(read_options)))
    return StructType([StructField("names", StringType(), True, {_NAMES_KEY: json.dumps(names)})])


def _schema_if_exists(url: str, options: StorageOptions) -> list[str]:
    return [url] if catalog_objects.has_schema(url, options) else []


def _table_if_exists(url: str, options: StorageOptions) -> list[str]:
    return [url] if catalog_objects.has_table(url, options) else []


def _children(url: str, options: StorageOptions) -> list[str]:
    return list(catalog_objects.names_in(url, options))


_VIEWS: Mapping[str, Callable[[str, StorageOptions], list[str]]] = {
    "names": _children,
    "schema": _schema_if_exists,
    "table": _table_if_exists,
}
"""The views that CATALOG_VIEW can request, each with the function that returns its names. names: of the schemas of a catalog, or
of the tables of a schema. schema, table: a list with the URL if the schema or table exists, otherwise an empty list."""
