"""DELETE, UPDATE and MERGE over Spark Connect: the client sends the request, and the server's tasks do everything that accesses
the table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.log.history import history
from delta_py.storage.local import LocalStore
from tests.support.spark.spark_script import run_script
from tests.support.stores.coordination import create_coordinated, ledger_url, rows_of

PRELUDE = """
import json, os, sys
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession, functions as F
from spark_plugin import DeltaTable
from spark_plugin import exceptions as errors

home = sys.argv[1]
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
    .getOrCreate()
)
found = {}

def caught(action):
    try:
        action()
    except Exception as error:
        named = [name for name in errors.__all__ if isinstance(getattr(errors, name), type) and type(error).__name__ == name]
        return [named, error.getCondition(), isinstance(error, AnalysisException), str(error)]
    return None

def table(name):
    return DeltaTable.forPath(spark, f"{home}/{name}")
"""

DELETES = """
t = table("t")
t.delete("id = 3")
t.delete((F.col("part") == "b") & F.col("name").isNull())
t.alias("x").delete("x.id IN (SELECT max(id) FROM range(10))")
t.delete(F.col("upper") == F.upper(F.lit("k19")))
t.delete("id > 100")
table("parts").delete("part = 'a'")
table("all").delete()
found["random"] = caught(lambda: t.delete("id > rand()"))
found["random_column"] = caught(lambda: t.delete(F.col("id") > F.rand()))
found["unknown"] = caught(lambda: t.delete("nothing = 1"))
found["number"] = caught(lambda: t.delete("id + 1"))
found["parse"] = caught(lambda: t.delete("id ="))
found["aggregate"] = caught(lambda: t.delete("sum(id) > 1"))
found["append_only"] = caught(lambda: table("append").delete("id = 1"))
found["transaction"] = spark.conf.set("spark.databricks.delta.write.txnAppId", "app")
spark.conf.set("spark.databricks.delta.write.txnVersion", "5")
table("once").delete("id = 1")
table("once").delete("id = 2")
spark.stop()
print(json.dumps(found))
"""

VECTORS = {"delta.enableDeletionVectors": "true"}


def make(path: Path, count: int = 20, configuration: dict[str, str] | None = None, files: int = 4, **more: Any) -> None:
    ids = range(count)
    data = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": [("a", "b")[n % 2] for n in ids],
            "name": [None if n % 4 == 3 else f"n{n}" for n in ids],
            "upper": [f"K{n}" for n in ids],
        }
    )
    write_delta(str(path), data, configuration=configuration or {}, max_records_per_file=-(-count // files), **more)


def ids(path: Path) -> list[int]:
    return sorted(DeltaTable(str(path)).to_arrow()["id"].to_pylist())


def newest(path: Path, index: int = 0) -> dict[str, Any]:
    row: dict[str, Any] = history(LocalStore(str(path))).to_pylist()[index]
    return {**row, "operationMetrics": dict(row["operationMetrics"]), "operationParameters": dict(row["operationParameters"])}


def check_no_file_is_left(path: Path) -> None:
    """A commit names every file in the folder."""
    log = "".join(commit.read_text() for commit in (path / "_delta_log").glob("*.json"))
    unnamed_files = [
        file.name for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts and file.name not in log
    ]
    assert not [name for name in unnamed_files if not name.startswith((".", "deletion_vector"))], unnamed_files


@pytest.mark.parametrize("configuration", [{}, VECTORS], ids=["files", "vectors"])
def test_delete_over_connect_takes_the_rows_and_nothing_else(tmp_path: Path, configuration: dict[str, str]) -> None:
    for name in ("t", "all", "once"):
        make(tmp_path / name, configuration=configuration)
    make(tmp_path / "parts", configuration=configuration, partition_by=["part"])
    make(tmp_path / "append", configuration={"delta.appendOnly": "true"})
    result = run_script(PRELUDE + DELETES, str(tmp_path))
    deleted_ids = {3, *range(3, 20, 4), 9, 19}
    assert ids(tmp_path / "t") == [n for n in range(20) if n not in deleted_ids]
    assert ids(tmp_path / "parts") == list(range(1, 20, 2)) and ids(tmp_path / "all") == []
    metrics = newest(tmp_path / "parts")["operationMetrics"]
    assert (metrics["numRemovedFiles"], metrics["numAddedFiles"]) == ("2", "0"), "files of the partition go as they are"
    first = newest(tmp_path / "t", -2)
    assert first["operationParameters"] == {"predicate": json.dumps(["id = 3"], separators=(",", ":"))}
    assert (first["operation"], first["operationMetrics"]["numDeletedRows"]) == ("DELETE", "1")
    assert first["operationMetrics"]["numRemovedFiles"] == ("0" if configuration else "1")
    assert ids(tmp_path / "once") == [0, *range(2, 20)] and DeltaTable(str(tmp_path / "once")).version == 1
    for name in ("random", "random_column"):
        assert result[name][:3] == [["UnsupportedOperationError"], "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", True]
    assert result["unknown"][:2] == [[], "UNRESOLVED_COLUMN.WITH_SUGGESTION"]
    assert result["number"][1] == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN" and result["parse"][1] == "PARSE_SYNTAX_ERROR"
    assert result["aggregate"][1] == "INVALID_WHERE_CONDITION"
    assert result["append_only"][:2] == [["UnsupportedOperationError"], "DELTA_CANNOT_MODIFY_APPEND_ONLY"]
    for name in ("t", "parts", "all", "once", "append"):
        check_no_file_is_left(tmp_path / name)


UPDATES = """
t = table("t")
t.update("id = 3", {"name": "upper(name) || 'x'"})
t.update(F.col("part") == "b", {"part": F.lit("c"), "n": F.col("n") + 1})
t.alias("x").update("x.id = 4", {"x.st.a": "x.st.a + 10", "n": "'12'"})
t.update("id = (SELECT max(id) FROM range(6))", {"name": F.lit(None).cast("string")})
t.update(set={"s": F.lit("all")})
found["twice"] = caught(lambda: t.update("id = 1", {"st": "st", "st.a": "1"}))
found["nothing"] = caught(lambda: t.update("id = 1", {"no": "1"}))
found["element"] = caught(lambda: t.update("id = 1", {"m.k": "1"}))
found["cast"] = caught(lambda: t.update("id = 1", {"n": "'twelve'"}))
found["check"] = caught(lambda: table("checked").update("id = 1", {"id": "id - 100"}))
found["random"] = caught(lambda: t.update("id = rand()", {"n": "1"}))
spark.stop()
print(json.dumps(found))
"""


def test_update_over_connect_sets_columns_and_nested_fields(tmp_path: Path) -> None:
    rows = [
        {"id": n, "part": "ab"[n % 2], "name": f"n{n}", "n": n, "s": "", "st": {"a": n, "b": "x"}, "m": [("k", n)]}
        for n in range(8)
    ]
    kinds = pa.schema(
        [
            *(("id", pa.int64()), ("part", pa.string()), ("name", pa.string()), ("n", pa.int32()), ("s", pa.string())),
            *(("st", pa.struct([("a", pa.int32()), ("b", pa.string())])), ("m", pa.map_(pa.string(), pa.int32()))),
        ]
    )
    data = pa.Table.from_pylist(rows, schema=kinds)
    write_delta(str(tmp_path / "t"), data, partition_by=["part"], configuration=VECTORS)
    write_delta(str(tmp_path / "checked"), data, configuration={"delta.constraints.positive": "id >= 0"})
    result = run_script(PRELUDE + UPDATES, str(tmp_path))
    after = {row["id"]: row for row in DeltaTable(str(tmp_path / "t")).to_arrow().to_pylist()}
    assert [after[n]["part"] for n in range(8)] == ["a", "c"] * 4
    assert [after[n]["n"] for n in range(8)] == [0, 2, 2, 4, 12, 6, 6, 8]
    assert [after[n]["name"] for n in range(8)] == ["n0", "n1", "n2", "N3x", "n4", None, "n6", "n7"]
    assert (after[4]["st"], {row["s"] for row in after.values()}) == ({"a": 14, "b": "x"}, {"all"})
    assert newest(tmp_path / "t")["operationMetrics"]["numUpdatedRows"] == "8"
    assert newest(tmp_path / "t", 3)["operationParameters"] == {"predicate": "[\"part = 'b'\"]"}
    assert result["twice"][1] == "DELTA_CONFLICT_SET_COLUMN" and result["nothing"][1] == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert result["element"][1] == "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"
    assert "CAST_INVALID_INPUT" in result["cast"][3]
    assert result["check"][:2] == [["InvariantViolationError"], "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"]
    assert result["random"][1] == "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"
    assert DeltaTable(str(tmp_path / "t")).version == 5 and DeltaTable(str(tmp_path / "checked")).version == 0
    for name in ("t", "checked"):
        check_no_file_is_left(tmp_path / name)


MEETINGS = """
def meddling(name, where):
    path, marker = f"{home}/{name}", f"{home}/{name}.met"

    def meddle(number):
        import os
        import pyarrow as pa
        from delta_py import write_delta
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return True
        nothing = pa.table({"id": pa.array([], pa.int64()), "n": pa.array([], pa.int64())})
        write_delta(path, nothing, mode="overwrite", replace_where=where)
        return True

    return F.udf(meddle, "boolean")

