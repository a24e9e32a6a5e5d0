"""Buckets whose readers pay: every request names the payer, otherwise the store refuses it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from delta_py.object_stores.open_store import open_store
from delta_py.storage.arrow_files import discard
from delta_py.storage.copying import copy_object
from delta_py.storage.store import ObjectStore
from tests.storage.conftest import new_url
from tests.support.servers.cutting_proxy import CuttingProxy, Request
from tests.support.servers.emulators import Emulator

PART_BYTES = 9 * 1024 * 1024


def do_everything(store: ObjectStore) -> None:
    store.put_if_absent("_delta_log/0.json", b"first")
    with pytest.raises(FileExistsError):
        store.put_if_absent("_delta_log/0.json", b"second")
    store.put("small", b"0123456789")
    assert store.read("small") == b"0123456789" and store.read_range("small", 2, 3) == b"234"
    with store.open_input("small") as source, store.open_output("large") as sink:
        sink.write(source.read() * (PART_BYTES // 10))
    given_up = store.open_output("never")
    given_up.write(b"x" * PART_BYTES)
    discard(given_up)
    store.abort_uploads("large")
    assert copy_object(store, "small", store, "copy", 10) == 10
    assert [info.path for info in store.list_recursive("")] == ["_delta_log/0.json", "copy", "large", "small"]
    assert [info.path for info in store.list_from("_delta_log")] == ["_delta_log/0.json"]
    store.delete("small")


def test_every_request_to_s3_names_the_payer(emulators: Callable[[str], Emulator]) -> None:
    emulator = emulators("s3")
    with CuttingProxy(emulator.port) as proxy:
        do_everything(open_store(new_url(emulator), emulator.options(proxy.endpoint, s3_requester_pays="true")))
    requests = [exchange.request for exchange in proxy.exchanges]
    assert {request.method for request in requests} == {"GET", "HEAD", "PUT", "POST", "DELETE"} and len(requests) > 15
    silent = [request for request in requests if request.headers.get("x-amz-request-payer") != "requester"]
    assert [(request.method, request.target) for request in silent] == []


def test_every_request_to_gcs_names_the_project_that_pays(emulators: Callable[[str], Emulator]) -> None:
    """Except requests that continue an upload, because the upload began with the name."""
    emulator = emulators("gcs")
    with CuttingProxy(emulator.port) as proxy:
        do_everything(open_store(new_url(emulator), emulator.options(proxy.endpoint, gcs_user_project="payer-of-all")))
    requests = [exchange.request for exchange in proxy.exchanges]

    def names_payer(request: Request) -> bool:
        return "userProject=payer-of-all" in request.target or "upload_id=" in request.target

    assert len(requests) >= 15 and [(one.method, one.target) for one in requests if not names_payer(one)] == []
