"""The store of a table, which also reads the files that the table names in other stores. Reading tasks import it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_py.storage.addresses import address_of, kind_of
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.storage.store_options import NO_OPTIONS, StorageOptions

if TYPE_CHECKING:
    from delta_py.unity.external_tables import ExternalTable
from delta_py.unity.external_tables import NewExternalTable


@dataclass(frozen=True, slots=True)
class TableStore:
    """The store of one table. root_store has the files below the table's root. The log may name files in another kind of store or
    in another account: shallow clones name the files of their source in this way. Such files are read there, and nothing is
    written or deleted there.

    external_table: for a table that was opened by its name in Unity Catalog, if the catalog does not decide its commits; a
    NewExternalTable if the catalog does not have the table yet; otherwise None."""

    root_store: ObjectStore
    options: StorageOptions = NO_OPTIONS
    external_table: ExternalTable | NewExternalTable | None = None

    @property
    def root(self) -> str:
        return self.root_store.root

    @property
    def is_remote(self) -> bool:
        return self.root_store.is_remote

    def _store_and_name(self, path: str) -> tuple[ObjectStore, str]:
        """The store that reads a file, and the file's name in that store.

        The root's store reads paths of this machine, and URLs of its own kind of store and account. For any other URL this makes
        a store of the file's directory, with the same options.
        """
        if kind_of(path) is None:
            return self.root_store, path
        if kind_of(self.root) is not None and address_of(path).service == address_of(self.root).service:
            return self.root_store, path
        from delta_py.object_stores.remote import RemoteStore  # imported here because few tables name files elsewhere

        directory, _, name = path.rpartition("/")
        return RemoteStore(directory, self.options), name

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        return self.root_store.list_from(directory, start)

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        return self.root_store.list_recursive(directory)

    def read(self, path: str) -> bytes:
        store, name = self._store_and_name(path)
        return store.read(name)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        store, name = self._store_and_name(path)
        return store.read_range(name, offset, length)

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        store, name = self._store_and_name(path)
        return store.open_input(name, size_bytes, is_size_verified=is_size_verified)

    def open_output(self, path: str) -> pa.NativeFile:
        return self.root_store.open_output(path)

    def open_atomic_output(self, path: str) -> pa.NativeFile:
        return self.root_store.open_atomic_output(path)

    def copy_from(self, source: ObjectStore, source_path: str, path: str, size_bytes: int) -> bool:
        if isinstance(source, TableStore):
            source, source_path = source._store_and_name(source_path)
        return self.root_store.copy_from(source, source_path, path, size_bytes)

    def link(self, path: str, new_path: str) -> bool:
        return self.root_store.link(path, new_path)

    def put(self, path: str, data: bytes) -> None:
        self.root_store.put(path, data)

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        self.root_store.put_if_absent(path, data, durably=durably)

    def abort_uploads(self, part_of_name: str) -> None:
        self.root_store.abort_uploads(part_of_name)

    def delete(self, path: str) -> None:
        self.root_store.delete(path)


@dataclass(frozen=True, slots=True)
class NewTableRules:
    """Properties of a new table, and features as `delta.feature.<name>`. required: the catalog demands them. suggested: the
    catalog's defaults, which the table need not have."""

    required: Mapping[str, str] = field(default_factory=dict)
    suggested: Mapping[str, str] = field(default_factory=dict)

    def properties(self, caller_values: Mapping[str, str] | None) -> dict[str, str]:
        """The properties of a new table: the required ones and the caller's, which take precedence. A later step checks whether
        they satisfy the catalog."""
        return {**self.required, **(caller_values or {})}

    def defaults(self, caller_values: Mapping[str, str] | None) -> dict[str, str]:
        """The defaults of a new table: the suggested ones and the caller's, which take precedence. They apply
        where the table has no other value."""
        return {**self.suggested, **(caller_values or {})}


NO_RULES = NewTableRules()
