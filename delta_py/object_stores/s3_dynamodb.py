"""Tables in S3 whose commits are decided in a DynamoDB table. Its layout is that of delta-spark's S3DynamoDBLogStore, so that
both may write to one table at the same time.

An item is one commit: `tablePath` (hash key: the root's URL) and `fileName` (range key), `tempPath` (where the bytes are, below
`_delta_log`), `complete` ("true" once they are copied to the commit's name) and `expireTime` (seconds since 1970, only if
complete).

    put_if_absent("_delta_log/00..7.json")
      bytes -> _delta_log/.tmp/00..7.json.<uuid>          nobody reads it there
      item, if there is none of that key                  from here on the commit is a version of the table
      bytes -> _delta_log/00..7.json;  item: complete     the next reader or writer does it if this writer died

Between the second step and the third, the table has a version that no listing shows. So before the log is listed, and before a
commit is tried, the newest item is read, and an incomplete one is completed.
"""

from __future__ import annotations

import errno
import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from delta_py.aws_clients import aws_client, call_aws
from delta_py.errors import StorageError
from delta_py.object_stores.aws import access_of
from delta_py.object_stores.remote import RemoteStore
from delta_py.protocol.paths import LOG_DIRECTORY, LogKind, commit_file_name, parse_log_name
from delta_py.remote_requests import NotAnswered
from delta_py.storage.store import ObjectInfo
from delta_py.storage.store_options import StorageOptions

_log = logging.getLogger("delta_py")

_EXPIRES_AFTER_SECONDS = 24 * 3600  # after this time DynamoDB may delete the item of a completed commit


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """One item: a commit that is a version of the table. file_name: in `_delta_log`. temp_path: where its bytes were written
    first, relative to `_delta_log`. is_complete: the bytes were copied to file_name."""

    file_name: str
    temp_path: str
    is_complete: bool


class CommitTable:
    """The items of one Delta table. Methods raise what an ObjectClient raises (client.py); FileExistsError for a key that
    exists."""

    def __init__(self, table_path: str, options: StorageOptions) -> None:
        name = options.get("s3.dynamodb_table")
        assert name is not None
        self._table_path, self._name = table_path, name
        region = options.get("s3.dynamodb_region") or options.get("s3.region")
        endpoint = options.get("s3.dynamodb_endpoint")
        self._access = access_of(options, endpoint=endpoint, region=region, endpoint_option="s3.dynamodb_endpoint")
        self._client = aws_client("dynamodb", self._access)

    def find(self, file_name: str) -> CommitEntry | None:
        """Read the item of a commit; None if there is none. file_name: of the commit in the log."""
        key = {"tablePath": {"S": self._table_path}, "fileName": {"S": file_name}}
        answer = self._send_request(lambda: self._client.get_item(TableName=self._name, Key=key, ConsistentRead=True))
        return _parse_item(answer["Item"]) if answer.get("Item") else None

    def find_newest(self) -> CommitEntry | None:
        """Read the newest commit: the greatest file name, because names of commits sort by version. None if the table has no
        item."""
        answer = self._send_request(
            lambda: self._client.query(
                TableName=self._name,
                KeyConditionExpression="tablePath = :path",
                ExpressionAttributeValues={":path": {"S": self._table_path}},
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=1,
            )
        )
        return _parse_item(answer["Items"][0]) if answer["Items"] else None

    def add(self, entry: CommitEntry) -> None:
        """Add the item of a new commit. Raises FileExistsError if an item with this key exists."""
        item, condition = self._item(entry), "attribute_not_exists(fileName)"
        self._send_request(lambda: self._client.put_item(TableName=self._name, Item=item, ConditionExpression=condition))

    def complete(self, entry: CommitEntry) -> None:
        """Mark the item as complete. DynamoDB may delete it after its expireTime."""
        expires = {"expireTime": {"N": str(int(time.time()) + _EXPIRES_AFTER_SECONDS)}}
        item = {**self._item(replace(entry, is_complete=True)), **expires}
        self._send_request(lambda: self._client.put_item(TableName=self._name, Item=item))

    def _item(self, entry: CommitEntry) -> dict[str, Any]:
        """The entry as DynamoDB's attributes, each with its type: S is a text."""
        return {
            "tablePath": {"S": self._table_path},
            "fileName": {"S": entry.file_name},
            "tempPath": {"S": entry.temp_path},
            "complete": {"S": "true" if entry.is_complete else "false"},
        }

    def _send_request(self, request: Any) -> Any:
        return call_aws(f"the DynamoDB table {self._name}", self._access, request)


