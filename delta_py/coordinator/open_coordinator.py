"""Open the ledger that a URL names.

    open_ledger("sqlite:///path/of/ledger.db")
    open_ledger("postgresql://user:password@host/database")
    open_ledger("dynamodb://table?region=eu-west-1")

The module of each kind is imported when a URL of that kind is opened.
"""

from __future__ import annotations

import threading

from delta_py.coordinator.ledger import Ledger
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.release import install_command

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")
_DYNAMODB = "dynamodb://"
_open_ledgers: dict[str, Ledger] = {}  # the ledgers that this process has opened, by URL
_lock = threading.Lock()


def open_ledger(url: str) -> Ledger:
    """The ledger of a URL: one for each URL and process, which all tables with this URL share. Raises InvalidOptionError for a
    URL that names no ledger, CoordinatorUnavailableError."""
    with _lock:
        if url not in _open_ledgers:
            _open_ledgers[url] = _open_new(url)
        return _open_ledgers[url]


def _open_new(url: str) -> Ledger:
    """Open the ledger of a URL. Raises as open_ledger."""
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        from delta_py.coordinator.sqlite_ledger import SqliteLedger

        return SqliteLedger(f"/{url.removeprefix(_SQLITE).lstrip('/')}")
    if url.startswith(_POSTGRES):
        from delta_py.coordinator.postgres_ledger import PostgresLedger

        return PostgresLedger(url)
    if url.startswith(_DYNAMODB):
        return _open_dynamodb(url)
    raise InvalidOptionError(
        f"The coordinator cannot be used: {_why_no_ledger(url)}. Use sqlite:///path/of/file.db, postgresql://host/database or "
        "dynamodb://table.",
        option="coordinator",
    )


def _why_no_ledger(url: str) -> str:
    """Why a URL names no ledger, for the message. The message does not show the URL itself."""
    scheme, colon, _ = url.partition(":")
    if not colon or not scheme.isalnum():
        return "its option is no URL"
    if scheme.lower() in ("sqlite", "postgresql", "postgres", "dynamodb"):
        return f"a URL of {scheme.lower()} is not written so"
    return f"no coordinator has URLs of the scheme {scheme}"


def _open_dynamodb(url: str) -> Ledger:
    """Open a ledger in DynamoDB. Raises UnsupportedOperationError if boto3 is not installed."""
    try:
        from delta_py.coordinator.dynamodb_ledger import DynamoDbLedger  # imports boto3
    except ModuleNotFoundError as error:
        raise UnsupportedOperationError(
            f"A coordinator in DynamoDB needs boto3, which is not installed ({error}). Install pydelta with the extra s3: "
            f"{install_command('s3')}."
        ) from error
    return DynamoDbLedger(url)
