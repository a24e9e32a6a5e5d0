"""If several writers put one name at the same time, exactly one succeeds. Commits depend on this. A store without this guarantee
is refused.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import write_delta
from delta_py.errors import StorageError
from delta_py.object_stores.remote import RemoteStore
from delta_py.storage.store import ObjectStore
from tests.storage.conftest import CONTAINER, new_url
from tests.support.servers.cutting_proxy import CuttingProxy, Request
from tests.support.servers.emulators import Emulator, boto3_client, signed_headers

WRITERS = 8


def commit_path(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def body_of(writer: int, size: int) -> bytes:
    return b"%d" % writer * size


def put_all(store: ObjectStore, writer: int, names: list[str], size: int, start: Any) -> list[str]:
    """The names that were won."""
    won = []
    for name in names:
        start.wait(60)
        try:
            store.put_if_absent(name, body_of(writer, size))
        except FileExistsError:
            continue
        won.append(name)
    return won


def check_wins(store: ObjectStore, names: list[str], wins: dict[int, list[str]], size: int) -> None:
    winners = Counter(name for mine in wins.values() for name in mine)
    assert winners == Counter(names)
    for writer, mine in wins.items():
        for name in mine:
            assert store.read(name) == body_of(writer, size)


def test_put_if_absent_by_eight_threads_has_one_winner_a_name(store: ObjectStore) -> None:
    names, start, wins = [commit_path(version) for version in range(20)], threading.Barrier(WRITERS), dict[int, list[str]]()

    def write(writer: int) -> None:
        wins[writer] = put_all(store, writer, names, 1000, start)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_wins(store, names, wins, 1000)


def put_in_process(store: ObjectStore, writer: int, names: list[str], size: int, start: Any, finished: Any) -> None:
    finished.put((writer, put_all(store, writer, names, size, start)))


def race_of_processes(store: ObjectStore, names: list[str], size: int) -> dict[int, list[str]]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["delta_py.object_stores.remote", "boto3", "google.cloud.storage", "azure.storage.blob"])
    start, finished = context.Barrier(WRITERS), context.SimpleQueue()
    processes = [
        context.Process(target=put_in_process, args=(store, writer, names, size, start, finished)) for writer in range(WRITERS)
    ]
    for process in processes:
        process.start()
    wins = dict(finished.get() for _ in processes)
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * WRITERS
    return wins


def test_put_if_absent_by_eight_processes_has_one_winner_a_name(remote_store: ObjectStore) -> None:
    names = [commit_path(version) for version in range(100)]
    check_wins(remote_store, names, race_of_processes(remote_store, names, 2000), 2000)


def test_put_if_absent_of_large_commits_has_one_winner_a_name(remote_store: ObjectStore) -> None:
    """Large enough that an SDK may send them in parts by itself."""
    names, size = [commit_path(version) for version in range(3)], 12 * 1024 * 1024
    check_wins(remote_store, names, race_of_processes(remote_store, names, size), size)


def test_dynamodb_decides_for_one_of_many_writers(emulators: Callable[[str], Emulator]) -> None:
    emulator = emulators("dynamodb")
    start, wins = threading.Barrier(WRITERS), list[int]()

    def write(writer: int) -> None:
        client: Any = boto3_client("dynamodb", emulator.endpoint)
        for version in range(20):
            item = {"tablePath": {"S": "s3://b/race"}, "fileName": {"S": str(version)}, "writer": {"N": str(writer)}}
            start.wait(60)
            try:
                client.put_item(TableName=CONTAINER, Item=item, ConditionExpression="attribute_not_exists(fileName)")
            except client.exceptions.ConditionalCheckFailedException:
                continue
            wins.append(version)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == list(range(20))


# ---------------------------------------------------------------- stores that do not keep the condition


def without_condition(request: Request) -> Request:
    """The effect on a server that does not know the header: a plain write. The header is part of the signature, so the request is
    signed again."""
    if "if-none-match" not in request.headers:
        return request
    headers = {name: value for name, value in request.headers.items() if name not in ("if-none-match", "authorization")}
    return replace(request, headers=signed_headers(request.method, request.target, headers, request.body))


@pytest.mark.parametrize("emulator", ["s3"], indirect=True)
def test_endpoint_that_overwrites_is_refused_for_commits(emulator: Emulator) -> None:
    with CuttingProxy(emulator.port, change=without_condition) as proxy:
        store = RemoteStore(new_url(emulator), emulator.options(proxy.endpoint))
        store.put("_delta_log/0.json", b"first")
        with pytest.raises(StorageError, match=r"accepts a write of a new object .*If-None-Match.* although the object exists"):
            store.put_if_absent("_delta_log/0.json", b"second")
        with pytest.raises(StorageError, match=r"s3\.dynamodb_table"):
            store.put_if_absent("_delta_log/1.json", b"again")
        assert store.read("_delta_log/0.json") == b"first"
        assert [info.path for info in store.list_recursive("")] == ["_delta_log/0.json"], "nothing is left of the trial"


@pytest.mark.parametrize("emulator", ["s3"], indirect=True)
def test_write_to_an_endpoint_that_overwrites_leaves_nothing(emulator: Emulator, tmp_path: Path) -> None:
    with CuttingProxy(emulator.port, change=without_condition) as proxy:
        store = RemoteStore(new_url(emulator), emulator.options(proxy.endpoint))
        with pytest.raises(StorageError, match="two writers would overwrite"):
            write_delta(store.root, pa.table({"id": [1]}), store=store)
        assert list(store.list_recursive("")) == []


@pytest.mark.parametrize("emulator", ["s3"], indirect=True)
def test_condition_is_tried_once_a_process_and_endpoint(emulator: Emulator) -> None:
    with CuttingProxy(emulator.port) as proxy:
        options = emulator.options(proxy.endpoint)
        for number in range(5):
            RemoteStore(new_url(emulator), options).put_if_absent(f"log/{number}", b"1")
        assert sum(exchange.request.method == "PUT" for exchange in proxy.exchanges) == 5 + 2


def test_emulator_keeps_the_condition(remote: RemoteStore, emulator: Emulator) -> None:
    """Otherwise the other tests would prove nothing: the store's own answers, without pydelta's clients."""
    remote.put("taken", b"first")
    with CuttingProxy(emulator.port) as proxy:
        store = RemoteStore(remote.root, emulator.options(proxy.endpoint))
        with pytest.raises(FileExistsError):
            store.put_if_absent("taken", b"second")
        last = [exchange for exchange in proxy.exchanges if exchange.request.method in ("PUT", "POST")][-1]
    assert last.status == {"s3": 412, "gcs": 412, "azure": 409}[emulator.kind.name]
    assert remote.read("taken") == b"first"
