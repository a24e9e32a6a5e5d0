"""Create a table in Unity Catalog, once, although answers may be lost.

    create_in_catalog(access, definition, is_ours)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from delta_py.backoff import Backoff
from delta_py.errors import TableAlreadyExistsError
from delta_py.unity.catalog_answers import CatalogTable
from delta_py.unity.catalog_errors import (
    CatalogAnswerError,
    CatalogObjectNotFoundError,
    CatalogRefusedError,
    CatalogUnavailableError,
)
from delta_py.unity.table_access import TableAccess

_ATTEMPTS = 10  # with the waits of _BACKOFF between them
_BACKOFF = Backoff(first_seconds=0.1, longest_seconds=5.0)
_THROTTLED = 429
_EXISTS = "AlreadyExistsException"


def create_in_catalog(access: TableAccess, definition: Mapping[str, Any], is_ours: Callable[[CatalogTable], bool]) -> None:
    """Create a table. The request is repeated until it is answered. An attempt without an answer may have created our table; then
    later attempts are refused, and `is_ours` tells our table from another one. definition: as TableAccess.create. is_ours:
    whether a table that has the name is the one of this call.

    Raises TableAlreadyExistsError if somebody else has created a table of that name; CatalogRefusedError;
    CatalogObjectNotFoundError if there is no such schema; CatalogUnavailableError if no attempt was answered.
    """
    is_unanswered = False
    for attempt in range(_ATTEMPTS):
        try:
            return access.create(definition)
        except CatalogObjectNotFoundError:  # the schema does not exist, or was dropped
            if not is_unanswered:  # otherwise an earlier attempt may have created the table: keep trying to find out
                raise
        except CatalogRefusedError as error:
            # An earlier attempt whose answer was lost, or another writer of the same external table, may have created it.
            if is_unanswered or error.kind == _EXISTS:
                is_created = _is_created(access, is_ours)
                if is_created:
                    return None
                if error.kind == _EXISTS and is_created is False:
                    raise _already_exists_error(access) from error
            elif error.status != _THROTTLED:
                raise
        except (CatalogUnavailableError, CatalogAnswerError):
            is_unanswered = True
        time.sleep(_BACKOFF.wait_seconds(attempt))
    raise CatalogUnavailableError(f"Unity Catalog neither confirmed nor refused the new table {access.name.shown}. It may exist.")


def _is_created(access: TableAccess, is_ours: Callable[[CatalogTable], bool]) -> bool | None:
    """Whether the table that has the name in the catalog is the one of this call; None if the catalog does not say."""
    try:
        return is_ours(access.load())
    except CatalogObjectNotFoundError:  # not created, or dropped since
        return False
    except (CatalogRefusedError, CatalogUnavailableError, CatalogAnswerError):
        return None


def _already_exists_error(access: TableAccess) -> TableAlreadyExistsError:
    return TableAlreadyExistsError(
        f"The table {access.name.shown} already exists: it was created meanwhile. Nothing was written. Run the operation again.",
        error_class="TABLE_OR_VIEW_ALREADY_EXISTS",
    )