def _parse_item(item: dict[str, Any]) -> CommitEntry:
    is_complete = item["complete"]["S"].lower() == "true"
    return CommitEntry(file_name=item["fileName"]["S"], temp_path=item["tempPath"]["S"], is_complete=is_complete)


class DynamoDbStore(RemoteStore):
    """A RemoteStore in S3 that does not rely on conditional writes there."""

    __slots__ = ("_commit_table",)

    def __init__(self, root: str, options: StorageOptions) -> None:
        super().__init__(root, options)
        self._commit_table: CommitTable | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return DynamoDbStore, (self.root, self.options)

    @property
    def _commits(self) -> CommitTable:
        if self._commit_table is None:
            self._commit_table = CommitTable(self.root, self.options)
        return self._commit_table

    # ------------------------------------------------------------ the log

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        if directory == LOG_DIRECTORY:
            self._finish_newest_commit()
        return super().list_from(directory, start)

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        """Put a new object. A commit is decided by its item in DynamoDB. Raises FileExistsError if the object exists, or another
        writer's commit has the version."""
        directory, _, name = path.rpartition("/")
        log_name = parse_log_name(name) if directory == LOG_DIRECTORY else None
        if log_name is None or log_name.kind is not LogKind.COMMIT:
            self._put_without_item(path, data)
            return
        if self._has_object(path):  # items of commits that are published expire, so an item that is missing proves nothing
            raise FileExistsError(errno.EEXIST, "There is an object of that name", path)
        self._check_previous_commit(log_name.version, name)
        # The three steps of the module's docstring: the bytes, the item, the bytes again under the commit's own name.
        entry = CommitEntry(name, f".tmp/{name}.{uuid.uuid4()}", is_complete=False)
        self.put(f"{LOG_DIRECTORY}/{entry.temp_path}", data)
        self._add_item(entry)
        try:
            self._finish_commit(entry, data)
        except FileExistsError:
            raise
        except (OSError, StorageError) as error:  # the commit has succeeded; the next reader or writer finishes it
            _log.warning("%s: commit %s is decided, and not yet at its place: %s", self.root, name, error)

    def _put_without_item(self, path: str, data: bytes) -> None:
        """Put a file that is not a commit. Such files have a unique name, or the same content from every writer, so a check
        before the write is enough."""
        if self._has_object(path):
            raise FileExistsError(errno.EEXIST, "There is an object of that name", path)
        self.put(path, data)

    def _check_previous_commit(self, version: int, name: str) -> None:
        """Check that the previous commit is at its place, and complete it if necessary. Raises StorageError if it is missing,
        because this commit would leave a gap. version, name: of the commit that is tried."""
        if version == 0:  # there is no previous commit, but perhaps an item of a deleted table
            old_entry = self._run_in_dynamodb("look for", lambda: self._commits.find(name))
            if old_entry is not None and old_entry.is_complete and not self._has_object(f"{LOG_DIRECTORY}/{name}"):
                raise StorageError(
                    f"The DynamoDB table has a commit {name} of {self.root}, whose file is missing: a table was deleted at this "
                    "place. Nothing was committed. Delete the items of its tablePath first, or use another place.",
                    root=self.root,
                )
            return
        previous_name = commit_file_name(version - 1)
        entry = self._run_in_dynamodb("look for", lambda: self._commits.find(previous_name))
        if entry is not None and not entry.is_complete:
            self._finish_commit(entry)
        elif not self._has_object(f"{LOG_DIRECTORY}/{previous_name}"):
            raise StorageError(
                f"The previous commit {previous_name} of {self.root} is missing. Nothing was committed.",
                root=self.root,
            )

    def _add_item(self, entry: CommitEntry) -> None:
        """Make the commit a version of the table, by adding its item.

        Raises FileExistsError if another writer's commit has the version, after putting that commit to its place. Raises
        NotAnswered if DynamoDB neither confirmed nor refused, and has no item.
        """
        try:
            self._connection.once(lambda: self._commits.add(entry))
        except FileExistsError:  # boto3 may have repeated a request that had added our own item: then the commit has succeeded
            self._has_our_item(entry)  # raises FileExistsError if the item is another writer's
        except NotAnswered:
            if not self._has_our_item(entry):
                raise

    def _has_our_item(self, our_entry: CommitEntry) -> bool:
        """Read whose item has the version, after a refused or unanswered request to add ours. Returns True for our item, and
        False if there is no item. Raises FileExistsError for another writer's item, after putting that commit to its place."""
        entry = self._run_in_dynamodb("look for", lambda: self._commits.find(our_entry.file_name))
        if entry is None:
            return False
        if entry.temp_path == our_entry.temp_path:
            return True
        if not entry.is_complete:
            self._finish_commit(entry)
        raise FileExistsError(errno.EEXIST, "There is a commit of that name", our_entry.file_name)

    # ------------------------------------------------------------ complete commits of other writers

    def _finish_newest_commit(self) -> None:
        """Put the newest commit to its place if its writer did not."""
        newest = self._run_in_dynamodb("look for", self._commits.find_newest)
        if newest is None or newest.is_complete:
            return
        try:
            self._finish_commit(newest)
        except StorageError as error:  # for example because the user may only read
            text = "%s: commit %s is decided, and cannot be put to its place: %s"
            _log.warning(text, self.root, newest.file_name, error.message)

    def _finish_commit(self, entry: CommitEntry, our_bytes: bytes | None = None) -> None:
        """Put the commit to its place. Every writer puts the same bytes, so several may do it.

        our_bytes: the content, if this store makes the commit; None for another writer's commit, whose bytes are read from its
        temporary object. Raises FileExistsError if other bytes are at the place: a writer that does not use DynamoDB, or uses it
        without the condition, was first. Raises StorageError if the temporary object is missing.
        """
        place = f"{LOG_DIRECTORY}/{entry.file_name}"
        if not self._has_object(place):
            self.put(place, self._read_temporary(entry) if our_bytes is None else our_bytes)
        elif our_bytes is not None and self.read(place) != our_bytes:
            raise FileExistsError(errno.EEXIST, "A writer that DynamoDB had not let through wrote this commit", place)
        self._run_in_dynamodb("complete", lambda: self._commits.complete(entry))

    def _read_temporary(self, entry: CommitEntry) -> bytes:
        """The content of a commit, from its temporary object. Raises StorageError if that is missing."""
        try:
            return self.read(f"{LOG_DIRECTORY}/{entry.temp_path}")
        except FileNotFoundError as error:
            raise StorageError(
                f"The DynamoDB table has a commit {entry.file_name} of {self.root} that is not at its place yet, and its bytes "
                f"({entry.temp_path}) are gone: a table was deleted at this place. Nothing was committed. Delete the items of "
                "its tablePath first, or use another place.",
                root=self.root,
            ) from error

    def _has_object(self, path: str) -> bool:
        address, client = self._locate(path), self._connection.client
        try:
            self._connection.run(f"look for {path}", lambda: client.size(address.container, address.key))
        except FileNotFoundError:
            return False
        return True

    def _run_in_dynamodb(self, verb: str, call: Any) -> Any:
        """Send a request to DynamoDB, and repeat it until it is answered. verb: what the request does, for messages."""
        return self._connection.run(f"{verb} a commit of {self.root} in DynamoDB", call)
