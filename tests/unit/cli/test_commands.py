"""Every command of the command line: its effect, its JSON in the form of docs/command-line.md, and its exit status."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter_columns import NewColumn
from delta_py.types.schema import STRING
from pydelta_cli.formats.row_input import _Source
from pydelta_cli.formats.text_tables import Column
from pydelta_cli.formats.values import json_values
from pydelta_cli.main import COMMANDS, app
from pydelta_cli.run import Run
from tests.support.documents.json_forms import FORMS, faults
from tests.support.documents.pages import ROOT
from tests.support.tables.flipped_bits import flipped
from tests.unit.report.test_metrics import scraped

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
    result = json.loads(run(*arguments, "--json", code=code))
    assert faults(result, FORMS[arguments[0]]) == []
    return result


def form_of(command: str) -> set[str]:
    """The names that the page's table of forms has for a command."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{command}` | `{{"))
    return set(re.findall(r"(\w+)", line.split("|")[2].strip(" `{}")))


def ids(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_arrow()["id"].to_pylist())


# ---------------------------------------------------------------- looking


def test_show(table: str) -> None:
    result = answer("show", table, "--filter", "id > 2", "--columns", "id, part", "--limit", "2")
    assert result.keys() == form_of("show") and result["columns"] == ["id", "part"] and len(result["rows"]) == 2
    assert answer("show", table, "--version", "0")["version"] == 0
    assert len(answer("show", table + "@v0")["rows"]) == 3
    text = run("show", table, "--filter", "id = 20")
    assert "n20" in text and "n10" not in text


def test_schema(table: str) -> None:
    result = answer("schema", table)
    assert result.keys() == form_of("schema") and result["partition_columns"] == ["part"]
    assert [(column["name"], column["type"]) for column in result["columns"]] == [
        ("id", "bigint"),
        ("name", "string"),
        ("part", "string"),
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
    result = answer("files", table, "--filter", "id > 15 AND part = 'b'")
    assert result.keys() == form_of("files")
    assert (result["files_total"], result["files_read"]) == (3, 1)
    reasons = {file["reason"] for file in result["files"]}
    assert {"statistics admit it", "partition values", "maximum"} >= reasons and len(reasons) >= 2
    plan = DeltaTable(table).scan(filter="id > 15 AND part = 'b'").paths()
    assert [file["path"] for file in result["files"] if file["is_read"]] == plan


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "arrow"])
def test_cat(table: str, format: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["cat", table, "--format", format, "--filter", "id < 3"])
    assert result.exit_code == 0
    data = result.stdout_bytes
    match format:
        case "csv":
            assert data.decode().splitlines()[0] == "id,name,part" and len(data.splitlines()) == 3
        case "json":
            assert sorted(json.loads(line)["id"] for line in data.splitlines()) == [1, 2]
        case "parquet":
            assert sorted(pq.read_table(pa.BufferReader(data))["id"].to_pylist()) == [1, 2]
        case "arrow":
            assert sorted(pa.ipc.open_stream(data).read_all()["id"].to_pylist()) == [1, 2]


def test_diff(table: str, tmp_path: Path) -> None:
    result = answer("diff", f"{table}@v0", table, code=1)
    assert result.keys() == form_of("diff") and result["differs"]
    assert result["rows"] == {"compared_by": "change feed", "inserted": 2, "deleted": 0, "updated": 0, "why_not": None}
    assert (result["a"]["rows"], result["b"]["rows"], result["columns"]) == (3, 5, [])
    assert not answer("diff", table, table)["differs"]
    other = str(tmp_path / "other")
    DeltaTable(table).clone(other)
    DeltaTable(other).update({"name": "'new'"}, predicate="id = 1")
    DeltaTable(other).delete("id = 2")
    by_key = answer("diff", table, other, "--key", "id", code=1)
    assert by_key["rows"] == {"compared_by": "key", "inserted": 0, "deleted": 1, "updated": 1, "why_not": None}
    assert answer("diff", table, other, code=1)["rows"]["compared_by"] == "nothing"
    assert not answer("diff", table, table)["differs"]
    assert "same values" in CliRunner().invoke(app, ["diff", table, other, "--key", "part"]).stderr
    run("set", other, "a.b=c")
    assert answer("diff", table, other, "--key", "id", code=1)["properties"] == [{"name": "a.b", "a": None, "b": "c"}]


def test_diff_without_a_change_feed_compares_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    write_delta(path, rows([1, 2]))
    table = DeltaTable(path)
    table.update({"name": "'new'"}, predicate="id = 1")
    run("restore", path, "--version", "0")
    DeltaTable(path).checkpoint()
    for one, other in ((0, 1), (1, 0)):
        updated = answer("diff", f"{path}@v{one}", f"{path}@v{other}", code=1)["rows"]
        assert updated == {"compared_by": "rows of files", "inserted": 1, "deleted": 1, "updated": 0, "why_not": None}
    monkeypatch.setattr("pydelta_cli.row_compare._COMPARED_BYTES", 10)
    unknown = answer("diff", f"{path}@v0", f"{path}@v1", code=4)
    assert unknown["differs"] is None and unknown["rows"]["compared_by"] == "nothing"
    assert "1 file of a and 2 of b" in unknown["rows"]["why_not"]
    assert "--key" in unknown["rows"]["why_not"]
    same = answer("diff", f"{path}@v0", f"{path}@v2")
    assert same["differs"] is False
    assert same["rows"] == {"compared_by": "files", "inserted": 0, "deleted": 0, "updated": 0, "why_not": None}
    assert answer("diff", f"{path}@v0", f"{path}@v1", "--key", "id", code=1)["rows"]["updated"] == 1


