"""How well a table's columns let queries skip files, as a DataFrame. It is computed where the table is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.layout.skipping_report import table_layout
from delta_py.snapshot import Snapshot
from delta_py.storage.addresses import root_pattern
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import Path
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.maintenance.result_frames import to_frame
from spark_plugin.options.settings import TablePath, active
from spark_plugin.pruning.rule import compared_columns
from spark_plugin.tasks.run_near_table import at_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_layout(spark: SparkSession, table: TablePath, columns: Sequence[str]) -> DataFrame:
    """Run DeltaTable.layout: return one row for each column. columns: empty for all that may have statistics."""
    with as_spark_raises(), active(spark):
        store = table.open_store(spark)
        layout = at_table(spark, partial(_layout, store, tuple(columns) or None, filtered_columns(spark, store)))
        return to_frame(spark, layout)


def filtered_columns(spark: SparkSession, store: ObjectStore) -> Counter[Path]:
    """Return how many scans of this session compared each column of the table with constants, by the path of the column."""
    # Users write a table's path in several ways. It is this table's if nothing remains after the table's root is removed.
    total_counts: Counter[Path] = Counter()
    counts_by_table = compared_columns(spark)
    table_paths = pa.array([f"{path}/" for path in counts_by_table], pa.string())
    remaining_paths = pc.replace_substring_regex(table_paths, root_pattern(store.root), "").to_pylist()
    for remaining_path, counts in zip(remaining_paths, counts_by_table.values(), strict=True):
        if not remaining_path:
            total_counts.update(counts)
    return total_counts


def _layout(store: ObjectStore, columns: Sequence[str] | None, filtered: Counter[Path]) -> pa.Table:
    """Return the layout of the newest version. columns: None for all. filtered: from filtered_columns."""
    return table_layout(Snapshot.load(store), columns, filtered)
