"""CatalogStore: the storage of a table that Unity Catalog manages.

The catalog ratifies one commit a request, and no more of them while 10 are not published. Staged commits stay where they are:
other readers may still get their names from the catalog.
Protocol: Commit Protocol; Publishing Commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_py.coordinator.ledger import Ratified, TooManyUnpublishedError
from delta_py.coordinator.unity_ledger import TABLE_ID_PROPERTY, UnityLedger
from delta_py.storage.coordinated import CoordinatedStore
from delta_py.storage.store import ObjectStore

_MOST_PUBLICATIONS = 5  # other writers may use up the free places each time


class CatalogStore(CoordinatedStore):
    """file_store: the store without the catalog."""

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
        """Raises as CoordinatedStore.ratify; TooManyUnpublishedError if commits cannot be published."""
        for _ in range(_MOST_PUBLICATIONS):
            try:
                return super().ratify(staged)
            except TooManyUnpublishedError:
                self.publish()
        super().ratify(staged)

    def forbids(self, maintenance: str) -> bool:
        return self.last_tail is not None and maintenance not in self._ledger.allowed_maintenance

    def _check_unmanaged(self) -> None:
        """Always raises: the catalog does not ratify the table's commits, so nobody may commit."""
        self.ledger.register(self.place, 0, "")

    def _drop_published(self, commits: Sequence[Ratified]) -> None:
        """They are kept."""
