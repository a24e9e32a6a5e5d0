"""The files that a Spark stream has committed to a directory of Parquet files, by the stream's log in that directory.

    committed = committed_files(store)      # paths below the root; None if no stream has written there

Failed batches leave files next to the valid ones, so only the files that `_spark_metadata` names hold rows. The log has one file
per batch, with one line per file, and sometimes a file that ends in `.compact` and replaces those of all batches until then.
Protocol: Data Files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from delta_py.errors import UnsupportedOperationError
from delta_py.protocol.paths import decode_path, resolve
from delta_py.storage.addresses import location_of
from delta_py.storage.store import ObjectStore

STREAM_LOG = "_spark_metadata"
_VERSION = b"v1"  # the first line of each file of the log
_BATCH = re.compile(r"([0-9]+)(\.compact)?")


def committed_files(store: ObjectStore) -> frozenset[str] | None:
    """The paths of the files, below the root; None if there is no log, and empty for a log without batches. Raises
    UnsupportedOperationError for a log that cannot be understood, or that names files elsewhere.
    """
    names = [info.path.rpartition("/")[2] for info in store.list_from(STREAM_LOG)]
    # Sorted, so that `9.compact` comes after `9` and replaces it.
    batches = {int(match[1]): name for name in sorted(names) if (match := _BATCH.fullmatch(name))}
    if not batches:
        return frozenset() if names else None
    newest_batch = max(batches)
    first_batch = max((batch for batch, name in batches.items() if name.endswith(".compact")), default=0)
    missing = next((batch for batch in range(first_batch, newest_batch + 1) if batch not in batches), None)
    if missing is not None:
        raise _unusable_log_error(store, f"batch {missing} is missing, though {newest_batch} exists")
    files: set[str] = set()
    for batch in range(first_batch, newest_batch + 1):
        for path, action in _read_entries(store, batches[batch]):
            (files.discard if action == "delete" else files.add)(path)
    return frozenset(files)


def _read_entries(store: ObjectStore, name: str) -> Iterator[tuple[str, str]]:
    """The entries of a file of the stream's log: yields the path of a file below the root, and `add` or `delete`. name: of the
    log file. Raises UnsupportedOperationError."""
    version, *lines = store.read(f"{STREAM_LOG}/{name}").split(b"\n")
    if version != _VERSION:
        raise _unusable_log_error(store, f"{name} is of the version {version!r}")
    for line in filter(None, lines):
        try:
            entry: dict[str, Any] = orjson.loads(line)
            path, action = decode_path(entry["path"]), str(entry.get("action", "add"))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise _unusable_log_error(store, f"a line of {name} is no entry ({error})") from error
        root = location_of(store.root).rstrip("/") + "/"
        location = location_of(resolve(store.root, path))
        if not location.startswith(root):
            raise _unusable_log_error(store, f"it names {location}, which is not below the directory")
        yield location.removeprefix(root), action


def _unusable_log_error(store: ObjectStore, why: str) -> UnsupportedOperationError:
    """The error for a stream's log from which the valid files cannot be told."""
    return UnsupportedOperationError(
        f"The directory {store.root} is the output of a stream of Spark, and its log {STREAM_LOG} does not tell which files "
        f"count: {why}. Nothing was changed. Restore the log; or, if every file counts, move it elsewhere."
    )
