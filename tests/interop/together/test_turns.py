"""delta-spark and delta_py change one table in turns, in every way that each of them supports; both read the same after each
turn.

delta_py writes its turns without Spark. The tables differ by their features; the turns are the same for all.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable, write_delta
from delta_py.errors import InvariantViolationError
from tests.support.oracles.rows import difference

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.int32()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("nested", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
    ]
)


def rows(*ids: int, part: int | None = None) -> pa.Table:
    new_rows = [
        {
            "id": i,
            "part": i % 3 if part is None else part,
            "name": None if i % 4 == 3 else f"näme {i}",
            "price": Decimal(i) / 4,
            "at": dt.datetime(2024, 1, 1, 12, 30, microsecond=123456, tzinfo=dt.UTC) + dt.timedelta(days=i),
            "nested": None if i % 5 == 4 else {"a": i, "b": ["x", None]},
        }
        for i in ids
    ]
    return pa.Table.from_pylist(new_rows, schema=SCHEMA)


@dataclass(frozen=True)
class Peers:
    """One table, and the two libraries that write to it."""

    spark: SparkSession
    path: str

    def theirs(self, data: pa.Table, mode: str = "append", **options: Any) -> None:
        self.spark.createDataFrame(data).write.format("delta").mode(mode).options(**options).save(self.path)

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.format(table=f"delta.`{self.path}`")).collect()

    def ours(self, data: pa.Table, mode: str = "append", **options: Any) -> int:
        return write_delta(self.path, data, mode=mode, **options)

    def read_theirs(self, **options: Any) -> pa.Table:
        return self.spark.read.format("delta").options(**options).load(self.path).toArrow()

    def check_newest(self, turn: str) -> None:
        table = DeltaTable(self.path)
        table.snapshot.check_integrity()
        theirs = self.read_theirs()
        assert theirs.column_names == table.schema().names, turn
        assert difference(theirs, table.to_arrow()) is None, turn
        condition = "part = 1 AND id > 6"
        matching_rows = self.spark.read.format("delta").load(self.path).filter(condition).toArrow()
        assert difference(matching_rows, table.to_arrow(filter=condition)) is None, turn

    def check_all_versions(self) -> None:
        for version in range(DeltaTable(self.path).version + 1):
            theirs = self.read_theirs(versionAsOf=version)
            assert difference(theirs, DeltaTable(self.path, version=version).to_arrow()) is None, version

    def check_changes(self, first: int, last: int) -> None:
        theirs = self.read_theirs(readChangeFeed="true", startingVersion=first, endingVersion=last)
        ours = DeltaTable(self.path).changes(starting_version=first, ending_version=last).read_all()
        assert difference(theirs, ours.select(theirs.column_names)) is None

    def check_row_ids(self) -> None:
        columns = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
        theirs = self.spark.read.format("delta").load(self.path).select(*columns).toArrow()
        ours = self.spark.read.format("pydelta").option("metadataColumn", "true").load(self.path).select(*columns).toArrow()
        assert difference(theirs, ours) is None
        assert len(set(theirs["row_id"].to_pylist())) == theirs.num_rows


Turn: TypeAlias = Callable[[Peers], object]


def widened(*ids: int) -> pa.Table:
    return rows(*ids).append_column("more", pa.array([f"more {i}" for i in ids]))


MERGE = """
    MERGE INTO {table} t USING (SELECT id, cast(id % 3 AS int) AS part FROM range(20, 26)) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET name = 'merged'
    WHEN NOT MATCHED THEN INSERT (id, part, name) VALUES (s.id, s.part, 'inserted')
"""
TURNS: dict[str, Turn] = {
    "theirs: append": lambda t: t.theirs(rows(*range(6, 12))),
    "ours: replaceWhere on rows": lambda t: t.ours(rows(4, 8), "overwrite", replace_where="id % 4 = 0 AND id > 2"),
    "theirs: delete": lambda t: t.sql("DELETE FROM {table} WHERE id IN (1, 7, 8)"),
    "ours: append": lambda t: t.ours(rows(*range(12, 18)), max_records_per_file=4),
    "theirs: update": lambda t: t.sql("UPDATE {table} SET name = 'updated' WHERE id IN (2, 13)"),
    "ours: replaceWhere on a partition": lambda t: t.ours(rows(30, 33), "overwrite", replace_where="part = 0"),
    "theirs: optimize": lambda t: t.sql("OPTIMIZE {table}"),
    "ours: new column": lambda t: t.ours(widened(18, 19), merge_schema=True),
    "theirs: delete of ours": lambda t: t.sql("DELETE FROM {table} WHERE id IN (18, 14)"),
    "ours: transaction": lambda t: t.ours(rows(20, 21, 22), txn_app_id="app", txn_version=5),
    "theirs: transaction that is recorded": lambda t: t.theirs(rows(99), txnAppId="app", txnVersion="5"),
    "theirs: transaction": lambda t: t.theirs(rows(23), txnAppId="app", txnVersion="6"),
    "ours: transaction that is recorded": lambda t: t.ours(rows(99), txn_app_id="app", txn_version=6),
    "theirs: merge": lambda t: t.sql(MERGE),
    "ours: replaceWhere on merged rows": lambda t: t.ours(widened(25), "overwrite", replace_where="id IN (24, 25)"),
    "theirs: replaceWhere": lambda t: t.theirs(widened(40), "overwrite", replaceWhere="id = 40 OR id = 22"),
    "ours: partitions of the data": lambda t: t.ours(rows(50, 53), "overwrite", partition_overwrite_mode="dynamic"),
    "theirs: new column": lambda t: t.theirs(widened(60).append_column("last", pa.array([1])), mergeSchema="true"),
    "ours: append without the new columns": lambda t: t.ours(rows(61, 62)),
    "theirs: partitions of the data": lambda t: t.theirs(widened(70), "overwrite", partitionOverwriteMode="dynamic"),
    "ours: overwrite": lambda t: t.ours(rows(*range(80, 86)), "overwrite"),
    "theirs: delete of a few": lambda t: t.sql("DELETE FROM {table} WHERE id = 81"),
    "ours: last": lambda t: t.ours(rows(90), user_metadata="last"),
}


@dataclass(frozen=True)
class Kind:
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()


@pytest.fixture(scope="module", autouse=True)
def small_states(spark: SparkSession) -> Iterator[None]:
    """Otherwise delta-spark rebuilds a table's state with 50 tasks, for a handful of files."""
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")
    yield
    spark.conf.unset("spark.databricks.delta.snapshotPartitions")


