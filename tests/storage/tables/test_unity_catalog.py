"""Tables of Unity Catalog in object stores, with credentials that only the catalog hands out, and renews."""

from __future__ import annotations

import datetime as dt
import pickle
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from azure.storage.blob import ContainerSasPermissions, generate_container_sas

from delta_py import DeltaTable, write_delta
from delta_py.storage import publication
from tests.storage.conftest import CONTAINER
from tests.support.servers.emulators import Emulator
from tests.support.servers.unity_catalog import Catalog, UnityCatalogServer


def vended_s3(settings: Mapping[str, str]) -> dict[str, str]:
    return {"s3.access-key-id": settings["s3.access_key_id"], "s3.secret-access-key": settings["s3.secret_access_key"]}


def vended_sas(settings: Mapping[str, str]) -> dict[str, str]:
    token: str = generate_container_sas(
        settings["azure.account_name"],
        CONTAINER,
        account_key=settings["azure.account_key"],
        permission=ContainerSasPermissions(read=True, write=True, list=True, delete=True, create=True, add=True),
        expiry=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )
    return {"azure.sas-token": token}


STORES: dict[str, tuple[str, Callable[[Mapping[str, str]], dict[str, str]], tuple[str, ...]]] = {
    "s3": ("s3", vended_s3, ("s3.access_key_id", "s3.secret_access_key")),
    "azure": ("az", vended_sas, ("azure.account_key",)),
}


@pytest.mark.parametrize("kind", STORES)
def test_table_in_a_store_is_used_with_vended_credentials(
    kind: str, emulators: Callable[[str], Emulator], tmp_path: Path
) -> None:
    scheme, vend, secrets = STORES[kind]
    settings = emulators(kind).settings()
    root = f"{scheme}://{CONTAINER}/{uuid.uuid4().hex}"
    with UnityCatalogServer(tmp_path, Catalog(root)) as server:
        others = {name: value for name, value in settings.items() if name not in secrets}
        options = {**others, **server.options}

        def renew(life_ms: int) -> None:
            entry: dict[str, Any] = {"prefix": root, "operation": "READ_WRITE", "config": vend(settings)}
            server.state.credentials = [{**entry, "expiration-time-ms": time.time_ns() // 1_000_000 + life_ms}]

        renew(1_000)
        url = server.table_url("t")
        write_delta(url, pa.table({"id": [1, 2]}), storage_options=options)
        table = DeltaTable(url, storage_options=options)
        requests_before = len(server.requests)
        renew(3_600_000)
        time.sleep(1.1)  # the first credentials have expired
        table.delete("id = 1")
        write_delta(url, pa.table({"id": [3]}), mode="append", storage_options=options)
        publication.finish()
        table = DeltaTable(url, storage_options=options)
        assert sorted(table.to_arrow()["id"].to_pylist()) == [2, 3]
        assert table.snapshot.table_root.startswith(root)
        copied = pickle.loads(pickle.dumps(table.snapshot.store))
        assert copied.read(table.scan().paths()[0])[:4] == b"PAR1"
        assert sum(request.endswith("/credentials") for request in server.requests[requests_before:]) == 1


@pytest.mark.parametrize("kind", STORES)
def test_external_table_is_created_with_credentials_of_its_path(
    kind: str, emulators: Callable[[str], Emulator], tmp_path: Path
) -> None:
    scheme, vend, secrets = STORES[kind]
    settings = emulators(kind).settings()
    root = f"{scheme}://{CONTAINER}/{uuid.uuid4().hex}"
    with UnityCatalogServer(tmp_path, Catalog(root)) as server:
        entry: dict[str, Any] = {"prefix": f"{root}/lake", "operation": "READ_WRITE", "config": vend(settings)}
        server.state.credentials = [{**entry, "expiration-time-ms": time.time_ns() // 1_000_000 + 3_600_000}]
        others = {name: value for name, value in settings.items() if name not in secrets}
        url, options = server.table_url("e"), {**others, **server.options}
        write_delta(url, pa.table({"id": [1, 2]}), storage_options={**options, "unity.location": f"{root}/lake/e/"})
        assert any(request.endswith("/temporary-path-credentials") for request in server.requests)
        assert server.state.tables["uc", "s", "e"].location == f"{root}/lake/e"
        write_delta(url, pa.table({"id": [3]}), mode="append", storage_options=options)
        table = DeltaTable(url, storage_options=options)
        assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3] and table.version == 1
        assert server.state.tables["uc", "s", "e"].last[0] == 1
