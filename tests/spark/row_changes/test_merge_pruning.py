"""MERGE: the source says which files of the target are read. Files that must not be read are taken away before."""

from __future__ import annotations

import datetime as dt
import math
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.row_changes.dml import Candidates, Dml
from delta_py.row_changes.merge_clauses import Clause
from spark_plugin import DeltaTable
from spark_plugin.data_source import FORMAT
from spark_plugin.dml.jobs import DmlResult
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.merge import merge_job
from spark_plugin.options.settings import TablePath
from tests.support.runs.sampling import sampled

FILES = 6


def day(number: int) -> dt.date:
    return dt.date(2024, 1, 1) + dt.timedelta(days=number)


def moment(number: int) -> dt.datetime:
    return dt.datetime(2024, 3, 30, tzinfo=dt.UTC) + dt.timedelta(hours=number)  # across a change of the clocks


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six files of ten rows, whose keys of all types follow each other."""
    path = str(tmp_path_factory.mktemp("pruning") / "t")
    for start in range(0, FILES * 10, 10):
        numbers = list(range(start, start + 10))
        rows = {
            "k": pa.array(numbers, pa.int32()),
            "name": [f"{number:03}" for number in numbers],
            "day": pa.array([day(number) for number in numbers], pa.date32()),
            "at": pa.array([moment(number) for number in numbers], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(number) / 4 for number in numbers], pa.decimal128(10, 2)),
            "x": pa.array([float(number) for number in numbers], pa.float64()),
            "st": pa.array([{"id": number} for number in numbers], pa.struct([("id", pa.int64())])),
            "v": ["old"] * 10,
        }
        write_delta(path, pa.table(rows), mode="append")
    return path


@pytest.fixture
def table(template: str, tmp_path: Path) -> str:
    """A copy of its own."""
    return str(shutil.copytree(template, tmp_path / "t"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many files each operation took as candidates."""
    found: list[int] = []
    plain = Dml.find_candidates

    def candidates(self: Dml, *arguments: Any, **named: Any) -> Candidates:
        files = plain(self, *arguments, **named)
        found.append(len(files))
        return files

    monkeypatch.setattr(Dml, "find_candidates", candidates)
    yield found


def hide_files(path: str, kept: set[int]) -> None:
    """Takes away the data files but those with these numbers, in the order of their keys."""
    for file in Path(path).glob("*.parquet"):
        if pq.read_table(file, columns=["k"])["k"][0].as_py() // 10 not in kept:
            file.rename(file.with_suffix(".hidden"))


KEYS: dict[str, tuple[str, Callable[[int], Any], str]] = {
    "int and bigint": ("t.k = s.key", lambda number: number, "bigint"),
    "the other way round": ("s.key = t.k", lambda number: number, "smallint"),
    "text": ("t.name = s.key", lambda number: f"{number:03}", "string"),
    "date": ("t.day = s.key", day, "date"),
    "timestamp": ("t.at = s.key", moment, "timestamp"),
    "decimal": ("t.price = s.key", lambda number: Decimal(number) / 4, "decimal(10,2)"),
    "double": ("t.x = s.key", float, "double"),
    "field of a struct": ("t.st.id = s.key", lambda number: number, "bigint"),
    "with a part of the target's own": ("t.x < 100 AND t.k = s.key + 0", lambda number: number, "int"),
}


