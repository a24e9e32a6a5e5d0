"""The same over Spark Connect: the client registers, and the server's workers do the work. The server gets no jar."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable
from tests.support.spark.needs_spark import has_spark
from tests.support.spark.spark_script import run_script
from tests.support.tables.small_table import make_table

SCRIPT = """
import glob, json, logging, os, sys, warnings
logging.basicConfig(format="LOG %(name)s %(message)s")
from pyspark.sql import SparkSession, functions as F
from spark_plugin import DeltaTable, register
from spark_plugin.exceptions import (
    InvalidOptionError, InvariantViolationError, SchemaMismatchError, TableAlreadyExistsError, TableNotFoundError,
    UnsupportedOperationError, VersionNotFoundError
)
from pyspark.errors import ParseException
from spark_plugin.tables import IdentityGenerator

path, new, home = sys.argv[1:]
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", home).getOrCreate()
)
spark.conf.set("spark.pydelta.connectClasses.enabled", "false")
register(spark)
register(spark)
found = {"module": type(spark).__module__}
frame = spark.read.format("pydelta").load(path)
found["rows"] = [list(row) for row in frame.orderBy("id").collect()]
found["filters"] = [frame.filter("id = 1").count(), frame.filter("id = 3").count(), frame.count()]
found["by_hand"] = [list(row) for row in spark.read.load(path, format="pydelta", columns="name", filter="id = 3").collect()]
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
found["tokyo"] = spark.read.format("pydelta").option("timestampAsOf", "2024-03-10 19:30:00").load(path).count()
spark.conf.set("spark.sql.session.timeZone", "UTC")
frame.write.partitionBy("name").format("pydelta").save(new)
frame.write.save(new, format="pydelta", mode="ignore")
frame.write.format("pydelta").mode("append").save(new)
frame.write.mode("overwrite").parquet(new + "-parquet")
found["parquet"] = spark.read.parquet(new + "-parquet").count()

frame.filter("id = 0").write.format("pydelta").mode("overwrite").option("replaceWhere", "name = 'n0'").save(new)
found["replaced"] = spark.read.format("pydelta").load(new).count()
spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
frame.filter("id = 2").write.format("pydelta").mode("overwrite").option("optimizeWrite", "true").save(new)
spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
found["dynamic"] = sorted(row["name"] or "" for row in spark.read.format("pydelta").load(new).collect())

one = spark.createDataFrame([(7, "x")], "id bigint, name string").coalesce(1)
one.write.format("pydelta").partitionBy("name").saveAsTable("named")
one.toDF("a", "b").write.insertInto("named")
one.writeTo("named").append()
one.writeTo("named").overwrite(F.expr("id = 7 and name = 'x'"))
found["named"] = [list(row) for row in spark.table("named").collect()]
one.selectExpr("id + 1 as id", "name").writeTo("named").overwritePartitions()
one.selectExpr("id", "'y' as name", "1 as more").write.format("pydelta").mode("append").saveAsTable("named", mergeSchema=True)
found["merged"] = [list(row) for row in spark.table("named").orderBy("id").collect()]
one.writeTo("second").using("pydelta").partitionedBy("name").createOrReplace()
one.writeTo("second").using("pydelta").createOrReplace()
found["second"] = [list(row) for row in spark.table("second").collect()]
found["kept"] = sorted(os.path.basename(path) for path in glob.glob(home + "/*"))
pairs = spark.sql("select 7L as id, array(named_struct('x', 1, 'y', 2)) as l, named_struct('v', null, 'w', 1) as n")
pairs.write.format("pydelta").saveAsTable("nested")
swapped = spark.sql("select 8 as a, array(named_struct('y', 1L, 'x', 2)) as b, named_struct('w', null, 'v', 2) as c")
swapped.write.insertInto("nested")
found["nested"] = [row.asDict(recursive=True) for row in spark.table("nested").orderBy("id").collect()]

def caught(kind, action):
    try:
        action()
    except kind as error:
        return [getattr(error, "error_class", None), getattr(error, "getCondition", str)(), str(error)]
    return None

