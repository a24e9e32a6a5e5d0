"""Settings for the commits of a block of code, whatever operation makes them: more keys of commitInfo, transactions of
applications, the number of attempts, and the work after a commit.

    with commit_settings(CommitSettings(info={"job": 17}, max_attempts=3)):
        delete(store, "price < 15")

The settings hold in the thread that runs the block. This is enough, because operations commit in the thread that calls them.
Protocol: Commit Provenance Information; Transaction Identifiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from delta_py.errors import InvalidOptionError

_COMPUTED = {
    *("timestamp", "inCommitTimestamp", "txnId", "operation", "engineInfo", "operationMetrics", "tags"),
    *("isolationLevel", "isBlindAppend"),  # other writers judge conflicts by them
}


@dataclass(frozen=True, slots=True)
class CommitSettings:
    """Settings for commits. operation: the name in the history, instead of the operation's own. info: more keys of commitInfo; if
    `operationParameters` is one of them, its entries are added to the operation's own. transactions: versions by application id,
    which the commit records even if the table has already recorded later ones. max_attempts: how many versions are tried; None
    for the policy of the store. can_checkpoint: whether the commit may write a checkpoint. can_clean_log: whether the log may be
    cleaned after it, if delta.enableExpiredLogCleanup allows it."""

    operation: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    transactions: Mapping[str, int] = field(default_factory=dict)
    max_attempts: int | None = None
    can_checkpoint: bool = True
    can_clean_log: bool = True

    def __post_init__(self) -> None:
        """Raises InvalidOptionError for a key that every commit computes itself."""
        computed = sorted(_COMPUTED & self.info.keys())
        if computed:
            raise InvalidOptionError(
                f"commitInfo gets {', '.join(computed)} from the commit itself. Nothing was written. Leave it out, or use "
                "another key.",
                option=computed[0],
            )


_DEFAULTS = CommitSettings()
_settings: ContextVar[CommitSettings] = ContextVar("commit_settings", default=_DEFAULTS)


def current_settings() -> CommitSettings:
    """The settings of the innermost `commit_settings` block around the caller; the defaults outside of any block."""
    return _settings.get()


@contextmanager
def commit_settings(settings: CommitSettings) -> Iterator[None]:
    """Apply the settings to all commits that the body makes in this thread. They replace those of an outer block."""
    token = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(token)
