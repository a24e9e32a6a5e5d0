"""The sources of streams in the driver's own Python. It gives the answers of Spark's process of each stream (StreamRunner.java
calls it).

A request is a JSON text with its length (4 bytes, big-endian) before it: the stream, the call under its name in
DeltaStreamReader, and its arguments, each a JSON text. In the call that opens a stream the pickled DataSource follows. Offsets,
limits and partitions are byte by byte those of Spark's process: a stream may continue in a process at any call.
"""

from __future__ import annotations

import json
import struct
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import orjson
from pyspark.sql.types import StructType

from delta_py.scan.filtered_columns import counted_elsewhere
from spark_plugin.driver_planning.sources import unpickle_source
from spark_plugin.internals.pyspark_internals import (
    data_type_of_json,
    encode_partitions_like_worker,
)

if TYPE_CHECKING:
    from spark_plugin.streaming.stream_reader import DeltaStreamReader

MOST_STREAMS = 256
"""If there are more streams, the one with the oldest request continues in a process, or has ended without notice."""

_LENGTH = struct.Struct("!i")
# The answer of a call without a result. It is not empty, because an empty answer to `open` means that the stream needs a process.
_DONE = b"\0"


class Streams:
    """The readers of open streams, by the streams' ids. Can be shared by threads; only one of them calls a given stream at a
    time."""

    def __init__(self) -> None:
        self._readers: OrderedDict[str, DeltaStreamReader] = OrderedDict()
        self._closed: OrderedDict[str, None] = OrderedDict()  # a set of the newest: a stream may be closed while it is opened
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many streams are open."""
        return len(self._readers)

    def answer(self, body: bytes) -> bytes:
        """Return the answer to a request. Raises the errors of the call, and KeyError for a stream that is not open."""
        (length,) = _LENGTH.unpack_from(body)
        text_end = _LENGTH.size + length
        request = orjson.loads(body[_LENGTH.size : text_end])
        stream, call, arguments = request["stream"], request["call"], request["arguments"]
        with counted_elsewhere():
            match call:
                case "open":
                    return self._open(stream, body[text_end:], *arguments)
                case "close":
                    return self._close(stream)
                case _:
                    return _answer(self._reader(stream), call, arguments)

    def _open(self, stream: str, data_source: bytes, schema_json: str) -> bytes:
        """Open a stream. Returns no bytes if the stream must have its own process: a stream that records schemas, or holds a
        lease on its files, must do so only once. stream: its id. schema_json: the columns that the query reads."""
        schema = data_type_of_json(schema_json)
        assert isinstance(schema, StructType), schema_json
        reader: DeltaStreamReader = unpickle_source(data_source).streamReader(schema)
        if reader.writes:
            return b""
        with self._lock:
            if stream not in self._closed:  # another thread may have closed it while this one opened it
                self._readers[stream] = reader
                _keep_newest(self._readers)
        return _DONE

    def _close(self, stream: str) -> bytes:
        """Close a stream, also one that is still being opened, for example if its query is stopped in the meantime."""
        with self._lock:
            reader = self._readers.pop(stream, None)
            self._closed[stream] = None
            _keep_newest(self._closed)
        if reader is not None:
            reader.stop()
        return _DONE

    def _reader(self, stream: str) -> DeltaStreamReader:
        """Return the reader of an open stream, which becomes the one with the newest request. Raises KeyError if it is not
        open."""
        with self._lock:
            self._readers.move_to_end(stream)
            return self._readers[stream]


def _keep_newest(streams: OrderedDict[str, Any]) -> None:
    while len(streams) > MOST_STREAMS:
        streams.popitem(last=False)


def _answer(reader: DeltaStreamReader, call: str, arguments: list[str]) -> bytes:
    """Call a method of the reader. call: its name. arguments: JSON texts. Returns the bytes that Spark's process would write."""
    match call:
        case "initialOffset":
            return _json(reader.initialOffset())
        case "partitions":
            start, end = arguments
            return encode_partitions_like_worker(reader.partitions(json.loads(start), json.loads(end)))
        case "commit":
            reader.commit(json.loads(arguments[0]))
            return _DONE
    return reader.answer(call, arguments).encode()


def _json(offset: dict[str, Any]) -> bytes:
    return json.dumps(offset).encode()