found["condition"] = caught(InvalidOptionError, lambda: one.writeTo("named").overwrite(F.col("id") == 7))
found["relative"] = caught(InvalidOptionError, lambda: one.write.format("pydelta").option("path", "a/b").saveAsTable("third"))
found["schema"] = caught(SchemaMismatchError, lambda: one.selectExpr("1 as z").write.format("pydelta").mode("append").save(new))
found["outside"] = caught(
    InvariantViolationError,
    lambda: one.write.format("pydelta").mode("overwrite").option("replaceWhere", "id = 0").save(new),
)
found["exists"] = caught(TableAlreadyExistsError, lambda: frame.write.format("pydelta").save(new))
found["version"] = caught(VersionNotFoundError, lambda: spark.read.format("pydelta").option("versionAsOf", 9).load(path).count())
found["option"] = caught(InvalidOptionError, lambda: spark.read.format("pydelta").option("versionAs", 9).load(path).count())
table = DeltaTable.forPath(spark, new)
found["history"] = [row["operation"] for row in table.history().collect()]
found["detail"] = table.detail().select("partitionColumns", "numFiles").collect()[0].asDict()
found["is"] = [DeltaTable.isDeltaTable(spark, new), DeltaTable.isDeltaTable(spark, new + "-parquet")]

made = (
    DeltaTable.create(spark).tableName("made").addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator())
    .addColumn("name", "varchar(3)").property("team", "b").execute()
)
one.select("name").write.format("pydelta").mode("append").saveAsTable("made")
made.setProperties({"delta.enableDeletionVectors": "true"})
made.unsetProperties(["team"])
made.addFeatureSupport("typeWidening")
found["made"] = [list(row) for row in made.toDF().collect()]
found["state"] = made.detail().select("name", "properties", "tableFeatures").collect()[0].asDict()
found["restored"] = made.restoreToVersion(0).collect()[0].asDict()
newest = made.history(1).first()["version"]
found["unrestored"] = [made.restoreToVersion(newest).first().asDict(), made.history(1).first()["version"] - newest]
found["clone"] = table.clone(new + "-clone", isShallow=True).toDF().count()
found["deep"] = [table.clone(new + "-deep", replace=replace).toDF().count() for replace in (False, True)]
found["copied"] = table.clone(new + "-deep", replace=True).history().first()["operationMetrics"]["numCopiedFiles"]
found["fsck"] = [table.fsck().count(), table.fsck(dryRun=False).count(), table.restoreToVersion(0, dryRun=True).count()]
report = table.report(vacuum=True)
known = report.facts
found["report"] = [known.files.rows, known.log.faults, known.retention.vacuum.files, "</html>" in report.html()]
found["purged"] = table.reorg().executePurge().first()["metrics"]["numFilesRemoved"]
found["again"] = caught(
    TableAlreadyExistsError, lambda: DeltaTable.create(spark).tableName("made").addColumn("a", "int").execute()
)
found["missing"] = caught(
    TableNotFoundError, lambda: DeltaTable.replace(spark).location(new + "-none").addColumn("a", "int").execute()
)
one.write.format("pydelta").option("delta.columnMapping.mode", "name").save(new + "-altered")
altered = DeltaTable.forPath(spark, new + "-altered")
altered.addColumns("x int, y int")
altered.renameColumn("name", "label")
altered.dropColumns("y")
altered.alterColumn("x", comment="c", first=True)
altered.addConstraint("c", "hash(id) <> 1")
broken = caught(InvariantViolationError, lambda: altered.addConstraint("d", "hash(id) = 1"))
found["altered"] = [altered.toDF().columns, altered.history().first()["operation"], broken[0]]
hashed = spark.sql("SELECT 0L AS id, 'x' AS name")
hashed.write.format("pydelta").mode("append").save(path + "-ruled")
broken = hashed.selectExpr("id + 1 AS id").write.format("pydelta").mode("append")
found["ruled"] = caught(InvariantViolationError, lambda: broken.save(path + "-ruled"))
found["property"] = caught(InvalidOptionError, lambda: made.setProperties({"delta.nothing": "1"}))

hostile = f"create table hostile using pydelta options (path '{path}', 'pydelta.view' 'history')"
found["private"] = [
    caught(InvalidOptionError, lambda: spark.sql(hostile).collect()),
    caught(InvalidOptionError, lambda: spark.sql(f"select * from named with ('pydelta.view' = 'history')").collect()),
    caught(InvalidOptionError, lambda: spark.read.format("pydelta").option("pydelta.view", "history").load(path)),
    caught(InvalidOptionError, lambda: one.write.format("pydelta").option("pydelta.command", "{}").mode("append").save(path)),
]

def write(batch, number):
    from spark_plugin import register
    register(batch.sparkSession)  # in a process of its own, of the same session
    batch.write.format("pydelta").mode("append").save(new + "-batches")

stream = spark.readStream.format("pydelta").load(path).writeStream.foreachBatch(write)
query = stream.option("checkpointLocation", new + "-checkpoint").trigger(availableNow=True).start()
if spark.version.startswith("4.1."):  # whose streams do not tell a source where they go on
    found["batches"] = str(caught(Exception, query.awaitTermination) or query.exception())
