"""A reader that stops at the limit which Spark handed over with the schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_plugin.pruning.partition_messages import MessagePartition


def limited(reader: DataSourceReader, limit: int | None) -> DataSourceReader:
    """The reader, cut to the limit of a ScanRequest; itself if there is none.

    reader: its `read` gives Arrow batches. Spark drops its own limit where it hands one over, so exactly that many rows, or
    all if there are fewer, must come out: of one partition, as a task does not know of others.
    """
    return reader if limit is None else _LimitedReader(reader, limit)


class _AllPartitions(MessagePartition):
    """All partitions of a reader as one. It has the message of the first one."""

    def __init__(self, partitions: list[InputPartition]) -> None:
        first = partitions[0] if partitions else None
        super().__init__(first.messages if isinstance(first, MessagePartition) else None)
        self.partitions = partitions


class _LimitedReader(DataSourceReader):
    def __init__(self, reader: DataSourceReader, limit: int) -> None:
        self._reader = reader
        self._limit = limit

    @property
    def few(self) -> Any:
        """As of DeltaReader; None for a reader of other rows."""
        return getattr(self._reader, "few", None)

    def partitions(self) -> list[InputPartition]:
        return [_AllPartitions(list(self._reader.partitions()))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _AllPartitions)
        return first_rows((batch for part in partition.partitions for batch in self._reader.read(part)), self._limit)


def first_rows(batches: Iterable[Any], limit: int) -> Iterator[pa.RecordBatch]:
    """Of Arrow batches so many rows, or all if there are fewer. No batch behind them is asked for."""
    left = limit
    for batch in batches:
        assert isinstance(batch, pa.RecordBatch)
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if left == 0:
            return
