"""spark.read.format("pydelta"): rows, schema, the pinned version, errors."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType, VarcharType

from delta_py import DeltaTable as PlainTable
from spark_plugin import DeltaTable, register
from spark_plugin.exceptions import (
    ChangeDataFeedError,
    DataFileError,
    DeltaError,
    InvalidOptionError,
    SchemaMismatchError,
    TableNotFoundError,
)
from spark_plugin.options.catalog_session_settings import IGNORE_MISSING_FILES
from tests.support.runs.sampling import sampled
from tests.support.spark.older_settings import COLUMNAR_CONF, NATIVE_CONF
from tests.support.tables.small_table import append, make_table

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PRUNING = "spark.pydelta.pruning.enabled"


def rows(start: int, stop: int, day: str = "mon") -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [None if i % 5 == 0 else f"n{i}" for i in ids],
            "st": pa.array([{"x": i, "y": f"y{i}"} for i in ids], pa.struct([("x", pa.int32()), ("y", pa.string())])),
            "day": [day] * len(ids),
        }
    )


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three commits of ten rows each, partitioned by day: ids 0-9 mon, 10-19 tue, 20-29 wed."""
    commits = [rows(0, 10, "mon"), rows(10, 20, "tue"), rows(20, 30, "wed")]
    return make_table(tmp_path / "t", commits, partition_by=["day"])


def load(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


# ---------------------------------------------------------------- rows and schema


def test_read_gives_all_rows_and_columns(spark: SparkSession, table: str) -> None:
    frame = load(spark, table)
    assert frame.columns == ["id", "name", "st", "day"]
    assert frame.count() == 30
    first = frame.orderBy("id").first()
    assert first is not None and first.asDict(True) == {"id": 0, "name": None, "st": {"x": 0, "y": "y0"}, "day": "mon"}


def test_read_of_an_empty_table_gives_its_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = load(spark, make_table(tmp_path / "t", [rows(0, 0)]))
    assert (frame.columns, frame.count(), frame.collect()) == (["id", "name", "st", "day"], 0, [])


@pytest.mark.parametrize("pruning", ["true", "false"])
def test_read_of_a_part_of_the_columns_gives_them(spark: SparkSession, table: str, conf: Any, pruning: str) -> None:
    conf({PRUNING: pruning})
    frame = load(spark, table)
    assert frame.selectExpr("sum(st.x)", "max(day)").collect() == [(435, "wed")]
    assert frame.filter("name is null").select("st.y").count() == 6
    assert frame.select().count() == 30


def test_read_schema_has_nullability_and_comments(spark: SparkSession, tmp_path: Path) -> None:
    schema = (
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{"comment":"key"}},'
        '{"name":"s","type":"string","nullable":true,"metadata":{"delta.generationExpression":"id"}}]}'
    )
    data = pa.table({"id": pa.array([1], pa.int64()), "s": ["a"]})
    frame = load(spark, make_table(tmp_path / "t", [data], schema_json=schema))
    assert [(f.name, f.nullable, f.metadata) for f in frame.schema] == [("id", False, {"comment": "key"}), ("s", True, {})]
    assert frame.collect() == [(1, "a")]


# ---------------------------------------------------------------- filters never go stale


@pytest.mark.parametrize(("pushdown", "pruning"), sampled(product(["true", "false"], repeat=2), 2))
def test_frame_with_different_filters_gives_the_rows_of_each(
    spark: SparkSession, table: str, conf: Any, pushdown: str, pruning: str
) -> None:
    conf({PUSHDOWN: pushdown, PRUNING: pruning})
    frame = load(spark, table)
    assert ids(frame.filter("id = 3")) == [3]
    assert ids(frame.filter("id = 17")) == [17]
    assert frame.count() == 30
    assert ids(frame.filter("day = 'tue'")) == list(range(10, 20))
    assert ids(frame.filter("id = 3").union(frame.filter("id = 25"))) == [3, 25]
    joined = frame.filter("id < 5").alias("a").join(frame.filter("id > 2").alias("b"), "id")
    assert ids(joined) == [3, 4]
    frame.createOrReplaceTempView("stale")
    assert spark.sql(
        "select (select max(id) from stale where day = 'mon'), (select min(id) from stale where day = 'wed')"
    ).collect() == [(9, 20)]


