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
from delta_py.storage.addresses import below
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
    """Do the same as DeltaTable.layout."""
    with as_spark_raises(), active(spark):
        store = table.open_store(spark)
        layout = at_table(spark, partial(_layout, store, tuple(columns) or None, filtered_columns(spark, store)))
        return to_frame(spark, layout)


def filtered_columns(spark: SparkSession, store: ObjectStore) -> Counter[Path]:
    """Return how many scans of this session compared each column of the table."""
    # Users write a path in several ways. It is the table's if nothing remains after its beginning, the table's root, is removed.
    counts_by_path: Counter[Path] = Counter()
    tables = compared_columns(spark)
    below_root = pc.replace_substring_regex(pa.array([f"{path}/" for path in tables], pa.string()), below(store.root), "")
    for path_below, counts in zip(below_root.to_pylist(), tables.values(), strict=True):
        if not path_below:
            counts_by_path.update(counts)
    return counts_by_path


def _layout(store: ObjectStore, columns: Sequence[str] | None, filtered: Counter[Path]) -> pa.Table:
    return table_layout(Snapshot.load(store), columns, filtered)
