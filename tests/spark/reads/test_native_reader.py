"""The native reader: Spark's own Parquet reader for files that it certainly reads as Python does; Python for all others."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py.errors import DeletionVectorError
from delta_py.protocol.deletion_vectors import from_row_indexes, inline_descriptor
from spark_plugin import DeltaTable, pruning
from tests.support.generators.parquet_footers import join_files
from tests.support.runs.sampling import sampled
from tests.support.spark.older_settings import COLUMNAR_CONF, NATIVE_CONF
from tests.support.spark.settings import restore
from tests.support.tables.small_table import WITH_VECTORS, append, append_file, make_table


@pytest.fixture
def native(spark: SparkSession, conf: Any) -> Iterator[Callable[[], int]]:
    """Switches the reader on; returns the number of scans that used it since."""
    before = pruning.status(spark)
    conf({NATIVE_CONF: "true", COLUMNAR_CONF: "true"})
    yield lambda: pruning.status(spark)["parquet"].used - before["parquet"].used
    after = pruning.status(spark)
    assert after["pruning"].skipped == before["pruning"].skipped, after.last_error


def tasks(df: DataFrame) -> list[bool]:
    """For each task of the frame's scans, whether it is for Spark's reader."""
    leaves = df._jdf.queryExecution().sparkPlan().collectLeaves()
    kinds = []
    for leaf in map(leaves.apply, range(leaves.length())):
        if leaf.nodeName().startswith("BatchScan"):
            partitions = leaf.inputPartitions()
            names = [partitions.apply(i).getClass().getSimpleName() for i in range(partitions.length())]
            kinds += [name == "NativePartition" for name in names]
    return kinds


def bytes_from_python(df: DataFrame) -> int:
    """The bytes that Python sent for the frame's scans when the query ran."""
    leaves = df._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(i).metrics() for i in range(leaves.length())]
    return sum(m.apply("pythonDataReceived").value() for m in metrics if m.contains("pythonDataReceived"))


def rows(df: DataFrame) -> list[str]:
    return sorted(repr(row) for row in df.collect())


def in_python(spark: SparkSession, df: Callable[[], DataFrame]) -> list[str]:
    before = {NATIVE_CONF: spark.conf.get(NATIVE_CONF, None)}
    spark.conf.set(NATIVE_CONF, "false")
    try:
        by_python = df()
        assert not any(tasks(by_python))
        return rows(by_python)
    finally:
        restore(spark, before)


def same_both_ways(spark: SparkSession, df: Callable[[], DataFrame]) -> list[bool]:
    """Asserts that the rows equal those of Python; returns the tasks, as `tasks` does."""
    by_spark = df()
    assert rows(by_spark) == in_python(spark, df)
    return tasks(by_spark)


def test_spark_s_reader_has_a_task_a_core_and_python_two(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    cores = spark.sparkContext.defaultParallelism
    path = make_table(tmp_path / "t", [pa.table({"id": [n]}) for n in range(4 * cores)])
    load = spark.read.format("pydelta").load
    assert tasks(load(path)) == [True] * cores
    conf({"spark.sql.files.minPartitionNum": "3"})
    assert tasks(load(path)) == [True] * 3
    conf({NATIVE_CONF: "false"})
    assert tasks(load(path)) == [False] * 3
    spark.conf.unset("spark.sql.files.minPartitionNum")
    assert tasks(load(path)) == [False] * 2 * cores



@pytest.mark.skipif("PYDELTA_NATIVE_READER" in os.environ, reason="the session of all tests says what it wants")
def test_native_reader_reads_where_faster_unless_conf_decides(
    spark: SparkSession, tmp_path: Path, conf: Any
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [1, 2], "s": ["a", "b"]})])
    say_size(path, LARGE)

    def by_spark(column: str) -> bool:
        [is_by_spark] = set(tasks(spark.read.format("pydelta").load(path).select(column)))
        return is_by_spark

    for setting, numbers, texts in (("false", False, False), ("true", True, True), ("auto", False, True)):
        conf({NATIVE_CONF: setting})
        assert (by_spark("id"), by_spark("s")) == (numbers, texts), setting
    spark.conf.unset(NATIVE_CONF)
    assert (by_spark("id"), by_spark("s")) == (False, True)


LARGE = 49 << 20


def say_size(path: str, size: int) -> None:
    """Changes the size of each file in the log."""
    for commit in (Path(path) / "_delta_log").glob("*.json"):
        commit.write_text(re.sub(r'"size": ?\d+', f'"size":{size}', commit.read_text()))
        commit.with_suffix(".crc").unlink(missing_ok=True)


# Columns that are read, and whether Spark's reader is likely faster.
QUICKER = {"n, x": False, "n, x, at, p": False, "n": False, "p": True, "s": True, "d, n": False, "p, d, n": True, "st": True}


@pytest.mark.parametrize("columns", QUICKER)
def test_auto_leaves_plain_numbers_to_python(columns: str, spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    conf({NATIVE_CONF: "auto"})
    path = str(tmp_path / "t")
    values = ["id n", "rand() x", "timestamp_seconds(id) at", "cast(id as decimal(12, 2)) p", "cast(id as string) s"]
    frame = spark.range(50).selectExpr(*values, "date_add(date'2020-01-01', cast(id as int)) d", "named_struct('n', id) st")
    frame.coalesce(1).write.format("pydelta").option("delta.enableDeletionVectors", "true").save(path)
    assert tasks(spark.read.format("pydelta").load(path).selectExpr(*columns.split(", "))) == [True], "small files"
    say_size(path, LARGE)
    assert set(tasks(spark.read.format("pydelta").load(path).selectExpr(*columns.split(", ")))) == {QUICKER[columns]}


@pytest.mark.parametrize(("group_rows", "is_native"), [(1 << 17, False), (1 << 18, True)])
def test_auto_has_large_row_groups_read_by_sparks_reader(
    group_rows: int, is_native: bool, spark: SparkSession, tmp_path: Path, conf: Any
) -> None:
    conf({NATIVE_CONF: "auto"})
    commits = [pa.table({"n": [7]}), pa.table({"n": np.arange(300_000)})]
    path = make_table(tmp_path / "t", commits, row_group_size=group_rows)
    [large] = [file for file in Path(path).glob("*.parquet") if file.stat().st_size > 100_000]
    load = spark.read.format("pydelta").load
    assert {*tasks(load(path))} == {True}, "little to read"
    say_size(path, LARGE)
    log = Path(path) / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace(f'"size":{LARGE}', '"size":500'))
    assert {*tasks(load(path))} == {is_native}, "as of the largest file"
    assert load(path).selectExpr("sum(n)").collect() == [(299_999 * 150_000 + 7,)]
    large.write_bytes(large.read_bytes()[:-9] + b"\xff" * 5 + b"PAR1")
    assert {*tasks(load(path))} == {False}, "its footer is too large, if it has one"
    large.write_bytes(b"")
    assert {*tasks(load(path))} == {False}


