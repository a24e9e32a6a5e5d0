"""The router in the session's parser: statements of the JVM, of EXECUTE IMMEDIATE and of scripts have the effect of those of
`spark.sql`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py.errors import DeltaError, UnsupportedOperationError
from delta_py.types.names import quoted
from spark_plugin import register
from spark_plugin.driver_channel import sql_requests
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.sql_router import JVM_ENABLED, first_word, route_of
from tests.support.documents.first_words import first_words

Run = Callable[..., DataFrame]
LEFT_ALONE = "did not come through spark.sql of Python"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A separate session, in which SQL is also routed below Python."""
    session = spark.newSession()
    session.conf.set("spark.sql.scripting.enabled", "true")
    register(session)
    return session


@pytest.fixture
def jvm(session: SparkSession) -> Run:
    """Runs SQL as a program of the JVM does."""

    def run(text: str, *values: Any) -> DataFrame:
        context: Any = session.sparkContext
        java = context._gateway.new_array(context._jvm.Object, len(values))
        for number, value in enumerate(values):
            java[number] = value
        inside: Any = session
        return DataFrame(inside._jsparkSession.sql(text, java) if values else inside._jsparkSession.sql(text), session)

    return run


@pytest.fixture
def path(session: SparkSession, tmp_path: Path) -> str:
    """0 to 9; its name may not become part of any text."""
    path = str(tmp_path / "t`; DROP TABLE it's \"x\"")
    session.range(10).selectExpr("id", "id % 2 AS p").coalesce(1).write.format("pydelta").save(path)
    return path


@pytest.fixture
def scratch(session: SparkSession) -> Iterator[str]:
    session.sql("CREATE DATABASE jvm_router")
    yield "jvm_router"
    session.sql("DROP DATABASE jvm_router CASCADE")


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def ids(path: str) -> list[int]:
    id_list: list[int] = PlainTable(path).to_arrow()["id"].to_pylist()
    return sorted(id_list)


