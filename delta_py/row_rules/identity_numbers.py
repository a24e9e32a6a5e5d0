"""Numbers for identity columns, given by many tasks at once that know nothing of each other.

    values = IdentityValues(columns, task=3, tasks=8)
    values.take("id", 1000)                   # an Arrow array of 1000 numbers that no other task gives
    values.marks                              # the furthest number of each column

Where the number of tasks is known, they take turns: task t of n gives every n-th number from the t-th on. Where it is not
known, the sequence is cut into blocks that grow, and a task's blocks are those of its column in a table of all tasks by
all blocks, counted diagonal by diagonal: whatever their number, no two tasks share a block, and small writes stay at small
numbers. Either way numbers are left out, which the protocol allows.
Protocol: Identity Columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import pyarrow as pa

from delta_py.errors import UnsupportedOperationError
from delta_py.protocol.identity_columns import Identity

_LARGEST_BLOCK_EXPONENT = 16


class IdentityValues:
    """Numbers for one task of one commit. tasks: how many tasks there are at most; None when that is not known.

    Raises UnsupportedOperationError for a task that there should not be.
    """

    def __init__(self, columns: Sequence[Identity], task: int, tasks: int | None) -> None:
        if tasks is not None and not 0 <= task < tasks:
            raise UnsupportedOperationError(
                f"The write was to have {tasks} tasks, and task {task} would give the same identity numbers as another: the rows "
                "come in more parts than when they were planned. Nothing was written. Run it again.",
                task=task,
                tasks=tasks,
            )
        self._columns = {column.name: column for column in columns}
        self._task, self._tasks = task, tasks
        self._runs = {column.name: self._own_runs() for column in columns}
        self._rest: dict[str, tuple[int, int]] = {}
        self._furthest: dict[str, int] = {}

    @property
    def marks(self) -> tuple[tuple[str, int], ...]:
        """Columns that numbers were taken for, and the furthest."""
        return tuple(self._furthest.items())

    def take(self, name: str, row_count: int) -> pa.Array:
        """As many numbers, of 64 bits. Raises InvariantViolationError (ARITHMETIC_OVERFLOW) when there are no more."""
        column, stride = self._columns[name], 1 if self._tasks is None else self._tasks
        parts, missing = [np.empty(0, np.int64)], row_count
        while missing:
            first, length = self._rest.get(name) or next(self._runs[name])
            taken = min(length, missing)
            low, high = column.number(first), column.number(first + (taken - 1) * stride)
            parts.append(low + np.arange(taken, dtype=np.int64) * (column.step * stride))
            self._furthest[name] = column.further(high, self._furthest.get(name, high))
            self._rest[name] = (first + taken * stride, length - taken)
            if length == taken:
                del self._rest[name]
            missing -= taken
        return pa.array(np.concatenate(parts))

    def _own_runs(self) -> Iterator[tuple[int, int]]:
        """The task's places in the sequence, as first places and lengths; with a known number of tasks one run without end,
        whose places are `tasks` apart."""
        if self._tasks is not None:
            return iter([(self._task, 2**63)])
        return _blocks(self._task)


def _blocks(task: int) -> Iterator[tuple[int, int]]:
    """Block k of a task stands on diagonal task + k, behind those with a smaller k; it has 2**k places, up to a limit."""
    before = sum(_places(diagonal + 1) for diagonal in range(task))
    for k in count():
        yield before + _places(k), _size(k)
        before += _places(task + k + 1)


def _size(block: int) -> int:
    return 1 << min(block, _LARGEST_BLOCK_EXPONENT)


def _places(blocks: int) -> int:
    """How many places the first so many blocks of a task have."""
    growing = min(blocks, _LARGEST_BLOCK_EXPONENT)
    return (1 << growing) - 1 + (blocks - growing) * (1 << _LARGEST_BLOCK_EXPONENT)
