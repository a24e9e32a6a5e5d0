"""What this process remembers of tables from one commit to the next, so that most commits need not look at their files."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore

LOOK_EVERY = 10
"""Who does not know a table yet, or may have missed what others did, looks at versions that this divides."""
_MOST_TABLES = 1000


def table_key(store: ObjectStore, config: TableConfig) -> str:
    return f"{store.root} {config.metadata.id}"


class CountPerTable:
    """A number for each of the last tables that were dealt with; None where there is nothing to count. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: OrderedDict[str, int | None] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        with self._lock:
            return key in self._counts

    def add(self, key: str, more: int) -> int | None:
        """The number with so many more; None where there is none."""
        with self._lock:
            count = self._counts.get(key)
            if count is not None:
                self._counts[key] = count = count + more
            return count

    def put(self, key: str, count: int | None) -> None:
        with self._lock:
            self._counts[key] = count
            self._counts.move_to_end(key)
            while len(self._counts) > _MOST_TABLES:
                self._counts.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._counts.clear()
