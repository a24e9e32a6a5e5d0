"""Scans whose rows may be few: how much of them the planning process reads at once, and the limits of that.

A Spark job takes some 100 ms. In this time one process can decode a row group of ten columns several times. The decoded bytes and
the resulting rows are limited; tasks read larger scans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from delta_py.parquet.decode_budget import DecodeBudget, Limits, OverBudgetError
from delta_py.parquet.file_reader import read_files
from spark_plugin.options import read_limits
from spark_plugin.pruning.limited import first_rows
from spark_plugin.source.task_batches import relabelled
from spark_plugin.spark_versions import to_arrow_schema

if TYPE_CHECKING:
    from delta_py.scan.planning import Scan

LIMITS = Limits(
    rows=read_limits.DRIVER_DECODED_ROWS,
    values=read_limits.DRIVER_DECODED_VALUES,
    encoded_bytes=read_limits.DRIVER_ENCODED_BYTES,
    decoded_bytes=read_limits.DRIVER_DECODED_BYTES,
    vector_bytes=read_limits.DRIVER_VECTOR_BYTES,
)

_BATCH_ROWS, _BATCH_BYTES = 1 << 14, 4 << 20
"""The most rows and bytes of a decoded batch. The read stops after the batch with which it exceeds DRIVER_ROWS or DRIVER_BYTES.
So it decodes at most one batch too many."""


@dataclass(frozen=True, slots=True)
class SmallScan:
    """A scan that the planning process tries to read itself, because a Spark job takes longer than reading few rows.

    columns: the columns of the query, with its names and types. limit: this many rows are enough; None for all rows."""

    scan: Scan
    columns: StructType
    limit: int | None

    def read(self) -> bytes | None:
        """Return the rows as an Arrow stream, or None if there are too many: tasks then read them. Raises the errors of
        read_files."""
        sink, schema = pa.BufferOutputStream(), to_arrow_schema(self.columns)
        try:
            with pa.ipc.new_stream(sink, schema) as writer:
                for batch in self._few_batches(schema):
                    writer.write_batch(batch)
        except OverBudgetError:
            return None
        return bytes(sink.getvalue().to_pybytes())

    def _few_batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the batches. Raises OverBudgetError if they have more than DRIVER_ROWS rows or DRIVER_BYTES bytes."""
        rows = size = 0
        for batch in self._batches(schema):
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows > read_limits.DRIVER_ROWS or size > read_limits.DRIVER_BYTES:
                raise OverBudgetError("more rows than few")
            yield batch

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the batches as Spark expects them. Raises OverBudgetError if decoding them exceeds LIMITS."""
        state = replace(self.scan.state, batch_rows=_BATCH_ROWS, batch_bytes=_BATCH_BYTES)
        budget = DecodeBudget(LIMITS, stops_early=self.limit is not None)
        batches = (relabelled(batch, schema) for batch in read_files(state, self.scan.scan_files(), budget=budget))
        return batches if self.limit is None else first_rows(batches, self.limit)
