"""External tables in Unity Catalog. The catalog does not ratify their commits; writers report each new version to it.

The files of a new table are complete, at a location that the user chooses, before the table gets its name in the catalog:

    new_table = NewExternalTable(access, catalog_location("s3://lake/orders", access.name))
    new_table.enter(definition, 0)     # the files are there by now

The option unity.location names the location.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from delta_py.errors import DeltaError, InvalidOptionError, TableAlreadyExistsError, UnsupportedOperationError, shown
from delta_py.unity.catalog_answers import CatalogTable
from delta_py.unity.catalog_errors import CatalogAnswerError, CatalogUnavailableError
from delta_py.unity.server_urls import CatalogTableName, is_local
from delta_py.unity.table_access import TableAccess
from delta_py.unity.table_creation import create_in_catalog

_log = logging.getLogger("delta_py")

LOCATION_OPTION = "unity.location"


@dataclass(frozen=True)
class ExternalTable:
    """Reports versions of one external table. table_id: of the table that was opened. A copy in another process reports nothing
    unless the token may go there."""

    access: TableAccess
    table_id: str

    def __reduce__(self) -> tuple[Any, ...]:
        return (ExternalTable, (self.access, self.table_id)) if self.access.is_shared else (_unpickle_as_none, ())

    def report_version(self, version: int, timestamp_ms: int) -> None:
        """Tell the catalog the table's newest version. timestamp_ms: of the commit, since 1970. Raises as RestClient.post."""
        update = {
            "action": "update-metadata-snapshot-version",
            "last-commit-version": version,
            "last-commit-timestamp-ms": timestamp_ms,
        }
        self.access.update(self.table_id, [update])


class NewExternalTable:
    """An external table that the catalog does not have yet. access: None in a process to which the token was not sent; `enter`
    then raises UnsupportedOperationError. location: as the catalog will name it, from catalog_location. is_entered: whether the
    catalog has it by now."""

    def __init__(self, access: TableAccess | None, location: str, *, is_entered: bool = False) -> None:
        self.location, self._access, self._is_entered = location, access, is_entered
        self._entered_table: ExternalTable | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        is_shared = self._access is not None and self._access.is_shared
        return _unpickle_new_table, (self._access if is_shared else None, self.location, self._is_entered)

    def report_version(self, version: int, timestamp_ms: int) -> None:
        """As ExternalTable.report_version. Does nothing before `enter`: the catalog does not have the table then."""
        if not self._is_entered or self._access is None:
            return
        if self._entered_table is None:
            self._entered_table = ExternalTable(self._access, self._access.load().table_id)
        self._entered_table.report_version(version, timestamp_ms)

    def enter(self, definition: Mapping[str, Any], version: int) -> None:
        """Enter the table into the catalog, once. definition: from external_table_form. version: the table's newest.

        The files are complete and stay if this fails. Raises TableAlreadyExistsError, CatalogRefusedError,
        CatalogObjectNotFoundError if there is no such schema, CatalogUnavailableError if the outcome is unknown,
        CatalogAnswerError if the catalog entered another location, and the errors of getting a token.
        """
        if self._is_entered:
            return
        if self._access is None:
            raise UnsupportedOperationError(
                f"The table at {self.location} is complete, with version {version}, and has no name in Unity Catalog: the token "
                "was not sent to the process that committed. Set unity.share_token, and enter it with CREATE TABLE ... LOCATION."
            )
        try:
            create_in_catalog(self._access, definition, lambda table: is_at(table, self.location))
        except (DeltaError, OSError) as error:
            raise self.not_entered_error(error, version) from error
        finally:
            self._access.forget_external_location(self.location)
        self._is_entered = True
        self._check_and_report(version, definition["last-commit-timestamp-ms"])

    def _check_and_report(self, version: int, timestamp_ms: int) -> None:
        """Look at the new entry, and report the version. If the catalog does not answer, the next commit reports its version."""
        assert self._access is not None, "it has entered the table"
        try:
            table = self._access.load()
            is_right = is_at(table, self.location)
            if is_right:
                self._entered_table = ExternalTable(self._access, table.table_id)
                self.report_version(version, timestamp_ms)
        except DeltaError as error:
            _log.warning("%s: version %d is not reported to its catalog: %s", self.location, version, error)
            return
        if not is_right:
            raise self.not_entered_error(
                CatalogAnswerError(f"The catalog says that the new table is at {shown(table.location)}."), version
            )

    def not_entered_error(self, error: Exception, version: int | None = None) -> DeltaError:
        """The error for a table whose files are complete and whose name could not be entered: of the same class as the cause if
        that is a DeltaError. version: the table's newest; None if it could not be read."""
        name = "a table" if self._access is None else self._access.name.shown
        if isinstance(error, TableAlreadyExistsError):
            message = "a table of that name was created meanwhile."
        else:
            message = error.message if isinstance(error, DeltaError) else str(error)
        doubt = "may not be" if isinstance(error, CatalogUnavailableError) else "is not"
        at_version = "" if version is None else f", with version {version},"
        text = (
            f"The table at {self.location} is complete{at_version} and {doubt} {name} in Unity Catalog: {message} "
            "Do not write the rows again: enter the table by CREATE TABLE ... LOCATION, or by DeltaTable.create in mode ignore."
        )
        if not isinstance(error, DeltaError):
            return CatalogUnavailableError(text)
        return type(error)(text, error_class=error.error_class, sql_state=error.sql_state, **error.message_parameters)


