"""CREATE TABLE ... LIKE: an empty table with the columns, partitioning, comment and properties of another.

    CREATE TABLE shop.later LIKE shop.sales TBLPROPERTIES ('delta.appendOnly' = 'true')
    CREATE TABLE pydelta.`/data/later` LIKE shop.sales

The new table gets the rules of the columns: defaults, generated and identity columns (whose numbers continue), NOT NULL, CHECK.
As in delta-spark, it does not get the clustering. From other tables and views it gets the columns and the partitioning.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import types as spark_types

from delta_py.definition.log_properties import properties_of_new
from delta_py.errors import UnsupportedOperationError
from delta_py.protocol import column_mapping
from delta_py.snapshot import Snapshot
from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.column_rules import TYPE_CHANGES
from delta_py.types.names import quoted
from delta_py.types.schema import StructField, map_fields, schema_to_json
from spark_plugin.dataframe_api import catalog
from spark_plugin.definition_statements.create_table import has_name
from spark_plugin.dml.jobs import load_newest
from spark_plugin.sql.results import nothing
from spark_plugin.sql.targets import Target, find_target, our_formats
from spark_plugin.sql_definitions import ParsedLikeness, parsed_likeness
from spark_plugin.sql_internals import ParsedPlan
from spark_plugin.table_api.builders import TableRequest, stored_field
from spark_plugin.table_api.table_names import build_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def create_like(spark: SparkSession, plan: ParsedPlan, _text: str) -> DataFrame | None:
    """Run the statement, and return a frame without columns, as Spark does. Returns None, and does nothing, for another statement
    and if the new table would not be pydelta's. Raises the errors of delta.tables' builders."""
    likeness = parsed_likeness(plan)
    return None if likeness is None else run_create_like(spark, likeness)


def run_create_like(spark: SparkSession, likeness: ParsedLikeness) -> DataFrame | None:
    """Run a statement that was parsed elsewhere. Returns None, and does nothing, if the new table would not be pydelta's: the
    path that names it decides, or else its catalog, USING, and at last the format of the source."""
    source = find_target(spark, likeness.source)
    format_path, formats = catalog.format_and_path(likeness.name), our_formats(spark)
    if format_path is not None:
        is_ours = format_path[0] in formats and (likeness.provider is None or likeness.provider.lower() in formats)
    elif catalog.path_of_new(spark, likeness.name) is not None:  # in Unity Catalog
        is_ours = likeness.provider is None or likeness.provider.lower() in formats
    elif catalog.is_of_another_catalog(spark, likeness.name):
        is_ours = False
    elif likeness.provider is not None:
        is_ours = likeness.provider.lower() in formats
    else:
        is_ours = source is not None
    if not is_ours:
        return None
    if likeness.if_not_exists and has_name(spark, likeness.name):
        return nothing(spark)
    kind = "createIfNotExists" if likeness.if_not_exists else "create"
    provider = likeness.provider or _provider(spark, source)
    request = TableRequest(kind, name=likeness.name, location=likeness.location, provider=provider)
    request = (
        _with_columns_of_other(spark, request, likeness)
        if source is None
        else _with_definition_of(load_newest(spark, source.place), request)
    )
    names_in_statement = {name.lower() for name in likeness.properties}
    inherited = {name: value for name, value in (request.properties or {}).items() if name.lower() not in names_in_statement}
    build_table(spark, replace(request, properties={**inherited, **likeness.properties}))
    return nothing(spark)


def _provider(spark: SparkSession, source: Target | None) -> str | None:
    """Return the provider of the source if it is a Delta table of the catalog, otherwise None."""
    entry = None if source is None or source.name is None else catalog.find(spark, source.name)
    return None if entry is None else entry.provider


def _with_definition_of(source: Snapshot, request: TableRequest) -> TableRequest:
    """Return the request with the definition of the source. The new table gets its own log and its own physical names, so those
    of the source are left out.
    """
    metadata = source.metadata
    schema = map_fields(column_mapping.without_column_mapping(source.schema), _without_type_changes)
    return replace(
        request,
        description=metadata.description,
        columns=tuple(spark_types.StructType.fromJson(json.loads(schema_to_json(schema))).fields),
        partition_by=tuple(metadata.partition_columns),
        properties=properties_of_new(source),
    )


def _without_type_changes(field: StructField) -> StructField:
    """Return the field without the record of the types that it had before: the new table has no rows of these types."""
    metadata = {key: value for key, value in field.metadata.items() if key != TYPE_CHANGES}
    return replace(field, metadata=metadata)


def _with_columns_of_other(spark: SparkSession, request: TableRequest, likeness: ParsedLikeness) -> TableRequest:
    """Return the request with the columns and the partitioning of a view, or of a table of another format."""
    name = ".".join(map(quoted, likeness.source))
    if catalog.format_and_path(name) is not None:
        raise UnsupportedOperationError(
            f"CREATE TABLE LIKE {name}: files of another format do not say how they are partitioned; nothing was created. Name "
            "the columns, or enter the files into the catalog and use that name.",
            source=name,
        )
    columns = []
    for field in spark.table(name).schema.fields:
        metadata = {key: value for key, value in (field.metadata or {}).items() if key in ("comment", DECLARED_TYPE)}
        columns.append(stored_field(spark_types.StructField(field.name, field.dataType, field.nullable, metadata)))
    partitions = tuple(column.name for column in spark.catalog.listColumns(name) if column.isPartition)
    return replace(request, columns=tuple(columns), partition_by=partitions)
