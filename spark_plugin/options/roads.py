"""The names of the roads, which are pydelta's ways to read the rows of a query, and of the other parts a session can disable.

`explain()` and `status(spark)` show these names, and the setting `spark.pydelta.disable` takes them. Switch.java repeats them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from delta_py.errors import InvalidOptionError, shown


class Road(StrEnum):
    """A way in which pydelta reads the rows of a query."""

    LOG = "log"
    """An aggregate is answered from the table's log; nothing is read."""
    DRIVER = "driver"
    """The driver's own Python reads the rows of a small query, without a job."""
    PARTIAL = "partial"
    """Tasks compute partial aggregates, and Spark combines them."""
    PARQUET = "parquet"
    """Spark's own Parquet reader reads simple files; Python reads the others."""
    COLUMNS = "columns"
    """Python reads, and Spark gets columns."""
    ROWS = "rows"
    """Python reads, and Spark makes rows of the batches. This is Spark's own way, and cannot be disabled."""
    ONE_TASK = "one-task"
    """A small query that groups or sorts is computed in the task that reads, without a shuffle."""
    JOINS = "joins"
    """Spark gets sizes when it plans joins, and files are chosen by the values that the other side of a join has."""


# The parts that are no roads: the optimizer rule, planning in the driver's own Python, what is added to Spark Connect, and the
# router of SQL statements.
PRUNING = "pruning"
DRIVER_PLANNING = "driver-planning"
CONNECT = "connect"
SQL = "sql"

DISABLE_CONF = "spark.pydelta.disable"
"""Names separated by commas. For troubleshooting: without a disabled part a session does as Spark would, and gives the same
rows."""

PREFER_CONF = "spark.pydelta.prefer"
"""`partial`, `parquet`: these roads are taken whenever they are possible, whatever the sizes of a scan are. For tests and
measurements."""

OLDER_OPTIONS: Mapping[str, tuple[Road, ...]] = {
    "logAnswers": (Road.LOG, Road.DRIVER, Road.PARTIAL),
    "joinPlanning": (Road.JOINS,),
}
"""Older read options, which DISABLE_CONF replaces, and the roads that the value false disables."""

OLDER_SETTINGS: Mapping[str, str] = {
    PRUNING: "spark.pydelta.pruning.enabled",
    Road.LOG: "spark.pydelta.logAnswers.enabled",
    Road.DRIVER: "spark.pydelta.driverReads.enabled",
    Road.PARTIAL: "spark.pydelta.partialAggregates.enabled",
    Road.PARQUET: "spark.pydelta.nativeReader.enabled",
    Road.COLUMNS: "spark.pydelta.columnarReader.enabled",
    Road.ONE_TASK: "spark.pydelta.oneTask.enabled",
    Road.JOINS: "spark.pydelta.joinPlanning.enabled",
    DRIVER_PLANNING: "spark.pydelta.driverPlanning.enabled",
    CONNECT: "spark.pydelta.connectClasses.enabled",
    SQL: "spark.pydelta.sql.enabled",
}
"""All names that can be disabled, and the older settings that did it. These still work in this release, and warn once."""


def parse_disabled(text: str) -> frozenset[str]:
    """Return the names in a value of DISABLE_CONF, in any case. Raises InvalidOptionError for an unknown one."""
    names = frozenset(name.strip().lower() for name in text.split(",")) if text.strip() else frozenset()
    unknown = sorted(names - OLDER_SETTINGS.keys())
    if unknown:
        raise InvalidOptionError(
            f"{DISABLE_CONF} has the unknown name {shown(unknown[0])}. It can list: {', '.join(OLDER_SETTINGS)}.",
            option=DISABLE_CONF,
            value=text,
        )
    return names
