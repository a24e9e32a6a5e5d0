"""An external table in the catalog, which gets the number of each new version: it does not ratify the commits of such a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delta_py.unity.table_access import TableAccess


@dataclass(frozen=True)
class ExternalTable:
    """Reports versions of one external table. table_id: of the table that was opened. A copy in another process reports nothing
    unless the token may go there."""

    access: TableAccess
    table_id: str

    def __reduce__(self) -> tuple[Any, ...]:
        return (ExternalTable, (self.access, self.table_id)) if self.access.is_shared else (_nothing, ())

    def report_version(self, version: int, timestamp_ms: int) -> None:
        """Tell the catalog the table's newest version. timestamp_ms: of the commit, since 1970. Raises as RestClient.post."""
        update = {
            "action": "update-metadata-snapshot-version",
            "last-commit-version": version,
            "last-commit-timestamp-ms": timestamp_ms,
        }
        self.access.update(self.table_id, [update])


def _nothing() -> None:
    """Unpickles an ExternalTable in a process without the token, as None."""
    return None
