"""The table that a statement is about, if it is one of ours.

    target = find_target(spark, ("delta", "/data/events"))         # None: leave the statement to Spark
    target = find_target(spark, ("shop", "sales"))

Ours are paths, pydelta.`/path`, and names of the session catalog that stand for a table of pydelta. Where delta-spark is not
loaded, delta.`/path` and tables that it has entered are ours too, unless `spark.pydelta.deltaNames.enabled` is false; where it
is, they stay its own. Temporary views, other catalogs and other formats are never ours.
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
from spark_plugin.options.settings import TablePath, conf, is_on
from spark_plugin.sql_catalog.install import DELTA_NAMES_CONF, DELTA_SPARK_CATALOG
from spark_plugin.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_DELTA_SPARK = "delta"
_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


@dataclass(frozen=True, slots=True)
class Target:
    """A table of ours."""

    place: TablePath

    @property
    def name(self) -> str | None:
        return self.place.name

    @property
    def label(self) -> str:
        """For messages."""
        return self.name or self.place.url

    def write(self, save: Save) -> None:
        """Append to, or overwrite, the table. Raises TableNotFoundError."""
        if self.name is None:
            save.to(self.place.url)
        else:
            named_tables.write_to_name(save, self.name)

    def delta_table(self, spark: SparkSession) -> DeltaTable:
        """Raises TableNotFoundError (DELTA_MISSING_DELTA_TABLE) when there is none."""
        return DeltaTable.forPath(spark, self.place.url) if self.name is None else DeltaTable.forName(spark, self.name)


def find_target(spark: SparkSession, parts: Sequence[str]) -> Target | None:
    """parts: of a table's name. None for what is no table of ours.

    A path of ours need not have a table. Raises UnsupportedOperationError for a name of ours that stands for an older version, or
    for no certain place.
    """
    name = ".".join(map(quoted, parts))
    named = catalog.format_and_path(name)
    if named is not None:
        return Target(TablePath(named[1])) if named[0] in our_formats(spark) else None
    try:
        entry = catalog.find(spark, name)
    except (InvalidOptionError, UnsupportedOperationError, PySparkException):
        return None  # no name of the session catalog: Spark says what is wrong with it, where it is wrong at all
    if entry is None or entry.provider not in our_formats(spark):
        return None
    return Target(TablePath(entry.writable_path(), name=name))


def our_formats(spark: Any) -> frozenset[str]:
    """The formats whose paths and names are ours."""
    return frozenset({FORMAT, _OF_DELTA_SPARK} if has_delta_names(spark) else {FORMAT})


def has_delta_names(spark: Any) -> bool:
    return not has_delta_spark(spark) and is_on(spark, DELTA_NAMES_CONF)


def has_delta_spark(spark: Any) -> bool:
    """Whether delta-spark answers for its own tables in this session: it is set to. That its classes are there says less."""
    extensions, session_catalog = conf(spark, "spark.sql.extensions"), conf(spark, "spark.sql.catalog.spark_catalog")
    return _EXTENSION in (extensions or "") or session_catalog == DELTA_SPARK_CATALOG
