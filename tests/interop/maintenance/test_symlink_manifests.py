"""Symlink manifests of one table by delta-spark and by pydelta: the same files with the same lines, and each updates them after
its own commits.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from delta.tables import DeltaTable as DeltaSparkTable
from pyspark.sql import SparkSession

from spark_plugin import DeltaTable

pytestmark = pytest.mark.usefixtures("plain_plans")

DIRECTORY = "_symlink_format_manifest"
PROPERTY = "delta.compatibility.symlinkFormatManifest.enabled"


def manifests(path: str) -> dict[str, list[str]]:
    root = Path(path, DIRECTORY)
    return {str(file.parent.relative_to(root)): sorted(file.read_text().split("\n")) for file in root.rglob("manifest")}


def by_delta_spark(spark: SparkSession, path: str) -> dict[str, list[str]]:
    shutil.rmtree(Path(path, DIRECTORY), ignore_errors=True)
    DeltaSparkTable.forPath(spark, path).generate("symlink_format_manifest")
    return manifests(path)


def test_manifest_has_one_line_per_file_like_that_of_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "a table")
    spark.range(100).repartition(10).write.format("delta").save(path)
    DeltaTable.forPath(spark, path).generate("symlink_format_manifest")
    with open(tmp_path / "a table" / DIRECTORY / "manifest") as file:
        lines = file.readlines()
    assert len(lines) == 10
    ours = manifests(path)
    assert ours == by_delta_spark(spark, path)


@pytest.mark.parametrize("columns", [["s"], ["s", "n", "day", "at"]])
def test_partitions_have_the_same_directories_and_lines(columns: list[str], spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    texts = ["plain", "a/b:c %", None, "é ü", "x=y", 'q"[]{}^#\\']
    rows = [(number, text, None if number == 2 else number) for number, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "id long, s string, n int")
    frame = frame.selectExpr("*", "date_add(date'2024-05-01', n) as day", "timestamp'2024-05-01 10:00:00.5' as at")
    frame.write.format("delta").partitionBy(*columns).save(path)
    DeltaTable.forPath(spark, path).generate("symlink_format_manifest")
    ours = manifests(path)
    assert ours == by_delta_spark(spark, path)
    assert len(ours) == len(texts)


def test_each_writer_updates_the_manifests_of_its_commits(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).selectExpr("id", "id as p").write.format("delta").option(PROPERTY, "true").partitionBy("p").save(path)
    assert manifests(path) == by_delta_spark(spark, path)
    for source in ("pydelta", "delta", "pydelta"):
        spark.range(2, 5).selectExpr("id", "id as p").write.format(source).mode("append").save(path)
        actual_manifests = manifests(path)
        assert actual_manifests == by_delta_spark(spark, path)
    DeltaTable.forPath(spark, path).delete("p = 1")
    actual_manifests = manifests(path)
    assert actual_manifests == by_delta_spark(spark, path) and "p=1" not in actual_manifests
    assert spark.read.text(f"{path}/{DIRECTORY}").count() == sum(len(lines) - 1 for lines in actual_manifests.values())


def test_spark_reads_our_manifest_beside_a_delta_spark_checksum(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("delta").save(path)
    DeltaSparkTable.forPath(spark, path).generate("symlink_format_manifest")
    spark.range(3, 6).coalesce(1).write.format("pydelta").mode("append").save(path)
    DeltaTable.forPath(spark, path).generate("symlink_format_manifest")
    lines = len(manifests(path)["."]) - 1
    assert spark.read.text(f"{path}/{DIRECTORY}/manifest").count() == lines


def test_both_refuse_the_same_by_the_same_names(spark: SparkSession, tmp_path: Path) -> None:
    vectors, mapped = str(tmp_path / "v"), str(tmp_path / "m")
    spark.range(0, 9, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true").save(vectors)
    DeltaSparkTable.forPath(spark, vectors).delete("id = 3")
    spark.range(1).write.format("delta").option("delta.columnMapping.mode", "name").save(mapped)
    cases = [
        (vectors, "symlink_format_manifest", "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"),
        (mapped, "symlink_format_manifest", "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"),
        (mapped, "other", "DELTA_MODE_NOT_SUPPORTED"),
    ]
    for path, mode, condition in cases:
        for kind in (DeltaTable, DeltaSparkTable):
            with pytest.raises(Exception, match=condition):
                kind.forPath(spark, path).generate(mode)
