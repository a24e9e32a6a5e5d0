"""The errors of requests to Unity Catalog: refused, no such object, unknown outcome, invalid answer."""

from __future__ import annotations

from delta_py.errors import CorruptTableError, DeltaError, TableNotFoundError


class CatalogRefusedError(DeltaError, error_class="DELTA_UNITY_CATALOG_REFUSED", sql_state="42501"):
    """The server refused the request, and did nothing. message_parameters: status (HTTP), kind (the server's name for the
    error, or an empty text)."""

    @property
    def status(self) -> int:
        return int(self.message_parameters["status"])

    @property
    def kind(self) -> str:
        return str(self.message_parameters["kind"])


class CatalogObjectNotFoundError(TableNotFoundError, error_class="DELTA_TABLE_NOT_FOUND", sql_state="42P01"):
    """The server knows no table, schema or catalog of that name."""


class CatalogUnavailableError(DeltaError, OSError, error_class="DELTA_UNITY_CATALOG_UNAVAILABLE", sql_state="08001"):
    """The server gave no answer that can be used. Whether it carried out the request is unknown."""


class CatalogAnswerError(CorruptTableError, error_class="DELTA_UNITY_CATALOG_INVALID_ANSWER"):
    """The server's answer breaks the rules of its API; nothing was done with it."""