def catalog_location(location: str, name: CatalogTableName) -> str:
    """A location that a user names, as the catalog writes it: a URL without a slash at the end. name: of the table.

    Raises InvalidOptionError for a relative path and for a text that is no location, UnsupportedOperationError for a directory of
    another machine, and of this one if the server is elsewhere.
    """
    if location.lower().startswith("s3a://"):
        location = f"s3://{location[len('s3a://') :]}"  # the spelling of catalogs
    if not _is_on_this_machine(location):
        return location.rstrip("/")
    try:
        host, path = _host_and_path(location)
        url = f"file://{quote(os.path.normpath(path))}"
    except ValueError as error:  # such as characters that no name can have
        raise InvalidOptionError(
            f"The location {shown(location)} of the table {name.shown} is no location: {error}. Nothing was written.",
            option=LOCATION_OPTION,
        ) from error
    if host.lower() not in ("", "localhost"):
        raise UnsupportedOperationError(
            f"The location {shown(location)} of the table {name.shown} is on the host {host!r}. Nothing was written. Write "
            "file:///... for a directory of this machine."
        )
    if not os.path.isabs(path) or "\0" in path:
        raise InvalidOptionError(
            f"The location {shown(location)} of the table {name.shown} is neither an absolute path nor a URL. Nothing was "
            "written.",
            option=LOCATION_OPTION,
        )
    if not is_local(name.server):
        raise UnsupportedOperationError(
            f"The location {shown(location)} of the table {name.shown} is on this machine, and the Unity Catalog server "
            f"{name.server} is on another one. Nothing was written. Choose a location in an object store."
        )
    return url


def check_location(location: str, table: CatalogTable, name: CatalogTableName) -> None:
    """Raises InvalidOptionError (DELTA_TABLE_LOCATION_MISMATCH) if a table is not at the location that the user names."""
    if table.is_managed or not is_at(table, catalog_location(location, name)):
        chosen = "which the catalog chose, " if table.is_managed else ""
        raise InvalidOptionError(
            f"The table {name.shown} is at {shown(table.location)}, {chosen}and not at the location {shown(location)}. "
            "Nothing was read or written. Leave the location out.",
            option=LOCATION_OPTION,
            error_class="DELTA_TABLE_LOCATION_MISMATCH",
            sql_state="42613",
        )


def is_at(table: CatalogTable, location: str) -> bool:
    """Whether a table is external, and at a location from catalog_location."""
    present = table.location
    if _is_on_this_machine(present):
        try:
            present = f"file://{quote(os.path.normpath(_host_and_path(present)[1]))}"
        except ValueError:
            return False
    return not table.is_managed and present.rstrip("/") == location.rstrip("/")


def _is_on_this_machine(location: str) -> bool:
    return location.lower().startswith("file:") or "://" not in location


def _host_and_path(location: str) -> tuple[str, str]:
    """The host and the path of a plain path or a file: URL. Raises ValueError for a text that is no URL."""
    if not location.lower().startswith("file:"):
        return "", location
    parts = urlsplit(location)
    return parts.netloc, unquote(parts.path)


def _unpickle_new_table(access: TableAccess | None, location: str, is_entered: bool) -> NewExternalTable:
    return NewExternalTable(access, location, is_entered=is_entered)


def _unpickle_as_none() -> None:
    """Unpickles an ExternalTable in a process without the token, as None."""
    return None
