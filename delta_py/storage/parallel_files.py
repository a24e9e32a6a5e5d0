"""Run one step for each of many files of a table, some at a time: to delete or move them.

    failed = for_each_file(store, files["path"], store.delete, "VACUUM could not delete")

The step continues with the other files after one has failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from delta_py.errors import StorageError
from delta_py.progress import steps
from delta_py.storage.store import ObjectStore

_log = logging.getLogger("delta_py")

_THREADS = 16
_BATCH_FILES = 1_000  # files that wait in the pool at a time
_MAX_LOGGED = 5  # failed files that are logged


def for_each_file(
    store: ObjectStore, paths: pa.Array | pa.ChunkedArray, step: Callable[[str], None], what_failed: str
) -> dict[str, OSError | StorageError]:
    """Run the step for all files. Returns the error of each file for which it failed, by path; logs the first few. step: takes a
    path. what_failed: the beginning of the log's line, before the path."""
    errors: dict[str, OSError | StorageError] = {}

    def attempt(path: str) -> None:
        try:
            step(path)
        except (OSError, StorageError) as error:
            errors[path] = error

    with steps(len(paths), "files") as count_finished, ThreadPoolExecutor(_THREADS, "delta_py-files") as pool:
        for start in range(0, len(paths), _BATCH_FILES):  # a pool keeps every waiting job in memory
            for _ in pool.map(attempt, paths.slice(start, _BATCH_FILES).to_pylist()):
                count_finished(1)
    for path in sorted(errors)[:_MAX_LOGGED]:
        _log.warning("%s: %s %s: %s", store.root, what_failed, path, errors[path])
    return errors
