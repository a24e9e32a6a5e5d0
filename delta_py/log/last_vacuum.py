"""`_last_vacuum_info`: the last version whose removed files VACUUM has processed.

    read_last_vacuum(store)      # 41: files that the commits up to 41 removed are deleted, or are needed again

delta-spark writes this file, and VACUUM LITE starts after the version that the file names. The file is a hint that may be lost.
Without it, VACUUM LITE reads the commits from 0 on.
"""

from __future__ import annotations

import json
import logging

from delta_py.errors import StorageError, shown
from delta_py.log.limits import HINT_BYTES
from delta_py.protocol.paths import LOG_DIRECTORY, MAX_VERSION
from delta_py.storage.store import ObjectStore

LAST_VACUUM_PATH = f"{LOG_DIRECTORY}/_last_vacuum_info"
_VERSION = "latestCommitVersionOutsideOfRetentionWindow"

_log = logging.getLogger("delta_py")


def read_last_vacuum(store: ObjectStore) -> int | None:
    """The last version whose removed files VACUUM has processed. None if there is no file or it names no version; None, with a
    warning, if it is damaged or the store refuses to read it. Raises OSError."""
    try:
        text = store.read_range(LAST_VACUUM_PATH, 0, HINT_BYTES + 1)
    except FileNotFoundError:
        return None
    except StorageError as error:
        _log.warning("%s: _last_vacuum_info is not read: %s", store.root, error.message)
        return None
    try:
        if len(text) > HINT_BYTES:
            raise ValueError(f"it has more than {HINT_BYTES} bytes")
        return _parse_version(json.loads(text))
    except (ValueError, RecursionError) as error:
        _log.warning("%s: _last_vacuum_info is damaged (%s)", store.root, error)
        return None


def _parse_version(value: object) -> int | None:
    """The version in the decoded file; None if it names none. Raises ValueError, with the reason, if the file is damaged."""
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    version = value.get(_VERSION)
    if version is None:
        return None  # a full VACUUM of delta-spark writes no version
    if type(version) is not int or not 0 <= version <= MAX_VERSION:
        raise ValueError(f"its version is {shown(version)}")
    return version


def last_vacuum_text(version: int) -> bytes:
    """The content of the file, in the form that delta-spark writes."""
    return json.dumps({_VERSION: version}, separators=(",", ":")).encode() + b"\n"
