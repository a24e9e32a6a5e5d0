"""Bodies of requests to the driver's own Python, as DriverPlanner.java writes them."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping


def planning_body(
    data_source: bytes, schema: str, *, most_rows: int = 10_000, binary_as_bytes: bool = True, is_stream: bool = False
) -> bytes:
    """schema: JSON. most_rows: of an Arrow batch."""
    return struct.pack("!i??i", most_rows, binary_as_bytes, is_stream, len(data_source)) + data_source + schema.encode()


def stream_body(stream: str, call: str, *arguments: str, data_source: bytes = b"") -> bytes:
    """arguments: JSON."""
    head = json.dumps({"stream": stream, "call": call, "arguments": arguments}).encode()
    return struct.pack("!i", len(head)) + head + data_source


def opening_body(options: Mapping[str, str], directory: str) -> bytes:
    return json.dumps({"options": dict(options), "directory": directory}).encode()
