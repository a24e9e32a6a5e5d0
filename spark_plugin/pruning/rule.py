"""Installs the pruning rule into a Spark session, and says what it has done there.

`install` never fails: where the rule cannot be had, it says so once and tables are read unpruned.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from spark_plugin.pruning.handover import Wanted
from spark_plugin.pyspark_internals import reason_of
from spark_plugin.spark_internals import RULE, SparkInternals, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_py.scan.planning import ScanReport

ENABLED_CONF = "spark.pydelta.pruning.enabled"
"""Set to false in a session to read everything; the read option `pruning` does it for one table."""

COLUMNAR_CONF = "spark.pydelta.columnarReader.enabled"
"""Set to false in a session to have Spark read rows instead of columns (spark_plugin/java/readers)."""

NATIVE_CONF = "spark.pydelta.nativeReader.enabled"
"""Set to true in a session to have Spark's own Parquet reader read simple files (spark_plugin/java/parquet)."""

PARTIAL_CONF = "spark.pydelta.partialAggregates.enabled"
"""Whether tasks add up what an aggregate only adds up again: `auto` where it pays, `true`, or `false`."""

_NEEDED_PACKAGES = ("rule", "scan", "streams")
"""Packages of the Java part that the rule cannot do without. The others can be switched off (self_test.py)."""

_log = logging.getLogger("pydelta.pruning")

_unavailable: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()
"""Sessions that were told that they go without the rule, and why."""


@dataclass(frozen=True, slots=True)
class PruningStatus:
    """What the rule does in a session.

    installed: the rule is among the session's optimizer rules now. applied: scans that it pruned. backed_off: plans that
    it left as they were because something failed or was not understood; last_error is the latest reason, or why the rule
    is not installed. last_scan: files and bytes kept by the scan that was planned last, None if none said. columnar: scans
    planned to be read in columns; columnar_error: why the columnar reader could not be had the last time it was wanted.
    native: scans of which some files were given to Spark's own Parquet reader; native_error: why Python read all of a scan, where
    that was an error. driver: plannings of scans that the driver's own Python answered; driver_error: why a worker had to do the
    last one that it did not. answered: aggregates that the log answered, so that nothing was read; answer_error: why one was read
    after all although the log was asked, where that was an error. filtered: scans whose files were chosen once more by what the
    other side of a join, or a subquery, had found; join_error: why a join was planned without a table's size or without choosing
    files, where that was an error. metadata_error: why a table was loaded without its hidden column `_metadata`, if that was an
    error. partial: aggregates whose tasks gave partial rows; partial_error: why one was read as it was, where that was an error.
    one_task_error: why a small query was shuffled, where that was an error. driver_reads: small queries whose rows the driver's
    own Python read, without a job; driver_read_error: why one took a job after all, where that was an error. driver_writes:
    batch writes that the driver's own Python has planned.
    """

    installed: bool
    applied: int = 0
    backed_off: int = 0
    last_error: str | None = None
    last_scan: ScanReport | None = None
    columnar: int = 0
    columnar_error: str | None = None
    native: int = 0
    native_error: str | None = None
    driver: int = 0
    driver_error: str | None = None
    answered: int = 0
    answer_error: str | None = None
    filtered: int = 0
    join_error: str | None = None
    metadata_error: str | None = None
    partial: int = 0
    partial_error: str | None = None
    one_task_error: str | None = None
    driver_reads: int = 0
    driver_read_error: str | None = None
    driver_writes: int = 0


def install(spark: SparkSession, *formats: str) -> bool:
    """Add the rule to the session, unless it is there, and let it prune the formats (by default `pydelta`).

    Returns whether the rule is there. If not, a warning has said why and what to do, once a session. Rules of others are
    kept; if another library has overwritten the list since, the rule is added again and counts from zero.
    """
    try:
        _require_classic(spark)
        internals = SparkInternals(spark)
        rule = internals.pruning_rule()
        if rule is None:
            internals.require_links(*_NEEDED_PACKAGES)
            rule = internals.java_class(RULE).newInstance()
            rule.offerMetadata(metadata_schema())
            internals.add_optimizer_rule(rule)
            internals.change_source("pydelta", rule.askingDriver)
        for name in formats or ("pydelta",):
            rule.addFormat(name)
    except Exception as error:  # whatever a locked-down or foreign Spark answers, reading must go on
        warn_once(spark, _reason(error))
        return False
    _unavailable.pop(spark, None)
    return True