FEED, VECTORS = {"delta.enableChangeDataFeed": "true"}, {"delta.enableDeletionVectors": "true"}
KINDS = {
    "plain with feed": Kind({**FEED, "delta.checkpointInterval": "3"}, ("part",)),
    "vectors, v2 checkpoints": Kind(
        {**FEED, **VECTORS, "delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"}, ("part",)
    ),
    "clustered, mapped by name": Kind(
        {**VECTORS, "delta.columnMapping.mode": "name", "delta.checkpointInterval": "4"}, cluster_by=("id",)
    ),
    "mapped by id, times in commits": Kind(
        {**FEED, "delta.columnMapping.mode": "id", "delta.enableInCommitTimestamps": "true"}, ("part",)
    ),
    "row tracking": Kind({**VECTORS, "delta.enableRowTracking": "true", "delta.checkpointInterval": "5"}, ("part",)),
    "stats as struct only": Kind(
        {**VECTORS, "delta.checkpointInterval": "2", "delta.checkpoint.writeStatsAsJson": "false"}, ("part",)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_delta_spark_and_delta_py_take_turns_in_every_way(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    chosen, table = KINDS[kind], Peers(spark, str(tmp_path / "table"))
    options: dict[str, Any] = {"partition_by": chosen.partition_by} if chosen.partition_by else {"cluster_by": chosen.cluster_by}
    table.ours(rows(*range(6)), configuration=chosen.properties, **options)
    for turn, act in TURNS.items():
        act(table)
        table.check_newest(turn)
    table.check_all_versions()
    if "delta.enableChangeDataFeed" in chosen.properties:
        newest = DeltaTable(table.path).version
        table.check_changes(0, newest)
        for version in (2, 4, 6, newest):
            table.check_changes(version, version)
    if "delta.enableRowTracking" in chosen.properties:
        table.check_row_ids()


RULED = """
    CREATE TABLE {table} (id BIGINT NOT NULL, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)),
        price DECIMAL(10, 2), kind STRING DEFAULT 'none') USING delta PARTITIONED BY (day)
    TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'delta.enableDeletionVectors' = 'true')
"""


def test_turns_obey_generated_columns_defaults_and_checks(spark: SparkSession, tmp_path: Path) -> None:
    table = Peers(spark, str(tmp_path / "table"))
    table.sql(RULED)
    table.sql("ALTER TABLE {table} ADD CONSTRAINT priced CHECK (price >= 0 OR kind = 'refund')")
    some = rows(1, 2, 3, 4).select(["id", "at", "price"])
    table.ours(some)
    table.sql("INSERT INTO {table} (id, at, price) VALUES (9, timestamp'2024-01-03 01:00:00', 1)")
    table.ours(some.slice(1, 1), "overwrite", replace_where="day = date'2024-01-03'")
    table.sql("DELETE FROM {table} WHERE id = 3")
    bad = pa.table({"id": [7], "at": some["at"].slice(0, 1), "price": pa.array([Decimal("-1.00")], pa.decimal128(10, 2))})
    version = DeltaTable(table.path).version
    with pytest.raises(InvariantViolationError, match=r"priced[\s\S]*-1\.00"):
        table.ours(bad)
    assert DeltaTable(table.path).version == version
    table.ours(bad.append_column("kind", pa.array(["refund"])))
    table.theirs(some.slice(0, 1), "overwrite", partitionOverwriteMode="dynamic")
    theirs, ours = table.read_theirs(), DeltaTable(table.path)
    assert difference(theirs, ours.to_arrow()) is None
    read_rows = ours.to_arrow()
    assert dict(zip(read_rows["id"].to_pylist(), read_rows["kind"].to_pylist(), strict=True)) == {1: "none", 2: "none", 4: "none"}
    assert all(at.date() == day for at, day in zip(read_rows["at"].to_pylist(), read_rows["day"].to_pylist(), strict=True))
    table.check_all_versions()


def test_checkpoints_and_cleanup_of_each_serve_the_other(spark: SparkSession, tmp_path: Path) -> None:
    """Commits before a checkpoint are deleted: from then on each needs the checkpoints of both."""
    table = Peers(spark, str(tmp_path / "table"))
    log = tmp_path / "table" / "_delta_log"
    table.theirs(rows(0, 1), **{"delta.checkpointInterval": "4", **VECTORS})
    for start in range(2, 26, 2):
        if start % 4:
            table.ours(rows(start, start + 1))
        else:
            table.theirs(rows(start, start + 1))
        table.sql(f"DELETE FROM {{table}} WHERE id = {start}")
        newest = max(int(file.name[:20]) for file in log.glob("*.checkpoint*.parquet")) if start > 4 else 0
        for file in log.glob("*.json"):
            if file.name[:20].isdigit() and int(file.name[:20]) < newest:
                file.unlink()
        table.check_newest(f"turn {start}")
    row_ids = DeltaTable(table.path).to_arrow()["id"].to_pylist()
    assert sorted(row_ids) == [0, *range(1, 26, 2)]