def test_statements_of_the_jvm_do_and_return_what_spark_sql_does(
    session: SparkSession, jvm: Run, path: str, scratch: str
) -> None:
    name = f"pydelta.{quoted(path)}"
    result = jvm(f"/* a /* b */ */ -- c\n DELETE FROM {name} WHERE id IN (?, ?)", 1, 2)
    assert [tuple(row) for row in result.collect()] == [(2,)] and result.columns == ["num_affected_rows"]
    assert jvm(f"UPDATE {name} SET p = 7 WHERE id = 3").first()["num_affected_rows"] == 1
    source = "WITH s AS (SELECT 20L AS id, 0L AS p)"
    merged = jvm(f"{source} MERGE INTO {name} t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    assert merged.first()["num_inserted_rows"] == 1 and ids(path) == [0, 3, 4, 5, 6, 7, 8, 9, 20]
    for text in (f"DESCRIBE HISTORY {name} LIMIT 2", f"DESCRIBE DETAIL {name}", f"VACUUM {name} RETAIN 200 HOURS DRY RUN"):
        by_jvm, by_python = jvm(text), session.sql(text)
        assert by_jvm.schema == by_python.schema and by_jvm.collect() == by_python.collect()
    assert "== DELETE ==" in jvm(f"EXPLAIN DELETE FROM {name} WHERE id = 3").first()["plan"]
    assert jvm("OPTIMIZE ?", path).first()["metrics"]["numFilesRemoved"] > 1
    jvm(f"CREATE TABLE {scratch}.numbered (id BIGINT GENERATED ALWAYS AS IDENTITY, b INT) USING pydelta")
    jvm(f"INSERT INTO {scratch}.numbered (b) VALUES (5)")
    assert [tuple(row) for row in jvm(f"SELECT * FROM {scratch}.numbered").collect()] == [(1, 5)]


def test_other_statements_are_sparks(session: SparkSession, jvm: Run, scratch: str) -> None:
    jvm(f"CREATE TABLE {scratch}.plain (a INT) USING parquet")
    jvm(f"INSERT INTO {scratch}.plain VALUES (1)")
    assert jvm(f"WITH t AS (SELECT 'DELETE' AS word) SELECT word, a FROM t, {scratch}.plain").first() == ("DELETE", 1)
    jvm(f"CREATE VIEW {scratch}.seen AS WITH t AS (SELECT 'MERGE' AS word) SELECT * FROM t")
    assert jvm(f"SELECT * FROM {scratch}.seen").first() == ("MERGE",)
    with pytest.raises(AnalysisException, match="does not support"):
        jvm(f"DELETE FROM {scratch}.plain")
    with pytest.raises(AnalysisException) as unbound:
        session.sql("SELECT :x", {"y": 1})
    assert unbound.value.getCondition() == "UNBOUND_SQL_PARAMETER"
    for text in ("SELEC 1", "CREATE TABLE", "DELETE FROM"):
        with pytest.raises(ParseException) as raised:
            jvm(text)
        assert raised.value.getCondition() == "PARSE_SYNTAX_ERROR"


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("DELETE FROM pydelta.`/nowhere` WHERE id = 1", "DELTA_PATH_DOES_NOT_EXIST"),
        ("OPTIMIZE nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
        ("RESTORE {name} TO VERSION AS OF 77", "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        ("OPTIMIZE {name} BY id", "PARSE_SYNTAX_ERROR"),
        ("DELETE FROM {name} WHERE nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ],
)
def test_errors_keep_their_conditions_and_nothing_is_changed(jvm: Run, path: str, text: str, condition: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        jvm(text.format(name=f"pydelta.{quoted(path)}"))
    assert raised.value.getCondition() == condition
    assert isinstance(raised.value, DeltaError) == condition.startswith(("DELTA_", "TABLE_OR_VIEW"))
    assert PlainTable(path).version == 0


def test_first_words_are_those_of_the_table_for_python_and_java(session: SparkSession) -> None:
    java = SparkInternals(session).java_class("pydelta.statements.StatementRouter")
    method = next(method for method in java.getDeclaredMethods() if method.getName() == "firstWord")
    method.setAccessible(True)
    context: Any = session.sparkContext
    arguments = context._gateway.new_array(context._jvm.Object, 1)
    wrong = []
    for text, word in first_words():
        arguments[0] = text
        first = method.invoke(None, arguments)
        if first != word:
            wrong.append((text, word, first))
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "delete FROM t",
        "-- DELETE \\\n FROM t\nSELECT 1",
        "/* a /* b */ DELETE */ UPDATE t SET a = 1",
        "/*+ hint */ SELECT 1",
        " \t\r\n-- x\rINSERT INTO t VALUES (1)",
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT 1 AS tables",
        "SHOW PARTITIONS t",
        "SHOW TABLES",
        "DESCRIBE t",
        "CALL pydelta.system.detail('t')",
        "SELECT 'DELETE'",
    ],
)
def test_the_same_statements_are_looked_at_as_in_python(session: SparkSession, text: str) -> None:
    inside: Any = session
    route = route_of(text)
    looked_at = route is not None and first_word(text) != "CALL"
    parser = inside._jsparkSession.sessionState().sqlParser()
    try:
        kind = str(parser.parsePlan(text).nodeName())
    except ParseException:
        kind = "none"
    assert (kind == "RoutedStatement") == looked_at


def test_execute_immediate_and_scripts_change_rows(session: SparkSession, path: str) -> None:
    name = f"pydelta.{quoted(path)}"
    text = literal(f"DELETE FROM {name} WHERE id = :gone")
    assert session.sql(f"EXECUTE IMMEDIATE {text} USING 9 AS gone").first()["num_affected_rows"] == 1
    assert session.sql(f"EXECUTE IMMEDIATE {literal('VACUUM IDENTIFIER(?) DRY RUN')} USING {literal(name)}").columns == ["path"]
    last = session.sql(
        f"""
        BEGIN
          DECLARE least BIGINT DEFAULT 6;
          INSERT INTO {name} VALUES (30, 0);
          DELETE FROM {name} WHERE id BETWEEN least AND 20;
          CALL pydelta.system.optimize(table => {literal(path)});
          IF least = 6 THEN
            UPDATE {name} SET p = least WHERE id = :changed;
          END IF;
          FOR each AS SELECT 0L AS id UNION ALL SELECT 2L DO
            DELETE FROM {name} WHERE id = each.id;
          END FOR;
          MERGE INTO {name} t USING (SELECT 40L AS id, :words AS words) s ON t.id = s.id
            WHEN NOT MATCHED AND words = 'it''s; ' THEN INSERT (id) VALUES (id);
          SELECT sum(p) AS total FROM {name};
        END""",
        {"changed": 3, "words": "it's; "},
    )
    assert ids(path) == [1, 3, 4, 5, 30, 40] and last.first()["total"] == 1 + 6 + 0 + 1 + 0


def test_script_with_the_word_transaction_changes_rows(session: SparkSession, path: str) -> None:
    """BEGIN TRANSACTION begins like a script: Python checks the text first, and leaves it to Spark's parser."""
    session.sql(f"BEGIN DELETE FROM pydelta.{quoted(path)} WHERE id > 2 /* a transaction */; END")
    assert ids(path) == [0, 1, 2]


def test_scripts_with_settings_in_their_text_are_left_to_spark(session: SparkSession, path: str) -> None:
    """Spark's positions of their statements are not those in the text."""
    session.conf.set("jvm_router.test", "1" * 20)
    with pytest.raises(Exception, match=LEFT_ALONE):
        session.sql(f"BEGIN SELECT ${{jvm_router.test}}; DELETE FROM pydelta.{quoted(path)} WHERE id = 1; SELECT 1; END")
    with pytest.raises(Exception, match=LEFT_ALONE):
        session.sql(f"BEGIN DELETE FROM pydelta.{quoted(path)} WHERE :a <> 'b'; END", {"a": "${jvm_router.test}"})
    assert PlainTable(path).version == 0


def test_threads_of_the_jvm_find_python(session: SparkSession, path: str) -> None:
    context: Any = session.sparkContext
    java, inside = context._jvm.java, session
    text = context._gateway.new_array(context._jvm.Object, 1)
    text[0] = f"DELETE FROM pydelta.{quoted(path)} WHERE id = 5"
    java_session: Any = getattr(inside, "_jsparkSession")  # noqa: B009
    kind = java.lang.invoke.MethodType.methodType(
        java.lang.Class.forName("org.apache.spark.sql.classic.Dataset"), java.lang.Class.forName("java.lang.String")
    )
    handle = java.lang.invoke.MethodHandles.publicLookup().findVirtual(java_session.getClass(), "sql", kind).bindTo(java_session)
    bound = java.lang.invoke.MethodHandles.insertArguments(handle, 0, text)
    callable_class = java.lang.Class.forName("java.util.concurrent.Callable")
    call = java.lang.invoke.MethodHandleProxies.asInterfaceInstance(callable_class, bound)
    pool = java.util.concurrent.Executors.newSingleThreadExecutor()
    try:
        assert pool.submit(call).get().first().getLong(0) == 1
    finally:
        pool.shutdown()
    assert ids(path) == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_sessions_that_do_not_want_it_keep_their_parser(spark: SparkSession, session: SparkSession, jvm: Run, path: str) -> None:
    other: Any = spark.newSession()
    other.conf.set(JVM_ENABLED, "false")
    register(other)
    assert not str(other._jsparkSession.sessionState().sqlParser().getClass().getName()).startswith("pydelta")
    with pytest.raises(ParseException):
        other._jsparkSession.sql(f"OPTIMIZE pydelta.{quoted(path)}")
    for setting in (JVM_ENABLED, "spark.pydelta.sql.enabled"):
        session.conf.set(setting, "false")
        try:
            with pytest.raises(ParseException):
                jvm(f"OPTIMIZE pydelta.{quoted(path)}")
        finally:
            session.conf.set(setting, "true")
    assert jvm(f"OPTIMIZE pydelta.{quoted(path)}").count() == 1


MISSED = [
    "DELETE FROM {t} WHERE id = 1",
    "DELETE FROM {t}",
    "UPDATE {t} SET p = 7",
    "MERGE INTO {t} USING (SELECT 1 AS id) s ON s.id = {t}.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE {t}",
]


def test_statement_of_spark_is_asked_of_python_once(session: SparkSession, scratch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`spark.sql` has called the handlers before Spark parses the statement."""
    requests = []
    original = sql_requests._run
    monkeypatch.setattr(sql_requests, "_run", lambda spark, request: requests.append(request) or original(spark, request))
    session.sql(f"CREATE TABLE {scratch}.other(a INT) USING parquet")
    session.sql(f"ALTER TABLE {scratch}.other SET TBLPROPERTIES (x = 1)")
    with pytest.raises(ParseException):
        session.sql("ALTER TABLE t NONSENSE")
    assert requests == []
    session.sql(f"EXECUTE IMMEDIATE 'ALTER TABLE {scratch}.other SET TBLPROPERTIES (x = 2)'")
    assert len(requests) == 1, "the same words, where Spark parses them by itself"


@pytest.mark.parametrize("statement", MISSED)
def test_what_misses_python_is_refused_with_what_to_do(session: SparkSession, scratch: str, statement: str) -> None:
    spark = session.newSession()
    spark.conf.set(JVM_ENABLED, "false")
    spark.conf.set("spark.sql.scripting.enabled", "true")
    register(spark)
    name = f"{scratch}.missed"
    spark.sql(f"CREATE TABLE {name} USING pydelta AS SELECT id, id % 2 AS p FROM range(10)")
    text = statement.format(t=name)
    for run in (f"BEGIN {text}; END", f"EXECUTE IMMEDIATE '{text}'"):
        with pytest.raises(UnsupportedOperationError, match=LEFT_ALONE) as refused:
            spark.sql(run)
        assert JVM_ENABLED in str(refused.value)
    handled = f"BEGIN DECLARE EXIT HANDLER FOR SQLSTATE '0AKDC' SELECT 'refused' AS outcome; {text}; END"
    assert spark.sql(handled).first() == ("refused",)
    assert spark.table(name).agg({"p": "sum", "id": "count"}).first() == (5, 10)
