"""Installs the pruning rule into a Spark session, and reports what the rule has done there.

`install` never fails: if the rule cannot be installed, it warns once, and tables are read unpruned.

Spark's own API passes neither the columns nor, safely, the filters of a query to a Python source: its filter push-down reuses
the filters of the first query on a DataFrame for later queries, which gives wrong rows. So `install(spark)` adds one
optimizer rule, written in Java (spark_plugin/java/rule), to the session. The rule puts every scan of the source back into Spark's
own push-down, plans each scan separately, and leaves all filters in Spark's plan. If anything is unfamiliar, the rule does not
change the plan.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from spark_plugin.internals.pyspark_internals import reason_of
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import RULE, SparkInternals
from spark_plugin.options import read_limits
from spark_plugin.options.roads import PRUNING
from spark_plugin.pruning.needed_rows import NeededRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_py.scan.planning import ScanReport

_NEEDED_PACKAGES = ("rule", "scan", "messages", "streams")
"""Packages of the Java part that the rule needs. The others can be disabled (self_test.py)."""

_log = logging.getLogger("pydelta.pruning")

_unavailable: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()
"""Sessions that were warned that they run without the rule, and why."""


@dataclass(frozen=True, slots=True)
class RoadStatus:
    """The use of one road in a session.

    road: a way to read the rows of a query, or another part of pydelta, by its name in `spark.pydelta.disable`. Two names cannot
    be disabled: `metadata-column`, loads of tables with their hidden column `_metadata`, and `driver-writes`, batch writes that
    the driver's own Python planned.
    used: how many scans or queries took the road; for `pruning`, how many scans the rule pruned; for `driver-planning`, how many
    calls the driver's own Python ran instead of a worker.
    skipped: how many scans or queries might have taken the road and did not. last_reason: why the last of them did not.
    last_error: the last such reason that was an error.
    """

    road: str
    used: int = 0
    skipped: int = 0
    last_reason: str | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class ScanStatus:
    """How one scan was read. road: the way in which pydelta read its rows, a name in options/roads.py. why: why it took this
    road. files: how many of the table's files it read, as text; None if no file was read."""

    path: str
    road: str
    why: str | None
    files: str | None

    def __str__(self) -> str:
        files = "" if self.files is None else f", {self.files}"
        return f"{self.path}: {self.road} ({self.why}){files}"


@dataclass(frozen=True, slots=True)
class PruningStatus:
    """What the rule does in a session.

    installed: the rule is among the session's optimizer rules now. last_error: why the rule is not installed; otherwise why it
    did not change the last plan in which something failed or was not understood. last_scan: the files and bytes that the last
    planned scan reads, None if no scan reported them. roads: the use of each road. scans: the last scans whose rows were read or
    answered, one line each, the newest at the end. A query that is only planned adds none, unless the log answers it.
    """

    installed: bool
    last_error: str | None = None
    last_scan: ScanReport | None = None
    roads: tuple[RoadStatus, ...] = ()
    scans: tuple[ScanStatus, ...] = ()

    def __getitem__(self, road: str) -> RoadStatus:
        """Return a row of zeros for a road that no scan took or skipped."""
        return next((row for row in self.roads if row.road == road), RoadStatus(road))

    def __str__(self) -> str:
        rows = [f"{'road':16} {'used':>6} {'skipped':>8}  last reason"]
        rows += [f"{row.road:16} {row.used:6} {row.skipped:8}  {row.last_reason or ''}".rstrip() for row in self.roads]
        head = "The pruning rule is installed." if self.installed else f"The pruning rule is not installed: {self.last_error}."
        return "\n".join([head, *rows, *map(str, self.scans)])


def install(spark: SparkSession, *formats: str) -> bool:
    """Add the rule to the session, unless it is installed, and let it prune the formats (by default `pydelta`).

    Returns whether the rule is installed. If not, a warning has said why and what to do, once per session. Other libraries' rules
    are not removed. If another library has overwritten the list since, the rule is added again and its counts start from zero.
    """
    try:
        internals = adapter_of(spark).internals
        if internals is None:
            raise NotImplementedError("a Spark Connect client cannot add optimizer rules")
        rule = internals.pruning_rule()
        if rule is None:
            internals.require_links(*_NEEDED_PACKAGES)
            rule = internals.java_class(RULE).newInstance()
            rule.offerMetadata(metadata_schema())
            rule.setLimits(*read_limits.for_the_rule())
            internals.add_optimizer_rule(rule)
            # The changed source asks the driver's own Python, instead of a worker, to plan and commit writes.
            internals.change_source("pydelta", rule.askingDriver)
        for name in formats or ("pydelta",):
            rule.addFormat(name)
    except Exception as error:  # whatever a locked-down or unknown Spark raises, reading must continue
        warn_once(spark, _one_line(error))
        return False
    _unavailable.pop(spark, None)
    return True


