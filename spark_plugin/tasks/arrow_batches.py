"""How Spark cuts the rows of a write into Arrow batches.

After every row Spark computes the bytes of the batch that it fills ("weighs" it), to keep it below
spark.sql.execution.arrow.maxBytesPerBatch; that takes more than half of a write's time (8 million rows of 10 columns: 8.9 s with
it, 4.1 s without, in the JVM alone, Spark 4.3). Rows of numbers, times and texts need no weighing if a batch has few rows.

Tasks read the size from the local properties of their job. Spark copies the session's settings into these properties. So this
module sets the size there, for the jobs of one thread. The session's settings, which its other queries and the user share, are
not changed, and a size that the user sets takes precedence. A Spark Connect client has no local properties: a user who wants the
speed sets the sizes in the session.
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

from spark_plugin.internals.session_adapter import adapter_of

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNWEIGHED = str(2**31 - 1)  # with this value Spark does not weigh
_FIXED_WIDTH = (BooleanType, DateType, DecimalType, NumericType, TimestampNTZType, TimestampType)
_ROWS_WITH_TEXTS = 2048  # the most rows of a batch with texts


def _leaf_types(kind: DataType) -> Iterator[DataType]:
    """Yield the types of all columns; a struct is replaced by the types of its fields, at any depth."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _leaf_types(field.dataType)
    else:
        yield kind


@contextmanager
def unweighed(spark: Any, schema: StructType) -> Iterator[None]:
    """Turn weighing off for jobs that this thread starts inside the block, if all columns are numbers, times or texts and the
    user has set no size. Does nothing over Spark Connect, nor if Py4J does not give each Python thread its own thread in the
    JVM."""
    adapter = adapter_of(spark)
    properties = _properties(schema) if adapter.has_local_properties() else {}
    settings = adapter.settings() if properties else {}
    if not properties or any(name in settings for name in (_BYTES, _RECORDS)):
        yield
        return
    context = spark.sparkContext
    original_values = {name: context.getLocalProperty(name) for name in properties}
    try:
        for name, value in properties.items():
            context.setLocalProperty(name, value)
        yield
    finally:
        for name, original_value in original_values.items():
            context.setLocalProperty(name, original_value)


def _properties(schema: StructType) -> dict[str, str]:
    """Return the local properties that turn weighing off; empty for rows that Spark must weigh. Rows with texts also get a limit
    of rows per batch, because the size of a text is not known."""
    types = list(_leaf_types(schema))
    if not all(isinstance(kind, (*_FIXED_WIDTH, StringType)) for kind in types):
        return {}
    has_texts = any(isinstance(kind, StringType) for kind in types)
    return {_BYTES: _UNWEIGHED, _RECORDS: str(_ROWS_WITH_TEXTS)} if has_texts else {_BYTES: _UNWEIGHED}
