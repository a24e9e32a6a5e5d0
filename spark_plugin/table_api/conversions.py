"""The sources of conversions to Delta and of clones: parquet.`/path`, or the name of a parquet table of Spark's catalog.

    place = convert_identifier(spark, "parquet.`/data/events`", "day date")
    source = parquet_source(spark, "shop.events", None)

After the conversion the name stands for a Delta table. Spark cannot change the format of a table in place, so the name is dropped
and entered again. That leaves the data of an external table, but would delete the data of a managed one, so managed tables are
refused. A clone does not change the name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import DataType, StructField, StructType

from delta_py.copies.clone_parquet import unsupported_source
from delta_py.copies.convert_to_delta import ConvertRequest
from delta_py.definition.properties import with_defaults
from delta_py.errors import InvalidOptionError, TableNotFoundError, UnsupportedOperationError
from delta_py.storage.addresses import has_scheme
from spark_plugin.dataframe_api import catalog
from spark_plugin.dataframe_api.catalog import Entry
from spark_plugin.maintenance.convert_job import ParquetSource, run_convert
from spark_plugin.options.common import property_defaults
from spark_plugin.options.read_options import local_path
from spark_plugin.options.settings import TablePath, conf, default_settings, is_on
from spark_plugin.schema_conversion import from_spark_schema
from spark_plugin.table_api.arguments import wrong_type
from spark_plugin.table_api.builders import stored_field
from spark_plugin.table_api.table_names import Place, find_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLLECT_STATS = "spark.databricks.delta.stats.collect"
_PARQUET = "parquet"
_HIVE_PROPERTY = "transient_lastDdlTime"  # Hive's catalog sets it; it is no property of the user


def convert_identifier(
    spark: SparkSession, identifier: str, partition_schema: str | StructType | None, *, collect_stats: bool = True
) -> Place:
    """Convert Parquet files to a Delta table, and return where it is. identifier: parquet.`/path`, or the name of a table of the
    catalog. partition_schema: the partition columns of the directories. collect_stats: collect statistics if the session wants
    them.

    Raises the same as delta_py's convert; InvalidOptionError and UnsupportedOperationError for a source that is no parquet table,
    TableNotFoundError for a name that the catalog does not have.
    """
    partitions = _partition_columns(partition_schema)
    format_and_path = catalog.format_and_path(identifier)
    if format_and_path is None:
        return _convert_name(spark, identifier, partitions, collect_stats)
    provider, path = format_and_path
    if catalog.path_in_name(identifier) is not None:  # a Delta table already; opening it reports an error if it is none
        return Place(path)
    if provider != _PARQUET:
        raise _no_parquet(identifier, provider)
    source = _files_at_path(spark, path, partitions, _default_properties(spark), collect_stats=collect_stats)
    run_convert(spark, source)
    return Place(source.place.url)


def parquet_source(spark: SparkSession, identifier: str, partition_schema: str | StructType | None) -> ParquetSource | None:
    """Return the Parquet files to clone. The session's settings for new tables do not apply to clones. None for a name that the
    catalog does not have, and for a source that is or may be a Delta table.

    Raises UnsupportedOperationError (DELTA_CLONE_UNSUPPORTED_SOURCE) for other formats and for views; InvalidOptionError for a
    partition schema that is not the catalog's."""
    partitions = _partition_columns(partition_schema)
    format_and_path = catalog.format_and_path(identifier)
    if format_and_path is not None:
        if catalog.path_in_name(identifier) is not None:
            return None
        provider, path = format_and_path
        if provider != _PARQUET:
            raise _no_clone(identifier, provider)
        return _files_at_path(spark, path, partitions, {})
    try:
        entry = catalog.find(spark, identifier)
    except (InvalidOptionError, UnsupportedOperationError, PySparkException):  # no name of the session catalog
        return None
    return None if entry is None or entry.is_delta else _files_of_entry(spark, entry, partitions, {}, _no_clone)


def _no_clone(name: str, kind: str) -> UnsupportedOperationError:
    """Return the error about a source that cannot be cloned. kind: its format; empty for a view."""
    return unsupported_source(name, kind or "View", "Read it with spark.read or spark.table, and write a new table.")


def _partition_columns(ddl_or_type: str | StructType | None) -> StructType | None:
    """Return the caller's partition columns as a table stores them; None if the caller names none."""
    schema = StructType.fromDDL(ddl_or_type) if isinstance(ddl_or_type, str) else ddl_or_type
    if schema is None:
        return None
    if not isinstance(schema, StructType):
        wrong_type("partitionSchema must be StructType, or columns as DDL.", [ddl_or_type])
    return StructType([stored_field(f) for f in schema.fields])


def _default_properties(spark: SparkSession) -> Mapping[str, str]:
    """Return the session's default properties of new tables."""
    return property_defaults(default_settings(spark))


def _files_at_path(
    spark: SparkSession,
    path: str,
    partitions: StructType | None,
    defaults: Mapping[str, str],
    *,
    collect_stats: bool = True,
    configuration: Mapping[str, str] | None = None,
    **request_fields: Any,
) -> ParquetSource:
    """Return the Parquet files of a directory, as the table that they become. partitions: the columns in the names of
    directories. configuration: table properties. defaults: properties that `configuration` does not set. request_fields: other
    fields of ConvertRequest."""
    request = ConvertRequest(
        None if partitions is None else from_spark_schema(partitions),
        collect_stats=collect_stats and is_on(spark, _COLLECT_STATS),
        configuration=with_defaults(configuration or {}, defaults),
        time_zone=conf(spark, "spark.sql.session.timeZone") or "UTC",
        **request_fields,
    )
    return ParquetSource(TablePath(local_path(path)), request)


