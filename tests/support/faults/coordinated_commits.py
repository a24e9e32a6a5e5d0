"""Writers, readers and publishers of one coordinated table under a schedule (schedules.py), and what must hold whatever happens.

    model = CoordinatedModel(directory, monkeypatch)
    model.run(seed)          # Outcome counts; AssertionError where a promise is broken

What is run is the commit path of pydelta over a store in memory and a ledger of SQLite in memory.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from delta_py import DeltaTable
from delta_py.commit import committer
from delta_py.commit.attempts import Attempts, RetryPolicy, read_winning_commit
from delta_py.commit.prepared import PreparedCommit, ReadSet, WinningCommit
from delta_py.coordinator import open_coordinator
from delta_py.coordinator.ledger import RatificationUnknownError
from delta_py.coordinator.sqlite_ledger import SqliteLedger
from delta_py.errors import CommitOutcomeUnknownError, DeltaError
from delta_py.log.coordination import FEATURE, IDENTITY_PROPERTY, check_and_register
from delta_py.log.log_writer import LogWriter, commit_bytes
from delta_py.protocol.actions import AddFile, RemoveFile
from delta_py.protocol.paths import LOG_DIRECTORY, STAGED_DIRECTORY, LogKind, commit_file_name, parse_log_name
from delta_py.protocol.table_config import TableConfig
from delta_py.storage import publication
from delta_py.storage.coordinated import CoordinatedStore
from tests.support.faults.schedules import Faults, Process, Schedule, SimulatedStore, Turns
from tests.support.stores.coordination import FaultyLedger, coordinated, create_coordinated

URL = "sqlite:///simulated"
UNREADABLE: tuple[type[Exception], ...] = (OSError, RatificationUnknownError)
"""Errors with which a table may refuse to be read under faults."""
FIRST_FILES = ("a", "b")
MOST_ACTORS = 12
_POLICY = RetryPolicy(unsettled_attempts=4, first_wait_seconds=0.0)


class _LedgerInMemory(SqliteLedger):
    """One connection is enough where one actor runs at a time, and each call is one transaction."""

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # nothing depends on turns: the schedule has actors go as it likes


@dataclass
class Told:
    """What a writer was told of its commit. version, data: of one that stands. error: of one that failed."""

    txn_id: str
    outcome: str = "died"
    version: int | None = None
    data: bytes = b""
    error: DeltaError | None = None


@dataclass
class _Run:
    schedule: Schedule
    objects: dict[str, tuple[bytes, int]]
    links: bool
    clock_ms: int
    commits: list[Told] = field(default_factory=list)
    seen: dict[int, bytes] = field(default_factory=dict)
    parsed: dict[int, WinningCommit] = field(default_factory=dict)
    newest_told: int = 0


class CoordinatedModel:
    unreadable = UNREADABLE

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._config, self._table_id, first = self._create(directory / "table", monkeypatch)
        self._plain = _uncoordinated(self._config)
        self._first = first + commit_bytes(map(added, FIRST_FILES))
        self._pool = ThreadPoolExecutor(MOST_ACTORS)
        self._run: _Run
        monkeypatch.setattr(committer, "threading", SimpleNamespace(Lock=lambda: Turns(self._run.schedule)))
        monkeypatch.setattr(committer, "_committer_of", self._committer_of)
        monkeypatch.setattr(publication, "publish_later", self._publish_later)
        monkeypatch.setattr(RetryPolicy, "wait_seconds", lambda *_, **__: 0.0)

    def _create(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[TableConfig, str, bytes]:
        """Create the table. Returns its state, its id, and the content of its version 0."""
        self._ledger = _LedgerInMemory("simulated")
        monkeypatch.setitem(open_coordinator._open_ledgers, URL, self._ledger)
        create_coordinated(path, URL, {"id": [1]})
        snapshot = DeltaTable(str(path), store=coordinated(path, URL)).snapshot
        self._ledger.forget(str(path.resolve()))
        return snapshot.config, snapshot.metadata.id, (path / LOG_DIRECTORY / commit_file_name(0)).read_bytes()

    def close(self) -> None:
        self._pool.shutdown()

    def _committer_of(self, *key: str) -> committer._Committer:
        memory = self._process.memory
        if key not in memory:
            memory[key] = committer._Committer()
        found: committer._Committer = memory[key]
        return found

    def _publish_later(self, store: CoordinatedStore) -> None:
        self._process.memory["to publish"] = store

    @property
    def _process(self) -> Process:
        assert self._run.schedule.now is not None
        return self._run.schedule.now.process

    def _store(self) -> CoordinatedStore:
        run = self._run
        return CoordinatedStore(SimulatedStore(run.schedule, run.objects, links=run.links), URL)

    # ------------------------------------------------------------ one schedule

    def run(self, seed: int) -> Counter[str]:
        """How many commits had which outcome, and how many calls there were."""
        schedule = Schedule(seed)
        draw = schedule.draw
        self._run = _Run(schedule, {f"{LOG_DIRECTORY}/{commit_file_name(0)}": (self._first, 0)}, draw.random() < 0.5, 1_000)
        self._begin()
        try:
            for process in [schedule.process() for _ in range(draw.randint(1, 3))]:
                for _ in range(draw.randint(1, 2)):
                    process.run(partial(self._write, draw.randint(1, 2)))
                process.run(self._publish)
            if draw.random() < 0.5:
                schedule.process().run(self._read)
            if draw.random() < 0.3:
                schedule.process().run(self._checkpoint)
            if draw.random() < 0.3:
                schedule.process().run(self._others)
            schedule.go(self._pool, MOST_ACTORS)
            schedule.settle()
            self._check_after_recovery()
        finally:
            schedule.now = None
            self._end()
        return Counter(told.outcome for told in self._run.commits) + Counter(calls=schedule.calls, died=schedule.has_died)

    def _begin(self) -> None:
        """The ledger knows the table, with version 0 alone."""
        open_coordinator._open_ledgers[URL] = FaultyLedger(self._ledger, self._run.schedule.call)
        self._ledger.register(self._store().place, 0, self._table_id)

    def _end(self) -> None:
        self._ledger.forget(self._store().place)

    # ------------------------------------------------------------ actors

    def _others(self) -> None:
        """What else happens to the table, in a third of the schedules."""
        self._leave_or_enter()

    def _write(self, count: int) -> None:
        for _ in range(count):
            with contextlib.suppress(*self.unreadable):  # the table could not be read
                self._commit()

    def _commit(self) -> None:
        run, store = self._run, self._store()
        newest, config = self._open(store)
        takes = run.schedule.draw.choice((None, None, *FIRST_FILES))
        if takes is not None and any(remove.path == takes for v in range(newest + 1) for remove in self._parsed(v).removes):
            takes = None
        prepared = replace(
            self._prepared(newest),
            adds=(added(f"file-{len(run.commits)}"),),
            removes=() if takes is None else (_remove(takes),),
            reads=ReadSet() if takes is None else ReadSet(paths=frozenset({takes})),
        )
        self._settle(store, config, prepared)

    def _leave_or_enter(self) -> None:
        """The table needs its coordinator no more, and needs it again."""
        for _ in range(self._run.schedule.draw.randint(1, 3)):
            store = self._store()
            try:
                newest, config = self._open(store)
                other = self._plain if config is self._config else self._config
                prepared = replace(self._prepared(newest), protocol=other.protocol, metadata=other.metadata)
                self._settle(store, other, prepared)
                self._open(store)
            except (OSError, RatificationUnknownError):
                continue

    def _prepared(self, newest: int) -> PreparedCommit:
        return PreparedCommit(
            newest + 1,
            newest,
            f"txn-{len(self._run.commits)}",
            {"operation": "WRITE"},
            in_commit_timestamps=True,
            previous_timestamp_ms=self._parsed(newest).timestamp_ms,
        )

    def _settle(self, store: CoordinatedStore, config: TableConfig, prepared: PreparedCommit) -> None:
        run, told = self._run, Told(prepared.txn_id)
        run.commits.append(told)
        attempts = Attempts(store, _POLICY, self._clock_ms, lambda _: None)
        try:
            done, actions = committer.commit_prepared(attempts, LogWriter(store, config), prepared, [])
        except CommitOutcomeUnknownError:
            told.outcome = "unknown"
        except DeltaError as error:
            told.outcome, told.error = "failed", error
        else:
            told.outcome, told.version, told.data = "committed", done.version, commit_bytes(actions)
            run.newest_told = max(run.newest_told, done.version)

    def _parsed(self, version: int) -> WinningCommit:
        parsed = self._run.parsed
        if version not in parsed:
            parsed[version] = WinningCommit.parse(version, self._run.seen[version])
        return parsed[version]

    def _open(self, store: CoordinatedStore) -> tuple[int, TableConfig]:
        """As Snapshot.load does it."""
        while True:
            newest = self._look(store)
            protocol = next(one for v in range(newest, -1, -1) if (one := self._parsed(v).protocol) is not None)
            config = self._config if protocol == self._config.protocol else self._plain
            if not check_and_register(store, config, newest, is_newest=True):
                return newest, config

    def _clock_ms(self) -> int:
        """Of machines that do not agree."""
        self._run.clock_ms += 1
        return self._run.clock_ms + self._run.schedule.draw.choice((0, 0, 50, -50))

    def _publish(self) -> None:
        memory = self._process.memory
        for _ in range(self._run.schedule.draw.randint(0, 6)):
            self._run.schedule.turn()
            store = memory.pop("to publish", None)
            if store is not None:
                store.publish()

    def _read(self) -> None:
        store, newest = self._store(), 0
        for _ in range(4):
            try:
                found, _ = self._open(store)
            except self.unreadable:
                continue
            assert found >= newest, f"a reader saw version {newest}, and then {found}"
            newest = found

    def _checkpoint(self) -> None:
        """A checkpoint must never speak of what is not published."""
        run, store = self._run, self._store()
        for _ in range(2):
            try:
                newest = self._look(store)
                store.put(f"{LOG_DIRECTORY}/{newest:020}.checkpoint.parquet", b"")
            except (OSError, DeltaError):
                continue
            missing = [v for v in range(newest + 1) if f"{LOG_DIRECTORY}/{commit_file_name(v)}" not in run.objects]
            assert not missing, f"a checkpoint of {newest}, and {missing} are not published"

    def _look(self, store: CoordinatedStore) -> int:
        """The newest version of a listing. All versions are read once, whoever reads them: each is one for ever."""
        run, told = self._run, self._run.newest_told
        names = [parse_log_name(info.path.rpartition("/")[2]) for info in store.list_from(LOG_DIRECTORY)]
        versions = [name.version for name in names if name is not None and name.kind is LogKind.COMMIT]
        assert versions == list(range(len(versions))), f"a listing has the versions {versions}"
        assert versions[-1] >= told, f"version {told} was committed, and a later listing ends with {versions[-1]}"
        for version in versions:
            if version not in run.seen or version >= versions[-1] - 1:
                try:
                    data = store.read(f"{LOG_DIRECTORY}/{commit_file_name(version)}")
                except FileNotFoundError as error:
                    raise AssertionError(f"version {version} is listed, and cannot be read") from error
                assert run.seen.setdefault(version, data) == data, f"version {version} has changed"
        return versions[-1]

    # ------------------------------------------------------------ what must hold

    def _check_after_recovery(self) -> None:
        run, store = self._run, self._store()
        newest = self._look(store)
        store.publish()  # as the next writer of the table does
        tail = store.tail()
        assert tail is None or (tail.commits == () and tail.version == newest), tail
        published = {key for key in run.objects if key.startswith(f"{LOG_DIRECTORY}/") and key.endswith(".json")}
        staged = {key for key in published if key.startswith(STAGED_DIRECTORY)}
        assert published - staged == {f"{LOG_DIRECTORY}/{commit_file_name(version)}" for version in range(newest + 1)}
        commits = [read_winning_commit(store, version) for version in range(newest + 1)]
        assert all(run.objects[f"{LOG_DIRECTORY}/{commit_file_name(v)}"][0] == data for v, data in run.seen.items())
        versions: dict[str | None, int] = {}
        for commit in commits[1:]:
            assert commit.txn_id not in versions, f"{commit.txn_id} is twice in the log"
            versions[commit.txn_id] = commit.version
        for told in run.commits:
            if told.outcome == "committed":
                assert versions.get(told.txn_id) == told.version, f"{told} is version {versions.get(told.txn_id)}"
                assert run.objects[f"{LOG_DIRECTORY}/{commit_file_name(told.version)}"][0] == told.data
            elif told.outcome == "failed":
                assert told.txn_id not in versions, f"{told} is version {versions[told.txn_id]}"
        assert versions.keys() <= {told.txn_id for told in run.commits}
        taken = Counter(remove.path for commit in commits for remove in commit.removes)
        assert all(count == 1 for count in taken.values()), f"a file was taken twice: {taken}"
        times = [commit.timestamp_ms for commit in commits]
        assert all(time is not None for time in times) and times == sorted(set(times)), times  # type: ignore[type-var]
        if run.schedule.faults == Faults():
            self._check_staged(staged)
            assert {told.outcome for told in run.commits} <= {"committed", "failed"}


    def _check_staged(self, staged: set[str]) -> None:
        """What may be staged after a schedule without faults."""
        assert not staged, f"{staged} were left"


def _uncoordinated(config: TableConfig) -> TableConfig:
    protocol, metadata = config.protocol, config.metadata
    reader, writer = (frozenset(names or ()) - {FEATURE} for names in (protocol.reader_features, protocol.writer_features))
    properties = {name: value for name, value in metadata.configuration.items() if name != IDENTITY_PROPERTY}
    return TableConfig(
        replace(protocol, reader_features=reader, writer_features=writer), replace(metadata, configuration=properties)
    )


def added(name: str) -> AddFile:
    return AddFile(name, {}, size_bytes=1, modification_time_ms=0)


def _remove(name: str) -> RemoveFile:
    return RemoveFile(name, deletion_timestamp_ms=0)