def installed_rule(spark: SparkSession) -> Any | None:
    """Return the rule's Java object; None if the rule is not installed. Callers call methods of its Java class, PruneScans."""
    return SparkInternals(spark).pruning_rule()


def rows_needed_by(spark: SparkSession, frame: DataFrame, option: str, value: str) -> NeededRows:
    """Return which rows of one scan can influence the rows of the frame. option, value: a read option that only this scan has.
    The result says that any row may be needed if the rule is not installed, or is disabled."""
    internals = SparkInternals(spark)
    rule = internals.pruning_rule()
    if rule is None:
        return NeededRows(None)
    return NeededRows.parse(rule.wantedRows(internals.optimized_plan(frame), option, value))


def with_metadata_column(frame: DataFrame) -> DataFrame:
    """Return the frame that `load` made of a table, with the hidden column `_metadata` if the rule is installed.

    A table that has a column of this name is returned unchanged, and so are changes, views, and any other frame.
    """
    rule = adapter_of(frame.sparkSession).pruning_rule()
    return frame if rule is None else SparkInternals(frame.sparkSession).map_dataset(frame, rule.withMetadata)


def with_columns_of_batches(stream: DataFrame) -> DataFrame:
    """Return the frame that `readStream.load` made of a table, changed so that its batches read only the columns that they need.
    Without the rule it is returned unchanged."""
    rule = adapter_of(stream.sparkSession).pruning_rule()
    return stream if rule is None else SparkInternals(stream.sparkSession).map_dataset(stream, rule.streamed)


def status(spark: SparkSession) -> PruningStatus:
    """Return what the rule has done in this session, and in clones of it, such as those that Spark's streaming makes."""
    if spark in _unavailable:
        return PruningStatus(installed=False, last_error=_unavailable[spark])
    rule = adapter_of(spark).pruning_rule()
    if rule is None:
        return PruningStatus(installed=False)
    answer = json.loads(rule.status())
    status = PruningStatus(
        installed=True,
        last_scan=_scan_report(answer["last_scan"]),
        roads=tuple(RoadStatus(**row) for row in answer["roads"]),
        scans=tuple(ScanStatus(**scan) for scan in answer["scans"]),
    )
    return replace(status, last_error=status[PRUNING].last_error)


def compared_columns(spark: SparkSession) -> dict[str, dict[tuple[str, ...], int]]:
    """Return how many scans of this session compared each column with constants: by table path as it was given to Spark, then by
    the path of the column. Empty if no rule is installed, and over Spark Connect."""
    rule = adapter_of(spark).pruning_rule()
    if rule is None:
        return {}
    tables = json.loads(rule.compared())
    return {path: {tuple(column["column"]): count for column, count in counts} for path, counts in tables.items()}


def metadata_schema() -> str:
    """Return a schema with only the column `_metadata`, in JSON. `install` passes it to the rule."""
    from delta_py.scan.planning import metadata_scan_column
    from delta_py.types.schema import StructType  # a session without the rule does not need these
    from spark_plugin.schema_conversion import to_spark_schema

    return str(to_spark_schema(StructType((metadata_scan_column().logical,))).json())


def _scan_report(numbers: dict[str, int] | None) -> ScanReport | None:
    """Return the report of a scan from the rule's numbers; None if no scan reported any."""
    from delta_py.scan.planning import ScanReport  # the import is expensive for a session that never calls this

    return None if numbers is None else ScanReport(**numbers)


def _one_line(error: Exception) -> str:
    """Return the error in one line. Py4J's own text says only that a call failed, and continues with Java's stack."""
    text = reason_of(error)
    return " ".join(line.strip() for line in text.strip().splitlines()[:2])


def warn_once(spark: SparkSession, reason: str) -> None:
    """Warn that the session runs without the rule, unless it was warned before. reason: one line."""
    was_warned = spark in _unavailable
    _unavailable[spark] = reason
    if not was_warned:
        _log.warning(
            "pydelta reads without column pruning in this session: %s. Rows are right, but every column and every file of a "
            "table is read. Name what a query needs by hand: .option('columns', 'a, b').option('filter', \"a > 1\").",
            reason,
        )
