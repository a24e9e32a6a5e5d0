"""Azure accounts with a hierarchical namespace: their directories are listed as objects, and are not files of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.object_stores.azure import AzureClient
from delta_py.object_stores.open_store import open_store
from delta_py.storage.addresses import address_of
from delta_py.storage.store_options import StorageOptions
from tests.storage.conftest import new_url
from tests.support.servers.cutting_proxy import CuttingProxy
from tests.support.servers.emulators import Emulator
from tests.support.servers.hierarchy import with_directories


@pytest.fixture
def emulator(emulators: Callable[[str], Emulator]) -> Emulator:
    return emulators("azure")


@pytest.fixture
def proxy(emulator: Emulator) -> Iterator[CuttingProxy]:
    with CuttingProxy(emulator.port, before=with_directories) as proxy:
        yield proxy


@pytest.fixture
def options(emulator: Emulator, proxy: CuttingProxy) -> StorageOptions:
    return emulator.options(proxy.endpoint)


def test_directories_are_left_out_of_listings(emulator: Emulator, options: StorageOptions) -> None:
    store = open_store(new_url(emulator), options)
    for path in ("_delta_log/0.json", "_delta_log/_sidecars/s.parquet", "part=1/a.parquet", "part=1/deep/b.parquet"):
        store.put(path, b"content")
    all_paths = [info.path for info in store.list_recursive("")]
    assert all_paths == ["_delta_log/0.json", "_delta_log/_sidecars/s.parquet", "part=1/a.parquet", "part=1/deep/b.parquet"]
    assert [info.path for info in store.list_from("_delta_log")] == ["_delta_log/0.json"]
    assert [info.path for info in store.list_from("part=1")] == ["part=1/a.parquet"]
    assert [info.path for info in store.list_from("")] == []


def test_table_is_written_read_and_cleaned_there(emulator: Emulator, options: StorageOptions, proxy: CuttingProxy) -> None:
    url, settings = new_url(emulator), dict(options.values)
    for number in range(12):  # a checkpoint is among them
        rows = pa.table({"id": [number], "part": [number % 2]})
        write_delta(url, rows, mode="append", partition_by=["part"], storage_options=settings)
    rows = pa.table({"id": [100], "part": [0]})
    write_delta(url, rows, mode="overwrite", replace_where="part = 0", storage_options=settings)
    table = DeltaTable(url, storage_options=settings)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3, 5, 7, 9, 11, 100]
    before = len(proxy.exchanges)
    removed = table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert removed.num_rows == 6
    deleted = [exchange.request.target for exchange in proxy.exchanges[before:] if exchange.request.method == "DELETE"]
    assert len(deleted) == 6 and all(target.partition("?")[0].endswith(".parquet") for target in deleted)
    reopened = DeltaTable(url, storage_options=settings)
    reopened.snapshot.check_integrity()
    assert sorted(reopened.to_arrow()["id"].to_pylist()) == [1, 3, 5, 7, 9, 11, 100]


@pytest.mark.parametrize(
    ("url", "settings", "host"),
    [
        ("abfss://c@acme.dfs.core.windows.net/t", {}, "acme.blob.core.windows.net"),
        ("abfss://c@acme.dfs.core.chinacloudapi.cn/t", {}, "acme.blob.core.chinacloudapi.cn"),
        ("abfss://c@onelake.dfs.fabric.microsoft.com/t", {}, "onelake.blob.fabric.microsoft.com"),
        ("az://c/t", {"azure.account_name": "acme"}, "acme.blob.core.windows.net"),
        ("az://c/t", {"azure.endpoint": "https://acme.dfs.core.windows.net"}, "acme.blob.core.windows.net"),
    ],
)
def test_account_is_asked_where_blobs_are_in_its_own_cloud(url: str, settings: dict[str, str], host: str) -> None:
    options = StorageOptions.of({"azure.account_key": "a2V5", **settings})
    assert AzureClient(address_of(url).account, options)._service.primary_hostname == host
