"""What follows a commit: the version checksum. The commit stands already; whatever fails here is logged and nothing else.

The checksum is derived from that of the version before and the commit's own actions, so that no state is read. Where that
cannot be done (no checksum before, a commit that removes files) there is none, which readers allow.
Protocol: Version Checksum File; Version Checksum File Schema.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import orjson

from delta_py.errors import DeltaError
from delta_py.log.checksum import VersionChecksum
from delta_py.log.writer import LogWriter
from delta_py.protocol.actions import Action, AddFile, CommitInfo, DomainMetadata, RemoveFile, SetTransaction
from delta_py.protocol.paths import LOG_DIRECTORY, checksum_file_name
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore

_log = logging.getLogger("delta_py")


def run_post_commit(store: ObjectStore, writer: LogWriter, config: TableConfig, version: int, actions: Sequence[Action]) -> None:
    """Do what follows a commit. config: of the version; actions: as they were committed. Raises nothing of the store's."""
    try:
        text = _checksum(store, config, version, actions)
        if text is not None:
            writer.put_checksum(version, text)
    except (OSError, DeltaError) as error:
        _log.warning("%s: version %d is committed, but has no version checksum: %s", store.root, version, error)


def _checksum(store: ObjectStore, config: TableConfig, version: int, actions: Sequence[Action]) -> bytes | None:
    """The version checksum's text; None if it cannot be derived."""
    if any(isinstance(action, RemoveFile | SetTransaction) for action in actions):
        return None
    previous = None if version == 0 else _previous(store, version - 1)
    if version > 0 and previous is None:
        return None
    info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo({}))
    adds = [action for action in actions if isinstance(action, AddFile)]
    value = {
        "txnId": info.txn_id,
        "tableSizeBytes": sum(add.size_bytes for add in adds) + (0 if previous is None else previous.size_bytes),
        "numFiles": len(adds) + (0 if previous is None else previous.file_count),
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": info.in_commit_timestamp_ms,
        "setTransactions": _transactions(previous),
        "domainMetadata": _domains(previous, actions),
        "metadata": config.metadata.to_json(),
        "protocol": config.protocol.to_json(),
    }
    return orjson.dumps({name: item for name, item in value.items() if item is not None})


def _previous(store: ObjectStore, version: int) -> VersionChecksum | None:
    path = f"{LOG_DIRECTORY}/{checksum_file_name(version)}"
    try:
        return VersionChecksum.parse(path, store.read(path))
    except FileNotFoundError:
        return None


def _transactions(previous: VersionChecksum | None) -> list[dict[str, Any]] | None:
    if previous is None:
        return []
    return None if previous.set_transactions is None else [item.to_json() for item in previous.set_transactions]


def _domains(previous: VersionChecksum | None, actions: Sequence[Action]) -> list[dict[str, Any]] | None:
    """The domains after the commit, removed ones left out; None where the version before does not say its own."""
    if previous is not None and previous.domain_metadata is None:
        return None
    found = {} if previous is None or previous.domain_metadata is None else {d.domain: d for d in previous.domain_metadata}
    found.update({action.domain: action for action in actions if isinstance(action, DomainMetadata)})
    return [item.to_json() for item in found.values() if not item.removed]
