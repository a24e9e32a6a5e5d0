"""`_last_checkpoint`: which checkpoint is the newest, as its writer noted, with the checksum of the note.

In: a store. Out: LastCheckpoint; None if the file is missing, damaged or wrong: then readers list the whole log.
Protocol: Last Checkpoint File; JSON checksum.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from delta_py.errors import StorageError, shown
from delta_py.log.limits import HINT_BYTES
from delta_py.protocol.paths import LAST_CHECKPOINT, LOG_DIRECTORY
from delta_py.storage.store import ObjectStore

LAST_CHECKPOINT_PATH = f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}"

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The content of `_last_checkpoint`. A count that it does not have is None. file_count: live files, the same for every writer
    of the checkpoint. action_count: actions of this writer's checkpoint, including the tombstones that it kept.
    Protocol: Last Checkpoint File Schema."""

    version: int
    action_count: int | None = None
    file_count: int | None = None


def read_last_checkpoint(store: ObjectStore) -> LastCheckpoint | None:
    """The content of `_last_checkpoint`. None if the file is missing; None, with a warning, if it is damaged or the store refuses
    to read it."""
    try:
        return load_last_checkpoint(store)
    except StorageError as error:
        warn_of_refusal(store, error)
        return None


def warn_of_refusal(store: ObjectStore, error: StorageError) -> None:
    _log.warning("%s: _last_checkpoint is not read (%s); listing the whole log", store.root, error.message)


def load_last_checkpoint(store: ObjectStore) -> LastCheckpoint | None:
    """The content of `_last_checkpoint`. None if the file is missing; None, with a warning, if it is damaged. Raises StorageError
    if the store refuses to read it, so that a caller that lists the log next can raise that error instead of warning.

    Protocol: Last Checkpoint File Schema.
    """
    try:
        text = store.read_range(LAST_CHECKPOINT_PATH, 0, HINT_BYTES + 1)
    except FileNotFoundError:
        return None
    try:
        if len(text) > HINT_BYTES:
            raise ValueError(f"it has more than {HINT_BYTES} bytes")
        value = json.loads(text, object_pairs_hook=_object_of_distinct_keys, parse_int=_Number, parse_float=_Number)
        return _parse_hint(value)
    except (ValueError, RecursionError) as error:
        _log.warning("%s: _last_checkpoint is damaged (%s); listing the whole log", store.root, error)
        return None


class _Number(str):
    """A JSON number as it is written, because the checksum covers its text."""


def _object_of_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The JSON object with these members. Raises ValueError if a key is repeated: a dict would keep only its last value."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key occurs twice")
    return fields


def _parse_hint(value: Any) -> LastCheckpoint:
    """Convert the decoded JSON, in which numbers are _Number. A file without a checksum is accepted. Raises ValueError, with the
    reason, if the JSON is damaged."""
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    checksum = value.get("checksum")
    if checksum is not None and checksum != json_checksum(value):
        raise ValueError("its checksum is wrong")
    version = _parse_count(value.get("version"))
    if version is None:
        raise ValueError(f"its version is {shown(value.get('version'))}")
    return LastCheckpoint(version, _parse_count(value.get("size")), _parse_count(value.get("numOfAddFiles")))


def _parse_count(value: Any) -> int | None:
    """A whole number from 0 to 2^63 - 1, from its JSON text; None for any other value."""
    # 2^63 has 19 digits. The length is checked first, because int() refuses very long texts.
    is_count = isinstance(value, _Number) and value.isdecimal() and len(value) < 20 and int(value) < 2**63
    return int(value) if is_count else None


def json_checksum(value: Mapping[str, Any]) -> str:
    """MD5 of the canonical form of a `_last_checkpoint` object without its `checksum`. Protocol: JSON checksum."""
    return hashlib.md5(canonical_json(value).encode(), usedforsecurity=False).hexdigest()


def canonical_json(value: Mapping[str, Any]) -> str:
    """One `path=value` for each leaf, sorted by the bytes of the path, joined by commas. Protocol: JSON checksum."""
    leaves = (leaf for name, item in value.items() if name != "checksum" for leaf in _canonical_leaves(_quoted(name), item))
    return ",".join(f"{path}={text}" for path, text in sorted(leaves, key=lambda leaf: leaf[0].encode()))


def _canonical_leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The (path, text) of each leaf of a JSON value. path: of the value: the quoted keys and the list positions that lead to it,
    joined by `+`."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _canonical_leaves(f"{path}+{_quoted(name)}", item)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _canonical_leaves(f"{path}+{position}", item)
    elif isinstance(value, str) and not isinstance(value, _Number):
        yield path, _quoted(value)
    else:  # a number as the file has it; or true, false, null, or a number that we are about to write
        yield path, value if isinstance(value, _Number) else json.dumps(value)


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'
