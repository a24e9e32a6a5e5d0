"""DROP TABLE of a table that a coordinator has. If its files are deleted with its name, the coordinator forgets its location, and
a new table may be made there. Spark alone runs any other DROP TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_py.errors import UnsupportedOperationError
from delta_py.object_stores.open_store import coordination_of, open_store
from delta_py.storage.addresses import is_name_in_catalog
from delta_py.storage.store_options import StorageOptions
from delta_py.types.names import quoted
from spark_plugin.internals.wrapping import spark_sql
from spark_plugin.options.catalog_session_settings import COORDINATOR, TRANSACTION
from spark_plugin.options.settings import conf
from spark_plugin.sql.results import nothing
from spark_plugin.sql.targets import find_target
from spark_plugin.sql_internals import ParsedPlan
from spark_plugin.transactions import plain_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def drop_table(spark: SparkSession, plan: ParsedPlan, _text: str) -> DataFrame | None:
    """Run the statement, and return a frame without columns, as Spark does. Returns None, and does nothing, for another statement
    and for a table that no coordinator has.

    Raises Spark's errors. Raises before anything is dropped: UnsupportedOperationError in a transaction of SQL,
    CoordinatorUnavailableError.
    """
    parts = None if conf(spark, COORDINATOR) is None or plan.kind != "DropTable" else plan.name_parts(plan.node.child())
    target = None if parts is None else find_target(spark, parts)
    if parts is None or target is None or target.name is None:
        return None
    path = target.place.url
    # Spark alone drops a table of Unity Catalog, except in a transaction, which must refuse it.
    if is_name_in_catalog(path) and conf(spark, TRANSACTION) is None:
        return None
    coordination = coordination_of(open_store(path, StorageOptions.of(plain_options(spark, path))))
    if coordination is None or coordination.tail() is None:
        return None
    if conf(spark, TRANSACTION) is not None:
        raise UnsupportedOperationError(
            f"DROP TABLE {target.name} cannot be part of a transaction over tables. Nothing was dropped. COMMIT or ROLLBACK it "
            "first.",
            table=target.name,
        )
    spark_sql(spark, f"DROP TABLE {'.'.join(map(quoted, parts))}{' PURGE' if plan.node.purge() else ''}")
    coordination.forget_deleted()
    return nothing(spark)
