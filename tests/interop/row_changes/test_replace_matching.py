"""The options replaceUsing and replaceOn by pydelta and by delta-spark, each on a copy of one table: rows, change feeds,
histories, and conditions of errors are the same.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py import write_delta
from tests.support.peers.merge_peers import FEED, FLAT, VECTORS, assert_same_tables, condition_of, files_of
from tests.support.spark.settings import restore

COLUMNS = "k bigint, v string, n int"
NO_VECTORS = {"delta.enableDeletionVectors": "false"}
SOURCE = [(2, "B", 200), (2, "C", 201), (4, "D", 400), (None, "N", 1)]
MANY = "SELECT id AS k, concat('v', id) AS v, int(id % 3) AS n FROM range(40)"


@dataclass(frozen=True)
class Case:
    """options: of the save. rows: of the source, or a function that makes it. table: its properties. how: the function that
    saves. differs: our condition and delta-spark's, if they differ for a reason."""

    options: Mapping[str, Any]
    rows: list[Any] | Callable[[SparkSession, str, str], DataFrame] = field(default_factory=lambda: SOURCE)
    columns: str = COLUMNS
    alias: str | None = "s"
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    mode: str = "overwrite"
    how: str = "save"
    differs: tuple[str | None, str | None] | None = None


def using(columns: str, **options: Any) -> dict[str, Any]:
    return {"replaceUsing": columns, **options}


def on(condition: str, alias: str | None = "t", **options: Any) -> dict[str, Any]:
    return {"replaceOn": condition, **({} if alias is None else {"targetAlias": alias}), **options}


