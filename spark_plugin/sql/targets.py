"""The table that a statement is about, if it is a Delta table that pydelta handles.

    target = find_target(spark, ("delta", "/data/events"))         # None: leave the statement to Spark
    target = find_target(spark, ("shop", "sales"))

pydelta handles paths, pydelta.`/path`, and names of the session catalog that stand for a table of pydelta. If delta-spark is not
loaded, it also handles delta.`/path` and tables that delta-spark entered, unless `spark.pydelta.deltaNames.enabled` is false; if
delta-spark is loaded, it handles these itself. pydelta never handles temporary views, other catalogs and other formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.types.names import quoted
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api import catalog, named_tables
from spark_plugin.dataframe_api.batch_save import Save
from spark_plugin.options.settings import TablePath
from spark_plugin.sql_catalog.delta_names import DELTA, has_delta_names
from spark_plugin.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Target:
    """A table that pydelta handles. place: where it is; there need not be a table at a path yet."""

    place: TablePath

    @property
    def name(self) -> str | None:
        return self.place.name

    @property
    def label(self) -> str:
        """The table's name in messages."""
        return self.name or self.place.url

    def write(self, save: Save) -> None:
        """Append to the table, or overwrite it. Raises TableNotFoundError."""
        if self.name is None:
            save.to(self.place.url)
        else:
            named_tables.write_to_name(save, self.name)

    def delta_table(self, spark: SparkSession) -> DeltaTable:
        """Return the DeltaTable, whose methods run statements. Raises TableNotFoundError (DELTA_MISSING_DELTA_TABLE) if there is
        no table."""
        return DeltaTable.forPath(spark, self.place.url) if self.name is None else DeltaTable.forName(spark, self.name)


def find_target(spark: SparkSession, parts: Sequence[str]) -> Target | None:
    """Return the table that a name stands for; None if pydelta does not handle it. parts: of the name.

    There need not be a table at the path. Raises UnsupportedOperationError for a name of pydelta that stands for an older
    version, or for no certain location.
    """
    name = ".".join(map(quoted, parts))
    format_and_path = catalog.format_and_path(name)
    if format_and_path is not None:
        table_format, path = format_and_path
        return Target(TablePath(path)) if table_format in our_formats(spark) else None
    try:
        entry = catalog.find(spark, name)
    except (InvalidOptionError, UnsupportedOperationError, PySparkException):
        return None  # no name of the session catalog: if the name is wrong, Spark reports the error
    if entry is None or entry.provider not in our_formats(spark):
        return None
    return Target(TablePath(entry.writable_path(), name=name))


def our_formats(spark: Any) -> frozenset[str]:
    """Return the formats whose paths and names pydelta handles."""
    return frozenset({FORMAT, DELTA} if has_delta_names(spark) else {FORMAT})
