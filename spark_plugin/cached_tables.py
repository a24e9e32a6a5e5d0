"""Tables of whose names Spark holds rows in memory (CACHE TABLE, `spark.table(name).cache()`).

    read_anew(spark, "shop.sales", "/data/sales")       # behind a commit of ours
    read_all_anew(spark)                                # behind a transaction

Spark itself does so behind its own writes, for the name that was written to. A table has several names, its paths among them:
which ones Spark holds is asked where the session has our catalogs. Over Spark Connect the name that was named is read anew.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

from pyspark.errors import PySparkException

from delta_py.storage.addresses import has_scheme
from spark_plugin.internals.spark_internals import SparkInternals, is_connect
from spark_plugin.options.read_options import local_path

_log = logging.getLogger("pydelta")


def read_anew(spark: Any, name: str | None, path: str | None = None) -> None:
    """Have Spark read a table again when it is next asked for, if it holds it. name: by which it was named, None for none. path:
    where it is, for all its other names; None for that name alone. That this fails is logged: the table has the new rows."""
    named = () if name is None else (name,)
    if is_connect(spark):
        _refresh(spark, (one for one in named if _is_cached(spark, one)))
    elif SparkInternals(spark).holds_tables():
        place = None if path is None else _place(path)
        held = () if place is None else (other for other, there in _held(spark) if _place(there) == place)
        _refresh(spark, dict.fromkeys((*held, *named)))


def read_all_anew(spark: Any) -> None:
    """The same of all tables, by the names that Spark holds; not over Spark Connect."""
    if not is_connect(spark) and SparkInternals(spark).holds_tables():
        _refresh(spark, dict.fromkeys(name for name, _ in _held(spark)))


def _held(spark: Any) -> list[tuple[str, str]]:
    try:
        return SparkInternals(spark).held_tables()
    except NotImplementedError as error:
        _log.warning("Spark may go on with the rows that it holds of a table by its other names: %s", error)
        return []


def _place(path: str) -> str:
    local = local_path(path)
    return local.rstrip("/") if has_scheme(local) else os.path.abspath(local)


def _is_cached(spark: Any, name: str) -> bool:
    try:
        return bool(spark.catalog.isCached(name))
    except PySparkException as error:
        _warn(name, error)
        return False


def _refresh(spark: Any, names: Iterable[str]) -> None:
    for name in names:
        try:
            spark.catalog.refreshTable(name)
        except PySparkException as error:
            _warn(name, error)


def _warn(name: str, error: Exception) -> None:
    _log.warning("%s: Spark may go on with the rows that it holds of this table: %s. REFRESH TABLE ends it.", name, error)
