"""Credentials that the catalog hands out: requested once, renewed in time, and in no message."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py.object_stores import connection
from delta_py.object_stores.open_store import open_store
from delta_py.object_stores.remote import RemoteStore
from delta_py.object_stores.table_store import TableStore
from delta_py.object_stores.vended_store import VendedStore
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.unity import table_access
from delta_py.unity.access_tokens import FixedToken
from delta_py.unity.catalog_errors import CatalogAnswerError, CatalogRefusedError, CatalogUnavailableError
from delta_py.unity.rest_client import RestClient
from delta_py.unity.server_urls import table_of
from delta_py.unity.table_access import TableAccess
from tests.support.servers.unity_catalog import CatalogTable, Failure, UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed

LOCATION = "s3://bucket/t"
MINUTE = 60_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path) as server:
        create_managed(server, "t", pa.table({"id": [1]}))
        server.state.tables["uc", "s", "t"].location = LOCATION
        yield server


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000_000

    def __call__(self) -> int:
        return self.now_ms


def vend(server: UnityCatalogServer, secret: str, expires_ms: int | None, prefix: str = LOCATION) -> None:
    config = {"s3.access-key-id": "id", "s3.secret-access-key": secret, "s3.session-token": "session"}
    server.state.credentials = [{"prefix": prefix, "operation": "READ_WRITE", "config": config, "expiration-time-ms": expires_ms}]


def access(server: UnityCatalogServer, clock: Clock, retry_seconds: float = 0.2) -> TableAccess:
    client = RestClient(server.uri, FixedToken(server.token), retry_seconds=retry_seconds)
    return TableAccess(client, table_of(server.table_url("t"), {}), clock_ms=clock)


def secret_of(options: Any) -> str:
    return str(options["s3.secret_access_key"])


def credential_requests(server: UnityCatalogServer) -> int:
    return sum(request.endswith("/credentials") for request in server.requests)


def test_credentials_are_cached_until_shortly_before_expiry(server: UnityCatalogServer) -> None:
    clock = Clock()
    table = access(server, clock)
    vend(server, "first", clock.now_ms + 60 * MINUTE)
    with ThreadPoolExecutor(8) as threads:
        options = list(threads.map(lambda _: table.storage_options(LOCATION), range(50)))
    assert {secret_of(option) for option in options} == {"first"} and credential_requests(server) == 1
    vend(server, "second", clock.now_ms + 120 * MINUTE)
    clock.now_ms += 54 * MINUTE
    assert secret_of(table.storage_options(LOCATION)) == "first"
    clock.now_ms += 2 * MINUTE
    assert secret_of(table.storage_options(LOCATION)) == "second"
    assert credential_requests(server) == 2


def test_credentials_without_an_end_are_not_renewed(server: UnityCatalogServer) -> None:
    clock = Clock()
    table = access(server, clock)
    vend(server, "first", None)
    assert secret_of(table.storage_options(LOCATION)) == "first"
    clock.now_ms += 10_000 * MINUTE
    assert secret_of(table.storage_options(LOCATION)) == "first"


def test_credentials_of_another_place_are_not_reused(server: UnityCatalogServer) -> None:
    table = access(server, Clock())
    vend(server, "first", None)
    table.storage_options(LOCATION)
    vend(server, "second", None, prefix="s3://bucket/again")
    assert secret_of(table.storage_options("s3://bucket/again")) == "second"


def test_short_credentials_are_renewed_after_half_of_their_life(server: UnityCatalogServer) -> None:
    clock = Clock()
    table = access(server, clock)
    vend(server, "first", clock.now_ms + 2 * MINUTE)
    assert secret_of(table.storage_options(LOCATION)) == "first"
    vend(server, "second", clock.now_ms + 4 * MINUTE)
    clock.now_ms += MINUTE
    assert secret_of(table.storage_options(LOCATION)) == "second"


def test_expired_credentials_of_a_server_are_requested_each_time(server: UnityCatalogServer) -> None:
    clock = Clock()
    table = access(server, clock)
    vend(server, "first", clock.now_ms - MINUTE)
    for _ in range(3):
        table.storage_options(LOCATION)
    assert credential_requests(server) == 3


def test_valid_credentials_are_used_while_the_server_is_away(server: UnityCatalogServer) -> None:
    clock = Clock()
    table = access(server, clock)
    vend(server, "first", clock.now_ms + 60 * MINUTE)
    table.storage_options(LOCATION)
    server.fail("GET", "/credentials", *[Failure.LOST_REQUEST] * 1000)
    clock.now_ms += 57 * MINUTE
    assert secret_of(table.storage_options(LOCATION)) == "first"
    clock.now_ms += 4 * MINUTE
    with pytest.raises(CatalogUnavailableError):
        table.storage_options(LOCATION)


def test_reader_without_write_access_gets_read_credentials(server: UnityCatalogServer) -> None:
    vend(server, "for-reading", None)
    server.forbidden = {"READ_WRITE"}
    assert secret_of(access(server, Clock()).storage_options(LOCATION)) == "for-reading"
    server.forbidden = {"READ_WRITE", "READ"}
    with pytest.raises(CatalogRefusedError, match=r"403.*no READ for you"):
        access(server, Clock()).storage_options(LOCATION)


# ---------------------------------------------------------------- stores


def files_of(server: UnityCatalogServer, **options: str) -> ObjectStore:
    store = open_store(server.table_url("t"), StorageOptions.of({**server.options, **options}))
    assert isinstance(store, TableStore)
    return store.root_store._file_store


def test_store_has_the_credentials_and_the_users_other_options(server: UnityCatalogServer) -> None:
    vend(server, "vended", None)
    store = files_of(server, **{"s3.endpoint": "http://127.0.0.1:9000", "s3.region": "eu-west-1"})
    assert isinstance(store, VendedStore) and store.root == LOCATION
    assert store.options.get("s3.secret_access_key") == "vended" and store.options.get("s3.region") == "eu-west-1"
    assert store.options.get("unity.token") is None


def test_users_credentials_are_used_instead(server: UnityCatalogServer) -> None:
    vend(server, "vended", None)
    store = files_of(server, **{"s3.access_key_id": "my", "s3.secret_access_key": "own"})
    assert store.options.get("s3.secret_access_key") == "own" and credential_requests(server) == 0


def test_renewed_credentials_replace_the_connection(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed:
        secret, is_shared = "first", False

        def storage_options(self, location: str) -> dict[str, str]:
            return {"s3.access_key_id": "id", "s3.secret_access_key": self.secret}

    monkeypatch.setattr(connection, "_connections", {})
    vended = Fixed()
    store = VendedStore(LOCATION, StorageOptions.of({"s3.region": "eu-west-1"}), vended)
    first = store._connection
    assert store._connection is first
    vended.secret = "second"
    assert store._connection is not first
    [(_, _, options)] = connection._connections
    assert options.get("s3.secret_access_key") == "second"


def test_copy_for_another_process_has_credentials_but_no_token(server: UnityCatalogServer) -> None:
    vend(server, "vended-secret", None)
    store = files_of(server)
    data = pickle.dumps(store)
    copied = pickle.loads(data)
    assert type(copied) is RemoteStore and copied.options.get("s3.secret_access_key") == "vended-secret"
    assert server.token is not None and server.token.encode() not in data
    assert "vended-secret" not in repr(store) + repr(copied) + repr(store.options)


def test_copy_with_the_token_renews_the_same_credentials(server: UnityCatalogServer) -> None:
    now_ms = time.time_ns() // 1_000_000
    vend(server, "first", now_ms + 60 * MINUTE)
    data = pickle.dumps(files_of(server, **{"unity.share_token": "true"}))
    table_access._forget_accesses_of_parent()  # as in another process
    copied = pickle.loads(data)
    assert copied.options.get("s3.secret_access_key") == "first" and credential_requests(server) == 1
    vend(server, "second", now_ms + 120 * MINUTE)
    copied._credentials._renew_at_ms = now_ms
    assert copied.options.get("s3.secret_access_key") == "second" and credential_requests(server) == 2
    again = pickle.loads(data)
    assert again.options.get("s3.secret_access_key") == "second", "the process has newer credentials than the copy"


def test_copy_takes_the_token_of_the_environment_along(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", server.uri)
    monkeypatch.setenv("DATABRICKS_TOKEN", server.token or "")
    vend(server, "first", None)
    store = open_store(server.table_url("t"), StorageOptions.of({"unity.share_token": "true"}))
    data = pickle.dumps(store.root_store._ledger)
    monkeypatch.delenv("DATABRICKS_TOKEN")
    table_access._forget_accesses_of_parent()
    assert pickle.loads(data).tail("t").version == 0


def test_credentials_for_another_table_are_refused(server: UnityCatalogServer) -> None:
    vend(server, "vended", None, prefix="s3://bucket/other")
    with pytest.raises(CatalogAnswerError, match="none for s3://bucket/t"):
        files_of(server)


def test_credentials_of_a_new_table_are_renewed_before_it_exists(server: UnityCatalogServer) -> None:
    clock = Clock()
    server.state.root = "s3://bucket/new"
    del server.state.tables["uc", "s", "t"]
    table = access(server, clock)
    vend(server, "first", clock.now_ms + MINUTE, prefix="s3://bucket/new")
    staged = table.stage()
    assert secret_of(table.storage_options(staged.location)) == "first" and credential_requests(server) == 0
    vend(server, "second", clock.now_ms + 60 * MINUTE, prefix="s3://bucket/new")
    clock.now_ms += MINUTE
    assert secret_of(table.storage_options(staged.location)) == "second"
    vend(server, "third", clock.now_ms + 60 * MINUTE, prefix="s3://bucket/new")
    server.state.staging.clear()  # somebody has created the table, and the answer was lost
    server.state.tables["uc", "s", "t"] = CatalogTable(staged.table_id, "MANAGED", staged.location, {}, [], {}, {})
    clock.now_ms += 59 * MINUTE
    assert secret_of(table.storage_options(staged.location)) == "third"


def test_open_file_is_read_with_renewed_credentials(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets: list[str] = []

    class Client:
        def __init__(self, options: StorageOptions) -> None:
            self._secret = secret_of(dict(options.values))

        def get(self, container: str, key: str, start: int, length: int) -> bytes:
            secrets.append(self._secret)
            return bytes(length)

        def get_into(self, container: str, key: str, start: int, target: Any) -> int:
            secrets.append(self._secret)
            return len(target)

    monkeypatch.setattr(connection, "_client", lambda kind, account, options: Client(options))
    clock = Clock()
    vend(server, "first", clock.now_ms + 60 * MINUTE)
    store = VendedStore(LOCATION, StorageOptions.of({}), access(server, clock))
    with store.open_input("file", 100_000_000, is_size_verified=True) as file:
        file.read(10)
        vend(server, "second", clock.now_ms + 200 * MINUTE)
        clock.now_ms += 100 * MINUTE
        file.seek(90_000_000)
        file.read(10)
    assert (secrets[0], secrets[-1]) == ("first", "second")
