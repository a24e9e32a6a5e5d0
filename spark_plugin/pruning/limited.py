"""A reader that stops at the limit which Spark passed with the schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_plugin.pruning.partition_messages import MessagePartition


def limited(reader: DataSourceReader, limit: int | None) -> DataSourceReader:
    """Return the reader, cut to the limit of a ScanRequest, or the reader itself if there is no limit.

    reader: a reader whose `read` returns Arrow batches. If Spark passes a limit to the source, it does not apply the limit
    itself. So the result must have exactly that many rows, or all if there are fewer. It also must have only one partition: a
    task does not know how many rows other tasks have returned.
    """
    return reader if limit is None else _LimitedReader(reader, limit)


class _AllPartitions(MessagePartition):
    """One partition that stands for all partitions of a reader. It has the messages of the first of them, which has the plan."""

    def __init__(self, partitions: list[InputPartition]) -> None:
        first = partitions[0] if partitions else None
        super().__init__(first.messages if isinstance(first, MessagePartition) else None)
        self.partitions = partitions


class _LimitedReader(DataSourceReader):
    """A reader with one partition, of which it returns at most `limit` rows."""

    def __init__(self, reader: DataSourceReader, limit: int) -> None:
        self._reader = reader
        self._limit = limit

    @property
    def small_scan(self) -> Any:
        """The small scan of the wrapped reader: its rows may be few enough for the driver to read them without tasks. None if
        tasks read them."""
        return getattr(self._reader, "small_scan", None)

    def partitions(self) -> list[InputPartition]:
        return [_AllPartitions(list(self._reader.partitions()))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _AllPartitions)
        return first_rows((batch for part in partition.partitions for batch in self._reader.read(part)), self._limit)


def first_rows(batches: Iterable[Any], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield this many rows of the Arrow batches, or all if there are fewer. No batch is read after the last of these rows."""
    remaining_rows = limit
    for batch in batches:
        assert isinstance(batch, pa.RecordBatch)
        yield batch.slice(0, remaining_rows)
        remaining_rows -= min(remaining_rows, batch.num_rows)
        if remaining_rows == 0:
            return