# ---------------------------------------------------------------- the version is pinned


def test_frame_reads_the_version_of_its_load_in_every_action(spark: SparkSession, table: str) -> None:
    frame = load(spark, table)
    append(Path(table), rows(30, 40, "thu"), partition_by=["day"])
    assert (frame.count(), ids(frame)[-1]) == (30, 29)
    assert ids(frame.alias("a").join(load(spark, table).alias("b"), "id")) == list(range(30))
    assert load(spark, table).count() == 40


def test_frame_with_user_schema_is_pinned_by_its_first_query(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("pydelta").schema("id bigint").load(table)
    assert frame.count() == 30
    append(Path(table), rows(30, 40, "thu"), partition_by=["day"])
    assert ids(frame) == list(range(30))


def test_follow_latest_reads_the_newest_version_in_each_query(spark: SparkSession, table: str) -> None:
    frame = load(spark, table, followLatest="true")
    assert ids(frame.filter("id >= 0")) == list(range(30))
    append(Path(table), rows(30, 40, "thu"), partition_by=["day"])
    assert ids(frame.filter("id >= 0")) == list(range(40))


def test_follow_latest_with_a_replaced_table_is_refused(spark: SparkSession, table: str) -> None:
    frame = load(spark, table, followLatest="true")
    shutil.rmtree(table)
    make_table(Path(table), [rows(0, 3)])
    with pytest.raises(SchemaMismatchError, match="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
        frame.count()


# ---------------------------------------------------------------- the user's own schema


def test_schema_of_the_users_restricts_the_columns(spark: SparkSession, table: str) -> None:
    frame = spark.read.format("pydelta").schema("ID bigint, st struct<Y: string>").load(table)
    assert frame.columns == ["ID", "st"]
    assert frame.orderBy("ID").first() == (0, ("y0",))
    assert frame.filter("id = 12").count() == 1


def test_user_schema_may_allow_nulls_that_the_table_forbids(spark: SparkSession, tmp_path: Path) -> None:
    strict = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}}]}'
    path = make_table(tmp_path / "t", [pa.table({"id": pa.array([1], pa.int64())})], schema_json=strict)
    assert spark.read.format("pydelta").schema("id bigint").load(path).collect() == [(1,)]


