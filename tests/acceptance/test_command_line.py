"""The commands that only read, on the tables of the Delta projects: each answers in its form, or refuses with a condition."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError
from pydelta_cli.main import app
from tests.support.documents.json_forms import FORMS, faults
from tests.support.runs.sampling import sampled
from tests.support.tables.corpus import case_names, load_case

LOOKS = ["schema", "history", "detail", "features", "streams", "files", "vacuum", "fsck", "show"]
SQL_NAME = re.compile(r"\w+")
ROWS_COMPARED = 10_000
OPENS = {"schema", "features"}  # for these commands the test only opens the table


def looked(command: str, *arguments: str) -> Any:
    """The answer; None for an error about the table."""
    result = CliRunner().invoke(app, [command, *arguments, "--json"])
    if result.exit_code == 3:
        assert re.match(r"(pydelta: WARNING.*\n)*pydelta: \[[A-Z_.]+\] ", result.stderr), result.stderr
        return None
    assert result.exit_code in ((0, 1) if command in ("fsck", "diff") else (0,)), (result.stderr, result.exception)
    answer = json.loads(result.stdout)
    assert faults(answer, FORMS[command]) == []
    return answer


def rows_of(table: DeltaTable) -> pa.Table | None:
    try:
        return table.to_arrow()
    except DeltaError:
        return None


@pytest.mark.parametrize("name", sampled(case_names(), 12))
def test_table_is_looked_at(name: str, corpus: Path) -> None:
    path = load_case(corpus, name).table
    answers = {command: looked(command, path) for command in LOOKS}
    lines = CliRunner().invoke(app, ["cat", path, "--format", "json"])
    csv = CliRunner().invoke(app, ["cat", path, "--format", "csv"])
    try:
        table = DeltaTable(path)
    except DeltaError:
        assert answers["schema"] is None and answers["show"] is None and lines.exit_code == csv.exit_code == 3
        return
    assert all(answers[command]["version"] == table.version for command in OPENS)
    rows = rows_of(table)
    if rows is None:
        assert lines.exit_code == 3 and "pydelta: [" in lines.stderr
        return
    assert lines.exit_code == csv.exit_code == 0, (lines.stderr, csv.stderr)
    assert len(lines.stdout.splitlines()) == rows.num_rows
    assert [list(json.loads(line)) for line in lines.stdout.splitlines()[:1]] == [rows.schema.names][: rows.num_rows]
    assert len(answers["show"]["rows"]) == min(20, rows.num_rows)
    forms = {column["name"]: FORMS[SQL_NAME.match(column["type"])[0]] for column in answers["schema"]["columns"]}
    assert [fault for row in answers["show"]["rows"] for name, value in row.items() for fault in faults(value, forms[name])] == []
    assert answers["files"]["files_total"] == table.files().num_rows == answers["detail"]["numFiles"]
    same = looked("diff", path, path)
    assert same["differs"] is False and same["a"]["rows"] == rows.num_rows


def comparable(value: Any) -> Any:
    """As text in which NaN equals itself, and -0.0 differs from 0.0."""
    if isinstance(value, dict):
        return {name: comparable(inner) for name, inner in value.items()}
    return [comparable(inner) for inner in value] if isinstance(value, list | tuple) else repr(value)


def sorted_rows(table: pa.Table) -> list[str]:
    """Only some rows of a large table, evenly spread over its order: Python needs long for each row."""
    if table.num_rows > 2 * ROWS_COMPARED:
        ordered = table.sort_by([(name, "ascending") for name in table.column_names])
        table = ordered.take(list(range(0, table.num_rows, table.num_rows // ROWS_COMPARED)))
    return sorted(str(comparable(row)) for row in table.to_pylist())


@pytest.mark.parametrize("name", sampled(case_names(), 12))
def test_rows_of_cat_are_loaded_as_they_were(name: str, corpus: Path, tmp_path: Path) -> None:
    path, copy = load_case(corpus, name).table, str(tmp_path / "copy")
    try:
        rows = DeltaTable(path).to_arrow()
        write_delta(copy, rows.schema.empty_table())
    except DeltaError:
        return  # tables that cannot be read, and types that Arrow's data does not show
    formats = ["json"] if any(pa.types.is_nested(field.type) for field in rows.schema) else ["json", "csv"]
    for format in formats:
        file = tmp_path / f"rows.{format}"
        file.write_bytes(CliRunner().invoke(app, ["cat", path, "--format", format]).stdout_bytes)
        outcome = CliRunner().invoke(app, ["load", copy, str(file), "--mode", "overwrite"])
        assert outcome.exit_code == 0, outcome.stderr
        loaded = DeltaTable(copy).to_arrow()
        assert (loaded.num_rows, sorted_rows(loaded)) == (rows.num_rows, sorted_rows(rows))
