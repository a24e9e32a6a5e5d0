"""Commits in S3 that DynamoDB decides: the layout of delta-spark's log store, and commits that other writers left incomplete."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import StorageError, TableNotFoundError
from delta_py.object_stores.s3_dynamodb import CommitEntry, CommitTable, DynamoDbStore
from delta_py.remote_requests import NotAnswered
from delta_py.storage.store_options import StorageOptions
from tests.storage.conftest import CONTAINER, remote_settings
from tests.support.servers.emulators import Emulator, boto3_client

TABLE = CONTAINER


@pytest.fixture
def commits_server(emulators: Callable[[str], Emulator]) -> Emulator:
    return emulators("dynamodb")


@pytest.fixture
def options(emulators: Callable[[str], Emulator]) -> StorageOptions:
    """An S3 store and a DynamoDB table, which the same key opens."""
    return StorageOptions.of({**remote_settings("dynamodb", emulators), "storage.retry_timeout": "5"})


@pytest.fixture
def store(options: StorageOptions) -> DynamoDbStore:
    return DynamoDbStore(f"s3a://{CONTAINER}/{uuid.uuid4().hex}/t", options)


def commit_path(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def items(store: DynamoDbStore, server: Emulator) -> dict[str, dict[str, Any]]:
    """The items of the table in DynamoDB, by fileName, as another program sees them."""
    client: Any = boto3_client("dynamodb", server.endpoint)
    response = client.query(
        TableName=TABLE, KeyConditionExpression="tablePath = :p", ExpressionAttributeValues={":p": {"S": store.root}}
    )
    return {item["fileName"]["S"]: item for item in response["Items"]}


def leave_half_done(store: DynamoDbStore, version: int, data: bytes) -> CommitEntry:
    """The state after a writer that died after its commit was decided."""
    entry = CommitEntry(f"{version:020}.json", f".tmp/{version:020}.json.{uuid.uuid4()}", is_complete=False)
    store.put(f"_delta_log/{entry.temp_path}", data)
    CommitTable(store.root, store.options).add(entry)
    return entry


def names(store: DynamoDbStore) -> list[str]:
    return [info.path for info in store.list_from("_delta_log")]


def test_commit_leaves_the_item_that_delta_spark_knows(store: DynamoDbStore, commits_server: Emulator) -> None:
    store.put_if_absent(commit_path(0), b"first")
    (item,) = items(store, commits_server).values()
    assert set(item) == {"tablePath", "fileName", "tempPath", "complete", "expireTime"}
    assert item["tablePath"] == {"S": store.root} and item["complete"] == {"S": "true"}
    assert store.root.startswith("s3a://"), "the key is the URL as it was spelled"
    assert store.read(f"_delta_log/{item['tempPath']['S']}") == store.read(commit_path(0)) == b"first"


def test_items_equal_those_of_the_delta_spark_log_store(store: DynamoDbStore, commits_server: Emulator) -> None:
    """The fields of its class ExternalCommitEntry: an incomplete entry has no time, a complete one may be deleted after a day;
    the bytes are below the log as `.tmp/<name>.<uuid>`."""
    entry = CommitEntry(f"{0:020}.json", f".tmp/{0:020}.json.{uuid.uuid4()}", is_complete=False)
    table = CommitTable(store.root, store.options)
    table.add(entry)
    undecided = {
        "tablePath": {"S": store.root},
        "fileName": {"S": entry.file_name},
        "tempPath": {"S": entry.temp_path},
        "complete": {"S": "false"},
    }
    assert items(store, commits_server) == {entry.file_name: undecided}
    with pytest.raises(FileExistsError):
        table.add(entry)
    before = int(time.time())
    table.complete(entry)
    (item,) = items(store, commits_server).values()
    expires = item.pop("expireTime")
    assert item == {**undecided, "complete": {"S": "true"}}
    assert before + 86_400 <= int(expires["N"]) <= time.time() + 86_400


def test_temporary_name_is_as_delta_spark_makes_it(store: DynamoDbStore, commits_server: Emulator) -> None:
    store.put_if_absent(commit_path(0), b"first")
    (item,) = items(store, commits_server).values()
    assert re.fullmatch(r"\.tmp/0{20}\.json\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", item["tempPath"]["S"])


@pytest.mark.parametrize("spelled", ["a b", "a%20b", "ä+b=c"])
def test_key_is_the_path_as_it_is_spelled(options: StorageOptions, commits_server: Emulator, spelled: str) -> None:
    """Like Hadoop's Path, whose text is the key: nothing is escaped or unescaped, and there is no `/` at its end."""
    root = f"s3a://{CONTAINER}/{uuid.uuid4().hex}/{spelled}"
    store = DynamoDbStore(f"{root}/", options)
    store.put_if_absent(commit_path(0), b"first")
    assert list(items(store, commits_server)) == [f"{0:020}.json"] and store.root == root


def test_items_of_other_files_of_the_log_are_passed_by(store: DynamoDbStore, commits_server: Emulator) -> None:
    """delta-spark has checksums decided too."""
    store.put_if_absent(commit_path(0), b"first")
    table = CommitTable(store.root, store.options)
    table.complete(CommitEntry(f"{0:020}.crc", f".tmp/{0:020}.crc.{uuid.uuid4()}", is_complete=True))
    newest = table.find_newest()
    assert newest is not None and newest.file_name == f"{0:020}.json"
    store.put_if_absent(commit_path(1), b"second")
    assert names(store) == [commit_path(0), commit_path(1)]


