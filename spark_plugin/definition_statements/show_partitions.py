"""SHOW PARTITIONS: the values of the partition columns, one row for each partition that has rows.

    SHOW PARTITIONS shop.sales PARTITION (day = '2024-05-01')

PARTITION keeps the partitions with these values. The columns in it must have the table's spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from delta_py.errors import InvalidOptionError
from delta_py.types.names import quoted
from spark_plugin.data_source import FORMAT
from spark_plugin.dml.jobs import load_newest
from spark_plugin.sql.targets import find_target
from spark_plugin.sql_definitions import ParsedPartitions, parsed_partitions
from spark_plugin.sql_internals import ParsedPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def show_partitions(spark: SparkSession, plan: ParsedPlan, _text: str) -> DataFrame | None:
    """Return the values of the partition columns; None for another statement and for a table that is not pydelta's. Raises
    InvalidOptionError (DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE,
    DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN), and the errors of reads."""
    request = parsed_partitions(plan)
    return None if request is None else run_show_partitions(spark, request)


def run_show_partitions(spark: SparkSession, request: ParsedPartitions) -> DataFrame | None:
    """Run a statement that was parsed elsewhere. Returns None for a table that is not pydelta's."""
    target = find_target(spark, request.parts)
    if target is None:
        return None
    columns = load_newest(spark, target.place).metadata.partition_columns
    if not columns:
        raise InvalidOptionError(
            f"SHOW PARTITIONS is not allowed on a table that is not partitioned: {target.label}. DESCRIBE tells its columns.",
            error_class="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
            sql_state="42809",
            table=target.label,
        )
    other_names = [name for name in request.values if name not in columns]
    if other_names:
        raise InvalidOptionError(
            f"PARTITION names {', '.join(other_names)}, and {target.label} is partitioned by {', '.join(columns)}. Name these "
            "columns, spelled so.",
            error_class="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
            sql_state="42P10",
            columns=other_names,
        )
    # The log contains the partitions. If it had to skip missing files, Spark would read the files.
    reader = spark.read.format(FORMAT).option("ignoreMissingFiles", "false")
    frame = reader.load(target.place.url).select(*map(quoted, columns))
    for name, text in request.values.items():
        frame = frame.where(F.col(quoted(name)).eqNullSafe(F.lit(text)))
    return frame.distinct()
