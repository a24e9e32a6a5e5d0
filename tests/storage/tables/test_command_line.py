"""Every command of the command line on tables in object stores, with their options; none prints a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from delta_py import DeltaTable, write_delta
from delta_py.object_stores.open_store import open_store
from delta_py.storage.store_options import is_secret_option
from pydelta_cli.main import COMMANDS, app
from tests.storage.conftest import new_url
from tests.support.servers.emulators import Emulator


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{id}" for id in ids]})


def settings_of(emulator: Emulator) -> list[str]:
    return [word for name, value in emulator.settings().items() for word in ("--option", f"{name}={value}")]


def invoke(emulator: Emulator, *arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [*arguments, *settings_of(emulator)])
    assert result.exit_code == code, (arguments, result.stderr, result.exception)
    check_silent(emulator, result)
    return result


def check_silent(emulator: Emulator, result: Result) -> None:
    secrets = [value for name, value in emulator.settings().items() if is_secret_option(name)]
    assert all(secret not in result.output and secret not in result.stderr for secret in secrets)


def answer(emulator: Emulator, *arguments: str, code: int = 0) -> Any:
    return json.loads(invoke(emulator, *arguments, "--json", code=code).stdout)


def put(url: str, data: bytes, emulator: Emulator) -> None:
    directory, _, name = url.rpartition("/")
    open_store(directory, emulator.options()).put(name, data)


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def test_every_command_works_on_tables_of_a_store(emulator: Emulator, tmp_path: Path) -> None:
    url = new_url(emulator)
    root = url.rpartition("/")[0]
    answers: dict[str, Any] = {}

    def does(command: str, *arguments: str, code: int = 0) -> Any:
        answers[command] = answer(emulator, command, *arguments, code=code)
        return answers[command]

    put(f"{root}/in/rows.csv", b"id,name\n1,n1\n2,n2\n", emulator)
    put(f"{root}/in/rows.jsonl", b'{"id": 3, "name": "n3"}\n', emulator)
    put(f"{root}/in/rows.parquet", parquet(rows(4)), emulator)
    for file in ("rows.csv", "rows.jsonl", "rows.parquet"):
        does("load", url, f"{root}/in/{file}", "--mode", "append")
    assert does("set", url, "a.b=c", "delta.enableChangeDataFeed=true")["properties"]["a.b"] == "c"
    assert "a.b" not in does("unset", url, "a.b")["properties"]
    assert [row["id"] for row in does("show", url, "--filter", "id > 2")["rows"]] == [4, 3]
    assert [column["name"] for column in does("schema", url)["columns"]] == ["id", "name"]
    assert len(does("history", url)["commits"]) == 5
    assert does("detail", url)["numFiles"] == 3
    assert does("features", url)["features"] and does("streams", url)["streams"] == []
    assert does("files", url, "--filter", "id = 4")["files_read"] == 1
    assert does("diff", f"{url}@v0", url, code=1)["differs"]
    lines = invoke(emulator, "cat", url, "--format", "json").stdout.splitlines()
    answers["cat"] = sorted(json.loads(line)["id"] for line in lines)
    assert answers["cat"] == [1, 2, 3, 4]
    assert does("optimize", url)["metrics"]["numFilesRemoved"] == 3
    does("zorder", url, "--by", "id")
    assert does("checkpoint", url)["files"] == 1
    assert does("restore", url, "--version", "3")["version"] == 7
    assert does("vacuum", url, "--delete")["deleted"] and does("fsck", url)["faults"] == []
    assert does("clone", url, f"{root}/flat", "--shallow")["files"] == 3
    assert does("clone", url, f"{root}/deep")["files"] == 3
    put(f"{root}/plain/day=1/x.parquet", parquet(rows(7)), emulator)
    assert does("convert", f"{root}/plain", "--partitioned-by", "day int") == {"version": 0, "files": 1}
    page = tmp_path / "page.html"
    assert does("report", url, "-o", str(page))["identity"]["version"] >= 7 and page.read_text().startswith("<!DOCTYPE")
    answers["metrics"] = invoke(emulator, "metrics", url).stdout
    assert "pydelta_table_version" in answers["metrics"]
    for path in (url, f"{root}/flat", f"{root}/deep"):
        assert sorted(DeltaTable(path, storage_options=emulator.settings()).to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert answers.keys() == {command.__name__.rstrip("_") for command in COMMANDS}


def test_bucket_that_is_missing_is_one_error_without_a_warning(emulator: Emulator) -> None:
    scheme, _, rest = new_url(emulator).partition("://")
    container, _, path = rest.partition("/")
    missing = invoke(emulator, "schema", f"{scheme}://none-{container}/{path}", code=3).stderr
    assert missing.count("\n") == 1 and len(re.findall(r"\[[A-Z_]+\]", missing)) == 1, missing


@pytest.mark.parametrize("more", [[], ["--debug"]])
def test_failures_say_nothing_secret(emulators: Callable[[str], Emulator], more: list[str]) -> None:
    emulator = emulators("s3")
    url = new_url(emulator)
    secret = emulator.settings()["s3.secret_access_key"]
    missing = invoke(emulator, "schema", url, *more, code=3)
    assert "[DELTA_PATH_DOES_NOT_EXIST]" in missing.stderr and url in missing.stderr
    for command in (["load", url, f"{url}/none.csv"], ["load", url, f"{url}/none.parquet"]):
        assert "[DELTA_STORAGE_ERROR]" in invoke(emulator, *command, *more, code=3).stderr
    write_delta(url, rows(1), storage_options=emulator.settings())
    for wrong in (
        ["--option", "s3.access_key_id=nobody", "--option", "storage.retry_timeout=1"],
        ["--option", "s3.endpoint=http://127.0.0.1:9", "--option", "storage.retry_timeout=1"],
        ["--option", f"s3.secret_access_keys={secret}"],
        ["--option", f"s3.secret_access_key {secret}"],
        ["--option", secret],
    ):
        result = CliRunner().invoke(app, ["schema", url, *settings_of(emulator), *wrong, *more])
        assert result.exit_code in (2, 3) and len(result.stderr) > 40, result
        check_silent(emulator, result)
