"""Catalogs of Unity Catalog servers in SQL and by names: two in one session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py.errors import InvalidOptionError
from delta_py.storage import publication
from spark_plugin import DeltaTransaction, register
from spark_plugin.options import registered_catalogs
from spark_plugin.tables import DeltaTable
from tests.support.servers.unity_catalog import Catalog, UnityCatalogServer
from tests.support.tables.catalog_tables import create_external, create_managed

pytestmark = pytest.mark.usefixtures("plain_plans")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, UnityCatalogServer]]:
    """A session has its catalogs until it ends."""
    first, second = (UnityCatalogServer(tmp_path_factory.mktemp(name), token=f"token-of-{name}") for name in ("uc", "uc2"))
    with first, second:
        yield {"uc": first, "uc2": second}
    publication.finish()


@pytest.fixture
def servers(
    spark: SparkSession, running: dict[str, UnityCatalogServer], tmp_path: Path, conf: Callable[[dict[str, str]], None]
) -> Iterator[dict[str, UnityCatalogServer]]:
    for name, server in running.items():
        conf({f"spark.sql.catalog.{name}.uri": server.uri, f"spark.sql.catalog.{name}.token": str(server.token)})
        server.state = Catalog(f"file://{tmp_path}/{name}")
        server.state.schemas = {(name, "s")}
        server.requests.clear()
    register(spark)
    yield running
    spark.sql("USE spark_catalog.default")


@pytest.fixture
def server(servers: dict[str, UnityCatalogServer]) -> UnityCatalogServer:
    return servers["uc"]


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def test_rows_are_read_inserted_and_changed(spark: SparkSession, server: UnityCatalogServer) -> None:
    create_managed(server, "t", numbers(1, 2))
    assert ids(spark.sql("SELECT * FROM uc.s.t")) == ids(spark.table("uc.s.t")) == [1, 2]
    spark.sql("INSERT INTO uc.s.t VALUES (3), (4)")
    spark.sql("DELETE FROM uc.s.t WHERE t.id = 1")
    spark.sql("UPDATE uc.s.t SET id = 20 WHERE uc.s.t.id = 2")
    spark.sql("MERGE INTO uc.s.t USING (SELECT 5L AS id) AS source ON t.id = source.id WHEN NOT MATCHED THEN INSERT *")
    assert ids(spark.table("uc.s.t")) == [3, 4, 5, 20]
    assert ids(spark.sql("SELECT * FROM uc.s.t VERSION AS OF 1")) == [1, 2, 3, 4]
    spark.sql("INSERT OVERWRITE uc.s.t VALUES (9)")
    assert ids(spark.table("uc.s.t")) == [9]
    history = [row.operation for row in spark.sql("DESCRIBE HISTORY uc.s.t").collect()]
    assert history == ["WRITE", "MERGE", "UPDATE", "DELETE", "WRITE", "WRITE"]
    assert spark.sql("DESCRIBE DETAIL uc.s.t").first().name == "uc.s.t"
    assert spark.sql("DESCRIBE uc.s.t").first().col_name == "id"


def test_names_are_looked_up_in_the_current_schema(spark: SparkSession, server: UnityCatalogServer) -> None:
    create_managed(server, "t", numbers(1, 2))
    spark.sql("USE uc.s")
    spark.sql("DELETE FROM t WHERE t.id = 1")
    spark.sql("UPDATE s.t SET id = 7 WHERE s.t.id = 2")
    assert ids(spark.table("t")) == [7] and ids(DeltaTable.forName(spark, "t").toDF()) == [7]
    spark.range(1).createOrReplaceTempView("t")
    with pytest.raises(Exception, match=r"DELETE|INTERNAL"):
        spark.sql("DELETE FROM t")
    spark.catalog.dropTempView("t")
    assert ids(spark.table("uc.s.t")) == [7]


def test_tables_are_made_replaced_and_dropped(spark: SparkSession, server: UnityCatalogServer) -> None:
    spark.sql("CREATE TABLE uc.s.made (id BIGINT, day DATE) USING delta PARTITIONED BY (day) COMMENT 'for tests'")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql("CREATE TABLE uc.s.made (id BIGINT)")
    spark.sql("CREATE TABLE IF NOT EXISTS uc.s.made (id BIGINT)")
    assert spark.table("uc.s.made").columns == ["id", "day"]
    spark.sql("CREATE TABLE uc.s.chosen AS SELECT id FROM range(3)")
    spark.sql("CREATE TABLE IF NOT EXISTS uc.s.chosen AS SELECT id FROM range(9)")
    assert ids(spark.table("uc.s.chosen")) == [0, 1, 2]
    if spark.version.startswith("4.1."):  # its grammar takes two parts of a name here
        with pytest.raises(ParseException):
            spark.sql("CREATE TABLE uc.s.alike LIKE uc.s.made")
        spark.sql("CREATE TABLE uc.s.alike AS SELECT * FROM uc.s.made")
    else:
        spark.sql("CREATE TABLE uc.s.alike LIKE uc.s.made")
    assert spark.table("uc.s.alike").columns == ["id", "day"]
    assert {table.kind for table in server.state.tables.values()} == {"MANAGED"}
    spark.sql("CREATE OR REPLACE TABLE uc.s.chosen AS SELECT 'x' AS word")
    assert spark.table("uc.s.chosen").collect() == [("x",)]
    spark.sql("REPLACE TABLE uc.s.chosen (id BIGINT)")
    assert spark.table("uc.s.chosen").collect() == []
    assert [row.tableName for row in spark.sql("SHOW TABLES IN uc.s").collect()] == ["alike", "chosen", "made"]
    spark.sql("DROP TABLE uc.s.chosen")
    spark.sql("DROP TABLE IF EXISTS uc.s.chosen")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("DROP TABLE uc.s.chosen")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("uc.s.chosen").collect()


def test_tables_are_altered_and_renamed(spark: SparkSession, server: UnityCatalogServer) -> None:
    create_managed(server, "t", numbers(1), delta__columnMapping__mode="name", delta__minReaderVersion="3")
    spark.sql("ALTER TABLE uc.s.t ADD COLUMNS (note STRING)")
    spark.sql("ALTER TABLE uc.s.t SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    spark.sql("COMMENT ON TABLE uc.s.t IS 'a table'")
    table = server.state.tables["uc", "s", "t"]
    assert [field["name"] for field in table.columns["fields"]] == ["id", "note"]
    assert table.properties["delta.appendOnly"] == "false" and table.comment == "a table"
    spark.sql("ALTER TABLE uc.s.t RENAME TO s.renamed")
    assert ids(spark.table("uc.s.renamed")) == [1]
    with pytest.raises(Exception, match="another schema"):
        spark.sql("ALTER TABLE uc.s.renamed RENAME TO other.t")


def test_schemas_are_listed_made_and_dropped(spark: SparkSession, server: UnityCatalogServer) -> None:
    spark.sql("CREATE SCHEMA uc.later COMMENT 'for tests'")
    assert [row[0] for row in spark.sql("SHOW SCHEMAS IN uc").collect()] == ["later", "s"]
    spark.sql("CREATE TABLE uc.later.t AS SELECT 1L AS id")
    with pytest.raises(Exception, match="Cannot delete schema with tables"):
        spark.sql("DROP SCHEMA uc.later")
    spark.sql("DROP SCHEMA uc.later CASCADE")
    spark.sql("DROP SCHEMA IF EXISTS uc.later")
    assert [row[0] for row in spark.sql("SHOW SCHEMAS IN uc").collect()] == ["s"]


def test_data_frames_are_written_by_name(spark: SparkSession, server: UnityCatalogServer) -> None:
    spark.range(2).write.format("pydelta").saveAsTable("uc.s.saved")
    spark.range(2, 4).write.format("delta").mode("append").saveAsTable("uc.s.saved")
    spark.range(4, 5).write.insertInto("uc.s.saved")
    spark.range(5, 6).writeTo("uc.s.saved").append()
    assert ids(spark.table("uc.s.saved")) == [0, 1, 2, 3, 4, 5]
    spark.range(1).writeTo("uc.s.made").using("pydelta").create()
    spark.range(3).writeTo("uc.s.made").using("pydelta").createOrReplace()
    assert ids(spark.table("uc.s.made")) == [0, 1, 2]
    with pytest.raises(Exception, match="DELTA_PATH_EXISTS"):
        spark.range(1).write.format("pydelta").saveAsTable("uc.s.saved")
    built = DeltaTable.createIfNotExists(spark).tableName("uc.s.built").addColumn("id", "BIGINT").execute()
    assert built.toDF().columns == ["id"]


def test_streams_read_and_write_by_name(spark: SparkSession, server: UnityCatalogServer, tmp_path: Path) -> None:
    create_managed(server, "t", numbers(1, 2))
    stream = spark.readStream.table("uc.s.t").writeStream.format("pydelta").option("checkpointLocation", f"{tmp_path}/c")
    stream.trigger(availableNow=True).toTable("uc.s.copy").awaitTermination()
    assert ids(spark.table("uc.s.copy")) == [1, 2]


def test_changes_are_read_by_name(spark: SparkSession, server: UnityCatalogServer) -> None:
    create_managed(server, "t", numbers(1, 2), delta__enableChangeDataFeed="true")
    spark.sql("DELETE FROM uc.s.t WHERE id = 1")
    rows = spark.sql("SELECT id, _change_type FROM table_changes('uc.s.t', 1)").collect()
    assert rows == [(1, "delete")]


def test_two_catalogs_have_their_servers_and_tokens(spark: SparkSession, servers: dict[str, UnityCatalogServer]) -> None:
    create_managed(servers["uc"], "t", numbers(1), schema=("uc", "s"))
    create_managed(servers["uc2"], "t", numbers(2), schema=("uc2", "s"))
    spark.sql("INSERT INTO uc2.s.t SELECT * FROM uc.s.t")
    assert ids(spark.table("uc2.s.t")) == [1, 2] and ids(spark.table("uc.s.t")) == [1]
    for server in servers.values():
        assert {authorization for authorization in server.authorizations if authorization} == {f"Bearer {server.token}"}


@pytest.mark.parametrize("name", ["a.b", "A", "with space", "a`b", "a@v1", "ä", "%41"])
def test_names_of_any_kind_are_names(spark: SparkSession, server: UnityCatalogServer, name: str) -> None:
    quoted = f"uc.s.`{name.replace('`', '``')}`"
    spark.sql(f"CREATE TABLE {quoted} AS SELECT 1L AS id")
    assert list(server.state.tables) == [("uc", "s", name)]
    spark.sql(f"INSERT INTO {quoted} VALUES (2)")
    spark.sql(f"DELETE FROM {quoted} WHERE id = 1")
    assert ids(spark.table(quoted)) == ids(DeltaTable.forName(spark, quoted).toDF()) == [2]
    assert [row.tableName for row in spark.sql("SHOW TABLES IN uc.s").collect()] == [name]
    spark.sql(f"DROP TABLE {quoted}")
    assert not server.state.tables


def test_external_tables_are_read_and_written(spark: SparkSession, server: UnityCatalogServer, tmp_path: Path) -> None:
    create_external(server, "e", tmp_path / "e", numbers(1))
    spark.sql("INSERT INTO uc.s.e VALUES (2)")
    assert ids(spark.table("uc.s.e")) == [1, 2] and PlainTable(str(tmp_path / "e")).version == 1
    spark.sql("DELETE FROM uc.s.e WHERE id = 1")
    assert server.state.tables["uc", "s", "e"].last[0] == 2


@pytest.mark.parametrize("way", ["columns", "query", "saveAsTable", "writeTo", "builder", "features", "save"])
def test_external_table_is_created_at_its_location(
    spark: SparkSession, server: UnityCatalogServer, tmp_path: Path, way: str
) -> None:
    location, frame = str(tmp_path / "lake" / "e"), spark.range(1, 3)
    if way == "columns":
        spark.sql(f"CREATE TABLE uc.s.e (id BIGINT) USING delta LOCATION '{location}'")
        spark.sql("INSERT INTO uc.s.e VALUES (1), (2)")
    elif way == "query":
        spark.sql(f"CREATE TABLE uc.s.e USING pydelta LOCATION '{location}' AS SELECT * FROM range(1, 3)")
    elif way == "saveAsTable":
        frame.write.format("pydelta").option("path", location).saveAsTable("uc.s.e")
    elif way == "writeTo":
        frame.writeTo("uc.s.e").using("pydelta").option("path", location).create()
    elif way == "builder":
        DeltaTable.create(spark).tableName("uc.s.e").location(location).addColumn("id", "BIGINT").execute()
        frame.write.insertInto("uc.s.e")
    elif way == "features":
        spark.sql(
            f"CREATE TABLE uc.s.e (id BIGINT, CONSTRAINT c CHECK (id > 0)) USING delta CLUSTER BY (id) LOCATION '{location}'"
        )
        frame.write.insertInto("uc.s.e")
    else:
        frame.write.format("pydelta").option("unity.location", location).save("uc://uc.s.e")
    entry = server.state.tables["uc", "s", "e"]
    assert (entry.kind, entry.location) == ("EXTERNAL", f"file://{location}")
    assert [field["name"] for field in entry.columns["fields"]] == ["id"]
    assert ids(spark.table("uc.s.e")) == [1, 2] and PlainTable(location).to_arrow().num_rows == 2
    spark.sql("DELETE FROM uc.s.e WHERE id = 1")
    assert entry.last[0] == PlainTable(location).version
    spark.sql("DROP TABLE uc.s.e")
    assert PlainTable(location).to_arrow().num_rows == 1  # the files stay


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE uc.s.e", "CREATE TABLE IF NOT EXISTS uc.s.e", "CREATE TABLE uc.s.e (id BIGINT)"]
)
def test_existing_table_is_entered_by_its_location(
    spark: SparkSession, server: UnityCatalogServer, tmp_path: Path, statement: str
) -> None:
    location = str(tmp_path / "e")
    spark.range(2).write.format("pydelta").save(location)
    spark.sql(f"{statement} USING delta LOCATION '{location}'")
    assert ids(spark.table("uc.s.e")) == [0, 1] and PlainTable(location).version == 0
    with pytest.raises(Exception, match="There is a table at"):
        spark.sql(f"CREATE TABLE uc.s.f USING delta LOCATION '{location}' AS SELECT 5L AS id")
    spark.sql(f"CREATE TABLE IF NOT EXISTS uc.s.g USING delta LOCATION '{location}' AS SELECT 5L AS id")
    assert ids(spark.table("uc.s.g")) == [0, 1] and ("uc", "s", "f") not in server.state.tables
    spark.sql(f"CREATE OR REPLACE TABLE uc.s.e USING delta LOCATION '{location}' AS SELECT 5L AS id")
    assert ids(spark.table("uc.s.e")) == [5] and PlainTable(location).version == 1
    with pytest.raises(Exception, match="not at the location"):
        spark.sql(f"CREATE OR REPLACE TABLE uc.s.e USING delta LOCATION '{location}2' AS SELECT 6L AS id")
    assert ids(spark.table("uc.s.e")) == [5]


def test_tables_of_other_formats_are_refused(spark: SparkSession, server: UnityCatalogServer) -> None:
    with pytest.raises(Exception, match="can be a table of pydelta only"):
        spark.sql("CREATE TABLE uc.s.p (id BIGINT) USING parquet")
    assert not server.state.tables


# ---------------------------------------------------------------- the managed-table contract

FORBIDDEN = (
    "OPTIMIZE uc.s.t",
    "OPTIMIZE uc.s.t ZORDER BY (id)",
    "VACUUM uc.s.t RETAIN 0 HOURS",
    "VACUUM uc.s.t DRY RUN",
    "REORG TABLE uc.s.t APPLY (PURGE)",
    "ALTER TABLE uc.s.t DROP FEATURE deletionVectors",
    "ALTER TABLE uc.s.t UNSET TBLPROPERTIES ('delta.enableDeletionVectors')",
    "ALTER TABLE uc.s.t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'false')",
)


def state_of(server: UnityCatalogServer, path: Path) -> tuple[list[str], Any]:
    """The files of the table uc.s.t, and what the catalog knows of it."""
    return sorted(str(file) for file in path.rglob("*") if file.is_file()), server.state.tables["uc", "s", "t"].answer()


def test_what_the_catalog_does_itself_is_refused(spark: SparkSession, server: UnityCatalogServer, conf: Any) -> None:
    path = create_managed(server, "t", numbers(1, 2))
    conf({"spark.databricks.delta.retentionDurationCheck.enabled": "false"})
    spark.sql("DELETE FROM uc.s.t WHERE id = 1")
    publication.finish()
    before = state_of(server, path)
    for statement in FORBIDDEN:
        with pytest.raises(Exception, match="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"):
            spark.sql(statement)
    assert state_of(server, path) == before


def test_reader_notices_another_table_of_the_name(spark: SparkSession, server: UnityCatalogServer) -> None:
    create_managed(server, "t", numbers(1))
    frame = spark.read.format("pydelta").load("uc://uc.s.t")
    table = DeltaTable.forName(spark, "uc.s.t")
    spark.sql("ALTER TABLE uc.s.t RENAME TO s.older")
    create_managed(server, "t", numbers(7))
    with pytest.raises(Exception, match="another table has that name now"):
        frame.collect()
    table.delete("id = 7")  # a DeltaTable is always the newest version of its name
    assert ids(spark.table("uc.s.older")) == [1] and ids(spark.table("uc.s.t")) == []


def test_clones_of_other_tables_are_refused(spark: SparkSession, server: UnityCatalogServer, tmp_path: Path) -> None:
    create_managed(server, "t", numbers(1))
    for statement in (
        "CREATE TABLE uc.s.c SHALLOW CLONE uc.s.t",
        "CREATE TABLE uc.s.c CLONE uc.s.t",
        f"CREATE TABLE pydelta.`{tmp_path}/c` SHALLOW CLONE uc.s.t",
    ):
        with pytest.raises(Exception, match=r"CREATE TABLE \.\.\. AS SELECT"):
            spark.sql(statement)
    assert list(server.state.tables) == [("uc", "s", "t")] and not (tmp_path / "c").exists()


def test_transactions_over_tables_are_refused(spark: SparkSession, server: UnityCatalogServer, conf: Any, tmp_path: Path) -> None:
    create_managed(server, "t", numbers(1))
    conf({"spark.pydelta.coordinator": f"sqlite://{tmp_path}/ledger.db"})
    spark.sql("INSERT INTO uc.s.t VALUES (2)")
    with pytest.raises(Exception, match="cannot be part of a transaction"):  # noqa: SIM117
        with DeltaTransaction(spark) as tx:
            tx.table("uc.s.t").delete("id = 1")
    spark.sql("START TRANSACTION")
    for statement in ("INSERT INTO uc.s.t VALUES (3)", "DELETE FROM uc.s.t", "DROP TABLE uc.s.t"):
        with pytest.raises(Exception, match="cannot be part of a transaction"):
            spark.sql(statement)
    spark.sql("ROLLBACK")
    assert ids(spark.table("uc.s.t")) == [1, 2]


# ---------------------------------------------------------------- tokens that are no settings


def test_registered_catalog_has_its_token_in_no_setting(
    spark: SparkSession, tmp_path: Path, conf: Callable[[dict[str, str]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered_catalogs, "_settings", {})
    with UnityCatalogServer(tmp_path / "catalog") as server:
        server.state.schemas = {("mine", "s")}
        create_managed(server, "t", numbers(1), schema=("mine", "s"))
        register(spark, catalogs={"mine": {"uri": server.uri, "token": str(server.token)}})
        spark.sql("INSERT INTO mine.s.t VALUES (2)")
        spark.range(3, 4).write.format("pydelta").mode("append").save("uc://mine.s.t")
        spark.sql("DELETE FROM mine.s.t WHERE id = 1")
        spark.sql("CREATE TABLE mine.s.copy AS SELECT * FROM mine.s.t")
        assert ids(spark.table("mine.s.copy")) == ids(spark.read.format("pydelta").load(server.table_url("t", "mine"))) == [2, 3]
        assert not [name for name, value in spark.conf.getAll.items() if str(server.token) in value]
        publication.finish()
    register(spark, catalogs={"mine": {"uri": "http://127.0.0.1:1", "token": "another"}})


@pytest.mark.parametrize(
    ("catalogs", "message"),
    [({"c": {"token": "t"}}, "has no server"), ({"c": {"uri": "http://127.0.0.1:1", "tokens": "t"}}, "no setting 'tokens'")],
)
def test_catalog_that_cannot_be_registered_is_refused(spark: SparkSession, catalogs: Any, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        register(spark, catalogs=catalogs)
    assert spark.conf.get("spark.sql.catalog.c.uri", None) is None
