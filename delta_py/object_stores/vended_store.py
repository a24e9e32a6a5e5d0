"""VendedStore: a table in an object store, with credentials that a catalog hands out and renews.

The process that opened the table renews them. A copy in another process has the credentials that were valid when it was made; it
renews them if the token was shared with that process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import pyarrow as pa

from delta_py.object_stores.connection import Connection, drop_connection
from delta_py.object_stores.remote import RemoteStore
from delta_py.object_stores.remote_files import RemoteInput
from delta_py.storage.arrow_files import PrefetchingFile
from delta_py.storage.store_options import StorageOptions


class VendedCredentials(Protocol):
    def storage_options(self, location: str) -> Mapping[str, str]:
        """Storage options with credentials that are valid now."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may renew them too: then they can be pickled."""


class VendedStore(RemoteStore):
    """The store of one table. options: the storage options without the credentials. `_options`, of RemoteStore: these options
    with the newest credentials."""

    __slots__ = ("_credentials", "_other_options")

    def __init__(self, root: str, options: StorageOptions, credentials: VendedCredentials) -> None:
        self._credentials, self._other_options = credentials, options
        super().__init__(root, self._with_credentials(root))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy that may not renew the credentials is a plain RemoteStore with those that are valid now."""
        if self._credentials.is_shared:
            return VendedStore, (self.root, self._other_options, self._credentials)
        return RemoteStore, (self.root, self.options)

    @property
    def options(self) -> StorageOptions:
        """With credentials that are valid now."""
        self._renew()
        return self._options

    @property
    def _connection(self) -> Connection:
        self._renew()
        return super()._connection

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        """A file that gets a connection with valid credentials at each read, because it may stay open for longer than the
        credentials of now are valid."""
        current = cast(Connection, _CurrentConnection(self))
        return PrefetchingFile.over(RemoteInput(current, self._locate(path), path, size_bytes, is_size_verified=is_size_verified))

    def _renew(self) -> None:
        """Get the credentials, which the catalog's client caches while they are valid. If they are new, drop the connection that
        was made with the old ones."""
        options = self._with_credentials(self.root)
        if options != self._options:
            drop_connection(self._address.kind, self._address.account, self._options)
            self._options = options

    def _with_credentials(self, root: str) -> StorageOptions:
        return StorageOptions.of({**dict(self._other_options.values), **self._credentials.storage_options(root)})


class _CurrentConnection:
    """Looks like a Connection. Each use of an attribute goes to the store's connection of that moment, which has valid
    credentials."""

    def __init__(self, store: VendedStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store._connection, name)
