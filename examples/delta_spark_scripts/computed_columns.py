"""Readings of water meters: generated columns, identity columns and defaults.

The calls are those of delta-spark's documentation, and one line is added for pydelta.
Pages: https://docs.delta.io/delta-batch and /delta-default-columns
"""

import tempfile

import spark_plugin.as_delta  # the line for pydelta

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable, IdentityGenerator
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, LongType, StringType

home = tempfile.mkdtemp(prefix="delta-spark-script-")
builder = (
    SparkSession.builder.appName("meters")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", home)
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()


def show(frame):
    frame.orderBy(*frame.columns).show(truncate=False)


def attempt(title, work, *words):
    """Do what must be refused, and say whether the error has these words."""
    try:
        work()
    except Exception as error:
        print(f"{title}: refused,", [word in str(error) for word in words])
    else:
        print(f"{title}: done")


# ---------------------------------------------------------------- generated columns

(
    DeltaTable.create(spark)
    .tableName("default.readings")
    .addColumn("meter", "BIGINT")
    .addColumn("kind", "STRING", comment="cold or warm")
    .addColumn("at", "TIMESTAMP")
    .addColumn("litres", "INT")
    .addColumn("day", DateType(), generatedAlwaysAs="CAST(at AS DATE)")
    .addColumn("year", "INT", generatedAlwaysAs="YEAR(at)")
    .addColumn("month", "INT", generatedAlwaysAs="MONTH(at)")
    .addColumn("double_litres", "INT", generatedAlwaysAs="litres * 2")
    .partitionedBy("kind", "day")
    .execute()
)
readings = spark.sql(
    """
    SELECT bigint(meter) AS meter, kind, at, litres FROM VALUES (1, 'cold', TIMESTAMP'2024-01-31 23:59:59', 100),
    (1, 'cold', TIMESTAMP'2024-02-01 00:00:01', 110), (2, 'warm', TIMESTAMP'2023-12-31 12:00:00', 7),
    (3, 'warm', null, null) r(meter, kind, at, litres)
    """
)
readings.write.format("delta").mode("append").saveAsTable("default.readings")
spark.sql("INSERT INTO default.readings (meter, kind, at, litres) VALUES (4, 'cold', TIMESTAMP'2024-02-29 10:00:00', 12)")
show(spark.table("default.readings"))
show(spark.sql("SELECT meter, day FROM default.readings WHERE at >= '2024-02-01 00:00:00' AND at <= '2024-02-01 12:00:00'"))
wrong = "INSERT INTO default.readings VALUES (5, 'cold', TIMESTAMP'2024-03-01 10:00:00', 1, DATE'2024-03-02', 2024, 3, 2)"
attempt("a wrong day", lambda: spark.sql(wrong), "day", "CAST(at AS DATE)")
spark.sql("UPDATE default.readings SET at = TIMESTAMP'2025-05-05 05:05:05', litres = 50 WHERE meter = 2")
table = DeltaTable.forName(spark, "default.readings")
(
    table.alias("t")
    .merge(readings.where("meter = 1").selectExpr("meter + 10 AS meter", "kind", "at", "litres").alias("s"), "t.meter = s.meter")
    .whenMatchedUpdate(set={"litres": "s.litres"})
    .whenNotMatchedInsert(values={"meter": "s.meter", "kind": "s.kind", "at": "s.at", "litres": "s.litres"})
    .execute()
)
show(table.toDF())

# ---------------------------------------------------------------- identity columns

(
    DeltaTable.create(spark)
    .tableName("meters")
    .addColumn("always", dataType=LongType(), generatedAlwaysAs=IdentityGenerator())
    .addColumn("back", dataType=LongType(), generatedAlwaysAs=IdentityGenerator(start=-1, step=-2))
    .addColumn("unless_given", dataType=LongType(), generatedByDefaultAs=IdentityGenerator(start=100, step=10))
    .addColumn("street", dataType=StringType())
    .execute()
)
for street in ("Elm Row", "Oak Way"):
    spark.sql(f"INSERT INTO meters (street) VALUES ('{street}')")
spark.sql("INSERT INTO meters (unless_given, street) VALUES (7, 'Fir End')")
show(spark.table("meters"))
attempt("a value for it", lambda: spark.sql("INSERT INTO meters (always, street) VALUES (9, 'Ash Hill')"), "always")
attempt("an update of it", lambda: spark.sql("UPDATE meters SET always = 9"), "always")
old = spark.sql("SELECT bigint(id) AS id, DATE'2024-01-01' AS day, bigint(5) AS litres FROM VALUES 1, 2 o(id)")
(
    DeltaTable.create(spark)
    .tableName("taken_over")
    .addColumn("id", dataType=LongType(), generatedByDefaultAs=IdentityGenerator(start=50, step=1))
    .addColumn("day", dataType=DateType())
    .addColumn("litres", dataType=LongType())
    .execute()
)
old.write.format("delta").mode("append").saveAsTable("taken_over")
old.select("day", "litres").where("litres > 0").coalesce(1).write.format("delta").mode("append").saveAsTable("taken_over")
ids = spark.table("taken_over")
print(ids.where("id < 50").count(), "old ids,", ids.where("id >= 50").count(), "new ids")
spark.sql("CREATE TABLE in_sql (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 5), note STRING) USING DELTA")
spark.sql("INSERT INTO in_sql (note) VALUES ('one')")
spark.sql("INSERT INTO in_sql (note) VALUES ('two')")
print(spark.table("in_sql").select("id").distinct().count(), "ids,", spark.table("in_sql").where("id % 5 <> 0").count(), "wrong")
attempt("INT as identity", lambda: spark.sql("CREATE TABLE x (id INT GENERATED ALWAYS AS IDENTITY) USING DELTA"), "IDENTITY")

# ---------------------------------------------------------------- defaults

spark.sql("CREATE TABLE bills (id INT, paid BOOLEAN) USING DELTA")
spark.sql("INSERT INTO bills VALUES (1, true)")
spark.sql("ALTER TABLE bills SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'enabled')")
spark.sql("ALTER TABLE bills ALTER COLUMN paid SET DEFAULT false")
spark.sql("INSERT INTO bills (id) VALUES (2)")
spark.sql("INSERT INTO bills VALUES (3, DEFAULT)")
spark.sql("ALTER TABLE bills ALTER COLUMN paid DROP DEFAULT")
spark.sql("INSERT INTO bills (id) VALUES (4)")
spark.sql(
    "CREATE TABLE fees (id INT, euros DECIMAL(6, 2) DEFAULT 2.5, kind STRING DEFAULT 'usual') USING DELTA "
    "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
)
spark.sql("INSERT INTO fees (id) VALUES (1)")
spark.sql("INSERT INTO fees (id, kind) VALUES (2, 'late')")
spark.sql("UPDATE fees SET kind = DEFAULT, euros = euros * 2 WHERE id = 2")
insert = "INSERT (id, euros, kind) VALUES (bills.id, 1.25, 'merged')"
spark.sql(f"MERGE INTO fees USING bills ON fees.id = bills.id WHEN NOT MATCHED THEN {insert}")
show(spark.table("bills"))
show(spark.table("fees"))
