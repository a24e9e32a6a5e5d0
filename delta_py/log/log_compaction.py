"""Log compaction: combine the commits of a range in one file, so that loading a version opens fewer files.

The lines of the commits are copied unchanged. If several lines reconcile with each other, only the last one is kept. Removes,
removed domains and the newest transaction of each application are kept too, because they override actions before the range.
Protocol: Log Compaction Files; Action Reconciliation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from delta_py.errors import CorruptTableError
from delta_py.log.commit_reader import corrupt_line
from delta_py.log.file_keys import path_and_key
from delta_py.log.segment import LogFile
from delta_py.protocol.paths import LOG_DIRECTORY, commit_file_name
from delta_py.storage.store import ObjectStore

# Larger ranges are not compacted, because a compaction is read in one piece.
_MOST_BYTES = 16 * 1024 * 1024
_MOST_COMMITS = 10


def compaction_range(version: int, checkpoint_interval: int) -> tuple[int, int] | None:
    """The first and last commit to compact after a commit, or None. A compaction is due halfway to the next checkpoint, and every
    ten commits if checkpoints are rare. With a checkpoint interval of 10, the commits 1 to 5, 11 to 15, and so on are compacted.

    version: of the commit. checkpoint_interval: how many versions are from one checkpoint to the next.
    """
    # position: how many commits the version is after the last checkpoint. step: how many commits one compaction combines.
    position, step = version % checkpoint_interval, min(_MOST_COMMITS, checkpoint_interval // 2)
    if step < 2:  # a compaction has at least two commits
        return None
    is_due = position > 0 and position % step == 0
    has_checkpoint_soon = checkpoint_interval - position < 2  # then readers need no compaction of these commits
    return (version - step + 1, version) if is_due and not has_checkpoint_soon else None


def compact(store: ObjectStore, start: int, end: int) -> bytes | None:
    """The content of the compaction of the commits start to end; None if it would be too large, or have no lines.

    Raises CorruptTableError if a commit breaks the protocol, and FileNotFoundError if a commit is deleted.
    """
    newest_lines: dict[tuple[str, str], bytes] = {}  # identity of an action (_identity) -> its line
    size_bytes = 0
    for version in range(start, end + 1):
        path = f"{LOG_DIRECTORY}/{commit_file_name(version)}"
        data = store.read(path)
        size_bytes += len(data)
        if size_bytes > _MOST_BYTES:
            return None
        for identity, line in _state_lines(LogFile(path, version, version, len(data), 0), data):
            newest_lines.pop(identity, None)  # so that the lines remain in the order of their commits
            newest_lines[identity] = line
    return b"".join(line + b"\n" for line in newest_lines.values()) or None


def _state_lines(file: LogFile, data: bytes) -> Iterator[tuple[tuple[str, str], bytes]]:
    """The identity (_identity) and the text of each line whose action is part of the table's state."""
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
    """The identity of an action: its kind, and its key within the kind (empty for protocol and metaData, of which a table has
    one). A newer action with the same identity overrides it. None if the action is not part of the state (commitInfo, change
    data). value: the decoded line."""
    if not isinstance(value, dict):
        raise CorruptTableError("it is no JSON object")
    for name in ("add", "remove"):
        if value.get(name) is not None:
            return "file", path_and_key(value[name])[1]
    for name, key in (("txn", "appId"), ("domainMetadata", "domain")):
        body = value.get(name)
        if body is not None:
            if not isinstance(body, dict) or not isinstance(body.get(key), str):
                raise CorruptTableError(f"its {name} has no {key}")
            return name, body[key]
    return next(((name, "") for name in ("protocol", "metaData") if value.get(name) is not None), None)
