"""CREATE TABLE, REPLACE TABLE, and both AS SELECT: what delta.tables' builders and saved DataFrames do.

    CREATE TABLE shop.sales (id BIGINT GENERATED ALWAYS AS IDENTITY, day DATE) USING pydelta PARTITIONED BY (day)
    CREATE OR REPLACE TABLE shop.daily USING pydelta CLUSTER BY (day) AS SELECT ...

A table AS SELECT is one commit, including its rows. Without LOCATION the table lies in the database's directory,
and DROP TABLE deletes it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import types as spark_types

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.protocol import identity_columns
from delta_py.types.column_rules import DEFAULT, GENERATION
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api import catalog, named_tables
from spark_plugin.dataframe_api.batch_save import AsSelect, Save
from spark_plugin.options.settings import conf
from spark_plugin.sql.results import nothing
from spark_plugin.sql.targets import our_formats
from spark_plugin.sql_definitions import ParsedColumn, ParsedDefinition, parsed_definition
from spark_plugin.sql_internals import ParsedPlan
from spark_plugin.table_api.arguments import check_rules
from spark_plugin.table_api.builders import TableRequest, stored_field
from spark_plugin.table_api.table_names import build_table, path_of_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DEFAULTS_FEATURE = "delta.feature.allowcolumndefaults"
_CONSTRAINT_PREFIX = "delta.constraints."


def define_table(spark: SparkSession, plan: ParsedPlan, _text: str) -> DataFrame | None:
    """Run the statement, and return a frame without columns, as Spark does. Returns None, and does nothing, for another statement
    and if the table would not be pydelta's. Raises the errors of delta.tables' builders and of saved DataFrames."""
    definition = parsed_definition(plan)
    if definition is None or not _is_ours(spark, definition):
        return None
    _refuse_clauses(definition)
    if definition.kind == "createIfNotExists" and has_name(spark, definition.name):
        return nothing(spark)
    if definition.query is None:
        request = _table_request(definition)
        check_rules(spark, request.columns, request.properties or {})
        build_table(spark, request)
    else:
        _define_with_rows(spark, definition)
    return nothing(spark)


def has_name(spark: SparkSession, name: str) -> bool:
    """Return whether the catalog has a table of any format, or a view, under a name. False for a name that is a path."""
    return catalog.path_of_new(spark, name) is None and catalog.find_stored(spark, name) is not None


def _is_ours(spark: SparkSession, definition: ParsedDefinition) -> bool:
    """Return whether the table would be pydelta's: by the path that names the table, else by USING, else by Spark's default for
    USING. A statement that only gives a name, and perhaps read options, to an existing table goes to Spark."""
    provider, formats = definition.provider, our_formats(spark)
    format_path = catalog.format_and_path(definition.name)
    if format_path is not None:
        return format_path[0] in formats and (provider is None or provider.lower() in formats)
    if catalog.path_of_new(spark, definition.name) is not None:  # in Unity Catalog
        return provider is None or provider.lower() in formats
    if catalog.is_of_another_catalog(spark, definition.name):
        return False
    if provider is None and definition.stored_as:
        return False
    source = provider or conf(spark, "spark.sql.sources.default") or ""
    return source.lower() in formats and not (_only_enters_name(definition) and source.lower() == FORMAT)


def _only_enters_name(definition: ParsedDefinition) -> bool:
    """Return whether a CREATE has neither columns nor a query, and so only enters an existing table into the catalog."""
    return not definition.columns and definition.query is None and definition.kind.startswith("create")


def _refuse_clauses(definition: ParsedDefinition) -> None:
    """Refuse clauses that tables of Delta do not have."""
    if definition.transforms:
        has_buckets = any(transform.startswith("bucket(") for transform in definition.transforms)
        raise UnsupportedOperationError(
            f"PARTITIONED BY {', '.join(definition.transforms)}: Delta tables are partitioned by columns. Nothing was created. "
            "Add a column with the value, generated perhaps, and partition by it.",
            error_class="DELTA_OPERATION_NOT_ALLOWED_DETAIL" if has_buckets else "DELTA_OPERATION_NOT_ALLOWED",
            sql_state="0AKDC",
        )
    if definition.options:
        raise InvalidOptionError(
            f"OPTIONS ({', '.join(definition.options)}): a Delta table keeps no options. Nothing was created. Use TBLPROPERTIES "
            "for what the table is to know, and options of the reader for what a query asks.",
            option=definition.options[0],
        )
    other_kinds = sorted({constraint.kind for constraint in definition.constraints if constraint.condition is None})
    if other_kinds:
        raise UnsupportedOperationError(
            f"{definition.name} would have constraints of the kind {', '.join(other_kinds)}: Delta tables have CHECK and "
            "NOT NULL, and no keys. Nothing was created. Leave them out.",
            error_class="UNSUPPORTED_FEATURE.TABLE_OPERATION",
            sql_state="0A000",
        )
    columns_with_default = [column.name for column in definition.columns if column.default is not None]
    if columns_with_default and _DEFAULTS_FEATURE not in (name.lower() for name in definition.properties):
        raise InvalidOptionError(
            f"DEFAULT of {', '.join(columns_with_default)}: the table lacks the feature allowColumnDefaults. Nothing was "
            "created. Add TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported').",
            error_class="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            sql_state="0AKDE",
            columns=columns_with_default,
        )


# ---------------------------------------------------------------- without rows


def _table_request(definition: ParsedDefinition) -> TableRequest:
    return TableRequest(
        definition.kind,
        name=definition.name,
        location=definition.location,
        description=definition.comment,
        columns=tuple(map(_field, definition.columns)),
        partition_by=definition.partition_by,
        cluster_by=definition.cluster_by or (),
        properties=_properties(definition),
        provider=definition.provider,
    )


def _properties(definition: ParsedDefinition) -> dict[str, str]:
    """Return the properties and, as properties too, the CHECK constraints. No row is checked: a new table has none yet."""
    checks = {
        f"{_CONSTRAINT_PREFIX}{constraint.name.lower()}": str(constraint.condition) for constraint in definition.constraints
    }
    return {**definition.properties, **checks}


def _field(column: ParsedColumn) -> spark_types.StructField:
    """Return the column as a field; its metadata has the comment, and the rules as the log stores them."""
    metadata: dict[str, object] = {}
    if column.comment is not None:
        metadata["comment"] = column.comment
    if column.default is not None:
        metadata[DEFAULT] = column.default  # not EXISTS_DEFAULT: delta-spark would use it for rows whose file lacks the column
    if column.generated is not None:
        metadata[GENERATION] = column.generated
    if column.identity is not None:
        metadata |= {
            identity_columns.START: column.identity.start,
            identity_columns.STEP: column.identity.step,
            identity_columns.ALLOW_EXPLICIT_INSERT: column.identity.by_default,
        }
    return stored_field(spark_types.StructField(column.name, column.data_type, column.nullable, metadata))


# ---------------------------------------------------------------- AS SELECT


def _define_with_rows(spark: SparkSession, definition: ParsedDefinition) -> None:
    """Run a CREATE or REPLACE TABLE ... AS SELECT: a save of the query's rows."""
    assert definition.query is not None
    creates = definition.kind in ("create", "createIfNotExists")
    as_select = AsSelect("create" if creates else definition.kind, definition.comment, _properties(definition))
    save = Save(definition.query.frame(), "error", {}, definition.partition_by, definition.cluster_by, as_select=as_select)
    save = replace(save, provider=definition.provider)
    if not creates:
        save = replace(save, mode="overwrite").with_options(partitionOverwriteMode="static")
    elif definition.kind == "createIfNotExists":
        save = replace(save, mode="ignore")
    path = path_of_name(spark, definition.name, definition.location)
    if path is not None:
        save.with_options(**path.storage).to(path.url)
        return
    if definition.location is not None:
        save = save.with_options(path=definition.location)
    named_tables.define_with_rows(save, definition.name, definition.kind)
