"""A process's connection to one store: its client, how long requests are repeated, and how many run at the same time.

    connection = connection_of(address.kind, address.account, options)    # the same for all tables of the process
    connection.run("read s3://bucket/key", lambda: client.get("bucket", "key"))
    connection.map(call, items)                                             # in parallel, up to the maximum number of requests

Requests that were not answered are repeated, with growing waits, until their time is over. put_new is not repeated here: its
caller first checks who has written the object.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from delta_py.errors import UnsupportedOperationError
from delta_py.object_stores.client import ObjectClient
from delta_py.release import install_command
from delta_py.remote_requests import RETRY_SECONDS, until_answered
from delta_py.storage.addresses import StoreKind
from delta_py.storage.store_options import StorageOptions

T = TypeVar("T")
U = TypeVar("U")

_MAX_REQUESTS = 32  # requests of one connection at the same time, unless storage.max_requests says otherwise
# For each kind of store: the package of its SDK, and pydelta's extra that installs it.
_EXTRAS = {"s3": ("boto3", "s3"), "gs": ("google-cloud-storage", "gcs"), "az": ("azure-storage-blob", "azure")}


class Connection:
    """Sends requests of a client, only a limited number at the same time. Repeats a request that got no answer, for a limited
    time. sleep, clock: replaced in tests."""

    def __init__(
        self,
        client: ObjectClient,
        options: StorageOptions,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client, self._sleep, self._clock = client, sleep, clock
        self._retry_seconds = options.number("storage.retry_timeout", RETRY_SECONDS)
        requests = int(options.number("storage.max_requests", _MAX_REQUESTS))
        # Callers also send requests from their own threads, so the number of threads alone would not limit the requests.
        self._slots = threading.BoundedSemaphore(requests)
        self._threads = ThreadPoolExecutor(requests, "delta_py-store")

    def once(self, call: Callable[[], T]) -> T:
        """Send one request, without repeating it. Raises what the client raises (client.py)."""
        with self._slots:
            return call()

    def run(self, what: str, call: Callable[[], T]) -> T:
        """Send one request, and repeat it until it is answered. what: the request in words, for messages. Raises
        StoreUnavailableError when the time is over, otherwise what the client raises."""
        seconds, sleep, clock = self._retry_seconds, self._sleep, self._clock
        return until_answered(what, lambda: self.once(call), seconds=seconds, sleep=sleep, clock=clock)

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run the call in another thread. Calls must not wait for other calls of this connection's threads."""
        return self._threads.submit(call)

    def map(self, call: Callable[[U], T], items: Iterable[U]) -> list[T]:
        """Run all calls in parallel; returns the results in the order of the items. Raises the first error."""
        futures = [self.submit(lambda item=item: call(item)) for item in items]  # type: ignore[misc]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:  # after an error the calls that have not begun are not needed
                future.cancel()


_connections: dict[tuple[StoreKind, str, StorageOptions], Connection] = {}
_lock = threading.Lock()


def connection_of(kind: StoreKind, account: str, options: StorageOptions) -> Connection:
    """The connection is made at the first call in a process. Raises UnsupportedOperationError if the store's SDK is not
    installed, and InvalidOptionError for invalid options."""
    key = (kind, account, options)
    with _lock:
        if key not in _connections:
            _connections[key] = Connection(_client(kind, account, options), options)
        return _connections[key]


def drop_connection(kind: StoreKind, account: str, options: StorageOptions) -> None:
    """Forget a connection whose credentials are replaced. Requests and files that use it go on."""
    with _lock:
        _connections.pop((kind, account, options), None)


def _forget_connections_of_parent() -> None:
    """Drop the parent's connections in a forked process, which shares their sockets with the parent and has none of their
    threads. The lock is a new one, because a thread of the parent may have held it during the fork."""
    global _lock
    _connections.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_connections_of_parent)


def _client(kind: StoreKind, account: str, options: StorageOptions) -> ObjectClient:
    """A client for a kind of store. account: the storage account of an Azure URL; empty for other stores. The store's SDK is
    imported here, when a table needs it."""
    try:
        match kind:
            case "s3":
                from delta_py.object_stores.s3 import S3Client

                return S3Client(options)
            case "gs":
                from delta_py.object_stores.gcs import GcsClient

                return GcsClient(options)
            case "az":
                from delta_py.object_stores.azure import AzureClient

                return AzureClient(account, options)
    except ModuleNotFoundError as error:
        package, extra = _EXTRAS[kind]
        raise UnsupportedOperationError(
            f"Tables in this store need the package {package}, which is not installed ({error}). Install it where pydelta runs, "
            f"on the executors too: {install_command(extra)}.",
            package=package,
            extra=extra,
        ) from error
