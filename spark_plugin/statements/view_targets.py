"""Temporary views in DELETE, UPDATE and MERGE INTO: the statement changes the table that the view shows.

    CREATE TEMPORARY VIEW recent AS SELECT * FROM shop.sales
    DELETE FROM recent WHERE id = 3                 -- of shop.sales

A view shows a table if it has all of the table's current rows; a view of such a view does too. Any other view is refused, because
rows that it does not show would be changed. UPDATE and MERGE also need all of the table's columns under their names. DELETE
accepts any columns, and its condition is about those of the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from delta_py.errors import UnsupportedOperationError
from delta_py.types.names import quoted
from spark_plugin.dml.jobs import ToViewRows
from spark_plugin.options.private import is_private
from spark_plugin.options.settings import TablePath
from spark_plugin.sql.targets import Target, find_target, our_formats
from spark_plugin.sql_internals import SqlInternals, ViewedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Why a view cannot stand for its table, by ViewedTable.fault: the error condition, and the reason for the message.
_CONDITIONS = {
    "stored": ("DELTA_UNSUPPORTED_SOURCE", "it is kept in the catalog, and rows are changed through temporary views alone"),
    "filter": ("DELTA_UNEXPECTED_PARTIAL_SCAN", "it leaves out rows by a condition"),
    "version": ("DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION", "it shows an older version"),
    "rows": ("DELTA_UNSUPPORTED_SOURCE", "its rows are others than the table's"),
    "columns": ("DELTA_UNSUPPORTED_SOURCE", "its columns are others than the table's"),
    "options": ("DELTA_UNSUPPORTED_SOURCE", "it reads the table with options"),
}
_TIME_TRAVEL_OPTIONS = ("versionasof", "timestampasof")


@dataclass(frozen=True, slots=True)
class ViewedTarget:
    """The table that a statement about a view changes. table: the table that the view shows. to_view_rows: takes a frame of the
    table's rows and the name of one of its columns, and returns the rows with the view's columns and this column. None if the
    view has the table's own columns."""

    table: Target
    to_view_rows: ToViewRows | None


def viewed_target(spark: SparkSession, parts: Sequence[str], statement: str) -> ViewedTarget | None:
    """Return the Delta table that a view shows. parts: of the view's name. None for another name, and for a view of another
    table. statement: DELETE, UPDATE or MERGE.

    Raises UnsupportedOperationError (DELTA_UNEXPECTED_PARTIAL_SCAN, DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION,
    DELTA_UNSUPPORTED_SOURCE) for a view that shows other rows, or other columns if they matter, and for a stored view.
    """
    internals = SqlInternals(spark)
    viewed = internals.find_viewed_table(parts)
    target = None if viewed is None else _target_of_view(spark, viewed)
    if viewed is None or target is None:
        return None
    fault: str | None = viewed.fault
    if fault in (None, "columns"):  # a fault of the options matters more: it excludes a DELETE too
        fault = _fault_of_options(viewed) or fault
    if fault == "columns" and statement == "DELETE":
        return ViewedTarget(target, partial(internals.rows_as_view, viewed))
    if fault is not None:
        condition, why = _CONDITIONS[fault]
        raise UnsupportedOperationError(
            f"{statement} of the view {'.'.join(map(quoted, parts))}, which is of {target.label}: {why}. Nothing was changed. "
            "Name the table itself.",
            error_class=condition,
            sql_state="0AKDC",
            view=".".join(parts),
        )
    return ViewedTarget(target, None)


def _target_of_view(spark: SparkSession, viewed: ViewedTable) -> Target | None:
    """Return the table that a view shows, by its name or its path; None if pydelta does not handle it."""
    if viewed.parts is not None:
        return find_target(spark, viewed.parts)
    path = next((value for name, value in viewed.options.items() if name.lower() == "path"), None)
    return None if path is None or viewed.source not in our_formats(spark) else Target(TablePath(path))


def _fault_of_options(viewed: ViewedTable) -> str | None:
    """Return a fault if options of the read, other than the path, may select only some rows, or apply only to some rows."""
    other_options = [name.lower() for name in viewed.options if name.lower() != "path" and not is_private(name)]
    if not other_options:
        return None
    return "version" if any(name in _TIME_TRAVEL_OPTIONS for name in other_options) else "options"
