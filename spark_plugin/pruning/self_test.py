"""Checks whether the newest jar works in a session of a Spark newer than it was compiled for. `register` calls it only then.

    switch_off_what_fails(spark, problems)

The classes of each part must fit this Spark (LinkCheck.java says which do not). A tiny query that uses the part must return the
rows that Spark reads without it. A part that fails is disabled in the session by its name, and one warning says so.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakSet

from spark_plugin.internals.pyspark_internals import reason_of
from spark_plugin.options.roads import DISABLE_CONF, DRIVER_PLANNING, PREFER_CONF, PRUNING, Road
from spark_plugin.options.settings import conf, disable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("pydelta")


Query: TypeAlias = "Callable[[DataFrame], DataFrame]"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the Java code that a session can disable.

    name: its name in options/roads.py. package: the Java package of its classes, for which LinkCheck.java reports problems.
    query: makes of the test table a query that uses the part. needs: names of other parts that must be enabled too; pruning
    always is."""

    name: str
    package: str
    query: Query
    needs: tuple[str, ...] = ()


# Queries over the table of _make_table. Each makes the rule take one of the roads in PARTS.


def _filtered(table: DataFrame) -> DataFrame:
    return table.filter("id > 2 AND text LIKE 'text%'").select("text")


def _whole(table: DataFrame) -> DataFrame:
    return table.filter("id <> 3")


def _counted(table: DataFrame) -> DataFrame:
    return table.filter("part = 0").selectExpr("count(*) AS n", "max(id) AS most", "min(day) AS least")


def _summed(table: DataFrame) -> DataFrame:
    return table.groupBy("part").agg({"id": "sum", "day": "max"})


def _sorted(table: DataFrame) -> DataFrame:
    return table.filter("part = 0 AND id < 4").sort("amount")


def _joined(table: DataFrame) -> DataFrame:
    parts = table.sparkSession.range(1).filter("id < 2")
    return table.join(parts.selectExpr("CAST(id AS INT) AS part"), "part")


PARTS = (
    Part(PRUNING, "rule", _filtered),
    Part(Road.COLUMNS, "readers", _whole),
    Part(Road.PARQUET, "parquet", _whole, needs=(Road.COLUMNS,)),
    Part(Road.LOG, "aggregates", _counted),
    Part(Road.PARTIAL, "aggregates", _summed),
    Part(Road.JOINS, "joins", _joined),
    Part(Road.ONE_TASK, "rule", _sorted),
    Part(DRIVER_PLANNING, "driver", _filtered),
    Part(Road.DRIVER, "driver", _filtered, needs=(DRIVER_PLANNING,)),
)

_tested: WeakSet[SparkSession] = WeakSet()


def switch_off_what_fails(spark: SparkSession, problems: Mapping[str, Sequence[str]]) -> None:
    """Test each part once in a session, and disable those that fail. problems: what LinkCheck.java reported about classes that do
    not fit this Spark, by package."""
    if spark in _tested:
        return
    _tested.add(spark)
    with tempfile.TemporaryDirectory(prefix="pydelta-self-test-") as directory:
        table = str(Path(directory) / "table")
        _make_table(table)
        # A part whose classes do not fit fails without a query. Only the other parts run their queries.
        reasons = [(part, problems[part.package][0]) for part in PARTS if part.package in problems]
        if _can_read(spark, table):
            linked_parts = [part for part in PARTS if part.package not in problems]
            failures = [(part, _row_failure(spark, table, part)) for part in linked_parts]
            reasons += [(part, reason) for part, reason in failures if reason is not None]
    if reasons:
        disable(spark, [part.name for part, _ in reasons])
        _log.warning(
            "Parts of pydelta do not work with Spark %s, which is newer than this release. This session has them in %s now, and "
            "rows are right without them. %s",
            spark.version,
            DISABLE_CONF,
            "; ".join(f"{part.name}: {reason}" for part, reason in reasons),
        )
    else:
        _log.info("This release of pydelta is older than Spark %s, and its self-test has passed there.", spark.version)


def _can_read(spark: SparkSession, path: str) -> bool:
    """Return whether the session reads the table without any part. Executors and servers on other machines do not see the table;
    then no rows are compared."""
    try:
        _rows(spark, path, _whole, enabled=())
    except Exception as error:  # this error says nothing about the parts
        _log.info("The self-test compares no rows, as this session does not see files of this machine: %s", reason_of(error))
        return False
    return True


def _row_failure(spark: SparkSession, path: str, part: Part) -> str | None:
    """Return in one line why a part does not work, or None if it works: its query returns the same rows with the part and with
    all parts disabled."""
    try:
        expected = _rows(spark, path, part.query, enabled=())
        rows = _rows(spark, path, part.query, enabled=(PRUNING, part.name, *part.needs))
    except Exception as error:  # whatever an unknown Spark raises, the session continues without the part
        return reason_of(error).strip().partition("\n")[0]
    return None if rows == expected else f"it gives {rows[:3]} and not {expected[:3]}"


def _rows(spark: SparkSession, path: str, query: Query, *, enabled: Sequence[str]) -> list[str]:
    """Read the rows with only these parts enabled. PREFER_CONF makes the read use them although the table is small (a Road is
    a way in which rows are read, see ARCHITECTURE.md)."""
    disabled = ",".join(part.name for part in PARTS if part.name not in enabled)
    with _settings(spark, {DISABLE_CONF: disabled, PREFER_CONF: f"{Road.PARTIAL},{Road.PARQUET}"}):
        return sorted(map(str, query(spark.read.format("pydelta").load(path)).collect()))


def _make_table(path: str) -> None:
    """Write a table of two partitions with two files each, values of several types, and a deleted row."""
    import pyarrow as pa

    from delta_py import DeltaTable, write_delta

    for first in (0, 4):
        ids = range(first, first + 4)
        data = {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array([number % 2 for number in ids], pa.int32()),
            "text": pa.array([None if number == 2 else f"text {number}" for number in ids]),
            "day": pa.array(ids, pa.int32()).cast(pa.date32()),
            "amount": pa.array([number / 4 for number in ids], pa.float64()),
        }
        configuration = {"delta.enableDeletionVectors": "true"}
        if first == 0:
            write_delta(path, pa.table(data), partition_by=["part"], configuration=configuration)
        else:
            write_delta(path, pa.table(data), mode="append")
    DeltaTable(path).delete("id = 5")


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set these settings during the block, and restore the original ones after it."""
    original_values = {name: conf(spark, name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, original_value in original_values.items():
            if original_value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, original_value)
