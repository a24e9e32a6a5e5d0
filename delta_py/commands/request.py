"""What a caller may ask of a write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_py.errors import InvalidOptionError

_LONGEST_TRANSACTION_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What a caller asks for. mode: error (or errorifexists), append, ignore, overwrite, in any case of letters.

    partition_by, cluster_by: None where nothing was said. name, description, configuration: of a table that the write
    creates. merge_schema: add the data's new columns to the table; overwrite_schema: give it the data's schema (overwrite).
    replace_where: SQL; overwrite only the rows for which it is true. partition_overwrite_mode: `static`, or `dynamic` to
    overwrite only the partitions that the data has. txn_app_id, txn_version: both or none; a write that the table has
    recorded already does nothing. data_change: False says that the rows are only arranged anew.
    max_records_per_file, target_file_bytes, compression: None for what the table says. isolation_level: for this write
    only. time_zone: of the session, in which texts and times are turned into each other. tasks: how many tasks write at most,
    as far as that is known. rule_nonce: of the data's hidden columns that answer rules of the table (write/rule_columns.py).
    """

    mode: str = "error"
    partition_by: Sequence[str] | None = None
    name: str | None = None
    description: str | None = None
    configuration: Mapping[str, str] | None = None
    cluster_by: Sequence[str] | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    partition_overwrite_mode: str = "static"
    txn_app_id: str | None = None
    txn_version: int | None = None
    user_metadata: str | None = None
    data_change: bool = True
    max_records_per_file: int | None = None
    target_file_bytes: int | None = None
    compression: str | None = None
    isolation_level: str | None = None
    time_zone: str = "UTC"
    tasks: int | None = None
    rule_nonce: str | None = None


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The batch of a stream that a write commits: by query_id and batch_id the table knows it again. output_mode: `Append`
    or `Complete`. Protocol: Transaction Identifiers."""

    query_id: str
    batch_id: int
    output_mode: str


def check_log_values(request: WriteRequest) -> None:
    """Raises InvalidOptionError for texts and numbers that the log cannot hold: texts that are not Unicode (a half of a
    surrogate pair by itself), and transaction versions beyond 64 bits."""
    texts = {
        "name": request.name,
        "description": request.description,
        "txnAppId": request.txn_app_id,
        "userMetadata": request.user_metadata,
        "replaceWhere": request.replace_where,
        **{f"the name of property {key!r}": key for key in request.configuration or {}},
        **{f"property {key!r}": value for key, value in (request.configuration or {}).items()},
    }
    for what, text in texts.items():
        if text is not None and any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidOptionError(f"{what} is not valid Unicode: {text[:100]!r}. Nothing was written.", option=what)
    version = request.txn_version
    if version is not None and not -_LONGEST_TRANSACTION_VERSION - 1 <= version <= _LONGEST_TRANSACTION_VERSION:
        raise InvalidOptionError(f"txnVersion is {version}; it must fit into 64 bits. Nothing was written.", option="txnVersion")
