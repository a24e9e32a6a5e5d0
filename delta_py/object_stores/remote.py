"""A table in an object store (S3, Google Cloud Storage, Azure): ObjectStore on top of an ObjectClient.

    RemoteStore("s3://bucket/tables/t", options)

An object appears as a whole. So `put` needs no temporary name, and `put_if_absent` is one request whose outcome the store
decides. A key is the root's key and a path, joined by `/`; there are no directories. A store is pickled as its URL and options,
and uses the connection of the process that it is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from delta_py.errors import StorageError, UnsupportedOperationError
from delta_py.object_stores.connection import Connection, connection_of
from delta_py.object_stores.remote_files import RemoteInput, RemoteOutput
from delta_py.protocol.paths import is_absolute
from delta_py.storage.addresses import Address, address_of, canonical, kind_of
from delta_py.storage.arrow_files import AbortableFile, PrefetchingFile
from delta_py.storage.regular_files import can_be_name
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.storage.store_options import NO_OPTIONS, StorageOptions


class RemoteStore:
    """The store of one table. root: a URL. Raises InvalidOptionError for a URL that names no container; sends no request."""

    __slots__ = ("_address", "_options", "_root")

    def __init__(self, root: str, options: StorageOptions = NO_OPTIONS) -> None:
        self._root, self._options = canonical(root), options
        self._address = address_of(root)

    @property
    def root(self) -> str:
        return self._root

    @property
    def options(self) -> StorageOptions:
        return self._options

    @property
    def is_remote(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"RemoteStore({self._root!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteStore) and (other._root, other._options) == (self._root, self._options)

    def __hash__(self) -> int:
        return hash(self._root)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStore, (self._root, self._options)

    @property
    def _connection(self) -> Connection:
        return connection_of(self._address.kind, self._address.account, self._options)

    # ------------------------------------------------------------ names

    def _locate(self, path: str) -> Address:
        """The address of an object to read: relative to the root, or a URL of the same kind of store and account.

        Raises UnsupportedOperationError for other places: a table in a store that others write to must not make this process read
        local files.
        """
        if not can_be_name(path):
            raise FileNotFoundError(2, "No object can have this name", path)
        if is_absolute(path):
            address = address_of(path) if kind_of(path) is not None else None
            if address is None or address.service != self._address.service:
                raise UnsupportedOperationError(
                    f"{path} is not in the kind of storage that the table at {self._root} is in, and is not read. Read the table "
                    "through the store that holds its files.",
                    path=path,
                )
            return address
        return replace(self._address, key=self._key_below_root(path))

    def _locate_below_root(self, path: str) -> Address:
        """The address of an object to write or delete: below the root. Raises StorageError."""
        if is_absolute(path) or any(part in ("", ".", "..") for part in path.split("/")):
            raise StorageError(
                f"{path!r} is not the name of an object below {self._root}. Nothing was written or deleted there.",
                root=self._root,
                path=path,
            )
        return replace(self._address, key=self._key_below_root(path))

    def _key_below_root(self, path: str) -> str:
        """The key of a path that is relative to the root. An empty path gives the prefix of all keys below the root."""
        return f"{self._address.key}/{path}" if self._address.key else path

    # ------------------------------------------------------------ reading

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        return self._list_objects(directory, start, deep=False)

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        return self._list_objects(directory, "", deep=True)

    def _list_objects(self, directory: str, start: str, *, deep: bool) -> Iterator[ObjectInfo]:
        """The objects in the directory whose names are at least `start`. deep: also those in its subdirectories. Requests one
        page at a time, when the caller needs it."""
        connection, container = self._connection, self._address.container
        root_prefix = self._key_below_root("")
        prefix = self._key_below_root(f"{directory}/") if directory else root_prefix
        first_key, token = prefix + start, None
        while True:
            page = connection.run(
                f"list {self._root}/{directory}",
                lambda token=token: connection.client.list_page(container, prefix, first_key, deep=deep, token=token),  # type: ignore[misc]
            )
            for info in page.objects:
                if info.path.encode() >= first_key.encode():  # a page may have objects before `start`
                    yield replace(info, path=info.path.removeprefix(root_prefix))
            token = page.token
            if token is None:
                return

    def read(self, path: str) -> bytes:
        address, connection = self._locate(path), self._connection
        return connection.run(f"read {path}", lambda: connection.client.get(address.container, address.key))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        if length == 0:  # a Range header cannot ask for no bytes
            return b""
        address, connection = self._locate(path), self._connection
        return connection.run(f"read {path}", lambda: connection.client.get(address.container, address.key, offset, length))

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        return self._connection.map(self.read, paths)

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        return PrefetchingFile.over(
            RemoteInput(self._connection, self._locate(path), path, size_bytes, is_size_verified=is_size_verified)
        )

    # ------------------------------------------------------------ writing

    def open_output(self, path: str) -> pa.NativeFile:
        return AbortableFile.over(RemoteOutput(self._connection, self._locate_below_root(path), path))

    def open_atomic_output(self, path: str) -> pa.NativeFile:
        """The same as open_output: no object appears before it is complete."""
        return self.open_output(path)

    def copy_from(self, source: ObjectStore, source_path: str, path: str, size_bytes: int) -> bool:
        """Let the store copy an object; False if it cannot. source: the store that reads source_path."""
        # One request needs credentials that can read the source and write the target. Equal options have the same credentials.
        if not isinstance(source, RemoteStore) or source._options != self._options:
            return False
        address, connection = self._locate_below_root(path), self._connection
        source_address = source._locate(source_path)
        if source_address.service != address.service or size_bytes > connection.client.copies_up_to:
            return False
        connection.run(
            f"copy {source_path} to {path}",
            lambda: connection.client.copy(source_address.container, source_address.key, address.container, address.key),
        )
        return True

    def link(self, path: str, new_path: str) -> bool:
        """Always False: object stores have no links."""
        return False

    def put(self, path: str, data: bytes) -> None:
        address, connection = self._locate_below_root(path), self._connection
        connection.run(f"write {path}", lambda: connection.client.put(address.container, address.key, data))

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        address, connection = self._locate_below_root(path), self._connection
        # Not repeated: after a request that was not answered, the caller first checks who has written the object.
        connection.once(lambda: connection.client.put_new(address.container, address.key, data))

    def abort_uploads(self, part_of_name: str) -> None:
        connection, container, prefix = self._connection, self._address.container, self._key_below_root("")
        connection.run(
            f"give up uploads below {self._root}",
            lambda: connection.client.abort_uploads(container, prefix, part_of_name),
        )

    def delete(self, path: str) -> None:
        address, connection = self._locate_below_root(path), self._connection
        connection.run(f"delete {path}", lambda: connection.client.delete(address.container, address.key))
