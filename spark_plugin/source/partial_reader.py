"""The reader of a scan whose rows Spark only aggregates: it returns partial rows instead of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from delta_py.scan.partial_rows import PartialRows, partial_batches
from spark_plugin.source.task_batches import relabelled
from spark_plugin.spark_versions import to_arrow_schema


class PartialReader(DataSourceReader):
    """A reader whose tasks aggregate the rows that they read. Spark combines the resulting partial rows into the query's result.

    rows: the reader of the columns to aggregate. partial_rows: which columns group the rows, and which aggregates each partial
    row has. schema: the columns of the partial rows."""

    def __init__(self, rows: DataSourceReader, partial_rows: PartialRows, schema: StructType) -> None:
        self._rows, self._partial_rows = rows, partial_rows
        self._schema = to_arrow_schema(schema)

    def partitions(self) -> list[InputPartition]:
        return [*self._rows.partitions()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batches = cast("Iterator[pa.RecordBatch]", self._rows.read(partition))
        for batch in partial_batches(batches, self._partial_rows, self._schema):
            yield relabelled(batch, self._schema)
