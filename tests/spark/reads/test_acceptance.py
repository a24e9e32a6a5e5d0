"""The tables of the Delta projects through Spark: the newest state of each, and every refusal. A sample of the tables by default,
all with PYDELTA_ALL=1.

All other checks of these tables run without Spark, in tests/acceptance, except for filters that only Spark can evaluate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType, VariantType

from tests.support.oracles.rows import difference
from tests.support.oracles.spark_types import json_columns
from tests.support.oracles.variant_json import canonical_json
from tests.support.runs.sampling import sampled
from tests.support.tables.corpus import Case, case_names, check_title, condition_problem, load_case

Check = Mapping[str, Any]


@pytest.mark.parametrize("name", sampled(case_names(), 20))
def test_table_reads_through_spark_as_delta_spark_reads_it(name: str, corpus: Path, spark: SparkSession) -> None:
    case = load_case(corpus, name)
    problems = [
        f"{check_title(check)}: {problem}"
        for check in case.checks
        if is_newest_state(check) or "error" in check["kind"]
        if (problem := problem_of(spark, case, check)) is not None
    ]
    assert problems == [], "\n" + "\n".join(problems)


def is_newest_state(check: Check) -> bool:
    return check["kind"] == "read" and bool(check.get("main"))


def problem_of(spark: SparkSession, case: Case, check: Check) -> str | None:
    """None if the check holds, otherwise the problem."""
    if check["kind"] == "read":
        return rows_problem(case, check, frame(spark, case, check))
    try:
        row_count = frame(spark, case, check).toArrow().num_rows
    except Exception as error:
        # Spark passes on Python's errors as text of many lines, which contains the condition.
        condition = re.search(r"\[(DELTA_[A-Z_]+)\]", str(error))
        return condition_problem(check, condition[1]) if condition else f"no condition in: {error}"
    return f"must be refused, but {row_count} rows were read" if check["kind"] == "error" else None


def frame(spark: SparkSession, case: Case, check: Check) -> DataFrame:
    reader = spark.read.format("pydelta")
    options = {"versionAsOf": check.get("version"), "timestampAsOf": check.get("timestamp")}
    if check.get("of") == "cdf":
        bounds = ("startingVersion", "endingVersion", "startingTimestamp", "endingTimestamp")
        options = {"readChangeFeed": "true", **{name: check.get(name) for name in bounds}}
    for name, value in options.items():
        if value is not None:
            reader = reader.option(name, value)
    return reader.load(case.table)


def rows_problem(case: Case, check: Check, rows: DataFrame) -> str | None:
    expected_columns, actual = [(name, kind) for name, kind in check["columns"]], columns_of(rows)
    if expected_columns != actual:
        return f"columns expected: {expected_columns}; read: {actual}"
    if check.get("filter"):
        rows = rows.filter(check["filter"])
    variants = [field.name for field in rows.schema if holds_variant(field.dataType)]
    rows = rows.select(*(comparable(rows, position) for position in range(len(rows.columns))))
    if check.get("select"):
        rows = rows.selectExpr(*check["select"])
    expected = pq.read_table(case.expected(check), partitioning=None)
    return difference(canonical_json(expected, variants), canonical_json(rows.toArrow(), variants))


def columns_of(rows: DataFrame) -> list[tuple[str, str]]:
    """Names and types. Spark's names of types include collations, the JSON of a schema does not."""
    plain = json_columns(rows.schema.jsonValue())
    collated = (field.dataType.simpleString() for field in rows.schema)
    return [(name, text if " collate " in text else kind) for (name, kind), text in zip(plain, collated, strict=True)]


def comparable(rows: DataFrame, position: int) -> Column:
    """Variants as JSON text, and void, which Parquet cannot store, as text."""
    field = rows.schema[position]
    column = F.col(f"`{field.name.replace('`', '``')}`")
    if holds_variant(field.dataType):
        column = F.to_json(column)
    elif isinstance(field.dataType, NullType):
        column = column.cast("string")
    return column.alias(field.name)


def holds_variant(kind: DataType) -> bool:
    match kind:
        case VariantType():
            return True
        case StructType():
            return any(holds_variant(field.dataType) for field in kind)
        case ArrayType():
            return holds_variant(kind.elementType)
        case MapType():
            return holds_variant(kind.keyType) or holds_variant(kind.valueType)
        case _:
            return False
