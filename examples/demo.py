"""A tour of pydelta on real data: four years of Seattle's weather, and the airports of the United States.

    make demo

It writes a partitioned Delta table in four commits through Spark, reads it with filters that skip files, reads older versions,
and then uses a second table from plain Python, without Spark. Everything happens in a temporary directory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table
from vega_datasets import data

import delta_py
from delta_py import write_delta
from spark_plugin import DeltaTable, register
from spark_plugin.pruning import status

YEARS = (2012, 2013, 2014, 2015)
COLUMNS = "date date, precipitation decimal(4,1), temp_max decimal(3,1), temp_min decimal(3,1), wind decimal(3,1), weather string"
QUERIES = (
    "year = 2014 AND temp_max >= 34",
    "date >= date'2013-07-01' AND date < date'2013-07-05'",
    "temp_min < -6",
    "weather = 'snow' AND precipitation > 20",
)


def main() -> None:
    console = Console()
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("pydelta demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory(prefix="pydelta-demo-") as directory:
        tour(spark, Path(directory), console)
    spark.stop()


def tour(spark: SparkSession, directory: Path, console: Console) -> None:
    """All steps, with their tables below `directory`."""
    register(spark)
    weather, airports = str(directory / "weather"), str(directory / "airports")
    write_weather(spark, weather, console)
    filter_weather(spark, weather, console)
    travel(spark, weather, console)
    without_spark(weather, airports, console)
    read_changes(spark, airports, console)


def write_weather(spark: SparkSession, path: str, console: Console) -> None:
    console.rule("Seattle's weather becomes a Delta table: one commit a year, partitioned by year")
    days = (
        spark.read.option("header", True)
        .option("dateFormat", "yyyy/MM/dd")
        .schema(COLUMNS)
        .csv(data.seattle_weather.filepath)
        .withColumn("year", F.year("date"))
    )
    for year in YEARS:
        (
            days.filter(F.col("year") == year)
            .repartitionByRange(4, "date")
            .write.format("pydelta")
            .mode("append")
            .partitionBy("year")
            .option("userMetadata", f"the year {year}")
            .save(path)
        )
    table = spark.read.format("pydelta").load(path)
    table.printSchema()
    show(console, f"{table.count():,} rows; the first days", table.orderBy("date").limit(5))


def filter_weather(spark: SparkSession, path: str, console: Console) -> None:
    console.rule("Filters skip files: by partition value, and by the statistics of each file")
    for condition in QUERIES:
        rows = spark.read.format("pydelta").load(path).filter(condition).orderBy("date")
        show(console, condition, rows)
        console.print(f"  {kept_files(spark)}\n", style="green")


def kept_files(spark: SparkSession) -> str:
    report = status(spark).last_scan
    if report is None:
        return "this session reads all files (see the warning above)"
    skipped = report.files_total - report.files_kept
    return f"{skipped} of {report.files_total} files skipped, {report.bytes_kept:,} of {report.bytes_total:,} bytes left to read"


def travel(spark: SparkSession, path: str, console: Console) -> None:
    console.rule("The history, and the table as it was")
    history = DeltaTable.forPath(spark, path).history()
    show(console, "history", history.select("version", "timestamp", "operation", "userMetadata"))
    for version in range(len(YEARS)):
        old = spark.read.format("pydelta").option("versionAsOf", version).load(path)
        last = old.agg(F.max("date")).first()
        console.print(f"  version {version}: {old.count():,} days, up to {last[0] if last else None}")
    second = history.filter("version = 1").select(F.date_format("timestamp", "yyyy-MM-dd HH:mm:ss.SSS")).first()
    assert second is not None
    old = spark.read.format("pydelta").option("timestampAsOf", second[0]).load(path)
    console.print(f"  as of {second[0]}: {old.count():,} days\n")


def without_spark(weather: str, airports: str, console: Console) -> None:
    console.rule("The same tables without Spark")
    table = delta_py.DeltaTable(weather)
    condition = "weather = 'snow' AND temp_min < -3"
    snow = table.to_arrow(columns=["date", "temp_min", "wind"], filter=condition)
    show_rows(console, f"{condition}, as an Arrow table", snow.column_names, snow.sort_by("date").to_pylist())
    console.print(f"  {table.scan(filter=condition).report}\n", style="green")

    rows = pa.csv.read_csv(data.airports.filepath)
    west = pc.is_in(rows["state"], value_set=pa.array(["WA", "OR", "CA"]))
    feed = {"delta.enableChangeDataFeed": "true"}
    write_delta(airports, rows.filter(west), partition_by=["state"], configuration=feed)
    write_delta(airports, rows.filter(pc.invert(west)), mode="append")
    north = delta_py.DeltaTable(airports)
    condition = "latitude < 18"
    northern_airports = north.to_arrow(columns=["iata", "name", "state", "latitude"], filter=condition)
    show_rows(console, f"{north!r}: airports with {condition}", northern_airports.column_names, northern_airports.to_pylist())
    console.print(f"  {north.scan(filter=condition).report}\n", style="green")


def read_changes(spark: SparkSession, path: str, console: Console) -> None:
    console.rule("What changed between two versions")
    changes = spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 0).load(path)
    show(
        console,
        "change data feed of the airports",
        changes.groupBy("_commit_version", "_change_type").count().orderBy("_commit_version"),
    )


# ---------------------------------------------------------------- printing


def show(console: Console, title: str, rows: DataFrame) -> None:
    show_rows(console, title, rows.columns, [row.asDict() for row in rows.collect()])


def show_rows(console: Console, title: str, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    console.print(table)


if __name__ == "__main__":
    main()
