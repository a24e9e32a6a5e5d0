"""Tables of the Delta projects, read without Spark, give the rows that delta-spark reads from them.

There is one test for each table. All its checks run, and the message lists the checks that failed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable
from delta_py.errors import DeltaError
from delta_py.parquet.file_reader import read_files
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.types.schema import schema_to_json, to_arrow_schema
from tests.support.oracles.digest import digest
from tests.support.oracles.rows import difference
from tests.support.oracles.spark_types import arrow_columns, json_columns, without_collation
from tests.support.oracles.variant_json import canonical_json, has_variant, variants_as_json
from tests.support.runs.sampling import sampled
from tests.support.tables.corpus import Case, case_names, check_title, condition_problem, load_case

Check = Mapping[str, Any]


@pytest.mark.parametrize("name", sampled(case_names(), 3))
def test_table_reads_as_delta_spark_reads_it(name: str, corpus: Path) -> None:
    case = load_case(corpus, name)
    checks = [(check, problem_of(case, check)) for check in case.checks]
    problems = [f"{check_title(check)}: {problem}" for check, problem in checks if problem is not None]
    assert problems == [], "\n" + "\n".join(problems)


def problem_of(case: Case, check: Check) -> str | None:
    """None if the check holds, otherwise the problem."""
    try:
        match check["kind"]:
            case "read":
                return rows_problem(case, check, read_rows(case, check))
            case "cdf":
                return rows_problem(case, check, read_changes(case, check))
            case "rowtracking":
                return rows_problem(case, check, read_row_tracking(case, check))
            case "schema":
                return schema_problem(case, check)
            case "detail":
                return detail_problem(case, check)
            case "error":
                return error_problem(case, check, must_fail=True)
            case "reference-error":
                return error_problem(case, check, must_fail=False)
            case kind:
                return f"no such kind of check: {kind}"
    except DeltaError as error:
        return str(error)


# ---------------------------------------------------------------- reading


def open_table(case: Case, check: Check) -> DeltaTable:
    return DeltaTable(case.table, version=check.get("version"), timestamp=check.get("timestamp"))


def read_rows(case: Case, check: Check) -> pa.Table:
    return open_table(case, check).to_arrow(filter=check.get("filter"))


def read_changes(case: Case, check: Check) -> pa.Table:
    changes = DeltaTable(case.table).changes(
        starting_version=check.get("startingVersion"),
        ending_version=check.get("endingVersion"),
        starting_timestamp=check.get("startingTimestamp"),
        ending_timestamp=check.get("endingTimestamp"),
    )
    return changes.read_all()


def read_row_tracking(case: Case, check: Check) -> pa.Table:
    """The rows with row_id and row_commit_version as last columns."""
    snapshot = open_table(case, check).snapshot
    scan = plan_scan(snapshot, options=ScanOptions(metadata_column=True))
    batches = read_files(scan.state, scan.scan_files())
    table = pa.Table.from_batches(batches, to_arrow_schema(scan.output_schema))
    for name in ("row_id", "row_commit_version"):
        table = table.append_column(name, pc.struct_field(table["_metadata"], name))
    return table.drop_columns(["_metadata"])


# ---------------------------------------------------------------- judging


def rows_problem(case: Case, check: Check, table: pa.Table) -> str | None:
    expected_columns = [(name, without_collation(kind)) for name, kind in check["columns"]]
    actual_columns = arrow_columns(table.schema)
    if (check["kind"] == "read" and actual_columns != expected_columns) or sorted(actual_columns) != sorted(expected_columns):
        return f"columns expected: {expected_columns}; read: {actual_columns}"
    table = table.select([name for name, _ in expected_columns]) if check["kind"] != "read" else table
    expected = pq.read_table(case.expected(check), partitioning=None)
    if check.get("select"):
        return difference(expected, digest(table, check["select"]))
    variants = [field.name for field in table.schema if has_variant(field.type)]
    return difference(canonical_json(expected, variants), variants_as_json(table))


def schema_problem(case: Case, check: Check) -> str | None:
    table = open_table(case, check)
    expected, actual = json_columns(check["expected"]), json_columns(json.loads(schema_to_json(table.struct_type)))
    if expected != actual:
        return f"schema expected: {expected}; read: {actual}"
    if arrow_columns(table.schema()) != expected:
        return f"Arrow schema expected: {expected}; read: {table.schema()}"
    return None


def detail_problem(case: Case, check: Check) -> str | None:
    table = DeltaTable(case.table)
    protocol = table.protocol
    actual = {
        "numFiles": table.files().num_rows,
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "partitionColumns": list(table.metadata.partition_columns),
        "tableFeatures": sorted(table_features(table)),
    }
    expected = {name: sorted(check[name]) if name == "tableFeatures" else check[name] for name in actual}
    return None if expected == actual else f"expected: {expected}; read: {actual}"


# The features of each legacy version, by the version that added them.
LEGACY_WRITER_FEATURES = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}


def table_features(table: DeltaTable) -> set[str]:
    protocol = table.protocol
    named = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    if protocol.min_writer_version >= 7:
        return named
    implied = (features for version, features in LEGACY_WRITER_FEATURES.items() if version <= protocol.min_writer_version)
    implied_features = {feature for features in implied for feature in features}
    return implied_features if protocol.min_reader_version >= 2 else implied_features - {"columnMapping"}


def error_problem(case: Case, check: Check, *, must_fail: bool) -> str | None:
    """A refusal is a DeltaError whose message begins with its condition. If only the reference fails, rows are fine too."""
    try:
        table = read_changes(case, check) if check.get("of") == "cdf" else read_rows(case, check)
    except DeltaError as error:
        if not str(error).startswith(f"[{error.error_class}] "):
            return f"the message lacks its condition: {error}"
        return condition_problem(check, error.error_class)
    return f"must be refused, but {table.num_rows} rows were read" if must_fail else None
