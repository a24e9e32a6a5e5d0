"""How a scan is read, and why, without Spark: the roads, the limits between them, and the message to the rule."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from delta_py import write_delta
from delta_py.errors import InvalidOptionError
from delta_py.scan.planning import ScanReport
from spark_plugin.data_source import DeltaSource
from spark_plugin.java import jars
from spark_plugin.options import read_limits
from spark_plugin.options.common import DISABLED
from spark_plugin.options.private import signed
from spark_plugin.options.read_options import read_options
from spark_plugin.options.roads import OLDER_SETTINGS, Road, parse_disabled
from spark_plugin.pruning.scan_request import MARKER_KEY, ScanRequest
from spark_plugin.session_source import source_with
from spark_plugin.source.read_plan import ReadPlan, plan_read
from tests.support.documents.message_schema import schema, violations
from tests.support.tables.small_table import make_table

JAVA = jars.SOURCES
QUESTION = {"by": [], "valued": [], "minima": [], "maxima": ["id"]}
PARTIAL = {"by": ["s"], "valued": ["id"], "minima": [], "maxima": [], "sums": []}


@pytest.fixture
def table(tmp_path: Path) -> str:
    return make_table(tmp_path / "t", [pa.table({"id": range(n, n + 10), "s": [str(n)] * 10}) for n in (0, 100)])


def marked(columns: StructType, **marker_fields: Any) -> StructType:
    text = json.dumps({"predicates": [], "limit": None, "scan_id": "n", **marker_fields})
    assert violations("request", json.loads(text)) == []
    fields = json.loads(columns.json())
    fields["fields"][0]["metadata"][MARKER_KEY] = text
    return StructType.fromJson(fields)


def plan(path: str, options: dict[str, str] | None = None, **marker_fields: Any) -> ReadPlan:
    """marker_fields: fields of the request."""
    source = source_with("nonce")(signed({"path": path, **(options or {})}, "nonce"))
    read_plan = plan_read(source._pin(), ScanRequest.parse(marked(source.schema(), **marker_fields)))  # type: ignore[arg-type]
    assert violations("plan", json.loads(json.dumps(read_plan.message()))) == []
    return read_plan


# ---------------------------------------------------------------- roads


@pytest.mark.parametrize(
    ("marker_fields", "road", "why"),
    [
        ({}, Road.ROWS, "the pruning rule does not ask"),
        ({"columnar": True}, Road.COLUMNS, "the pruning rule does not ask"),
        ({"columnar": True, "why_not_native": "it is off"}, Road.COLUMNS, "it is off"),
        ({"why_not_columnar": "a type", "why_not_native": "it is off"}, Road.ROWS, "a type; it is off"),
        ({"columnar": True, "native": "where quicker"}, Road.PARQUET, "at most 48 MiB"),
        ({"columnar": True, "native": "wherever possible"}, Road.PARQUET, "preferred"),
        ({"columnar": True, "native": "where quicker", "limit": 3}, Road.COLUMNS, "has a limit"),
        ({"question": {**QUESTION, "only": False}}, Road.LOG, "exactly"),
    ],
)
def test_request_leads_to_a_road_that_the_plan_explains(marker_fields: dict[str, Any], road: Road, why: str, table: str) -> None:
    read_plan = plan(table, **marker_fields)
    assert read_plan.road is road
    assert why in read_plan.why


def test_python_reads_what_sparks_reader_would_read_otherwise(tmp_path: Path) -> None:
    write_delta(str(tmp_path / "t"), pa.table({"id": [1]}), configuration={"delta.columnMapping.mode": "id"})
    read_plan = plan(str(tmp_path / "t"), columnar=True, native="where quicker")
    assert (read_plan.road, read_plan.skipped[Road.PARQUET]) == (Road.COLUMNS, "columns are found by their ids")


def test_python_reads_plain_numbers_in_small_row_groups(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limits, "PARQUET_SMALL_BYTES", 10)
    source = DeltaSource({"path": table})
    numbers = StructType([source.schema()["id"]])
    request = ScanRequest.parse(marked(numbers, native="where quicker", columnar=True))
    read_plan = plan_read(source._pin(), request)  # type: ignore[arg-type]
    assert (read_plan.road, read_plan.native) == (Road.COLUMNS, None)
    assert "Python is likely quicker" in read_plan.why
    monkeypatch.setattr(read_limits, "PARQUET_GROUP_ROWS", 10)
    assert plan_read(source._pin(), request).road is Road.PARQUET  # type: ignore[arg-type]


def test_unknown_log_answer_becomes_a_row_plan_or_none(table: str) -> None:
    texts = {**QUESTION, "maxima": ["s"]}
    refused = plan(table, question={**texts, "only": False}, columnar=True)
    assert refused.road is Road.COLUMNS
    assert "does not say it exactly" in refused.skipped[Road.LOG]
    only = plan(table, question={**texts, "only": True})
    assert (only.road, only.scan) == (None, None)


def test_answer_of_the_log_is_an_arrow_stream(table: str) -> None:
    message = plan(table, question={**QUESTION, "only": True}).message()
    answer = pa.ipc.open_stream(base64.b64decode(message["answer"])).read_all()
    assert [column.to_pylist() for column in answer.columns] == [[20], [109]]


def test_partial_rows_are_given_where_groups_are_few(table: str) -> None:
    read = json.loads(DeltaSource({"path": table}).schema().json())
    assert plan(table, partial={**PARTIAL, "read": read}).road is Road.PARTIAL
    far = {"name": "=", "children": [{"column": ["d"]}, {"type": "date", "value": 10_000_000}]}
    refused = plan(table, predicates=[far], partial={**PARTIAL, "read": read})
    assert refused.road is None
    assert "constant" in refused.skipped[Road.PARTIAL]


@pytest.mark.parametrize("disabled", ["log", "joins"])
def test_read_that_disables_a_road_does_not_take_it(disabled: str, table: str) -> None:
    read_plan = plan(table, {DISABLED: disabled}, question={**QUESTION, "only": False})
    assert (read_plan.road is Road.LOG) == (disabled == "joins")
    assert disabled == "joins" or read_plan.join_facts is not None
    assert plan(table, {DISABLED: "joins"}).join_facts is None


# ---------------------------------------------------------------- what sizes allow


def message_of(report: ScanReport, table: str) -> dict[str, Any]:
    read_plan = plan(table)
    assert read_plan.scan is not None
    return replace(read_plan, scan=replace(read_plan.scan, report=report)).message()


@pytest.mark.parametrize(
    ("size", "rows", "small", "partial_from"),
    [
        (4 << 20, 1_000_000, True, 64),
        ((4 << 20) + 1, 1, False, 64),
        (1, 1_000_001, False, 256 << 20),
        (1, None, False, 256 << 20),
        ((128 << 20) - 1, None, False, 3),
        (128 << 20, None, False, 0),
        (0, 0, True, None),
    ],
)
def test_sizes_say_what_small_queries_and_partial_rows_may_do(
    size: int, rows: int | None, small: bool, partial_from: int | None, table: str
) -> None:
    message = message_of(ScanReport(1, size, 1, size, rows), table)
    assert (message["small"], message.get("partial_from")) == (small, partial_from)
    assert (Road.ONE_TASK in message["skipped"] if "skipped" in message else False) is not small


@pytest.mark.parametrize(("limit", "why"), [("DRIVER_FILES", "2 files"), ("DRIVER_ROWS", "20 rows")])
def test_driver_leaves_what_is_not_few_to_tasks(limit: str, why: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(table).message()["driver"] == {"most_bytes": 4 << 20, "most_ms": 500}
    monkeypatch.setattr(read_limits, limit, 1)
    read_plan = plan(table)
    assert read_plan.small_scan is None
    assert why in read_plan.skipped[Road.DRIVER]


# ---------------------------------------------------------------- names


def test_names_are_the_same_in_python_java_and_the_schema() -> None:
    assert schema()["$defs"]["road"]["enum"] == [str(road) for road in Road]
    assert schema()["$defs"]["disabled"]["enum"] and set(schema()["$defs"]["disabled"]["enum"]) == OLDER_SETTINGS.keys()
    java = (JAVA / "rule" / "Switch.java").read_text()
    constants = dict(re.findall(r'static final String (\w+) = "([\w-]+)";', java))
    pairs = re.findall(r'new Named\(("?[\w-]+"?), "(\w+)"\)', java)
    named = {constants.get(name, name.strip('"')): f"spark.pydelta.{middle}.enabled" for name, middle in pairs}
    assert named == OLDER_SETTINGS


def test_java_holds_no_limit_of_sizes_that_decides() -> None:
    """The numbers are in read_limits.py, and come with the plan."""
    numbers_by_file = {
        str(file.relative_to(JAVA)): re.findall(r"\b(?:WORTH|MOST|MAX|LEAST)_\w+ = (?!\")[^;]+<<[^;]+;", file.read_text())
        for folder in ("rule", "scan", "messages", "aggregates", "joins", "parquet")
        for file in (JAVA / folder).glob("*.java")
    }
    assert {name: numbers for name, numbers in numbers_by_file.items() if numbers} == {}


def test_disabled_names_are_parsed_and_unknown_ones_refused() -> None:
    assert parse_disabled("") == frozenset()
    assert parse_disabled(" Log, one-task ") == {"log", "one-task"}
    with pytest.raises(InvalidOptionError, match=r"unknown name 'rows'.* log, driver, partial"):
        parse_disabled("log,rows")


def test_older_read_options_still_disable_and_warn_once(caplog: pytest.LogCaptureFixture) -> None:
    options = {"path": "/t", "logAnswers": "false", "joinPlanning": "true"}
    assert read_options(options).disabled == {Road.LOG, Road.DRIVER, Road.PARTIAL}
    caplog.clear()
    read_options(options)
    assert caplog.records == []
