"""How well a table's columns let queries skip files, as a DataFrame: looked at where the table is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_py.layout.skipping import table_layout
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from spark_plugin.dml.at_table import at_table
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.options.settings import TablePath, active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_layout(spark: SparkSession, table: TablePath, columns: Sequence[str]) -> DataFrame:
    """As DeltaTable.layout."""
    with as_spark_raises(), active(spark):
        found = at_table(spark, partial(_layout, table.open_store(spark), tuple(columns) or None))
        return spark.createDataFrame(found)


def _layout(store: ObjectStore, columns: Sequence[str] | None) -> pa.Table:
    return table_layout(Snapshot.load(store), columns)