@pytest.mark.parametrize(
    ("schema", "condition"),
    [
        ("id int", "DELTA_METADATA_MISMATCH"),
        ("id bigint not null", "DELTA_METADATA_MISMATCH"),
        ("nope bigint", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ],
)
def test_user_schema_that_the_table_cannot_give_is_refused(
    spark: SparkSession, table: str, schema: str, condition: str
) -> None:
    frame = spark.read.format("pydelta").schema(schema).load(table)
    with pytest.raises(SchemaMismatchError) as caught:
        frame.collect()
    assert caught.value.error_class == condition


@pytest.mark.parametrize("prunes", ["true", "false"])
@pytest.mark.parametrize(
    ("schema", "query"),
    [
        ("id bigint, nope int", lambda frame: frame.select("id")),
        ("id bigint, day int", lambda frame: frame.groupBy().count()),
        ("id bigint, st struct<nope: int>", lambda frame: frame.selectExpr("min(id)")),
        ("id bigint, day string not null", lambda frame: frame.limit(1).select("id")),
    ],
)
def test_wrong_user_schema_fails_queries_of_its_valid_columns(
    spark: SparkSession, table: str, conf: Any, schema: str, query: Callable[[DataFrame], DataFrame], prunes: str
) -> None:
    conf({PRUNING: prunes})
    with pytest.raises(SchemaMismatchError):
        query(spark.read.format("pydelta").schema(schema).load(table)).collect()


def test_schema_of_the_users_given_to_load_is_checked_too(spark: SparkSession, table: str) -> None:
    with pytest.raises(SchemaMismatchError):
        spark.read.load(table, format="pydelta", schema="id bigint, nope int").count()


def test_user_schema_may_use_varchar_if_spark_reads_it_as_string(spark: SparkSession, table: str, conf: Any) -> None:
    conf({"spark.sql.legacy.charVarcharAsString": "true"})
    for schema in ("name varchar(9), id bigint", StructType().add("name", VarcharType(9)).add("id", LongType())):
        frame = spark.read.format("pydelta").schema(schema).load(table)
        assert frame.schema.simpleString() == "struct<name:string,id:bigint>"
        assert (frame.count(), frame.filter("id = 12").collect()) == (30, [("n12", 12)])


# ---------------------------------------------------------------- options


def test_options_filter_and_columns_do_by_hand_what_pruning_does(spark: SparkSession, table: str, conf: Any) -> None:
    conf({PRUNING: "false"})
    frame = load(spark, table, columns="name, id", filter="day = 'tue' and st.x in (11, 12, 25)")
    assert frame.columns == ["name", "id"]
    assert sorted(frame.collect()) == [("n11", 11), ("n12", 12)]
    assert ids(frame.filter("id > 11")) == [12]


def test_option_filter_combines_with_the_filter_of_the_query(spark: SparkSession, table: str) -> None:
    frame = load(spark, table, filter="id % 2 = 0")
    assert ids(frame.filter("id > 24")) == [26, 28]
    assert frame.filter("id = 3").count() == 0


def test_option_columns_with_an_unknown_column_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(SchemaMismatchError, match="nope"):
        load(spark, table, columns="id, nope")


def test_option_metadata_column_adds_where_a_row_comes_from(spark: SparkSession, table: str) -> None:
    frame = load(spark, table, metadataColumn="true")
    assert frame.columns == ["id", "name", "st", "day", "_metadata"]
    place = frame.filter("id = 13").select("_metadata.file_path", "_metadata.row_index").first()
    assert place is not None and place["row_index"] == 3
    assert "day=tue/part-" in place["file_path"]


def test_option_ignore_missing_files_reads_the_existing_files(spark: SparkSession, table: str) -> None:
    next((Path(table) / "day=tue").glob("*.parquet")).unlink()
    with pytest.raises(DataFileError, match="ignoreMissingFiles") as caught:
        load(spark, table).collect()
    assert caught.value.error_class == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert ids(load(spark, table, ignoreMissingFiles="true")) == [*range(10), *range(20, 30)]


READERS: dict[str, dict[str, str]] = {
    "columns": {COLUMNAR_CONF: "true", NATIVE_CONF: "false"},
    "rows": {COLUMNAR_CONF: "false"},
    "Spark's Parquet reader": {COLUMNAR_CONF: "true", NATIVE_CONF: "true"},
    "driver": {"spark.pydelta.driverReads.enabled": "true"},
    "planned by a worker": {"spark.pydelta.driverPlanning.enabled": "false"},
}


@pytest.mark.parametrize("reader", READERS)
def test_setting_ignore_missing_files_counts_for_each_reader(spark: SparkSession, table: str, reader: str, conf: Any) -> None:
    """Counts and bounds too, for which the log would include the rows of the missing file."""
    next((Path(table) / "day=mon").glob("*.parquet")).unlink()
    conf({IGNORE_MISSING_FILES: "true", **READERS[reader]})
    frame = load(spark, table)
    assert ids(frame) == list(range(10, 30))
    assert (frame.count(), frame.limit(5).count()) == (20, 5)
    by_name = spark.sql(f"SELECT min(id), max(id), sum(id), count(name), min(day) FROM pydelta.`{table}`")
    assert tuple(by_name.first()) == (10, 29, 390, 16, "tue")
    assert [tuple(row) for row in frame.groupBy("day").count().orderBy("day").collect()] == [("tue", 10), ("wed", 10)]
    with pytest.raises(DataFileError, match="day=mon"):
        load(spark, table, ignoreMissingFiles="false").collect()


def test_setting_ignore_missing_files_counts_for_change_feeds(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    path = make_table(tmp_path / "t", [rows(0, 3), rows(3, 6)], properties={"delta.enableChangeDataFeed": "true"})
    next(Path(path).glob("*.parquet")).unlink()
    feed = {"readChangeFeed": "true", "startingVersion": "0"}
    with pytest.raises(DataFileError):
        load(spark, path, **feed).collect()
    conf({IGNORE_MISSING_FILES: "true"})
    assert load(spark, path, **feed).count() == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update("id IN (1, 11)", {"name": "'x'"}),
        lambda table: table.merge(table.toDF().sparkSession.range(5, 15).toDF("k"), "id = k")
        .whenMatchedUpdate(set={"name": "'x'"})
        .whenNotMatchedInsert(values={"id": "k"})
        .execute(),
        lambda table: table.addConstraint("small", "id < 100"),
    ],
    ids=["update", "merge", "constraint"],
)
def test_no_change_leaves_missing_files_out(
    spark: SparkSession, tmp_path: Path, change: Callable[[DeltaTable], object], conf: Any
) -> None:
    """Its commit would lose their rows for good, although somebody may restore the files."""
    path = make_table(tmp_path / "t", [rows(0, 10), rows(10, 20)])
    (missing_path,) = (path for path in PlainTable(path, version=0).files()["path"].to_pylist())
    (Path(path) / missing_path).unlink()
    conf({IGNORE_MISSING_FILES: "true"})
    with pytest.raises((DeltaError, PySparkException), match="FILE_NOT_FOUND"):
        change(DeltaTable.forPath(spark, path))
    assert PlainTable(path).version == 1


