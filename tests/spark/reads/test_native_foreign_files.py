"""The native reader compared with Python's on files of other writers: the same rows, with filters too, or the same error.

There is one table for each Delta type, of files that store the type in many ways (support/generators/foreign_parquet.py); files
that Python refuses are in separate tables. PYDELTA_SEED makes other files.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from delta_py.errors import DataFileError
from delta_py.parquet.file_reader import read_files
from delta_py.scan.scan_state import ScanColumn, ScanFile, ScanState
from delta_py.storage.local import LocalStore
from delta_py.types.schema import StructField, StructType, from_arrow_schema, schema_to_json, to_arrow_schema
from spark_plugin.options import read_limits
from tests.support.generators.foreign_parquet import KINDS, ForeignFile, foreign_files
from tests.support.oracles.rows import comparable
from tests.support.runs.sampling import sampled, takes_all
from tests.support.runs.seeds import seed_of
from tests.support.spark.older_settings import COLUMNAR_CONF, NATIVE_CONF
from tests.support.tables.small_table import append_file, make_table

FILES = 45 if takes_all() else 24
FILTERS = 16 if takes_all() else 6
REFUSED = 6 if takes_all() else 2
SETTINGS = {
    NATIVE_CONF: "true",
    COLUMNAR_CONF: "true",
    "spark.sql.parquet.filterPushdown": "true",
    # Each file in a separate task: a file that Python reads affects no other file.
    "spark.sql.files.maxPartitionBytes": "1g",
    "spark.sql.files.openCostInBytes": "1g",
}
PACKED = {"spark.sql.files.openCostInBytes": "4m"}


NESTED = ("array", "map", "struct", "deep")
# Texts may be invalid UTF-8, and times may be in years that Python does not support.
_PLAIN = {pa.string(): pa.binary(), pa.timestamp("us", "UTC"): pa.int64(), pa.timestamp("us"): pa.int64()}


def schema_of(spark: SparkSession, name: str) -> StructType:
    frame = spark.sql(f"select 1 f, 1L id, cast(null as {KINDS[name].sql}) v").limit(0)
    schema = from_arrow_schema(frame.toArrow().schema)
    return StructType(tuple(StructField(f.name, f.data_type) for f in schema.fields))


def by_python(root: Path, schema: StructType, file: Path) -> pa.Table | str:
    """The rows, or Python's objection to the file."""
    state = ScanState(LocalStore(str(root)), tuple(ScanColumn(f, f) for f in schema.fields), timezone="UTC")
    try:
        batches = list(read_files(state, [ScanFile(file.name, file.stat().st_size, modification_time_ms=1)]))
    except DataFileError as error:
        return str(error)
    return pa.Table.from_batches(batches, schema=to_arrow_schema(schema))


def bags(rows: pa.Table) -> dict[Any, Counter[Any]]:
    """The rows of each file."""
    counters: dict[Any, Counter[Any]] = defaultdict(Counter)
    plain = [column.cast(_PLAIN[column.type]) if column.type in _PLAIN else column for column in rows.columns]
    columns = [[value for chunk in column.chunks for value in comparable(chunk)] for column in plain]
    for row in zip(*columns, strict=True):
        counters[row[0]][row[1:]] += 1
    return counters


def constant(name: str, value: Any) -> str:
    sql = KINDS[name].sql
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return f"decode(X'{value.encode().hex()}', 'utf-8')"
    return f"cast('{str(value).lower() if isinstance(value, bool) else value}' as {sql})"


def conditions(name: str, values: Sequence[Any], rng: random.Random, count: int) -> list[str]:
    """Filters, with constants that the table has, or almost has."""
    if name in ("array", "map", "deep"):
        return ["v is null", "size(v) = 1", "v is not null and id > 3"]
    if name == "struct":
        return ["v is null", "v.x = 1", "v.x is null", "v.y = 'é' or v.x > 1", "v.y is not null", "v.x in (1, 2) and id < 200"]
    constants = [constant(name, value) for value in values] + [constant(name, KINDS[name].value(rng)) for _ in range(3)]
    trees = [tree(name, constants, rng, depth=rng.choice([0, 0, 1, 2, 3])) for _ in range(count)]
    return ["v is null", "v is not null", *trees]