def test_auto_has_deleted_rows_left_out_by_sparks_reader(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    conf({NATIVE_CONF: "auto"})
    path = make_table(tmp_path / "t", [pa.table({"id": range(100)})], **WITH_VECTORS)
    DeltaTable.forPath(spark, path).delete("id % 3 = 1")
    assert same_both_ways(spark, lambda: spark.read.format("pydelta").load(path)) == [True]
    say_size(path, LARGE)
    assert set(tasks(spark.read.format("pydelta").load(path))) == {True}


# Conditions, and whether Spark's reader gets filters that exclude half of the table or more.
NARROW = {
    "n = 7": True,
    "n >= 4 and m is not null": True,
    "n in (1, 2) or n < 3": True,
    "n >= 0": False,
    "m = 7": False,
    "x = 7.0": False,
    "n = 7 and x > 0.0": False,
    "late is not null": False,
}


@pytest.mark.parametrize("condition", NARROW)
def test_auto_chooses_spark_reader_for_tables_narrowed_by_bounds(
    condition: str, spark: SparkSession, tmp_path: Path, conf: Any
) -> None:
    conf({NATIVE_CONF: "auto"})

    def values(low: int) -> pa.Table:
        late = pa.array([low if low == 6 else None] * 2, pa.int64())
        return pa.table({"n": [low, low + 1], "m": [0, 9], "x": [float(low), low + 1.0], "late": late})

    path = make_table(tmp_path / "t", [values(low) for low in range(0, 8, 2)])
    say_size(path, LARGE)
    assert set(tasks(spark.read.format("pydelta").load(path).filter(condition))) == {NARROW[condition]}


# ---------------------------------------------------------------- pages that their index rules out


def pages_of(rows: int) -> dict[str, Any]:
    """Options of pyarrow's writer for pages of this number of rows, with an index of them."""
    return {"write_batch_size": rows, "data_page_size": 1, "write_page_index": True}


def with_pages(path: Path, rows: int, page: int) -> str:
    """A table of one file of one row group, sorted by id, whose pages have this number of rows and an index."""
    ids = pa.array(range(rows), pa.int64())
    columns = {
        "id": ids,
        "s": [None if n // 500 % 4 == 3 else f"text {n // 250:04} {n}" for n in range(rows)],
        "p": pa.array([n // 3 for n in range(rows)], pa.decimal128(12, 2)),
        "d": pa.array([dt.date(2020, 1, 1) + dt.timedelta(n // 40) for n in range(rows)]),
        "x": pa.array([-0.0 if n % 2 else 0.0 for n in range(rows)], pa.float64()),
        "st": pa.StructArray.from_arrays([ids, pa.array([[n] * (n % 3) for n in range(rows)])], ["x", "ar"]),
    }
    table = pa.table(columns)
    make_table(path, [table.slice(0, 0)], **WITH_VECTORS)
    pq.write_table(table, path / "paged.parquet", use_dictionary=["s"], **pages_of(page))
    append_file(path, path / "paged.parquet")
    return str(path)


OF_FEW_PAGES = {
    "a number": "id = 4321",
    "a range": "id >= 1234 and id < 1801",
    "two ranges": "id < 150 or id between 7000 and 7111",
    "a text": "s = 'text 0013 3333'",
    "the begin of a text": "s like 'text 002%'",
    "nulls": "s is null and id < 3000",
    "no nulls": "s is not null and id > 9000",
    "a decimal": "p in (17.00, 3000.00)",
    "a day": "d between date'2020-03-01' and date'2020-03-03'",
    "not": "not (id > 99)",
    "zeros": "x = 0.0 and id in (2, 3, 5000)",
    "a field": "st.x = 777",
    "none": "id = 77777",
}


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("name", sampled(OF_FEW_PAGES, 5))
def test_pages_that_their_index_rules_out_take_no_row_away(
    name: str, deleted: bool, spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    conf({"spark.sql.parquet.filterPushdown": "true"})
    path = with_pages(tmp_path / "t", 10_000, 100)
    if deleted:
        DeltaTable.forPath(spark, path).delete("id % 3 = 1 or id between 1300 and 1700")
    assert set(same_both_ways(spark, lambda: spark.read.format("pydelta").load(path).filter(OF_FEW_PAGES[name]))) <= {True}
    assert native() == 1


def spoil(file: Path, column: int, share: float) -> None:
    """Overwrites a page of a column's only chunk, at this share of it, with invalid bytes."""
    chunk, data = pq.ParquetFile(file).metadata.row_group(0).column(column), bytearray(file.read_bytes())
    place = chunk.data_page_offset + int(chunk.total_compressed_size * share)
    data[place : place + 500] = b"\xff" * 500
    file.write_bytes(data)


# Conditions in which one column, 0 to 4, decides which pages are read; and the number of rows.
IN_THE_BEGIN = {
    "id between 210 and 220": (0, 11),
    "s like 'text 0001%'": (1, 250),
    "p < 20.00": (2, 60),
    "d < date'2020-01-03'": (3, 80),
}


@pytest.mark.parametrize("condition", IN_THE_BEGIN)
def test_pages_that_their_index_rules_out_are_not_read(
    condition: str, spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    """An invalid page shows it: any reader of it fails, and then Spark's reader lets Python read the file."""
    conf({"spark.sql.parquet.filterPushdown": "true"})
    path = with_pages(tmp_path / "t", 10_000, 100)
    column, count = IN_THE_BEGIN[condition]
    spoil(tmp_path / "t" / "paged.parquet", column, 0.7)

    def read(*columns: str) -> DataFrame:
        return spark.read.format("pydelta").load(path).filter(condition).select(*columns)

    few = read("id", "s", "p", "d", "x", "st.x")
    assert len(few.collect()) == count and bytes_from_python(few) == 0
    assert native() == 1
    with pytest.raises(PySparkException, match="cannot be read"):
        read("id", "s", "p", "d", "st.ar").collect()  # with arrays no index is used
    conf({"parquet.filter.columnindex.enabled": "false"})
    with pytest.raises(PySparkException, match="cannot be read"):
        read("id", "s", "p", "d").collect()


def test_bloom_filters_are_asked(spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any) -> None:
    """A value within the bounds of an invalid page."""
    conf({"spark.sql.parquet.filterPushdown": "true"})
    path = make_table(tmp_path / "t", [pa.table({"n": pa.array([], pa.int64())})])
    file = tmp_path / "t" / "filtered.parquet"
    options = {"n": {"ndv": 5_000, "fpp": 0.001}}
    pq.write_table(pa.table({"n": range(0, 10_000, 2)}), file, use_dictionary=False, bloom_filter_options=options)
    append_file(Path(path), file)
    spoil(file, 0, 0.5)
    none = spark.read.format("pydelta").load(path).filter("n = 5001")
    assert none.collect() == [] and bytes_from_python(none) == 0
    conf({"parquet.filter.bloom.enabled": "false"})
    with pytest.raises(PySparkException, match="cannot be read"):
        spark.read.format("pydelta").load(path).filter("n = 5001").collect()


def test_file_read_by_python_after_skipped_pages_has_all_rows(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    """Only Python can read its second row group, and the first has more remaining rows than a batch."""
    conf({"spark.sql.parquet.filterPushdown": "true"})
    empty = pa.table({"id": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    path = make_table(tmp_path / "t", [empty], **WITH_VECTORS)
    parts = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for number, part in enumerate(parts):
        ids = range(number * 20_000, (number + 1) * 20_000)
        compression = ("snappy", "brotli")[number]
        rows_of_part = pa.table({"id": ids, "s": [f"t{n}" for n in ids]})
        pq.write_table(rows_of_part, part, compression=compression, use_dictionary=False, **pages_of(500))
    file = Path(path, "joined.parquet")
    join_files(file, *parts)
    append_file(Path(path), file)
    DeltaTable.forPath(spark, path).delete("id % 7 = 3")
    df = spark.read.format("pydelta").load(path).filter("id between 5200 and 15000 or id between 30000 and 30100")
    expected = [n for n in (*range(5_200, 15_001), *range(30_000, 30_101)) if n % 7 != 3]
    assert sorted(row.id for row in df.collect()) == expected
    assert native() >= 1 and bytes_from_python(df) > 0


# ---------------------------------------------------------------- files that do not store the table's types


def foreign_table(root: Path, declared: pa.DataType, stored: pa.Array, *, dictionary: bool) -> str:
    """A table of three files. The second one has a column `v` that is stored as another type than the table's."""
    sound = [pa.table({"id": pa.array([n], pa.int64()), "v": pa.array([None], declared)}) for n in (0, 900)]
    path = make_table(root, sound)
    odd = pa.table({"id": pa.array(range(1, 1 + len(stored)), pa.int64()), "v": stored})
    file = root / "odd.parquet"
    pq.write_table(odd, file, use_dictionary=dictionary, store_schema=False)
    append_file(root, file)
    return path


FOREIGN: dict[str, tuple[pa.DataType, pa.Array]] = {
    "unsigned above the range of INT": (pa.int32(), pa.array([2**32 - 1, 7], pa.uint32())),
    "unsigned within it": (pa.int32(), pa.array([7, 8], pa.uint32())),
    "too large for TINYINT": (pa.int8(), pa.array([300, 7], pa.int32())),
    "too large for SMALLINT": (pa.int16(), pa.array([70_000, 7], pa.int32())),
    "narrower than BIGINT": (pa.int64(), pa.array([3, 7], pa.int32())),
    "nanoseconds": (pa.timestamp("us", "UTC"), pa.array([1_700_000_000_000_000_001], pa.timestamp("ns", "UTC"))),
    "times without a zone": (pa.timestamp("us", "UTC"), pa.array([1_700_000_000_000_001], pa.timestamp("us"))),
    "bytes for a text": (pa.string(), pa.array([b"a", b"b"])),
    "decimals of another scale": (pa.decimal128(9, 2), pa.array([None, "1.5"], pa.string()).cast(pa.decimal128(9, 4))),
}


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("name", sampled(FOREIGN, 5))
def test_file_of_another_type_comes_out_as_from_python(
    name: str, dictionary: bool, spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    path = foreign_table(tmp_path / "t", *FOREIGN[name], dictionary=dictionary)

    def outcome() -> list[str]:
        try:
            return rows(spark.read.format("pydelta").load(path))
        except PySparkException as error:
            return ["does not go with the table" if "does not go with the table" in str(error) else str(error)]

    python_outcome = outcome()
    assert native() == 1
    conf({NATIVE_CONF: "false"})
    assert python_outcome == outcome()
    assert len(python_outcome) > 1 or python_outcome == ["does not go with the table"]


def fixed_decimals(spark: SparkSession, file: Path, length: int, values: list[int]) -> None:
    """A Parquet file of v DECIMAL(18, 2) in arrays of this length, which pyarrow does not write."""
    jvm: Any = spark._jvm
    message = f"message m {{ optional fixed_len_byte_array({length}) v (DECIMAL(18,2)); }}"
    schema = jvm.org.apache.parquet.schema.MessageTypeParser.parseMessageType(message)
    builder = jvm.org.apache.parquet.hadoop.example.ExampleParquetWriter.builder(jvm.org.apache.hadoop.fs.Path(str(file)))
    writer = builder.withType(schema).build()
    for value in values:
        row = jvm.org.apache.parquet.example.data.simple.SimpleGroup(schema)
        row.add("v", jvm.org.apache.parquet.io.api.Binary.fromConstantByteArray(value.to_bytes(length, "big", signed=True)))
        writer.write(row)
    writer.close()


@pytest.mark.parametrize("length", sampled([8, 9, 12, 16], 2))
def test_decimals_in_fixed_bytes_of_any_length_keep_their_values(
    length: int, spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"v": pa.array([None], pa.decimal128(18, 2))})])
    file, values = Path(path, "odd.parquet"), [-5, 1_234_567, 10**17]
    fixed_decimals(spark, file, length, values)
    append_file(Path(path), file)
    read_rows = spark.read.format("pydelta").load(path).filter("v is not null").collect()
    assert sorted(int(row.v.scaleb(2)) for row in read_rows) == values
    assert native() == 1


# A file's metadata and bounds, and a filter that matches its rows.
LEGACY = {"org.apache.spark.version": "3.2.0", "org.apache.spark.legacyDateTime": ""}
OF_THE_FILTER: dict[str, tuple[pa.Array, dict[str, str], str]] = {
    "milliseconds": (pa.array([1_700_000_000_000], pa.timestamp("ms", "UTC")), {}, "v < timestamp'2023-11-14 22:13:20.0005Z'"),
    "a day that was left out": (pa.array([dt.date(1582, 10, 12)]), {}, "v > date'1582-10-10'"),
    "a time of that day": (
        pa.array([dt.datetime(1582, 10, 12, 1)], pa.timestamp("us", "UTC")), {}, "v = timestamp'1582-10-12 01:00:00Z'"
    ),
    "a time of the second year": (
        pa.array([dt.datetime(2, 1, 1)], pa.timestamp("us", "UTC")), {}, "v = timestamp'0002-01-01 00:00:00Z'"
    ),
    "a time without a zone": (
        pa.array([dt.datetime(1582, 10, 12, 1)], pa.timestamp("us")), {}, "v = timestamp_ntz'1582-10-12 01:00:00'"
    ),
    "a day that there is no more": (pa.array([dt.date(1500, 3, 10)]), LEGACY, "v = date'1500-03-01'"),
    "of an old Spark": (pa.array([dt.date(1500, 3, 10)]), {"org.apache.spark.version": "2.4.5"}, "v = date'1500-03-01'"),
}


@pytest.mark.parametrize("name", OF_THE_FILTER)
def test_filter_of_days_and_times_leaves_out_no_row(
    name: str, spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    conf({"spark.sql.parquet.filterPushdown": "true"})
    stored, metadata, condition = OF_THE_FILTER[name]
    declared = pa.timestamp("us", "UTC") if pa.types.is_timestamp(stored.type) else stored.type
    path = make_table(tmp_path / "t", [pa.table({"v": pa.array([], declared)})])
    file = Path(path, "odd.parquet")
    pq.write_table(pa.table({"v": stored}).replace_schema_metadata(metadata), file)
    append_file(Path(path), file)
    assert len(spark.read.format("pydelta").load(path).filter(condition).collect()) == 1
    assert native() == 1


@pytest.mark.parametrize("zone", ["Pacific/Apia", "UTC"])
def test_filter_of_a_day_asks_no_time_zone(
    zone: str, spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    """The time zone of the JVM, in which the day may not exist, and which may differ from that of the executors' JVMs."""
    conf({"spark.sql.parquet.filterPushdown": "true"})
    path = make_table(tmp_path / "t", [pa.table({"v": pa.array([dt.date(2011, 12, 30)])})])
    zones = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    default_zone = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    try:
        df = spark.read.format("pydelta").load(path).filter("v = date'2011-12-30'").selectExpr("cast(v as string) v")
        assert [row.v for row in df.collect()] == ["2011-12-30"]
    finally:
        zones.setDefault(default_zone)
    assert native() == 1


def test_rows_before_a_file_that_only_python_reads_come_once(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    """All files in one task, so that Python continues within it."""
    conf({"spark.sql.files.minPartitionNum": "1"})
    path = foreign_table(tmp_path / "t", pa.int64(), pa.array([3, 7], pa.int32()), dictionary=False)
    df = spark.read.format("pydelta").load(path).coalesce(1)
    assert sorted(row.id for row in df.collect()) == [0, 1, 2, 900]
    assert native() == 1


def test_file_of_another_size_than_the_log_says_is_read_whole(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(1000)})])
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] = 5
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert same_both_ways(spark, lambda: spark.read.format("pydelta").load(path)) == [True]


@pytest.mark.parametrize("size", [0, 8])
def test_pipe_in_place_of_a_file_gives_the_error_of_python(
    size: int, spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [1]})])
    data = next(Path(path).glob("*.parquet"))
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace(f'"size": {data.stat().st_size}', f'"size": {size}'))
    data.unlink()
    os.mkfifo(data)
    with pytest.raises(PySparkException, match="regular file"):
        spark.read.format("pydelta").load(path).collect()
    assert native() == 1


def test_missing_file_is_the_error_that_python_gives(spark: SparkSession, tmp_path: Path, native: Callable[[], int]) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [1]})])
    next(Path(path).glob("*.parquet")).unlink()
    with pytest.raises(PySparkException, match="is missing, though the table's log lists it"):
        spark.read.format("pydelta").load(path).collect()
    assert native() == 1


def test_file_of_large_values_is_read_in_python(spark: SparkSession, tmp_path: Path, native: Callable[[], int]) -> None:
    values = [str(n) * 1_000_000 for n in range(10, 50)]
    path = make_table(tmp_path / "t", [pa.table({"id": range(40), "s": values, "n": range(40)})])
    df = spark.read.format("pydelta").load(path)
    lengths = df.selectExpr("id", "length(s) n")
    assert sorted(row.n for row in lengths.collect()) == [2_000_000] * 40
    assert native() == 1 and bytes_from_python(lengths) > 0
    narrow = df.select("n")
    assert narrow.count() == 40 and bytes_from_python(narrow) == 0


# ---------------------------------------------------------------- errors within a file


def sums_beside(file: Path, *, wrong_from: float) -> None:
    """Hadoop's checksums of a file. They are wrong from this share of it on, as after a rewrite."""
    data = file.read_bytes()
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    wrong = int(len(sums) * wrong_from)
    sums[wrong:] = [each ^ 1 for each in sums[wrong:]]
    body = b"".join(each.to_bytes(4, "big") for each in sums)
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + body)