def test_option_unknown_is_refused_with_the_nearest(spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidOptionError, match="Did you mean versionAsOf"):
        load(spark, table, versionsAsOf="1")


# ---------------------------------------------------------------- errors


def test_error_is_one_of_ours_and_one_of_sparks(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as caught:
        load(spark, str(tmp_path / "nothing"))
    error = caught.value
    assert isinstance(error, AnalysisException) and isinstance(error, PySparkException)
    assert error.error_class == error.getCondition() == "DELTA_PATH_DOES_NOT_EXIST"
    assert str(error).startswith("[DELTA_PATH_DOES_NOT_EXIST]") and "Traceback" not in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is TableNotFoundError and copy.message == error.message


def test_error_of_spark_itself_is_left_alone(spark: SparkSession, table: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        load(spark, table).select("nope").collect()
    assert not isinstance(caught.value, DeltaError)
    assert caught.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


def test_load_of_two_paths_and_of_none_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidOptionError, match="got 2 paths"):
        spark.read.format("pydelta").load([table, table])
    with pytest.raises(InvalidOptionError, match="'path' is not specified"):
        spark.read.format("pydelta").load()


# ---------------------------------------------------------------- change data feed


def test_change_feed_returns_its_range_and_pins_the_end(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    make_table(root, [rows(0, 3), rows(3, 5)], properties={"delta.enableChangeDataFeed": "true"})
    frame = load(spark, str(root), readChangeFeed="true", startingVersion="1")
    append(root, rows(5, 9))
    assert frame.columns == ["id", "name", "st", "day", "_change_type", "_commit_version", "_commit_timestamp"]
    assert frame.select("id", "_change_type", "_commit_version").orderBy("id").collect() == [(3, "insert", 1), (4, "insert", 1)]
    assert load(spark, str(root), readChangeFeed="true", startingVersion=0, endingVersion=2).filter("id >= 4").count() == 5


def test_change_feed_of_a_table_without_one_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(ChangeDataFeedError):
        load(spark, table, readChangeFeed="true", startingVersion="0").collect()
    with pytest.raises(ChangeDataFeedError) as caught:
        load(spark, table, readChangeFeed="true")
    assert caught.value.error_class == "DELTA_NO_START_FOR_CDC_READ"


# ---------------------------------------------------------------- SQL


def test_catalog_table_over_a_path_is_read(spark: SparkSession, table: str) -> None:
    spark.sql(f"create table in_catalog using pydelta options (path '{table}')")
    try:
        assert spark.sql("select max(id) from in_catalog where day = 'tue'").collect() == [(19,)]
        assert spark.table("in_catalog").count() == 30
        assert spark.sql("select count(*) from in_catalog").collect() == [(30,)]
    finally:
        spark.sql("drop table in_catalog")


# ---------------------------------------------------------------- DeltaTable


def test_delta_table_knows_a_table_from_a_directory(spark: SparkSession, table: str, tmp_path: Path) -> None:
    assert DeltaTable.isDeltaTable(spark, table)
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path / "nothing"))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "x.txt").write_text("x")
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path / "plain"))
    with pytest.raises(TableNotFoundError):
        DeltaTable.forPath(spark, str(tmp_path / "plain"))
    assert DeltaTable.forPath(spark, table, {"fs.x": "y", "dfs.z": "1"}).toDF().count() == 30
    with pytest.raises(InvalidOptionError, match="hadoopConf"):
        DeltaTable.forPath(spark, table, {"user.name": "y"})


