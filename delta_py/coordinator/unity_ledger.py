"""A table that Unity Catalog manages, as a ledger of this one table: the catalog ratifies its commits, one a request.

The table's id in the catalog is the ledger's identity, and the property io.unitycatalog.tableId in the table's log. A request
that is repeated with the same file name changes nothing, so a request whose answer was lost may be sent again.
Protocol: Catalog Responsibilities; Getting Ratified Commits from the Catalog.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

from delta_py.coordinator.catalog_updates import commit_updates
from delta_py.coordinator.ledger import (
    CoordinatorUnavailableError,
    Inventory,
    OpenTransaction,
    ProposedCommit,
    RatificationRefusedError,
    Ratified,
    Restored,
    Tail,
    TooManyUnpublishedError,
    version_taken_error,
)
from delta_py.errors import DeltaError, TableNotFoundError, UnsupportedOperationError
from delta_py.unity.catalog_answers import CatalogTable
from delta_py.unity.catalog_errors import CatalogAnswerError, CatalogRefusedError, CatalogUnavailableError
from delta_py.unity.table_access import TableAccess

TABLE_ID_PROPERTY = "io.unitycatalog.tableId"

# For so long after a table was opened, the first tail uses the answer of the request that opened it: a user's call opens and
# reads the table.
_FIRST_TAIL_SECONDS = 1.0
_THROTTLED = 429
_LIMIT_REACHED = "ResourceExhaustedException"
_VERSION_TAKEN = "CommitVersionConflictException"
_OTHER_TABLE = "UpdateRequirementConflictException"


class UnityLedger:
    """The Ledger (ledger.py) of one table of Unity Catalog. shown: the table's name. table_id: of the table that was opened.
    access: None in a process to which the token was not sent; every request of the ledger then raises
    UnsupportedOperationError. loaded: the table as the catalog has just described it, so that the first `tail` needs no
    request."""

    def __init__(self, shown: str, table_id: str, access: TableAccess | None, loaded: CatalogTable | None = None) -> None:
        self.shown, self.identity, self._access = shown, table_id, access
        self._loaded, self._loaded_at = loaded, time.monotonic()
        self.allowed_maintenance: frozenset[str] = frozenset()
        """Operations that the catalog leaves to its clients, as of the last tail."""

    def __repr__(self) -> str:
        return f"UnityLedger({self.shown!r}, {self.identity!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """The copy has no access unless the token may leave the process."""
        is_shared = self._access is not None and self._access.is_shared
        return UnityLedger, (self.shown, self.identity, self._access if is_shared else None)

    # ------------------------------------------------------------ one table

    def tail(self, table: str) -> Tail | None:
        """The table's newest version, and its commits that are not published; None if the catalog does not ratify the table's
        commits. Raises TableNotFoundError if the name means another table by now, and as RestClient.get."""
        loaded, self._loaded = self._loaded, None
        if loaded is None or time.monotonic() - self._loaded_at > _FIRST_TAIL_SECONDS:
            loaded = self._load()
        self.allowed_maintenance = loaded.allowed_maintenance
        if loaded.newest_version is None:
            return None
        commits = tuple(
            Ratified(table, commit.version, commit.name, commit.size_bytes, commit.time_ms) for commit in loaded.commits
        )
        return Tail(loaded.newest_version, commits, loaded.table_id)

    def ratify(
        self,
        commits: Sequence[Ratified],
        *,
        expected: Mapping[str, int] | None = None,
        transaction: str | None = None,
        token: str | None = None,
    ) -> int:
        """Have one commit ratified, and return its version. Raises UnsupportedOperationError for more than one commit and for a
        transaction; VersionTakenError; TooManyUnpublishedError; RatificationRefusedError for a commit that the catalog will never
        accept; TableNotFoundError; CoordinatorUnavailableError if the outcome is unknown."""
        if len(commits) != 1 or expected or transaction is not None:
            self._refuse_transactions()
        commit = commits[0]
        assert commit.content is not None, "the catalog gets the changes of a table's definition with the commit"
        try:
            self._access_of_process().update(self.identity, commit_updates(commit, commit.content, self._load))
        except CatalogRefusedError as error:
            self._raise_refusal(commit, error)
        except (CatalogUnavailableError, CatalogAnswerError) as error:
            raise self._unavailable_error(error) from error
        return commit.version

    def _raise_refusal(self, commit: Ratified, error: CatalogRefusedError) -> NoReturn:
        """Raise the error of a Ledger that a refusal of the catalog means."""
        if error.kind == _VERSION_TAKEN:
            raise version_taken_error(commit.table, commit.version, self._newest_after_conflict()) from error
        if error.kind == _OTHER_TABLE:
            raise self._replaced_error() from error
        if error.kind == _LIMIT_REACHED:
            raise TooManyUnpublishedError(error.message, table=commit.table) from error
        if error.status == _THROTTLED:
            raise self._unavailable_error(error) from error
        raise RatificationRefusedError(
            error.message, error_class=error.error_class, sql_state=error.sql_state, **error.message_parameters
        ) from error

    def _newest_after_conflict(self) -> int | None:
        """Ask the catalog for the newest version, after it reported that the version of a commit is taken. The version may be
        ours, from an earlier request without an answer. So a failure raises CoordinatorUnavailableError, which does not say that
        nothing was committed."""
        try:
            return self._load().newest_version
        except (CatalogRefusedError, CatalogAnswerError) as error:
            raise self._unavailable_error(error) from error

    def acknowledge(self, table: str, version: int) -> None:
        """Tell the catalog that all commits up to this version are published. Raises as RestClient.post."""
        update = {"action": "set-latest-backfilled-version", "latest-published-version": version}
        self._access_of_process().update(self.identity, [update])

    def turn(self, tables: Iterable[str]) -> AbstractContextManager[None]:
        """No turns: the catalog's API has none."""
        return nullcontext()

    def _load(self) -> CatalogTable:
        """The table as the catalog has it now. Raises TableNotFoundError if the name means another table by now."""
        try:
            loaded = self._access_of_process().load()
        except CatalogUnavailableError as error:
            raise self._unavailable_error(error) from error
        if loaded.table_id != self.identity:
            raise self._replaced_error()
        return loaded

    def _access_of_process(self) -> TableAccess:
        """The access to the catalog. Raises UnsupportedOperationError if this process did not get the token."""
        if self._access is None:
            raise UnsupportedOperationError(
                f"The table {self.shown} was opened in another process, and the token for Unity Catalog was not sent to this "
                "one. Nothing was read or written. Open the table by its name here, or set unity.share_token when it is opened."
            )
        return self._access

    def _unavailable_error(self, error: DeltaError) -> CoordinatorUnavailableError:
        return CoordinatorUnavailableError(error.message, coordinator=self.shown)

    def _replaced_error(self) -> TableNotFoundError:
        """The error for a name that means another table by now."""
        return TableNotFoundError(
            f"{self.shown} was opened as the table {self.identity}, and another table has that name now: the first one was "
            "dropped or renamed. Nothing was committed. Open the table again.",
            error_class="DELTA_TABLE_NOT_FOUND",
            table_id=self.identity,
        )

    # ------------------------------------------------------------ what the catalog's API does not have

    def register(self, table: str, version: int, table_id: str) -> None:
        """Raise UnsupportedOperationError, because only the catalog can begin to ratify the table's commits."""
        raise UnsupportedOperationError(
            f"Unity Catalog does not ratify the commits of the managed table {self.shown}, so that no other client may write it. "
            "Nothing was written. Have its owner enable catalog commits: the table feature catalogManaged."
        )

    def forget(self, table: str, version: int | None = None) -> bool:
        """Does nothing, and returns False, because the catalog's API has no such call."""
        return False

    def inventory(self) -> Inventory:
        return self._refuse_transactions()

    def restore(self, identity: str, tables: Sequence[Restored]) -> None:
        self._refuse_transactions()

    def moment(self, time_ms: int | None = None) -> int | None:
        """None, because the catalog's API has no moments."""
        return None

    def version_at(self, table: str, moment: int) -> int | None:
        """None, because the catalog's API has no moments."""
        return None

    def begin(self, seconds: float) -> OpenTransaction:
        return self._refuse_transactions()

    def find(self, transaction: str) -> OpenTransaction:
        return self._refuse_transactions()

    def tail_in(self, transaction: str, table: str) -> Tail | None:
        return self._refuse_transactions()

    def propose(self, transaction: str, proposed: ProposedCommit) -> None:
        self._refuse_transactions()

    def proposed(self, transaction: str, table: str | None = None) -> list[ProposedCommit]:
        return self._refuse_transactions()

    def hold_reads(self, transaction: str, table: str, reads: bytes) -> None:
        self._refuse_transactions()

    def held_reads(self, transaction: str) -> dict[str, list[bytes]]:
        return self._refuse_transactions()

    def state_of(self, transaction: str) -> str | None:
        return self._refuse_transactions()

    def abort(self, transaction: str) -> list[ProposedCommit]:
        return self._refuse_transactions()

    def moment_of(self, token: str) -> int | None:
        return self._refuse_transactions()

    def _refuse_transactions(self) -> NoReturn:
        """Raise UnsupportedOperationError for a method of Ledger that the catalog's API does not have."""
        raise UnsupportedOperationError(
            f"Unity Catalog ratifies the commits of the table {self.shown} one by one, so it cannot be part of a transaction "
            "over tables. Nothing was read or written."
        )
