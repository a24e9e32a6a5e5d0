"""Whether the newest jar works in a session of a newer Spark than it was compiled for. `register` asks it then, and only then.

    switch_off_what_fails(spark, problems)

The classes of each part must fit this Spark (LinkCheck.java says which do not), and a tiny query that takes the part must give
the rows that Spark reads without it. A part that fails is switched off in the session by its setting, and one warning names it.
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

from spark_plugin.options.settings import conf
from spark_plugin.pyspark_internals import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("pydelta")


Query: TypeAlias = "Callable[[DataFrame], DataFrame]"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the Java that a setting switches off. package: of its classes. query: one that takes the part, over the table."""

    name: str
    package: str
    setting: str
    query: Query


def _filtered(table: DataFrame) -> DataFrame:
    return table.filter("id > 2 AND text LIKE 'text%'").select("text")


def _whole(table: DataFrame) -> DataFrame:
    return table.filter("id <> 3")


def _counted(table: DataFrame) -> DataFrame:
    return table.selectExpr("count(*) AS n", "max(id) AS most", "min(day) AS least")


def _summed(table: DataFrame) -> DataFrame:
    return table.groupBy("part").agg({"id": "sum", "amount": "max"})


def _joined(table: DataFrame) -> DataFrame:
    return table.join(table.filter("id < 2").selectExpr("part", "text AS mark"), "part")


_PRUNING = "spark.pydelta.pruning.enabled"
_COLUMNAR = "spark.pydelta.columnarReader.enabled"
_NATIVE = "spark.pydelta.nativeReader.enabled"
PARTS = (
    Part("column pruning", "rule", _PRUNING, _filtered),
    Part("the columnar reader", "readers", _COLUMNAR, _whole),
    Part("Spark's Parquet reader for simple files", "parquet", _NATIVE, _whole),
    Part("answers from the log", "aggregates", "spark.pydelta.logAnswers.enabled", _counted),
    Part("partial aggregates", "aggregates", "spark.pydelta.partialAggregates.enabled", _summed),
    Part("the planning of joins", "joins", "spark.pydelta.joinPlanning.enabled", _joined),
    Part("small queries in one task", "rule", "spark.pydelta.oneTask.enabled", _summed),
    Part("planning by the driver's Python", "driver", "spark.pydelta.driverPlanning.enabled", _filtered),
    Part("reads by the driver's Python", "driver", "spark.pydelta.driverReads.enabled", _filtered),
)

_tested: WeakSet[SparkSession] = WeakSet()


def switch_off_what_fails(spark: SparkSession, problems: Mapping[str, Sequence[str]]) -> None:
    """problems: what LinkCheck.java has found, by package. Done once a session."""
    if spark in _tested:
        return
    _tested.add(spark)
    with tempfile.TemporaryDirectory(prefix="pydelta-self-test-") as directory:
        table = str(Path(directory) / "table")
        _make_table(table)
        reasons = [(part, problems[part.package][0]) for part in PARTS if part.package in problems]
        if _can_read(spark, table):
            fitting = [part for part in PARTS if part.package not in problems]
            reasons += [(part, reason) for part in fitting if (reason := _row_failure(spark, table, part)) is not None]
    for part, _ in reasons:
        spark.conf.set(part.setting, "false")
    if reasons:
        _log.warning(
            "Parts of pydelta do not work with Spark %s, which is newer than this release, and are switched off in this session. "
            "Rows are right without them. %s",
            spark.version,
            "; ".join(f"{part.name} ({part.setting}): {reason}" for part, reason in reasons),
        )
    else:
        _log.info("This release of pydelta is older than Spark %s, and its self-test has passed there.", spark.version)


def _can_read(spark: SparkSession, path: str) -> bool:
    """Whether the session reads the table without any part. Executors and servers on other machines do not see it, and no rows
    are compared then."""
    try:
        _rows(spark, path, _whole, _all_off())
    except Exception as error:  # it says nothing of the parts
        _log.info("The self-test compares no rows, as this session does not see files of this machine: %s", reason_of(error))
        return False
    return True


def _row_failure(spark: SparkSession, path: str, part: Part) -> str | None:
    """Why a part does not work, in one line; None if it does."""
    needed = {_PRUNING, part.setting, *([_COLUMNAR] if part.setting == _NATIVE else [])}
    try:
        expected = _rows(spark, path, part.query, _all_off())
        rows = _rows(spark, path, part.query, {**_all_off(), **dict.fromkeys(needed, "true")})
    except Exception as error:  # whatever a Spark that nobody knows raises, the session goes on without the part
        return reason_of(error).strip().partition("\n")[0]
    return None if rows == expected else f"it gives {rows[:3]} and not {expected[:3]}"


def _all_off() -> dict[str, str]:
    return {part.setting: "false" for part in PARTS}


def _rows(spark: SparkSession, path: str, query: Query, settings: Mapping[str, str]) -> list[str]:
    with _settings(spark, settings):
        return sorted(map(str, query(spark.read.format("pydelta").load(path)).collect()))


def _make_table(path: str) -> None:
    """Two partitions of two files each, with values of several types, and a deleted row."""
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
    before = {name: conf(spark, name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            if known is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, known)
