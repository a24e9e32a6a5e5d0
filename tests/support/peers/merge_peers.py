"""One MERGE by pydelta and by delta-spark, each on a copy of one table, and whether both did the same.

    check(spark, folder, Case(build, source, ...))

The two sides are their classes DeltaTable; `build` adds the clauses to the builder of either. Rows, schema, the result of
execute(), the change feed, the history's counts, and the conditions of errors are compared.
"""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from tests.support.oracles.rows import difference

COLUMNS = "k bigint, v string, n int"
FLAT = pa.table(
    {"k": pa.array([1, 2, 3, None], pa.int64()), "v": ["a", "b", "c", "z"], "n": pa.array([10, 20, 30, 0], pa.int32())}
)
SOURCE = ([(2, "B", 200), (3, "C", 300), (4, "D", 400), (None, "N", 1)], COLUMNS)
TWICE = ([(2, "B", 200), (2, "C", 300), (4, "D", 400)], COLUMNS)
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
COUNTS = (
    "numSourceRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsMatchedUpdated",
    "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsMatchedDeleted",
    "numTargetRowsNotMatchedBySourceDeleted",
    "numTargetRowsCopied",
    "numTargetFilesRemoved",
    "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsRemoved",
    "numTargetDeletionVectorsUpdated",
    "numOutputRows",
)


@dataclass(frozen=True)
class Case:
    """build: adds the clauses to a builder of either side. source: rows and their columns, SQL text, or a function that makes the
    frame. table: its rows, or SQL statements that make it, with {table} for it. properties: of a table of rows. settings: of the
    session. differs: differences with a reason: a count, "blind" or "error", with our value and delta-spark's."""

    build: Callable[[Any], Any]
    source: tuple[list[Any], str] | str | Callable[[SparkSession, str], DataFrame] = SOURCE
    condition: str = "t.k = s.k"
    table: pa.Table | Sequence[str] = field(default_factory=lambda: FLAT)
    properties: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    differs: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def upsert(builder: Any) -> Any:
    return builder.whenMatchedUpdateAll().whenNotMatchedInsertAll()


def evolving(builder: Any) -> Any:
    return upsert(builder.withSchemaEvolution())


def check(spark: SparkSession, folder: Path, case: Case, theirs: Any) -> dict[str, Any]:
    """Asserts that both do the same; returns the result. theirs: delta-spark's DeltaTable."""
    first = _created(spark, folder, case)
    tables = {"theirs": theirs, "ours": DeltaTable}
    paths = {side: str(folder / side) for side in tables}
    outcomes = {}
    with _set(spark, case.settings):
        for side, path in paths.items():
            shutil.copytree(first, path)
            outcomes[side] = outcome(tables[side], spark, path, case)
    for name, expected in case.differs.items():
        assert tuple(outcomes[side].pop(name, None) for side in ("ours", "theirs")) == expected, (name, outcomes)
    if "error" in case.differs:
        return outcomes["ours"]
    assert outcomes["ours"] == outcomes["theirs"], f"ours: {outcomes['ours']}; theirs: {outcomes['theirs']}"
    since = PlainTable(str(first)).version + 1
    assert_same_tables(*(PlainTable(paths[side]) for side in ("ours", "theirs")), since=since)
    return outcomes["ours"]


def outcome(of: Any, spark: SparkSession, path: str, case: Case) -> dict[str, Any]:
    """The result of one side. of: its DeltaTable."""
    before, files = PlainTable(path).version, files_of(path)
    try:
        built = case.build(of.forPath(spark, path).alias("t").merge(_source(spark, path, case).alias("s"), case.condition))
        result = built.execute().first().asDict()
    except (PySparkException, Py4JJavaError) as error:
        if of is DeltaTable:
            assert files_of(path) == files, "files were left behind"
        return {"error": condition_of(error), "version": PlainTable(path).version}
    facts = {"result": result, "version": PlainTable(path).version}
    if facts["version"] > before:
        commit = PlainTable(path).history(limit=1).to_pylist()[0]
        metrics = dict(commit["operationMetrics"])
        facts.update({name: metrics.get(name) for name in COUNTS})
        facts["names"] = {*metrics} - {"numTargetChangeFileBytes"}
        facts["blind"] = commit["isBlindAppend"]
    return facts


def assert_same_tables(ours: PlainTable, theirs: PlainTable, *, since: int) -> None:
    """The same schema, rows, and change feed from a version on, if there are such versions."""
    assert ours.schema() == theirs.schema()
    assert (problem := difference(theirs.to_arrow(), ours.to_arrow())) is None, problem
    if "delta.enableChangeDataFeed" in ours.snapshot.metadata.configuration and ours.version >= since:
        feeds = [table.changes(starting_version=since).read_all().drop_columns(["_commit_timestamp"]) for table in (theirs, ours)]
        assert (problem := difference(*feeds)) is None, problem


def files_of(path: str) -> set[str]:
    root = Path(path)
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file() and not file.name.endswith(".crc")}


def _created(spark: SparkSession, folder: Path, case: Case) -> Path:
    """The table before the MERGE; a table from SQL is made once per session."""
    if isinstance(case.table, pa.Table):
        path = folder / "first"
        write_delta(str(path), case.table, configuration=case.properties)
        return path
    path = folder.parent / f"first-{zlib.crc32(repr(case.table).encode()):08x}"
    if not path.exists():
        begun = path.with_suffix(".begun")  # a table that fails halfway is not used
        for statement in case.table:
            spark.sql(statement.format(table=f"delta.`{begun}`"))
        begun.rename(path)
    return path


def _source(spark: SparkSession, path: str, case: Case) -> DataFrame:
    if callable(case.source):
        return case.source(spark, path)
    return spark.sql(case.source) if isinstance(case.source, str) else spark.createDataFrame(*case.source)


def condition_of(error: Exception) -> str | None:
    """The condition of the error. An error of a task only has it in the text, and so does an error for which PySpark cannot look
    up delta-spark's text."""
    looked_up = re.search(r"Cannot find main error class '(\w+)'", str(error))
    if looked_up is None and isinstance(error, PySparkException) and error.getCondition():
        return error.getCondition()
    named = looked_up or re.search(r"\[([A-Z][A-Z_.0-9]+)\]", str(error))
    return named and named.group(1)


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