@pytest.mark.parametrize("name", sampled(KEYS, 2))
def test_merge_chooses_only_files_that_may_hold_a_source_key(
    spark: SparkSession, table: str, asked: list[int], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    condition, key, kind = KEYS[name]
    source = spark.createDataFrame([(key(23),), (key(27),), (None,)], f"key {kind}").coalesce(1).alias("s")
    monkeypatch.setattr(merge_job, "run_changes", lambda *_: DmlResult(0, {}))  # what comes behind the choice is for other tests
    clause: Clause[Column] = Clause("matched", "delete")
    merge_job.merge(spark, TablePath(table), source, F.expr(condition), [clause], alias=("t",))
    # No statistics tell of NaN, which is larger than any number: by a least key no file of a double column is left out.
    assert asked == [3 if kind == "double" else 1]


def keys(spark: SparkSession, *numbers: int | None) -> DataFrame:
    return spark.createDataFrame([(number,) for number in numbers], "key int").alias("s")


def test_merge_few_keys_far_apart_reads_the_files_of_each(spark: SparkSession, table: str, asked: list[int]) -> None:
    hide_files(table, {0, 5})
    builder = DeltaTable.forPath(spark, table).alias("t").merge(keys(spark, 3, 55, 1000), "t.k = s.key")
    builder = builder.whenMatchedDelete().whenNotMatchedInsert(values={"k": "s.key"})
    result = builder.execute().first()
    assert result is not None and tuple(result) == (3, 0, 2, 1)
    assert asked == [2]


def test_merge_of_inserts_alone_reads_few_files(spark: SparkSession, table: str, asked: list[int]) -> None:
    hide_files(table, {4})
    builder = DeltaTable.forPath(spark, table).alias("t").merge(keys(spark, 41, 42, -7), "t.k = s.key")
    result = builder.whenNotMatchedInsert(values={"k": "s.key"}).execute().first()
    assert result is not None and result["num_inserted_rows"] == 1
    assert asked == [1]


def test_merge_ranges_of_the_source_bound_the_target(spark: SparkSession, table: str, asked: list[int]) -> None:
    hide_files(table, {4, 5})
    source = spark.createDataFrame([(48, 53)], "low int, high int").alias("s")
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.k >= s.low AND t.k < 1000")
    result = builder.whenMatchedUpdate(set={"v": "'new'"}).execute().first()
    assert result is not None and result["num_updated_rows"] == 12
    assert asked == [2]


def test_merge_source_without_any_key_reads_no_file(spark: SparkSession, table: str, asked: list[int]) -> None:
    hide_files(table, set())
    builder = DeltaTable.forPath(spark, table).alias("t").merge(keys(spark, None, None), "t.k = s.key")
    result = builder.whenMatchedDelete().whenNotMatchedInsert(values={"k": "-1"}).execute().first()
    assert result is not None and tuple(result) == (2, 0, 0, 2)
    assert asked in ([], [0])


def test_merge_clause_by_source_reads_the_files_of_its_condition(spark: SparkSession, table: str, asked: list[int]) -> None:
    hide_files(table, {0, 5})
    builder = DeltaTable.forPath(spark, table).alias("t").merge(keys(spark, 3), "t.k = s.key")
    builder = builder.whenMatchedDelete().whenNotMatchedBySourceDelete("t.k >= 58")
    result = builder.execute().first()
    assert result is not None and result["num_deleted_rows"] == 3
    assert asked == [2]


def test_merge_clause_by_source_without_condition_reads_all(spark: SparkSession, table: str, asked: list[int]) -> None:
    builder = DeltaTable.forPath(spark, table).alias("t").merge(keys(spark, 3), "t.k = s.key")
    result = builder.whenNotMatchedBySourceDelete().execute().first()
    assert result is not None and result["num_deleted_rows"] == 59
    assert asked == [FILES]


def test_merge_partitions_with_odd_names_are_found_by_the_source(spark: SparkSession, tmp_path: Path, asked: list[int]) -> None:
    path = str(tmp_path / "t")
    places = ["new york", "a=b", "50%", "x/y", "ü%20", None]
    data = pa.table({"p": places, "k": pa.array(range(len(places)), pa.int64()), "v": ["old"] * len(places)})
    write_delta(path, data, partition_by=["p"])
    rows = [("new york", 0, "new"), ("ü%20", 4, "new"), ("50%", 77, "new"), (None, 5, "null matches nothing")]
    source = spark.createDataFrame(rows, "p string, k bigint, v string").alias("s")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.p = s.p AND t.k = s.k")
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert asked == [2]
    found = PlainTable(path).to_arrow().to_pylist()
    assert sorted(((row["p"], row["k"]), row["v"]) for row in found if row["p"] is not None) == [
        (("50%", 2), "old"),
        (("50%", 77), "new"),
        (("a=b", 1), "old"),
        (("new york", 0), "new"),
        (("x/y", 3), "old"),
        (("ü%20", 4), "new"),
    ]
    assert sorted(row["v"] for row in found if row["p"] is None) == ["null matches nothing", "old"]


def test_merge_nulls_that_are_to_match_are_found(spark: SparkSession, tmp_path: Path, asked: list[int]) -> None:
    path = str(tmp_path / "t")
    for value in (1, None, 3):
        write_delta(path, pa.table({"k": pa.array([value], pa.int64()), "v": ["old"]}), mode="append")
    source = spark.createDataFrame([(None, "new"), (3, "new")], "k bigint, v string").alias("s")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, F.expr("t.k <=> s.k"))
    builder.whenMatchedUpdateAll().execute()
    rows = PlainTable(path).to_arrow().to_pylist()
    assert {row["k"]: row["v"] for row in rows} == {1: "old", None: "new", 3: "new"}
    assert asked == [2]


