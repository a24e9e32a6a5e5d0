"""Batch writes in the driver's own Python. It gives the answers of the Spark workers that plan and commit writes
(DriverSource.java calls it).

A commit is made once. If it fails it is never repeated: the answer is the error's text, as a worker writes it.
"""

from __future__ import annotations

import pickle
import struct
import traceback
from collections.abc import Iterator

import orjson
from pyspark.sql.types import StructType

from delta_py.scan.filtered_columns import counted_elsewhere
from spark_plugin.driver_planning.sources import make_source
from spark_plugin.internals.pyspark_internals import data_type_of_json, plan_write_like_worker

_LENGTH = struct.Struct("!i")
_NO_MESSAGE = -1  # the length that stands for the missing result of a task


def planned_write(body: bytes) -> bytes:
    """Return the write function and the writer, each with its length before it.

    body: JSON of the source's options, including private ones, the base directory of relative paths in workers, the rows' schema,
    whether the write overwrites, and the columns that tasks return.
    Raises the errors that make the write impossible, and ValueError if the path is another place for this process.
    """
    request = orjson.loads(body)
    source = make_source(request["options"], request["directory"])
    if source is None:
        raise ValueError(f"{request['options']['path']} is relative to {request['directory']}, not to this process's directory")
    schema, task_result_type = data_type_of_json(request["schema"]), data_type_of_json(request["given back"])
    assert isinstance(schema, StructType) and isinstance(task_result_type, StructType)
    with counted_elsewhere():
        return plan_write_like_worker(source.writer(schema, request["overwrite"]), task_result_type)


def committed_write(body: bytes) -> bytes:
    """Commit or abort a write. Returns no bytes if that succeeded, otherwise the traceback of the error.

    body: a byte, 1 to abort the write; the pickled writer and the results of the tasks, each with its length before it, -1 for
    none.
    """
    try:
        abort_flag, *parts = _split_body(body)
        writer, messages = pickle.loads(parts[0] or b""), [None if part is None else pickle.loads(part) for part in parts[1:]]
        if abort_flag == b"\1":
            writer.abort(messages)
        else:
            writer.commit_here(messages)
    except BaseException:
        return traceback.format_exc().encode(errors="replace")
    return b""


def _split_body(body: bytes) -> Iterator[bytes | None]:
    """Yield the first byte of the body, the pickled writer, and then the pickled result of each task; None for a task without a
    result."""
    yield body[:1]
    position = 1
    while position < len(body):
        (length,) = _LENGTH.unpack_from(body, position)
        position += _LENGTH.size
        if length == _NO_MESSAGE:
            yield None
            continue
        yield body[position : position + length]
        position += length
