"""How callers of delta.tables name tables: by path, by a name of Spark's catalog, or as delta.`/path`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from delta_py.errors import InvalidOptionError, TableAlreadyExistsError, TableNotFoundError, UnsupportedOperationError
from delta_py.storage.addresses import has_scheme, is_name_in_catalog
from delta_py.unity.external_tables import LOCATION_OPTION
from spark_plugin.cached_tables import refresh_cached
from spark_plugin.dataframe_api import catalog
from spark_plugin.dataframe_api.catalog import Entry
from spark_plugin.maintenance.convert_job import ParquetSource, run_parquet_clone
from spark_plugin.maintenance.deep_clone_job import run_deep_clone
from spark_plugin.options.common import property_defaults
from spark_plugin.options.read_options import local_path
from spark_plugin.options.settings import TablePath, default_settings, storage_settings
from spark_plugin.run_command import run_command
from spark_plugin.table_api.builders import TableRequest


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is. name: in the catalog; None for a table that was named by its path."""

    path: str
    name: str | None = None


def find_table(spark: Any, name: str) -> Place:
    """Return where the table of a name is: one that pydelta or delta-spark entered into the catalog, or a path such as
    delta.`/path`.

    Raises TableNotFoundError (DELTA_MISSING_DELTA_TABLE), UnsupportedOperationError for a name that stands for an older
    version."""
    path = catalog.path_in_name(name)
    if path is not None:
        return Place(path)
    entry = catalog.find(spark, name)
    if entry is None:
        raise TableNotFoundError(
            f"{name} is not a Delta table: it cannot be found in the catalog. Create it, or name its path with forPath.",
            table=name,
        )
    if not entry.is_delta:
        raise TableNotFoundError(f"{name} is not a Delta table of pydelta: it is {entry.kind}.", table=name)
    return Place(entry.writable_path(), name)


def refresh_name(spark: Any, name: str | None) -> None:
    """Give the table's name the present columns and rows of the table, if the table was opened by name."""
    entry = None if name is None else catalog.find(spark, name)
    if entry is not None:
        _refresh(spark, entry)


def _refresh(spark: Any, entry: Entry) -> None:
    """Update the entry's columns in the catalog, and the rows of the table that Spark has cached."""
    catalog.refresh(spark, entry)
    refresh_cached(spark, entry.name)


# ---------------------------------------------------------------- clone


@dataclass(frozen=True, slots=True)
class Cloned:
    """A clone that was made. metrics: of its commit, by delta-spark's names; None for a shallow clone of a table over Spark
    Connect, which returns nothing."""

    place: Place
    metrics: Mapping[str, int] | None


def clone_table(
    spark: Any,
    source: TablePath | ParquetSource,
    target: str,
    arguments: Mapping[str, Any],
    *,
    is_shallow: bool,
    location: str | None = None,
) -> Cloned:
    """Make a clone at a path, or under a new name. arguments: those of the command, except the source. is_shallow: always true
    for Parquet files. location: the path for a new name; None for the database's directory.

    Raises InvalidOptionError (DELTA_CLONE_AMBIGUOUS_TARGET) for a path and a location that is another place."""
    path = catalog.path_of_new(spark, target) or (target if os.path.isabs(target) or has_scheme(target) else None)
    if path is not None and location is not None and local_path(location) != local_path(path):
        raise InvalidOptionError(
            f"Two paths were given for the clone: {path}, which is its name, and the location {location}. Nothing was changed. "
            "Leave one of them out.",
            error_class="DELTA_CLONE_AMBIGUOUS_TARGET",
            sql_state="42613",
        )

    _refuse_unity_catalog(source, path, is_shallow=is_shallow)

    def make_clone(path: str) -> Mapping[str, int] | None:
        """Make the clone at the path. Returns the metrics of its commit, as in Cloned."""
        place = TablePath(path, storage)
        if isinstance(source, ParquetSource):
            assert is_shallow, "nobody copies Parquet files"
            return dict(run_parquet_clone(spark, source, place, arguments)["metrics"])
        if is_shallow:
            result = run_command(spark, place, "clone", {"source": source.url, **arguments})
        else:
            result = run_deep_clone(spark, source, place, arguments)
            refresh_cached(spark, None, path)
        return None if result is None else result["metrics"]

    source_place = source.place if isinstance(source, ParquetSource) else source
    storage = {**storage_settings(spark, source_place.url), **source_place.storage}
    if path is not None:
        return Cloned(Place(path), make_clone(path))
    entry = catalog.find_stored(spark, target)
    if entry is not None and not arguments["replace_table"]:
        raise catalog.name_exists_error(entry)
    path = catalog.new_table_path(spark, target, location) if entry is None else entry.writable_path()
    if entry is not None and location is not None and local_path(location) != local_path(path):
        raise location_mismatch(entry, location)
    managed = entry is None and location is None and catalog.may_be_managed(spark, path)
    metrics = make_clone(path)
    if entry is None:
        catalog.enter_new(spark, target, path, None, managed=managed)
    else:
        _refresh(spark, entry)
    return Cloned(Place(path, target), metrics)