@pytest.mark.parametrize("wrong_from", [0.0, 0.6])
def test_checksums_of_hadoop_beside_a_file_are_not_asked(
    wrong_from: float, spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(60_000)})], row_group_size=10_000)
    sums_beside(next(Path(path).glob("*.parquet")), wrong_from=wrong_from)
    df = spark.read.format("pydelta").load(path)
    matching = df.filter("id >= 0").select("id")
    assert sorted(row.id for row in matching.collect()) == list(range(60_000))
    assert native() == 1 and bytes_from_python(matching) == 0


@pytest.fixture(scope="module")
def half_for_python(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file between two others. Spark can read the first half of its row groups; only Python knows the compression of the
    others. Rows of each file are deleted."""
    root = tmp_path_factory.mktemp("native") / "halves"
    rows = [pa.table({"id": range(n, n + 20_000), "s": [f"t{i % 50}" for i in range(20_000)]}) for n in range(0, 80_000, 20_000)]
    make_table(root, [rows[0]], **WITH_VECTORS)
    for name, half, codec in (("a", rows[1], "snappy"), ("b", rows[2], "brotli")):
        pq.write_table(half, root / f"half-{name}.parquet", row_group_size=5_000, compression=codec)
    join_files(root / "both.parquet", root / "half-a.parquet", root / "half-b.parquet")
    append_file(root, root / "both.parquet")
    append(root, rows[3])
    DeltaTable.forPath(spark, str(root)).delete("id % 1000 = 7")
    return str(root)


HALVES = {
    "all": "true",
    "row groups are passed over": "id >= 26000 and id < 52500",
    "within the second half": "id between 41000 and 44000",
    "no row": "s = 'x'",
}


@pytest.mark.parametrize("name", HALVES)
def test_file_that_spark_cannot_finish_continues_in_python(
    name: str, spark: SparkSession, half_for_python: str, native: Callable[[], int], conf: Any
) -> None:
    conf({"spark.sql.parquet.filterPushdown": "true", "spark.sql.files.openCostInBytes": "1000"})

    def df() -> DataFrame:
        return spark.read.format("pydelta").load(half_for_python).filter(HALVES[name]).select("id", "s")

    by_spark = df()
    assert rows(by_spark) == in_python(spark, df)
    assert all(tasks(by_spark))
    if name == "all":
        assert bytes_from_python(by_spark) > 0 and by_spark.count() == 79_920
        conf({"spark.sql.files.minPartitionNum": "1", "spark.sql.files.openCostInBytes": "1g"})
        assert rows(df()) == rows(by_spark)


def test_damage_late_in_a_file_gives_the_error_of_python(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(40_000)})], row_group_size=10_000)
    file = next(Path(path).glob("*.parquet"))
    data, start = bytearray(file.read_bytes()), pq.ParquetFile(file).metadata.row_group(3).column(0).dictionary_page_offset
    data[start : start + 40] = b"\xff" * 40
    file.write_bytes(data)

    def outcome() -> str:
        with pytest.raises(PySparkException) as error:
            spark.read.format("pydelta").load(path).collect()
        return next(line for line in str(error.value).splitlines() if "cannot be read" in line)

    python_outcome = outcome()
    assert native() == 1
    conf({NATIVE_CONF: "false"})
    assert python_outcome == outcome()


def with_page_of(file: Path, column: int, size: int) -> None:
    """Changes the size in the header of a column's only page. The page becomes shorter by the difference."""
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(column)
    data, start = bytearray(file.read_bytes()), chunk.data_page_offset
    stop = chunk.dictionary_page_offset + chunk.total_compressed_size
    numbers, at = [], start
    for _ in range(3):  # the page's kind, and its sizes without and with compression: small fields of Thrift's compact protocol
        assert data[at] == 0x15
        end = next(place for place in range(at + 1, at + 11) if data[place] < 0x80) + 1
        numbers.append(sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(data[at + 1 : end])) >> 1)
        at = end

    def header(stored: int) -> bytes:
        return b"".join(b"\x15" + _varint(number << 1) for number in (numbers[0], size, stored))

    stored = next(n for n in range(numbers[2], 0, -1) if len(header(n)) + n == at - start + numbers[2])
    data[start:stop] = header(stored) + data[at : stop - numbers[2] + stored]
    file.write_bytes(data)