def tree(name: str, constants: Sequence[str], rng: random.Random, depth: int) -> str:
    """A random filter. constants: values of the column's type."""
    if depth:
        one, other = (tree(name, constants, rng, depth - 1) for _ in range(2))
        return rng.choice([f"({one}) and ({other})", f"({one}) or ({other})", f"({one}) or ({other})", f"not ({one})"])
    leaves = [f"v {sign} {rng.choice(constants)}" for sign in ("=", "<=>", "!=", "<", "<=", ">", ">=")]
    leaves += [f"v in ({', '.join(rng.choices(constants, k=size))})" for size in (2, 3, 15)]
    leaves += [f"v not in ({rng.choice(constants)}, {rng.choice(constants)})", f"v in ({rng.choice(constants)}, null)"]
    leaves += ["v is null", "v is not null", "cast(id as string) = '7'"]
    leaves += [f"id {rng.choice(['=', '<', '>='])} {rng.randrange(300)}", f"f > {rng.randrange(FILES)}"]
    if name == "string":
        leaves += ["v like 'a%'", "v like '%é'", "v like 'te%'", "v like '%x%'"] * 2
    if name == "boolean":
        leaves += ["v", "not v"] * 2
    return rng.choice(leaves)


def readable(values: pa.ChunkedArray) -> list[Any]:
    """Distinct values of a column, without those that Python has no object for."""
    readable_values = []
    for value in values.slice(0, 50_000).unique():
        try:
            if value.is_valid:
                readable_values.append(value.as_py())
        except (ValueError, OverflowError):  # invalid UTF-8; years that Python does not support
            continue
    return readable_values[:200]


def door_of_reader(spark: SparkSession, path: str) -> Any:
    """NativeReads of the session; if there is none yet, a scan of the table makes it."""
    spark.read.format("pydelta").load(path).select("f").collect()
    rules: Any = spark._jsparkSession.experimental().extraOptimizations()
    ours = next(rules.apply(i) for i in range(rules.length()) if "pydelta" in rules.apply(i).ruleName())
    field = ours.getClass().getClassLoader().loadClass("pydelta.scan.ExecutorJar").getDeclaredField("READERS")
    field.setAccessible(True)
    return field.get(None).get(spark._jsc.sc()).get("pydelta.parquet.NativeReads")


def for_spark(spark: SparkSession, reads: Any, name: str, files: Sequence[Path]) -> list[bool]:
    """For each file, whether the native reader accepts it (FileSchema.check)."""
    jvm: Any = spark._jvm
    columns = jvm.org.apache.spark.sql.types.StructType.fromDDL(f"f int, id bigint, v {KINDS[name].sql}")
    kind = reads.getClass().getClassLoader().loadClass("pydelta.parquet.FileSchema")
    make = kind.getDeclaredConstructors()[0]
    make.setAccessible(True)
    arguments = jvm.java.util.ArrayList([columns, 4096, read_limits.PARQUET_BATCH_BYTES]).toArray()
    schema = make.newInstance(arguments)
    check = next(method for method in kind.getDeclaredMethods() if method.getName() == "check")
    check.setAccessible(True)
    acceptances = []
    for file in files:
        place, size = jvm.org.apache.spark.paths.SparkPath.fromPathString(str(file)), file.stat().st_size
        nowhere = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 0)
        row = jvm.org.apache.spark.sql.catalyst.InternalRow.empty()
        none = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        listed = jvm.org.apache.spark.sql.execution.datasources.PartitionedFile(row, place, 0, 2**63 - 1, nowhere, 1, size, none)
        try:
            check.invoke(schema, jvm.java.util.ArrayList([listed]).toArray())
            acceptances.append(True)
        except Py4JJavaError:
            acceptances.append(False)
    return acceptances


WRITTEN = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
SPARK_WRITERS: dict[str, dict[str, str]] = {
    "as it is": {},
    "pages of the second version": {"parquet.writer.version": "v2", "parquet.page.row.count.limit": "300"},
    "legacy": {"spark.sql.parquet.writeLegacyFormat": "true", "parquet.block.size": "40000"},
    "INT96": {"spark.sql.parquet.outputTimestampType": "INT96", "parquet.enable.dictionary": "false"},
    "bloom filters": {"parquet.bloom.filter.enabled": "true", "parquet.block.size": "40000"},
}


def by_spark(frame: DataFrame, settings: Mapping[str, str], target: Path, conf: Any) -> Path:
    """A Parquet file of the rows, written by Spark. settings: of the session, or of Parquet's writer."""
    conf({name: value for name, value in settings.items() if name.startswith("spark.")})
    directory = target.with_suffix(".written")
    writer = frame.coalesce(1).write.options(**{k: v for k, v in settings.items() if not k.startswith("spark.")})
    writer.parquet(str(directory))
    return next(directory.glob("*.parquet")).rename(target)


