"""What transactions over tables have read by statements that changed nothing: no commit of theirs says it.

    note(transaction, place, reads)          # an UPDATE that found no row
    taken = take(transaction)                # {place: [reads, ...]}, at the transaction's end

Of this process, which is the one in which a transaction's statements are planned.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from delta_py.commit.prepared import ReadSet

_lock = threading.Lock()
_held: dict[str, dict[str, list[ReadSet]]] = {}


def note(transaction: str, place: str, reads: ReadSet) -> None:
    """place: of the table. Where only the rows that are taken count, and none were, files may lose rows: none of these would have
    been taken."""
    held = replace(reads, paths=frozenset()) if reads.only_taken_rows else reads
    with _lock:
        _held.setdefault(transaction, {}).setdefault(place, []).append(held)


def take(transaction: str) -> dict[str, list[ReadSet]]:
    with _lock:
        return _held.pop(transaction, {})