def _varint(number: int) -> bytes:
    low = number & 0x7F
    return bytes([low | 0x80]) + _varint(number >> 7) if number >> 7 else bytes([low])


def test_page_of_excessive_memory_gives_the_error_of_python(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(50), "s": [f"text {n}" for n in range(50)]})])
    with_page_of(next(Path(path).glob("*.parquet")), 0, 2**31 - 1)
    with pytest.raises(PySparkException, match="cannot be read"):
        spark.read.format("pydelta").load(path).collect()
    assert native() == 1
    assert spark.range(3).count() == 3


# ---------------------------------------------------------------- what fails on the way


def door(spark: SparkSession) -> Any:
    """The readers that executors have, by the names of their classes; and the rule."""
    rules: Any = spark._jsparkSession.experimental().extraOptimizations()
    ours = next(rules.apply(i) for i in range(rules.length()) if "pydelta" in rules.apply(i).ruleName())
    field = ours.getClass().getClassLoader().loadClass("pydelta.scan.ExecutorJar").getDeclaredField("READERS")
    field.setAccessible(True)
    return field.get(None).get(spark._jsc.sc()), ours


READS = "pydelta.parquet.NativeReads"


@pytest.fixture
def other_door(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[Any], Any]]:
    """Replaces the native reader, or removes it for None; returns the rule. The test's end restores it."""
    spark.conf.set(NATIVE_CONF, "true")
    tasks(spark.read.format("pydelta").load(make_table(tmp_path / "first", [pa.table({"id": [1]})])))
    spark.conf.unset(NATIVE_CONF)
    doors, rule = door(spark)
    known_reader = doors.get(READS)

    def put(other: Any) -> Any:
        if other is None:
            doors.remove(READS)
        else:
            doors.put(READS, other)
        return rule

    yield put
    doors.put(READS, known_reader)


