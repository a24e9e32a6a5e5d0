"""DEFAULT in SET and in the values of an insert: the value of a row that does not name the column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from delta_py.definition.create import create_table, define_table
from delta_py.errors import UnsupportedTableFeatureError
from delta_py.storage.local import LocalStore
from delta_py.types.schema import INTEGER, LONG, STRING, StructField, StructType
from spark_plugin import DeltaTable

pytestmark = pytest.mark.usefixtures("plain_plans")

COLUMNS = (
    StructField("k", LONG),
    StructField("v", STRING, True, {"CURRENT_DEFAULT": "concat('no', 'ne')"}),
    StructField("n", INTEGER, True, {"CURRENT_DEFAULT": "6 * 7"}),
    StructField("w", STRING),
    StructField("twice", INTEGER, True, {"delta.generationExpression": "n * 2"}),
    StructField("st", StructType((StructField("a", INTEGER),))),
)
ROW = {"k": [1, 2], "v": ["a", "b"], "n": pa.array([10, 20], pa.int32()), "w": ["x", "y"], "st": [{"a": 1}, None]}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Rows 1 and 2."""
    return made(tmp_path, COLUMNS)


def made(folder: Path, columns: tuple[StructField, ...]) -> str:
    root = str(folder / "t")
    features = {"delta.feature.allowColumnDefaults": "supported"}
    create_table(LocalStore(root), define_table(StructType(columns), configuration=features))
    write_delta(root, pa.table({name: ROW[name] for name in ROW if name in {f.name for f in columns}}), mode="append")
    return root


def rows(path: str) -> dict[int, dict[str, Any]]:
    return {row.pop("k"): row for row in PlainTable(path).to_arrow().to_pylist()}


def test_update_to_defaults(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).update("k = 1", {"v": "DEFAULT", "n": F.expr("default"), "w": F.col("Default")})
    assert rows(path) == {
        1: {"v": "none", "n": 42, "w": None, "twice": 84, "st": {"a": 1}},
        2: {"v": "b", "n": 20, "w": "y", "twice": 40, "st": None},
    }


