"""Writers, readers and publishers of a table that Unity Catalog manages, under a schedule (schedules.py): coordinated_commits.py
with the catalog's contract instead of a ledger's.

    model = CatalogModel(directory, monkeypatch)
    model.run(seed)

The catalog is the state of the test server. Each request is a turn, whose answer may be lost; requests may also be throttled or
refused for a while. Another client, which is not pydelta, commits and publishes as delta-spark does.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from delta_py import DeltaTable
from delta_py.coordinator.unity_ledger import UnityLedger
from delta_py.errors import DeltaConcurrentModificationException
from delta_py.log.log_writer import commit_bytes
from delta_py.object_stores.catalog_store import CatalogStore
from delta_py.protocol.paths import LOG_DIRECTORY, STAGED_DIRECTORY, commit_file_name, staged_commit_name
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.local import LocalStore
from delta_py.unity import catalog_answers
from delta_py.unity.catalog_errors import CatalogObjectNotFoundError, CatalogRefusedError, CatalogUnavailableError
from delta_py.unity.table_access import TableAccess
from tests.support.faults.coordinated_commits import UNREADABLE, CoordinatedModel, Told, added
from tests.support.faults.schedules import Faults, Schedule, SimulatedStore
from tests.support.servers import unity_catalog
from tests.support.servers.unity_catalog import Catalog, UnityCatalogServer
from tests.support.servers.unity_schemas import Refusal
from tests.support.tables.catalog_tables import create_managed

NAME = ("uc", "s", "t")
SHOWN = "unity://simulated/uc.s.t"
_REFUSED = ((429, "TooManyRequestsException"), (403, "PermissionDeniedException"), (401, "UNAUTHENTICATED"))


class _SimulatedAccess:
    """TableAccess without a server. state: of the test server. schedule: None outside of schedules. publish: what another client
    does in half of the cases in which a commit has no answer."""

    is_shared = False

    def __init__(self, state: Catalog, schedule: Schedule | None = None, publish: Callable[[], None] = lambda: None) -> None:
        self._state, self._schedule, self._publish = state, schedule, publish

    def load(self) -> catalog_answers.CatalogTable:
        answer = self._call("ledger tail", lambda: self._state.table(NAME).answer())
        return catalog_answers.catalog_table(answer, "uc.s.t")

    def update(self, table_id: str, updates: Sequence[Mapping[str, Any]]) -> None:
        body = {"requirements": [{"type": "assert-table-uuid", "uuid": table_id}], "updates": list(updates)}
        is_commit = any(update["action"] == "add-commit" for update in updates)
        self._call("ledger ratify" if is_commit else "ledger acknowledge", lambda: self._state.update(NAME, body))

    def _call(self, name: str, action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        def answer() -> dict[str, Any] | Refusal:  # a refusal is an answer, and can be lost
            try:
                return cast(dict[str, Any], json.loads(json.dumps(action())))
            except Refusal as refusal:
                return refusal

        self._maybe_refuse()
        try:
            answered = answer() if self._schedule is None else self._schedule.call(name, answer)
        except OSError as error:
            if name == "ledger ratify" and self._schedule is not None and self._schedule.draw.random() < 0.5:
                self._publish()
            raise CatalogUnavailableError(str(error)) from error
        if isinstance(answered, Refusal):
            if answered.status == 404:
                raise CatalogObjectNotFoundError(answered.message, kind=answered.kind)
            raise CatalogRefusedError(answered.message, status=answered.status, kind=answered.kind)
        return answered

    def _maybe_refuse(self) -> None:
        schedule = self._schedule
        if schedule is not None and schedule.now is not None and schedule.draw.random() < schedule.faults.failed:
            status, kind = schedule.draw.choice(_REFUSED)
            raise CatalogRefusedError("refused for a while", status=status, kind=kind)


class CatalogModel(CoordinatedModel):
    unreadable = (*UNREADABLE, CatalogRefusedError, CatalogObjectNotFoundError)

    def _create(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[TableConfig, str, bytes]:
        self._monkeypatch, self._state = monkeypatch, Catalog(f"file://{path}")
        server = cast(UnityCatalogServer, SimpleNamespace(state=self._state))
        directory = create_managed(server, "t", pa.table({"id": [1]}))
        self._created = self._state.tables[NAME]
        store = CatalogStore(LocalStore(str(directory)), self._ledger_of(None))
        log = directory / LOG_DIRECTORY / commit_file_name(0)
        return DeltaTable("unused", store=store).snapshot.config, self._created.table_id, log.read_bytes()

    def _ledger_of(self, schedule: Schedule | None) -> UnityLedger:
        return UnityLedger(
            SHOWN, self._created.table_id, cast(TableAccess, _SimulatedAccess(self._state, schedule, self._publish_all))
        )

    def _store(self) -> CatalogStore:
        run = self._run
        return CatalogStore(SimulatedStore(run.schedule, run.objects, links=run.links), self._ledger_of(run.schedule))

    def _begin(self) -> None:
        self._state.tables[NAME] = copy.deepcopy(self._created)
        self._monkeypatch.setattr(unity_catalog, "MOST_UNPUBLISHED", self._run.schedule.draw.choice((2, 3, 10)))

    def _end(self) -> None:
        pass

    def _check_staged(self, staged: set[str]) -> None:
        """Staged commits are kept if they were ratified, and deleted if not."""
        objects = self._run.objects
        for path in staged:
            version = int(path.removeprefix(f"{STAGED_DIRECTORY}/").partition(".")[0])
            assert objects[path][0] == objects[f"{LOG_DIRECTORY}/{commit_file_name(version)}"][0], f"{path} is no version"
        for told in self._run.commits:
            assert told.error is None or isinstance(told.error, DeltaConcurrentModificationException), told.error

    # ------------------------------------------------------------ other clients

    def _publish_all(self) -> None:
        """As a client whose calls all come between two calls of the others."""
        table = self._state.tables.get(NAME)
        if table is None:
            return
        objects = self._run.objects
        for version in sorted(table.unpublished):
            staged = objects[f"{STAGED_DIRECTORY}/{table.commits[version]['file-name']}"]
            assert objects.setdefault(f"{LOG_DIRECTORY}/{commit_file_name(version)}", staged)[0] == staged[0]
        update = {"action": "set-latest-backfilled-version", "latest-published-version": table.latest}
        self._state.update(NAME, {"updates": [update]})

    def _others(self) -> None:
        if self._run.schedule.draw.random() < 0.5:
            self._rename_for_a_while()
        else:
            for _ in range(3):
                with contextlib.suppress(*self.unreadable):
                    self._commit_as_another_client()

    def _rename_for_a_while(self) -> None:
        schedule = self._run.schedule
        if schedule.faults == Faults():
            return
        table = self._state.tables.pop(NAME)
        try:
            for _ in range(schedule.draw.randint(1, 6)):
                schedule.turn()
        finally:
            self._state.tables[NAME] = table

    def _commit_as_another_client(self) -> None:
        """Publish all commits, then commit and report the publication in one request, then publish the new commit."""
        run, store, access = self._run, self._store(), _SimulatedAccess(self._state, self._run.schedule)
        files, newest = store._file_store, self._look(store)
        for commit in access.load().commits:
            with contextlib.suppress(FileExistsError):
                files.put_if_absent(
                    f"{LOG_DIRECTORY}/{commit_file_name(commit.version)}", files.read(f"{STAGED_DIRECTORY}/{commit.name}")
                )
        prepared = self._prepared(newest)
        told = Told(prepared.txn_id)
        run.commits.append(told)
        data = commit_bytes([*prepared.actions(self._clock_ms()), added(f"file-{len(run.commits)}")])
        name = staged_commit_name(newest + 1, f"another-client-{len(run.commits)}")
        files.put(f"{STAGED_DIRECTORY}/{name}", data)
        info = next(json.loads(line)["commitInfo"] for line in data.splitlines() if line.startswith(b'{"commitInfo"'))
        described = {
            "version": newest + 1,
            "timestamp": info["inCommitTimestamp"],
            "file-name": name,
            "file-size": len(data),
            "file-modification-timestamp": run.clock_ms,
        }
        update = {"action": "set-latest-backfilled-version", "latest-published-version": newest}
        try:
            access.update(self._created.table_id, [{"action": "add-commit", "commit": described}, update])
        except CatalogUnavailableError:
            told.outcome = "unknown"
        except CatalogRefusedError:
            told.outcome = "failed"
            files.delete(f"{STAGED_DIRECTORY}/{name}")
        else:
            told.outcome, told.version, told.data = "committed", newest + 1, data
            run.newest_told = max(run.newest_told, newest + 1)
            files.put_if_absent(f"{LOG_DIRECTORY}/{commit_file_name(newest + 1)}", data)
