"""What the source tells the rule of a planned scan: notes, as text inside the pickled partitions that go back to Spark.

The plan is in the first partition, the files of a task for Spark's own Parquet reader in the partition of the task. A partition
may hold any other text too: names of files, values of the table. So a note carries the nonce of the request, which the rule
makes anew for each call, and its length (PlanNotes.java). There are no notes where no rule listens.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_py.scan.planning import ScanReport


def plan_text(message: Mapping[str, Any], nonce: str | None) -> str:
    """message: `plan` of messages.json. Every part may be absent."""
    return _note("plan", json.dumps(message), nonce)


def kept_part(report: ScanReport) -> dict[str, int | None]:
    """The part `kept` of the plan: how many files and bytes the scan reads, of how many."""
    return {
        "files": report.files_kept,
        "files_total": report.files_total,
        "bytes": report.bytes_kept,
        "bytes_total": report.bytes_total,
        "rows": report.rows_kept,
    }


def files_text(stream: bytes, nonce: str | None) -> str:
    """The files of a task, as native_files.py makes the stream, in the form that NativeScan.java finds in its partition."""
    return _note("files", base64.b64encode(stream).decode(), nonce)


def files_of(text: str) -> bytes:
    """The stream of a files_text."""
    return base64.b64decode(text.rpartition(":")[2])


def _note(name: str, text: str, nonce: str | None) -> str:
    """Empty where no rule listens. text: in ASCII, so that its length is the same in the bytes of a pickled partition."""
    assert text.isascii(), name
    return "" if nonce is None else f"pydelta-{name}:{nonce}:{len(text)}:{text}"
