"""Limits for decoding in the process that plans a query, which reads small scans itself. Tasks of Spark read a scan that exceeds
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from delta_py.parquet.row_groups import Run
from delta_py.scan.scan_state import ScanFile


class OverBudgetError(Exception):
    """The request needs more than the budget. The error says nothing about the data."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one read may decode.

    rows: in the row groups that are read, including deleted rows. values: in the columns that are read, including nulls and
    elements of lists. encoded_bytes: the size of these columns in the files, without compression. decoded_bytes: their size in
    Arrow, which is not known before they are decoded. vector_bytes: the size of the deletion vectors.
    """

    rows: int
    values: int
    encoded_bytes: int
    decoded_bytes: int
    vector_bytes: int


class DecodeBudget:
    """Counts what one read decodes, and raises OverBudgetError as soon as it exceeds the limits.

    stops_early: whether the caller stops after the first rows. Then rows count when they are decoded. Otherwise all rows of a
    file also count before it is decoded, by the figures in its footer.
    """

    def __init__(self, limits: Limits, *, stops_early: bool = False) -> None:
        self._limits, self._stops_early = limits, stops_early
        self._rows = self._decoded_rows = self._values = self._encoded_bytes = self._decoded_bytes = self._vector_bytes = 0

    def spend_on_vectors(self, file: ScanFile) -> None:
        """Called before the file's deletion vector, and its vector of selected rows, are read. Raises OverBudgetError."""
        for descriptor in (file.deletion_vector, file.selection):
            self._vector_bytes += 0 if descriptor is None else descriptor.size_in_bytes
        _check_spent(self._vector_bytes, self._limits.vector_bytes, "bytes of deletion vectors")

    def spend_on_runs(self, footer: Any, runs: Sequence[Run], leaves: Sequence[int]) -> None:
        """Called before the runs are decoded. footer: pyarrow.parquet.FileMetaData. leaves: positions of columns.
        Raises OverBudgetError."""
        if self._stops_early:
            return
        self._rows += sum(run.row_count for run in runs)
        _check_spent(self._rows, self._limits.rows, "rows")
        for run in runs:
            for index in run.groups:
                group = footer.row_group(index)
                columns = [group.column(leaf) for leaf in leaves]
                self._values += sum(max(0, column.num_values) for column in columns)
                self._encoded_bytes += sum(max(0, column.total_uncompressed_size) for column in columns)
        _check_spent(self._values, self._limits.values, "values")
        _check_spent(self._encoded_bytes, self._limits.encoded_bytes, "encoded bytes")

    def spend_on_batch(self, row_count: int, byte_count: int) -> None:
        """Called after the batch was decoded. Raises OverBudgetError."""
        self._decoded_rows += row_count
        self._decoded_bytes += byte_count
        _check_spent(self._decoded_rows, self._limits.rows, "decoded rows")
        _check_spent(self._decoded_bytes, self._limits.decoded_bytes, "decoded bytes")


def _check_spent(spent: int, limit: int, what: str) -> None:
    """Raises OverBudgetError if more is spent than the limit. what: the unit of both numbers, for the message."""
    if spent > limit:
        raise OverBudgetError(f"{spent:,} {what}, where at most {limit:,} are to be decoded")