CASES: dict[str, Case] = {
    "using": Case(using("k")),
    # delta-spark does not find the file that it would rewrite.
    "using, no vectors": Case(using("k"), properties=NO_VECTORS, differs=(None, "DELTA_FILE_TO_OVERWRITE_NOT_FOUND")),
    "using, feed": Case(using("k"), properties=FEED),
    "using two": Case(using("k, v"), rows=[(2, "b", 7), (3, "x", 8)]),
    "using one twice": Case(using("k, K"), rows=[(2, "b", 7)]),
    "using odd spaces": Case(using("  k  ,v "), rows=[(2, "b", 7)]),
    "using nothing that matches": Case(using("k"), rows=[(9, "b", 7)], properties=FEED),
    "using no rows": Case(using("k"), rows=[], properties=FEED),
    "using all rows": Case(using("k"), rows=[(1, "b", 7), (2, "b", 7), (3, "b", 7)], properties=FEED),
    "using the partition": Case(using("n"), rows=[(9, "b", 20)], partition_by=("n",), properties=FEED),
    "using another column than the partition": Case(using("k"), partition_by=("n",), properties=FEED),
    "using, fewer columns": Case(using("k"), rows=[(2, "b")], columns="k bigint, v string"),
    "using, more columns": Case(using("k"), rows=[(2, "b", 3, 4)], columns="k bigint, v string, n int, x int"),
    "using, new columns": Case(using("k", mergeSchema=True), rows=[(2, "b", 3, 4)], columns="k bigint, v string, n int, x int"),
    "using a narrow type": Case(using("k"), rows=[(2, "b", 3)], columns="k int, v string, n smallint"),
    "using a wide type": Case(using("n"), rows=[(2, "b", 10)], columns="k bigint, v string, n bigint"),
    "using a short for an integer": Case(using("k"), rows=[(2, "b", 3)], columns="k bigint, v string, n smallint"),
    "using a fraction": Case(using("n"), rows=[(2, "b", 10.5)], columns="k bigint, v string, n double"),
    "using another type": Case(using("k"), rows=[("2", "b", 3)], columns="k string, v string, n int"),
    "using an unknown column": Case(using("nope")),
    "using what the source lacks": Case(using("n"), rows=[(2, "b")], columns="k bigint, v string"),
    "using a field": Case(using("t.k", targetAlias="t")),
    "using nothing": Case(using("")),
    "using an empty name": Case(using("k,,v")),
    "using, append": Case(using("k"), mode="append"),
    "using, itself": Case(
        using("k"), rows=lambda s, f, path: s.read.format(f).load(path).where("k < 3").selectExpr("k", "'x' AS v", "n")
    ),
    "using, dynamic session": Case(
        using("k"), settings={"spark.sql.sources.partitionOverwriteMode": "dynamic"}, partition_by=("n",)
    ),
    "using, user's text": Case(using("k", userMetadata="why")),
    "using, a transaction": Case(using("k", txnAppId="app", txnVersion=3)),
    "append only": Case(using("k"), properties={"delta.appendOnly": "true"}),
    "a constraint": Case(
        using("k"), rows=[(2, "b", -5)], properties={"delta.constraints.positive": "n >= 0", "delta.minWriterVersion": "3"}
    ),
    "on": Case(on("t.k = s.k")),
    "on, feed": Case(on("t.k = s.k"), properties=FEED),
    "on null-safe": Case(on("t.k <=> s.k")),
    "on a wide type": Case(on("t.n = s.n"), rows=[(2, "b", 10)], columns="k bigint, v string, n bigint"),
    "on a range": Case(on("t.k > s.k AND s.v = 'B'")),
    "on true": Case(on("true")),
    "on false": Case(on("false")),
    "on the table alone": Case(on("t.k >= 2")),
    "on the source alone": Case(on("s.k >= 2"), properties=FEED),
    "on the source alone, no rows": Case(on("s.k >= 2"), rows=[]),
    "on a list": Case(on("t.k IN (2)")),
    "on a function": Case(on("abs(t.k) = abs(s.k)")),
    "on an alias of other letters": Case(on("t.k = s.k", "T")),
    "on an odd alias": Case(on("`hello world`.k = s.k", "hello world")),
    "on a new column": Case(
        on("t.k = s.x", mergeSchema=True), rows=[(9, "b", 3, 2)], columns="k bigint, v string, n int, x bigint"
    ),
    "on an ambiguous column": Case(on("k = s.k")),
    "on ambiguous columns": Case(on("k = k", None), alias=None),
    "on one alias for both": Case(on("s.k = s.k", "s")),
    "on an unknown column": Case(on("nope = 1")),
    "on an unknown alias": Case(on("t.k = s.k", None)),
    "on what cannot be parsed": Case(on("hello world.k = s.k", "hello world")),
    "on no condition": Case(on("t.k"), differs=("JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN")),
    "on nothing": Case(on("")),
    "on a subquery": Case(on("t.k IN (SELECT 2)"), differs=("DELTA_UNSUPPORTED_SUBQUERY", None)),  # as in a MERGE's condition
    "on rand": Case(
        on("rand() < 2"), differs=("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", "INVALID_NON_DETERMINISTIC_EXPRESSIONS")
    ),
    "on an aggregate": Case(on("max(t.k) = 1"), differs=("DELTA_AGGREGATION_NOT_SUPPORTED", "INVALID_WHERE_CONDITION")),
    "both": Case(using("k", replaceOn="true")),
    "with replaceWhere": Case(using("k", replaceWhere="k = 1")),
    "with dynamic": Case(using("k", partitionOverwriteMode="dynamic")),
    "with overwriteSchema": Case(on("true", overwriteSchema=True)),
    "with dataChange": Case(using("k", dataChange=False)),
    "with overwriteSchema, append": Case(on("true", overwriteSchema=True), mode="append"),
    "insertInto": Case(using("k"), how="insertInto"),
    "insertInto, elsewhere": Case(using("k"), rows=[("B", 2, 200)], columns="v string, k bigint, n int", how="insertInto"),
    "insertInto on": Case(on("t.k = s.k"), how="insertInto"),
    "saveAsTable": Case(using("k"), how="saveAsTable"),
    "overwrite": Case(using("k"), how="overwrite"),
    "overwritePartitions": Case(using("k"), how="overwritePartitions"),
    "append of writeTo": Case(using("k"), how="append"),
    "replace": Case(using("k"), how="replace"),
    "many rows": Case(using("n"), rows=lambda s, f, path: s.sql(MANY).where("k % 5 = 0")),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_that_match_are_replaced_as_by_delta_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    first = tmp_path / "first"
    write_delta(str(first), FLAT, configuration=VECTORS | case.properties, partition_by=case.partition_by)
    outcomes = {}
    before = {setting: spark.conf.get(setting, None) for setting in case.settings}
    try:
        for setting, value in case.settings.items():
            spark.conf.set(setting, value)
        for side, form in (("ours", "pydelta"), ("theirs", "delta")):
            path = str(tmp_path / side)
            shutil.copytree(first, path)
            outcomes[side] = outcome(spark, form, path, case)
    finally:
        restore(spark, before)
    if case.differs is not None:
        assert tuple(outcomes[side].get("error") for side in ("ours", "theirs")) == case.differs
        return
    assert outcomes["ours"] == outcomes["theirs"], outcomes
    assert_same_tables(PlainTable(str(tmp_path / "ours")), PlainTable(str(tmp_path / "theirs")), since=1)


def outcome(spark: SparkSession, form: str, path: str, case: Case) -> dict[str, Any]:
    files = files_of(path)
    frame = spark.createDataFrame(case.rows, case.columns) if isinstance(case.rows, list) else case.rows(spark, form, path)
    try:
        write(frame if case.alias is None else frame.alias(case.alias), form, path, case)
    except (PySparkException, Py4JJavaError, ValueError) as error:
        if form == "pydelta":
            assert files_of(path) == files, "files were left behind"
        return {"error": condition_of(error), "version": PlainTable(path).version}
    commits = PlainTable(path).history(limit=PlainTable(path).version).to_pylist()
    return {"commits": [_commit(one) for one in commits]}


def write(frame: DataFrame, form: str, path: str, case: Case) -> None:
    name = f"{form}.`{path}`"
    if case.how in ("overwrite", "overwritePartitions", "append", "replace"):
        writer = frame.writeTo(name).using(form)
        for option, value in case.options.items():
            writer = writer.option(option, value)
        getattr(writer, case.how)(*([frame["k"] == 1] if case.how == "overwrite" else []))
        return
    saver = frame.write.format(form).mode(case.mode).options(**case.options)
    match case.how:
        case "save":
            saver.save(path)
        case "insertInto":
            saver.insertInto(name)
        case "saveAsTable":
            saver.saveAsTable(name)


def _commit(one: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {name: re.sub(r"#[0-9]+L?", "", str(value)) for name, value in dict(one["operationParameters"]).items()}
    metrics = {name: value for name, value in dict(one["operationMetrics"]).items() if not name.endswith(("Bytes", "Ms"))}
    names = {name for name in dict(one["operationMetrics"]) if name.endswith("Bytes")}
    return {"operation": one["operation"], "parameters": parameters, "metrics": metrics, "names": names,
            "blind": one["isBlindAppend"], "text": one["userMetadata"]}
