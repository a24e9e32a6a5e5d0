"""CatalogStore: the storage of a table that Unity Catalog manages.

A writer first writes a commit to `_staged_commits`. The catalog ratifies it: then it is a version of the table. Later a writer
publishes it: copies it to its place in `_delta_log`. The catalog ratifies one commit per request, and none while 10 ratified
commits are not published. Staged commits are not deleted: other readers may still get their names from the catalog.
Protocol: Commit Protocol; Publishing Commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_py.coordinator.ledger import Ratified, TooManyUnpublishedError
from delta_py.coordinator.unity_ledger import TABLE_ID_PROPERTY, UnityLedger
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.storage.store import ObjectStore

# How often `ratify` publishes and tries again: after each publication, other writers may reach the catalog's limit first.
_MOST_PUBLICATIONS = 5


class CatalogStore(CoordinatedStore):
    """The store of one managed table. file_store: the store without the catalog."""

    __slots__ = ("_ledger",)

    commits_per_request = 1
    id_property = TABLE_ID_PROPERTY

    def __init__(self, file_store: ObjectStore, ledger: UnityLedger) -> None:
        super().__init__(file_store, ledger.shown)
        self._ledger = ledger

    def __reduce__(self) -> tuple[Any, ...]:
        return CatalogStore, (self._file_store, self._ledger)

    @property
    def ledger(self) -> UnityLedger:
        return self._ledger

    def ratify(self, staged: Sequence[Ratified]) -> None:
        """Make the staged commit a version of the table. If the catalog accepts no more unpublished commits, publish them and try
        again. Raises as CoordinatedStore.ratify; TooManyUnpublishedError if commits cannot be published."""
        for _ in range(_MOST_PUBLICATIONS):
            try:
                return super().ratify(staged)
            except TooManyUnpublishedError:
                self.publish()
        super().ratify(staged)

    def forbids(self, maintenance: str) -> bool:
        """Whether the catalog forbids its clients a maintenance operation. False for a table whose commits it does not ratify.
        maintenance: the catalog's name for the operation."""
        # last_tail comes first: asking the catalog for it also sets allowed_maintenance.
        return self.last_tail is not None and maintenance not in self._ledger.allowed_maintenance

    def _check_can_commit_without_ledger(self) -> None:
        """Always raises UnsupportedOperationError: the catalog does not ratify the table's commits, so nobody may commit."""
        self.ledger.register(self.place, 0, "")  # always raises this error, whatever the arguments are

    def _drop_published(self, commits: Sequence[Ratified]) -> None:
        """Does nothing: other readers may still get the names of the staged commits from the catalog."""