def test_merge_looks_up_no_source_rows_that_cannot_match(
    spark: SparkSession, table: str, asked: list[int]
) -> None:
    source = spark.createDataFrame([("3", "number"), ("57", "other"), ("x", "other")], "text string, kind string").alias("s")
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source, "s.kind = 'number' AND t.k = CAST(s.text AS INT)")
    result = builder.whenMatchedUpdate(set={"v": "'new'"}).execute().first()
    assert result is not None and result["num_updated_rows"] == 1
    assert asked == [1]


INSTANT = dt.datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=dt.UTC)
LONG = "a" * 40
ODD_KEYS: dict[str, tuple[pa.DataType, str, list[Any], list[Any]]] = {
    "doubles": (pa.float64(), "double", [math.nan, -0.0, 1.5, math.inf, -math.inf], [math.nan, 0.0, -math.inf]),
    "floats": (pa.float32(), "float", [math.nan, 0.0, 1.1], [math.nan, -0.0]),
    "long texts": (pa.string(), "string", [LONG + "a", LONG + "b", "a" * 32 + "\U0010ffff" + "c"], [LONG + "b"]),
    "text at the end": (pa.string(), "string", ["", "\U0010ffff" * 40, "b"], ["\U0010ffff" * 40, ""]),
    "microseconds": (
        pa.timestamp("us", "UTC"),
        "timestamp",
        [INSTANT, INSTANT + dt.timedelta(microseconds=1), INSTANT + dt.timedelta(milliseconds=1)],
        [INSTANT + dt.timedelta(microseconds=1)],
    ),
    "early days": (pa.date32(), "date", [dt.date(1, 1, 1), dt.date(1500, 2, 28), dt.date(9999, 12, 31)], [dt.date(1, 1, 1)]),
    "wide decimals": (
        pa.decimal128(38, 10),
        "decimal(38,10)",
        [Decimal("9999999999999999999999999999.9999999999"), Decimal("0E-10"), Decimal("-0.0000000001")],
        [Decimal("9999999999999999999999999999.9999999999"), Decimal("-0.0000000001")],
    ),
    "booleans": (pa.bool_(), "boolean", [True, False, None], [False]),
}


@pytest.mark.parametrize("name", sampled(ODD_KEYS, 2))
def test_merge_finds_odd_keys(spark: SparkSession, tmp_path: Path, name: str) -> None:
    kind, spark_kind, values, sought = ODD_KEYS[name]
    path = str(tmp_path / "t")
    for value in values:
        write_delta(path, pa.table({"k": pa.array([value], kind), "v": ["old"]}), mode="append")
    source = spark.createDataFrame([(value,) for value in [*sought, None]], f"k {spark_kind}").alias("s")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.k = s.k")
    builder.whenMatchedUpdate(set={"v": "'new'"}).whenNotMatchedInsert(values={"v": "'inserted'"}).execute()
    rows = [(row["k"], row["v"]) for row in PlainTable(path).to_arrow().to_pylist()]
    as_keys = {repr(value + 0) if isinstance(value, float) else value for value in sought}
    assert sorted(value for _, value in rows) == sorted(
        ["inserted", *("new" for _ in sought), *("old" for _ in values[len(sought) :])]
    )
    assert {repr(k + 0) if isinstance(k, float) else k for k, v in rows if v == "new"} == as_keys


@pytest.mark.parametrize("condition", ["t.c > s.c", "t.c = rpad(s.c, 3, ' ')", "t.c >= s.c"])
def test_merge_keys_of_fixed_length_match_as_they_are_read(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    path = str(tmp_path / "t")
    DeltaTable.create(spark).location(path).addColumn("c", "char(3)").addColumn("v", "string").execute()
    write_delta(path, pa.table({"c": ["a"], "v": ["old"]}), mode="append")
    source = spark.createDataFrame([("a",)], "c string").alias("s")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, condition)
    builder.whenMatchedUpdate(set={"v": "'new'"}).execute()
    assert [(row["c"], row["v"]) for row in PlainTable(path).to_arrow().to_pylist()] == [("a  ", "new")]


def test_a_source_that_asks_for_the_time_is_made_once(spark: SparkSession) -> None:
    internals, numbers = SparkInternals(spark), spark.range(3)
    assert internals.is_repeatable(numbers, FORMAT)
    for made in ("current_timestamp()", "current_date()", "now()", "localtimestamp()"):
        assert not internals.is_repeatable(numbers.selectExpr("id", made), FORMAT), made
