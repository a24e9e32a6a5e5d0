"""Every command of the command line: what it does, its JSON in the form of docs/command-line.md, and how it exits."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from delta_py import DeltaTable, write_delta
from pydelta_cli.main import COMMANDS, app
from tests.support.pages import ROOT

PAGE = (ROOT / "docs" / "command-line.md").read_text()
HOSTILE = "[bold]x[/bold]\x1b[31m\u202e"

Rows = dict[str, list[Any]]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    configuration = {"delta.enableChangeDataFeed": "true"}
    write_delta(path, rows([1, 2, 3]), partition_by=["part"], configuration=configuration)
    write_delta(path, rows([10, 20]), mode="append")
    return path


def rows(ids: list[int]) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{id}" for id in ids], "part": ["a" if id % 2 else "b" for id in ids]})


def run(*arguments: str, code: int = 0, input: str | None = None) -> str:
    result = CliRunner().invoke(app, list(arguments), input=input)
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result.stdout


def answer(*arguments: str, code: int = 0) -> Any:
    return json.loads(run(*arguments, "--json", code=code))


def form_of(command: str) -> set[str]:
    """The names that the page's table of forms has for a command."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{command}` | `{{"))
    return set(re.findall(r"(\w+)", line.split("|")[2].strip(" `{}")))


def ids(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_arrow()["id"].to_pylist())


# ---------------------------------------------------------------- looking


def test_show(table: str) -> None:
    found = answer("show", table, "--filter", "id > 2", "--columns", "id, part", "--limit", "2")
    assert found.keys() == form_of("show") and found["columns"] == ["id", "part"] and len(found["rows"]) == 2
    assert answer("show", table, "--version", "0")["version"] == 0
    assert len(answer("show", table + "@v0")["rows"]) == 3
    text = run("show", table, "--filter", "id = 20")
    assert "n20" in text and "n10" not in text


def test_schema(table: str) -> None:
    found = answer("schema", table)
    assert found.keys() == form_of("schema") and found["partition_columns"] == ["part"]
    assert [(column["name"], column["type"]) for column in found["columns"]] == [
        ("id", "bigint"), ("name", "string"), ("part", "string")
    ]


def test_history_detail_features_streams(table: str) -> None:
    commits = answer("history", table, "--limit", "1")
    assert commits.keys() == form_of("history")
    assert [commit["version"] for commit in commits["commits"]] == [1]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", commits["commits"][0]["timestamp"])
    assert answer("history", table, "--limit", "1", "--tz", "Asia/Tokyo")["commits"][0]["timestamp"].endswith("+09:00")
    detail = answer("detail", table)
    assert detail["numFiles"] == 3 and detail["version"] == 1
    features = answer("features", table)
    assert features.keys() == form_of("features") and all(feature["can_write"] for feature in features["features"])
    assert answer("streams", table) == {"version": 1, "streams": []}


def test_files_says_why(table: str) -> None:
    found = answer("files", table, "--filter", "id > 15 AND part = 'b'")
    assert found.keys() == form_of("files")
    assert (found["files_total"], found["files_read"]) == (3, 1)
    reasons = {file["reason"] for file in found["files"]}
    assert {"statistics admit it", "partition values", "maximum"} >= reasons and len(reasons) >= 2
    plan = DeltaTable(table).scan(filter="id > 15 AND part = 'b'").paths()
    assert [file["path"] for file in found["files"] if file["is_read"]] == plan


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "arrow"])
def test_cat(table: str, format: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["cat", table, "--format", format, "--filter", "id < 3"])
    assert result.exit_code == 0
    data = result.stdout_bytes
    match format:
        case "csv":
            assert data.decode().splitlines()[0] == '"id","name","part"' and len(data.splitlines()) == 3
        case "json":
            assert sorted(json.loads(line)["id"] for line in data.splitlines()) == [1, 2]
        case "parquet":
            assert sorted(pq.read_table(pa.BufferReader(data))["id"].to_pylist()) == [1, 2]
        case "arrow":
            assert sorted(pa.ipc.open_stream(data).read_all()["id"].to_pylist()) == [1, 2]