once, again = meddling("once", "id = 1"), meddling("again", "id = 2")
found["met"] = caught(lambda: table("once").delete((F.col("id") < 2) & once("id")))
table("again").update((F.col("id") < 3) & again("id"), {"n": "7"}, retries=2)
other = meddling("merged", "id = 0")
source = spark.createDataFrame([(0, 1), (50, 5)], "id long, n long")
done = table("merged").alias("t").merge(source.alias("s"), (F.col("t.id") == F.col("s.id")) & other("t.id"))
found["merge"] = done.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(retries=1).collect()[0].asDict()
spark.stop()
print(json.dumps(found))
"""


def test_connect_conflicts_keep_their_classes_and_are_retried(tmp_path: Path) -> None:
    for name in ("once", "again", "merged"):
        data = pa.table({"id": pa.array(range(10), pa.int64()), "n": pa.array([0] * 10, pa.int64())})
        write_delta(str(tmp_path / name), data)
    result = run_script(PRELUDE + MEETINGS, str(tmp_path))
    assert result["met"][0][0].startswith("ConcurrentDelete") and result["met"][2], "the other one removed the file"
    assert ids(tmp_path / "once") == [0, *range(2, 10)], "only the other writer's delete"
    rows = {row["id"]: row["n"] for row in DeltaTable(str(tmp_path / "again")).to_arrow().to_pylist()}
    assert rows == {0: 7, 1: 7, **{n: 0 for n in range(3, 10)}}
    expected = {"num_affected_rows": 2, "num_updated_rows": 0, "num_deleted_rows": 0, "num_inserted_rows": 2}
    assert result["merge"] == expected
    assert ids(tmp_path / "merged") == [*range(10), 50]
    for name in ("once", "again", "merged"):
        check_no_file_is_left(tmp_path / name)


TRANSACTIONS = """
from spark_plugin import DeltaTransaction

