"""What this process remembers of tables between commits, so that most commits need not read the tables' files."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore

READ_EVERY_VERSIONS = 10
"""A process that does not know a table yet, or may have missed commits of other writers, reads the table at versions that are
divisible by this."""
_MOST_TABLES = 1000


def table_key(store: ObjectStore, config: TableConfig) -> str:
    """The key of a table in the caches: a table that replaces another at the same place has another key."""
    return f"{store.root} {config.metadata.id}"


class CountPerTable:
    """Remembers a number for each of the most recently used tables, by table_key; None for a table in which there is nothing to
    count. Threads may share an instance."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: OrderedDict[str, int | None] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        with self._lock:
            return key in self._counts

    def add(self, key: str, difference: int) -> int | None:
        """Add to the number and return the sum; None if there is no number."""
        with self._lock:
            count = self._counts.get(key)
            if count is not None:
                self._counts[key] = count = count + difference
            return count

    def put(self, key: str, count: int | None) -> None:
        """Set the number of a table, and forget the table that was set longest ago if there are too many."""
        with self._lock:
            self._counts[key] = count
            self._counts.move_to_end(key)
            while len(self._counts) > _MOST_TABLES:
                self._counts.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._counts.clear()