else:
    query.awaitTermination()
    found["batches"] = spark.read.format("pydelta").load(new + "-batches").count()

for number in range(2):
    one.write.format("pydelta").mode("append").save(new + "-kept")
kept = DeltaTable.forPath(spark, new + "-kept")
found["optimized"] = kept.optimize().executeCompaction().first()["metrics"]["numFilesRemoved"]
found["ordered"] = kept.optimize().executeZOrderBy("id").first()["metrics"]["zOrderStats"]["mergedFiles"]["num"]
found["short"] = caught(InvalidOptionError, lambda: kept.vacuum(1))
spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
found["vacuumed"] = [len(kept.vacuum(0, dryRun=True).collect()), kept.vacuum(0).columns, kept.toDF().count()]

spark.range(6).repartition(3).selectExpr("id", "id % 2 as p").write.partitionBy("p").parquet(new + "-plain")
found["unpartitioned"] = caught(InvalidOptionError, lambda: DeltaTable.convertToDelta(spark, f"parquet.`{new}-plain`"))
from spark_plugin.maintenance import convert_job
convert_job._FILES_PER_TASK = 2
over = f"CREATE TABLE pydelta.`{new}-over` SHALLOW CLONE parquet.`{new}-plain` PARTITIONED BY (p INT)"
found["over"] = [spark.sql(over).first()["source_num_of_files"], spark.read.format("pydelta").load(new + "-over").count()]
converted = DeltaTable.convertToDelta(spark, f"parquet.`{new}-plain`", "p int")
converted.generate("symlink_format_manifest")
found["converted"] = [converted.toDF().count(), converted.toDF().filter("p = 1").count()]