spark.conf.set("spark.pydelta.coordinator", sys.argv[2])
a, b = f"{home}/a", f"{home}/b"

def change(new_id):
    with DeltaTransaction(spark) as tx:
        tx.update(a, "id = 100", {"id": "101"})
        tx.append(b, spark.createDataFrame([(new_id,)], "id long"))
        spark.createDataFrame([(new_id,)], "id long").write.format("pydelta").mode("append").save(a)

found["other"] = caught(lambda: change(7))
found["same"] = caught(lambda: change(100))
spark.stop()
print(json.dumps(found))
"""


def test_connect_transaction_conflicts_with_a_new_matching_row(tmp_path: Path) -> None:
    url = ledger_url(tmp_path)
    for name in "ab":
        create_coordinated(tmp_path / name, url, {"id": [1, 2]}, delta__enableDeletionVectors="true")
    result = run_script(PRELUDE + TRANSACTIONS, str(tmp_path), url)
    assert result["other"] is None and result["same"][0] == ["ConcurrentAppendException"], result
    assert (rows_of(tmp_path / "a", url), rows_of(tmp_path / "b", url)) == ([1, 2, 7, 100], [1, 2, 7])


MERGES = """
from pyspark.sql.connect.client import SparkConnectClient

analyze, found["refused questions"] = SparkConnectClient._analyze, []

def noted(self, method, **kwargs):
    try:
        return analyze(self, method, **kwargs)
    except Exception as error:
        found["refused questions"].append(str(error))
        raise

SparkConnectClient._analyze = noted

def rows(*values):
    return spark.createDataFrame(list(values), "id long, part string, name string, upper string")

def counts(frame):
    return list(frame.collect()[0])

