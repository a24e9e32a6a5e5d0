"""Log compaction: the commits of a range as one file, so that loading a version opens fewer.

The lines of the commits are kept as they are; of those that reconcile with each other the last one stays. Removes, removed
domains and the newest transaction of each application stay too, for they hold against what is older than the range.
Protocol: Log Compaction Files; Action Reconciliation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from delta_py.errors import CorruptTableError
from delta_py.log.commit_reader import corrupt_line
from delta_py.log.file_keys import keyed
from delta_py.log.segment import LogFile
from delta_py.protocol.paths import LOG_DIRECTORY, commit_file_name
from delta_py.storage.store import ObjectStore

# Larger ranges are left alone: a compaction is read in one piece.
_MOST_BYTES = 16 * 1024 * 1024
_MOST_COMMITS = 10


def compaction_range(version: int, checkpoint_interval: int) -> tuple[int, int] | None:
    """The commits to compact after a commit, None for none: halfway to the next checkpoint, and after every ten commits
    where checkpoints are rare."""
    position, step = version % checkpoint_interval, min(_MOST_COMMITS, checkpoint_interval // 2)
    if step < 2 or position == 0 or position % step or checkpoint_interval - position < 2:
        return None
    return version - step + 1, version


def compact(store: ObjectStore, start: int, end: int) -> bytes | None:
    """The compaction of the commits start to end; None when it would be too large.

    Raises CorruptTableError for a commit that breaks the protocol, FileNotFoundError for one that is gone.
    """
    newest_lines: dict[tuple[str, str], bytes] = {}
    size_bytes = 0
    for version in range(start, end + 1):
        path = f"{LOG_DIRECTORY}/{commit_file_name(version)}"
        data = store.read(path)
        size_bytes += len(data)
        if size_bytes > _MOST_BYTES:
            return None
        for identity, line in _lines(LogFile(path, version, version, len(data), 0), data):
            newest_lines.pop(identity, None)
            newest_lines[identity] = line
    return b"".join(line + b"\n" for line in newest_lines.values()) or None


def _lines(file: LogFile, data: bytes) -> Iterator[tuple[tuple[str, str], bytes]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            identity = _identity(orjson.loads(line))
        except (orjson.JSONDecodeError, CorruptTableError) as error:
            raise corrupt_line(file, number, f"the line is no action ({error}).") from error
        if identity is not None:
            yield identity, line


def _identity(value: Any) -> tuple[str, str] | None:
    """What two actions share of which only the newer one holds; None for what is not state (commitInfo, change data)."""
    if not isinstance(value, dict):
        raise CorruptTableError("it is no JSON object")
    for name in ("add", "remove"):
        if value.get(name) is not None:
            return "file", keyed(value[name])[1]
    for name, key in (("txn", "appId"), ("domainMetadata", "domain")):
        body = value.get(name)
        if body is not None:
            if not isinstance(body, dict) or not isinstance(body.get(key), str):
                raise CorruptTableError(f"its {name} has no {key}")
            return name, body[key]
    return next(((name, "") for name in ("protocol", "metaData") if value.get(name) is not None), None)
