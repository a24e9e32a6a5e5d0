"""The port of the server that `SparkSession.builder.remote("local[2]")` starts: always the same, so one server at a time."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def connect_port() -> Iterator[None]:
    """Wait until no other process of tests uses the port, and use it until the end of the block."""
    with open(Path(tempfile.gettempdir()) / "pydelta-tests-connect-port.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        yield
