"""Random changes of one table through Spark, compared with a plain list of rows: DELETE, UPDATE, MERGE, append and replaceWhere.

After each step the table's rows, its change feed, the counts in its history, the ids of its rows and the files in its folder
agree with the list. PYDELTA_SEED chooses other steps.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_py import DeltaTable as Reader
from delta_py import write_delta
from delta_py.log.history import history
from delta_py.protocol.actions import AddCDCFile, AddFile, parse_action
from delta_py.protocol.paths import commit_file_name
from delta_py.storage.local import LocalStore
from spark_plugin import DeltaTable
from tests.support.generators.dml_changes import After, Row, as_table, condition, counts, new_row, random_change
from tests.support.oracles.rows import difference
from tests.support.runs.sampling import sampled
from tests.support.runs.seeds import seed_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("plain_plans")

STEPS = 9
FEED, VECTORS = {"delta.enableChangeDataFeed": "true"}, {"delta.enableDeletionVectors": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
KINDS: dict[str, tuple[dict[str, str], str | None]] = {
    "vectors, feed": ({**VECTORS, **FEED}, None),
    "rewriting, feed, by part": (FEED, "part"),
    "vectors, row ids, mapped by name": ({**VECTORS, **TRACKED, **FEED, "delta.columnMapping.mode": "name"}, "part"),
    "rewriting, row ids, mapped by id": ({**TRACKED, "delta.columnMapping.mode": "id"}, None),
}


@dataclass
class Machine:
    """One table, and its expected rows."""

    spark: SparkSession
    root: Path
    random: random.Random
    properties: dict[str, str]
    partition_by: str | None
    rows: list[Row] = field(default_factory=list)
    next_id: int = 0
    version: int = -1
    log: list[str] = field(default_factory=list)
    row_ids: dict[int, int] = field(default_factory=dict)

    def fresh(self, count: int) -> list[Row]:
        """Rows with ids that the table never had."""
        self.next_id += count
        return [new_row(self.random, id) for id in range(self.next_id - count, self.next_id)]

    # ------------------------------------------------------------ steps

    def create(self) -> None:
        rows = self.fresh(30)
        by = self.partition_by
        data = as_table(rows)
        write_delta(str(self.root), data, partition_by=by, configuration=self.properties, max_records_per_file=8)
        self.done("create", After(rows, [("insert", row) for row in rows]), {})

    def append(self) -> None:
        rows = self.fresh(self.random.randrange(1, 6))
        self.spark.createDataFrame(as_table(rows)).write.format("pydelta").mode("append").save(str(self.root))
        self.done("append", After([*self.rows, *rows], [("insert", row) for row in rows]), {})

    def replace_where(self) -> None:
        when = condition(self.random)
        rows = [row for row in self.fresh(5) if when.holds(row)]
        after = After([*(row for row in self.rows if not when.holds(row)), *rows])
        after.feed = [*(("delete", row) for row in self.rows if when.holds(row)), *(("insert", row) for row in rows)]
        writer = self.spark.createDataFrame(as_table(rows)).write.format("pydelta").mode("overwrite")
        writer.option("replaceWhere", when.text()).save(str(self.root))
        self.done(f"replaceWhere {when.text()}", after, {})

    def change(self) -> None:
        chosen = random_change(self.random, self.rows)
        after = chosen.after(self.rows)
        self.log.append(str(chosen))
        chosen.run(DeltaTable, self.spark, str(self.root))
        self.done(str(chosen), after, counts(chosen, after))

    def step(self) -> None:
        self.random.choice([self.append, self.replace_where, *[self.change] * 6])()

    # ------------------------------------------------------------ what must hold

    def done(self, what: str, after: After, metrics: dict[str, int] | Any) -> None:
        self.log.append(what)
        self.rows = after.rows
        before, self.version = self.version, Reader(str(self.root)).version
        assert self.version - before in ((0, 1) if not after.feed else (1,)), self.log
        self.check_rows()
        if self.version > before:
            self.check_feed(after)
            self.check_history(metrics)
        self.check_files()
        if "delta.enableRowTracking" in self.properties:
            self.check_row_ids()

    def check_rows(self) -> None:
        table = Reader(str(self.root))
        table.snapshot.check_integrity()
        assert (problem := difference(as_table(self.rows), table.to_arrow())) is None, f"{problem} after {self.log}"

    def check_feed(self, after: After) -> None:
        if "delta.enableChangeDataFeed" not in self.properties:
            return
        feed = Reader(str(self.root)).changes(starting_version=self.version).read_all()
        expected = after.feed_table()
        problem = difference(expected, feed.select(expected.column_names))
        assert problem is None, f"{problem} in the feed after {self.log}"

    def check_history(self, metrics: dict[str, int]) -> None:
        (last,) = history(LocalStore(str(self.root)), 1).to_pylist()
        recorded = dict(last["operationMetrics"] or {})
        assert {name: recorded.get(name) for name in metrics} == {name: str(n) for name, n in metrics.items()}, self.log

    def check_files(self) -> None:
        """A commit names every file in the folder."""
        named: set[str] = set()
        for version in range(self.version + 1):
            lines = (self.root / "_delta_log" / commit_file_name(version)).read_bytes().splitlines()
            named.update(_named(map(parse_action, lines)))
        paths = (str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())
        unnamed_files = {path for path in paths if not path.startswith("_delta_log/") and not path.endswith(".crc")} - named
        assert not unnamed_files, f"{unnamed_files} after {self.log}"

    def check_row_ids(self) -> None:
        """Rows keep their ids (only rows with a key are followed), and no two have the same."""
        frame = self.spark.read.format("pydelta").option("metadataColumn", "true").load(str(self.root))
        id_rows = frame.select("id", "_metadata.row_id").toArrow().to_pylist()
        assert len({row["row_id"] for row in id_rows}) == len(id_rows), self.log
        for row in id_rows:
            if row["id"] is not None:
                assert self.row_ids.setdefault(row["id"], row["row_id"]) == row["row_id"], self.log
        read_ids = {row["id"] for row in id_rows}
        self.row_ids = {id: row_id for id, row_id in self.row_ids.items() if id in read_ids}


def _named(actions: Iterable[Any]) -> Iterable[str]:
    for action in actions:
        if isinstance(action, AddFile | AddCDCFile):
            yield action.path
        if isinstance(action, AddFile) and action.deletion_vector is not None and action.deletion_vector.path is not None:
            yield action.deletion_vector.path


@pytest.mark.parametrize("kind", sampled(KINDS, 2))
def test_random_changes_affect_a_table_like_a_list(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    properties, partition_by = KINDS[kind]
    seed = seed_of(kind)
    machine = Machine(spark, tmp_path / "table", random.Random(seed), properties, partition_by, log=[f"seed {seed}"])
    machine.create()
    for _ in range(STEPS):
        machine.step()
