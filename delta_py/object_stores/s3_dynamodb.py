"""Tables in S3 whose commits are decided in a DynamoDB table, laid out as delta-spark's S3DynamoDBLogStore does, so that both may
write to one table at once.

An item is one commit: `tablePath` (hash key: the root's URL) and `fileName` (range key), `tempPath` (where the bytes are, below
`_delta_log`), `complete` ("true" once they are copied to the commit's name) and `expireTime` (seconds since 1970, of complete
ones).

    put_if_absent("_delta_log/00..7.json")
      bytes -> _delta_log/.tmp/00..7.json.<uuid>          nobody looks there
      item, if there is none of that key                  from here on the commit stands
      bytes -> _delta_log/00..7.json;  item: complete     whoever comes next does it if the writer died

Between the second step and the third a commit stands that no listing shows. So before the log is listed, and before a commit is
tried, the newest item is looked at, and what is left of it is done.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from delta_py.aws_clients import ask, aws_client
from delta_py.errors import StorageError
from delta_py.object_stores.aws import access_of
from delta_py.object_stores.remote import RemoteStore
from delta_py.protocol.paths import LOG_DIRECTORY, LogKind, commit_file_name, parse_log_name
from delta_py.remote_requests import NotAnswered
from delta_py.storage.store import ObjectInfo
from delta_py.storage.store_options import StorageOptions

_log = logging.getLogger("delta_py")

_EXPIRES_AFTER_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """One item. temp_path: relative to `_delta_log`."""

    file_name: str
    temp_path: str
    is_complete: bool


class CommitTable:
    """The items of one Delta table. Raises what ObjectClient raises; a key that is taken is FileExistsError."""

    def __init__(self, table_path: str, options: StorageOptions) -> None:
        name = options.get("s3.dynamodb_table")
        assert name is not None
        self._table_path, self._name = table_path, name
        region = options.get("s3.dynamodb_region") or options.get("s3.region")
        self._access = access_of(options, endpoint=options.get("s3.dynamodb_endpoint"), region=region)
        self._client = aws_client("dynamodb", self._access)

    def find(self, file_name: str) -> CommitEntry | None:
        key = {"tablePath": {"S": self._table_path}, "fileName": {"S": file_name}}
        answer = self._ask(lambda: self._client.get_item(TableName=self._name, Key=key, ConsistentRead=True))
        return _entry(answer["Item"]) if answer.get("Item") else None

    def newest(self) -> CommitEntry | None:
        answer = self._ask(
            lambda: self._client.query(
                TableName=self._name,
                KeyConditionExpression="tablePath = :path",
                ExpressionAttributeValues={":path": {"S": self._table_path}},
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=1,
            )
        )
        return _entry(answer["Items"][0]) if answer["Items"] else None

    def add(self, entry: CommitEntry) -> None:
        """Raises FileExistsError where there is an item of its key."""
        item, condition = self._item(entry), "attribute_not_exists(fileName)"
        self._ask(lambda: self._client.put_item(TableName=self._name, Item=item, ConditionExpression=condition))

    def complete(self, entry: CommitEntry) -> None:
        expires = {"expireTime": {"N": str(int(time.time()) + _EXPIRES_AFTER_SECONDS)}}
        item = {**self._item(replace(entry, is_complete=True)), **expires}
        self._ask(lambda: self._client.put_item(TableName=self._name, Item=item))

    def _item(self, entry: CommitEntry) -> dict[str, Any]:
        return {
            "tablePath": {"S": self._table_path},
            "fileName": {"S": entry.file_name},
            "tempPath": {"S": entry.temp_path},
            "complete": {"S": "true" if entry.is_complete else "false"},
        }

    def _ask(self, request: Any) -> Any:
        return ask(f"the DynamoDB table {self._name}", self._access, request)


def _entry(item: dict[str, Any]) -> CommitEntry:
    return CommitEntry(item["fileName"]["S"], item["tempPath"]["S"], item["complete"]["S"].lower() == "true")


class DynamoDbStore(RemoteStore):
    """A RemoteStore in S3 that does not rely on conditional writes there."""

    __slots__ = ("_table",)

    def __init__(self, root: str, options: StorageOptions) -> None:
        super().__init__(root, options)
        self._table: CommitTable | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return DynamoDbStore, (self.root, self.options)

    @property
    def _commits(self) -> CommitTable:
        if self._table is None:
            self._table = CommitTable(self.root, self.options)
        return self._table

    # ------------------------------------------------------------ the log

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        if directory == LOG_DIRECTORY:
            self._finish_newest()
        return super().list_from(directory, start)

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        directory, _, name = path.rpartition("/")
        log_name = parse_log_name(name) if directory == LOG_DIRECTORY else None
        if log_name is None or log_name.kind is not LogKind.COMMIT:
            self._put_other(path, data)
            return
        if self._exists(path):
            raise FileExistsError(17, "There is an object of that name", path)
        self._check_before(log_name.version, name)
        entry = CommitEntry(name, f".tmp/{name}.{uuid.uuid4()}", is_complete=False)
        self.put(f"{LOG_DIRECTORY}/{entry.temp_path}", data)
        self._decide(entry)
        try:
            self._finish(entry, data)
        except FileExistsError:
            raise
        except (OSError, StorageError) as error:  # the commit stands; whoever comes next finishes it
            _log.warning("%s: commit %s is decided, and not yet at its place: %s", self.root, name, error)

    def _put_other(self, path: str, data: bytes) -> None:
        """What is written so has a name of its own, or the same content whoever writes it."""
        if self._exists(path):
            raise FileExistsError(17, "There is an object of that name", path)
        self.put(path, data)

    def _check_before(self, version: int, name: str) -> None:
        """The commit before must be at its place. Raises StorageError where it cannot be, so that this one would leave a gap."""
        if version == 0:
            old = self._run("look for", lambda: self._commits.find(name))
            if old is not None and old.is_complete and not self._exists(f"{LOG_DIRECTORY}/{name}"):
                raise StorageError(
                    f"The DynamoDB table has a commit {name} of {self.root}, which is not there: a table was deleted at this "
                    "place. Nothing was committed. Delete the items of its tablePath first, or use another place.",
                    root=self.root,
                )
            return
        before = commit_file_name(version - 1)
        entry = self._run("look for", lambda: self._commits.find(before))
        if entry is not None and not entry.is_complete:
            self._finish(entry)
        elif not self._exists(f"{LOG_DIRECTORY}/{before}"):
            raise StorageError(
                f"Commit {before} of {self.root}, behind which this one comes, is not there. Nothing was committed.",
                root=self.root,
            )

    def _decide(self, entry: CommitEntry) -> None:
        """Raises FileExistsError where another writer's commit has the version; that one is at its place then. NotAnswered where
        the table neither confirmed nor refused, and has no item."""
        try:
            self._connection.once(lambda: self._commits.add(entry))
        except FileExistsError:
            self._settle(entry)
        except NotAnswered:
            if not self._settle(entry):
                raise

    def _settle(self, ours: CommitEntry) -> bool:
        """Whether the version is decided, and for us. Raises FileExistsError where it is another's."""
        entry = self._run("look for", lambda: self._commits.find(ours.file_name))
        if entry is None:
            return False
        if entry.temp_path == ours.temp_path:
            return True
        if not entry.is_complete:
            self._finish(entry)
        raise FileExistsError(17, "There is a commit of that name", ours.file_name)

    # ------------------------------------------------------------ what others left half done

    def _finish_newest(self) -> None:
        newest = self._run("look for", self._commits.newest)
        if newest is None or newest.is_complete:
            return
        try:
            self._finish(newest)
        except StorageError as error:  # such as that of a user who may only read
            text = "%s: commit %s is decided, and cannot be put to its place: %s"
            _log.warning(text, self.root, newest.file_name, error.message)

    def _finish(self, entry: CommitEntry, ours: bytes | None = None) -> None:
        """Put the commit to its place: the same bytes, whoever does it and however often.

        ours: the bytes, where the commit is this store's own. Raises FileExistsError where others are at the place all the same:
        a writer that does not ask DynamoDB, or asks without the condition, was there first. Raises StorageError where the
        bytes are gone.
        """
        place = f"{LOG_DIRECTORY}/{entry.file_name}"
        if not self._exists(place):
            self.put(place, self._bytes_of(entry) if ours is None else ours)
        elif ours is not None and self.read(place) != ours:
            raise FileExistsError(17, "A writer that DynamoDB had not let through wrote this commit", place)
        self._run("complete", lambda: self._commits.complete(entry))

    def _bytes_of(self, entry: CommitEntry) -> bytes:
        try:
            return self.read(f"{LOG_DIRECTORY}/{entry.temp_path}")
        except FileNotFoundError as error:
            raise StorageError(
                f"The DynamoDB table has a commit {entry.file_name} of {self.root} that is not at its place yet, and its bytes "
                f"({entry.temp_path}) are gone: a table was deleted at this place. Nothing was committed. Delete the items of "
                "its tablePath first, or use another place.",
                root=self.root,
            ) from error

    def _exists(self, path: str) -> bool:
        address, client = self._locate(path), self._connection.client
        try:
            self._connection.run(f"look for {path}", lambda: client.size(address.container, address.key))
        except FileNotFoundError:
            return False
        return True

    def _run(self, verb: str, call: Any) -> Any:
        return self._connection.run(f"{verb} a commit of {self.root} in DynamoDB", call)
