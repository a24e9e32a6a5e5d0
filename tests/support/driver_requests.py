"""Requests to the driver's own Python, as DriverPlanner.java writes them."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

SECRET = bytes(range(32))
HEAD_BYTES = 5
"""Of a request, behind the secret: its kind, and after how many milliseconds its answer is to be `later`."""


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


def plan_request(body: bytes, *, secret: bytes = SECRET, patience_ms: int = 5000) -> bytes:
    return secret + struct.pack("!Bi", 0, patience_ms) + body


def wait_request(ticket: bytes, *, patience_ms: int = 5000) -> bytes:
    return SECRET + struct.pack("!Bi", 1, patience_ms) + ticket


def open_request(body: bytes, *, secret: bytes = SECRET, patience_ms: int = 5000) -> bytes:
    return secret + struct.pack("!Bi", 2, patience_ms) + body
