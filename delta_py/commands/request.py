"""What a caller may ask of a write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What a caller asks for. mode: error (or errorifexists), append, ignore, overwrite, in any case of letters.

    partition_by, cluster_by: None where nothing was said. name, description, configuration: of a table that the write
    creates. merge_schema: add the data's new columns to the table; overwrite_schema: give it the data's schema (overwrite).
    replace_where: SQL; overwrite only the rows for which it is true. partition_overwrite_mode: `static`, or `dynamic` to
    overwrite only the partitions that the data has. txn_app_id, txn_version: both or none; a write that the table has
    recorded already does nothing. data_change: False says that the rows are only arranged anew.
    max_records_per_file, target_file_bytes, compression: None for what the table says. isolation_level: for this write
    only. time_zone: of the session, in which texts and times are turned into each other.
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
