"""The JSON answers as docs/command-line.schema.json defines them: every command, and every type of value."""

from __future__ import annotations

import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from delta_py import write_delta
from pydelta_cli.main import COMMANDS, app
from tests.support.documents.json_forms import FORMS, SCHEMA, faults

ARGUMENTS = {
    "cat": "TABLE --limit 1",
    "files": "TABLE --filter id=1",
    "diff": "TABLE@v0 TABLE",
    "load": "NEW ROWS",
    "zorder": "TABLE --by id",
    "restore": "TABLE --version 0",
    "convert": "FILES",
    "clone": "TABLE NEW",
    "set": "TABLE a.b=c",
    "unset": "TABLE a.b --if-exists",
}
LISTS = {
    "show": "rows", "schema": "columns", "history": "commits", "features": "features", "streams": "streams", "files": "files",
    "diff": "properties", "vacuum": "files", "fsck": "faults", "report": "advice",
}
NAMES = [command.__name__.rstrip("_") for command in COMMANDS if command.__name__ != "metrics"]


def stdout_of(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code in (0, 1), (result.stderr, result.exception)
    return result.stdout


@pytest.mark.parametrize("command", NAMES)
def test_answer_has_its_form(command: str, tmp_path: Path) -> None:
    table, rows = str(tmp_path / "table"), pa.table({"id": [1, 2], "part": ["a", None]})
    for number in range(2):
        write_delta(table, rows, mode="append", partition_by=["part"], txn_app_id="loader", txn_version=number)
    (tmp_path / "files").mkdir()
    pq.write_table(rows, tmp_path / "files" / "rows.parquet")
    (tmp_path / "rows.csv").write_text("id\n1\n")
    (tmp_path / "table" / "lost.parquet").write_bytes(b"x")
    os.utime(tmp_path / "table" / "lost.parquet", (0, 0))
    stdout_of("set", table, "x.y=z")
    if command == "fsck":
        next((tmp_path / "table" / "part=a").glob("*.parquet")).unlink()
    places = {"TABLE": table, "NEW": str(tmp_path / "new"), "ROWS": str(tmp_path / "rows.csv"), "FILES": str(tmp_path / "files")}
    words = ARGUMENTS.get(command, "TABLE")
    for word, place in places.items():
        words = words.replace(word, place)
    answer = json.loads(stdout_of(command, *words.split(), "--json"))
    assert faults(answer, FORMS[command]) == []
    assert command not in LISTS or answer[LISTS[command]], "a list without elements shows no form"


# ---------------------------------------------------------------- values

DAY, TIME = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 10, 0, 0, 5)
NESTED = pa.struct([("n", pa.decimal128(4, 2)), ("l", pa.list_(pa.date32()))])
VALUES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "tinyint": (pa.int8(), [-128, 127], [-128, 127]),
    "smallint": (pa.int16(), [-32768, 32767], [-32768, 32767]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), [1.5, float("nan")], [1.5, "NaN"]),
    "double": (pa.float64(), [float("inf"), -float("inf")], ["Infinity", "-Infinity"]),
    "decimal(4,2)": (pa.decimal128(4, 2), [Decimal("1.50"), Decimal("-0.05")], ["1.50", "-0.05"]),
    "decimal(38,0)": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(0)], ["9" * 38, "0"]),
    "boolean": (pa.bool_(), [True, False], [True, False]),
    "string": (pa.string(), ["", "é\x1b\u202e"], ["", "é\x1b\u202e"]),
    "binary": (pa.binary(), [b"", b"\x00\xff"], ["", "AP8="]),
    "date": (pa.date32(), [DAY, dt.date(1, 1, 1)], ["2024-01-31", "0001-01-01"]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [TIME, dt.datetime(1880, 1, 1)],
        ["2024-01-31T19:00:00.000005+09:00", "1880-01-01T09:18:59.000000+09:18:59"],
    ),
    "timestamp_ntz": (pa.timestamp("us"), [TIME, TIME], ["2024-01-31T10:00:00.000005"] * 2),
    "array<double>": (pa.list_(pa.float64()), [[], [1.0, None, float("nan")]], [[], [1.0, None, "NaN"]]),
    "struct<n:decimal(4,2),l:array<date>>": (
        NESTED,
        [{"n": Decimal("1.5"), "l": [DAY]}, {"n": None, "l": None}],
        [{"n": "1.50", "l": ["2024-01-31"]}, {"n": None, "l": None}],
    ),
    "map<string,binary>": (pa.map_(pa.string(), pa.binary()), [[("k", b"x")], []], [{"k": "eA=="}, {}]),
    "map<int,date>": (
        pa.map_(pa.int32(), pa.date32()),
        [[(1, DAY), (2, None)], []],
        [[{"key": 1, "value": "2024-01-31"}, {"key": 2, "value": None}], []],
    ),
}


@pytest.mark.parametrize("sql_type", VALUES)
def test_value_is_pinned_by_its_type(sql_type: str, tmp_path: Path) -> None:
    kind, values, expected = VALUES[sql_type]
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"v": pa.array([*values, None], kind)}))
    assert json.loads(stdout_of("schema", path, "--json"))["columns"][0]["type"] == sql_type
    rows = json.loads(stdout_of("show", path, "--json", "--tz", "Asia/Tokyo"))["rows"]
    lines = [json.loads(line) for line in stdout_of("cat", path, "--json", "--tz", "Asia/Tokyo").splitlines()]
    assert [repr(row) for row in rows] == [repr({"v": value}) for value in (*expected, None)] == [repr(line) for line in lines]
    form = FORMS[sql_type.partition("<")[0].partition("(")[0]]
    assert [fault for row in rows for fault in faults(row["v"], form)] == []


# ---------------------------------------------------------------- the schema itself


def forms_in(form: Any) -> list[dict[str, Any]]:
    if isinstance(form, list):
        return [nested for one in form for nested in forms_in(one)]
    if not isinstance(form, dict):
        return []
    return [form, *(nested for one in form.values() for nested in forms_in(one))]


def test_every_name_of_a_form_is_in_every_answer() -> None:
    objects = [form for form in forms_in(FORMS) if form.get("type") == "object" and "properties" in form]
    assert len(objects) > 40 and all(form.get("required") == list(form["properties"]) for form in objects)


def test_every_reference_of_a_form_is_there() -> None:
    referred = {form["$ref"].removeprefix("#/$defs/") for form in forms_in(SCHEMA) if isinstance(form.get("$ref"), str)}
    assert {"row", "optimize_metrics", "unknown"} < referred <= FORMS.keys()


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ({"version": 1}, "checkpoint"),
        ({"version": 1, "files": 2, "more": 3}, "checkpoint"),
        ({"version": True, "files": 2}, "checkpoint"),
        ({"version": 1.0, "files": 2}, "checkpoint"),
        ({"version": 1, "mode": "none"}, "load"),
        ({"version": 1, "properties": {"a": None}}, "set"),
        (128, "tinyint"),
        ("1.", "decimal"),
        ("2024-01-31T10:00:00.000000", "timestamp"),
        ("2024-01-31T10:00:00.000000+00:00", "timestamp_ntz"),
        ("nan", "double"),
        ("A", "binary"),
    ],
)
def test_answer_in_another_form_is_a_fault(answer: Any, form: str) -> None:
    assert faults(answer, FORMS[form]) != []
