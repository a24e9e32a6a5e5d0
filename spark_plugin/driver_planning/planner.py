"""Opens tables and plans scans when the JVM calls the driver's own Python: the other side of DriverPlanner.java.

    planned(body)       # the rows of an Arrow batch, whether binary values are bytes, whether the tasks are those of a stream,
                        # the pickled DataSource with its length before it, the scan's schema as JSON
                        # -> what Spark's worker would write
    open_source(body)        # JSON: the options of a DataSource, and the directory that relative paths start from
                        # -> the pickled DataSource with its length before it, its columns as JSON

If one of them fails, a worker does the same work and raises its error where the user sees it.
Numbers are big-endian.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from pyspark.sql.types import StructType

from delta_py.scan.filtered_columns import counted_elsewhere
from spark_plugin.data_source import pickled_whole
from spark_plugin.driver_planning.sources import make_source, unpickle_source
from spark_plugin.internals.pyspark_internals import data_type_of_json, plan_read_like_worker
from spark_plugin.pruning.scan_request import ScanRequest

_PLANNING = struct.Struct("!i??i")  # the fields of Planning.parse, in order
_LENGTH = struct.Struct("!i")


@dataclass(frozen=True, slots=True)
class Planning:
    """The JVM's request to plan one scan. data_source: the pickled DataSource. schema: the columns of the scan, with the rule's
    request in their metadata, as JSON. max_arrow_batch_size: in rows; it and binary_as_bytes are settings of Spark, which a
    worker would get in the same way. is_stream: plan only the read function for the tasks of a stream, and no partitions."""

    data_source: bytes
    schema: str
    max_arrow_batch_size: int
    binary_as_bytes: bool
    is_stream: bool

    @classmethod
    def parse(cls, body: bytes) -> Planning:
        """Parse the body of a PLAN request: four fields of fixed size, the DataSource, and the schema up to the end."""
        most_rows, as_bytes, is_stream, length = _PLANNING.unpack_from(body)
        start = _PLANNING.size
        return cls(body[start : start + length], body[start + length :].decode(), most_rows, as_bytes, is_stream)


def planned(body: bytes, keep: Callable[[str | None, Any], None] | None = None) -> bytes:
    """Plan a scan, and return the bytes that Spark's own worker would write as the result. body: as Planning.parse reads it.
    keep: a function that stores the reader under the scan's id, so that a later READ request can return its rows; None to store
    nothing. Raises the errors of planning.
    """
    planning = Planning.parse(body)
    source, schema = unpickle_source(planning.data_source), data_type_of_json(planning.schema)
    assert isinstance(schema, StructType), planning.schema
    with counted_elsewhere():  # the rule counts the columns that filter scans
        reader = source.streamReader(schema) if planning.is_stream else source.with_snapshot_cache().reader(schema)
        if keep is not None:
            keep(ScanRequest.parse(schema).scan_id, reader)
        return plan_read_like_worker(
            source,
            reader,
            schema,
            max_arrow_batch_size=planning.max_arrow_batch_size,
            binary_as_bytes=planning.binary_as_bytes,
        )


def open_source(body: bytes) -> bytes:
    """Make the DataSource for options that Spark's catalogs pass, and return it pickled, after its length, then its columns as
    JSON. body: as the module's docstring says.

    Raises the errors of making the DataSource, and ValueError if the path is another place for this process.
    """
    request = orjson.loads(body)
    source = make_source(request["options"], request["directory"])
    if source is None:
        raise ValueError(
            f"{request['options']['path']} is relative to {request['directory']}, and this process is in {os.getcwd()}"
        )
    schema = source.schema().json()
    pickled = pickled_whole(source)
    return _LENGTH.pack(len(pickled)) + pickled + schema.encode()
