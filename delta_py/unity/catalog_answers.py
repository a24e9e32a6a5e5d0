"""The answers of Unity Catalog as checked values: tables, their unpublished commits, credentials.

    table = catalog_table(client.get(path), "main.sales.orders")

A server may be wrong or hostile, so nothing of an answer is used before it was checked here. Raises CatalogAnswerError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from delta_py.errors import shown
from delta_py.unity.catalog_errors import CatalogAnswerError

_TABLE_ID = re.compile(r"[0-9A-Za-z-]{1,100}")
_LONGEST_TEXT = 100_000  # characters of one text in an answer
_MOST_COMMITS = 10_000  # unpublished commits in one answer
_COUNT_LIMIT = 2**63
_CREDENTIAL_OPTIONS = {
    "s3.access-key-id": "s3.access_key_id",
    "s3.secret-access-key": "s3.secret_access_key",
    "s3.session-token": "s3.session_token",
    "azure.sas-token": "azure.sas_token",
    "gcs.oauth-token": "gcs.access_token",
}
"""What credentials consist of, by the server's names, and the storage options for them."""


@dataclass(frozen=True, slots=True)
class CatalogCommit:
    """A ratified commit that may not be published yet. name: of the file of the staged commit; not checked here."""

    version: int
    name: str
    size_bytes: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as the catalog describes it. table_id: stays the same if the table is renamed. is_managed: the catalog chose the
    location. newest_version: None if the answer has none: the catalog does not ratify the commits. commits: ratified and perhaps
    not published, ascending by version. columns: as in the server's answer. allowed_maintenance: operations that clients may run,
    by the server's names."""

    table_id: str
    is_managed: bool
    location: str
    newest_version: int | None
    commits: tuple[CatalogCommit, ...]
    properties: Mapping[str, str]
    columns: Mapping[str, Any]
    partition_columns: tuple[str, ...]
    comment: str | None
    allowed_maintenance: frozenset[str]


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The place for a new managed table. features, properties: the table features and properties that the catalog demands.
    suggested: properties that the table need not have, without those that the writer computes."""

    table_id: str
    location: str
    features: tuple[str, ...]
    properties: Mapping[str, str]
    suggested: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class VendedCredential:
    """A credential for the files below the location `prefix`. options: the credential as storage options. expires_ms: ms since
    1970; None if it does not expire."""

    prefix: str
    options: Mapping[str, str] = field(repr=False)
    expires_ms: int | None


def catalog_table(answer: Mapping[str, Any], name: str) -> CatalogTable:
    """A table from the answer to a request for it. name: of the table, for errors."""
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict):
        _raise_invalid(name, "metadata", metadata)
    table_id = _required_text(metadata, "table-uuid", name)
    if _TABLE_ID.fullmatch(table_id) is None:
        _raise_invalid(name, "table-uuid", table_id)
    kind = _required_text(metadata, "table-type", name)
    if kind not in ("MANAGED", "EXTERNAL"):
        _raise_invalid(name, "table-type", kind)
    comment = metadata.get("comment")
    return CatalogTable(
        table_id=table_id,
        is_managed=kind == "MANAGED",
        location=_required_text(metadata, "location", name),
        newest_version=_optional_count(answer, "latest-table-version", name),
        commits=_parse_commits(answer.get("commits"), name),
        properties=_optional_texts(metadata.get("properties"), "properties", name),
        columns=_optional_object(metadata.get("columns"), "columns", name),
        partition_columns=_optional_names(metadata.get("partition-columns"), "partition-columns", name),
        comment=comment if isinstance(comment, str) else None,
        allowed_maintenance=frozenset(
            _optional_names(answer.get("allowed-maintenance-operations"), "allowed-maintenance-operations", name)
        ),
    )


def staged_table(answer: Mapping[str, Any], name: str) -> StagedTable:
    """The place for a new table from the answer to a request for one. name: of the table, for errors."""
    table_id = _required_text(answer, "table-id", name)
    if _TABLE_ID.fullmatch(table_id) is None:
        _raise_invalid(name, "table-id", table_id)
    protocol = _optional_object(answer.get("required-protocol"), "required-protocol", name)
    features = {
        *_optional_names(protocol.get("reader-features"), "reader-features", name),
        *_optional_names(protocol.get("writer-features"), "writer-features", name),
    }
    suggested = _optional_object(answer.get("suggested-properties"), "suggested-properties", name)
    return StagedTable(
        table_id=table_id,
        location=_required_text(answer, "location", name),
        features=tuple(sorted(features)),
        properties=_optional_texts(answer.get("required-properties"), "required-properties", name),
        suggested={key: value for key, value in suggested.items() if isinstance(value, str)},  # the writer computes the others
    )


def vended_credentials(answer: Mapping[str, Any], name: str) -> tuple[VendedCredential, ...]:
    """All credentials of an answer. name: of the table, for errors, which do not contain secrets."""
    entries = answer.get("storage-credentials")
    if not isinstance(entries, list):
        _raise_invalid(name, "storage-credentials", type(entries).__name__)  # its values are secrets
    return tuple(_parse_credential(entry, name) for entry in entries)


def credential_for(credentials: tuple[VendedCredential, ...], location: str, name: str) -> VendedCredential:
    """The credential for a location: of those whose prefix covers the location, the one with the longest prefix. Raises
    CatalogAnswerError if there is none. name: of the table, for the error."""
    matching_credentials = [credential for credential in credentials if covers(credential.prefix, location)]
    if not matching_credentials:
        prefixes = [credential.prefix for credential in credentials]
        _raise_invalid(name, "storage-credentials", f"none for {location}, only for {prefixes}")
    return max(matching_credentials, key=lambda credential: len(credential.prefix.rstrip("/")))


def covers(prefix: str, location: str) -> bool:
    """Whether a location is at a prefix or below it."""
    prefix, location = prefix.rstrip("/"), location.rstrip("/")
    return location == prefix or location.startswith(f"{prefix}/")


def _parse_credential(entry: Any, name: str) -> VendedCredential:
    """A credential from an entry of the answer. Values that are not in _CREDENTIAL_OPTIONS are left out."""
    config = entry.get("config") if isinstance(entry, dict) else None
    if not isinstance(config, dict):
        _raise_invalid(name, "storage-credentials", "an entry without config")
    options = {}
    for server_key, option in _CREDENTIAL_OPTIONS.items():
        value = config.get(server_key)
        if value is None:
            continue
        if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT or not value.isprintable():
            _raise_invalid(name, "storage-credentials", f"an invalid value of {server_key}")
        options[option] = value
    return VendedCredential(_required_text(entry, "prefix", name), options, _optional_count(entry, "expiration-time-ms", name))


def _parse_commits(entries: Any, name: str) -> tuple[CatalogCommit, ...]:
    """The unpublished commits of an answer, ascending by version; empty if they are missing."""
    if entries is None:
        return ()
    if not isinstance(entries, list) or len(entries) > _MOST_COMMITS:
        _raise_invalid(name, "commits", entries)
    return tuple(sorted((_parse_commit(entry, name) for entry in entries), key=lambda commit: commit.version))


def _parse_commit(entry: Any, name: str) -> CatalogCommit:
    if not isinstance(entry, dict):
        _raise_invalid(name, "commits", entry)
    return CatalogCommit(
        version=_required_count(entry, "version", name),
        name=_required_text(entry, "file-name", name),
        size_bytes=_required_count(entry, "file-size", name),
        time_ms=_required_count(entry, "file-modification-timestamp", name),
    )


# ---------------------------------------------------------------- values
# key: the server's name for the value. name: of the table. Both are for errors; all functions raise CatalogAnswerError.


def _required_text(form: Mapping[str, Any], key: str, name: str) -> str:
    """A text that must be there, and not be empty."""
    value = form.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT:
        _raise_invalid(name, key, value)
    return value


def _required_count(form: Mapping[str, Any], key: str, name: str) -> int:
    """A number that must be there: not negative, of 63 bits."""
    value = form.get(key)
    if type(value) is not int or not 0 <= value < _COUNT_LIMIT:
        _raise_invalid(name, key, value)
    return value


def _optional_count(form: Mapping[str, Any], key: str, name: str) -> int | None:
    return None if form.get(key) is None else _required_count(form, key, name)


def _optional_object(value: Any, key: str, name: str) -> Mapping[str, Any]:
    """A JSON object; empty if it is missing."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        _raise_invalid(name, key, value)
    return value


def _optional_texts(value: Any, key: str, name: str) -> Mapping[str, str]:
    """A JSON object whose values are texts; empty if it is missing."""
    texts = _optional_object(value, key, name)
    if not all(isinstance(text, str) for text in texts.values()):
        _raise_invalid(name, key, value)
    return texts


def _optional_names(value: Any, key: str, name: str) -> tuple[str, ...]:
    """A list of texts; empty if it is missing."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(column, str) for column in value):
        _raise_invalid(name, key, value)
    return tuple(value)


def _raise_invalid(name: str, key: str, value: Any) -> NoReturn:
    raise CatalogAnswerError(
        f"Unity Catalog's answer about the table {name} has no valid {key}: {shown(value)}. Nothing was read or written. Report "
        "this to the operator of the server."
    )
