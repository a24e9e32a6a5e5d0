"""The rows of a scan read by the driver's own Python, where they are few: a job of Spark's takes longer (DriverReads.java asks).

What is decoded, and what comes out, is bounded. Tasks read what is more, and where reading fails: they meet the error again, and
raise it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from delta_py.parquet.decode_budget import DecodeBudget, OverBudgetError
from delta_py.scan.filtered_columns import counted_elsewhere
from spark_plugin.driver_planning.planner import Planning
from spark_plugin.driver_planning.sources import unpickled
from spark_plugin.pruning import pushed_limit, strip_marker
from spark_plugin.pruning.limited import LimitedReader
from spark_plugin.pyspark_internals import data_type_of_json
from spark_plugin.source.readers import DeltaReader

MOST_ROWS_DECODED = 1 << 18
"""Of row groups that statistics do not rule out: two of the size that we write. One of ten columns takes 20 ms, a job 100 ms."""

MOST_BYTES_DECODED = 32 << 20
MOST_BYTES_OF_VECTORS = 1 << 20

MOST_ROWS = 4096
"""That come out. More are worth a job, which hands them on as they come."""

MOST_BYTES = 1 << 20


def read(body: bytes) -> bytes:
    """The rows as an Arrow stream; nothing where they are not few. body: a Planning. Raises what planning and reading raise."""
    planning = Planning.parse(body)
    source, schema = unpickled(planning.data_source), data_type_of_json(planning.schema)
    assert isinstance(schema, StructType), planning.schema
    with counted_elsewhere():
        reader = source.keeping().reader(schema)
    if not isinstance(reader, DeltaReader | LimitedReader) or not reader.is_near:
        return b""
    budget = DecodeBudget(
        rows=MOST_ROWS_DECODED,
        leaf_bytes=MOST_BYTES_DECODED,
        vector_bytes=MOST_BYTES_OF_VECTORS,
        stops_early=pushed_limit(schema) is not None,
    )
    try:
        rows = list(_bounded(reader.few_rows(budget)))
    except OverBudgetError:
        return b""
    return _stream(to_arrow_schema(strip_marker(schema), timezone="UTC"), rows)


def _bounded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = size = 0
    for batch in batches:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows > MOST_ROWS or size > MOST_BYTES:
            raise OverBudgetError("more rows than a driver is to hold")
        yield batch


def _stream(schema: pa.Schema, rows: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
