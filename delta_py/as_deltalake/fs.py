"""DeltaStorageHandler: the files of a table's storage for pyarrow's file systems."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from delta_py.exchange.arrow_file_system import StoreFileSystem
from delta_py.object_stores.open_store import open_store
from delta_py.storage.store_options import StorageOptions

__all__ = ["DeltaStorageHandler"]


class DeltaStorageHandler(StoreFileSystem):
    """A file system of pyarrow below a table's root. options: of the store. known_sizes: of files, in bytes, by path."""

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        options: Mapping[str, str] | None = None,
        known_sizes: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(open_store(table_uri, StorageOptions.of(options or {})), known_sizes)

    @classmethod
    def from_table(
        cls, table: Any, options: Mapping[str, str] | None = None, known_sizes: Mapping[str, int] | None = None
    ) -> Self:
        """table: a DeltaTable."""
        return cls(table.table_uri, options, known_sizes)