def test_diff(table: str, tmp_path: Path) -> None:
    found = answer("diff", f"{table}@v0", table, code=1)
    assert found.keys() == form_of("diff") and found["differs"]
    assert found["rows"] == {"compared_by": "change feed", "inserted": 2, "deleted": 0, "updated": 0, "why_not": None}
    assert (found["a"]["rows"], found["b"]["rows"], found["columns"]) == (3, 5, [])
    assert not answer("diff", table, table)["differs"]
    other = str(tmp_path / "other")
    DeltaTable(table).clone(other)
    DeltaTable(other).update({"name": "'new'"}, predicate="id = 1")
    DeltaTable(other).delete("id = 2")
    by_key = answer("diff", table, other, "--key", "id", code=1)
    assert by_key["rows"] == {"compared_by": "key", "inserted": 0, "deleted": 1, "updated": 1, "why_not": None}
    assert answer("diff", table, other, code=1)["rows"]["compared_by"] == "nothing"
    assert "same values" in CliRunner().invoke(app, ["diff", table, other, "--key", "part"]).stderr
    run("set", other, "a.b=c")
    assert answer("diff", table, other, "--key", "id", code=1)["properties"] == [{"name": "a.b", "a": None, "b": "c"}]


# ---------------------------------------------------------------- changing


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_load(tmp_path: Path, suffix: str) -> None:
    file, path = tmp_path / f"rows.{suffix}", str(tmp_path / "new")
    match suffix:
        case "csv":
            file.write_text("id,name\n1,a\n2,\n")
        case "jsonl":
            file.write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": null}\n')
        case "parquet":
            pq.write_table(pa.table({"id": [1, 2], "name": ["a", None]}), file)
    if suffix == "jsonl" and not hasattr(__import__("pyarrow.json").json, "open_json"):
        assert "newer pyarrow" in CliRunner().invoke(app, ["load", path, str(file)]).stderr
        return
    assert answer("load", path, str(file)) == {"version": 0, "mode": "error"}
    assert DeltaTable(path).to_arrow().sort_by("id").to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert "[DELTA_PATH_EXISTS]" in CliRunner().invoke(app, ["load", path, str(file)]).stderr
    run("load", path, str(file), "--mode", "append")
    assert ids(path) == [1, 1, 2, 2]
    run("load", path, str(file), "--mode", "overwrite")
    assert ids(path) == [1, 2]


def test_maintenance_leaves_the_rows(table: str, tmp_path: Path) -> None:
    before = ids(table)
    assert answer("optimize", table)["metrics"]["numFilesRemoved"] == 2
    assert answer("zorder", table, "--by", "id")["metrics"]["numFilesAdded"] == 2
    assert answer("checkpoint", table) == {"version": 3, "files": 2}
    assert answer("restore", table, "--version", "0")["version"] == 4 and ids(table) == [1, 2, 3]
    run("restore", table, "--version", "3")
    looked = answer("vacuum", table, "--retention-hours", "200")
    assert looked.keys() == form_of("vacuum") and not looked["deleted"]
    assert answer("clone", table, str(tmp_path / "deep"))["shallow"] is False
    assert answer("clone", table, str(tmp_path / "flat"), "--shallow")["files"] == 2
    assert ids(table) == ids(str(tmp_path / "deep")) == ids(str(tmp_path / "flat")) == before


def test_vacuum_deletes_only_when_told(table: str) -> None:
    lost = Path(table) / "part=a" / "lost.parquet"
    lost.write_bytes(b"x")
    os.utime(lost, (0, 0))
    assert [file["path"] for file in answer("vacuum", table)["files"]] == ["part=a/lost.parquet"] and lost.exists()
    assert answer("vacuum", table, "--delete")["files_total"] == 1 and not lost.exists()


