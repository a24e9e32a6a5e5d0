"""The page about Unity Catalog: the command line takes the names on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from delta_py.storage import publication
from pydelta_cli.main import app
from tests.support.servers.unity_catalog import UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        server.state.schemas.add(("main", "sales"))
        create_managed(server, "orders", pa.table({"id": [1, 2]}), schema=("main", "sales"))
        yield server
        publication.finish()


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result.stdout if code == 0 else result.stderr


def test_command_line_takes_names(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", server.uri)
    monkeypatch.setenv("DATABRICKS_TOKEN", server.token or "")
    name = f"unity://{server.host}/main.sales.orders"
    more_rows = tmp_path / "more.jsonl"
    more_rows.write_text('{"id": 7}\n')
    run("load", name, str(more_rows), "--mode", "append")
    for spelling in (name, "uc://main.sales.orders"):
        assert [json.loads(line)["id"] for line in run("cat", spelling, "--format", "json").splitlines()] == [7, 1, 2]
    assert [json.loads(line)["id"] for line in run("cat", f"{name}@v0", "--format", "json").splitlines()] == [1, 2]
    assert json.loads(run("history", name, "--json"))["commits"][0]["version"] == 1


def test_command_line_shows_no_token(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABRICKS_TOKEN", raising=False)
    name = f"unity://{server.host}/main.sales.orders"
    assert "unity.token" in run("show", name, code=3)
    message = run("show", name, "--option", "unity.token=wrong-secret", code=3)
    assert "401" in message and "wrong-secret" not in message
