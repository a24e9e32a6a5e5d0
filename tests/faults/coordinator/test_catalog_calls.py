"""Each request of an operation on a table of Unity Catalog: its answer is lost, or the process is killed. Another client then
finds the operation done once or not at all, and can go on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError
from delta_py.storage import publication
from tests.support.servers.unity_catalog import Failure, UnityCatalogServer

OPTIONS = {"unity.token": "secret-token-of-uc"}
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["delta_py", __name__])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def opened(url: str) -> DeltaTable:
    return DeltaTable(url, storage_options=OPTIONS)


def replace_table(url: str) -> None:
    DeltaTable.create(url, pa.schema({"word": pa.string()}), mode="overwrite", storage_options=OPTIONS)


OPERATIONS: dict[str, Callable[[str], object]] = {
    "create": lambda url: write_delta(url, rows(1, 2), storage_options=OPTIONS),
    "append": lambda url: write_delta(url, rows(3), mode="append", storage_options=OPTIONS),
    "delete": lambda url: opened(url).delete("id = 1"),
    "set property": lambda url: opened(url).alter.set_table_properties({"my.key": "v"}),
    "add column": lambda url: opened(url).alter.add_columns([pa.field("word", pa.string())]),
    "replace": replace_table,
}
BEFORE = [{"id": 1}, {"id": 2}]
AFTER = {
    "create": BEFORE,
    "append": [*BEFORE, {"id": 3}],
    "delete": [{"id": 2}],
    "set property": BEFORE,
    "add column": [{"id": 1, "word": None}, {"id": 2, "word": None}],
    "replace": [],
}


class Trial:
    """An operation on a new table of a server, which fails at one of its requests. Requests are counted from 0."""

    def __init__(self, server: UnityCatalogServer, operation: str, name: str) -> None:
        self.server, self.operation, self.url, self.key = server, operation, server.table_url(name), ("uc", "s", name)
        if operation != "create":
            OPERATIONS["create"](self.url)
        publication.finish()

    def run(self, patch: pytest.MonkeyPatch, number: int, fail: Callable[[], Failure]) -> int:
        """Returns the number of requests. Raises what the operation raises."""
        seen: list[str] = []

        def planned(method: str, path: str) -> Failure | None:
            seen.append(f"{method} {path}")
            return fail() if len(seen) - 1 == number else None

        patch.setattr(self.server, "planned", planned)
        try:
            OPERATIONS[self.operation](self.url)
            publication.finish()
        finally:
            patch.undo()
        return len(seen)

    def check(self, expected: bool | None) -> None:
        """expected: whether the operation was carried out; None if either may be."""
        known = self.server.state.tables.get(self.key)
        if known is None:
            assert self.operation == "create" and not expected
            OPERATIONS["create"](self.url)  # nothing is in the way of another attempt
            assert self.rows() == BEFORE
            return
        table, first = opened(self.url), 0 if self.operation == "create" else 1
        assert table.version == known.latest <= first
        is_done = self.operation == "create" or known.latest == first
        assert expected is None or is_done == expected
        assert self.rows() == (AFTER[self.operation] if is_done else BEFORE)
        assert (table.metadata.configuration.get("my.key") == "v") == (is_done and self.operation == "set property")
        columns = [field["name"] for field in known.columns["fields"]]
        assert columns == table.to_arrow().column_names
        # Another client goes on.
        opened(self.url).alter.set_table_properties({"another.client": "was here"})
        publication.finish()
        newest = opened(self.url)
        assert newest.version == known.latest == known.published == table.version + 1
        assert newest.history()["version"].to_pylist() == list(range(newest.version, -1, -1))

    def rows(self) -> list[dict[str, object]]:
        return sorted(opened(self.url).to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        yield server
        publication.finish()


@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER, Failure.UNKNOWN, Failure.THROTTLED])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_without_an_answer_is_done_once(
    server: UnityCatalogServer, operation: str, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = Trial(server, operation, "counted").run(monkeypatch, -1, lambda: failure)
    assert count >= 2
    for number in range(count):
        trial = Trial(server, operation, f"t{number}")
        trial.run(monkeypatch, number, lambda: failure)
        trial.check(True)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_with_a_refused_request_is_done_once_or_not(
    server: UnityCatalogServer, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = Trial(server, operation, "counted").run(monkeypatch, -1, lambda: Failure.FORBIDDEN)
    for number in range(count):
        trial = Trial(server, operation, f"t{number}")
        try:
            trial.run(monkeypatch, number, lambda: Failure.FORBIDDEN)
        except DeltaError:
            trial.check(None if operation == "replace" else False)  # it opens the table after its commit
        else:
            trial.check(True)


def _in_process(operation: str, url: str) -> None:
    OPERATIONS[operation](url)
    publication.finish()


@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_process_leaves_the_operation_done_once_or_not(
    server: UnityCatalogServer, operation: str, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is killed at each of its requests, before or after it is carried out."""
    count = Trial(server, operation, "counted").run(monkeypatch, -1, lambda: failure)
    processes: list[Any] = []
    for number in range(count):
        trial, seen = Trial(server, operation, f"t{number}"), list[str]()

        def planned(method: str, path: str, number: int = number, seen: list[str] = seen) -> Failure | None:
            seen.append(path)
            if len(seen) - 1 != number:
                return None
            os.kill(processes[-1].pid, signal.SIGKILL)
            return failure

        processes.append(process := _PROCESSES.Process(target=_in_process, args=(operation, trial.url)))
        with monkeypatch.context() as patch:
            patch.setattr(server, "planned", planned)
            process.start()
            process.join(60)
        assert process.exitcode == -signal.SIGKILL
        trial.check(None)
