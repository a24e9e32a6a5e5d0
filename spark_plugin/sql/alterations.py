"""ALTER TABLE, COMMENT ON and TRUNCATE TABLE as Spark's own parser reads them, carried out by DeltaTable's methods.

    ALTER TABLE shop.sales ADD COLUMNS (note STRING COMMENT 'free text' AFTER price)
    ALTER TABLE pydelta.`/data/events` SET TBLPROPERTIES ('delta.appendOnly' = 'true')

Constraints, features, clustering columns and SYNC IDENTITY are in grammar.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_plugin.dml.delete_update import truncate
from spark_plugin.sql.results import nothing
from spark_plugin.sql.targets import find_target
from spark_plugin.sql_definitions import parsed_alteration
from spark_plugin.sql_internals import ParsedPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def alter_table(spark: SparkSession, plan: ParsedPlan, _text: str) -> DataFrame | None:
    """Returns a frame without columns, as Spark does. Raises what the methods of DeltaTable raise."""
    asked = parsed_alteration(plan)
    target = None if asked is None else find_target(spark, asked.parts)
    if asked is None or target is None:
        return None
    if asked.method == "truncate":
        truncate(spark, target.place)
    else:
        getattr(target.delta_table(spark), asked.method)(*asked.arguments, **asked.more)
    return nothing(spark)