def test_diff_tells_deletion_vectors_apart(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, rows([1, 2]), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(path).delete("id = 1")
    run("restore", path, "--version", "0")
    DeltaTable(path).delete("id = 2")
    assert len({tuple(DeltaTable(f"{path}@v{version}").files()["path"].to_pylist()) for version in (1, 3)}) == 1
    vectors = answer("diff", f"{path}@v1", f"{path}@v3", code=1)["rows"]
    assert vectors == {"compared_by": "rows of files", "inserted": 1, "deleted": 1, "updated": 0, "why_not": None}
    assert answer("diff", f"{path}@v0", f"{path}@v2")["differs"] is False


@pytest.mark.parametrize("feed", ["true", "false"])
def test_diff_of_versions_between_which_rows_were_only_moved(tmp_path: Path, feed: str) -> None:
    path = str(tmp_path / "t")
    for id in (1, 2, 3):
        write_delta(path, rows([id, id]), mode="append", configuration={"delta.enableChangeDataFeed": feed} if id == 1 else None)
    run("optimize", path)
    run("zorder", path, "--by", "id")
    for one, other in ((2, 4), (4, 2), (3, 4)):
        difference = answer("diff", f"{path}@v{one}", f"{path}@v{other}")
        assert difference["differs"] is False and difference["rows"]["compared_by"] == "commits"
    assert answer("diff", f"{path}@v1", path, code=1)["rows"]["inserted"] == 2
    run("checkpoint", path)
    (Path(path) / "_delta_log" / f"{3:020}.json").unlink()
    lost = answer("diff", f"{path}@v2", path)
    assert lost["differs"] is False and lost["rows"]["compared_by"] == "rows of files"


@pytest.mark.parametrize("feed", ["true", "false"])
def test_diff_does_not_trust_the_log_for_a_readded_column(tmp_path: Path, feed: str) -> None:
    path = str(tmp_path / "t")
    configuration = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": feed}
    for id in (1, 2):
        write_delta(path, rows([id]), mode="append", configuration=configuration if id == 1 else None)
    DeltaTable(path).alter.drop_columns(["name"])
    DeltaTable(path).alter.add_columns([NewColumn("name", STRING)])
    run("optimize", path)
    for other in (3, 4):
        for pair in ((f"{path}@v1", f"{path}@v{other}"), (f"{path}@v{other}", f"{path}@v1")):
            unknown = answer("diff", *pair, code=1)["rows"]
            assert (unknown["compared_by"], unknown["updated"]) == ("nothing", None) and "values: name." in unknown["why_not"]
            assert answer("diff", *pair, "--key", "id", code=1)["rows"]["updated"] == 2
    # If both have the same columns, files and commits are proof.
    assert answer("diff", f"{path}@v1", f"{path}@v2", code=1)["rows"]["compared_by"] == "files"
    assert answer("diff", f"{path}@v2", f"{path}@v4", code=1)["rows"]["compared_by"] == "commits"
    # Commits are no proof if a column was another one between two versions with the same columns.
    log = Path(path) / "_delta_log"
    first = next(line for line in (log / f"{0:020}.json").read_text().splitlines() if '"metaData"' in line)
    (log / f"{5:020}.json").write_text(first + "\n")
    result = answer("diff", path, f"{path}@v1", code=1)["rows"]
    assert (result["compared_by"], result["inserted"], result["deleted"]) == ("rows of files", 2, 2)


def test_diff_counts_rows_that_are_there_twice(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    nulls = pa.table({"id": pa.array([1, None, None], pa.int64()), "m": [{"a": 1.5}, None, None]})
    write_delta(path, nulls)
    write_delta(path, nulls.slice(1), mode="overwrite")
    write_delta(path, pa.concat_tables([nulls, nulls.slice(0, 1)]), mode="overwrite")
    for one, other, inserted, deleted in ((0, 1, 0, 1), (1, 0, 1, 0), (0, 2, 1, 0), (1, 2, 2, 0)):
        result = answer("diff", f"{path}@v{one}", f"{path}@v{other}", code=1)["rows"]
        assert (result["inserted"], result["deleted"]) == (inserted, deleted)


def test_diff_takes_keys_and_columns_whatever_the_case(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    write_delta(a, pa.table({"id": [1, 2], "Name": ["x", "y"], "part": [0, 0]}))
    write_delta(b, pa.table({"ID": [2, 3], "name": ["changed", "z"], "part": [0, 0]}))
    for key in ("ID", "id", "Id,PART"):
        rows_result = answer("diff", a, b, "--key", key, code=1)["rows"]
        assert (rows_result["inserted"], rows_result["deleted"], rows_result["updated"]) == (1, 1, 1)
    result = CliRunner().invoke(app, ["diff", a, b, "--key", "id,nope"])
    assert result.exit_code == 3 and "[DELTA_COLUMN_NOT_FOUND_IN_SCHEMA]" in result.stderr and "nope" in result.stderr
    write_delta(str(tmp_path / "c"), pa.table({"id": [1]}))
    result = CliRunner().invoke(app, ["diff", a, str(tmp_path / "c"), "--key", "name"])
    assert result.exit_code == 3 and f"{tmp_path}/c" in result.stderr, result


def test_diff_of_two_tables_that_nothing_compared_is_not_decided(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    for path, id in zip(paths, (1, 2), strict=True):
        write_delta(path, rows([id]))
    assert answer("diff", *paths, code=4)["differs"] is None
    assert "It is not known whether a and b differ.\n" in run("diff", *paths, "--text", code=4)


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
    assert answer("load", path, str(file)) == {"version": 0, "mode": "error", "rows": 2}
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


def test_restore_leaves_missing_files_out_only_when_told(table: str) -> None:
    missing_path = DeltaTable(table, version=0).files()["path"].to_pylist()[0]
    DeltaTable(table).delete()
    (Path(table) / missing_path).unlink()
    assert "[DELTA_FILE_NOT_FOUND_DETAILED]" in CliRunner().invoke(app, ["restore", table, "--version", "0"]).stderr
    metrics = answer("restore", table, "--version", "0", "--ignore-missing-files")["metrics"]
    assert metrics["numMissingFiles"] == 1 and len(ids(table)) < 3


def test_vacuum_deletes_only_when_told(table: str) -> None:
    lost = Path(table) / "part=a" / "lost.parquet"
    lost.write_bytes(b"x")
    os.utime(lost, (0, 0))
    assert [file["path"] for file in answer("vacuum", table)["files"]] == ["part=a/lost.parquet"] and lost.exists()
    assert answer("vacuum", table, "--delete")["files_total"] == 1 and not lost.exists()


def test_load_of_nanoseconds_names_the_truncating_option(tmp_path: Path) -> None:
    file, path = tmp_path / "rows.csv", str(tmp_path / "t")
    file.write_text("at\n2024-01-01 00:00:00.123456789\n")
    result = CliRunner().invoke(app, ["load", path, str(file)])
    assert "2024-01-01 00:00:00.123456789" in result.stderr and "--truncate-nanoseconds" in result.stderr
    run("load", path, str(file), "--truncate-nanoseconds")
    assert run("cat", path).splitlines()[1].endswith("00:00:00.123456")


@pytest.mark.parametrize(("hours", "interval"), [("24", "24 hours"), ("0.51", "30 minutes"), ("0", "0 hours")])
def test_vacuum_of_short_retention_suggests_a_cli_command(table: str, hours: str, interval: str) -> None:
    result = CliRunner().invoke(app, ["vacuum", table, "--retention-hours", hours])
    assert result.exit_code == 3 and "[DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT]" in result.stderr
    assert f"--retention-hours {hours} is shorter than the 168 hours" in result.stderr and "spark" not in result.stderr
    assert "enforce_retention" not in result.stderr
    setting = re.search(r"pydelta set PATH (\S+)='(.*)'\.", result.stderr)
    assert setting is not None and setting[2] == f"interval {interval}"
    run("set", table, f"{setting[1]}={setting[2]}")
    assert answer("vacuum", table, "--retention-hours", hours)["files_total"] == 0


def test_convert(tmp_path: Path) -> None:
    for day in (1, 2):
        directory = tmp_path / "p" / f"day={day}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"id": [day]}), directory / "x.parquet")
    assert answer("convert", str(tmp_path / "p"), "--partitioned-by", "day int") == {"version": 0, "files": 2}
    assert answer("schema", str(tmp_path / "p"))["columns"][1]["type"] == "int"
    (tmp_path / "q" / "price=1.50").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "q" / "price=1.50" / "x.parquet")
    answer("convert", str(tmp_path / "q"), "--partitioned-by", "`price` decimal(10, 2)")
    assert answer("schema", str(tmp_path / "q"))["columns"][1]["type"] == "decimal(10,2)"
    assert "is no NAME TYPE" in CliRunner().invoke(app, ["convert", str(tmp_path / "p"), "--partitioned-by", "day"]).stderr


def test_properties(table: str) -> None:
    assert answer("set", table, "a.b=c=d")["properties"]["a.b"] == "c=d"
    assert "a.b" not in answer("unset", table, "a.b")["properties"]
    run("unset", table, "a.b", code=3)
    run("set", table, "owner.team=sales")
    assert "Did you mean owner.team?" in CliRunner().invoke(app, ["unset", table, "owner.teem"]).stderr
    assert "Did you mean" not in CliRunner().invoke(app, ["unset", table, "nothing.like"]).stderr
    assert "Did you mean delta.appendOnly?" in CliRunner().invoke(app, ["set", table, "delta.appendOnli=true"]).stderr
    run("unset", table, "a.b", "--if-exists")
    run("set", table, "nothing", code=2)


def test_fsck_exits_with_one_for_what_it_found(table: str) -> None:
    assert answer("fsck", table) == {"repaired": 0, "left": 0, "faults": []}
    Path(table, DeltaTable(table).files()["path"][0].as_py()).unlink()
    result = answer("fsck", table, code=1)
    assert result.keys() == form_of("fsck") and result["left"] == 1
    answer("fsck", table, "--repair", "--allow-data-loss")
    assert answer("fsck", table)["faults"] == []


def test_flipped_bit_is_an_error_where_checksums_are_verified(tmp_path: Path) -> None:
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    for place in (path, copy):
        write_delta(place, pa.table({"id": [1000, 2001]}), compression="uncompressed")
    (file,) = Path(path).glob("*.parquet")
    commands = (["show", path], ["cat", path], ["diff", path, copy, "--key", "id"])
    for command in commands[:2]:
        run(*command, "--verify-checksums")
    run(*commands[2], "--verify-checksums")
    with flipped(file, file.read_bytes().index((2001).to_bytes(8, "little"))):
        assert "2001" not in run("cat", path)
        run(*commands[2], code=1)
        for command in commands:
            result = CliRunner().invoke(app, [*command, "--verify-checksums"])
            assert result.exit_code == 3 and file.name in result.stderr
        assert answer("fsck", path)["faults"] == []
        (fault,) = answer("fsck", path, "--data", "--repair", "--allow-data-loss", code=1)["faults"]
        assert (fault["path"], fault["can_repair"]) == (file.name, False)
    assert answer("fsck", path, "--data")["faults"] == []


def test_report_and_metrics(table: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("report", table, "-o", str(page))
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert answer("report", table)["identity"]["version"] == 1
    assert "pydelta_table_version" in run("metrics", table)
    assert re.search(r"^rows +5$", run("report", table, "--text"), re.MULTILINE)


# ---------------------------------------------------------------- values of files that are loaded


LOADED = pa.schema(
    [
        ("Code", pa.string()),
        ("At", pa.timestamp("us", "UTC")),
        ("Clock", pa.timestamp("us")),
        ("Day", pa.date32()),
        ("Bytes", pa.binary()),
    ]
)
IN_TOKYO = {
    "Code": "007",
    "At": datetime(2024, 1, 31, 1, tzinfo=UTC),
    "Clock": datetime(2024, 1, 31, 10),
    "Day": date(2024, 1, 31),
    "Bytes": b"hi\xff",
}


def loaded(path: str, file: Path, text: str, *options: str, code: int = 0) -> str:
    file.write_text(text)
    result = CliRunner().invoke(app, ["load", path, str(file), "--mode", "append", *options])
    assert result.exit_code == code, (result.stderr, result.exception)
    return result.stderr


@pytest.mark.parametrize("offset", ["", "+09:00"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_load_uses_table_types_and_ignores_the_case_of_names(tmp_path: Path, suffix: str, offset: str) -> None:
    path, file = str(tmp_path / "t"), tmp_path / f"rows.{suffix}"
    write_delta(path, LOADED.empty_table())
    values = {
        "code": "007", "AT": f"2024-01-31T10:00:00{offset}", "clock": "2024-01-31T10:00:00", "day": "2024-01-31", "bytes": "aGn/"
    }
    csv = f"{','.join(values)}\n{','.join(values.values())}\n"
    loaded(path, file, csv if suffix == "csv" else json.dumps(values) + "\n", "--tz", "Asia/Tokyo")
    assert DeltaTable(path).to_arrow().to_pylist() == [IN_TOKYO]


def test_load_of_nested_json_takes_the_types_of_the_table(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    inner = pa.struct(list(LOADED))
    schema = pa.schema([("S", inner), ("L", pa.list_(inner)), ("M", pa.map_(pa.int64(), pa.timestamp("us", "UTC")))])
    write_delta(path, schema.empty_table())
    values = {"code": "007", "at": "2024-01-31 10:00", "clock": "2024-01-31T10:00:00", "DAY": "2024-01-31", "bytes": "aGn/"}
    lines = [
        {"s": values, "l": [values, None, {"code": "x"}], "m": [{"key": 7, "value": values["at"]}, {"key": 8}]},
        {"s": None, "l": None},
        {"l": [], "m": []},
    ]
    loaded(path, tmp_path / "rows.json", "\n".join(map(json.dumps, lines)), "--tz", "Asia/Tokyo")
    other = dict.fromkeys(LOADED.names) | {"Code": "x"}
    assert DeltaTable(path).to_arrow().to_pylist() == [
        {"S": IN_TOKYO, "L": [IN_TOKYO, None, other], "M": [(7, IN_TOKYO["At"]), (8, None)]},
        {"S": None, "L": None, "M": None},
        {"S": None, "L": [], "M": []},
    ]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("name", "value"), [("bytes", "no base64"), ("at", "yesterday"), ("day", "2024-02-30"), ("clock", "2024-01-31T10:00:00Z")]
)
def test_load_of_an_invalid_value_writes_nothing(tmp_path: Path, suffix: str, name: str, value: str) -> None:
    path = str(tmp_path / "t")
    write_delta(path, LOADED.empty_table())
    text = f"code,{name}\na,{value}\n" if suffix == "csv" else json.dumps({"code": "a", name: value})
    error = loaded(path, tmp_path / f"rows.{suffix}", text, code=3)
    assert "[DELTA_" in error and name in error and value in error and DeltaTable(path).version == 0


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_load_from_standard_input_takes_the_types_of_the_table(tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / "t")
    write_delta(path, LOADED.empty_table())
    text = "code\n007\n" if suffix == "csv" else '{"code": "007"}\n'
    run("load", path, "-", "--format", suffix.removesuffix("l"), "--mode", "append", input=text)
    assert DeltaTable(path).to_arrow()["Code"].to_pylist() == ["007"]


MAPS = pa.schema(
    [
        ("T", pa.map_(pa.string(), pa.struct([("N", pa.float64()), ("D", pa.decimal128(38, 2))]))),
        ("I", pa.map_(pa.int64(), pa.float64())),
        ("B", pa.map_(pa.bool_(), pa.date32())),
        ("F", pa.list_(pa.float32())),
    ]
)
DIGITS = "123456789012345678901234567890123456.78"


def test_load_reads_maps_from_objects_and_pairs_with_any_keys(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, MAPS.empty_table())
    lines = [
        '{"t": {"x": {"n": 1.5, "d": DIGITS}, "y": null}, "i": {"7": 1, "-8": "NaN"}, "b": {"true": "2024-01-31"}}',
        '{"t": [{"KEY": "x", "value": {"N": "-Infinity", "D": "1.50"}}]}',
        '{"i": [{"key": 7, "value": 2}, {"key": "8", "value": 3}]}',
        '{"b": [{"key": false, "value": null}], "f": [1, "NaN", "Infinity", null]} {"t": {}, "i": [], "b": null}',
    ]
    loaded(path, tmp_path / "rows.json", "\n".join(lines).replace("DIGITS", DIGITS))
    null = dict.fromkeys(MAPS.names)
    assert repr(DeltaTable(path).to_arrow().to_pylist()) == repr([
        {**null, "T": [("x", {"N": 1.5, "D": Decimal(DIGITS)}), ("y", None)], "I": [(7, 1.0), (-8, float("nan"))],
         "B": [(True, date(2024, 1, 31))]},
        {**null, "T": [("x", {"N": float("-inf"), "D": Decimal("1.50")})]},
        {**null, "I": [(7, 2.0), (8, 3.0)]},
        {**null, "B": [(False, None)], "F": [1.0, float("nan"), float("inf"), None]},
        {**null, "T": [], "I": []},
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("line", "expected_text"),
    [
        ('{"i": {"seven": 1}}', "seven"),
        ('{"i": {"7": 1, "7": 2}}', "the name 7 twice"),
        ('{"t": {"x": {"n": 1, "N": 2}}}', "the name N twice"),
        ('{"t": {"x": {"n": "much"}}}', "changed from number to string"),
        ('{"i": [{"key": null, "value": 1}]}', "NULL"),
        ('{"f": ["nan"]}', "changed from number to string"),
        ('{"f": ["NaN"]} {"f": [', "rows.json"),
        ('{"f": ["NaN"], "f": []}', "the name f twice"),
    ],
)
def test_load_of_a_map_or_number_that_is_none_writes_nothing(tmp_path: Path, line: str, expected_text: str) -> None:
    path = str(tmp_path / "t")
    write_delta(path, MAPS.empty_table())
    error = loaded(path, tmp_path / "rows.json", line, code=3)
    assert expected_text in error and DeltaTable(path).version == 0


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("is_new", [False, True])
def test_load_passes_over_the_mark_of_utf_8(tmp_path: Path, suffix: str, is_new: bool) -> None:
    path, file = str(tmp_path / "t"), tmp_path / f"rows.{suffix}"
    schema = pa.schema([("Code", pa.string()), *([("M", pa.map_(pa.string(), pa.int64()))] if suffix == "jsonl" else [])])
    if not is_new:
        write_delta(path, schema.empty_table())
    text = '{"code": "007", "m": {"x": 1}}\n' if suffix == "jsonl" else "code\n007\n"
    loaded(path, file, "\ufeff" + text)
    columns = DeltaTable(path).to_arrow().to_pydict()
    if is_new:
        assert columns == ({"code": ["007"], "m": [{"x": 1}]} if suffix == "jsonl" else {"code": [7]})
    else:
        assert columns == ({"Code": ["007"], "M": [[("x", 1)]]} if suffix == "jsonl" else {"Code": ["007"]})


def test_a_file_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pydelta_cli.formats.row_input.BLOCK_BYTES", 4)
    (tmp_path / "rows").write_bytes(b"0123456789")
    source = _Source("rows", pa.OSFile(str(tmp_path / "rows")))
    assert (source.head, source.read(3), source.read(), source.read()) == (b"0123", b"012", b"3456789", b"")


def test_load_of_json_goes_by_blocks_of_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pydelta_cli.formats.json_lines.BLOCK_BYTES", 64)
    monkeypatch.setattr("pydelta_cli.formats.json_lines.LINE_BYTES", 256)
    file, path = tmp_path / "rows.json", str(tmp_path / "t")
    lines = [json.dumps({"id": id, "name": "x" * (id % 97)}) for id in range(500)]
    loaded(path, file, "\n".join(lines))
    assert sorted(ids(path)) == list(range(500)) and DeltaTable(path).version == 0
    assert "[FAILED_READ_FILE" in loaded(path, file, "\n".join([*lines, '{"id": 1, "extra": 2}']), code=3)
    error = loaded(path, file, "\n".join([*lines[:50], '{"id": "text"}', *lines]), code=3)
    assert re.search(r"rows\.json cannot be read as JSON.*: line 51: ", error), error
    assert "a line of more than" in loaded(path, file, json.dumps({"name": "x" * 1000}), code=3)
    assert DeltaTable(path).version == 0


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
@pytest.mark.parametrize("text", ["", "{", '"', "PAR1", "\x00\x01"])
def test_load_of_a_file_that_is_none_names_it(tmp_path: Path, suffix: str, text: str) -> None:
    path, file = str(tmp_path / "t"), tmp_path / f"rows.{suffix}"
    if suffix == "csv" and text in ("{", '"', "PAR1", "\x00\x01"):
        return  # a header
    error = loaded(path, file, text, code=3)
    assert re.search(r"\[(DELTA_|FAILED_READ_FILE)", error) and str(file) in error and not (tmp_path / "t").exists()


def test_load_of_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path, file = str(tmp_path / "t"), tmp_path / "rows.csv"
    file.write_bytes("id,name\n1,é\n".encode("latin-1"))
    for _ in range(2):  # for a new table, and for one that has the columns
        result = CliRunner().invoke(app, ["load", path, str(file), "--mode", "append"])
        assert result.exit_code == 3 and "UTF" in result.stderr and re.search("column (name|#1)", result.stderr), result
        write_delta(path, pa.table({"id": [1], "name": ["é"]}), mode="overwrite")


def test_load_of_values_nested_too_deep_is_refused(tmp_path: Path) -> None:
    for number in ("1", '"NaN"'):
        text = f'{{"id": {number}, "deep": {"[" * 100_000}{"]" * 100_000}}}'
        assert "nested deeper" in loaded(str(tmp_path / "t"), tmp_path / "rows.json", text, code=3)


def test_load_of_no_rows_into_a_table_is_none(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, rows([1]))
    loaded(path, tmp_path / "rows.json", "")
    loaded(path, tmp_path / "rows.csv", "id,name,part\n")
    assert ids(path) == [1]


@pytest.mark.parametrize("name", ["none.csv", "s3-none://x/rows.csv", "."])
def test_load_of_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    file = name if ":" in name else str(tmp_path / name)
    result = CliRunner().invoke(app, ["load", str(tmp_path / "t"), file, "--format", "csv"])
    assert result.exit_code == 3 and "[DELTA_" in result.stderr and file.removesuffix("/rows.csv") in result.stderr, result
    assert list(tmp_path.iterdir()) == []


def test_load_takes_a_url_of_this_machine_and_names_with_colons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a:b.csv").write_text("id\n1\n")
    monkeypatch.chdir(tmp_path)
    run("load", "t", "a:b.csv")
    run("load", "t", f"file://{tmp_path}/a:b.csv", "--mode", "append")
    pq.write_table(pa.table({"id": [2]}), tmp_path / "b.parquet")
    run("load", "t", f"file:{tmp_path}/b.parquet", "--mode", "append")
    assert ids("t") == [1, 1, 2]


def test_load_of_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, LOADED.empty_table())
    assert "[DELTA_DUPLICATE_COLUMNS_FOUND]" in loaded(path, tmp_path / "rows.csv", "code,CODE\n007,008\n", code=3)


# ---------------------------------------------------------------- all commands


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["show", "--limit", "-1"], "--limit"),
        (["show", "--limit", "many"], "--limit"),
        (["show", "--limit", "\u0663x"], "--limit"),
        (["show", "--version", "1.5"], "--version"),
        (["show", "--version", "0", "--at", "2024-01-01"], "either --version or --at"),
        (["clone", "new", "--version", "0", "--at", "2024-01-01", "--spark"], "either --version or --at"),
        (["set"], "Missing argument 'KEY=VALUE'."),
        (["cat", "--format", "xls"], "'csv', 'json', 'parquet', 'arrow'"),
        (["show", "--nothing"], "--nothing"),
        (["vacuum", "--retention-hours", "long"], "--retention-hours"),
        (["vacuum", "--keep-version", "x"], "--keep-version"),
    ],
)
def test_option_that_is_wrong_is_named(arguments: list[str], expected_text: str, table: str) -> None:
    result = CliRunner().invoke(app, [arguments[0], table, *arguments[1:]])
    assert result.exit_code == 2 and expected_text in result.stderr and result.stdout == "", result


@pytest.mark.parametrize("command", sorted({command.__name__.rstrip("_") for command in COMMANDS} - {"load"}))
def test_file_in_the_place_of_a_table_is_told(command: str, tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_text("x")
    more = {**MORE_ARGUMENTS, "diff": [str(file)], "clone": [str(tmp_path / "new")], "report": ["--json"]}.get(command, [])
    result = CliRunner().invoke(app, [command, str(file), *more])
    assert result.exit_code == 3 and f"{file} is a file, and a table is a directory" in result.stderr, result
    assert list(tmp_path.iterdir()) == [file]


def test_standard_input_that_is_closed_is_told(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pydelta_cli.formats.row_input.sys", SimpleNamespace(stdin=None, __stdin__=None))
    result = CliRunner().invoke(app, ["load", table, "-", "--format", "csv", "--mode", "append"])
    assert result.exit_code == 3 and "[DELTA_STORAGE_ERROR] Standard input is closed" in result.stderr, result


def test_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert run("--version") == f"pydelta {project['version']}\n"


def test_list_of_commands_has_whole_sentences() -> None:
    assert "..." not in run("--help").replace("COMMAND [ARGS]...", "")


def test_tables_of_one_answer_have_their_names_above_them(table: str) -> None:
    run("set", table, "a.b=c", "delta.enableDeletionVectors=true")
    DeltaTable(table).alter.add_columns([NewColumn("more", STRING)])
    lines = [line.split() for line in run("diff", f"{table}@v0", table, "--text", code=1).splitlines()]
    for name in ("columns", "properties", "protocol"):
        assert lines[lines.index([name, "a", "b"]) - 1] == []
    assert run("history", table, "--text").split()[:2] == ["version", "time"]


def test_warning_is_told_once(table: str) -> None:
    (Path(table) / "_delta_log" / f"{2:020}.json").write_text("")
    result = CliRunner().invoke(app, ["fsck", table])
    assert result.exit_code == 1 and result.stderr.count("has 0 bytes") == 1, result.stderr


def test_time_zone_that_is_none_is_told_at_once(table: str) -> None:
    before = changed_files(Path(table))
    for command in (["show", table], ["schema", table], ["set", table, "a.b=c"]):
        result = CliRunner().invoke(app, [*command, "--tz", "Mars/City"])
        assert result.exit_code == 3 and "[INVALID_TIMEZONE]" in result.stderr and "Mars/City" in result.stderr
    assert changed_files(Path(table)) == before


def test_limits_may_be_larger_than_tables(table: str) -> None:
    many = "9" * 30
    assert len(answer("show", table, "--limit", many)["rows"]) == 5
    assert len(run("cat", table, "--limit", many).splitlines()) == 6
    assert len(answer("history", table, "--limit", many)["commits"]) == 2


def test_page_that_cannot_be_written_is_told(table: str, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none" / "page.html"):
        result = CliRunner().invoke(app, ["report", table, "-o", str(place)])
        assert result.exit_code == 3 and f"The page {place} cannot be written" in result.stderr, result


def test_options_have_their_types(table: str) -> None:
    assert len(answer("show", table, "--limit", "0")["rows"]) == 0
    assert len(answer("show", table, "--limit", "007")["rows"]) == 5
    assert answer("vacuum", table, "--retention-hours", "1e3", "--keep-version", "0", "--keep-version", "1")["files_total"] == 0
    assert run("cat", table, "--format", "json", "--limit", "1") == run("cat", table, "--json", "--limit", "1")


def test_every_form_of_the_page_is_checked_in_every_answer() -> None:
    described = {name for line in PAGE.splitlines() if "| `{" in line for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    commands = {command.__name__.rstrip("_") for command in COMMANDS}
    assert described <= commands
    for command in described:
        line = next(line for line in PAGE.splitlines() if "| `{" in line and f"`{command}`" in line.split("|")[1])
        assert set(re.findall(r"\w+", line.split("|")[2])) == FORMS[command]["properties"].keys()
    assert commands - FORMS.keys() == {"metrics"}


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


@pytest.mark.parametrize(("width", "is_table"), [(50, False), (80, True), (200, True)])
def test_a_terminal_that_is_too_narrow_for_a_table_gets_lists(
    width: int, is_table: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    parameters, metrics = json.dumps({"mode": "Append" * 10}), json.dumps({"rows": "2" * 200})
    columns = [Column("version"), Column("parameters"), Column("metrics")]
    Run().print_table(columns, [["1", parameters, metrics], ["\x1b[1m日本", None, ""]], null="null")
    shown = capsys.readouterr().out
    if is_table:
        assert max(map(cell_len, re.sub(r"\x1b\[\d*m", "", shown).splitlines())) <= width
    else:
        assert shown.splitlines() == [
            *("-- 1", "version     1", f"parameters  {parameters}", f"metrics     {metrics}"),
            *("-- 2", "version     \\x1b[1m日本", "parameters  null", "metrics     "),
        ]
    for columns, no_rows in (([], [[], []]), ([Column("name " * width)], [])):
        Run().print_table(columns, no_rows)
        assert ("name" in capsys.readouterr().out) == bool(columns)


def test_what_tables_say_is_data(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = pa.table({"id": [1], "name": [HOSTILE]})
    write_delta(path, data, description=HOSTILE, configuration={"x.y": HOSTILE})
    for command in (["show"], ["detail"], ["history"], ["schema"], ["files"]):
        text = run(*command, path, "--text")
        assert "\x1b" not in text and "\u202e" not in text
        machine = run(*command, path, "--json")
        assert "\x1b" not in machine and "\u202e" not in machine and json.loads(machine)
    assert "[bold]x[/bold]\\x1b[31m\\u202e" in run("show", path, "--text")
    assert answer("show", path)["rows"][0]["name"] == HOSTILE


READS = {"show", "schema", "detail", "features", "streams", "files", "diff", "cat", "report", "metrics"}
MORE_ARGUMENTS = {
    "load": ["rows.csv"], "zorder": ["--by", "id"], "restore": ["--version", "0"], "set": ["a.b=c"], "unset": ["a.b"]
}


def changed_files(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): path.stat().st_mtime_ns for path in directory.rglob("*")}


@pytest.mark.parametrize("suffix", ["@v0", "@V1", "@20500101000000000"])
@pytest.mark.parametrize("command", sorted({command.__name__.rstrip("_") for command in COMMANDS} - READS))
def test_path_that_names_a_version_is_for_reading(command: str, suffix: str, table: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,name,part\n1,a,b\n")
    before = changed_files(tmp_path)
    more = [str(tmp_path / "rows.csv") if name == "rows.csv" else name for name in MORE_ARGUMENTS.get(command, [])]
    paths = [table, str(tmp_path / "new") + suffix] if command == "clone" else [table + suffix, *more]
    mode = ["--mode", "append"] if command == "load" else []
    result = CliRunner().invoke(app, [command, *paths, *mode])
    assert result.exit_code == 3 and "[DELTA_ILLEGAL_OPTION]" in result.stderr and "names a version" in result.stderr, result
    assert changed_files(tmp_path) == before


@pytest.mark.parametrize("command", ["optimize", "zorder", "vacuum", "convert", "clone"])
def test_spark_is_not_started_for_a_path_that_names_a_version(command: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(run: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("pydelta_cli.spark._session", started)
    paths = [table, table + "@v0"] if command == "clone" else [table + "@v0", *MORE_ARGUMENTS.get(command, [])]
    result = CliRunner().invoke(app, [command, *paths, "--spark"])
    assert result.exit_code == 3 and "names a version" in result.stderr, result


def test_table_whose_directory_is_named_as_a_version_is_changed(tmp_path: Path) -> None:
    path = str(tmp_path / "t@v0")
    write_delta(path, rows([1]))
    assert answer("set", path, "a.b=c")["properties"] == {"a.b": "c"}
    assert len(answer("history", path)["commits"]) == 2


def test_metrics_of_a_hostile_table_can_be_scraped(tmp_path: Path) -> None:
    path = str(tmp_path / "a\x1b\u202e")
    write_delta(path, rows([1]), txn_app_id=f'{HOSTILE}\n"\\', txn_version=1)
    text = run("metrics", path)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    batches = [dict(labels)["app_id"] for name, labels in scraped(text) if name == "pydelta_table_stream_batch"]
    assert len(batches) == 1 and batches[0].startswith('[bold]x[/bold]\\x1b[31m\\u202e\\n"\\ ')


def test_pipe_that_breaks_elsewhere_is_an_error(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **options: Any) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("delta_py.snapshot.Snapshot.load", broken)
    result = CliRunner().invoke(app, ["optimize", table])
    assert result.exit_code == 3 and "Broken pipe" in result.stderr, result


def test_empty_text_is_no_null(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, rows([1]), description="", configuration={"x.y": ""})
    text = run("detail", path, "--text")
    assert re.search(r"^description *$", text, re.MULTILINE) and re.search(r"^properties +x\.y = *$", text, re.MULTILINE)
    assert not re.search(r"^name", text, re.MULTILINE)
    write_delta(path, pa.table({"s": ["", None, "a,b", 'q"', "plain", "null"]}), mode="overwrite", overwrite_schema=True)
    assert run("cat", path).splitlines() == ["s", '""', "", '"a,b"', '"q"""', "plain", "null"]
    shown = run("show", path, "--text").splitlines()
    assert shown[2:4] == ["", "null"]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (2**63 - 1, "294247-01-10T04:00:54.775807+00:00"),
        (-(2**63), "-290308-12-21T19:59:05.224192+00:00"),
        (9 * 10**17 + 1, "30489-11-11T16:00:00.000001+00:00"),
        (9 * 10**17, "30489-11-11T16:00:00.000000+00:00"),
        (0, "1970-01-01T00:00:00.000000+00:00"),
    ],
)
def test_times_of_far_years(micros: int, text: str) -> None:
    times = pa.array([0, micros, None]).cast(pa.timestamp("us", "UTC"))
    assert json_values(times, "UTC") == ["1970-01-01T00:00:00.000000+00:00", text, None]


def test_far_dates_are_told_with_their_years() -> None:
    days = pa.array([2**31 - 1, -(2**31), 10**7, 10**7 + 1, -(10**7) - 1, 0, None], pa.int32()).cast(pa.date32())
    texts = ["5881580-07-11", "-5877641-06-23", "29349-01-26", "29349-01-27", "-25410-12-05", "1970-01-01", None]
    assert json_values(days, "UTC") == texts


def test_store_options_reach_the_store(table: str) -> None:
    result = CliRunner().invoke(app, ["schema", table, "--option", "nosuch.option=1"])
    assert result.exit_code == 3 and "nosuch.option" in result.stderr
    run("schema", table, "--option", "nothing", code=2)


def test_log_that_another_engine_has_cleaned_is_shown(table: str, tmp_path: Path) -> None:
    """It kept the checkpoint of version 1, and not its commit."""
    log = Path(table) / "_delta_log"
    DeltaTable(table).checkpoint()
    for ids in ([30], [40]):
        write_delta(table, rows(ids), mode="append")
    for number in (0, 1):
        (log / f"{number:020d}.json").unlink()
        (log / f"{number:020d}.crc").unlink()
    assert [commit["version"] for commit in answer("history", table)["commits"]] == [3, 2]
    assert answer("streams", table)["version"] == 3
    assert answer("diff", f"{table}@v2", table, "--key", "id", code=1)["b"]["rows"] == 7
    assert "pydelta_table_version" in run("metrics", table)
    assert answer("report", table)["log"]["earliest_version"] == 2
    second = (log / f"{2:020d}.json").stat().st_mtime
    at = datetime.fromtimestamp(second + 0.001, UTC).isoformat()
    assert json.loads(run("cat", f"{table}", "--at", at, "--format", "json", "--filter", "id = 30"))["id"] == 30
    refused = CliRunner().invoke(app, ["cat", table, "--version", "1"])
    assert "Available versions: [2, 3]" in refused.stderr


def test_secrets_of_stores_are_not_in_the_text_of_a_run() -> None:
    assert "hush" not in repr(Run(storage={"AWS_SECRET_ACCESS_KEY": "hush"}))