def test_scan_that_cannot_be_prepared_is_read_in_python(
    spark: SparkSession, tmp_path: Path, other_door: Callable[[Any], Any], native: Callable[[], int]
) -> None:
    jvm: Any = spark._jvm
    other_door(jvm.java.util.function.Function.identity())  # returns no partitions
    path = make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])
    df = spark.read.format("pydelta").load(path)
    assert (rows(df), tasks(df)) == (["Row(id=1)", "Row(id=2)"], [False])
    assert native() == 0
    assert "ClassCastException" in str(pruning.status(spark)["parquet"].last_error)


def test_reader_that_cannot_be_had_leaves_the_rest_as_it_is(
    spark: SparkSession, tmp_path: Path, other_door: Callable[[Any], Any], native: Callable[[], int]
) -> None:
    jvm: Any = spark._jvm
    other_door(jvm.java.lang.NoSuchFieldError("of Spark's Parquet reader"))
    before = pruning.status(spark)["columns"].used
    df = spark.read.format("pydelta").load(make_table(tmp_path / "t", [pa.table({"id": [1, 2]})]))
    assert (rows(df), tasks(df)) == (["Row(id=1)", "Row(id=2)"], [False])
    assert native() == 0
    assert pruning.status(spark)["columns"].used == before + 1
    assert "of Spark's Parquet reader" in str(pruning.status(spark)["parquet"].last_error)