def _refuse_unity_catalog(source: TablePath | ParquetSource, path: str | None, *, is_shallow: bool) -> None:
    """Raise UnsupportedOperationError for a clone that becomes a table of Unity Catalog, which demands properties of a managed
    table, and for a shallow clone of such a table, because its reader would need the credentials of two tables."""
    is_unity = isinstance(source, TablePath) and is_name_in_catalog(source.url)
    if (path is not None and is_name_in_catalog(path)) or (is_unity and is_shallow):
        raise UnsupportedOperationError(
            f"{'Shallow clones of' if is_unity and is_shallow else 'Clones as'} tables of Unity Catalog are not supported. "
            "Nothing was changed. Write the rows to a new table by CREATE TABLE ... AS SELECT."
        )


def location_mismatch(entry: Entry, location: str) -> InvalidOptionError:
    """Return the error about a location that is not that of the table in the catalog."""
    return InvalidOptionError(
        f"Table {entry.name} is at {entry.path} and not at {location}; nothing was changed. Leave the location out.",
        error_class="DELTA_TABLE_LOCATION_MISMATCH",
        sql_state="42613",
        table=entry.name,
    )


# ---------------------------------------------------------------- create and replace


def build_table(spark: Any, request: TableRequest) -> Place:
    """Make the table of a DeltaTableBuilder, and enter its name.

    The table comes first: if entering the name fails, it is complete, and CREATE TABLE ... LOCATION enters it.
    """
    path = _path_of_request(spark, request)
    if path is not None:
        # If the user names a location of a name in Unity Catalog, a table may exist there, which is then entered.
        _run_build(spark, request, path, join=LOCATION_OPTION in path.storage)
        return Place(path.url)
    assert request.name is not None
    entry = catalog.find_stored(spark, request.name)
    return _build_new(spark, request, request.name) if entry is None else _build_over(spark, request, entry)


def _path_of_request(spark: Any, request: TableRequest) -> TablePath | None:
    """Return the path of a table that has no entry in Spark's catalog, otherwise None. Raises InvalidOptionError for a request
    that has neither a name nor a location."""
    if request.name is not None:
        return path_of_name(spark, request.name, request.location)
    if request.location is None:
        raise InvalidOptionError(
            "The table has neither a name nor a location. Give it one with tableName(...) or location(...).",
            error_class="DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
            sql_state="42601",
        )
    return TablePath(request.location)


def path_of_name(spark: Any, name: str, location: str | None) -> TablePath | None:
    """Return the path if the name is one, or a name in Unity Catalog, where an external table may have a location; otherwise
    None. Raises InvalidOptionError (DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH) for a location that is another place."""
    path = catalog.path_of_new(spark, name)
    if path is not None and location is not None and is_name_in_catalog(path):
        return TablePath(path, {LOCATION_OPTION: location})
    if path is not None and location is not None and local_path(location) != local_path(path):
        raise InvalidOptionError(
            f"The table was named by the path {path}, and its location is {location}. Leave one of them out.",
            error_class="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            sql_state="0AKDC",
        )
    return None if path is None else TablePath(path)


def _build_new(spark: Any, request: TableRequest, name: str) -> Place:
    """Make the table of a request whose name the catalog does not have, and enter the name."""
    if request.mode == "replace":
        raise TableNotFoundError(
            f"The table {name} cannot be replaced: it cannot be found in the catalog. Create it with create() or "
            "createOrReplace().",
            error_class="TABLE_OR_VIEW_NOT_FOUND",
            sql_state="42P01",
            table=name,
        )
    path = catalog.new_table_path(spark, name, request.location)
    # If the user names a location, a table may exist there: then the name is entered for it. A table in the database's own
    # directory belonged to a name that was dropped; only createOrReplace replaces it.
    mode = "create" if request.mode == "createIfNotExists" else request.mode
    managed = request.location is None and catalog.may_be_managed(spark, path)
    try:
        _run_build(spark, replace(request, mode=mode), TablePath(path), join=request.location is not None)
    except TableAlreadyExistsError as error:
        raise catalog.path_exists_error(name, path) from error
    catalog.enter_new(spark, name, path, request.provider, managed=managed)
    return Place(path, name)


def _build_over(spark: Any, request: TableRequest, entry: Entry) -> Place:
    """Make the table of a request whose name the catalog already has: replace the entry's table, or leave it as it is."""
    if request.mode == "create":
        raise catalog.name_exists_error(entry)
    if request.mode == "createIfNotExists":
        return find_table(spark, entry.name)
    path = entry.writable_path()
    if request.location is not None and catalog.new_table_path(spark, entry.name, local_path(request.location)) != path:
        raise location_mismatch(entry, request.location)
    _run_build(spark, request, TablePath(path), join=False)
    _refresh(spark, entry)
    return Place(path, entry.name)


def _run_build(spark: Any, request: TableRequest, path: TablePath, *, join: bool) -> None:
    """Run the command buildTable at a path. join: with mode create, accept an existing table at the path that has the same
    definition."""
    defaults = property_defaults(default_settings(spark))
    run_command(spark, path, "buildTable", {**request.arguments(), "join": join, "defaults": defaults})
