"""Tables that a ledger coordinates, for tests: the ledger next to them, and its calls, which may fail."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.coordinator import open_coordinator as ledgers
from delta_py.coordinator.ledger import CoordinatorUnavailableError, Ledger
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.errors import DeltaError
from delta_py.object_stores import open_store as stores
from delta_py.object_stores.open_store import open_store
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from tests.support.stores.faulty_store import Fault, FaultyStore

MANAGED = {"delta.feature.catalogManaged": "supported"}


def ledger_url(directory: Path) -> str:
    return f"sqlite://{directory / 'ledger.db'}"


def coordinated(path: Path, url: str, transaction: str | None = None) -> ObjectStore:
    coordinator_options = (
        {"coordinator": url} if transaction is None else {"coordinator": url, "coordinator.transaction": transaction}
    )
    return open_store(str(path), StorageOptions.of(coordinator_options))


def create_coordinated(path: Path, url: str, rows: Mapping[str, list[Any]], **properties: str) -> ObjectStore:
    """A new table that the ledger knows."""
    store = coordinated(path, url)
    named = {name.replace("__", "."): value for name, value in properties.items()}
    write_delta(str(path), pa.table(dict(rows)), store=store, configuration={**MANAGED, **named})
    DeltaTable(str(path), store=store)
    return store


def rows_of(path: Path, url: str, column: str = "id") -> list[Any]:
    values: list[Any] = DeltaTable(str(path), store=coordinated(path, url)).to_arrow()[column].to_pylist()
    return sorted(values)


@contextlib.contextmanager
def clock_ahead(seconds: float) -> Iterator[None]:
    """The clock of a machine that is ahead by this time, or the time that much later."""
    now = time.time_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now() + round(seconds * 1e9))
        yield


class FaultyLedger:
    """A ledger whose calls go through `run`, which may fail them before or after they are carried out."""

    def __init__(self, inner: Ledger, run: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._inner, self._run = inner, run

    @property
    def identity(self) -> str:
        return self._inner.identity

    @property
    def shown(self) -> str:
        return self._inner.shown

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        return self._inner.turn(tables)  # it never fails

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        def failing(*args: Any, **options: Any) -> Any:
            try:
                return self._run(f"ledger {name}", lambda: call(*args, **options))
            except DeltaError:
                raise
            except OSError as error:  # the error that callers of the ledger get if the database cannot be reached
                raise CoordinatorUnavailableError(str(error)) from error

        return failing


class LateLedger:
    """A ledger on a database server after a connection was lost: the first call of one of its methods fails, but the server still
    carries it out, after it has answered other reads, and before any other write."""

    _READS = frozenset(
        {"tail", "tail_in", "inventory", "moment", "version_at", "find", "proposed", "held_reads", "state_of", "moment_of"}
        | {"identity", "shown", "turn"}
    )

    def __init__(self, inner: Ledger, late: str) -> None:
        self._inner, self._late, self._waiting = inner, late, list[Callable[[], Any]]()

    def __getattr__(self, name: str) -> Any:
        if name in self._READS:
            return getattr(self._inner, name)

        def call(*args: Any, **options: Any) -> Any:
            if name == self._late:
                self._late = ""
                self._waiting.append(lambda: getattr(self._inner, name)(*args, **options))
                raise CoordinatorUnavailableError("the connection was lost")
            self.settle()
            return getattr(self._inner, name)(*args, **options)

        return call

    def settle(self) -> None:
        while self._waiting:
            self._waiting.pop()()


class Calls:
    """The calls of all stores and of the ledger, numbered together; one of them fails. after: what others do after that."""

    def __init__(
        self, patch: pytest.MonkeyPatch, url: str, fault: Fault | None, after: Callable[[], None] = lambda: None
    ) -> None:
        counter = FaultyStore(LocalStore("/"), fault)  # counts for all
        self.names = counter.calls

        def run(name: str, action: Callable[[], Any]) -> Any:
            number = len(self.names)
            try:
                return counter.run(name, action)
            finally:
                if fault is not None and number == fault.call:
                    after()

        def local(path: str) -> Any:
            store = FaultyStore(LocalStore(path), fault)
            store.run = run  # type: ignore[method-assign]
            return store

        patch.setattr(stores, "_local_store", local)
        patch.setitem(ledgers._open_ledgers, url, FaultyLedger(open_ledger(url), run))


def call_count(url: str, work: Any) -> int:
    with pytest.MonkeyPatch.context() as patch:
        calls = Calls(patch, url, None)
        work()
        return len(calls.names)
