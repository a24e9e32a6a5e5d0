"""VacuumRequest: what a caller may request of a VACUUM, and the retention times that follow from it and the table.

Negative and very long times are refused. A retention shorter than the table's is refused unless the caller allows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from delta_py.errors import InvalidOptionError
from delta_py.protocol.intervals import DELETED_FILE_RETENTION, retention_ms
from delta_py.snapshot import Snapshot

_HOUR_MS = 3_600_000


class VacuumKind(Enum):
    """FULL lists the table's directories, LITE reads only the log."""

    FULL = "FULL"
    LITE = "LITE"


@dataclass(frozen=True, slots=True)
class VacuumRequest:
    """The options of a VACUUM. retention_hours: None for the table's delta.deletedFileRetentionDuration.
    check_retention: refuse a time shorter than that. keep_versions: versions that stay readable whatever their age. logs: commit
    the start and the end, for the history. inventory: replaces the listing; a stream of Arrow batches with the columns path (the
    full path), length (bytes), isDir, modificationTime (ms). quarantine: move files to quarantine instead of deleting them.
    quarantine_hours: how long they stay there; None for the table's delta.deletedFileRetentionDuration. keep_clones: retain the
    files that shallow clones read.
    """

    retention_hours: float | None = None
    check_retention: bool = True
    keep_versions: tuple[int, ...] = ()
    logs: bool = True
    kind: VacuumKind = VacuumKind.FULL
    inventory: Any = None
    quarantine: bool = False
    quarantine_hours: float | None = None
    keep_clones: bool = True


def quarantine_ms_of(request: VacuumRequest, snapshot: Snapshot) -> int:
    """How long files stay in quarantine, in ms. Raises InvalidOptionError for a time that makes no sense."""
    if request.quarantine_hours is None:
        return retention_ms(snapshot.config.properties, DELETED_FILE_RETENTION)
    return _hours_to_ms(request.quarantine_hours, "quarantine", "quarantineHours")


def _hours_to_ms(hours: float, what: str, option: str) -> int:
    """Hours as milliseconds. what: the time's name in the error. Raises InvalidOptionError."""
    if not 0 <= hours < 2**40:  # so many hours still fit into 64 bits as milliseconds
        raise InvalidOptionError(
            f"A {what} of {hours} hours makes no sense: it must be 0 or more. Nothing was deleted.",
            option=option,
            **({"error_class": "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE", "sql_state": "22003"} if hours < 0 else {}),
        )
    return int(hours * _HOUR_MS)


def retention_ms_of(request: VacuumRequest, table_retention_ms: int) -> int:
    """The retention time in ms, of a request that has one. Raises InvalidOptionError if the time makes no sense, or if it is
    shorter than the table's and the request does not allow that.
    """
    hours = request.retention_hours
    assert hours is not None
    retention = _hours_to_ms(hours, "retention", "retentionHours")
    if request.check_retention and retention < table_retention_ms:
        raise InvalidOptionError(
            f"A retention of {hours} hours is shorter than the {table_retention_ms / _HOUR_MS:g} hours of the table "
            "(delta.deletedFileRetentionDuration). Readers and writers that are at work may need the files, and versions of that "
            "time could not be read any more. Nothing was deleted. If you are sure that nobody needs them, switch the check off "
            "(spark.databricks.delta.retentionDurationCheck.enabled=false, or enforce_retention_duration=False), or change the "
            "property.",
            error_class="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            sql_state="22003",
            hours=hours,
            kept_hours=table_retention_ms / _HOUR_MS,
        )
    return retention