many = rows((3, "b", "three", None), (8, "a", None, "E"), (40, "a", "new", "N"), (41, "z", "drop", "N"), (42, None, "x", "N"))
found["many"] = counts(
    table("many").alias("t").merge(many.alias("s"), "t.id = s.id")
    .whenMatchedDelete("s.name IS NULL AND t.part = 'a'")
    .whenMatchedUpdate(None, {"name": "concat(s.name, '-', t.name)", "t.upper": F.col("t.part")})
    .whenNotMatchedInsert("name = 'drop'", {"id": "id * 2", "name": "upper(name)", "part": F.col("s.part")})
    .whenNotMatchedInsertAll("upper = 'N'")
    .whenNotMatchedBySourceUpdate("id < 2", {"name": "concat(part, upper)"})
    .whenNotMatchedBySourceDelete("t.id > 17").execute()
)
bound = rows((0, "q", "bound", "U"), (60, "q", "bound", "V"))
found["bound"] = counts(
    table("bound").alias("t").merge(bound, F.col("t.id") == bound["id"]).whenMatchedUpdate(set={"name": bound["name"]})
    .whenNotMatchedInsert(values={"id": bound.id, "part": bound["part"]}).execute()
)
found["inserts"] = counts(
    table("inserts").alias("t").merge(rows((1, "a", "x", "X"), (70, "b", "y", "Y")).alias("s"), "t.id = s.id")
    .whenNotMatchedInsertAll().execute()
)
found["far"] = counts(
    table("far").alias("t").merge(rows((100, "a", "x", "X")).alias("s"), "s.id = t.id AND t.part = s.part")
    .whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
)
texts = spark.createDataFrame([("03", "x"), ("9", "y"), ("10", "z")], "key string, name string")
found["texts"] = counts(
    table("texts").alias("t").merge(texts.alias("s"), "t.id = s.key").whenMatchedUpdate(set={"name": "s.name"})
    .whenNotMatchedInsert(values={"id": "-1"}).execute()
)
wider = spark.createDataFrame([(5, "w", 1), (80, "w", 2)], "id int, name string, extra int")
found["evolved"] = counts(
    table("evolved").alias("t").merge(wider.alias("s"), "t.id = s.id").withSchemaEvolution()
    .whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
)
numbers = spark.createDataFrame([(1, 10**12, "7")], "id long, big long, text string")
(
    DeltaTable.create(spark).location(f"{home}/generated").addColumn("id", "bigint").addColumn("o", "string")
    .addColumn("gen", "bigint", generatedAlwaysAs="CAST(id % 3 AS BIGINT)").partitionedBy("gen").execute()
)
old = spark.createDataFrame([(1, "a"), (2, "b")], "id long, o string")
old.write.format("pydelta").mode("append").save(f"{home}/generated")
generated = spark.createDataFrame([(1, "x"), (8, "y")], "id long, o string")
found["generated"] = counts(
    table("generated").alias("t").merge(generated.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"o": "s.o"})
    .whenNotMatchedInsert(values={"id": "s.id"}).execute()
)
def narrow(value):
    return lambda: (
        table("numbers").alias("t").merge(numbers.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"n": value}).execute()
    )
found["text"] = counts(narrow("s.text")())
found["overflow"] = caught(narrow("s.big"))
spark.stop()
print(json.dumps(found))
"""

REFUSED = """
def rows(*values):
    return spark.createDataFrame(list(values), "id long, part string, name string, upper string")