# ---------------------------------------------------------------- what is left to Python


def test_negative_zero_is_found_where_zero_is_asked_for(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    conf({"spark.sql.parquet.filterPushdown": "true"})
    zeros = pa.table({"id": range(100), "x": pa.array([-0.0] * 100), "f": pa.array([-0.0] * 100, pa.float32())})
    path = make_table(tmp_path / "t", [zeros])
    for condition in ("x = 0.0", "f = cast(0 as float)", "x in (0.0, 1.0)", "x >= 0.0 and id < 1000"):
        df = spark.read.format("pydelta").load(path).filter(condition)
        assert tasks(df) == [True]
        assert len(df.collect()) == 100, condition


@pytest.mark.parametrize("condition", ["v >= false or id = 5", "v < true or id = 5", "v <=> true or id = 5"])
def test_either_side_of_an_or_is_found(
    condition: str, spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    """Spark's own translation of such a filter replaces the whole by the side that it knows."""
    conf({"spark.sql.parquet.filterPushdown": "true"})
    values = pa.table({"id": range(300), "v": [None if i % 5 == 0 else i % 3 == 0 for i in range(300)]})
    path = make_table(tmp_path / "t", [values], row_group_size=3)
    assert all(same_both_ways(spark, lambda: spark.read.format("pydelta").load(path).filter(condition)))


LEFT: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "limit": lambda spark, path: spark.read.format("pydelta").load(path).select("id").limit(900),
    "option filter": lambda spark, path: spark.read.format("pydelta").option("filter", "id >= 0").load(path),
    "metadata": lambda spark, path: spark.read.format("pydelta").load(path).select("id", "_metadata.row_index"),
}
CONFS: dict[str, dict[str, str]] = {
    "case matters": {"spark.sql.caseSensitive": "true"},
    "no vectorized reader": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "times of another writer": {"spark.sql.parquet.int96TimestampConversion": "true"},
    "rows": {COLUMNAR_CONF: "false"},
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("native") / "plain"
    return make_table(directory, [pa.table({"id": range(n, n + 100), "s": ["é"] * 100}) for n in (0, 100)])


@pytest.mark.parametrize("name", sampled(LEFT, 2))
def test_read_that_asks_for_more_is_left_to_python(
    name: str, spark: SparkSession, plain: str, native: Callable[[], int]
) -> None:
    df = LEFT[name](spark, plain)
    assert (len(df.collect()), any(tasks(df)), native()) == (200, False, 0)


def test_ignore_missing_files_does_not_skip_missing_vectors(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    """The task continues in Python, which distinguishes the two."""
    commits = [pa.table({"id": pa.array(range(n, n + 4000), pa.int64())}) for n in (0, 4000, 8000)]
    path = make_table(tmp_path / "t", commits, **WITH_VECTORS)
    deleted_path = PlainTable(path, version=0).files()["path"][0].as_py()
    PlainTable(path).delete("id >= 4000 AND id % 3 = 0")
    (Path(path) / deleted_path).unlink()
    frame = spark.read.format("pydelta").option("ignoreMissingFiles", "true").load(path)
    assert sorted(row["id"] for row in frame.collect()) == [n for n in range(4000, 12000) if n % 3]
    assert all(tasks(frame)) and native() > 0
    for vector in Path(path).glob("deletion_vector_*"):
        vector.unlink()
    with pytest.raises(DeletionVectorError, match="DELTA_DELETION_VECTOR_FILE_NOT_FOUND"):
        frame.collect()


@pytest.mark.parametrize("name", sampled(CONFS, 2))
def test_conf_that_changes_spark_reader_leaves_files_to_python(
    name: str, spark: SparkSession, plain: str, native: Callable[[], int], conf: Any
) -> None:
    conf(CONFS[name])
    df = spark.read.format("pydelta").load(plain)
    assert (len(df.collect()), any(tasks(df)), native()) == (200, False, 0)


TABLES: dict[str, tuple[dict[str, str], str]] = {
    "column mapping by id": ({"delta.columnMapping.mode": "id"}, "id bigint, v int"),
    "CHAR": ({}, "id bigint, v char(5)"),
    "partitions of doubles": ({}, "id bigint, v double"),
    "variant": ({}, "id bigint, v variant"),
}


@pytest.mark.parametrize("name", sampled(TABLES, 2))
def test_table_that_spark_reads_differently_is_left_to_python(
    name: str, spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    properties, schema = TABLES[name]
    builder = DeltaTable.create(spark).location(str(tmp_path / "t")).addColumns(spark.sql("select 1 id").schema[:0])
    for column in schema.split(", "):
        builder = builder.addColumn(*column.split(" "))
    for key, value in properties.items():
        builder = builder.property(key, value)
    (builder.partitionedBy("v") if name.startswith("partitions") else builder).execute()
    value = "parse_json('1')" if name == "variant" else "1"
    frame = spark.range(9).selectExpr("id", f"{value} v")
    frame = frame.selectExpr("id", f"cast(v as {schema.split(' ')[-1].replace('char(5)', 'string')}) v")
    frame.write.format("pydelta").mode("append").save(str(tmp_path / "t"))
    df = spark.read.format("pydelta").load(str(tmp_path / "t"))
    assert (len(df.collect()), any(tasks(df)), native()) == (9, False, 0)
    assert any(tasks(df.select("id"))) == (name != "column mapping by id")


# ---------------------------------------------------------------- deleted rows

@pytest.fixture(scope="module")
def with_deleted_rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four files of 30,000 rows in groups of 5,000: one without deleted rows, one without single rows, one without runs of rows,
    and one without any row."""
    path = tmp_path_factory.mktemp("native") / "deleted"
    files = []
    for start in range(0, 120_000, 30_000):
        ids = pa.array(range(start, start + 30_000), pa.int64())
        texts = pa.array([None if i % 11 == 0 else f"t{i % 100}" for i in range(30_000)])
        structs = pa.StructArray.from_arrays([ids, pa.array([[i] * (i % 3) for i in range(30_000)])], ["x", "ar"])
        files.append(pa.table({"id": ids, "s": texts, "st": structs}))
    make_table(path, files, row_group_size=5_000, **WITH_VECTORS)
    table = DeltaTable.forPath(spark, str(path))
    table.delete("id between 30000 and 59999 and id % 7 = 3")
    table.delete("id between 62000 and 71000 or id between 80000 and 80001")
    table.delete("id between 90000 and 119999 and id % 2 = 0")
    table.delete("id between 90000 and 119999 and id != 100001")
    return str(path)


LEFT_OF_DELETED = {
    "whole rows": ("true", ["*"]),
    "one column": ("true", ["s"]),
    "nested": ("st.x % 5 = 0", ["st.ar", "st.x"]),
    "groups are passed over": ("id >= 51000 and id < 68000", ["id", "s"]),
    "nulls": ("s is null", ["id"]),
}


@pytest.mark.parametrize("name", sampled(LEFT_OF_DELETED, 2))
def test_deleted_rows_are_left_out_by_sparks_reader(
    name: str, spark: SparkSession, with_deleted_rows: str, native: Callable[[], int], conf: Any
) -> None:
    conf({"spark.sql.parquet.filterPushdown": "true"})
    condition, columns = LEFT_OF_DELETED[name]

    def df() -> DataFrame:
        return spark.read.format("pydelta").load(with_deleted_rows).filter(condition).select(*columns)

    by_spark = df()
    spark_rows = rows(by_spark)
    assert all(tasks(by_spark)) and bytes_from_python(by_spark) == 0
    assert spark_rows == in_python(spark, df)
    assert len(spark_rows) > 100


def test_deleted_rows_are_left_out_of_aggregates(spark: SparkSession, with_deleted_rows: str, native: Callable[[], int]) -> None:
    deleted = {i for i in range(30_000, 60_000) if i % 7 == 3} | set(range(62_000, 71_001)) | {80_000, 80_001}
    remaining_ids = (set(range(90_000)) - deleted) | {100_001}
    frame = spark.read.format("pydelta").load(with_deleted_rows).selectExpr("sum(id)", "count(st.x)", "max(size(st.ar))")
    assert [tuple(row) for row in frame.collect()] == [(sum(remaining_ids), len(remaining_ids), 2)]
    assert native() == 1


def _cut(data: bytearray) -> None:
    del data[-3:]


def _other_bytes(data: bytearray) -> None:
    data[20] ^= 1


def _other_version(data: bytearray) -> None:
    data[0] = 2


DAMAGE: dict[str, Callable[[bytearray], None] | None] = {
    "cut": _cut,
    "other bytes": _other_bytes,
    "other version": _other_version,
    "missing": None,
}


@pytest.mark.parametrize("name", sampled(DAMAGE, 2))
def test_damaged_vector_is_the_error_that_python_gives(
    name: str, spark: SparkSession, tmp_path: Path, native: Callable[[], int], conf: Any
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(100)})], **WITH_VECTORS)
    DeltaTable.forPath(spark, path).delete("id % 3 = 1")
    vector = next(Path(path).rglob("deletion_vector_*.bin"))
    damage = DAMAGE[name]
    if damage is None:
        vector.unlink()
    else:
        data = bytearray(vector.read_bytes())
        damage(data)
        vector.write_bytes(data)

    def outcome() -> str:
        with pytest.raises(PySparkException) as error:
            spark.read.format("pydelta").load(path).collect()
        return next(line for line in str(error.value).splitlines() if "deletion vector" in line.lower())

    python_outcome = outcome()
    assert native() == 1
    conf({NATIVE_CONF: "false"})
    assert python_outcome == outcome()


@pytest.mark.parametrize("kind", ["i", "p"])
def test_vector_that_lies_elsewhere_is_left_to_python(
    kind: str, spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": range(100)})], **WITH_VECTORS)
    DeltaTable.forPath(spark, path).delete("id % 3 = 1")
    commit = Path(path, "_delta_log", f"{1:020d}.json")
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    vector = next(action["add"]["deletionVector"] for action in actions if "add" in action)
    if kind == "i":
        inline = inline_descriptor(from_row_indexes([i for i in range(100) if i % 3 == 1])).to_json()
        vector.clear()
        vector.update(inline)
    else:
        vector |= {"storageType": "p", "pathOrInlineDv": f"file://{next(Path(path).rglob('deletion_vector_*.bin'))}"}
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    df = spark.read.format("pydelta").load(path)
    assert (len(df.collect()), any(tasks(df)), native()) == (67, False, 0)


def test_column_named_like_spark_row_index_is_read_by_python(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    numbered = pa.table({"id": range(100), "_tmp_metadata_row_index": [0] * 100})
    path = make_table(tmp_path / "t", [numbered], **WITH_VECTORS)
    DeltaTable.forPath(spark, path).delete("id = 50")
    df = spark.read.format("pydelta").load(path).select("id")
    assert sorted(row.id for row in df.collect()) == [i for i in range(100) if i != 50]
    assert native() == 1 and bytes_from_python(df) > 0


# ---------------------------------------------------------------- parts of files


def test_large_file_is_read_by_several_tasks(
    spark: SparkSession, with_deleted_rows: str, native: Callable[[], int], conf: Any
) -> None:
    conf({"spark.sql.files.openCostInBytes": "1000", "spark.sql.files.maxPartitionBytes": "90000"})

    def df() -> DataFrame:
        return spark.read.format("pydelta").load(with_deleted_rows).filter("id < 90000").selectExpr("id", "st.x", "s")

    by_spark = df()
    spark_rows = rows(by_spark)
    assert len(tasks(by_spark)) > 6 and all(tasks(by_spark)) and bytes_from_python(by_spark) == 0
    assert len(spark_rows) == len(set(spark_rows)) > 70_000
    assert spark_rows == in_python(spark, df)
    conf({"spark.sql.files.maxPartitionBytes": "128m"})
    assert spark_rows == in_python(spark, df)


# ---------------------------------------------------------------- columns of partitions, names, nested columns


def test_partition_values_of_many_types_come_out_as_from_python(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    path = str(tmp_path / "a b%20ü#")
    columns = [
        *("id", "cast(id % 3 as byte) b", "cast(id % 3 as short) s", "id % 2 l", "id % 2 = 0 f", "if(id % 2 = 0, null, 5) z"),
        *("date_add(date'1500-01-01', cast(id % 2 as int)) d", "cast(id % 2 as decimal(20, 3)) dc"),
        "timestamp_ntz'1400-01-01' n",
        "timestamp'2020-01-01 01:02:03.456789' + make_interval(0, 0, 0, 0, cast(id % 2 as int)) t",
        "element_at(array('a b', 'x%y', 'é/ü', 'a=b', '#?', 'plus+'), cast(id % 6 as int) + 1) p",
    ]
    frame = spark.range(36).selectExpr(*columns)
    frame.write.format("pydelta").partitionBy("b", "s", "l", "f", "z", "d", "dc", "n", "t", "p").save(path)
    assert all(same_both_ways(spark, lambda: spark.read.format("pydelta").load(path)))
    assert all(same_both_ways(spark, lambda: spark.read.format("pydelta").load(path).filter("p = 'x%y'").select("t", "z")))
    assert native() > 0


def test_mapped_and_missing_columns_read_as_by_python(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    path = str(tmp_path / "t")
    first = spark.range(50).selectExpr("id", "id a", "named_struct('x', id) st")
    first.write.format("pydelta").option("delta.columnMapping.mode", "name").save(path)
    later = spark.range(50, 99).selectExpr("id", "id a", "named_struct('x', id, 'y', id) st", "cast(id as string) late")
    later.write.format("pydelta").mode("append").option("mergeSchema", "true").save(path)
    for columns in (["a", "late"], ["st"], ["st.y"], ["*"]):
        assert any(same_both_ways(spark, lambda: spark.read.format("pydelta").load(path).select(*columns)))  # noqa: B023
    assert any(same_both_ways(spark, lambda: spark.read.format("pydelta").load(path).filter("a = 7 or late is null")))
    assert native() > 0


def test_nested_values_come_out_as_from_python(spark: SparkSession, tmp_path: Path, native: Callable[[], int]) -> None:
    path = str(tmp_path / "t")
    columns = [
        "id",
        "if(id % 2 = 0, null, named_struct('x', if(id % 3 = 0, null, id), 'in', named_struct('t', cast(id as string)))) st",
        "if(id % 5 = 0, null, array_repeat(if(id % 7 = 0, null, named_struct('u', id)), cast(id % 4 as int))) ar",
        "if(id % 7 = 0, null, map(cast(id as string), if(id % 3 = 0, null, array(id, null)))) m",
    ]
    spark.range(0, 20_000, 1, 2).selectExpr(*columns).write.format("pydelta").save(path)
    load = spark.read.format("pydelta").load
    assert all(same_both_ways(spark, lambda: load(path)))
    assert all(same_both_ways(spark, lambda: load(path).selectExpr("st.in.t", "ar.u", "m").filter("t is not null")))
    assert all(same_both_ways(spark, lambda: load(path).selectExpr("explode(ar) e", "id").selectExpr("sum(e.u)", "count(id)")))
    assert native() > 0


def test_append_while_a_frame_is_held_changes_nothing_of_it(
    spark: SparkSession, tmp_path: Path, native: Callable[[], int]
) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])
    df = spark.read.format("pydelta").load(path)
    append(tmp_path / "t", pa.table({"id": [3]}))
    assert rows(df) == ["Row(id=1)", "Row(id=2)"]
    assert native() > 0
