"""Commits by deltalake's names: their properties, and files that a caller has written by himself.

with commit_as(CommitProperties(custom_metadata={"job": 17})): ...
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from delta_py.commit.commit_settings import CommitSettings, commit_settings
from delta_py.errors import InvalidOptionError

# Keys of commitInfo whose values must be texts.
_TEXT_KEYS = ("userId", "userName", "userMetadata")


@dataclass
class Transaction:
    """The version of an application's transaction, recorded in a commit. last_updated: ms since 1970."""

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass
class AddAction:
    """A data file that a caller has written. size: bytes. modification_time: ms since 1970. stats: JSON, as in the log; empty if
    there are none."""

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    data_change: bool
    stats: str


@dataclass
class RemoveAction:
    """A data file that a commit removes. deletion_timestamp: ms since 1970."""

    path: str
    deletion_timestamp: int | None = None
    partition_values: Mapping[str, str | None] | None = None
    data_change: bool = True
    size: int | None = None


@dataclass
class PostCommitHookProperties:
    """What may run after a commit. create_checkpoint: whether the commit may write a checkpoint. cleanup_expired_logs: False
    leaves expired files of the log; with None and True the property delta.enableExpiredLogCleanup decides."""

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None


@dataclass
class CommitProperties:
    """Settings of a commit. custom_metadata: more keys of commitInfo, with values that JSON has. max_commit_retries: how often a
    commit is tried again after another writer took its version. app_transactions: transaction versions of applications that the
    commit records."""

    custom_metadata: Mapping[str, Any] | None = None
    max_commit_retries: int | None = None
    app_transactions: Sequence[Transaction] | None = field(default=None)


@contextmanager
def commit_as(
    properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    operation: str | None = None,
) -> Iterator[None]:
    """Commits in the block get these properties. operation: its name in the history, instead of its own. Raises
    InvalidOptionError, which is a ValueError, for values that commitInfo cannot have."""
    properties = properties or CommitProperties()
    hooks = post_commithook_properties or PostCommitHookProperties()
    retries = properties.max_commit_retries
    settings = CommitSettings(
        operation=operation,
        info=_json_metadata({} if properties.custom_metadata is None else properties.custom_metadata),
        transactions={transaction.app_id: transaction.version for transaction in properties.app_transactions or ()},
        max_attempts=None if retries is None else retries + 1,
        can_checkpoint=hooks.create_checkpoint,
        can_clean_log=hooks.cleanup_expired_logs is not False,
    )
    with commit_settings(settings):
        yield


def _json_metadata(metadata: Any) -> dict[str, Any]:
    """The custom metadata as JSON has it. Raises InvalidOptionError for values that commitInfo cannot have."""
    if not isinstance(metadata, Mapping):
        raise _metadata_error(f"custom_metadata is {type(metadata).__name__}, and must be a mapping of names to JSON values")
    if not all(isinstance(key, str) for key in metadata):
        raise _metadata_error("the keys of custom_metadata, which is a mapping, must be texts: keys must be strings")
    try:
        values: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise _metadata_error(f"custom_metadata has a value that JSON does not have: {error}") from error
    for name in _TEXT_KEYS:
        if name in values and not isinstance(values[name], str):
            raise _metadata_error(f"{name} of custom_metadata must be a text")
    if not isinstance(values.get("operationParameters", {}), dict):
        raise _metadata_error("operationParameters of custom_metadata must be a mapping")
    version = values.get("readVersion", 0)
    if type(version) is not int or version < 0:
        raise _metadata_error("readVersion of custom_metadata must be a whole number from 0 on")
    return values


def _metadata_error(what: str) -> InvalidOptionError:
    return InvalidOptionError(f"Nothing was written: {what}.", option="custom_metadata")