def _no_parquet(identifier: str, provider: str) -> UnsupportedOperationError:
    """Return the error about a source that is no parquet table. provider: its format; empty for a view."""
    if not provider:
        return UnsupportedOperationError(
            f"{identifier} is a view, and converting a view to a Delta table is not supported. Nothing was changed. Convert the "
            "table behind it.",
            table=identifier,
        )
    return UnsupportedOperationError(
        f"CONVERT TO DELTA only supports parquet tables, but {identifier} is a {provider} source. Nothing was changed. Read it "
        "with spark.read and write a new table.",
        error_class="DELTA_CONVERT_NON_PARQUET_TABLE",
        sql_state="0AKDC",
        source=provider,
    )


# ---------------------------------------------------------------- names of the catalog


def _convert_name(spark: SparkSession, name: str, partitions: StructType | None, collect_stats: bool) -> Place:
    """Convert a table of the catalog, and enter it as a Delta table. A managed table is refused, and a Delta table is left as
    it is.
    """
    if os.path.isabs(name) or has_scheme(name):
        raise InvalidOptionError(
            f"{name} is a path and does not say what lies there. Nothing was changed. If it is a directory of Parquet files, "
            f"write parquet.`{name}`.",
            error_class="DELTA_MISSING_PROVIDER_FOR_CONVERT",
            sql_state="0AKDC",
        )
    entry = catalog.find(spark, name)
    if entry is None:
        raise TableNotFoundError(
            f"The table or view {name} cannot be found in the catalog. Nothing was changed. Check the name.",
            error_class="TABLE_OR_VIEW_NOT_FOUND",
            sql_state="42P01",
            table=name,
        )
    if entry.is_delta:
        return find_table(spark, name)
    source = _files_of_entry(spark, entry, partitions, _default_properties(spark), _no_parquet, collect_stats=collect_stats)
    path = source.place.url
    if not entry.external:
        raise UnsupportedOperationError(
            f"{name} is a managed table: Spark deletes its files when the name is dropped, and a name cannot get another "
            f"format without that. Nothing was changed. Convert its files by their path (parquet.`{path}`), where they stay "
            "while the name does, or copy them elsewhere first.",
            table=name,
        )
    catalog.check_enterable(name, path)
    run_convert(spark, source)
    catalog.enter_instead(spark, name, path, catalog.new_provider(spark))
    return Place(path, name)


def _files_of_entry(
    spark: SparkSession,
    entry: Entry,
    partitions: StructType | None,
    defaults: Mapping[str, str],
    refusal: Callable[[str, str], UnsupportedOperationError],
    *,
    collect_stats: bool = True,
) -> ParquetSource:
    """Return the files of a parquet table of the catalog. partitions: the caller's partition columns, which must be those of the
    catalog. defaults: properties that the table itself does not set. refusal: makes the error for an entry that is no parquet
    table, from its name and its format, which is empty for a view."""
    name = entry.name
    if entry.provider != _PARQUET:
        raise refusal(name, entry.provider)
    if entry.path is None:
        raise UnsupportedOperationError(
            f"The catalog does not say for certain where {name} is. Nothing was changed. Name its files by their path, with "
            "parquet.`/path`.",
            table=name,
        )
    catalog_schema = _catalog_partition_columns(spark, name)
    if partitions is not None and _names_and_types(partitions) != _names_and_types(catalog_schema):
        raise InvalidOptionError(
            f"The catalog partitions {name} by '{catalog_schema.simpleString()}', and not by '{partitions.simpleString()}'. "
            "Nothing was changed. Leave the partition schema out.",
            error_class="DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
            sql_state="KD009",
            table=name,
        )
    return _files_at_path(
        spark,
        entry.path,
        catalog_schema,
        defaults,
        collect_stats=collect_stats,
        configuration=_table_properties(spark, name),
        catalog_table=catalog.full_name(spark, name),
        catalog_partitions=_catalog_partitions(spark, name) if entry.tracks_partitions and catalog_schema.fields else None,
    )


def _catalog_partition_columns(spark: SparkSession, name: str) -> StructType:
    """Return the partition columns that the catalog has for a table."""
    columns = [column for column in spark.catalog.listColumns(name) if column.isPartition]
    return StructType([stored_field(StructField(column.name, DataType.fromDDL(column.dataType))) for column in columns])


def _names_and_types(schema: StructType) -> list[tuple[str, str]]:
    """Return what must be equal in two lists of partition columns: each column's name in lower case, and its type."""
    return [(f.name.lower(), f.dataType.simpleString()) for f in schema.fields]


def _table_properties(spark: SparkSession, name: str) -> dict[str, str]:
    """Return the user's properties of a table of the catalog."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {catalog.quoted_name(name)}").collect()
    return {str(row[0]): str(row[1]) for row in rows if row[0] != _HIVE_PROPERTY}


def _catalog_partitions(spark: SparkSession, name: str) -> tuple[str, ...]:
    """Return the partitions that the catalog has of a table, each as a directory such as `day=2024-05-01/hour=3`."""
    rows = spark.sql(f"SHOW PARTITIONS {catalog.quoted_name(name)}").collect()
    return tuple(str(row[0]) for row in rows)
