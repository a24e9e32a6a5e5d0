"""In-commit timestamps of an existing table: the version from which its commits carry them.

    configuration, at_ms = timestamped_properties(snapshot, configuration)
    transaction = transaction_at(snapshot, at_ms)

Protocol: In-Commit Timestamps; Writer Requirements for In-Commit Timestamps.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from delta_py.commit.prepared import IsolationLevel
from delta_py.commit.transaction import Transaction
from delta_py.protocol.features import Properties
from delta_py.snapshot import Snapshot

ENABLED = "delta.enableInCommitTimestamps"
SINCE = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


def timestamped_properties(snapshot: Snapshot, configuration: Mapping[str, str]) -> tuple[dict[str, str], int | None]:
    """The table's new properties, and the time (ms) that the commit must have, or None for any time.

    If the commit turns on in-commit timestamps, the properties say since which version and time commits have them. Then the
    commit must have that time, and be the version after the snapshot's.
    """
    start_names = {name.lower() for name in SINCE}
    properties = {name: value for name, value in configuration.items() if name.lower() not in start_names}
    if not Properties(properties).boolean(ENABLED):
        return properties, None
    current_properties = snapshot.config.properties
    if current_properties.boolean(ENABLED):
        return properties | {name: current_properties[name] for name in SINCE if name in current_properties}, None
    at_ms = max(time.time_ns() // 1_000_000, snapshot.timestamp_ms + 1)
    return properties | dict(zip(SINCE, (str(snapshot.version + 1), str(at_ms)), strict=True)), at_ms


def transaction_at(snapshot: Snapshot, at_ms: int | None, isolation: IsolationLevel | None = None) -> Transaction:
    """A transaction on the snapshot. at_ms: the time that its commit must have, from timestamped_properties. Then it must also be
    the next version, because the properties name its version; None for a commit at any time."""
    if at_ms is None:
        return Transaction(snapshot, isolation=isolation)
    return Transaction(snapshot, isolation=isolation, clock_ms=lambda: at_ms).must_be_next()
