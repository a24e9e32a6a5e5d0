"""OPTIMIZE and VACUUM of one table by delta-spark and by pydelta: both read the same afterwards, and each continues after the
other.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable as DeltaSparkTable
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py.log.last_vacuum import read_last_vacuum
from delta_py.protocol.paths import CLONE_DIRECTORY
from delta_py.storage.local import LocalStore
from spark_plugin import DeltaTable
from tests.support.oracles.rows import difference
from tests.support.spark.settings import restore

KINDS: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors and feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "row ids and mapped columns": {
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.columnMapping.mode": "name",
    },
}
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def make(spark: SparkSession, path: str, properties: dict[str, str]) -> None:
    """Some files in two partitions, one of which is null, with deleted rows."""
    for start in range(0, 60, 20):
        rows = spark.range(start, start + 20).selectExpr("id", "nullif(id % 2, 0) AS part", "concat('n', id) AS name")
        writer = rows.coalesce(1).write.format("delta").partitionBy("part").mode("append")
        writer.options(**{name: value for name, value in properties.items() if start == 0}).save(path)
        if start == 20:
            DeltaSparkTable.forPath(spark, path).delete("id % 7 = 3")


def rows(spark: SparkSession, source: str, path: str, *columns: str, **options: Any) -> Any:
    frame = spark.read.format(source).options(**options).load(path)
    return frame.selectExpr("id", "part", "name", *columns).toArrow()


@pytest.mark.parametrize("kind", KINDS)
def test_both_read_the_same_after_our_optimize(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make(spark, path, KINDS[kind])
    tracked = ["_metadata.row_id", "_metadata.row_commit_version"] if "row ids" in kind else []
    before = rows(spark, "delta", path, *tracked)
    ours = DeltaTable.forPath(spark, path).optimize().executeCompaction()
    assert ours.first()["metrics"]["numFilesRemoved"] == (4 if kind == "plain" else 6)
    assert PlainTable(path).files().num_rows == 2
    assert difference(before, rows(spark, "delta", path, *tracked)) is None
    assert difference(rows(spark, "delta", path), rows(spark, "pydelta", path)) is None
    newest = PlainTable(path).version
    if "feed" in kind:
        options = {"readChangeFeed": "true", "startingVersion": newest}
        assert spark.read.format("delta").options(**options).load(path).count() == 0
    theirs = DeltaSparkTable.forPath(spark, path).optimize().executeCompaction()
    assert theirs.first()["metrics"]["numFilesAdded"] == 0, "nothing is left for delta-spark"
    assert simple(theirs.schema.jsonValue()) == simple(ours.schema.jsonValue())
    assert difference(rows(spark, "delta", path, versionAsOf=0), rows(spark, "pydelta", path, versionAsOf=0)) is None
    spark.range(100, 110).selectExpr("id", "id AS part", "'x' AS name").write.format("delta").mode("append").save(path)
    assert difference(rows(spark, "delta", path), rows(spark, "pydelta", path)) is None


def test_both_read_the_same_after_our_z_order(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make(spark, path, KINDS["row ids and mapped columns"])
    tracked = ["_metadata.row_id", "_metadata.row_commit_version"]
    before = rows(spark, "delta", path, *tracked)
    ours = DeltaTable.forPath(spark, path).optimize().executeZOrderBy("id", "name")
    assert PlainTable(path).files().num_rows == 2
    assert difference(before, rows(spark, "delta", path, *tracked)) is None
    assert difference(rows(spark, "delta", path), rows(spark, "pydelta", path)) is None
    theirs = DeltaSparkTable.forPath(spark, path).optimize().executeZOrderBy("id", "name")
    assert simple(theirs.schema.jsonValue()) == simple(ours.schema.jsonValue())
    (our, their) = (frame.first()["metrics"].asDict(True) for frame in (ours, theirs))
    assert set(our["zOrderStats"]) == set(their["zOrderStats"])
    assert our["preserveInsertionOrder"] == their["preserveInsertionOrder"]
    ours_log, theirs_log = (DeltaTable.forPath(spark, path).history(2).collect())[::-1]
    assert ours_log["operationParameters"] == theirs_log["operationParameters"]
    assert difference(before, rows(spark, "delta", path, *tracked)) is None


def test_optimize_skips_files_that_the_other_library_clustered(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    DeltaSparkTable.create(spark).location(path).addColumn("id", "BIGINT").addColumn("v", "INT").clusterBy("v", "id").execute()

    def append(source: str, start: int) -> None:
        frame = spark.range(start, start + 1000, 1, 2).selectExpr("id", "cast(hash(id) % 100 as int) v")
        frame.write.format(source).mode("append").save(path)

    append("delta", 0)
    append("pydelta", 1000)
    ours = DeltaTable.forPath(spark, path).optimize().executeCompaction().first()["metrics"]
    assert (ours["numFilesRemoved"], ours["numFilesAdded"]) == (4, 1)
    assert DeltaSparkTable.forPath(spark, path).optimize().executeCompaction().first()["metrics"]["numFilesAdded"] == 0
    append("delta", 2000)
    theirs = DeltaSparkTable.forPath(spark, path).optimize().executeCompaction().first()["metrics"]
    assert theirs["clusteringStats"]["inputNumZCubes"] == 1 and theirs["numFilesAdded"] == 1
    assert DeltaTable.forPath(spark, path).optimize().executeCompaction().first()["metrics"]["numFilesAdded"] == 0
    tables = [spark.read.format(source).load(path).orderBy("id").toArrow() for source in ("delta", "pydelta")]
    assert tables[0].num_rows == 3000 and difference(tables[0], tables[1]) is None
    parameters = [row["operationParameters"] for row in DeltaTable.forPath(spark, path).history().collect()]
    clustered_and_sorted = [keys for keys in parameters if "clusterBy" in keys and "zOrderBy" in keys]
    assert clustered_and_sorted[0] == clustered_and_sorted[1], "history of both"


def simple(schema: Any) -> Any:
    """Names and types, without nullability."""
    if isinstance(schema, dict):
        return {name: simple(value) for name, value in schema.items() if name not in ("nullable", "metadata")}
    return [simple(value) for value in schema] if isinstance(schema, list) else schema


def test_vacuum_of_delta_spark_after_ours_deletes_no_more_files(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make(spark, path, KINDS["vectors and feed"])
    DeltaTable.forPath(spark, path).optimize().executeCompaction()
    DeltaSparkTable.forPath(spark, path).update("id = 30", {"name": "'changed'"})
    before, settings = rows(spark, "delta", path), {name: spark.conf.get(name, None) for name in (CHECK, LISTING_TASKS)}
    spark.conf.set(CHECK, "false")
    spark.conf.set(LISTING_TASKS, "2")  # 10,000 by default
    try:
        assert spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS DRY RUN").count() > 0
        DeltaTable.forPath(spark, path).vacuum(0)
        remaining_paths = {row["path"] for row in spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS DRY RUN").collect()}
    finally:
        restore(spark, settings)
    assert all(Path(name.removeprefix("file:").replace("%20", " ")).is_dir() for name in remaining_paths), remaining_paths
    assert difference(before, rows(spark, "delta", path)) is None
    assert difference(before, rows(spark, "pydelta", path)) is None


def test_vacuum_lite_of_each_goes_on_where_the_others_ended(spark: SparkSession, tmp_path: Path) -> None:
    """Both use `_last_vacuum_info`. The log has a lease that delta-spark does not know."""
    path = str(tmp_path / "t")
    make(spark, path, KINDS["vectors and feed"])
    settings = {name: spark.conf.get(name, None) for name in (CHECK, LISTING_TASKS)}
    spark.conf.set(CHECK, "false")
    spark.conf.set(LISTING_TASKS, "2")
    lease = PlainTable(path).lease()
    try:
        replace(spark, path, 1)
        before = noted(path)
        spark.sql(f"VACUUM delta.`{path}` LITE RETAIN 0 HOURS")
        theirs = noted(path)
        assert theirs is not None and theirs != before
        lease.release()
        assert DeltaTable.forPath(spark, path).vacuum(0, dryRun=True, lite=True).count() == 0, "theirs has deleted all"
        replace(spark, path, 2)
        time.sleep(0.01)
        assert DeltaTable.forPath(spark, path).vacuum(0, dryRun=True, lite=True).count() > 0
        DeltaTable.forPath(spark, path).vacuum(0, lite=True)
        assert (noted(path) or 0) > theirs
        assert spark.sql(f"VACUUM delta.`{path}` LITE RETAIN 0 HOURS DRY RUN").count() == 0, "ours has deleted all"
        replace(spark, path, 3)
        remaining_count = spark.sql(f"VACUUM delta.`{path}` LITE RETAIN 0 HOURS DRY RUN").count()
        assert remaining_count == DeltaTable.forPath(spark, path).vacuum(0, dryRun=True, lite=True).count() > 0
    finally:
        lease.release()
        restore(spark, settings)
    assert difference(rows(spark, "delta", path), rows(spark, "pydelta", path)) is None


def test_clone_survives_vacuum_and_delete_by_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    make(spark, path, KINDS["vectors and feed"])
    settings = {name: spark.conf.get(name, None) for name in (CHECK, LISTING_TASKS)}
    spark.conf.set(CHECK, "false")
    spark.conf.set(LISTING_TASKS, "2")
    try:
        DeltaTable.forPath(spark, path).clone(copy, isShallow=True)
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
        (note,) = (Path(path) / CLONE_DIRECTORY).iterdir()
        ids = [row["id"] for row in spark.read.format("delta").load(copy).orderBy("id").collect()]
        DeltaSparkTable.forPath(spark, copy).delete(f"id = {ids[0]}")
        replace(spark, path, 1)
        time.sleep(0.01)
        DeltaTable.forPath(spark, path).vacuum(0)
        assert note.exists()
        for format in ("delta", "pydelta"):
            assert [row["id"] for row in spark.read.format(format).load(copy).orderBy("id").collect()] == ids[1:]
    finally:
        restore(spark, settings)


def replace(spark: SparkSession, path: str, number: int) -> None:
    """Replace all rows, change one of them and delete one."""
    frame = spark.range(100 * number, 100 * number + 10).selectExpr("id", "id % 2 AS part", "'x' AS name")
    frame.coalesce(1).write.format("delta").mode("overwrite").save(path)
    DeltaSparkTable.forPath(spark, path).update(f"id = {100 * number}", {"name": "'changed'"})
    DeltaSparkTable.forPath(spark, path).delete(f"id = {100 * number + 1}")


def noted(path: str) -> int | None:
    return read_last_vacuum(LocalStore(path))


def test_clustering_columns_change_as_with_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    history_rows = []
    for engine in ("theirs", "ours"):
        path = str(tmp_path / engine)
        rows = spark.range(20).selectExpr("id", "named_struct('a', id, 'b', id) AS s", "id AS x")
        rows.write.format("delta").option("delta.columnMapping.mode", "name").save(path)
        for columns in (["id", "s.a"], ["x"], []):
            if engine == "ours":
                DeltaTable.forPath(spark, path).clusterBy(columns)
            else:
                spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY {'(' + ', '.join(columns) + ')' if columns else 'NONE'}")
        theirs = DeltaSparkTable.forPath(spark, path)
        log = theirs.history(3).select("operation", "operationParameters").collect()
        features = set(theirs.detail().first()["tableFeatures"])
        names = [len(DeltaTable.forPath(spark, path).detail().first()["clusteringColumns"])]
        history_rows.append(([(row["operation"], row["operationParameters"]) for row in log], features, names))
    assert history_rows[0] == history_rows[1]
    DeltaTable.forPath(spark, path).clusterBy("s.b")
    rows.write.format("delta").mode("append").save(path)
    theirs = DeltaSparkTable.forPath(spark, path).optimize().executeCompaction().first()["metrics"]
    assert theirs["clusteringStats"]["numOutputZCubes"] == 1
    rows.write.format("delta").partitionBy("id").save(str(tmp_path / "parts"))
    conditions = []
    for change in (
        lambda: spark.sql(f"ALTER TABLE delta.`{tmp_path}/parts` CLUSTER BY (x)"),
        lambda: DeltaTable.forPath(spark, str(tmp_path / "parts")).clusterBy("x"),
    ):
        with pytest.raises(Exception) as raised:
            change()
        conditions.append(raised.value.getCondition())  # type: ignore[attr-defined]
    assert conditions == ["DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"] * 2


def test_delta_spark_s_vacuum_leaves_our_quarantine_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make(spark, path, KINDS["vectors and feed"])
    DeltaTable.forPath(spark, path).optimize().executeCompaction()
    old = rows(spark, "delta", path, versionAsOf=2)
    settings = {name: spark.conf.get(name, None) for name in (CHECK, LISTING_TASKS)}
    spark.conf.set(CHECK, "false")
    spark.conf.set(LISTING_TASKS, "2")
    try:
        time.sleep(0.01)
        DeltaTable.forPath(spark, path).vacuum(0, quarantine=True)
        aside = DeltaTable.forPath(spark, path).restoreQuarantined(dryRun=True).count()
        assert aside > 0
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    finally:
        restore(spark, settings)
    assert DeltaTable.forPath(spark, path).restoreQuarantined().filter("restored").count() == aside
    assert difference(old, rows(spark, "delta", path, versionAsOf=2)) is None