def test_convert(tmp_path: Path) -> None:
    for day in (1, 2):
        directory = tmp_path / "p" / f"day={day}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"id": [day]}), directory / "x.parquet")
    assert answer("convert", str(tmp_path / "p"), "--partitioned-by", "day int") == {"version": 0, "files": 2}
    assert answer("schema", str(tmp_path / "p"))["columns"][1]["type"] == "int"
    assert "is no NAME TYPE" in CliRunner().invoke(app, ["convert", str(tmp_path / "p"), "--partitioned-by", "day"]).stderr


def test_properties(table: str) -> None:
    assert answer("set", table, "a.b=c=d")["properties"]["a.b"] == "c=d"
    assert "a.b" not in answer("unset", table, "a.b")["properties"]
    run("unset", table, "a.b", code=3)
    run("unset", table, "a.b", "--if-exists")
    run("set", table, "nothing", code=2)


def test_fsck_exits_with_one_for_what_it_found(table: str) -> None:
    assert answer("fsck", table) == {"repaired": 0, "left": 0, "faults": []}
    Path(table, DeltaTable(table).files()["path"][0].as_py()).unlink()
    found = answer("fsck", table, code=1)
    assert found.keys() == form_of("fsck") and found["left"] == 1
    answer("fsck", table, "--repair", "--allow-data-loss")
    assert answer("fsck", table)["faults"] == []


def test_report_and_metrics(table: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("report", table, "-o", str(page))
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert answer("report", table)["identity"]["version"] == 1
    assert "pydelta_table_version" in run("metrics", table)
    run("report", table, code=2)


# ---------------------------------------------------------------- all commands


@pytest.mark.parametrize("command", [command.__name__.rstrip("_") for command in COMMANDS])
def test_command_has_help_and_a_line_on_the_page(command: str) -> None:
    text = run(command, "--help")
    assert "--json" in text and "--tz" in text
    assert f"| `{command}" in PAGE


READERS = ["show", "cat", "files", "checkpoint", "optimize", "diff"]


@pytest.mark.parametrize("command", [*READERS, "schema", "history", "detail", "streams", "features", "metrics"])
def test_table_that_is_not_there(command: str, tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    arguments = [command, path, path] if command == "diff" else [command, path]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3 and re.match(r"pydelta: \[DELTA_PATH_DOES_NOT_EXIST\] ", result.stderr), result
    assert "Traceback" not in result.stderr and result.stdout == ""
    assert "Traceback" in CliRunner().invoke(app, [*arguments, "--debug"]).stderr


@pytest.mark.parametrize("command", READERS)
def test_table_that_is_broken(command: str, table: str) -> None:
    (Path(table) / "_delta_log" / f"{1:020}.json").write_text('{"add": ')
    result = CliRunner().invoke(app, [command, table, table] if command == "diff" else [command, table])
    assert result.exit_code == 3 and re.match(r"pydelta: \[DELTA_\w+\] .*00001\.json", result.stderr), result
    assert answer("fsck", table, code=1)["faults"]


def test_what_tables_say_is_data(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = pa.table({"id": [1], "name": [HOSTILE]})
    write_delta(path, data, description=HOSTILE, configuration={"x.y": HOSTILE})
    for command in (["show"], ["detail"], ["history"], ["schema"], ["files"]):
        text = run(*command, path)
        assert "\x1b" not in text and "\u202e" not in text
        machine = run(*command, path, "--json")
        assert "\x1b" not in machine and "\u202e" not in machine and json.loads(machine)
    assert "[bold]x[/bold]\\x1b[31m\\u202e" in run("show", path)
    assert answer("show", path)["rows"][0]["name"] == HOSTILE


def test_store_options_reach_the_store(table: str) -> None:
    result = CliRunner().invoke(app, ["schema", table, "--option", "nosuch.option=1"])
    assert result.exit_code == 3 and "nosuch.option" in result.stderr
    run("schema", table, "--option", "nothing", code=2)
