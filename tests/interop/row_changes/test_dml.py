"""The same random DELETE, UPDATE and MERGE by pydelta and by delta-spark, each on a copy of one table: rows, change feed, row
ids, and counts in the history are equal, and each reads the other's table.

Each step begins with two copies of the table as one of the two left it. So both have the same files, and each continues from what
the other wrote. PYDELTA_SEED chooses other steps.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from tests.support.generators.dml_changes import After, Change, Merge, Row, Update, as_table, counts, new_row, random_change
from tests.support.oracles.rows import difference
from tests.support.runs.seeds import seed_of

STEPS = 4
SIDES = ("ours", "theirs")
# Our MERGE does not rewrite a file in which no row changes; delta-spark does.
FEWER = ("numTargetFilesRemoved", "numTargetRowsCopied", "numOutputRows")
FEED, VECTORS = {"delta.enableChangeDataFeed": "true"}, {"delta.enableDeletionVectors": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
KINDS: dict[str, tuple[dict[str, str], str | None]] = {
    "rewriting": ({}, None),
    "rewriting, feed, by part": (FEED, "part"),
    "vectors, by part": (VECTORS, "part"),
    "vectors, feed": ({**VECTORS, **FEED}, None),
    "vectors, feed, row ids, mapped by name, by part": (
        {**VECTORS, **FEED, **TRACKED, "delta.columnMapping.mode": "name"},
        "part",
    ),
    "rewriting, feed, row ids, mapped by id": ({**FEED, **TRACKED, "delta.columnMapping.mode": "id"}, None),
}
# Times and bytes differ. So does the number of files with new rows: Spark writes one per task.
OWN = ("Ms", "Bytes", "FilesAdded", "AddedFiles", "ChangeFiles")


@dataclass
class Both:
    """A table, and copies of it on which both make the same change. rows: its expected rows. last: its current place."""

    spark: SparkSession
    folder: Path
    random: random.Random
    properties: Mapping[str, str]
    tables: Mapping[str, Any]
    rows: list[Row] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    last: Path = Path()

    def create(self, partition_by: str | None) -> None:
        self.rows = [new_row(self.random, id) for id in range(40)]
        self.last = self.folder / "first"
        data = as_table(self.rows)
        write_delta(str(self.last), data, partition_by=partition_by, configuration=self.properties, max_records_per_file=8)

    def step(self, number: int) -> None:
        change = random_change(self.random, self.rows)
        after = change.after(self.rows)
        before = PlainTable(str(self.last)).version
        paths = {side: str(self.folder / f"{number} {side}") for side in SIDES}
        self.log.append(str(change))
        for side, path in paths.items():
            shutil.copytree(self.last, path)
            change.run(self.tables[side], self.spark, path)
        tables = {side: PlainTable(path) for side, path in paths.items()}
        assert tables["ours"].version == tables["theirs"].version, self.log
        self.check_rows(paths, after)
        if tables["ours"].version > before:
            self.check_metrics(tables, change, after)
            self.check_feeds(paths, after)
        if TRACKED.items() <= self.properties.items():
            self.check_row_ids(paths)
        self.rows, self.last = after.rows, Path(paths[self.random.choice(SIDES)])

    def check_rows(self, paths: Mapping[str, str], after: After) -> None:
        expected = as_table(after.rows)
        for side, path in paths.items():
            PlainTable(path).snapshot.check_integrity()
            assert (problem := difference(expected, PlainTable(path).to_arrow())) is None, f"{side}: {problem} after {self.log}"
        theirs = self.spark.read.format("delta").load(paths["ours"]).toArrow()
        assert (problem := difference(expected, theirs)) is None, f"delta-spark reads of ours: {problem} after {self.log}"

    def check_metrics(self, tables: Mapping[str, PlainTable], change: Change, after: After) -> None:
        last = {side: table.history(limit=1).to_pylist()[0] for side, table in tables.items()}
        assert last["ours"]["operation"] == last["theirs"]["operation"]
        ours, theirs = (dict(last[side]["operationMetrics"]) for side in SIDES)
        assert counts(change, after).items() <= {name: int(value) for name, value in ours.items()}.items(), self.log
        assert ours.keys() == theirs.keys(), self.log
        different = {
            name: (ours[name], theirs[name])
            for name in ours
            if not any(word in name for word in OWN) and ours[name] != theirs[name]
        }
        if isinstance(change, Merge):
            for name in FEWER:
                less, more = different.pop(name, ("0", "0"))
                assert int(less) <= int(more), (name, self.log)
        if isinstance(change, Update) and change.condition is None:  # delta-spark does not count the vectors of replaced files
            assert different.pop("numDeletionVectorsRemoved", ("0", "0"))[1] == "0"
        assert not different, (different, self.log)

    def check_feeds(self, paths: Mapping[str, str], after: After) -> None:
        """Both feeds of both tables."""
        if not FEED.items() <= self.properties.items():
            return
        expected = after.feed_table()
        for side, path in paths.items():
            table = PlainTable(path)
            feed = table.changes(starting_version=table.version).read_all().select(expected.column_names)
            assert (problem := difference(expected, feed)) is None, f"{side}: {problem} in the feed after {self.log}"
        reader = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", table.version)
        feed = reader.load(paths["ours"]).select(expected.column_names).toArrow()
        assert (problem := difference(expected, feed)) is None, (
            f"delta-spark reads of ours: {problem} in the feed after {self.log}"
        )

    def check_row_ids(self, paths: Mapping[str, str]) -> None:
        """Rows of a key keep the same ids in both; ids of new rows depend on the layout of files."""
        columns = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
        ids_by_key = {}
        for side, path in paths.items():
            rows = self.spark.read.format("delta").load(path).select(*columns).collect()
            assert len({row["row_id"] for row in rows}) == len(rows), (side, self.log)
            ids_by_key[side] = {row["id"]: (row["row_id"], row["row_commit_version"]) for row in rows if row["id"] is not None}
        old = {row["id"] for row in self.rows}
        assert {i: v for i, v in ids_by_key["ours"].items() if i in old} == {
            i: v for i, v in ids_by_key["theirs"].items() if i in old
        }
        assert {i: v[1] for i, v in ids_by_key["ours"].items()} == {i: v[1] for i, v in ids_by_key["theirs"].items()}, self.log


@pytest.mark.parametrize("kind", KINDS)
def test_random_changes_are_what_delta_spark_makes_of_them(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    theirs = pytest.importorskip("delta.tables").DeltaTable
    properties, partition_by = KINDS[kind]
    seed = seed_of(kind)
    tables = {"ours": DeltaTable, "theirs": theirs}
    both = Both(spark, tmp_path, random.Random(seed), properties, tables, log=[f"seed {seed}"])
    both.create(partition_by)
    for number in range(STEPS):
        both.step(number)


ROWS = "SELECT id, int(id) AS n FROM range(4)"
TRANSACTIONS: dict[str, Callable[[Any, SparkSession], object]] = {
    "delete": lambda table, spark: table.delete("n = 2"),
    "update": lambda table, spark: table.update("n = 2", {"n": "n + 1"}),
    "update of nothing": lambda table, spark: table.update("n > 100", {"n": "1"}),
    "merge": lambda table, spark: merged(table, spark).whenMatchedUpdate("s.k < 4", {"n": "t.n + 1"}).execute(),
    "merge of nothing": lambda table, spark: merged(table, spark).whenMatchedDelete("s.k > 100").execute(),
}
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
IDEMPOTENT = {
    "spark.databricks.delta.write.txnAppId": "job",
    TXN_VERSION: "7",
    "spark.databricks.delta.write.txnVersion.autoReset.enabled": "true",
}


def merged(table: Any, spark: SparkSession) -> Any:
    return table.alias("t").merge(spark.range(3, 5).toDF("k").alias("s"), "t.id = s.k")


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_session_transactions_are_recorded_as_by_delta_spark(
    spark: SparkSession, tmp_path: Path, conf: Callable[[Mapping[str, str]], None], name: str
) -> None:
    """The same step twice, with the same application version: the second does nothing, whatever the first did."""
    records, tables = {}, {"ours": DeltaTable, "theirs": pytest.importorskip("delta.tables").DeltaTable}
    for side in SIDES:
        spark.sql(ROWS).coalesce(1).write.format("delta").save(str(tmp_path / side))
    for side, of in tables.items():
        path, commits = str(tmp_path / side), []
        for _ in range(2):
            conf(IDEMPOTENT)
            TRANSACTIONS[name](of.forPath(spark, path), spark)
            recorded = PlainTable(path).snapshot.set_transactions().get("job")
            commits.append((PlainTable(path).version, recorded and recorded.version, spark.conf.get(TXN_VERSION, None)))
        records[side] = commits, sorted(map(tuple, spark.read.format("delta").load(path).collect()))
    assert records["ours"] == records["theirs"]


def test_delete_without_matches_records_the_session_transaction(
    spark: SparkSession, tmp_path: Path, conf: Callable[[Mapping[str, str]], None]
) -> None:
    """delta-spark does not record it, so it also takes later rows when the step runs again."""
    records, tables = {}, {"ours": DeltaTable, "theirs": pytest.importorskip("delta.tables").DeltaTable}
    for side, of in tables.items():
        path, versions = str(tmp_path / side), []
        write_delta(path, pa.table({"id": pa.array([1, 2], pa.int64())}))
        for settings in ({}, IDEMPOTENT):
            conf(settings)
            of.forPath(spark, path).delete("id > 100")
            versions.append(PlainTable(path).version)
        write_delta(path, pa.table({"id": pa.array([700], pa.int64())}), mode="append")
        conf(IDEMPOTENT)
        of.forPath(spark, path).delete("id > 100")
        records[side] = versions, sorted(PlainTable(path).to_arrow()["id"].to_pylist())
        for name in IDEMPOTENT:
            spark.conf.unset(name)
    assert records == {"ours": ([0, 1], [1, 2, 700]), "theirs": ([0, 0], [1, 2])}
