"""The version checksum: a file next to a commit, in which the commit's writer describes the state after the commit.

With it, a reader need not replay the log to get the protocol and the metadata. A state that was replayed is compared with it. A
damaged file is ignored with a warning, as if it were missing. `after_commit` derives the checksum of the next version from this
one and the actions of the next commit, so that a writer need not read all files.
Protocol: Version Checksum File; Version Checksum File Schema; State Validation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import orjson

from delta_py.errors import CorruptTableError, LogIntegrityError, StorageError, shown
from delta_py.log.limits import beyond_limit, limit_bytes
from delta_py.log.segment import LogFile
from delta_py.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from delta_py.protocol.paths import LOG_DIRECTORY, checksum_file_name
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.cache.cached_objects import CachedObjects
from delta_py.storage.store import ObjectStore

_log = logging.getLogger("delta_py")


# Lists of more transactions or domains are left out of a checksum, because every commit would write them again.
_MOST_LISTED_ACTIONS = 100


class _OlderForm(CorruptTableError):
    """A checksum of an older writer, which recorded only counts. It is not damaged, but it lacks protocol and metadata."""


class _Empty(CorruptTableError):
    """An empty checksum file. A machine failure can leave one, because writers do not wait for the disk."""


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """The state after a commit. path: of the checksum file; empty for a checksum that is not written yet. file_count, size_bytes:
    number and total size of the live files. txn_id: the id of the commit attempt. set_transactions, domain_metadata, txn_id: None
    if the writer did not record them."""

    path: str
    protocol: Protocol
    metadata: Metadata
    file_count: int
    size_bytes: int
    in_commit_timestamp_ms: int | None = None
    set_transactions: tuple[SetTransaction, ...] | None = None
    domain_metadata: tuple[DomainMetadata, ...] | None = None
    txn_id: str | None = None

    @classmethod
    def parse(cls, path: str, data: bytes) -> Self:
        """Raises CorruptTableError if the file lacks a field that the protocol requires."""
        if not data:
            raise _Empty("it is empty")
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise CorruptTableError(f"it is no JSON: {error}") from error
        if isinstance(value, dict) and value.get("protocol") is None and value.get("metadata") is None:
            raise _OlderForm("it holds no protocol and metadata")
        if (
            not isinstance(value, dict)
            or not isinstance(value.get("protocol"), dict)
            or not isinstance(value.get("metadata"), dict)
        ):
            raise CorruptTableError("it holds no protocol and metadata")
        if value["metadata"].get("schemaString") is None:  # in the log itself, this would mean no columns
            raise CorruptTableError("its metadata has no schema")
        has_timestamp = value.get("inCommitTimestampOpt") is not None
        return cls(
            path=path,
            protocol=Protocol.from_json(value["protocol"]),
            metadata=Metadata.from_json(value["metadata"]),
            file_count=_parse_count(value, "numFiles"),
            size_bytes=_parse_count(value, "tableSizeBytes"),
            in_commit_timestamp_ms=_parse_count(value, "inCommitTimestampOpt") if has_timestamp else None,
            set_transactions=_parse_actions(value, "setTransactions", SetTransaction),
            domain_metadata=_parse_actions(value, "domainMetadata", DomainMetadata),
            txn_id=value["txnId"] if isinstance(value.get("txnId"), str) else None,
        )

    def after_commit(self, config: TableConfig | None, actions: Sequence[Action]) -> Self | None:
        """The checksum after a commit with these actions; None if the actions do not determine it.

        config: the protocol and metadata after the commit. With None, the result keeps the protocol and metadata of this
        checksum: for several commits in a row, the caller passes a config only for the last one.
        The actions do not determine it if a remove has no size, or if files are added again without a data change (to give them
        statistics or row ids): a count would take these for new files.
        """
        adds = [action for action in actions if isinstance(action, AddFile)]
        removes = [action for action in actions if isinstance(action, RemoveFile)]
        if not all(add.data_change for add in adds) and _may_repeat_files(adds, removes):
            return None
        removed_sizes = [remove.size_bytes for remove in removes]
        if None in removed_sizes:
            return None
        info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo({}))
        file_count = self.file_count + len(adds) - len(removes)
        size_bytes = (
            self.size_bytes + sum(add.size_bytes for add in adds) - sum(size for size in removed_sizes if size is not None)
        )
        if file_count < 0 or size_bytes < 0:  # the previous checksum was wrong: do not continue its error
            return None
        return replace(
            self,
            path="",
            protocol=self.protocol if config is None else config.protocol,
            metadata=self.metadata if config is None else config.metadata,
            file_count=file_count,
            size_bytes=size_bytes,
            in_commit_timestamp_ms=info.in_commit_timestamp_ms,
            set_transactions=_merge_newer(self.set_transactions, (a for a in actions if isinstance(a, SetTransaction)), "app_id"),
            domain_metadata=_merge_newer(self.domain_metadata, (a for a in actions if isinstance(a, DomainMetadata)), "domain"),
            txn_id=info.txn_id,
        )

    def to_bytes(self) -> bytes:
        """The content of the checksum file. Fields whose values are unknown (None) are left out."""
        domains = None if self.domain_metadata is None else [item for item in self.domain_metadata if not item.removed]
        value = {
            "txnId": self.txn_id,
            "tableSizeBytes": self.size_bytes,
            "numFiles": self.file_count,
            "numMetadata": 1,
            "numProtocol": 1,
            "inCommitTimestampOpt": self.in_commit_timestamp_ms,
            "setTransactions": _to_json_list(self.set_transactions),
            "domainMetadata": _to_json_list(domains),
            "metadata": self.metadata.to_json(),
            "protocol": self.protocol.to_json(),
        }
        return orjson.dumps({name: item for name, item in value.items() if item is not None})

    def files_fault(self, file_count: int, size_bytes: int) -> LogIntegrityError | None:
        """The error if the live files differ from those that the checksum describes."""
        return self._mismatch("numFiles", file_count, self.file_count) or self._mismatch(
            "tableSizeBytes", size_bytes, self.size_bytes
        )

    def state_fault(self, protocol: Protocol, metadata: Metadata) -> LogIntegrityError | None:
        """The error if the log's protocol or metadata differ from those in the checksum."""
        return self._mismatch("protocol", protocol, self.protocol) or self._mismatch("metadata", metadata, self.metadata)

    def _mismatch(self, name: str, actual: object, recorded: object) -> LogIntegrityError | None:
        """The error if a value in the log differs from the recorded one in the checksum; otherwise None. name: of the field."""
        if actual == recorded:
            return None
        return LogIntegrityError(
            f"The state rebuilt from the log has {name} {actual}, but the version checksum {self.path} says {recorded}. Files of "
            "the log were changed or lost. Restore them from a backup; if the checksum itself is wrong, move its file away.",
            path=self.path,
            field=name,
        )


