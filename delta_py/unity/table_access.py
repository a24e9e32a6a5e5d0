"""One table of a Unity Catalog server: its state, changes of it, and credentials for its files that are renewed.

    access = table_access(name, options)
    access.load()                           # CatalogTable
    access.storage_options(location)        # with credentials that are valid for a while

Credentials are requested once for all users of an access, and again before they expire. A process has one access to a table.
The option unity.share_token lets it be pickled, together with the token and with its credentials: so a process that gets a copy
requests no credentials before they expire.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

from delta_py.backoff import Backoff
from delta_py.remote_requests import RETRY_SECONDS
from delta_py.unity.access_tokens import token_for
from delta_py.unity.catalog_answers import (
    CatalogTable,
    StagedTable,
    VendedCredential,
    catalog_table,
    covers,
    credential_for,
    staged_table,
    vended_credentials,
)
from delta_py.unity.catalog_errors import CatalogObjectNotFoundError, CatalogRefusedError, CatalogUnavailableError
from delta_py.unity.rest_client import TIMEOUT_SECONDS, RestClient
from delta_py.unity.server_urls import CatalogTableName

_log = logging.getLogger("delta_py")

_RENEWED_BEFORE_MS = 5 * 60_000  # how long before their end credentials are renewed
_FORBIDDEN, _THROTTLED = 403, 429
_STAGING_ATTEMPTS = 3  # requests for the place of a new table
_BACKOFF = Backoff(first_seconds=0.1, longest_seconds=5.0)

_cache_lock = threading.Lock()
_accesses: WeakSet[TableAccess] = WeakSet()


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """How requests are sent. options: the storage options that give the token, as (name, value). timeout: seconds for one
    request. retry_seconds: how long requests without an answer are repeated. is_shared: the token may go to other processes."""

    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = TIMEOUT_SECONDS
    retry_seconds: float = RETRY_SECONDS
    is_shared: bool = False


class TableAccess:
    """Requests about one table, and the credentials for its files. options: None if the access cannot be pickled. clock_ms: ms
    since 1970; replaced in tests. `_credential`: None before the first request for credentials."""

    def __init__(
        self,
        client: RestClient,
        name: CatalogTableName,
        options: AccessOptions | None = None,
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.name, self._client, self._options, self._clock_ms = name, client, options, clock_ms
        self._lock = threading.Lock()
        self._credential: VendedCredential | None = None
        # The requests for credentials of new tables, path and query by location, until the tables are created.
        self._new_table_requests: dict[str, tuple[str, dict[str, str]]] = {}
        self._renew_at_ms = 0  # since 1970
        _accesses.add(self)

    def __repr__(self) -> str:
        return f"TableAccess({self.name.shown!r})"

    @property
    def is_shared(self) -> bool:
        """Whether it can be pickled."""
        return self._options is not None and self._options.is_shared

    def __reduce__(self) -> tuple[Any, ...]:
        if self._options is None or not self._options.is_shared:
            raise TypeError(f"the token for {self.name.shown} does not leave the process without the option unity.share_token")
        with self._lock:
            return _unpickle_access, (self.name, self._options, self._credential, dict(self._new_table_requests))

    @property
    def _schema_path(self) -> str:
        catalog, schema, _ = (quote(part, safe="") for part in self.name.parts)
        return f"/delta/v1/catalogs/{catalog}/schemas/{schema}"

    @property
    def _table_path(self) -> str:
        return f"{self._schema_path}/tables/{quote(self.name.parts[2], safe='')}"

    def load(self) -> CatalogTable:
        """The table as the catalog has it now. Raises as RestClient.get, and CatalogAnswerError."""
        return catalog_table(self._client.get(self._table_path), self.name.text)

    def update(self, table_id: str, updates: Sequence[Mapping[str, Any]]) -> None:
        """Change the table with this id, in one request. Raises as RestClient.post."""
        self._client.post(
            self._table_path, {"requirements": [{"type": "assert-table-uuid", "uuid": table_id}], "updates": list(updates)}
        )

    def stage(self) -> StagedTable:
        """A place for a new managed table, with credentials for it. The table is not there before `create`. Raises as load."""
        answer = self._request_new_place()
        staged = staged_table(answer, self.name.text)
        with self._lock:
            self._new_table_requests[staged.location] = (f"/delta/v1/staging-tables/{staged.table_id}/credentials", {})
            if answer.get("storage-credentials"):
                self._use_credential(credential_for(vended_credentials(answer, self.name.text), staged.location, self.name.text))
        return staged

    def use_external_location(self, location: str) -> None:
        """Prepare for a new external table at a location that the user names. Sends no request."""
        with self._lock:
            query = {"location": location, "operation": "READ_WRITE"}
            self._new_table_requests[location] = ("/delta/v1/temporary-path-credentials", query)

    def forget_external_location(self, location: str) -> None:
        """From now on, credentials for the location are requested by the table's name."""
        with self._lock:
            self._new_table_requests.pop(location, None)

    def _request_new_place(self) -> dict[str, Any]:
        """Request a place for a new table, and return the answer. The request is repeated if the outcome is unknown or the server
        is busy: a place that nobody uses does no harm."""
        for attempt in range(_STAGING_ATTEMPTS):
            try:
                return self._client.post(f"{self._schema_path}/staging-tables", {"name": self.name.parts[2]}) or {}
            except (CatalogUnavailableError, CatalogRefusedError) as error:
                if attempt == _STAGING_ATTEMPTS - 1 or (isinstance(error, CatalogRefusedError) and error.status != _THROTTLED):
                    raise
            time.sleep(_BACKOFF.wait_seconds(attempt))
        raise AssertionError("the last attempt returns or raises")

    def create(self, definition: Mapping[str, Any]) -> None:
        """Create the table in the catalog, so that others see it. Its files are at their place already. definition: the body of
        the request, without the name. Raises as RestClient.post."""
        self._client.post(f"{self._schema_path}/tables", {"name": self.name.parts[2], **definition})
        with self._lock:
            self._new_table_requests.pop(definition["location"], None)

    def drop(self) -> None:
        """Drop the table from the catalog. Raises as RestClient.delete."""
        self._client.delete(self._table_path)

    def rename(self, new_name: str) -> None:
        """Rename the table within its schema. Raises as RestClient.post. If the outcome is unknown, this looks whether the table
        has the new name."""
        table_id = self.load().table_id
        try:
            self._client.post(f"{self._table_path}/rename", {"new-name": new_name})
        except CatalogUnavailableError:  # the table has the new name if the request was carried out
            renamed = TableAccess(self._client, replace(self.name, parts=(*self.name.parts[:2], new_name)))
            try:
                is_done = renamed.load().table_id == table_id
            except CatalogObjectNotFoundError:
                is_done = False
            if not is_done:
                raise

    def storage_options(self, location: str) -> Mapping[str, str]:
        """Storage options with credentials for the table's files; empty if the server hands out none. Raises as load."""
        with self._lock:
            if self._credential is None or not covers(self._credential.prefix, location):
                # There is none yet, or the table was created again at another place.
                self._credential, self._renew_at_ms = None, 0
            if self._clock_ms() >= self._renew_at_ms:
                self._renew(location)
            assert self._credential is not None
            return self._credential.options

    def _renew(self, location: str) -> None:
        """Request new credentials. If the server gives no answer, the present ones are used as long as they are valid."""
        now_ms = self._clock_ms()
        try:
            credential = credential_for(self._request_credentials(location), location, self.name.text)
        except CatalogUnavailableError as error:
            expires_ms = None if self._credential is None else self._credential.expires_ms
            if expires_ms is None or now_ms >= expires_ms:
                raise
            _log.warning("%s: the credentials were not renewed, and are valid for a while: %s", self.name.shown, error)
            self._renew_at_ms = now_ms + (expires_ms - now_ms) // 2
            return
        self._use_credential(credential)

    def _use_credential(self, credential: VendedCredential) -> None:
        """Use a credential from now on, until five minutes before its end, or for half of a short life."""
        now_ms = self._clock_ms()
        self._credential = credential
        life_ms = 0 if credential.expires_ms is None else max(0, credential.expires_ms - now_ms)
        self._renew_at_ms = 2**63 if credential.expires_ms is None else now_ms + max(life_ms // 2, life_ms - _RENEWED_BEFORE_MS)

    def _request_credentials(self, location: str) -> tuple[VendedCredential, ...]:
        """Request credentials for reading and writing, or only for reading if the user may not write. location: the table's."""
        # The catalog does not know a new table by its name yet, so another request gives the credentials for its location.
        new_table_request = self._new_table_requests.get(location)
        if new_table_request is not None:
            try:
                answer = self._client.get(*new_table_request)
            except CatalogObjectNotFoundError:  # the table was created, and the answer was lost
                self._new_table_requests.pop(location, None)
            else:
                return vended_credentials(answer, self.name.text)
        path = f"{self._table_path}/credentials"
        try:
            answer = self._client.get(path, {"operation": "READ_WRITE"})
        except CatalogRefusedError as error:
            if error.status != _FORBIDDEN:
                raise
            answer = self._client.get(path, {"operation": "READ"})
        return vended_credentials(answer, self.name.text)

    def _take_over(
        self, credential: VendedCredential | None, new_table_requests: Mapping[str, tuple[str, dict[str, str]]]
    ) -> None:
        """Take over what a pickled access contains. Its credential is used only if it expires later than the one of this
        process."""
        with self._lock:
            self._new_table_requests |= new_table_requests
            present, never_ms = self._credential, 2**63
            if credential is None:
                return
            if present is None or (credential.expires_ms or never_ms) > (present.expires_ms or never_ms):
                self._use_credential(credential)


def table_access(name: CatalogTableName, options: AccessOptions) -> TableAccess:
    """The process's access to a table with these options. Sends no request. Raises InvalidOptionError."""
    with _cache_lock:
        return _cached_access(name, options)


def catalog_client(server: str, options: AccessOptions) -> RestClient:
    """The process's client for a server with these options. Sends no request. Raises InvalidOptionError."""
    with _cache_lock:
        return _cached_client(server, options)


def _unpickle_access(
    name: CatalogTableName,
    options: AccessOptions,
    credential: VendedCredential | None,
    new_table_requests: Mapping[str, tuple[str, dict[str, str]]],
) -> TableAccess:
    """Unpickles an access: returns the access of this process, which takes over the pickled credential if that is valid for
    longer, and the pickled requests for new tables."""
    access = table_access(name, options)
    access._take_over(credential, new_table_requests)
    return access


@lru_cache(maxsize=256)  # the tables that the process has used last keep their credentials
def _cached_access(name: CatalogTableName, options: AccessOptions) -> TableAccess:
    return TableAccess(_cached_client(name.server, options), name, options)


@lru_cache(maxsize=32)  # the tables of a server share one token
def _cached_client(server: str, options: AccessOptions) -> RestClient:
    token = token_for(server, dict(options.options))
    return RestClient(server, token, timeout=options.timeout, retry_seconds=options.retry_seconds)


def _forget_accesses_of_parent() -> None:
    """A forked process must not wait for locks that threads of its parent held."""
    global _cache_lock
    _cached_access.cache_clear()
    _cached_client.cache_clear()
    _cache_lock = threading.Lock()
    for access in _accesses:  # open tables use them
        access._lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_accesses_of_parent)
