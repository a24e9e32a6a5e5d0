"""DeltaTable.delete and .update through Spark, compared with plain Spark on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from spark_plugin import DeltaTable
from spark_plugin.dml.jobs import open_target, run_changes
from spark_plugin.exceptions import (
    InvariantViolationError,
)
from spark_plugin.options.settings import TablePath
from spark_plugin.pruning import rows_needed_by
from tests.spark.row_changes.dml_tables import files_on_disk, last, make, metrics, path_of, plain_rows, same
from tests.support.runs.sampling import sampled

pytestmark = pytest.mark.usefixtures("plain_plans")

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKING = {"delta.enableRowTracking": "true"}
KINDS = [
    {},
    VECTORS,
    {**FEED, **TRACKING, "delta.columnMapping.mode": "name"},
    {**VECTORS, **FEED, **TRACKING, "delta.columnMapping.mode": "id"},
]


def names_of(configuration: Mapping[str, str]) -> str:
    return "-".join(key.removeprefix("delta.") for key in configuration) or "plain"


@pytest.fixture(scope="module")
def plain(spark: SparkSession) -> DataFrame:
    return plain_rows(spark)


@pytest.fixture(params=KINDS, ids=names_of)
def table(request: pytest.FixtureRequest, plain: DataFrame, tmp_path: Path) -> DeltaTable:
    return make(plain, tmp_path / "t with space", request.param)


def row_ids(table: DeltaTable) -> dict[int, tuple[int, int]]:
    frame = table._spark.read.format("pydelta").option("metadataColumn", "true").load(path_of(table))
    id_rows = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    return {row[0]: (row[1], row[2]) for row in id_rows}


def feed(table: DeltaTable, version: int) -> list[tuple[str, int]]:
    changes = PlainTable(path_of(table)).changes(starting_version=version, ending_version=version).read_all()
    return sorted((row["_change_type"], row["id"]) for row in changes.select(["_change_type", "id"]).to_pylist())


# ---------------------------------------------------------------- conditions

CONDITIONS = [
    "id % 7 = 0",
    "x > 3",
    "x = double('NaN')",
    "x < 5 or x is null",
    "not (x >= 2)",
    "x = 0",
    "part = 'sl/ash%20=' and id < 40",
    "part <=> null",
    "at >= '2024-03-31 03:00:00'",
    "hour(at) = 2",
    "day between '2024-01-10' and '2024-02-01'",
    "flag",
    "`odd.name` > 100 and st.b.c like 'c%'",
    "st.b is null",
    "m['k'] = 4 or array_contains(st.b.d, 8)",
    "amount in (1.25, 2.50, null)",
    "id in (select k from keys)",
    "id not in (select k from keys)",
    "id not in (select k from keys_with_null)",
    "exists (select 1 from keys where k = id) or id = 30",
    "not exists (select 1 from keys_with_null where k = id)",
    "id > (select max(k) from keys where k < 10) and part is not null",
    "false",
]


@pytest.mark.parametrize(
    ("configuration", "conditions"), [(VECTORS, sampled(CONDITIONS, 6)), ({}, sampled(CONDITIONS, 18))], ids=["vectors", "anew"]
)
def test_delete_leaves_the_rows_that_plain_spark_leaves(
    plain: DataFrame, tmp_path: Path, configuration: Mapping[str, str], conditions: list[str]
) -> None:
    """Each condition in turn, on the rows that the others have left."""
    spark = plain.sparkSession
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        table, remaining, rows = make(plain, tmp_path / "t", configuration), plain, plain.collect()
        for condition in conditions:
            remaining = (
                remaining.where(f"not coalesce(({condition}), false)")
                if "select" not in condition
                else _without(remaining, condition)
            )
            before, rows = len(rows), remaining.collect()
            remaining = spark.createDataFrame(rows, remaining.schema).coalesce(1)
            version = PlainTable(path_of(table)).version
            table.delete(condition)
            same(table.toDF(), remaining)
            changed = PlainTable(path_of(table)).version - version
            assert changed == (1 if len(rows) < before else 0), condition
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def _without(frame: DataFrame, condition: str) -> DataFrame:
    matching_ids = [row["id"] for row in frame.where(condition).select("id").collect()]
    return frame.where(~F.col("id").isin(matching_ids))


def test_delete_twice_with_every_feature(table: DeltaTable, plain: DataFrame) -> None:
    configuration = PlainTable(path_of(table)).metadata.configuration
    ids = row_ids(table)
    table.delete(F.col("id") % 3 == 0)
    delete_metrics = metrics(table)
    assert delete_metrics["numDeletedRows"] == 20 and delete_metrics["numCopiedRows"] == (
        0 if VECTORS.items() <= configuration.items() else 40
    )
    assert last(table)["operation"] == "DELETE" and "id % " in last(table)["operationParameters"]["predicate"]
    table.delete("part = 'a' or id in (1, 7)")
    same(table.toDF(), plain.where("id % 3 != 0 and not (part <=> 'a' or id in (1, 7))"))
    if TRACKING.items() <= configuration.items():
        assert row_ids(table).items() <= ids.items()
    if FEED.items() <= configuration.items():
        assert feed(table, 1) == [("delete", n) for n in range(0, 60, 3)]
    vectors = {add for add in Path(path_of(table)).rglob("*.bin")}
    assert bool(vectors) == (VECTORS.items() <= configuration.items())
    table.delete()
    assert table.toDF().count() == 0 and last(table)["operationParameters"] == {"predicate": "[]"}


def test_delete_of_partitions_and_of_whole_files_reads_nothing(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain.repartitionByRange(4, "id"), tmp_path / "t", {**VECTORS, **FEED})
    before = files_on_disk(table)
    table.delete("part = 'with space'")
    assert metrics(table)["numDeletedRows"] == 12 and metrics(table)["numRemovedFiles"] == 4
    table.delete("id >= 45")
    assert metrics(table)["numDeletedRows"] == 12 and metrics(table)["numAddedFiles"] == 0
    assert {name for name in files_on_disk(table) - before if "_delta_log" not in name} == set()
    same(table.toDF(), plain.where("not (part <=> 'with space') and id < 45"))
    assert [change for change, _ in feed(table, 2)] == ["delete"] * 12


# ---------------------------------------------------------------- update


def test_update_gives_what_plain_spark_gives(table: DeltaTable, plain: DataFrame) -> None:
    configuration = PlainTable(path_of(table)).metadata.configuration
    ids = row_ids(table)
    table.update(
        "id % 4 = 1 or x = double('NaN')",
        {
            "part": "concat(part, '/=', id)",
            "st.b.c": F.lit("new"),
            "`odd.name`": "`odd.name` + 1",
            "amount": "id",
            "x": F.lit("1.5"),
            "m": F.create_map(F.lit("z"), F.lit(1)),
        },
    )
    hit = F.expr("id % 4 = 1 or (x <=> double('NaN'))")
    new_b = F.struct(F.lit("new").alias("c"), F.col("st.b.d").alias("d"))
    expected = plain.select(
        "id",
        F.when(hit, F.expr("concat(part, '/=', id)")).otherwise(F.col("part")).alias("part"),
        F.when(hit, F.lit(1.5)).otherwise(F.col("x")).alias("x"),
        F.when(hit, F.expr("cast(id as decimal(9,2))")).otherwise(F.col("amount")).alias("amount"),
        "day",
        "at",
        "flag",
        F.when(hit, F.col("`odd.name`") + 1).otherwise(F.col("`odd.name`")).alias("odd.name"),
        F.when(hit, F.struct(F.col("st.a").alias("a"), new_b.alias("b"))).otherwise(F.col("st")).alias("st"),
        F.when(hit, F.expr("map('z', 1)")).otherwise(F.col("m")).alias("m"),
    )
    same(table.toDF(), expected)
    changed = sorted(row["id"] for row in plain.where(hit).collect())
    assert metrics(table)["numUpdatedRows"] == len(changed) and last(table)["operation"] == "UPDATE"
    after = row_ids(table)
    if TRACKING.items() <= configuration.items():
        assert {n: row_id for n, (row_id, _) in after.items()} == {n: row_id for n, (row_id, _) in ids.items()}
        assert {n for n, (_, version) in after.items() if version == 1} == set(changed)
    if FEED.items() <= configuration.items():
        assert feed(table, 1) == sorted([(kind, n) for kind in ("update_preimage", "update_postimage") for n in changed])


def test_update_of_all_rows_by_alias_and_by_position(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain, tmp_path / "t", VECTORS)
    table.alias("t").update(set={"t.x": "t.id * 2.0"})
    table.alias("t").update(F.col("t.id") < 3, {"ID": F.col("t.id") - 100})
    updated_rows = sorted((row["id"], row["x"]) for row in table.toDF().collect())
    assert updated_rows == sorted((n - 100 if n < 3 else n, n * 2.0) for n in range(60))
    assert metrics(table)["numUpdatedRows"] == 3


def test_update_of_a_null_struct_makes_one_with_the_field(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain, tmp_path / "t", {})
    table.update("id = 13", {"st.b.c": "'x'"})
    assert table.toDF().where("id = 13").first()["st"].asDict(recursive=True) == {"a": None, "b": {"c": "x", "d": None}}
    table.update("id = 13", {"st": "named_struct('b', named_struct('d', array(1), 'c', 'y'), 'a', 2)"})
    assert table.toDF().where("id = 13").first()["st"].asDict(recursive=True) == {"a": 2, "b": {"c": "y", "d": [1]}}


def test_update_without_a_match_makes_no_version(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain, tmp_path / "t", VECTORS)
    before = files_on_disk(table)
    table.update("id = 1000", {"x": "1"})
    table.update("part = 'nowhere'", {"x": "1"})
    table.delete("id < 0")
    assert PlainTable(path_of(table)).version == 0 and files_on_disk(table) == before


def test_update_keeps_rules_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(path).addColumn("id", "bigint", nullable=False)
    builder = builder.addColumn("v", "varchar(3)").addColumn("twice", "bigint", generatedAlwaysAs="id * 2")
    table = builder.property("delta.constraints.small", "id < 100").property("delta.enableDeletionVectors", "true").execute()
    spark.range(10).selectExpr("id", "'abc' as v").coalesce(1).write.format("pydelta").mode("append").save(path)
    table.update("id = 3", {"id": "id + 10"})
    assert table.toDF().where("id = 13").first()["twice"] == 26
    table.update("id = 4", {"id": "14", "twice": "28"})
    before = files_on_disk(table)
    for assignments in ({"id": "id + 1000"}, {"id": "null"}, {"v": "'abcd'"}, {"twice": "5"}):
        with pytest.raises(InvariantViolationError):
            table.update("id > 4", assignments)
    with pytest.raises(PySparkException, match=r"OVERFLOW|CAST"):
        table.update("id = 5", {"id": "1e30D"})
    assert files_on_disk(table) == before
    assert sorted(row["id"] for row in table.toDF().collect()) == [0, 1, 2, 5, 6, 7, 8, 9, 13, 14]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("configuration", [{}, {**VECTORS, **FEED}], ids=names_of)
def test_a_task_that_fails_midway_leaves_nothing_behind(
    plain: DataFrame, tmp_path: Path, configuration: Mapping[str, str]
) -> None:
    table = make(plain.repartitionByRange(4, "id"), tmp_path / "t", configuration)
    before = files_on_disk(table)
    late = F.when(F.col("id") == 59, F.raise_error(F.lit("stop here"))).otherwise(F.col("x"))
    with pytest.raises(PySparkException, match="stop here"):
        table.update(F.lit(True), {"x": late})
    with pytest.raises(PySparkException, match="stop here"):
        table.delete(F.when(F.col("id") == 59, F.raise_error(F.lit("stop here"))).otherwise(F.col("id") < 30).cast("boolean"))
    assert files_on_disk(table) == before and PlainTable(path_of(table)).version == 0


def test_a_column_condition_may_be_a_python_function(plain: DataFrame, tmp_path: Path) -> None:
    table = make(plain, tmp_path / "t", VECTORS)
    odd: Any = F.udf(lambda n: n % 2 == 1, "boolean")
    condition: Column = odd(F.col("id"))
    table.delete(condition)
    assert sorted(row["id"] for row in table.toDF().collect()) == list(range(0, 60, 2))


# ---------------------------------------------------------------- other writers


def test_two_deletes_of_other_rows_of_one_file_are_both_kept(plain: DataFrame, tmp_path: Path) -> None:
    spark, table = plain.sparkSession, make(plain.coalesce(1), tmp_path / "t", VECTORS, partition_by="")
    with open_target(spark, TablePath(path_of(table)), "DELETE") as target:
        target.dml.transaction.only_deleted_rows_matter()
        matched = target.frame.where("id % 10 = 1")
        target.choose_files(None)
        table.delete("id % 10 = 2")
        run_changes(target, matched.select(*target.address_columns(0)), {"predicate": []})
    same(table.toDF(), plain.where("id % 10 not in (1, 2)"))
    assert PlainTable(path_of(table)).version == 2


# ---------------------------------------------------------------- which files may go unread


def test_exact_holds_only_if_all_conditions_reach_the_source(spark: SparkSession, tmp_path: Path) -> None:
    """Files may stay unread if a plan needs exactly the rows of the predicates. It does not if one of its conditions is another
    one, even if another predicate is gone and their numbers are equal."""
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": pa.array([1, 2], pa.int64()), "p": pa.array([1, 2], pa.int64())}))
    frame = spark.read.format("pydelta").load(path)
    jvm: Any = spark.sparkContext._jvm

    def plan(condition: str) -> Any:
        return frame.where(condition)._jdf.queryExecution().optimizedPlan()

    def exact(optimized: Any) -> bool:
        execution = SimpleNamespace(optimizedPlan=lambda: optimized)
        frame: Any = SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: execution))
        return rows_needed_by(spark, frame, "path", path).exact

    def filtered(scan: Any, *conditions: Any) -> Any:
        for condition in conditions:
            scan = jvm.org.apache.spark.sql.catalyst.plans.logical.Filter(condition, scan)
        return scan

    filtered_plan, other = plan("p = 1 and id > 1"), plan("abs(id) > 1 and p = 1")
    scan, whole = filtered_plan.child(), filtered_plan.condition()
    first, second = whole.left(), whole.right()
    assert exact(filtered_plan) and not exact(other)
    assert not exact(filtered(scan, first, other.condition().right()))
    assert not exact(filtered(scan, first, first.right()))
    assert exact(filtered(scan, first, second)) and exact(filtered(scan, second, whole, first))
    assert exact(plan("P = 1 and p = 1 and (id in (1, 2, 3) or id is null)"))
    assert exact(plan("true")) and not exact(frame.limit(1)._jdf.queryExecution().optimizedPlan())