def read_checksum(store: ObjectStore, file: LogFile) -> VersionChecksum | None:
    """The checksum in a file. None if the file is deleted, empty or of an older form; None, with a warning, if it is damaged."""
    try:
        return _read_and_parse(store, file)
    except FileNotFoundError:
        return None
    except (_OlderForm, _Empty) as error:
        _log.debug("the version checksum %s is ignored: %s", file.path, error.message)
        return None
    except (StorageError, CorruptTableError) as error:
        _log.warning("the version checksum %s is ignored: %s", file.path, error.message)
        return None


def read_checksum_of(store: ObjectStore, version: int) -> VersionChecksum | None:
    """The checksum of a version whose log was not listed. None if it cannot be used, as in read_checksum."""
    # The zeros: the file was not listed, so its size and time are unknown.
    return read_checksum(store, LogFile(f"{LOG_DIRECTORY}/{checksum_file_name(version)}", version, version, 0, 0))


def damage_of(store: ObjectStore, file: LogFile) -> str | None:
    """Why read_checksum ignores a file, for reports on the log: for example `it is empty`. None if the file is valid, deleted, or
    of an older form. Raises StorageError if the store refuses to read it."""
    try:
        _read_and_parse(store, file)
    except (FileNotFoundError, _OlderForm):
        return None
    except CorruptTableError as error:
        return error.message
    return None


def _read_and_parse(store: ObjectStore, file: LogFile) -> VersionChecksum:
    """Read and parse a checksum file. Raises CorruptTableError also if the file is too large to be read at once."""
    if file.size_bytes > limit_bytes():
        raise CorruptTableError(beyond_limit("it"))
    return VersionChecksum.parse(file.path, CachedObjects.of(store).read(file.info))


def _may_repeat_files(adds: Sequence[AddFile], removes: Sequence[RemoveFile]) -> bool:
    """Whether files that are added without a data change may already be in the table.

    Such adds are new files only if the commit has removes and none of its actions changes data: then the commit replaces the
    removed files by the added ones, as OPTIMIZE does.
    """
    return not removes or any(add.data_change for add in adds) or any(remove.data_change for remove in removes)


T = TypeVar("T", SetTransaction, DomainMetadata)


def _merge_newer(previous: tuple[T, ...] | None, newer: Iterable[T], key: str) -> tuple[T, ...] | None:
    """The previous items, in which a newer item replaces the item with the same value of the attribute `key`. None if the
    previous items are not known."""
    if previous is None:
        return None
    by_key = {getattr(item, key): item for item in previous}
    by_key.update({getattr(item, key): item for item in newer})
    return tuple(by_key.values())


def _to_json_list(items: Sequence[SetTransaction | DomainMetadata] | None) -> list[dict[str, Any]] | None:
    """The actions as JSON objects; None, so that the field is left out, if they are unknown or too many."""
    return None if items is None or len(items) > _MOST_LISTED_ACTIONS else [item.to_json() for item in items]


def _parse_count(value: Mapping[str, Any], name: str) -> int:
    """The field `name` of the checksum's JSON. Raises CorruptTableError if it is not a number from 0 to 2^63 - 1."""
    number = value.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**63:
        raise CorruptTableError(f"{name} is {shown(number)}")
    return number


def _parse_actions(value: Mapping[str, Any], name: str, action: Any) -> tuple[Any, ...] | None:
    """The actions in the field `name` of the checksum's JSON; None if the field is missing. action: the class of the actions."""
    actions = value.get(name)
    if actions is None:
        return None
    if not isinstance(actions, list) or not all(isinstance(item, dict) for item in actions):
        raise CorruptTableError(f"{name} is {shown(actions)}")
    return tuple(action.from_json(item) for item in actions)
