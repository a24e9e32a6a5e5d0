"""ALTER TABLE ... SET LOCATION: pydelta checks the table at the new location, as delta-spark does, and Spark changes the
entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_py.errors import SchemaMismatchError, TableNotFoundError, UnsupportedOperationError
from delta_py.snapshot import Snapshot
from spark_plugin.dml.jobs import load_newest
from spark_plugin.options.read_options import local_path
from spark_plugin.options.settings import TablePath, is_on
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.sql.targets import find_target
from spark_plugin.sql_internals import ParsedPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYPASS_CONF = "spark.databricks.delta.alterLocation.bypassSchemaCheck"


def check_location(spark: SparkSession, plan: ParsedPlan, _text: str) -> None:
    """Check the statement. Returns None, because Spark runs it. Raises UnsupportedOperationError
    (DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER) for a table that was named by its path; TableNotFoundError
    (DELTA_MISSING_DELTA_TABLE) if there is no table at the location; SchemaMismatchError (DELTA_SET_LOCATION_SCHEMA_MISMATCH) if
    it has other columns or partition columns."""
    parts = plan.name_parts(plan.node.table())
    target = None if parts is None else find_target(spark, parts)
    if target is None:
        return
    if target.name is None:
        raise UnsupportedOperationError(
            f"The table at {target.place.url} was named by its path, which is its location. Nothing was changed. Move the "
            "directory, or clone the table.",
            error_class="DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
            sql_state="42613",
        )
    location = str(plan.node.location())
    try:
        new_snapshot = load_newest(spark, TablePath(local_path(location)))
    except TableNotFoundError as error:
        problem = f"There is no table at {location}, which {target.name} is to stand for. Nothing was changed."
        raise TableNotFoundError(f"{problem} {error.message}", path=location) from error
    current_columns, new_columns = _columns_text(load_newest(spark, target.place)), _columns_text(new_snapshot)
    if current_columns != new_columns and not is_on(spark, BYPASS_CONF, default=False):
        raise SchemaMismatchError(
            f"The table at {location} has other columns than {target.name}: {new_columns}, and not {current_columns}. Nothing "
            f"was changed. If that is meant, set {BYPASS_CONF} to true.",
            error_class="DELTA_SET_LOCATION_SCHEMA_MISMATCH",
            sql_state="42KD7",
            table=target.name,
        )


def _columns_text(table: Snapshot) -> str:
    """Return columns and partition columns as text, for the comparison and for the error: `id bigint NOT NULL, day date
    PARTITIONED BY (day)`."""
    fields = ", ".join(
        f"{field.name} {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
        for field in to_spark_schema(table.schema).fields
    )
    partitions = ", ".join(table.metadata.partition_columns)
    return f"{fields} PARTITIONED BY ({partitions})" if partitions else fields