def installed_rule(spark: SparkSession) -> Any | None:
    """The rule itself, for the catalogs: what Java it is they know."""
    return SparkInternals(spark).pruning_rule()


def wanted_rows(spark: SparkSession, frame: DataFrame, option: str, value: str) -> Wanted:
    """Which rows of the scan that has this read option the frame wants; any, where the rule is not installed or off."""
    internals = SparkInternals(spark)
    rule = internals.pruning_rule()
    if rule is None:
        return Wanted(None)
    return Wanted.parse(rule.wantedRows(internals.optimized(frame), option, value))


def with_metadata_column(frame: DataFrame) -> DataFrame:
    """What `load` has made of a table, with the hidden column `_metadata` where the rule is installed.

    A table that has a column of this name stays as it is, and so do changes, views, and any other frame.
    """
    internals = SparkInternals(frame.sparkSession)
    rule = internals.pruning_rule()
    return frame if rule is None else internals.changed(frame, rule.withMetadata)


def with_columns_of_batches(stream: DataFrame) -> DataFrame:
    """What `readStream.load` has made of a table, so that its batches are read in the columns that they need."""
    internals = SparkInternals(stream.sparkSession)
    rule = internals.pruning_rule()
    return stream if rule is None else internals.changed(stream, rule.streamed)


def status(spark: SparkSession) -> PruningStatus:
    """What the rule has done in this session, and in clones of it such as Spark's streaming makes."""
    if spark in _unavailable:
        return PruningStatus(installed=False, last_error=_unavailable[spark])
    rule = None if is_connect(spark) else SparkInternals(spark).pruning_rule()
    if rule is None:
        return PruningStatus(installed=False)
    counts = json.loads(rule.status())
    return PruningStatus(**{**counts, "installed": True, "last_scan": _scan_report(counts["last_scan"])})


def compared_columns(spark: SparkSession) -> dict[str, dict[tuple[str, ...], int]]:
    """By paths of tables, as they were given to Spark: how many scans of this session compared each column. None over Connect."""
    rule = None if is_connect(spark) else SparkInternals(spark).pruning_rule()
    if rule is None:
        return {}
    tables = json.loads(rule.compared())
    return {path: {tuple(column["column"]): count for column, count in counts} for path, counts in tables.items()}


def metadata_schema() -> str:
    """The column `_metadata` as the only one of a schema, in JSON."""
    from delta_py.protocol.schema import StructType  # a session without the rule needs none of these
    from delta_py.scan.planning import metadata_scan_column
    from spark_plugin.convert import to_spark_schema

    return str(to_spark_schema(StructType((metadata_scan_column().logical,))).json())


def _scan_report(numbers: dict[str, int] | None) -> ScanReport | None:
    from delta_py.scan.planning import ScanReport  # costs more to import than a session that never asks should pay

    return None if numbers is None else ScanReport(**numbers)


def _require_classic(spark: SparkSession) -> None:
    if is_connect(spark):
        raise NotImplementedError("a Spark Connect client cannot add optimizer rules")


def _reason(error: Exception) -> str:
    """The error in one line. Py4J's own text says only that a call failed, and goes on with Java's stack."""
    text = reason_of(error)
    return " ".join(line.strip() for line in text.strip().splitlines()[:2])


def warn_once(spark: SparkSession, reason: str) -> None:
    """That the session goes without the rule. reason: one line."""
    is_known = spark in _unavailable
    _unavailable[spark] = reason
    if not is_known:
        _log.warning(
            "pydelta reads without column pruning in this session: %s. Rows are right, but every column and every file of a "
            "table is read. Name what a query needs by hand: .option('columns', 'a, b').option('filter', \"a > 1\").",
            reason,
        )