def test_update_of_a_generated_column_to_its_default_computes_it(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.update("k = 1", {"n": "5", "twice": "DEFAULT"})
    assert (rows(path)[1]["n"], rows(path)[1]["twice"]) == (5, 10)
    table.update("k = 2", {"twice": "DEFAULT"})
    assert rows(path)[2]["twice"] == 40


def test_text_and_column_of_that_name_are_no_default(spark: SparkSession, tmp_path: Path) -> None:
    path = made(tmp_path, (*COLUMNS[:4], StructField("default", STRING)))
    DeltaTable.forPath(spark, path).update("k = 1", {"default": F.lit("DEFAULT"), "v": "'DEFAULT'"})
    DeltaTable.forPath(spark, path).update("k = 1", {"w": "default"})
    assert rows(path)[1] == {"v": "DEFAULT", "n": 10, "w": "DEFAULT", "default": "DEFAULT"}


def test_insert_takes_a_column_of_that_name_from_its_query(spark: SparkSession, tmp_path: Path) -> None:
    path = made(tmp_path, COLUMNS[:3])
    spark.sql("SELECT 5L AS k, 'given' AS default").createOrReplaceTempView("with_default")
    spark.sql(f"INSERT INTO pydelta.`{path}` (k, v) SELECT k, default FROM with_default")
    spark.sql(f"INSERT INTO pydelta.`{path}` (k, v) SELECT k + 1, DEFAULT FROM with_default ORDER BY k LIMIT 1")
    spark.sql(f"INSERT INTO pydelta.`{path}` (k, v) SELECT 7, DEFAULT FROM range(2) ORDER BY id LIMIT 1 OFFSET 1")
    assert {k: row["v"] for k, row in rows(path).items() if k > 4} == {5: "given", 6: "given", 7: "none"}


def test_merge_to_defaults(spark: SparkSession, path: str) -> None:
    source = spark.sql("SELECT 1L k, 'A' v, 11 n UNION ALL SELECT 3L, 'C', 33")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.k = s.k")
    merge = merge.whenMatchedUpdate(set={"v": "DEFAULT", "n": "s.n", "w": "DEFAULT"})
    merge = merge.whenNotMatchedInsert(values={"k": "s.k", "v": "s.v", "n": "DEFAULT", "twice": "DEFAULT"})
    merge.whenNotMatchedBySourceUpdate(set={"n": F.expr("DEFAULT")}).execute()
    assert rows(path) == {
        1: {"v": "none", "n": 11, "w": None, "twice": 22, "st": {"a": 1}},
        2: {"v": "b", "n": 42, "w": "y", "twice": 84, "st": None},
        3: {"v": "C", "n": 42, "w": None, "twice": 84, "st": None},
    }


def test_generated_column_takes_default_and_value_in_one_merge(spark: SparkSession, path: str) -> None:
    source = spark.sql("SELECT 1L k, 11 n UNION ALL SELECT 2L, 22")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.k = s.k")
    merge = merge.whenMatchedUpdate("t.k = 1", {"n": "s.n", "twice": "DEFAULT"})
    merge.whenMatchedUpdate(set={"n": "s.n", "twice": "44"}).execute()
    assert [(row["n"], row["twice"]) for row in rows(path).values()] == [(11, 22), (22, 44)]


@pytest.mark.parametrize(
    ("values", "condition"),
    [
        ({"v": "concat(DEFAULT, 'x')"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ({"st.a": "DEFAULT"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ],
)
def test_default_elsewhere_is_a_name_that_is_not_there(
    spark: SparkSession, path: str, values: dict[str, str], condition: str
) -> None:
    before = rows(path)
    with pytest.raises(PySparkException) as caught:
        DeltaTable.forPath(spark, path).update("k = 1", values)
    assert caught.value.getCondition() == condition
    assert rows(path) == before


@pytest.mark.parametrize("values", [{"st.a": "DEFAULT"}, {"extra": "DEFAULT"}])
def test_default_of_what_is_no_column_of_the_table_is_refused(spark: SparkSession, path: str, values: dict[str, str]) -> None:
    source = spark.sql("SELECT 1L k, 5 extra")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.k = s.k").withSchemaEvolution()
    with pytest.raises(PySparkException) as caught:
        merge.whenMatchedUpdate(set=values).execute()
    assert caught.value.getCondition() == "DEFAULT_PLACEMENT_INVALID"
    assert PlainTable(path).version == 1


@pytest.mark.parametrize(
    "default",
    ["reflect('java.lang.System', 'setProperty', 'pydelta.pwned', 'yes')", "(SELECT max(v) FROM private)", "of_the_session()"],
)
def test_default_of_a_hostile_table_is_not_run(spark: SparkSession, tmp_path: Path, default: str) -> None:
    spark.udf.register("of_the_session", lambda: "sent")
    spark.range(1).selectExpr("'secret of the session' AS v").createOrReplaceTempView("private")
    path = made(tmp_path, (COLUMNS[0], StructField("v", STRING, True, {"CURRENT_DEFAULT": "'theirs'"})))
    mine, theirs = (json.dumps(json.dumps(sql))[1:-1] for sql in ("'theirs'", default))
    for commit in Path(path, "_delta_log").glob("*.json"):  # pydelta makes no such table
        commit.write_text(commit.read_text().replace(mine, theirs))
    for checksum in Path(path, "_delta_log").glob("*.crc"):
        checksum.unlink()
    table = DeltaTable.forPath(spark, path)
    inserts = table.alias("t").merge(spark.range(5, 6).alias("s"), "t.k = s.id").whenNotMatchedInsert(values={"k": "s.id"})
    for change in (lambda: table.update(set={"v": F.expr("DEFAULT")}), inserts.execute):
        with pytest.raises(PySparkException, match="default of column v") as raised:
            change()
        assert raised.value.getCondition() == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'pydelta.pwned', 'no') AS p").first() == ("no",)
    assert rows(path) == {1: {"v": "a"}, 2: {"v": "b"}}


def asking_the_session(folder: Path, default: str, *more: StructField) -> str:
    """Rows 1 and 2, which have null for `who`."""
    root = str(folder / "t")
    who = StructField("who", STRING, True, {"CURRENT_DEFAULT": default})
    features = {"delta.feature.allowColumnDefaults": "supported"}
    create_table(LocalStore(root), define_table(StructType((COLUMNS[0], who, *more)), configuration=features))
    write_delta(root, pa.table({"k": [1, 2], "who": pa.nulls(2, pa.string())}), mode="append")
    return root


def test_every_write_computes_defaults_that_only_spark_knows(spark: SparkSession, tmp_path: Path) -> None:
    """Defaults of the session, and functions that our evaluation does not know: one value for a whole statement."""
    user, hashed = spark.sql("SELECT current_user(), hash('x')").first()  # type: ignore[misc]
    path = asking_the_session(tmp_path, "upper(current_user)", StructField("h", INTEGER))
    table = DeltaTable.forPath(spark, path)
    spark.sql(f"ALTER TABLE pydelta.`{path}` ALTER COLUMN h SET DEFAULT hash('x')")
    spark.range(3, 5).toDF("k").write.format("pydelta").mode("append").save(path)
    spark.sql(f"INSERT INTO pydelta.`{path}` (k) VALUES (5)")
    spark.sql(f"INSERT INTO pydelta.`{path}` VALUES (6, DEFAULT, DEFAULT)")
    table.update("k = 1", {"who": "DEFAULT", "h": "DEFAULT"})
    table.merge(spark.range(7, 8).toDF("id"), "k = id").whenNotMatchedInsert(values={"k": "id"}).execute()
    rows_by_id = rows(path)
    assert rows_by_id.pop(2) == {"who": None, "h": None}
    assert rows_by_id == {k: {"who": user.upper(), "h": hashed} for k in (1, 3, 4, 5, 6, 7)}


def test_session_default_works_beside_a_rule_that_spark_computes(spark: SparkSession, tmp_path: Path) -> None:
    path = asking_the_session(tmp_path, "session_user()")
    spark.sql(f"ALTER TABLE pydelta.`{path}` ADD CONSTRAINT named CHECK (who IS NULL OR hash(who) <> hash('nobody'))")
    spark.range(3, 4).toDF("k").write.format("pydelta").mode("append").save(path)
    assert rows(path)[3]["who"] == spark.sql("SELECT session_user()").first()[0]  # type: ignore[index]
    spark.sql(f"ALTER TABLE pydelta.`{path}` ALTER COLUMN who SET DEFAULT concat('nobo', substr(current_user(), 1, 0), 'dy')")
    with pytest.raises(PySparkException) as refused:
        spark.range(4, 5).toDF("k").write.format("pydelta").mode("append").save(path)
    assert refused.value.getCondition() == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


def test_a_default_of_the_session_is_refused_without_one(tmp_path: Path) -> None:
    path = asking_the_session(tmp_path, "current_user()")
    with pytest.raises(UnsupportedTableFeatureError, match="current_user"):
        write_delta(path, pa.table({"k": [3]}), mode="append")
    assert set(rows(path)) == {1, 2}
