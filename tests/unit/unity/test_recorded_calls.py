"""The server of the tests answers as Unity Catalog 0.6.0 did, and our client understands the recorded answers.

unity_calls.jsonl: method, path, body, status and answer of calls by delta-spark and by a script, in their order. Some commits
between them were not recorded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_py.unity.catalog_answers import catalog_table, credential_for, vended_credentials
from tests.support.servers import unity_catalog
from tests.support.servers.unity_catalog import Catalog, CatalogTable, UnityCatalogServer

CALLS = [json.loads(line) for line in (Path(unity_catalog.__file__).parent / "unity_calls.jsonl").read_text().splitlines()]
TABLE_CALLS = [call for call in CALLS if "/delta/v1/catalogs/" in call["path"]]


def is_table_answer(call: dict[str, Any]) -> bool:
    return call["status"] == 200 and isinstance(call["answer"], dict) and "metadata" in call["answer"]


@pytest.fixture
def server(tmp_path: Path) -> UnityCatalogServer:
    staged_ids = [call["answer"]["table-id"] for call in TABLE_CALLS if call["path"].endswith("/staging-tables")]
    return UnityCatalogServer(tmp_path, Catalog(catalog_root(), staged_ids), token=None)


def catalog_root() -> str:
    location: str = next(call["answer"]["location"] for call in TABLE_CALLS if call["path"].endswith("/staging-tables"))
    return location.rpartition("/tables/")[0]


def catch_up(state: Catalog, call: dict[str, Any]) -> None:
    """Bring the server to the state in which the call was recorded: create places, tables and commits that
    were not recorded."""
    if call["path"].endswith("/tables") and call["body"]["table-type"] == "MANAGED":
        location = call["body"]["location"]
        state.staging[location] = location.rpartition("/")[2]
    key = ("uc", "s", call["path"].rpartition("/")[2])
    updates = {update["action"]: update for update in (call["body"] or {}).get("updates", [])}
    if call["method"] != "POST" or not updates or call["status"] not in (200, 429):
        return
    if "add-commit" in updates:
        newest = updates["add-commit"]["commit"]["version"] - 1
    else:
        recorded = call["answer"].get("latest-table-version", 0)
        newest = updates.get("set-latest-backfilled-version", {}).get("latest-published-version", recorded)
    if key not in state.tables:
        state.tables[key] = table_of(call["answer"]["metadata"], newest)
    table = state.tables[key]
    if table.latest:  # the first commit of a table may have any version
        for version in range(table.latest + 1, newest + 1):
            table.commits[version], table.latest = {"version": version, "file-name": "not recorded"}, version


def table_of(metadata: dict[str, Any], version: int) -> CatalogTable:
    kind, external = metadata["table-type"], {"min-reader-version": 1, "min-writer-version": 2}
    protocol = unity_catalog.PROTOCOL if kind == "MANAGED" else external
    table = CatalogTable(metadata["table-uuid"], kind, metadata["location"], metadata["columns"], [], protocol, {})
    table.latest = table.published = version
    return table


def test_server_answers_as_the_recorded_one(server: UnityCatalogServer) -> None:
    compared = 0
    for number, call in enumerate(TABLE_CALLS):
        catch_up(server.state, call)
        status, answer = server.answer(call["method"], call["path"], None, call["body"])
        said = f"call {number}: {call['method']} {call['path']}: {answer}"
        assert status == call["status"], said
        if status != 200:
            assert answer["error"]["type"] == call["answer"]["error"]["type"], said
            if "JSON document" not in answer["error"]["message"]:
                assert answer["error"]["message"] == call["answer"]["error"]["message"], said
        elif is_table_answer(call):
            recorded = call["answer"]
            assert answer.get("latest-table-version") == recorded.get("latest-table-version"), said
            assert answer["metadata"]["location"] == recorded["metadata"]["location"], said
            assert answer["metadata"]["columns"] == recorded["metadata"]["columns"], said
        elif "table-id" in call["answer"]:
            assert answer == call["answer"], said
        compared += 1
    assert compared == len(TABLE_CALLS) > 50


@pytest.mark.parametrize("call", [call for call in CALLS if is_table_answer(call)], ids=lambda call: call["path"][-30:])
def test_client_understands_a_recorded_table(call: dict[str, Any]) -> None:
    table = catalog_table(call["answer"], "uc.s.t")
    assert table.table_id == call["answer"]["metadata"]["table-uuid"]
    assert table.newest_version == call["answer"].get("latest-table-version")
    assert table.is_managed == (table.newest_version is not None)
    versions = [commit.version for commit in table.commits]
    assert versions == sorted(commit["version"] for commit in call["answer"].get("commits") or [])


def test_client_understands_recorded_credentials() -> None:
    answers = [call["answer"] for call in TABLE_CALLS if call["path"].endswith("/credentials?operation=READ_WRITE")]
    assert answers
    for answer in answers:
        credential = credential_for(vended_credentials(answer, "t"), answer["storage-credentials"][0]["prefix"], "t")
        assert (credential.options, credential.expires_ms) == ({}, None)
