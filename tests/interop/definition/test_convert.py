"""CONVERT TO DELTA, and shallow clones of Parquet files, by delta-spark and by pydelta from the same directories: the columns,
files and partition values are equal, and all three readers read the same rows of what pydelta has converted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta.tables import DeltaTable as DeltaSparkTable
from pyspark.sql import SparkSession

from delta_py import write_delta
from spark_plugin import DeltaTable
from tests.support.oracles.rows import difference

pytestmark = pytest.mark.usefixtures("plain_plans")

EVERY_TYPE = (
    "id",
    "cast(id as byte) as i8",
    "cast(id as short) as i16",
    "cast(id as int) as i32",
    "id / 2 as f64",
    "cast(id as float) as f32",
    "cast(id as decimal(9,2)) as d9",
    "cast(id as decimal(38,10)) as d38",
    "concat('n', id) as s",
    "cast(concat('n', id) as binary) as b",
    "id % 2 = 0 as even",
    "date_add(date'2024-05-01', cast(id as int)) as day",
    "timestamp'2024-05-01 10:00:00.123456' as at",
    "timestamp_ntz'2024-05-01 10:00:00' as local",
    "array(id, null) as l",
    "map('k', id) as m",
    "named_struct('x', nullif(id, 3), 'y', array(named_struct('z', id))) as st",
)


def spark_types(spark: SparkSession, path: str) -> None:
    spark.range(0, 20, 1, 3).selectExpr(*EVERY_TYPE).write.parquet(path)


def spark_int96(spark: SparkSession, path: str) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        spark.range(3).selectExpr("id", "timestamp'2024-05-01 10:00:00.123456' as at").write.parquet(path)
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")


def spark_comments(spark: SparkSession, path: str) -> None:
    frame = spark.range(3)
    frame.select(frame.id.alias("id", metadata={"comment": "of a row"})).write.parquet(path)


def partitions(spark: SparkSession, path: str) -> None:
    rows = [
        (1, "a/b:c %", 7, date(2024, 5, 1)),
        (2, None, None, None),
        (3, "é ü", 8, date(2024, 5, 2)),
        (4, "x=y", 9, date(1, 1, 1)),
    ]
    frame = spark.createDataFrame(rows, "id long, s string, n int, day date")
    frame.write.partitionBy("s", "n", "day").parquet(path)


def growing(spark: SparkSession, path: str) -> None:
    later = [["1S as w"], ["1Y as w", "'x' as s"], ["1 as w", "named_struct('a', 1) as st"]]
    for number, columns in enumerate(later):
        spark.range(number, number + 1, 1, 1).selectExpr("id", *columns).write.mode("append").parquet(path)


def streamed(spark: SparkSession, path: str) -> None:
    """The output of a stream in twelve batches, some of which are compacted, and a file of a failed batch."""
    source = f"{path}-source"
    for number in range(12):
        spark.range(number, number + 1, 1, 1).selectExpr("id", "concat('a/b ', id % 2) as p").write.mode("append").parquet(source)
    rows = spark.readStream.schema("id long, p string").option("maxFilesPerTrigger", 1).parquet(source)
    stream = rows.writeStream.partitionBy("p").option("checkpointLocation", f"{path}-checkpoint").trigger(availableNow=True)
    stream.start(path, format="parquet").awaitTermination()
    shutil.copyfile(next(Path(path).glob("p=*/*.parquet")), next(Path(path).glob("p=*")) / "part-00000-failed.parquet")


def arrow_types(spark: SparkSession, path: str) -> None:
    Path(path).mkdir()
    columns = {
        "id": pa.array([1, 2], pa.int32()),
        "s": pa.array(["a", None], pa.large_string()).dictionary_encode(),
        "d": pa.array([Decimal("1.50"), None], pa.decimal128(20, 2)),
        "at": pa.array([datetime(2024, 5, 1), None], pa.timestamp("ms", "Europe/Berlin")),
        "local": pa.array([datetime(2024, 5, 1), None], pa.timestamp("us")),
        "fixed": pa.array([b"xy", None], pa.binary(2)),
        "l": pa.array([[1.5], None], pa.large_list(pa.float32())),
    }
    pq.write_table(pa.table(columns), f"{path}/a.parquet")


MADE: dict[str, tuple[Callable[[SparkSession, str], None], str | None]] = {
    "types of Spark": (spark_types, None),
    "timestamps as INT96": (spark_int96, None),
    "comments": (spark_comments, None),
    "partitions": (partitions, "s string, n int, day date"),
    "columns that come later": (growing, None),
    "types of Arrow": (arrow_types, None),
    "output of a stream": (streamed, "p string"),
}


@pytest.mark.parametrize("kind", MADE)
def test_both_make_the_same_table_and_all_read_the_same_rows(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    make, partition_schema = MADE[kind]
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    make(spark, ours)
    before = spark.read.parquet(ours)
    _copied(ours, theirs)
    DeltaTable.convertToDelta(spark, f"parquet.`{ours}`", partition_schema)
    DeltaSparkTable.convertToDelta(spark, f"parquet.`{theirs}`", *filter(None, [partition_schema]))
    mine, other = log(ours), log(theirs)
    if kind == "columns that come later":  # in the order in which delta-spark's tasks end
        mine["schema"], other["schema"] = (sorted(result["schema"]["fields"], key=str) for result in (mine, other))
    assert mine["schema"] == other["schema"]
    assert mine["files"] == other["files"]
    for name in ("partitionColumns", "operation", "operationParameters", "operationMetrics"):
        assert mine[name] == other[name], name
    check_statistics(mine["stats"], other["stats"])
    rows = spark.read.format("delta").load(ours)
    assert difference(rows.toArrow(), spark.read.format("pydelta").load(ours).toArrow()) is None
    assert difference(rows.toArrow(), spark.read.format("delta").load(theirs).select(rows.columns).toArrow()) is None
    if partition_schema is None and kind != "columns that come later":  # Spark cannot merge a short and an int
        assert difference(rows.toArrow(), before.select(rows.columns).toArrow()) is None
    rust = pa.table(deltalake.DeltaTable(ours).to_pyarrow_table()) if kind != "comments" else None
    assert rust is None or (rust.num_rows, sorted(rust["id"].to_pylist())) == (
        rows.count(),
        sorted(row["id"] for row in rows.select("id").collect()),
    )


def _copied(ours: str, theirs: str) -> None:
    """Copies the directory, with the absolute paths in a stream's log."""
    shutil.copytree(ours, theirs)
    for file in Path(theirs).glob("_spark_metadata/*"):
        if file.suffix == ".crc":
            file.unlink()
        else:
            file.write_text(file.read_text().replace(f"{ours}/", f"{theirs}/"))


