"""DELETE, UPDATE and MERGE INTO by `spark.sql`, in a classic session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from spark_plugin import DeltaTable
from spark_plugin.exceptions import DeltaError, TableNotFoundError


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "it's; a `table`\nü")
    spark.range(6).selectExpr("id", "id * 10 AS v", "struct(id AS x, 'a' AS y) AS st").coalesce(1).write.format("pydelta").save(
        path
    )
    return path


@pytest.fixture
def source(spark: SparkSession) -> Iterator[str]:
    spark.range(4, 8).selectExpr("id", "id + 1000 AS v", "struct(id AS x, 'b' AS y) AS st").createOrReplaceTempView(
        "sql_rows_source"
    )
    yield "sql_rows_source"
    spark.catalog.dropTempView("sql_rows_source")


def name(path: str, source: str = "pydelta") -> str:
    return f"{source}.`{path.replace('`', '``')}`"


def values(spark: SparkSession, path: str) -> dict[int, int]:
    return dict(spark.read.format("pydelta").load(path).select("id", "v").collect())


def test_delete_takes_arguments_names_and_paths_of_any_letters(spark: SparkSession, table: str) -> None:
    result = spark.sql(f"-- c\n/* /* */ */ DELETE FROM {name(table)} AS t WHERE t.id = :id;", {"id": 1})
    assert result.schema.simpleString() == "struct<num_affected_rows:bigint>"
    assert result.collect() == [(1,)]
    assert spark.sql("DELETE FROM IDENTIFIER(?) WHERE id IN (?, ?)", [name(table, "delta"), 2, 99]).first() == (1,)
    spark.sql("DECLARE OR REPLACE VARIABLE sql_rows_name STRING DEFAULT ''")
    spark.sql("SET VAR sql_rows_name = ?", [name(table)])
    assert spark.sql("DELETE FROM IDENTIFIER(sql_rows_name) WHERE array_contains(:ids, id)", {"ids": [3, 98]}).first() == (1,)
    keys = spark.range(4, 5)
    assert spark.sql("DELETE FROM IDENTIFIER({t}) WHERE id IN (SELECT id FROM {keys})", t=name(table), keys=keys).first() == (1,)
    assert values(spark, table) == {0: 0, 5: 50}
    assert spark.sql(f"WITH gone AS (SELECT 5L AS id) DELETE FROM {name(table)} WHERE id IN (SELECT id FROM gone)").first() == (
        1,
    )
    assert spark.sql(f"DELETE FROM {name(table)}").first() == (1,)
    assert values(spark, table) == {}


def test_update_sets_columns_fields_and_counts_rows(spark: SparkSession, table: str) -> None:
    result = spark.sql(f"UPDATE {name(table)} t SET t.v = t.v + 1, st.x = 7, t.id = t.id WHERE t.id < 2")
    assert result.schema.simpleString() == "struct<num_affected_rows:bigint>" and result.collect() == [(2,)]
    assert values(spark, table) == {0: 1, 1: 11, 2: 20, 3: 30, 4: 40, 5: 50}
    assert spark.sql(f"UPDATE {name(table)} SET v = DEFAULT").first() == (6,)
    assert set(values(spark, table).values()) == {None}
    refused(spark, f"UPDATE {name(table)} SET v = 1, v = 2", "DELTA_CONFLICT_SET_COLUMN")
    refused(spark, f"UPDATE {name(table)} SET nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION")


def test_errors_of_names_suggest_the_table_s_own(spark: SparkSession, table: str, source: str) -> None:
    into = f"MERGE INTO {name(table)} t USING {source} s"
    for statement in (
        f"DELETE FROM {name(table)} WHERE nope = 1",
        f"UPDATE {name(table)} SET v = 1 WHERE nope = 1",
        f"UPDATE {name(table)} SET v = nope",
        f"UPDATE {name(table)} SET nope = 1",
        f"{into} ON t.nope = s.id WHEN MATCHED THEN DELETE",
        f"{into} ON t.id = s.id WHEN MATCHED AND nope = 1 THEN DELETE",
        f"{into} ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v",
    ):
        with pytest.raises(AnalysisException) as raised:
            spark.sql(statement)
        first, *_ = str(raised.value).split(";")
        assert "nope" in first or "s.v" in first or "`s`.`v`" in first
        assert "__pydelta" not in first, statement
    empty = name(table + "_empty")
    spark.sql(f"CREATE TABLE {empty} USING pydelta")
    refused(spark, f"DELETE FROM {empty} WHERE a = 1", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION")
    merge = f"MERGE INTO {empty} t USING {source} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    refused(spark, merge, "DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET")
    assert spark.sql(f"SELECT count(*) FROM {empty}").first() == (0,)


def test_intervals_are_cast_where_spark_casts_them(spark: SparkSession, table: str) -> None:
    assert spark.sql(f"UPDATE {name(table)} SET v = INTERVAL '3' DAY WHERE id = 2").first() == (1,)
    assert values(spark, table)[2] == 3
    refused(spark, f"UPDATE {name(table)} SET st = INTERVAL '3' DAY", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION")
    refused(spark, f"UPDATE {name(table)} SET v = make_interval(1)", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION")


def test_merge_takes_all_clauses_and_a_with(spark: SparkSession, table: str, source: str) -> None:
    result = spark.sql(
        f"""WITH q AS (SELECT * FROM {source}) MERGE INTO {name(table)} t USING q s ON t.id = s.id
        WHEN MATCHED AND s.id = 4 THEN UPDATE SET *
        WHEN MATCHED THEN UPDATE SET v = s.v + ?, t.st.y = 'm'
        WHEN NOT MATCHED AND s.id = 7 THEN INSERT (id, v) VALUES (s.id, DEFAULT)
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET v = -1""",
        [1],
    )
    counts = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    assert result.schema.simpleString() == f"struct<{','.join(f'{count}:bigint' for count in counts)}>"
    assert result.collect() == [(6, 3, 1, 2)]
    assert values(spark, table) == {1: -1, 2: 20, 3: 30, 4: 1004, 5: 1006, 6: 1006, 7: None}


def test_merge_with_schema_evolution_adds_columns(spark: SparkSession, table: str) -> None:
    more = spark.createDataFrame([(9, "n")], "id bigint, extra string")
    text = "MERGE WITH SCHEMA EVOLUTION INTO IDENTIFIER(:t) t USING {more} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    assert spark.sql(text, {"t": name(table)}, more=more).first() == (1, 0, 0, 1)
    assert spark.read.format("pydelta").load(table).where("id = 9").select("extra").first() == ("n",)


def test_dml_resolves_catalog_tables_but_not_views_or_parquet(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS sql_rows")
    try:
        spark.read.format("pydelta").load(table).write.format("pydelta").saveAsTable("sql_rows.t")
        assert spark.sql("DELETE FROM sql_rows.t WHERE t.id = 0").first() == (1,)
        spark.sql("USE sql_rows")
        assert spark.sql("DELETE FROM T WHERE id = 1").first() == (1,)
        every = (
            "UPDATE sql_rows.t SET Sql_rows.t.v = spark_catalog.sql_rows.T.v + sql_rows.t.st.x * t.id + v WHERE sql_rows.t.id < 3"
        )
        assert spark.sql(every).first() == (1,)
        assert dict(spark.table("t").select("id", "v").collect())[2] == 44
        spark.range(3).createOrReplaceTempView("t")  # hides the table, as in Spark
        with pytest.raises(Exception, match=r"table|view") as raised:  # as for any view of rows
            spark.sql("DELETE FROM t")
        assert not isinstance(raised.value, DeltaError)
        spark.catalog.dropTempView("t")
        spark.range(3).write.parquet(str(tmp_path / "p"))
        spark.sql(f"CREATE TABLE p USING parquet LOCATION '{tmp_path / 'p'}'")
        with pytest.raises(Exception, match=r"parquet|not support") as raised:  # as for any Parquet table
            spark.sql("DELETE FROM p")
        assert not isinstance(raised.value, DeltaError) and spark.table("p").count() == 3
        refused(spark, "DELETE FROM nowhere.t", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
        assert DeltaTable.forName(spark, "t").toDF().count() == 4
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE sql_rows CASCADE")


def test_full_names_qualify_columns_of_tables_with_equal_names(spark: SparkSession) -> None:
    for database in ("rows_a", "rows_b"):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    try:
        spark.createDataFrame([(1, 10), (2, 20), (3, 30)], "id int, v int").write.format("pydelta").saveAsTable("rows_a.t")
        spark.createDataFrame([(2, 7), (9, 8)], "id int, v int").write.format("pydelta").saveAsTable("rows_b.t")
        into = "MERGE INTO rows_a.t USING rows_b.t ON rows_a.t.id = spark_catalog.rows_b.t.id"
        clauses = (
            "WHEN MATCHED AND Rows_B.t.v < rows_a.T.v THEN UPDATE SET rows_a.t.v = rows_a.t.v + rows_b.t.v "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (rows_b.t.id, rows_b.t.v) "
            "WHEN NOT MATCHED BY SOURCE AND rows_a.t.id = 3 THEN DELETE"
        )
        refused(spark, f"{into} WHEN MATCHED THEN UPDATE SET v = t.v", "AMBIGUOUS_REFERENCE")
        assert spark.sql(f"{into} {clauses}").collect() == [(3, 1, 1, 1)]
        assert sorted(spark.table("rows_a.t").collect()) == [(1, 10), (2, 27), (9, 8)]
        same = "SELECT 1 FROM rows_b.t b WHERE b.id = rows_a.t.id"
        assert spark.sql(f"UPDATE rows_a.t SET v = 0 WHERE EXISTS ({same} AND b.v = 7)").first() == (1,)
        spark.sql("USE rows_a")
        assert spark.sql(f"DELETE FROM t WHERE NOT EXISTS ({same}) AND rows_a.t.v = t.v").first() == (1,)
        path = f"pydelta.`{spark.sql('DESCRIBE DETAIL t').first()['location']}`"
        assert spark.sql(f"DELETE FROM {path} WHERE {path}.id IN (SELECT id FROM rows_b.t WHERE v = 8)").first() == (1,)
        assert spark.table("t").collect() == [(2, 0)]
    finally:
        spark.sql("USE default")
        for database in ("rows_a", "rows_b"):
            spark.sql(f"DROP DATABASE {database} CASCADE")


def test_a_path_without_a_table_is_said_to_be_none(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as raised:
        spark.sql(f"DELETE FROM pydelta.`{tmp_path}`")
    assert isinstance(raised.value, AnalysisException)
    with pytest.raises(ParseException):
        spark.sql(f"DELETE pydelta.`{tmp_path}`")


def test_delta_names_are_left_to_spark_when_the_setting_says_so(spark: SparkSession, table: str) -> None:
    spark.conf.set("spark.pydelta.deltaNames.enabled", "false")
    try:
        with pytest.raises(AnalysisException):
            spark.sql(f"DELETE FROM {name(table, 'delta')}")
    finally:
        spark.conf.unset("spark.pydelta.deltaNames.enabled")
    assert len(values(spark, table)) == 6


def explained(spark: SparkSession, statement: str, args: Any = None) -> str:
    """The text of one row."""
    frame = spark.sql(f"EXPLAIN {statement}", args)
    assert frame.schema.simpleString() == "struct<plan:string>"
    (row,) = frame.collect()
    return str(row[0])


def test_explain_of_a_change_tells_its_plan_and_changes_nothing(spark: SparkSession, table: str, source: str) -> None:
    into = f"MERGE INTO {name(table)} t USING {source} s ON t.id = s.id"
    places = sorted(str(path) for path in Path(table).rglob("*"))
    text = explained(spark, f"DELETE FROM {name(table)} AS t WHERE t.id = :id", {"id": 3})
    assert text.startswith("== Physical Plan ==\n") and "== DELETE ==" in text and "Files: 1 of 1 are read" in text
    assert "version 0" in text and "predicate: (t.id = " in text
    assert "Files: 0 of 1 are read, 1 are removed" in explained(spark, f"DELETE FROM {name(table)}")
    assert "Files: 0 of 1 are read\n" in explained(spark, f"DELETE FROM {name(table)} WHERE id > 100")
    text = explained(spark, f"FORMATTED UPDATE {name(table)} SET v = v + 1 WHERE id IN (SELECT id FROM {source})")
    assert "== UPDATE ==" in text and "(1) " in text and "Join" in text
    both = "WHEN MATCHED AND s.v > 0 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    text = explained(spark, f"EXTENDED {into} AND t.id > 4 {both}")
    assert "== Parsed Logical Plan ==" in text and "== MERGE ==" in text and "Join" in text
    assert "matchedPredicates: predicate (" in text and "actionType update" in text
    assert "Join" not in explained(spark, f"{into} AND t.id > 100 WHEN MATCHED THEN DELETE")
    evolving = into.replace("MERGE", "MERGE WITH SCHEMA EVOLUTION").replace(source, f"(SELECT *, 1 AS added FROM {source})")
    assert "added" in explained(spark, f"COST {evolving} WHEN NOT MATCHED THEN INSERT *")
    few = "WITH c AS (SELECT 1L AS id)"
    assert "Physical Plan" in explained(spark, f"{few} DELETE FROM {name(table)} WHERE id IN (SELECT id FROM c)")
    assert "Physical Plan" in explained(spark, f"SELECT * FROM {name(table)} -- DELETE")
    assert sorted(str(path) for path in Path(table).rglob("*")) == places
    assert len(values(spark, table)) == 6


def test_explain_of_a_change_tells_what_is_wrong_with_it(spark: SparkSession, table: str, tmp_path: Path) -> None:
    for statement, fault in (
        (f"DELETE FROM {name(table)} WHERE nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (f"UPDATE {name(table)} SET id = 1, id = 2", "id"),
        (f"DELETE FROM {name(str(tmp_path / 'nothing'))}", "DELTA_PATH_DOES_NOT_EXIST"),
        (f"MERGE INTO {name(table)} t USING nowhere s ON t.id = s.id WHEN MATCHED THEN DELETE", "TABLE_OR_VIEW_NOT_FOUND"),
    ):
        first, second, *_ = [row[0] for row in spark.sql(f"EXPLAIN {statement}").collect()]
        assert first == "Error occurred during query planning: " and fault in second


def test_only_registered_sessions_and_their_clones_are_routed(spark: SparkSession, table: str) -> None:
    with pytest.raises(AnalysisException):
        spark.newSession().sql(f"DELETE FROM {name(table)}")
    assert len(values(spark, table)) == 6
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # as foreachBatch makes it
    assert clone.sql(f"DELETE FROM {name(table)} WHERE id = 0").first() == (1,)


def refused(spark: SparkSession, text: str, *conditions: str) -> Any:
    with pytest.raises(AnalysisException) as raised:
        spark.sql(text)
    assert raised.value.getCondition() in conditions
    return raised.value