def empty_table(root: Path, schema: StructType) -> Path:
    make_table(root, [to_arrow_schema(schema).empty_table()], schema_json=schema_to_json(schema))
    return root


@pytest.mark.parametrize("name", sampled(KINDS, 9))
def test_files_of_others_come_out_as_from_python(name: str, spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    conf(SETTINGS)
    seed = seed_of(name)
    rng = random.Random(seed)
    schema = schema_of(spark, name)
    root, simple = empty_table(tmp_path / "t", schema), empty_table(tmp_path / "simple", schema)
    files: dict[int, ForeignFile] = {}
    expected: dict[int, pa.Table] = {}
    refused: list[tuple[ForeignFile, str]] = []
    for number, file in enumerate(foreign_files(root, name, seed, FILES)):
        rows = by_python(root, schema, file.path)
        if isinstance(rows, str):
            refused.append((file, rows))
            continue
        files[number], expected[number] = file, rows
        append_file(root, file.path)
    for number, (says, settings) in enumerate(SPARK_WRITERS.items(), FILES):
        rows = pa.concat_tables(expected.values()).slice(0, 12_000)
        rows = rows.set_column(0, rows.schema.field(0), pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows))
        conf(WRITTEN)
        path = by_spark(spark.createDataFrame(rows), settings, root / f"file-{number}.parquet", conf)
        file = ForeignFile(path, f"Spark, {says}")
        files[number], expected[number] = file, by_python(root, schema, file.path)
        append_file(root, file.path)
    findings = []

    def note(what: str, number: Any, more: str) -> None:
        findings.append(f"seed {seed}, {what}, file {number} ({files[number].says if number in files else '?'}) {more}")

    expected_rows = bags(pa.concat_tables(expected.values()))
    actual_rows = bags(spark.read.format("pydelta").load(str(root)).toArrow())
    for number in expected_rows.keys() | actual_rows.keys():
        if expected_rows[number] != actual_rows[number]:
            missing, more = expected_rows[number] - actual_rows[number], actual_rows[number] - expected_rows[number]
            note("all rows", number, f"missing {list(missing.items())[:3]}, not expected {list(more.items())[:3]}")

    takes = for_spark(spark, door_of_reader(spark, str(root)), name, [file.path for file in files.values()])
    ours = [number for number, is_taken in zip(files, takes, strict=True) if is_taken]
    assert len(ours) > FILES // 10
    for number in ours:
        link = simple / files[number].path.name
        link.hardlink_to(files[number].path)
        append_file(simple, link)
    truth = pa.concat_tables(expected[number] for number in ours)
    values = readable(truth["v"]) if name not in NESTED else []
    filters = conditions(name, values, rng, FILTERS)
    counts = [f"sum(if({condition}, 1, 0)) n{i}" for i, condition in enumerate(filters)]
    ids = [f"sum(if({condition}, id, 0)) i{i}" for i, condition in enumerate(filters)]
    answers = {row[0]: row for row in spark.createDataFrame(truth).groupBy("f").agg(*map(expr, counts + ids)).collect()}
    conf(PACKED)
    for i, condition in enumerate(filters):
        frame = spark.read.format("pydelta").load(str(simple)).filter(condition)
        counts_by_filter = {
            row[0]: (row[1], row[2]) for row in frame.groupBy("f").agg(expr("count(1)"), expr("sum(id)")).collect()
        }
        for number, row in answers.items():
            right = (row[f"n{i}"], row[f"i{i}"])
            if counts_by_filter.get(number, (0, 0)) != right:
                note(condition, number, f"count and sum of ids {right} -> {counts_by_filter.get(number)}")

    for file, error in rng.sample(refused, min(REFUSED, len(refused))):
        other = empty_table(tmp_path / f"refused-{file.path.stem}", schema)
        file.path.rename(other / file.path.name)
        append_file(other, other / file.path.name)
        try:
            spark.read.format("pydelta").load(str(other)).collect()
            findings.append(f"seed {seed}, {file.says}: read, and not refused: {error}")
        except PySparkException as raised:
            if error[:60] not in str(raised):
                findings.append(f"seed {seed}, {file.says}: {str(raised)[:300]} in the place of {error}")
    print(
        f"{name}, seed {seed}: {len(files)} files, {len(ours)} of them for Spark, {len(refused)} refused, {len(filters)} filters"
    )
    assert findings == [], "\n".join([f"{len(findings)} findings", *findings[:40]])