def log(path: str) -> dict[str, Any]:
    lines = [json.loads(line) for line in Path(path, "_delta_log", f"{0:020d}.json").read_text().splitlines()]
    info, metadata = (next(line[name] for line in lines if name in line) for name in ("commitInfo", "metaData"))
    adds = [line["add"] for line in lines if "add" in line]
    return {
        "schema": json.loads(metadata["schemaString"]),
        "partitionColumns": metadata["partitionColumns"],
        "operation": info["operation"],
        "operationParameters": {name: str(value).lower() for name, value in info["operationParameters"].items()},
        "operationMetrics": info["operationMetrics"],
        "files": sorted((a["path"], sorted(a["partitionValues"].items(), key=str), a["size"], a["dataChange"]) for a in adds),
        "stats": {a["path"]: json.loads(a["stats"]) for a in adds if "stats" in a},
    }


def check_statistics(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Statistics that both have are equal. Ours come from footers, which have no bounds of INT96 and no upper bounds of
    floats."""
    assert ours.keys() == theirs.keys()
    for path, mine in ours.items():
        other = theirs[path]
        assert mine["numRecords"] == other["numRecords"]
        for side in ("minValues", "maxValues", "nullCount"):
            our_leaves, their_leaves = leaves(mine.get(side, {})), leaves(other.get(side, {}))
            assert {name: bound for name, bound in our_leaves.items() if bound != their_leaves.get(name)} == {}
            missing = their_leaves.keys() - our_leaves.keys()
            assert missing <= (
                {"at"}
                | ({"f32", "f64"} if side == "maxValues" else set())
                | ({"l", "m", "st.y"} if side == "nullCount" else set())
            )


def leaves(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    flat_values: dict[str, Any] = {}
    for name, value in values.items():
        flat_values |= leaves(value, f"{path}{name}.") if isinstance(value, dict) else {f"{path}{name}": value}
    return flat_values


def test_delta_spark_reads_types_that_need_type_widening(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(1).selectExpr("cast(id as int) as id", "cast(1.5 as float) as f", "1.50 as d").write.parquet(path)
    spark.range(2**40, 2**40 + 1).selectExpr("id", "0.1D as f", "12345.50 as d").write.mode("append").parquet(path)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    rows = spark.read.format("delta").load(path)
    assert sorted(map(tuple, rows.collect())) == [(0, 1.5, Decimal("1.50")), (2**40, 0.1, Decimal("12345.50"))]
    assert difference(rows.toArrow(), spark.read.format("pydelta").load(path).toArrow()) is None
    assert spark.read.format("delta").load(path).filter("id > 5").count() == 1


def test_both_go_on_writing_to_what_was_converted(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(4).selectExpr("id", "id % 2 as p").write.partitionBy("p").parquet(path)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "p int")
    spark.range(4, 6).selectExpr("id", "cast(id % 2 as int) as p").write.format("delta").mode("append").save(path)
    write_delta(path, pa.table({"id": [6], "p": pa.array([0], pa.int32())}), mode="append")
    DeltaSparkTable.forPath(spark, path).delete("id = 1")
    DeltaTable.forPath(spark, path).delete("id = 2")
    for source in ("delta", "pydelta"):
        assert sorted(row["id"] for row in spark.read.format(source).load(path).collect()) == [0, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("identifier", "partition_schema", "condition"),
    [
        ("parquet.`{path}/parts`", None, "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        ("parquet.`{path}/parts`", "q string", "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"),
        ("parquet.`{path}/parts`", "p date", "DELTA_FAILED_CAST_PARTITION_VALUE"),
        ("parquet.`{path}/empty`", None, "DELTA_EMPTY_DIRECTORY"),
        ("csv.`{path}/parts`", None, "DELTA_CONVERT_NON_PARQUET_TABLE"),
        ("parquet.`{path}/other`", None, "FAILED_MERGE_SCHEMA_FILE|FAILED_TO_MERGE_FIELDS"),
        ("parquet.`{path}/broken`", None, "DELTA_FAILED_READ_FILE_FOOTER"),
    ],
)
def test_both_refuse_the_same_by_the_same_names(
    identifier: str, partition_schema: str | None, condition: str, spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("parts/p=x", "other", "broken", "empty"):
        (tmp_path / name).mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "parts" / "p=x" / "a.parquet")
    for number, rows in enumerate([pa.table({"id": [1]}), pa.table({"id": ["x"]})]):
        pq.write_table(rows, tmp_path / "other" / f"{number}.parquet")
    (tmp_path / "broken" / "a.parquet").write_text("no parquet")
    named = identifier.format(path=tmp_path)
    for method in (DeltaTable.convertToDelta, DeltaSparkTable.convertToDelta):
        with pytest.raises(Exception, match=condition):
            method(spark, named, *filter(None, [partition_schema]))


# ---------------------------------------------------------------- clones of Parquet files


@pytest.fixture
def parquet_table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A partitioned table of the catalog."""
    frame = spark.range(0, 20, 1, 3).selectExpr(*EVERY_TYPE)
    frame.write.partitionBy("day", "even").option("path", str(tmp_path / "named")).format("parquet").saveAsTable("raw_visits")
    spark.sql("ALTER TABLE raw_visits SET TBLPROPERTIES ('team' = 'a')")
    yield "raw_visits"
    spark.sql("DROP TABLE raw_visits")


@pytest.mark.parametrize("by_name", [True, False])
def test_both_make_the_same_clone_of_parquet_files(
    by_name: bool, spark: SparkSession, parquet_table: str, tmp_path: Path
) -> None:
    spark.range(0, 20, 1, 3).selectExpr(*EVERY_TYPE).write.parquet(str(tmp_path / "files"))
    source = parquet_table if by_name else f"parquet.`{tmp_path / 'files'}`"
    directory = tmp_path / ("named" if by_name else "files")
    before = sorted(directory.rglob("*"))
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    definitions = [
        spark.sql(f"CREATE TABLE {kind}.`{path}` SHALLOW CLONE {source} TBLPROPERTIES (k = 'v')").collect()
        for kind, path in (("pydelta", ours), ("delta", theirs))
    ]
    assert definitions[0] == definitions[1]
    mine, other = log(ours), log(theirs)
    for name in mine.keys() - {"stats"}:
        assert mine[name] == other[name], name
    assert all(entry["numRecords"] for entry in mine["stats"].values()) and len(mine["stats"]) == len(mine["files"])
    rows = spark.read.format("delta").load(ours)
    for path, kind in ((ours, "pydelta"), (theirs, "delta"), (theirs, "pydelta")):
        assert difference(rows.toArrow(), spark.read.format(kind).load(path).toArrow()) is None, (path, kind)
    DeltaSparkTable.forPath(spark, ours).delete("id = 1")
    DeltaTable.forPath(spark, theirs).delete("id = 1")
    for path in (ours, theirs):
        assert spark.read.format("delta").load(path).count() == spark.read.format("pydelta").load(path).count() == 19
    assert sorted(directory.rglob("*")) == before


NO_VERSIONS = "UNSUPPORTED_FEATURE.TIME_TRAVEL|TABLE_OR_VIEW_NOT_FOUND"  # ours, as Spark for SELECT; and delta-spark's


@pytest.mark.parametrize(
    ("source", "condition"),
    [
        ("parquet.`{path}/parts`", "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        ("csv.`{path}/parts`", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        ("a_view", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        ("parquet.`{path}/named` VERSION AS OF 0", NO_VERSIONS),
        ("raw_visits VERSION AS OF 0", NO_VERSIONS),
    ],
)
def test_both_refuse_the_same_sources_of_clones(
    source: str, condition: str, spark: SparkSession, parquet_table: str, tmp_path: Path
) -> None:
    spark.range(1).createOrReplaceTempView("a_view")
    (tmp_path / "parts" / "p=x").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "parts" / "p=x" / "a.parquet")
    for kind in ("pydelta", "delta"):
        with pytest.raises(Exception, match=condition):
            spark.sql(f"CREATE TABLE {kind}.`{tmp_path / kind}` SHALLOW CLONE {source.format(path=tmp_path)}").collect()
    spark.catalog.dropTempView("a_view")
