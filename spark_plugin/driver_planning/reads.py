"""The rows of small scans, read by the driver's own Python: a Spark job takes longer (DriverReads.java calls it).

If the read fails, tasks read: they meet the same error, and raise it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_plugin.source.small_scan import SmallScan

MAX_SCANS = 256
"""The most scans that are planned here and may still be read, each of a limited number of files. Tasks read older scans."""


class SmallScans:
    """The newest scans that were planned in this process and may have few rows, by their ids. The JVM first has a scan planned,
    and asks for its rows in a later request. Threads can share this object."""

    def __init__(self) -> None:
        self._scans: OrderedDict[str, SmallScan] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, scan_id: str | None, reader: Any) -> None:
        """Store a reader for a later `read`, unless it may have many rows. scan_id: of the request for which it was planned;
        None for a scan that the rule did not request."""
        small_scan: SmallScan | None = getattr(reader, "small_scan", None)
        if small_scan is None or scan_id is None:
            return
        with self._lock:
            self._scans[scan_id] = small_scan
            while len(self._scans) > MAX_SCANS:
                self._scans.popitem(last=False)

    def read(self, body: bytes) -> bytes:
        """Return the rows as an Arrow stream; no bytes if there are many rows, or if no such scan is stored. body: a scan's id.

        Raises the errors of the read.
        """
        scan_id = body.decode()
        with self._lock:
            small_scan = self._scans.get(scan_id)
            if small_scan is not None:
                self._scans.move_to_end(scan_id)
        return (small_scan.read() or b"") if small_scan is not None else b""
