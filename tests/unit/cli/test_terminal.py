"""What people see on a terminal: a pseudo terminal of 80 or 200 columns runs the program."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pyarrow as pa
import pytest
from rich.cells import cell_len

from delta_py import DeltaTable, write_delta

PYDELTA = [sys.executable, "-m", "pydelta_cli"]
STYLE = re.compile(r"\x1b\[[0-9;]*m")
PROGRESS_LINE = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h", re.DOTALL)
"""rich hides the cursor while it draws the line."""


def on_terminal(*arguments: str, width: int = 80, code: int = 0, **environment: str) -> str:
    """What the terminal shows, with its codes for colours. Without the line of progress, which appears on slow machines only."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    variables |= {"TERM": "xterm", "TZ": "Europe/Paris"} | environment
    program = subprocess.Popen([*PYDELTA, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=variables)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65_536):
            parts.append(part)
    except OSError:  # Linux says so when the last writer has closed the terminal
        pass
    finally:
        os.close(ours)
    shown = b"".join(parts).decode().replace("\r\n", "\n")
    assert program.wait(60) == code, shown
    return PROGRESS_LINE.sub("", shown)


def plain(shown: str) -> str:
    return STYLE.sub("", shown)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Versions of WRITE, DELETE, UPDATE, OPTIMIZE and SET TBLPROPERTIES, and a file that no version references."""
    path = str(tmp_path_factory.mktemp("terminal") / "orders")
    for number in range(2):
        ids = list(range(number * 1_000, number * 1_000 + 1_000))
        rows = pa.table({"id": ids, "part": ["a", "b"] * 500, "price": [id * 1.5 for id in ids], "note": ["n", None] * 500})
        write_delta(path, rows, mode="append", partition_by=["part"], txn_app_id="loader", txn_version=number)
    DeltaTable(path).delete("id = 7")
    DeltaTable(path).update({"price": "price + 1"}, predicate="id > 1900 AND part = 'a'")
    DeltaTable(path).optimize.compact()
    DeltaTable(path).alter.set_table_properties({"owner.team": "sales"})
    lost = Path(path) / "lost.parquet"
    lost.write_bytes(b"x" * 3_000)
    os.utime(lost, (86_400, 86_400))
    return path


COMMANDS = {
    "show": "show TABLE --limit 3",
    "schema": "schema TABLE",
    "history": "history TABLE",
    "detail": "detail TABLE",
    "features": "features TABLE",
    "streams": "streams TABLE",
    "files": "files TABLE",
    "files of a query": "files TABLE --filter id<3",
    "diff": "diff TABLE@v0 TABLE",
    "vacuum": "vacuum TABLE",
    "fsck": "fsck TABLE",
    "report": "report TABLE",
    "set": "set TABLE owner.team=sales",
}
LAST_LINES = {
    "show": "and 1,996 more rows (--limit N shows more)",
    "schema": "Version {} has 4 columns, partitioned by part.",
    "streams": "Version {} has transactions of 1 application.",
    "diff": "a and b differ.",
    "vacuum": "1 file, 2.93 KiB would be deleted; add --delete.",
    "fsck": "No fault was found.",
    "report": "Add -o page.html for the whole report as a page, or --open to see it.",
    "set": "These are the properties of version {}.",
}


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", COMMANDS)
def test_answer_on_a_terminal_is_text_that_fits(table: str, name: str, width: int) -> None:
    words = COMMANDS[name].replace("TABLE", table).split()
    lines = plain(on_terminal(*words, width=width, code=1 if name == "diff" else 0)).splitlines()
    is_list = lines[0] == "-- 1"  # its values are as long as they are, as is the table's path
    assert is_list or max(cell_len(line.replace(table, "")) for line in lines) <= width, lines
    assert is_list == (name == "files of a query" and width == 80)
    assert not lines[0].startswith(("{", "[")) and (name == "show" or not re.search(r"\bnull\b", "\n".join(lines))), lines
    if name in LAST_LINES:
        assert lines[-1] == LAST_LINES[name].format(DeltaTable(table).version)


def test_history_says_what_commits_did(table: str) -> None:
    lines = plain(on_terminal("history", table, width=200)).splitlines()
    assert lines[0].split() == ["version", "time", "operation", "details"]
    text = "\n".join(lines)
    assert "1 deleted row" in text and "1,000 rows, 2 files" in text and "SET TBLPROPERTIES" in text
    assert re.search(r"^ +0   \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+0[12]   WRITE", text, re.MULTILINE)


def test_times_are_local_unless_a_zone_is_named(table: str) -> None:
    seconds = plain(on_terminal("history", table, "--limit", "1", TZ="Asia/Tokyo"))
    assert re.search(r":\d\d\+09 ", seconds)
    time = re.search(r"\d{4}-\S+ \S+", plain(on_terminal("history", table, "--limit", "1", "--tz", "UTC")))
    assert time is not None and time[0].endswith("Z")
    assert "lost.parquet" in (vacuumed := plain(on_terminal("vacuum", table, width=200))) and "1970-01-02 01:00:00+01" in vacuumed


@pytest.mark.parametrize("shown_time", ["local", "Z"])
def test_time_of_text_is_one_that_a_command_reads(table: str, shown_time: str) -> None:
    zone = [] if shown_time == "local" else ["--tz", "UTC"]
    lines = plain(on_terminal("history", table, *zone, width=200)).splitlines()
    time = re.search(r"\d{4}-\S+ \S+", lines[2])
    assert time is not None
    answer = subprocess.run([*PYDELTA, "schema", table, "--at", time[0]], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0 or "EARLIER" in answer.stderr, answer.stderr


def test_numbers_are_aligned_to_the_right(table: str) -> None:
    lines = plain(on_terminal("show", table, "--columns", "id,price", "--filter", "id IN (9, 100)")).splitlines()
    assert lines[0] == " id   price" and sorted(lines[2:]) == ["  9    13.5", "100   150.0"]


@pytest.mark.parametrize(("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_can_be_switched_off(table: str, environment: dict[str, str], is_coloured: bool) -> None:
    for words, code in ((["vacuum", table], 0), (["schema", f"{table}-none"], 3)):
        assert ("\x1b[" in on_terminal(*words, code=code, **environment)) == is_coloured


def test_pipe_gets_json_and_options_choose(table: str) -> None:
    piped = subprocess.run([*PYDELTA, "schema", table], capture_output=True, text=True, timeout=60)
    assert json.loads(piped.stdout)["columns"][0]["name"] == "id"
    assert json.loads(on_terminal("schema", table, "--json")) == json.loads(piped.stdout)
    text = subprocess.run([*PYDELTA, "schema", table, "--text"], capture_output=True, text=True, timeout=60).stdout
    assert text == plain(on_terminal("schema", table))
    assert "not both" in on_terminal("schema", table, "--text", "--json", code=2)


def test_write_says_how_many_rows_are_in_which_version(tmp_path: Path) -> None:
    file, path = tmp_path / "rows.csv", str(tmp_path / "t")
    file.write_text("id\n" + "".join(f"{number}\n" for number in range(1_200)))
    assert on_terminal("load", path, str(file)) == "1,200 rows written as version 0 (a new table).\n"
    assert on_terminal("load", path, str(file), "--mode", "append") == "1,200 rows written as version 1 (append).\n"
    assert re.fullmatch(r"2 files \(.* KiB\) became 1 file \(.* KiB\)\.\n", on_terminal("optimize", path))
    assert on_terminal("optimize", path) == "No file needed to be rewritten. Nothing was committed.\n"
    restored = on_terminal("restore", path, "--version", "0")
    assert re.match(r"Restored as version 3: 1 file restored, 1 removed\. The table has 1 file, .* KiB\.\n", restored)
    assert on_terminal("checkpoint", path) == "Checkpoint of version 3 written, with 1 file.\n"
    assert on_terminal("clone", path, f"{path}2") == f"{path}2 is a deep clone of {path}: version 0, 1 file.\n"


def test_long_tables_are_cut_and_say_how_many_rows_are_left(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for number in range(54):
        write_delta(path, pa.table({"id": [number]}), mode="append")
    assert plain(on_terminal("history", path)).splitlines()[-1] == "and 4 more commits (--limit N shows more)"
    assert plain(on_terminal("history", path, "--limit", "53")).splitlines()[-1] == "and 1 more commit (--limit N shows more)"
    assert plain(on_terminal("history", path, "--limit", "54", width=200)).splitlines()[-1].split()[0] == "0"
    files = plain(on_terminal("files", path)).splitlines()
    assert files[-2] == "and 4 more files (--json has all)" and files[-1].startswith("Version 53 has 54 files with ")
    shown = plain(on_terminal("cat", path, "--limit", "3")).splitlines()
    assert len(shown) == 5 and shown[-1] == "and 51 more rows (--limit N shows more)"
    assert len(plain(on_terminal("cat", path, "--limit", "54")).splitlines()) == 55
    filtered = plain(on_terminal("show", path, "--filter", "id < 50", "--limit", "2")).splitlines()
    assert filtered[-1] == "and more rows (--limit N shows more)"
    whole = subprocess.run([*PYDELTA, "history", path, "--text"], capture_output=True, text=True, timeout=60)
    assert len(whole.stdout.splitlines()) >= 56


def test_report_opens_a_private_page(table: str, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    shown = on_terminal("report", table, "--open", BROWSER=str(browser), TMPDIR=str(tmp_path))
    (page,) = tmp_path.glob("pydelta-report-*.html")
    assert page.stat().st_mode & 0o777 == 0o600 and page.read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "opened").read_text().strip() == page.as_uri() and shown.endswith(f"The page is {page}.\n")


def test_report_that_finds_no_browser_says_where_the_page_is(table: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = on_terminal("report", table, "--open", "-o", str(page), BROWSER="false", DISPLAY="", PATH="/nonexistent")
    assert f"No browser could be started. The page is {page}." in shown and page.exists()


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["load", "t", "f", "--mergeSchema"], "`load` has no option --mergeSchema. Did you mean --merge-schema?"),
        (["show", "t", "--colums", "a"], "`show` has no option --colums. Did you mean --columns?"),
        (["show", "t", "--nothing"], "`show` has no option --nothing."),
        (["hist", "t"], "No such command 'hist'. Did you mean history?"),
        (["banana"], "No such command 'banana'."),
    ],
)
def test_mistake_in_a_name_suggests_only_names_that_are_near(words: list[str], message: str) -> None:
    assert on_terminal(*words, code=2, width=200).splitlines()[-1] == f"Error: {message}"


@pytest.mark.parametrize("credentials", [True, False])
def test_error_of_a_store_is_one_line_that_names_the_option(tmp_path: Path, credentials: bool) -> None:
    """Nobody listens on port 9."""
    pytest.importorskip("boto3")
    options = ["s3.endpoint=http://127.0.0.1:9", "storage.retry_timeout=1", "s3.region=eu-west-1"]
    options += ["s3.access_key_id=a", "s3.secret_access_key=s3cret-key"] if credentials else []
    words = [word for option in options for word in ("--option", option)]
    nobody = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    shown = plain(on_terminal("schema", "s3://bucket/t", *words, code=3, HOME=str(tmp_path), **nobody))
    lines = shown.splitlines()
    assert len(lines) == 1 and len(re.findall(r"\[[A-Z_]+\]", shown)) == 1 and "s3cret" not in shown, shown
    named = "s3.endpoint" if credentials else "s3.access_key_id"
    assert lines[0].endswith(f"On the command line an option is given as --option {named}=VALUE."), shown
