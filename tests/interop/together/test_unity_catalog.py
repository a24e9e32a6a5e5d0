"""delta-spark and pydelta use managed tables of one Unity Catalog server, in turns and at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_py.storage import publication
from tests.support.peers.delta_spark import make_unity_catalog
from tests.support.servers.unity_catalog import UnityCatalogServer
from tests.support.spark.spark_script import run_script

PRELUDE = """
import json, sys
import pyarrow as pa
from pyspark.sql import SparkSession
from delta_py import DeltaTable, write_delta
from delta_py.storage import publication
from tests.support.peers.delta_spark import unity_catalog_settings

uri, token, jar, home = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name, value in unity_catalog_settings(jar, "uc", uri, token).items():
    builder = builder.config(name, value)
spark = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.warehouse.dir", home).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
options = {"unity.token": token}

def url(table):
    return f"unity://{uri.partition('://')[2]}/uc.s.{table}"

def ours(table):
    return sorted(DeltaTable(url(table), storage_options=options).to_arrow()["id"].to_pylist())

def theirs(table):
    return sorted(row[0] for row in spark.sql(f"SELECT id FROM uc.s.{table}").collect())

def append(table, *ids):
    write_delta(url(table), pa.table({"id": pa.array(ids, pa.int64())}), mode="append", storage_options=options)

found = {}
"""

TURNS = """
append("ours", 1, 2)
spark.sql("INSERT INTO uc.s.ours VALUES (3)")
append("ours", 4)
spark.sql("UPDATE uc.s.ours SET id = 20 WHERE id = 2")
DeltaTable(url("ours"), storage_options=options).delete("id = 1")
found["ours"] = [ours("ours"), theirs("ours")]
spark.sql("CREATE TABLE uc.s.theirs (id BIGINT) USING delta")
spark.sql("INSERT INTO uc.s.theirs VALUES (1), (2)")
append("theirs", 3)
spark.sql("ALTER TABLE uc.s.theirs ADD COLUMNS (note STRING)")
DeltaTable(url("theirs"), storage_options=options).update({"note": "'x'"}, predicate="id = 2")
append("theirs", 4)
spark.sql("DELETE FROM uc.s.theirs WHERE id = 1")
found["theirs"] = [ours("theirs"), theirs("theirs")]
publication.finish()
print(json.dumps(found))
"""

AT_ONCE = """
import threading
errors = []

def append_all():
    try:
        for number in range(180):
            append("shared", 1000 + number)
    except BaseException as error:
        errors.append(repr(error))

append("shared", 0)
other = threading.Thread(target=append_all)
other.start()
for number in range(1, 20):
    spark.sql(f"INSERT INTO uc.s.shared VALUES ({number})")
spark.sql("DELETE FROM uc.s.shared WHERE id = 0")
other.join()
publication.finish()
row = spark.sql("SELECT count(*), sum(id) FROM uc.s.shared").first()
version = DeltaTable(url("shared"), storage_options=options).version
print(json.dumps({"ours": ours("shared"), "theirs": theirs("shared"), "sums": list(row), "errors": errors, "version": version}))
"""

UNPUBLISHED = """
publication.publish_later = lambda store: None  # so that commits stay staged
append("staged", 1)
append("staged", 2)
append("staged", 3)
log = DeltaTable(url("staged"), storage_options=options).snapshot.table_root + "/_delta_log"
from pathlib import Path
published = lambda: sorted(path.stem for path in Path(log).glob("*.json"))
found["before"] = [[int(name) for name in published()], theirs("staged")]
spark.sql("INSERT INTO uc.s.staged VALUES (4)")
spark.sql("INSERT INTO uc.s.staged VALUES (5)")
found["after"] = [[int(name) for name in published()], ours("staged"), theirs("staged")]
print(json.dumps(found))
"""


@pytest.fixture
def server(tmp_path: Path):  # type: ignore[no-untyped-def]
    with UnityCatalogServer(tmp_path / "catalog") as server:
        yield server
        publication.finish()


def run(script: str, server: UnityCatalogServer, tmp_path: Path) -> dict[str, list[list[int]]]:
    jar = make_unity_catalog(tmp_path)
    return run_script(PRELUDE + script, server.uri, str(server.token), str(jar), str(tmp_path))


def test_tables_are_used_in_turns(server: UnityCatalogServer, tmp_path: Path) -> None:
    found = run(TURNS, server, tmp_path)
    assert found["ours"] == [[3, 4, 20]] * 2
    assert found["theirs"] == [[2, 3, 4]] * 2


def test_commits_of_both_at_once_are_all_there(server: UnityCatalogServer, tmp_path: Path) -> None:
    found = run(AT_ONCE, server, tmp_path)
    expected = [*range(1, 20), *range(1000, 1180)]
    assert found["errors"] == []
    assert found["ours"] == found["theirs"] == expected
    assert found["sums"] == [len(expected), sum(expected)]
    assert found["version"] == 200  # 181 appends, 19 INSERTs and a DELETE, from version 0 on


def test_delta_spark_reads_and_publishes_our_staged_commits(server: UnityCatalogServer, tmp_path: Path) -> None:
    found = run(UNPUBLISHED, server, tmp_path)
    assert found["before"] == [[0], [1, 2, 3]]
    published, *rows = found["after"]
    assert published[:3] == [0, 1, 2] and rows == [[1, 2, 3, 4, 5]] * 2
