"""How much may be decoded where nobody waits for more: of a table of any size, rows that a query wants at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_py.parquet.row_groups import Run
from delta_py.scan.scan_state import ScanFile


class OverBudgetError(Exception):
    """What is asked for takes more than the budget. It says nothing of what is there."""


class DecodeBudget:
    """Of one reading: what is spent is not given back.

    rows: of row groups, deleted ones too. leaf_bytes: of their columns that are read, encoded and not compressed, as footers say.
    vector_bytes: of the deletion vectors.
    stops_early: the reader takes the first rows and goes. Then only what has been decoded counts; else all that will be, before
    any of it is.
    """

    def __init__(self, *, rows: int, leaf_bytes: int, vector_bytes: int, stops_early: bool = False) -> None:
        self._rows, self._leaf_bytes, self._vector_bytes = rows, leaf_bytes, vector_bytes
        self._stops_early = stops_early

    def spend_on_vectors(self, file: ScanFile) -> None:
        """Before they are read. Raises OverBudgetError."""
        for descriptor in (file.deletion_vector, file.selection):
            self._vector_bytes -= 0 if descriptor is None else descriptor.size_in_bytes
        _check(self._vector_bytes)

    def spend_on_runs(self, footer: Any, runs: Sequence[Run], leaves: Sequence[int]) -> None:
        """Before they are decoded. footer: pyarrow.parquet.FileMetaData. leaves: places of columns. Raises OverBudgetError."""
        if self._stops_early:
            return
        self._rows -= sum(run.row_count for run in runs)
        _check(self._rows)
        for run in runs:
            for index in run.groups:
                group = footer.row_group(index)
                self._leaf_bytes -= sum(max(0, group.column(leaf).total_uncompressed_size) for leaf in leaves)
        _check(self._leaf_bytes)

    def spend_on_rows(self, count: int) -> None:
        """When they have been decoded. Raises OverBudgetError."""
        if self._stops_early:
            self._rows -= count
            _check(self._rows)


def _check(left: int) -> None:
    if left < 0:
        raise OverBudgetError(f"{-left:,} too much")