def test_delta_table_rows_are_those_of_the_newest_version(spark: SparkSession, table: str) -> None:
    known_table = DeltaTable.forPath(spark, table)
    append(Path(table), rows(30, 40, "thu"), partition_by=["day"])
    assert known_table.toDF().count() == 40
    assert known_table.alias("t").toDF().select("t.id").count() == 40


def test_delta_table_history_has_the_columns_of_describe_history(spark: SparkSession, table: str) -> None:
    history = DeltaTable.forPath(spark, table).history()
    named = "version timestamp userId userName operation operationParameters job notebook clusterId readVersion"
    assert " ".join(history.columns) == f"{named} isolationLevel isBlindAppend operationMetrics userMetadata engineInfo"
    assert [(row["version"], row["operation"]) for row in history.collect()] == [(2, "WRITE"), (1, "WRITE"), (0, "WRITE")]
    assert history.select("version", "job.jobId").first() == (2, None)
    assert history.count() == 3
    assert [row["version"] for row in DeltaTable.forPath(spark, table).history(1).collect()] == [2]


def test_delta_table_detail_has_the_columns_of_describe_detail(spark: SparkSession, table: str) -> None:
    detail = DeltaTable.forPath(spark, table).detail().first()
    assert detail is not None
    fields = detail.asDict(True)
    named = "format id name description location createdAt lastModified partitionColumns clusteringColumns numFiles"
    assert " ".join(fields) == f"{named} sizeInBytes properties minReaderVersion minWriterVersion tableFeatures"
    assert (fields["format"], fields["location"], fields["numFiles"]) == ("delta", f"file:{table}", 3)
    assert (fields["partitionColumns"], fields["clusteringColumns"], fields["properties"]) == (["day"], [], {})
    assert fields["sizeInBytes"] == sum(file.stat().st_size for file in Path(table).rglob("*.parquet"))
    assert (fields["minReaderVersion"], fields["minWriterVersion"]) == (1, 4)
    assert {"appendOnly", "invariants", "changeDataFeed"} <= set(fields["tableFeatures"])


def test_register_again_is_harmless(spark: SparkSession, table: str) -> None:
    register(spark)
    assert load(spark, table).count() == 30
