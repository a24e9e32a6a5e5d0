"""The columns that the scans planned by this process filter by. OPTIMIZE can lay out a table for them.

    FILTERED.count_filter(snapshot, predicate)          # plan_scan calls this
    FILTERED.of(snapshot)                       # {("day",): 12, ("at", "city"): 1}

A column counts once per scan, however often the predicate names it. Tests for null do not count, because each join adds them
for its keys. The most recently read tables are remembered until the process ends.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from delta_py.expressions.tree import Column, Expression, IsNull, children
from delta_py.snapshot import Snapshot
from delta_py.types.schema import Path

_MAX_TABLES = 1000  # limits the memory that the counts take
_MAX_COLUMNS = 1000  # of one table

_is_counted_elsewhere: ContextVar[bool] = ContextVar("_is_counted_elsewhere", default=False)


class FilteredColumns:
    """Counts, for each table, how many scans compare each of its columns. Threads may share an instance."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tables: OrderedDict[str, Counter[Path]] = OrderedDict()

    def count_filter(self, snapshot: Snapshot, predicate: Expression) -> None:
        """Add one to the count of each column that a scan's predicate compares. The least recently read tables are forgotten."""
        if _is_counted_elsewhere.get():
            return
        compared_columns = set(_compared_columns(predicate))
        with self._lock:
            counts = self._tables.setdefault(_table_key(snapshot), Counter())
            self._tables.move_to_end(_table_key(snapshot))
            while len(self._tables) > _MAX_TABLES:
                self._tables.popitem(last=False)
            counts.update(path for path in compared_columns if path in counts or len(counts) < _MAX_COLUMNS)

    def of(self, snapshot: Snapshot) -> Counter[Path]:
        """How many scans of the table compared each column."""
        with self._lock:
            return Counter(self._tables.get(_table_key(snapshot), {}))


@contextmanager
def counted_elsewhere() -> Iterator[None]:
    """Scans that are planned inside this context do not count: another step of the same query counts their columns."""
    token = _is_counted_elsewhere.set(True)
    try:
        yield
    finally:
        _is_counted_elsewhere.reset(token)


FILTERED = FilteredColumns()
"""The counts of this process."""


def _table_key(snapshot: Snapshot) -> str:
    """The root and the id: a new table at the root of a dropped one starts without counts."""
    return f"{snapshot.store.root} {snapshot.metadata.id}"


def _compared_columns(predicate: Expression) -> Iterator[Path]:
    """The columns that the predicate compares. A test for null is no comparison."""
    pending = [predicate]
    while pending:
        match pending.pop():
            case Column() as column:
                yield column.path
            case IsNull():
                pass
            case expression:
                pending.extend(children(expression))
