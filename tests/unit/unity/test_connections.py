"""Connections to a Unity Catalog server: kept for later requests, by threads and after a fork, and replaced when they end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.storage import publication
from delta_py.unity.access_tokens import ClientToken, FixedToken
from delta_py.unity.catalog_errors import CatalogUnavailableError
from delta_py.unity.rest_client import RestClient
from delta_py.unity.server_urls import table_of
from delta_py.unity.table_access import AccessOptions, table_access
from tests.support.servers.unity_catalog import Failure, UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed

CONFIG = "/delta/v1/config"
STAGING = "/delta/v1/catalogs/uc/schemas/s/staging-tables"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        yield server
        publication.finish()


def client(server: UnityCatalogServer) -> RestClient:
    return RestClient(server.uri, FixedToken(server.token), retry_seconds=5)


def test_table_is_opened_with_one_request(server: UnityCatalogServer) -> None:
    create_managed(server, "t", pa.table({"id": [1]}))
    for number in range(1, 4):
        DeltaTable(server.table_url("t"), storage_options=server.options)
        assert len(server.requests) == number
    assert len(server.connections) == 1


def test_opened_table_sees_commits_that_come_later(server: UnityCatalogServer) -> None:
    create_managed(server, "t", pa.table({"id": [1]}))
    table = DeltaTable(server.table_url("t"), storage_options=server.options)
    write_delta(server.table_url("t"), pa.table({"id": [2]}), mode="append", storage_options=server.options)
    table.update_incremental()
    assert table.version == 1


def test_requests_share_a_connection(server: UnityCatalogServer) -> None:
    requests = client(server)
    for _ in range(5):
        requests.get(CONFIG)
        requests.post(STAGING, {"name": "t"})
    assert len(server.requests) == 10 and len(server.connections) == 1


def test_threads_have_connections_of_their_own(server: UnityCatalogServer) -> None:
    requests = client(server)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: requests.get(CONFIG), range(100)))
    assert all(answer["protocol-version"] == "1.0" for answer in answers)
    assert len(server.connections) <= 4


def test_connection_that_the_server_closed_is_replaced(server: UnityCatalogServer) -> None:
    requests = client(server)
    requests.get(CONFIG)
    for number in (1, 2):
        server.close_connections()
        time.sleep(0.1)
        requests.post(STAGING, {"name": "t"})
        assert len(server.state.staging) == number


def test_change_is_not_sent_again_over_another_connection(server: UnityCatalogServer) -> None:
    requests = client(server)
    requests.get(CONFIG)
    server.fail("POST", STAGING, Failure.LOST_ANSWER)
    with pytest.raises(CatalogUnavailableError):
        requests.post(STAGING, {"name": "t"})
    assert len(server.state.staging) == 1


def test_forked_process_uses_no_connection_of_its_parent(server: UnityCatalogServer) -> None:
    requests = client(server)
    requests.get(CONFIG)
    child = os.fork()
    if not child:
        try:
            requests.get(CONFIG)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    requests.get(CONFIG)
    assert len(server.requests) == 3 and len(server.connections) == 2


def test_forked_process_does_not_wait_for_locks_of_its_parent(server: UnityCatalogServer) -> None:
    access = table_access(table_of(server.table_url("t"), {}), AccessOptions())
    token = ClientToken(server.uri, "me", "secret")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with access._lock, token._lock:
            held.set()
            done.wait(30)

    threading.Thread(target=hold).start()
    held.wait(30)
    child = os.fork()
    if not child:
        os._exit(0 if access._lock.acquire(timeout=5) and token._lock.acquire(timeout=5) else 1)
    done.set()
    assert os.waitpid(child, 0)[1] == 0