twice = rows((1, "a", "x", "X"), (1, "a", "y", "Y")).alias("s")
t = table("errors").alias("t")
found["twice"] = caught(lambda: t.merge(twice, "t.id = s.id").whenMatchedUpdateAll().execute())
found["sometimes"] = caught(lambda: t.merge(twice, "t.id = s.id").whenMatchedUpdateAll("s.name = 'x'").execute())
one = rows((1, "a", "x", "X")).alias("s")
found["unknown"] = caught(lambda: t.merge(one, "t.id = s.nothing").whenMatchedDelete().execute())
found["clause"] = caught(lambda: t.merge(one, "t.id = s.id").whenNotMatchedInsert(values={"id": "t.id"}).execute())
found["random"] = caught(lambda: t.merge(one, "t.id = s.id AND rand() > 0.5").whenMatchedDelete().execute())
found["aggregate"] = caught(lambda: t.merge(one, "t.id = s.id").whenMatchedUpdate(set={"name": "max(s.name)"}).execute())
found["window"] = caught(
    lambda: t.merge(one, "t.id = s.id").whenMatchedUpdate(set={"id": "row_number() over (order by s.id)"}).execute()
)
found["subquery"] = caught(lambda: t.merge(one, "t.id = s.id AND t.id IN (SELECT 1)").whenMatchedDelete().execute())
found["another"] = caught(lambda: t.merge(one, F.col("t.id") == rows((1, "a", "x", "X"))["id"]).whenMatchedDelete().execute())
found["ambiguous"] = caught(lambda: t.merge(one, "id = 1").whenMatchedDelete().execute())
spark.stop()
print(json.dumps(found))
"""


def test_merge_over_connect_applies_clauses_in_their_own_scopes(tmp_path: Path) -> None:
    for name in ("many", "bound", "inserts", "far", "texts", "evolved"):
        partitioned = {"partition_by": ["part"]} if name in ("many", "far") else {}
        make(tmp_path / name, configuration=VECTORS if name != "bound" else {}, **partitioned)
    write_delta(str(tmp_path / "numbers"), pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([0], pa.int32())}))
    result = run_script(PRELUDE + MERGES, str(tmp_path))
    assert result["refused questions"] == [], "a server logs each with its stack trace"
    before = {n: ("ab"[n % 2], None if n % 4 == 3 else f"n{n}", f"K{n}") for n in range(20)}

    def after(name: str) -> dict[int, tuple[Any, ...]]:
        return {row.pop("id"): tuple(row.values()) for row in DeltaTable(str(tmp_path / name)).to_arrow().to_pylist()}

    expected = {**before, 3: ("b", None, "b"), 0: ("a", "aK0", "K0"), 1: ("b", "bK1", "K1"), 40: ("a", "new", "N")}
    expected |= {82: ("z", "DROP", None), 42: (None, "x", "N")}
    assert after("many") == {n: row for n, row in expected.items() if n not in (8, 18, 19)}
    assert result["many"] == [9, 3, 3, 3]
    metrics = newest(tmp_path / "many")["operationMetrics"]
    assert (metrics["numSourceRows"], metrics["numTargetRowsNotMatchedBySourceDeleted"]) == ("5", "2")
    assert after("bound") == {**before, 0: ("a", "bound", "K0"), 60: ("q", None, None)} and result["bound"] == [2, 1, 0, 1]
    assert after("inserts") == {**before, 70: ("b", "y", "Y")} and result["inserts"] == [1, 0, 0, 1]
    assert after("far") == {**before, 100: ("a", "x", "X")} and result["far"] == [1, 0, 0, 1]
    assert [after("texts")[n][1] for n in (3, 9, 10)] == ["x", "y", "z"] and result["texts"] == [3, 3, 0, 0]
    evolved = after("evolved")
    assert (evolved[5], evolved[80], evolved[1]) == (("b", "w", "K5", 1), (None, "w", None, 2), ("b", "n1", "K1", None))
    assert after("generated") == {1: ("x", 1), 2: ("b", 2), 8: (None, 2)} and result["generated"] == [2, 1, 0, 1]
    assert after("numbers") == {1: (7,)} and result["text"] == [1, 1, 0, 0]
    assert result["overflow"][:2] == [["SchemaMismatchError"], "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"]
    for name in ("many", "bound", "inserts", "far", "texts", "evolved", "numbers", "generated"):
        check_no_file_is_left(tmp_path / name)


def test_merge_over_connect_that_cannot_be_changes_nothing(tmp_path: Path) -> None:
    make(tmp_path / "errors", configuration=VECTORS)
    result = run_script(PRELUDE + REFUSED, str(tmp_path))
    for name in ("twice", "sometimes"):
        assert result[name][1] == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    assert result["unknown"][1] == result["clause"][1] == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    assert result["random"][1] == "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"
    assert result["aggregate"][1] == result["window"][1] == "UNSUPPORTED_EXPR_FOR_OPERATOR"
    assert result["subquery"][1] == "DELTA_UNSUPPORTED_SUBQUERY"
    assert result["another"][1] == "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"
    assert result["ambiguous"][1] == "AMBIGUOUS_REFERENCE"
    check_no_file_is_left(tmp_path / "errors")
    assert DeltaTable(str(tmp_path / "errors")).version == 0
