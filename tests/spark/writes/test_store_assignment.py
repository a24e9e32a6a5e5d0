"""Our conversions compared with Spark's: which types convert to which (ANSI store assignment), and the values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_py.errors import DeltaError
from delta_py.expressions.coercion import may_assign
from delta_py.row_rules.store_assignment_casts import TimeRules, assign, converter
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    to_arrow_type,
    type_name,
)

pytestmark = pytest.mark.usefixtures("plain_plans")

ZONE = "America/New_York"
NUMBERS = ["0", "1", "-7", "100"]
LARGE = ["127", "128", "-129", "32768", "2147483647", "2147483648", "9223372036854775807", "99999999999999999999"]
FRACTIONS = ["0.5", "1.5", "-1.5", "99.99", "-0.995", "126.995", "1234567.891"]
TIMES = ["2024-01-02 03:04:05.123456", "1999-12-31 23:59:59", "2024-03-10 02:30:00", "2024-11-03 01:30:00", "0001-01-01 00:00:00"]
VALUES: dict[DataType, list[str]] = {
    BOOLEAN: ["true", "false"],
    BYTE: NUMBERS,
    SHORT: NUMBERS + LARGE[:3],
    INTEGER: NUMBERS + LARGE[:5],
    LONG: NUMBERS + LARGE[:7],
    FLOAT: NUMBERS + LARGE + FRACTIONS,
    DOUBLE: [*NUMBERS, *LARGE, *FRACTIONS, "1e300", "NaN", "Infinity"],
    DecimalType(5, 2): NUMBERS + FRACTIONS[:5],
    DecimalType(20, 0): NUMBERS + LARGE,
    DecimalType(38, 18): NUMBERS + LARGE + FRACTIONS,
    STRING: ["", "7", "ab"],
    BINARY: ["", "ab"],
    DATE: [text[:10] for text in TIMES],
    TIMESTAMP: TIMES,
    TIMESTAMP_NTZ: TIMES,
}
# Conversions to text that pydelta refuses by name: Java's text of a double depends on the Java version.
NOT_HERE = {(FLOAT, STRING), (DOUBLE, STRING)}


@pytest.fixture(scope="module")
def zoned(spark: SparkSession) -> Any:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_assignable_types_are_those_of_ansi_store_assignment(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    cast, data_type = jvm.org.apache.spark.sql.catalyst.expressions.Cast, jvm.org.apache.spark.sql.types.DataType
    types = {kind: data_type.fromDDL(type_name(kind)) for kind in (*VALUES, VOID)}
    for source, spark_source in types.items():
        for target, spark_target in types.items():
            if VOID in (source, target) and source != target and source != VOID:
                continue  # only void converts to void, in both
            assert may_assign(source, target) == cast.canANSIStoreAssign(spark_source, spark_target), (source, target)


def test_values_are_those_of_sparks_cast_and_fail_where_it_fails(zoned: SparkSession) -> None:
    wrong: list[Any] = []
    for source, texts in VALUES.items():
        targets = [t for t in VALUES if may_assign(source, t) and (source, t) not in NOT_HERE]
        rows = zoned.createDataFrame([(text,) for text in [*texts, None]], "text string").coalesce(1)
        source_texts = rows.select(F.col("text").cast(type_name(source)).alias("given"))
        tries = [F.expr(f"try_cast(given AS {type_name(target)})").alias(str(n)) for n, target in enumerate(targets)]
        expected = source_texts.select("given", *tries).toArrow().combine_chunks()
        for n, target in enumerate(targets):
            wrong += differences(expected["given"].chunk(0), source, target, expected[str(n)].chunk(0))
    assert wrong == []


def differences(source_values: pa.Array, source: DataType, target: DataType, expected: pa.Array) -> list[Any]:
    """(source, target, value, expected, found) if one row's value differs from Spark's; Spark's null for a value is a failure."""
    problems = []
    source_values, expected = source_values.cast(to_arrow_type(source)), expected.cast(to_arrow_type(target))
    for place in range(len(source_values)):
        one, expected_value = source_values.slice(place, 1), expected.slice(place, 1)
        try:
            ours = assign(one, target, "c", TimeRules(ZONE))
        except DeltaError as error:
            assert error.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
            ours = pa.nulls(1, expected_value.type)
        if not same(ours, expected_value):
            problems.append((type_name(source), type_name(target), str(one[0]), str(expected_value[0]), str(ours[0])))
    return problems


def same(left: pa.Array, right: pa.Array) -> bool:
    return left.equals(right) or (pa.types.is_floating(left.type) and str(left[0]) == str(right[0]) == "nan")


def test_whole_columns_are_converted_as_their_values_are(zoned: SparkSession) -> None:
    rows = zoned.sql(
        "SELECT cast(id AS int) i, cast(id AS double) / 3 d, timestamp'2024-01-01' + make_interval(0, 0, 0, 0, int(id)) t,"
        " if(id % 3 = 0, null, array(named_struct('a', id, 'b', date_add(date'2024-01-01', int(id))))) s FROM range(100)"
    ).coalesce(1)
    target = "array<struct<a:int,b:timestamp>>"
    converted = rows.selectExpr(
        "cast(i AS string) i", "cast(d AS bigint) d", "cast(t AS date) t", f"cast(s AS {target}) s"
    ).toArrow()
    from delta_py.types.schema import from_arrow_schema

    source_rows = rows.toArrow().combine_chunks()
    for f in from_arrow_schema(converted.schema).fields:
        column = source_rows[f.name].chunk(0)
        convert = converter(column.type, f.data_type, f.name, TimeRules(ZONE))
        assert convert is not None
        assert convert(column).to_pylist() == converted[f.name].to_pylist()
