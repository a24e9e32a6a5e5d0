"""Scans whose rows may be few: what is read of them at once, by the process that has planned them, and where that ends.

A job of Spark's takes some 100 ms, in which a row group of ten columns is decoded several times. What is decoded, and what comes
out, is bounded; tasks read what is more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from delta_py.parquet.decode_budget import DecodeBudget, Limits, OverBudgetError
from delta_py.parquet.file_reader import read_files
from spark_plugin import read_limits
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
"""So much more than few is decoded before it shows."""


@dataclass(frozen=True, slots=True)
class FewRows:
    """columns: as the query knows them. limit: of rows; None for all."""

    scan: Scan
    columns: StructType
    limit: int | None

    def read(self) -> bytes | None:
        """The rows as an Arrow stream; None where they are more than few. Raises what read_files raises."""
        sink, schema = pa.BufferOutputStream(), to_arrow_schema(self.columns)
        try:
            with pa.ipc.new_stream(sink, schema) as writer:
                for batch in self._bounded(schema):
                    writer.write_batch(batch)
        except OverBudgetError:
            return None
        return bytes(sink.getvalue().to_pybytes())

    def _bounded(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        rows = size = 0
        for batch in self._batches(schema):
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows > read_limits.DRIVER_ROWS or size > read_limits.DRIVER_BYTES:
                raise OverBudgetError("more rows than few")
            yield batch

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        state = replace(self.scan.state, batch_rows=_BATCH_ROWS, batch_bytes=_BATCH_BYTES)
        budget = DecodeBudget(LIMITS, stops_early=self.limit is not None)
        batches = (relabelled(batch, schema) for batch in read_files(state, self.scan.scan_files(), budget=budget))
        return batches if self.limit is None else first_rows(batches, self.limit)