name = f"pydelta.`{new}-plain`"
more = "(SELECT 2L AS id, 5 AS p UNION ALL SELECT 9L, 9)"
found["sql"] = [
    list(spark.sql(text).first())
    for text in (
        f"/* c */ DELETE FROM {name} AS x WHERE x.id = 3;",
        f"UPDATE {name} SET p = CASE WHEN id = 0 THEN 7 ELSE p END, id = id WHERE id IN (0, 1)",
        f"MERGE INTO {name} t USING {more} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT *",
    )
]
found["sql_rows"] = sorted(list(row) for row in spark.read.format("pydelta").load(new + "-plain").select("id", "p").collect())
found["sql_history"] = [row["operation"] for row in spark.sql(f"DESC HISTORY '{new}-plain' LIMIT 3").collect()]
found["sql_clone"] = list(spark.sql(f"CREATE TABLE pydelta.`{new}-cloned` SHALLOW CLONE {name} VERSION AS OF 0").first())[1:]
found["sql_args"] = [
    list(spark.sql(text, args).first())
    for text, args in (
        (f"DELETE FROM {name} WHERE id = :x OR p = :y", {"x": 100, "y": -5}),
        (f"UPDATE {name} SET p = ?, id = id WHERE id = ?", [11, 9]),
        (f"MERGE INTO {name} t USING (SELECT :x AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, :y)",
         {"x": 12, "y": 13}),
    )
]
given = spark.read.format("pydelta").load(new + "-plain").select("id", "p").where("p > 10")
found["sql_args_rows"] = sorted(map(list, given.collect()))
found["sql_fault"] = caught(ParseException, lambda: spark.sql(f"OPTIMIZE {name} FOO"))
found["sql_other"] = spark.sql("/* DELETE */ SELECT :x AS x", {"x": 1}).first()["x"]
spark.stop()
print(json.dumps(found))
"""


def test_connect_session_reads_writes_and_raises_our_errors(tmp_path: Path) -> None:
    commits = [pa.table({"id": pa.array([n, n + 1], pa.int64()), "name": [f"n{n}", None]}) for n in (0, 2)]
    path = make_table(tmp_path / "t", commits, times_ms=[1_710_064_800_000, 1_710_068_400_000])
    ruled = make_table(
        tmp_path / "t-ruled", [commits[0].slice(0, 0)], properties={"delta.constraints.hashed": "hash(id) = -1670924195"}
    )
    new = str(tmp_path / "new")
    result = run_script(SCRIPT, path, new, str(tmp_path / "warehouse"))
    assert result["module"].startswith("pyspark.sql.connect.")
    assert result["rows"] == [[0, "n0"], [1, None], [2, "n2"], [3, None]]
    assert result["filters"] == [1, 1, 4]
    assert (result["by_hand"], result["tokyo"]) == ([[None]], 2)
    assert result["exists"][:2] == ["DELTA_PATH_EXISTS"] * 2
    assert result["version"][:2] == ["DELTA_VERSION_NOT_FOUND"] * 2 and "Traceback" not in result["version"][2]
    assert result["option"][0] == "DELTA_UNKNOWN_OPTION" and "versionAsOf?" in result["option"][2]
    assert (result["parquet"], result["history"], result["is"]) == (4, ["WRITE"] * 4, [True, False])
    assert (result["replaced"], result["dynamic"]) == (7, ["", "", "", "", "n0", "n2"])
    assert result["named"] == [[7, "x"]]
    assert result["merged"] == [[7, "y", 1], [8, "x", None]]
    assert (result["second"], result["kept"]) == ([[7, "x"]], ["named", "second"])
    assert result["nested"] == [
        {"id": 7, "l": [{"x": 1, "y": 2}], "n": {"v": None, "w": 1}},
        {"id": 8, "l": [{"x": 1, "y": 2}], "n": {"v": None, "w": 2}},
    ]
    assert "F.expr" in result["condition"][2] and "relative" in result["relative"][2]
    assert result["schema"][0] == "DELTA_METADATA_MISMATCH" and result["outside"][0] == "DELTA_REPLACE_WHERE_MISMATCH"
    assert result["detail"]["partitionColumns"] == ["name"]
    assert result["made"] == [[1, "x"]]
    assert result["state"]["name"] == "spark_catalog.default.made"
    assert result["state"]["properties"] == {"delta.enableDeletionVectors": "true"}
    features = ["appendOnly", "deletionVectors", "identityColumns", "invariants", "typeWidening"]
    assert result["state"]["tableFeatures"] == features
    assert (result["restored"]["num_removed_files"], result["restored"]["num_of_files_after_restore"]) == (1, 0)
    assert result["unrestored"] == [dict.fromkeys(result["restored"], 0), 0]
    assert (result["clone"], result["again"][0]) == (6, "TABLE_OR_VIEW_ALREADY_EXISTS")
    assert result["altered"] == [["x", "id", "label"], "ADD CONSTRAINT", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"]
    assert (result["deep"], result["copied"], result["fsck"], result["purged"]) == ([6, 6], "0", [0, 0, 0], 0)
    assert result["report"] == [6, [], 0, True]
    assert (result["missing"][0], result["property"][0]) == ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_UNKNOWN_CONFIGURATION")
    assert result["ruled"][0] == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" and "- id : 1" in result["ruled"][2]
    assert DeltaTable(ruled).to_arrow().to_pylist() == [{"id": 0, "name": "x"}]
    assert [caught and "gives the options" in caught[2] for caught in result["private"]] == [True] * 4
    assert result["batches"] == 4 if has_spark("4.2") else "Over Spark Connect use Spark 4.2" in result["batches"]
    assert (result["optimized"], result["ordered"], result["vacuumed"]) == (2, 1, [3, [], 2])
    assert result["short"][0] == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    assert len(list(Path(f"{new}-kept").glob("*.parquet"))) == 1
    assert result["unpartitioned"][0] == "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"
    assert result["over"][0] > 2 and result["over"][1] == 6
    assert result["converted"] == [6, 3]
    lines = [len(file.read_text().splitlines()) for file in Path(f"{new}-plain").glob("_symlink_format_manifest/*/manifest")]
    assert len(lines) == 2 and sum(lines) == DeltaTable(f"{new}-plain", version=0).files().num_rows
    assert result["sql"] == [[1], [2], [2, 1, 0, 1]] and result["sql_history"] == ["MERGE", "UPDATE", "DELETE"]
    assert result["sql_rows"] == [[0, 7], [1, 1], [2, 5], [4, 0], [5, 1], [9, 9]]
    assert (result["sql_clone"], result["sql_other"]) == ([result["sql_clone"][0], 0, 0, 0, 0], 1)
    assert result["sql_args"] == [[0], [1], [1, 0, 0, 1]] and result["sql_args_rows"] == [[9, 11], [12, 13]]
    assert result["sql_fault"][1] == "PARSE_SYNTAX_ERROR"
    written = DeltaTable(new)
    assert (written.version, written.to_arrow().num_rows) == (3, 6)
    warning_count = result["stderr"].count("without column pruning")
    processes = 2 if has_spark("4.2") else 1  # on Spark 4.1 no batch of the stream runs
    assert warning_count == processes, "once in each process, however often register is called"
