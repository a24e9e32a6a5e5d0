"""The version checksum: what a commit's writer says of the state after it, beside the commit.

It spares replaying the log for protocol and metadata, and state that was replayed is compared with it. A file that is
damaged or incomplete is passed over with a warning, as if it were missing.
Protocol: Version Checksum File; Version Checksum File Schema; State Validation.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson

from delta_py.errors import CorruptTableError, LogIntegrityError
from delta_py.log.segment import LogFile
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_py.storage.store import ObjectStore

_log = logging.getLogger("delta_py")


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """path: of the file. set_transactions, domain_metadata: None where the writer did not record them."""

    path: str
    protocol: Protocol
    metadata: Metadata
    file_count: int
    size_bytes: int
    in_commit_timestamp_ms: int | None = None
    set_transactions: tuple[SetTransaction, ...] | None = None
    domain_metadata: tuple[DomainMetadata, ...] | None = None

    @classmethod
    def parse(cls, path: str, data: bytes) -> Self:
        """Raises CorruptTableError for a file that lacks what the protocol requires."""
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise CorruptTableError(f"it is no JSON: {error}") from error
        if (
            not isinstance(value, dict)
            or not isinstance(value.get("protocol"), dict)
            or not isinstance(value.get("metadata"), dict)
        ):
            raise CorruptTableError("it holds no protocol and metadata")
        try:
            return cls(
                path,
                Protocol.from_json(value["protocol"]),
                Metadata.from_json(value["metadata"]),
                _count(value, "numFiles"),
                _count(value, "tableSizeBytes"),
                None if value.get("inCommitTimestampOpt") is None else _count(value, "inCommitTimestampOpt"),
                _all(value.get("setTransactions"), SetTransaction),
                _all(value.get("domainMetadata"), DomainMetadata),
            )
        except (AttributeError, TypeError) as error:
            raise CorruptTableError(f"a field has another type than it should: {error}") from error

    def files_fault(self, file_count: int, size_bytes: int) -> LogIntegrityError | None:
        """The error, if the live files are not those that the checksum speaks of."""
        return self._fault("numFiles", file_count, self.file_count) or self._fault("tableSizeBytes", size_bytes, self.size_bytes)

    def state_fault(self, protocol: Protocol, metadata: Metadata) -> LogIntegrityError | None:
        """The error, if the log's protocol or metadata are not those of the checksum."""
        return self._fault("protocol", protocol, self.protocol) or self._fault("metadata", metadata, self.metadata)

    def _fault(self, what: str, found: object, recorded: object) -> LogIntegrityError | None:
        if found == recorded:
            return None
        return LogIntegrityError(
            f"The state rebuilt from the log has {what} {found}, but the version checksum {self.path} says {recorded}. Files of "
            "the log were changed or lost. Restore them from a backup; if the checksum itself is wrong, move its file away.",
            path=self.path,
            field=what,
        )


def read_checksum(store: ObjectStore, file: LogFile) -> VersionChecksum | None:
    """The checksum in a file; None, with a warning, when it is damaged; None when it has gone."""
    try:
        return VersionChecksum.parse(file.path, store.read(file.path))
    except FileNotFoundError:
        return None
    except CorruptTableError as error:
        _log.warning("the version checksum %s is passed over: %s", file.path, error.message)
        return None


def _count(value: Mapping[str, Any], name: str) -> int:
    found = value.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**63:
        raise CorruptTableError(f"{name} is {found!r}")
    return found


def _all(values: Any, action: Any) -> tuple[Any, ...] | None:
    return None if values is None else tuple(action.from_json(value) for value in values)
