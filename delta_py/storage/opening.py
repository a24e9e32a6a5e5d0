"""Which store a URL means.

    store = open_store("/data/t")      # or file:///data/t
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.storage.local import LocalStore, check_host
from delta_py.storage.store import ObjectStore


def open_store(url: str) -> ObjectStore:
    """The store of a table's root: a local path or a file: URL.

    Raises UnsupportedOperationError for a scheme that no store serves and for another host, InvalidOptionError for an empty text.
    """
    if not url:
        raise InvalidOptionError("The path of the table is empty. Give a directory or a URL.", option="path")
    scheme = urlsplit(url).scheme if "://" in url or url.startswith("file:") else ""
    if scheme == "":
        return LocalStore(url)
    if scheme == "file":
        check_host(urlsplit(url).netloc, url)
        return LocalStore(unquote(urlsplit(url).path))
    raise UnsupportedOperationError(
        f"No store serves {scheme}:// URLs in this version (table {url}). Use a local path or a file: URL.", scheme=scheme
    )
