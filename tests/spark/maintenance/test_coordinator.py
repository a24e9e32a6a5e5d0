"""Coordinated tables through Spark: every road finds the coordinator in the session, and transactions include Spark's jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from spark_plugin import DeltaTable, DeltaTransaction, register, snapshot
from spark_plugin.exceptions import DeltaError
from tests.support.stores.coordination import MANAGED, ledger_url


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    spark.conf.set("spark.pydelta.coordinator", ledger_url(tmp_path))
    yield spark
    spark.conf.unset("spark.pydelta.coordinator")


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in spark.read.format("pydelta").load(path).select("id").collect())


def create(spark: SparkSession, path: str, *values: int) -> str:
    properties = {**MANAGED, "delta.enableDeletionVectors": "true"}
    spark.createDataFrame([(value,) for value in values], "id long").write.format("pydelta").options(**properties).save(path)
    return path


def rows(spark: SparkSession, *values: int) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], "id long")


def test_spark_reads_writes_and_streams_coordinated_tables(session: SparkSession, tmp_path: Path) -> None:
    path = create(session, str(tmp_path / "t"), 1, 2)
    rows(session, 3).write.format("pydelta").mode("append").save(path)
    DeltaTable.forPath(session, path).delete("id = 1")
    session.sql(f"INSERT INTO pydelta.`{path}` VALUES (4)")
    session.sql(f"UPDATE pydelta.`{path}` SET id = 5 WHERE id = 2")
    assert ids(session, path) == [3, 4, 5]
    assert sorted(row["id"] for row in session.sql(f"SELECT id FROM pydelta.`{path}` VERSION AS OF 1").collect()) == [1, 2, 3]
    stream = session.readStream.format("pydelta").option("ignoreChanges", "true").load(path).writeStream.format("pydelta")
    copy = create(session, str(tmp_path / "copy"))
    stream.option("checkpointLocation", str(tmp_path / "point")).trigger(availableNow=True).start(copy).awaitTermination()
    assert ids(session, copy) == [3, 4, 5]
    session.conf.unset("spark.pydelta.coordinator")
    with pytest.raises(DeltaError, match="DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"):
        ids(session, path)


def test_transaction_of_spark_jobs_is_in_all_tables_or_in_none(session: SparkSession, tmp_path: Path) -> None:
    a, b = create(session, str(tmp_path / "a"), 1, 2), create(session, str(tmp_path / "b"), 10)
    with DeltaTransaction(session) as tx:
        tx.append(b, rows(session, 11))
        tx.delete(a, "id = 1")
        tx.merge(a, rows(session, 2, 3).alias("source"), "target.id = source.id").whenNotMatchedInsertAll().execute()
        assert sorted(row["id"] for row in tx.read(b).collect()) == [10, 11]
        assert (ids(session, a), ids(session, b)) == ([1, 2], [10])
    assert (ids(session, a), ids(session, b)) == ([2, 3], [10, 11])
    assert tx.versions == {a: 2, b: 1}
    with pytest.raises(ZeroDivisionError), DeltaTransaction(session) as tx:
        tx.append(a, rows(session, 7))
        raise ZeroDivisionError
    assert ids(session, a) == [2, 3]
    with pytest.raises(DeltaError, match="DELTA_CONCURRENT"), DeltaTransaction(session) as tx:
        tx.read(a, "id > 0")
        tx.append(b, rows(session, 12))
        rows(session, 4).write.format("pydelta").mode("append").save(a)
    assert (ids(session, a), ids(session, b)) == ([2, 3, 4], [10, 11])


def test_drop_with_files_frees_the_name_of_a_table(session: SparkSession, tmp_path: Path) -> None:
    managed = "TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')"
    for number in (1, 2):
        session.sql(f"CREATE TABLE dropped_and_made (id BIGINT) USING pydelta {managed}")
        session.sql(f"INSERT INTO dropped_and_made VALUES ({number})")
        assert [row["id"] for row in session.table("dropped_and_made").collect()] == [number]
        session.sql("START TRANSACTION")
        with pytest.raises(DeltaError, match="Nothing was dropped"):
            session.sql("DROP TABLE dropped_and_made")
        session.sql("ROLLBACK")
        session.sql("DROP TABLE IF EXISTS dropped_and_made")
        assert not session.catalog.tableExists("dropped_and_made")
    path = create(session, str(tmp_path / "kept"), 1)
    session.sql(f"CREATE TABLE kept_by_its_coordinator USING pydelta LOCATION '{path}'")
    session.sql("DROP TABLE kept_by_its_coordinator")
    session.sql(f"INSERT INTO pydelta.`{path}` VALUES (2)")
    assert ids(session, path) == [1, 2]


def test_table_that_is_there_gets_names_and_is_altered_by_them(session: SparkSession, tmp_path: Path) -> None:
    path = create(session, str(tmp_path / "named"), 1, 2)
    session.sql(f"CREATE TABLE coordinated_and_named USING pydelta LOCATION '{path}'")
    session.sql("ALTER TABLE coordinated_and_named ADD COLUMNS (note STRING)")
    session.sql("INSERT INTO coordinated_and_named VALUES (3, 'new')")
    assert sorted(map(tuple, session.table("coordinated_and_named").collect())) == [(1, None), (2, None), (3, "new")]
    with DeltaTransaction(session) as tx:
        tx.delete("coordinated_and_named", "id = 2")
        tx.append(path, session.createDataFrame([(4, "by path")], "id long, note string"))
    assert snapshot(session, ["coordinated_and_named"])["coordinated_and_named"].count() == 3
    session.sql("DROP TABLE coordinated_and_named")
    assert ids(session, path) == [1, 3, 4]


def test_snapshot_is_one_state_of_several_tables(session: SparkSession, tmp_path: Path) -> None:
    a, b = create(session, str(tmp_path / "a"), 1), create(session, str(tmp_path / "b"), 1)
    for path in (a, b):
        ids(session, path)  # makes the table known to the coordinator
    with DeltaTransaction(session) as tx:
        tx.append(a, rows(session, 2))
        tx.append(b, rows(session, 2))
    frames = snapshot(session, [a, b])
    with DeltaTransaction(session) as tx:
        tx.append(a, rows(session, 3))
        tx.append(b, rows(session, 3))
    assert [sorted(row["id"] for row in frames[path].collect()) for path in (a, b)] == [[1, 2], [1, 2]]
    rows(session, 1).write.format("pydelta").save(str(tmp_path / "plain"))
    with pytest.raises(DeltaError, match="does not coordinate the table"):
        snapshot(session, [a, str(tmp_path / "plain")])


# ---------------------------------------------------------------- SQL


def another(session: SparkSession) -> SparkSession:
    other = session.newSession()
    register(other)
    other.conf.set("spark.pydelta.coordinator", str(session.conf.get("spark.pydelta.coordinator")))
    return other


def test_transaction_statements_are_in_all_tables_or_none(session: SparkSession, tmp_path: Path) -> None:
    a, b = create(session, str(tmp_path / "a"), 1, 2), create(session, str(tmp_path / "b"), 10)
    other = another(session)
    assert len(session.sql("START TRANSACTION").first()["transaction"]) == 36
    session.sql(f"UPDATE pydelta.`{a}` SET id = 3 WHERE id = 1")
    session.sql(f"INSERT INTO pydelta.`{b}` SELECT id FROM pydelta.`{a}` WHERE id > 2")
    session.sql(f"DELETE FROM pydelta.`{a}` WHERE id = 2")
    rows(session, 12).write.format("pydelta").mode("append").save(b)
    DeltaTable.forPath(session, b).delete("id = 10")
    assert [row["id"] for row in session.sql(f"SELECT id FROM pydelta.`{a}`").collect()] == [3]
    assert ids(session, b) == [3, 12] and (ids(other, a), ids(other, b)) == ([1, 2], [10])
    with pytest.raises(DeltaError, match=r"is in the transaction .* already"):
        session.sql("BEGIN TRANSACTION")
    committed = session.sql("COMMIT").collect()
    assert [(row["table"], row["version"]) for row in committed] == [(a, 2), (b, 3)]
    assert (ids(other, a), ids(other, b)) == ([3], [3, 12]) == (ids(session, a), ids(session, b))
    with pytest.raises(DeltaError, match="no transaction to commit"):
        session.sql("COMMIT WORK")


def test_cached_table_has_the_rows_at_the_end_of_a_transaction(session: SparkSession, tmp_path: Path) -> None:
    path = create(session, str(tmp_path / "held"), 1)
    session.sql(f"CREATE TABLE held_in_memory USING pydelta LOCATION '{path}'")
    session.sql("CACHE TABLE held_in_memory")
    try:
        for end, expected_ids in (("ROLLBACK", [1]), ("COMMIT", [1, 2])):
            session.sql("START TRANSACTION")
            session.sql("INSERT INTO held_in_memory VALUES (2)")
            assert sorted(row["id"] for row in session.table("held_in_memory").collect()) == [1, 2]
            session.sql(end)
            assert sorted(row["id"] for row in session.table("held_in_memory").collect()) == expected_ids
        with DeltaTransaction(session) as tx:
            tx.delete("held_in_memory", "id = 1")
        assert [row["id"] for row in session.table("held_in_memory").collect()] == [2]
    finally:
        session.catalog.uncacheTable("held_in_memory")
        session.sql("DROP TABLE held_in_memory")


def test_sql_rollback_or_conflict_leaves_no_change(session: SparkSession, tmp_path: Path) -> None:
    a, b = create(session, str(tmp_path / "a"), 1, 2), create(session, str(tmp_path / "b"), 10)
    session.sql("begin transaction isolation level snapshot")
    session.sql(f"DELETE FROM pydelta.`{a}`")
    session.sql("ROLLBACK")
    assert ids(session, a) == [1, 2]
    other = another(session)
    session.sql("START TRANSACTION")
    session.sql(f"DELETE FROM pydelta.`{a}` WHERE id = 1")
    session.sql(f"INSERT INTO pydelta.`{b}` VALUES (11)")
    other.sql(f"DELETE FROM pydelta.`{a}` WHERE id = 1")
    with pytest.raises(DeltaError, match="DELTA_CONCURRENT"):
        session.sql("COMMIT")
    assert (ids(session, a), ids(session, b)) == ([2], [10])
    assert session.conf.get("spark.pydelta.coordinator.transaction", None) is None
    with pytest.raises(DeltaError, match="SNAPSHOT"):
        session.sql("START TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    with pytest.raises(ParseException, match="expected SNAPSHOT"):
        session.sql("START TRANSACTION ISOLATION LEVEL CHAOS")
    session.sql("BEGIN SELECT 'transaction'; END")  # a script for Spark
