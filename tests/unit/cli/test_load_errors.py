"""Values that `pydelta load` cannot read: the error names the record of a CSV file, and the line of a JSON file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from delta_py import DeltaTable, write_delta
from pydelta_cli.main import app

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("raw", pa.binary()), ("name", pa.string())])


def error_of(tmp_path: Path, suffix: str, text: bytes) -> str:
    path, file = str(tmp_path / "t"), tmp_path / f"rows.{suffix}"
    write_delta(path, SCHEMA.empty_table())
    file.write_bytes(text)
    result = CliRunner().invoke(app, ["load", path, str(file), "--mode", "append"])
    assert result.exit_code == 3 and DeltaTable(path).version == 0, result
    assert str(file) in result.stderr, result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("text", "record", "word"),
    [
        ("id,name\n1,a\nx,b\n", 3, "column id"),
        ("id,name\n1,a\n\n2,b\nx,c\n", 4, "column id"),  # an empty line is no record
        ("id,name\n1,a\n2,b,c\n", 3, "Expected 2 columns, got 3"),
        ("id,at\n1,2024-01-31\n2,2024-01-31\n3,yesterday\n4,never\n", 4, "yesterday"),
        ("id,raw\n1,eA==\n2,!\n", 3, "base64"),
        ('id,name,at\n1,"a\nb",2024-01-31\n2,c,never\n', 3, "never"),
    ],
)
def test_load_of_csv_names_the_record_of_a_bad_value(tmp_path: Path, text: str, record: int, word: str) -> None:
    error = error_of(tmp_path, "csv", text.encode())
    assert f"record {record} (the header is record 1)" in error and word in error and "Row #" not in error


def test_load_of_csv_names_the_record_of_text_that_is_not_utf_8(tmp_path: Path) -> None:
    error = error_of(tmp_path, "csv", "id,name\n1,a\n2,é\n".encode("latin-1"))
    assert "record 3 (the header is record 1), column name" in error and "UTF8" in error


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ('{"id": 1}\n{"id": "x"}\n{"id": "y"}\n', 2, "number to string"),
        ('{"id": 1}\n\n{"id": 2}\n{"id": \n', 4, "Invalid value"),
        ('{"id": 1}\n{"id": 99999999999999999999}\n', 2, "99999999999999999999"),
        ('{"at": "2024-01-31"}\n{"at": "2024-01-31"}\n{"at": "never"}\n', 3, "never"),
        ('{"raw": "eA=="} {"raw": "!"}\n{"raw": "?"}\n', 1, "base64"),
    ],
)
def test_load_of_json_names_the_line_of_a_bad_value(tmp_path: Path, text: str, line: int, word: str) -> None:
    error = error_of(tmp_path, "jsonl", text.encode())
    assert f"line {line}: " in error and word in error and " in row " not in error


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_load_names_the_place_in_a_later_block(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("row_input", "json_lines"):
        monkeypatch.setattr(f"pydelta_cli.formats.{module}.BLOCK_BYTES", 256)
    if suffix == "csv":
        lines = ["id,at", *(f"{number},2024-01-31" for number in range(300)), "300,never"]
        assert "record 302 (the header" in error_of(tmp_path, suffix, "\n".join(lines).encode())
    else:
        lines = [*(f'{{"id": {number}, "at": "2024-01-31"}}' for number in range(300)), '{"id": 300, "at": "never"}']
        assert "line 301: " in error_of(tmp_path, suffix, "\n".join(lines).encode())
