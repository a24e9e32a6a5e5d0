"""Open the store that a URL names.

    store = open_store("/data/t")                            # or file:///data/t
    store = open_store("s3://bucket/t", options)             # s3a, gs, az, abfs, abfss, wasb, wasbs

SDKs are imported at the first request to a store of their kind.
"""

from __future__ import annotations

import os
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from delta_py.errors import InvalidOptionError, UnsupportedOperationError, shown
from delta_py.object_stores.remote import RemoteStore
from delta_py.object_stores.table_store import NO_RULES, NewTableRules, TableStore
from delta_py.storage.addresses import is_name_in_catalog, kind_of, scheme_of
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.storage.local import LocalStore, check_host
from delta_py.storage.regular_files import can_be_name
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import NO_OPTIONS, StorageOptions

PathLike: TypeAlias = str | os.PathLike[str]


def path_text(path: PathLike) -> str:
    """A path or URL as text. Raises InvalidOptionError if it is neither text nor a Python path."""
    text = path if isinstance(path, str) else getattr(path, "__fspath__", lambda: None)()
    if not isinstance(text, str):
        raise InvalidOptionError(
            f"The path of the table is {shown(path)}, of type {type(path).__name__}. Give text, or a pathlib.Path.",
            option="path",
        )
    return text


def open_store(url: PathLike, options: StorageOptions = NO_OPTIONS) -> ObjectStore:
    """The store of a table's root: a local path, a file: URL, the URL of an object store, or a name in Unity Catalog
    (`unity://host/catalog.schema.table`). Sends no request yet, except to Unity Catalog.

    Raises UnsupportedOperationError for a scheme that no store serves and for another host; InvalidOptionError if it is not a
    path, is empty or cannot be a name, and for a URL of an object store that names no container; as open_catalog_table.
    """
    url = path_text(url)
    if not url:
        raise InvalidOptionError("The path of the table is empty. Give a directory or a URL.", option="path")
    if kind_of(url) is not None:
        return _table_store(_remote_store(url, options), options)
    scheme = "file" if url.startswith("file:") else scheme_of(url)
    if scheme is None:
        return _table_store(_local_store(url), options)
    if scheme == "file":
        return _table_store(_local_store(_path_of_file_url(url)), options)
    if is_name_in_catalog(url):
        from delta_py.object_stores.open_catalog_table import open_catalog_table  # imports HTTP clients

        return open_catalog_table(url, options)
    raise UnsupportedOperationError(
        f"No store serves {scheme}:// URLs (table {url}). Use a local path, or a URL of S3 (s3, s3a), Google Cloud Storage (gs) "
        "or Azure (az, abfs, abfss), or unity://host/catalog.schema.table.",
        scheme=scheme,
    )


def open_or_stage(url: PathLike, options: StorageOptions) -> tuple[ObjectStore, NewTableRules]:
    """open_store for a write that creates a missing table. Also returns the rules for a new table: NO_RULES unless Unity Catalog
    will manage it. Raises as open_store; for a name in Unity Catalog as open_or_stage_catalog_table."""
    if not is_name_in_catalog(path_text(url)):
        return open_store(url, options), NO_RULES
    from delta_py.object_stores.new_catalog_table import open_or_stage_catalog_table  # as in open_store

    return open_or_stage_catalog_table(path_text(url), options)


def coordination_of(store: ObjectStore) -> CoordinatedStore | None:
    """The store that asks a coordinator (a database, or Unity Catalog) which commits are versions of the table. None if the table
    was opened without a coordinator."""
    root_store = store.root_store if isinstance(store, TableStore) else store
    return root_store if isinstance(root_store, CoordinatedStore) else None


def named_coordination(store: ObjectStore) -> CoordinatedStore:
    """The store that asks the coordinator, for callers that have opened the store with one."""
    coordinated = coordination_of(store)
    assert coordinated is not None, f"{store.root} was opened without a coordinator"
    return coordinated


def is_in_transaction(store: ObjectStore) -> bool:
    """Whether commits become part of a transaction over several tables, and are not versions yet."""
    coordinated = coordination_of(store)
    return coordinated is not None and coordinated.transaction is not None


def refuse_in_transaction(store: ObjectStore, statement: str, undone: str) -> None:
    """Raises UnsupportedOperationError in a transaction over tables. statement: the beginning of the message, up to the words
    "the table". undone: a sentence of the message that says what did not happen."""
    if is_in_transaction(store):
        raise UnsupportedOperationError(
            f"{statement} the table at {store.root} cannot be part of a transaction over tables. {undone} Run it after the "
            "transaction."
        )


def _table_store(root_store: ObjectStore, options: StorageOptions) -> TableStore:
    """The store of a table whose root is in root_store; if the options name a coordinator, it determines the commits."""
    coordinator_url = options.get("coordinator")
    if coordinator_url is not None:
        root_store = CoordinatedStore(root_store, coordinator_url, options.get("coordinator.transaction"))
    return TableStore(root_store, options)


def _path_of_file_url(file_url: str) -> str:
    """The path on this machine that a file: URL names. Raises InvalidOptionError for a text that is no URL, and as check_host."""
    try:
        parts = urlsplit(file_url)
    except ValueError as error:
        raise InvalidOptionError(
            f"The path {shown(file_url)} of the table is no URL: {error}. Correct it.", option="path"
        ) from error
    check_host(parts.netloc, file_url)
    return unquote(parts.path)


def _local_store(path: str) -> ObjectStore:
    if not can_be_name(path):
        raise InvalidOptionError(
            f"The path {shown(path)} of the table contains characters that no file name can contain. Correct it.", option="path"
        )
    return LocalStore(path)


def _remote_store(url: str, options: StorageOptions) -> ObjectStore:
    """The store of a root in an object store; its commits are decided in DynamoDB if the options name a table there."""
    if kind_of(url) == "s3" and options.get("s3.dynamodb_table") is not None:
        from delta_py.object_stores.s3_dynamodb import DynamoDbStore  # imports boto3

        return DynamoDbStore(url, options)
    return RemoteStore(url, options)
