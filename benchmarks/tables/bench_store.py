"""A store to measure: an emulator of S3 behind a proxy that delays requests, and records them with their times.

    with bench_store() as store:
        store.send(directory, "t")                  # without the proxy
        with store.asked("t") as asked: ...         # Asked.of(asked): the requests of other processes about the table

Other processes use the proxy: `environment` has its address.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from delta_py.object_stores.open_store import open_store
from delta_py.storage.store import ObjectStore
from tests.support.servers.cutting_proxy import CuttingProxy, Exchange, Request
from tests.support.servers.emulator_programs import ToolError
from tests.support.servers.emulators import KINDS, Emulator, boto3_client, running

_BUCKET = "bench"
_COMMIT = re.compile(r"/_delta_log/\d{20}\.json$")


@contextlib.contextmanager
def bench_store() -> Iterator[BenchStore]:
    """Raises SystemExit if the emulator is not installed."""
    try:
        with running(KINDS["s3"]) as emulator, TimedProxy(emulator.port) as proxy:
            emulator.make_container(_BUCKET)
            yield BenchStore(emulator, proxy)
    except ToolError as error:
        raise SystemExit(str(error)) from error


@dataclass(frozen=True)
class BenchStore:
    emulator: Emulator
    proxy: TimedProxy

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which stores_run.py and source_run.py reach it through the proxy."""
        return {"PYDELTA_BENCH_STORE": json.dumps(self.emulator.settings(self.proxy.endpoint))}

    def url(self, table: str) -> str:
        return f"s3://{_BUCKET}/{table}"

    def open(self, table: str) -> ObjectStore:
        """Without the proxy."""
        return open_store(self.url(table), self.emulator.options())

    def send(self, directory: Path, table: str) -> None:
        """Upload the files of a directory as a table, without the proxy."""
        client: Any = boto3_client("s3", self.emulator.endpoint)
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                client.put_object(Bucket=_BUCKET, Key=f"{table}/{path.relative_to(directory)}", Body=path.read_bytes())

    @contextlib.contextmanager
    def delayed(self, seconds: float) -> Iterator[None]:
        """Delay each request by this time."""
        self.proxy.latency_seconds = seconds
        try:
            yield
        finally:
            self.proxy.latency_seconds = 0.0

    @contextlib.contextmanager
    def asked(self, table: str) -> Iterator[list[TimedExchange]]:
        """The exchanges about one table that end within the context; the list is complete when the context ends."""
        exchanges: list[TimedExchange] = []
        begin = len(self.proxy.timed)
        yield exchanges
        exchanges += [timed for timed in self.proxy.timed[begin:] if _is_about(timed.exchange.request, table)]


# ---------------------------------------------------------------- what was asked


@dataclass(frozen=True)
class TimedExchange:
    """begin, end: on the clock of time.monotonic."""

    exchange: Exchange
    begin: float
    end: float


class TimedProxy(CuttingProxy):
    """timed: exchanges in the order of the answers."""

    def __init__(self, upstream_port: int) -> None:
        super().__init__(upstream_port)
        self.timed: list[TimedExchange] = []

    def handle(self, request: Request, connection: Any) -> None:
        begin = time.monotonic()
        super().handle(request, _Noting(connection, lambda: self._note(request, begin)))

    def _note(self, request: Request, begin: float) -> None:
        exchange = next(exchange for exchange in reversed(self.exchanges) if exchange.request is request)
        self.timed.append(TimedExchange(exchange, begin, time.monotonic()))


class _Noting:
    """A connection to a client. It calls `note` before it sends an answer, so the client's next request comes later."""

    def __init__(self, connection: Any, note: Callable[[], None]) -> None:
        self._connection, self._note = connection, note

    def answer(self, answer: Any) -> None:
        self._note()
        self._connection.answer(answer)


@dataclass(frozen=True)
class Asked:
    """The requests of an operation on a table. log, data: requests by kind, for files of the log and others, up to the commit;
    then the commit, and the requests after it. round_trips: how many requests had to wait for one another."""

    log: Counter[str]
    data: Counter[str]
    commit: Counter[str]
    afterwards: Counter[str]
    down_bytes: int
    up_bytes: int
    round_trips: int

    @classmethod
    def of(cls, timed: Sequence[TimedExchange]) -> Asked:
        exchanges = [each.exchange for each in timed]
        commits = [place for place, exchange in enumerate(exchanges) if _is_commit(exchange.request)]
        first, end = (commits[0], commits[-1] + 1) if commits else (len(exchanges), len(exchanges))
        return cls(
            _kinds(exchange for exchange in exchanges[:first] if _is_of_log(exchange.request)),
            _kinds(exchange for exchange in exchanges[:first] if not _is_of_log(exchange.request)),
            _kinds(exchanges[first:end]),
            _kinds(exchanges[end:]),
            sum(exchange.answer_bytes for exchange in exchanges),
            sum(len(exchange.request.body) for exchange in exchanges),
            round_trips([(each.begin, each.end) for each in timed]),
        )


def round_trips(spans: Sequence[tuple[float, float]]) -> int:
    """The largest number of requests in a chain, each of which began after the answer of the one before."""
    count, last_end = 0, float("-inf")
    for begin, end in sorted(spans, key=lambda span: span[1]):
        if begin >= last_end:
            count, last_end = count + 1, end
    return count


def _kinds(exchanges: Iterable[Exchange]) -> Counter[str]:
    return Counter(_kind(exchange.request) for exchange in exchanges)


def _kind(request: Request) -> str:
    return "LIST" if request.method == "GET" and "list-type=2" in request.target else request.method


def _is_commit(request: Request) -> bool:
    return request.method == "PUT" and _COMMIT.search(unquote(request.target)) is not None


def _is_of_log(request: Request) -> bool:
    return "_delta_log" in unquote(request.target)


def _is_about(request: Request, table: str) -> bool:
    target = unquote(request.target)
    return target.startswith(f"/{_BUCKET}/{table}/") or f"prefix={table}/" in target