def test_commit_overwritten_by_another_writer_is_reported_lost(
    store: DynamoDbStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if another writer's item had replaced ours: some versions of delta-spark's log store write theirs without the
    condition."""
    store.put_if_absent(commit_path(0), b"first")
    original = CommitTable.add

    def add(self: CommitTable, entry: CommitEntry) -> None:
        original(self, entry)
        theirs = CommitEntry(entry.file_name, f".tmp/{entry.file_name}.{uuid.uuid4()}", is_complete=False)
        store.put(f"_delta_log/{theirs.temp_path}", b"theirs")
        store.put(f"_delta_log/{entry.file_name}", b"theirs")
        self.complete(theirs)

    monkeypatch.setattr(CommitTable, "add", add)
    with pytest.raises(FileExistsError):
        store.put_if_absent(commit_path(1), b"ours")
    assert store.read(commit_path(1)) == b"theirs"


def test_taken_version_is_refused_and_changes_nothing(store: DynamoDbStore) -> None:
    store.put_if_absent(commit_path(0), b"first")
    with pytest.raises(FileExistsError):
        store.put_if_absent(commit_path(0), b"second")
    assert store.read(commit_path(0)) == b"first" and names(store) == [commit_path(0)]


def test_commit_without_its_file_in_place_is_listed(store: DynamoDbStore, commits_server: Emulator) -> None:
    store.put_if_absent(commit_path(0), b"first")
    leave_half_done(store, 1, b"theirs")
    assert names(store) == [commit_path(0), commit_path(1)]
    assert store.read(commit_path(1)) == b"theirs"
    assert items(store, commits_server)[f"{1:020}.json"]["complete"] == {"S": "true"}


def test_version_that_another_has_left_half_done_is_theirs(store: DynamoDbStore) -> None:
    store.put_if_absent(commit_path(0), b"first")
    leave_half_done(store, 1, b"theirs")
    with pytest.raises(FileExistsError):
        store.put_if_absent(commit_path(1), b"ours")
    assert store.read(commit_path(1)) == b"theirs"


def test_commit_first_completes_the_half_done_commit_before_it(store: DynamoDbStore) -> None:
    store.put_if_absent(commit_path(0), b"first")
    leave_half_done(store, 1, b"theirs")
    store.put_if_absent(commit_path(2), b"ours")
    assert [store.read(commit_path(version)) for version in range(3)] == [b"first", b"theirs", b"ours"]


def test_commit_behind_a_gap_is_refused(store: DynamoDbStore) -> None:
    store.put_if_absent(commit_path(0), b"first")
    with pytest.raises(StorageError, match=r"The previous commit .* is missing"):
        store.put_if_absent(commit_path(2), b"ours")
    assert names(store) == [commit_path(0)]


def test_commit_at_a_deleted_table_is_refused_while_items_remain(store: DynamoDbStore) -> None:
    store.put_if_absent(commit_path(0), b"first")
    store.delete(commit_path(0))
    with pytest.raises(StorageError, match="was deleted at this place"):
        store.put_if_absent(commit_path(0), b"another table")


def test_half_done_commit_of_deleted_table_blocks_a_new_table(store: DynamoDbStore) -> None:
    store.delete(f"_delta_log/{leave_half_done(store, 0, b'old').temp_path}")
    assert names(store) == []
    with pytest.raises(TableNotFoundError):
        DeltaTable(store.root, store=store)
    with pytest.raises(StorageError, match="Delete the items"):
        store.put_if_absent(commit_path(0), b"new")
    assert names(store) == []


@pytest.mark.parametrize("lands", [True, False])
def test_lost_answer_of_the_deciding_write_is_looked_up(
    store: DynamoDbStore, monkeypatch: pytest.MonkeyPatch, lands: bool
) -> None:
    original = CommitTable.add

    def add(self: CommitTable, entry: CommitEntry) -> None:
        if lands:
            original(self, entry)
        raise NotAnswered("cut off")

    monkeypatch.setattr(CommitTable, "add", add)
    if lands:
        store.put_if_absent(commit_path(0), b"ours")
        assert store.read(commit_path(0)) == b"ours"
    else:
        with pytest.raises(NotAnswered):
            store.put_if_absent(commit_path(0), b"ours")
        assert names(store) == []


def test_writer_that_dies_between_the_steps_has_committed(store: DynamoDbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    class Died(BaseException):
        pass

    def die(self: DynamoDbStore, entry: CommitEntry, ours: bytes | None = None) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(DynamoDbStore, "_finish_commit", die)
        with pytest.raises(Died):
            store.put_if_absent(commit_path(0), b"ours")
    other = DynamoDbStore(store.root, store.options)
    assert names(other) == [commit_path(0)] and other.read(commit_path(0)) == b"ours"


def test_many_writers_at_once_have_one_winner_a_version(store: DynamoDbStore) -> None:
    def write(number: int) -> list[int]:
        mine, same_store = [], DynamoDbStore(store.root, store.options)
        for version in range(10):
            try:
                same_store.put_if_absent(commit_path(version), b"%d" % number)
                mine.append(version)
            except FileExistsError:
                continue
        return mine

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(write, range(8)))
    assert sorted(version for mine in won for version in mine) == list(range(10))
    assert all(store.read(commit_path(version)) == b"%d" % number for number, mine in enumerate(won) for version in mine)


def test_table_is_written_and_read_through_it(options: StorageOptions) -> None:
    url, settings = f"s3a://{CONTAINER}/{uuid.uuid4().hex}/t", dict(options.values)
    for number in range(12):
        write_delta(url, pa.table({"id": [number]}), mode="append", storage_options=settings)
    table = DeltaTable(url, storage_options=settings)
    assert table.version == 11 and sorted(table.to_arrow()["id"].to_pylist()) == list(range(12))
