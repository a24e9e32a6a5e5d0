"""Numbers for identity columns, assigned by many tasks at the same time that do not communicate.

    values = IdentityValues(columns, task=3, tasks=8)
    values.take("id", 1000)                   # an Arrow array of 1000 numbers that no other task assigns
    values.marks                              # the furthest number of each column

If the number of tasks is known, they alternate: task t of n assigns every n-th number from the t-th on. If it is not known, the
sequence is cut into blocks that grow. A task's blocks are its column in a table of all tasks by all blocks, counted diagonal by
diagonal: however many tasks there are, no two share a block, and small writes use small numbers. Either way some numbers are
skipped, which the protocol allows.
Protocol: Identity Columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import pyarrow as pa

from delta_py.errors import UnsupportedOperationError
from delta_py.protocol.identity_columns import Identity

# A block has at most 2**16 positions.
_LARGEST_BLOCK_EXPONENT = 16


class IdentityValues:
    """Numbers for one task of one commit. tasks: the maximum number of tasks; None when that is not known.

    Raises UnsupportedOperationError for a task number that is too high.
    """

    def __init__(self, columns: Sequence[Identity], task: int, tasks: int | None) -> None:
        if tasks is not None and not 0 <= task < tasks:
            raise UnsupportedOperationError(
                f"The write was to have {tasks} tasks, and task {task} would give the same identity numbers as another: the rows "
                "arrive in more parts than were planned. Nothing was written. Run it again.",
                task=task,
                tasks=tasks,
            )
        self._columns = {column.name: column for column in columns}
        self._task, self._tasks = task, tasks
        # For each column: the runs that are still unused, the unused part of the current run (first position, number of
        # positions), and the furthest number so far.
        self._runs = {column.name: self._runs_of_task() for column in columns}
        self._current_runs: dict[str, tuple[int, int]] = {}
        self._furthest: dict[str, int] = {}

    @property
    def marks(self) -> tuple[tuple[str, int], ...]:
        """Columns whose numbers were used, each with its furthest number."""
        return tuple(self._furthest.items())

    def take(self, name: str, row_count: int) -> pa.Array:
        """`row_count` numbers of 64 bits. Raises InvariantViolationError (ARITHMETIC_OVERFLOW) if there are no more numbers."""
        column = self._columns[name]
        stride = 1 if self._tasks is None else self._tasks  # between successive positions of this task
        arrays, missing_count = [np.empty(0, np.int64)], row_count
        while missing_count:
            # first, length: the unused part of the current run, or the next run.
            first, length = self._current_runs.get(name) or next(self._runs[name])
            used_count = min(length, missing_count)
            first_number, last_number = column.number(first), column.number(first + (used_count - 1) * stride)
            arrays.append(first_number + np.arange(used_count, dtype=np.int64) * (column.step * stride))
            self._furthest[name] = column.later_of(last_number, self._furthest.get(name, last_number))
            self._current_runs[name] = (first + used_count * stride, length - used_count)
            if length == used_count:
                del self._current_runs[name]
            missing_count -= used_count
        return pa.array(np.concatenate(arrays))

    def _runs_of_task(self) -> Iterator[tuple[int, int]]:
        """The positions in the column's sequence that belong to this task, as runs (first position, number of positions).

        If the number of tasks is known, there is one endless run; its positions are `tasks` apart. Otherwise the runs are the
        task's blocks, whose positions are adjacent.
        """
        if self._tasks is not None:
            return iter([(self._task, 2**63)])  # endless: numbers of 64 bits end earlier than this run
        return _blocks(self._task)


def _blocks(task: int) -> Iterator[tuple[int, int]]:
    """The blocks of a task (first position, number of positions). Block k is on diagonal task + k, after the blocks with a
    smaller k; it has 2**k positions, up to a limit."""
    # The position where the diagonal begins: the diagonals before it have the first block of one task, of two tasks, and so on.
    diagonal_start = sum(_position_count(diagonal + 1) for diagonal in range(task))
    for k in count():
        yield diagonal_start + _position_count(k), _block_size(k)
        diagonal_start += _position_count(task + k + 1)


def _block_size(block: int) -> int:
    """The number of positions of a task's block. block: its number, from 0 on."""
    return 1 << min(block, _LARGEST_BLOCK_EXPONENT)


def _position_count(blocks: int) -> int:
    """The number of positions of the first `blocks` blocks of a task."""
    growing = min(blocks, _LARGEST_BLOCK_EXPONENT)
    return (1 << growing) - 1 + (blocks - growing) * (1 << _LARGEST_BLOCK_EXPONENT)
