"""Spark's string options -> ReadOptions; see common.py for the rules of all options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from delta_py.checkpoint.leases import DEFAULT_SECONDS, LEAST_SECONDS, MOST_SECONDS
from delta_py.errors import ChangeDataFeedError, InvalidOptionError, UnsupportedOperationError, shown
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.intervals import parse_interval
from delta_py.scan.time_travel import parse_timestamp_ms
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import NO_OPTIONS, StorageOptions, is_storage_option
from delta_py.types.names import split_list, unquoted
from spark_plugin.options.common import (
    CHANGE_FEED,
    DISABLED,
    FACTS,
    FILES,
    SESSION,
    USER_SCHEMA,
    VIEW,
    VIEW_LIMIT,
    SessionSettings,
    flag,
    has_path,
    in_our_spelling,
    json_or_none,
    session_of,
    single_path,
    storage_of_session,
    version,
)
from spark_plugin.options.deprecated import warn_deprecated
from spark_plugin.options.private import refuse_private
from spark_plugin.options.roads import OLDER_OPTIONS, parse_disabled
from spark_plugin.options.storage import refuse_secrets, storage_options, without_storage

_READ_NAMES = (
    "path",
    "paths",
    "versionAsOf",
    "timestampAsOf",
    *CHANGE_FEED,
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
    "filter",
    "columns",
    "metadataColumn",
    "ignoreMissingFiles",
    "verifyChecksums",
    "followLatest",
    "readLease",
    "timeZone",
    "pruning",
    *OLDER_OPTIONS,
    SESSION,
    VIEW,
    VIEW_LIMIT,
    FILES,
    USER_SCHEMA,
    FACTS,
    DISABLED,
)
# Options of streaming reads. They mean nothing in a batch read, as in delta-spark.
_STREAM_NAMES = (
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "ignoreDeletes",
    "ignoreChanges",
    "skipChangeCommits",
    "ignoreFileDeletion",
    "excludeRegex",
    "failOnDataLoss",
    "withEventTimeOrder",
    "eventTimeColumn",
    "schemaTrackingLocation",
    "schemaLocation",
    "streamingSourceTrackingId",
    "allowSourceColumnDrop",
    "allowSourceColumnRename",
    "allowSourceColumnTypeChange",
)
# Spark passes the options of a table in its catalog to a source only once: when the table is entered into the catalog with the
# schema that the source then returns. So they are stored in that schema, in the metadata of each field, under this key.
CATALOG_KEY = "pydelta.table"
_ENTRY = "The table's entry in the catalog"


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Bounds of a change feed, both included; exactly one start, at most one end.

    allow_out_of_range: a start after the newest version gives no changes, and an ending time after the newest version means the
    newest version; without it, each is an error.
    """

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None
    allow_out_of_range: bool = False

    @property
    def bounds(self) -> dict[str, Any]:
        """Return the fields as keyword arguments."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """One batch read. version and timestamp_ms: at most one; neither for the newest version. changes: the range of a change feed;
    None to read rows. filter: an SQL condition that rows must fulfil. columns: the names of the columns to read; None for all.
    pruning: false to ignore the filters that the optimizer rule passes, so that no file is skipped by them. view: `table`,
    `history` or `detail`; view_limit: the maximum number of rows of a history, None for all. user_schema: the schema that the
    user gave to the reader, as JSON.

    lease_seconds: how long a lease is valid after it was written; a lease tells VACUUM to keep the files of the read. None for no
    lease.
    files: the path of a file that lists the data files to read, in a scan for DELETE, UPDATE or MERGE; None for all files of the
    version. An absolute path is on this machine, a relative one in the table. Such a scan has the column `__pydelta`, the address
    of each row.
    disabled: the parts of pydelta that this read must not use, by their names in roads.py.
    follow_latest: read the newest version in each planning. Without the pruning rule Spark plans a DataFrame once, and so
    reads that version in all its queries; with the rule it plans each query.
    """

    path: str
    version: int | None = None
    timestamp_ms: int | None = None
    changes: ChangeRange | None = None
    filter: str | None = None
    columns: tuple[str, ...] | None = None
    metadata_column: bool = False
    ignore_missing_files: bool = False
    verify_checksums: bool = False
    follow_latest: bool = False
    lease_seconds: int | None = None
    pruning: bool = True
    disabled: frozenset[str] = frozenset()
    view: str = "table"
    view_limit: int | None = None
    files: str | None = None
    user_schema: str | None = None
    session: SessionSettings = field(default_factory=SessionSettings)
    storage: StorageOptions = NO_OPTIONS

    def open_store(self) -> ObjectStore:
        return open_store(self.path, self.storage)


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a batch read. Raises InvalidOptionError for an unknown name, an invalid value, or options that
    contradict each other."""
    options = _without_catalog_facts(options)
    known_options = in_our_spelling(without_storage(options), (*_READ_NAMES, *_STREAM_NAMES), "read")
    session = session_of(known_options)
    parsed = ReadOptions(
        path=single_path(known_options),
        version=version(known_options, "versionAsOf"),
        timestamp_ms=_timestamp(known_options, "timestampAsOf", session.time_zone),
        changes=_changes(known_options, session.time_zone),
        filter=known_options.get("filter"),
        columns=_column_list(known_options),
        metadata_column=flag(known_options, "metadataColumn"),
        ignore_missing_files=_flag_or_setting(known_options, "ignoreMissingFiles"),
        verify_checksums=_flag_or_setting(known_options, "verifyChecksums"),
        follow_latest=flag(known_options, "followLatest"),
        lease_seconds=_lease_seconds(known_options),
        pruning=flag(known_options, "pruning", default=True),
        disabled=_disabled_roads(known_options),
        view=known_options.get(VIEW, "table"),
        view_limit=int(known_options[VIEW_LIMIT]) if VIEW_LIMIT in known_options else None,
        files=known_options.get(FILES),
        user_schema=known_options.get(USER_SCHEMA),
        session=session,
        storage=storage_options(options, storage_of_session(known_options)),
    )
    _refuse_contradictions(parsed)
    return parsed


def _disabled_roads(options: Mapping[str, str]) -> frozenset[str]:
    """Return the names of roads.py that the option DISABLED and the older options disable."""
    disabled = parse_disabled(options.get(DISABLED, ""))
    for name, roads in OLDER_OPTIONS.items():
        if name in options:
            warn_deprecated(f"read option {name}", f"to {','.join(roads)} in the place of false")
            disabled |= frozenset() if flag(options, name) else frozenset(roads)
    return disabled


def catalog_entry(options: Mapping[str, str]) -> str | None:
    """Return the text to store under CATALOG_KEY if the options are those of a table that Spark is entering into its catalog;
    None for options of any other read."""
    return json.dumps(_without_catalog_facts(options)) if _is_catalog(options) else None


def catalog_options(entry: str) -> dict[str, str]:
    """Return the options that `catalog_entry` stored, each in its proper spelling."""
    options = _entry_options(entry)
    storage = {name: value for name, value in options.items() if is_storage_option(name)}
    return {**in_our_spelling(without_storage(options), (*_READ_NAMES, *_STREAM_NAMES), "read"), **storage}


def _is_catalog(options: Mapping[str, str]) -> bool:
    """Return whether the options are those of an entry of Spark's catalog, which also have the entry's provider."""
    return any(key.lower() == "provider" for key in options)


def _without_catalog_facts(options: Mapping[str, str]) -> dict[str, str]:
    """Return only the options from OPTIONS (...) and LOCATION of CREATE TABLE, if the options are those of an entry of Spark's
    catalog; other options are returned unchanged.

    Spark mixes them with the entry's owner, comment and TBLPROPERTIES, and passes those of OPTIONS a second time as
    `option.<name>`, except the path. Raises UnsupportedOperationError for TBLPROPERTIES of Delta.
    """
    if not _is_catalog(options):
        return dict(options)
    lowercase_options = {key.lower(): value for key, value in options.items()}
    properties = [key for key in lowercase_options if key.startswith("delta.")]
    if properties:
        raise UnsupportedOperationError(
            f"TBLPROPERTIES ({', '.join(properties)}) of CREATE TABLE would stand in Spark's catalog and not in the table. Leave "
            "them out; options of df.write.format('pydelta') with these names set them when the table is created.",
            properties=properties,
        )
    entry_options = {key: value for key, value in lowercase_options.items() if f"option.{key}" in lowercase_options}
    refuse_private(entry_options, _ENTRY)
    refuse_secrets(entry_options)
    path = lowercase_options.get("path")
    return entry_options if path is None else {**entry_options, "path": local_path(path)}


def local_path(location: str) -> str:
    """Return a location of Spark's catalog as a path: Spark writes `file:/a b%c` without the percent-encoding of a URL."""
    file_uri = re.fullmatch(r"file:(?://(?=/))?(/(?!/).*)", location, re.DOTALL)
    return location if file_uri is None else file_uri[1]


def with_catalog_entry(options: Mapping[str, str], entry: str | None) -> dict[str, str]:
    """Return the options under lower-case names. If Spark has passed no path, they are completed by those of the entry, the text
    that `catalog_entry` returned."""
    lowercase_options = {key.lower(): value for key, value in options.items()}
    return lowercase_options if entry is None or has_path(lowercase_options) else {**_entry_options(entry), **lowercase_options}


def _entry_options(entry: str) -> dict[str, str]:
    """Parse the text of `catalog_entry`. Raises InvalidOptionError if somebody has changed it to something else."""
    options = json_or_none(entry)
    if not isinstance(options, dict) or not all(isinstance(value, str) for value in options.values()):
        raise InvalidOptionError(
            f"The table's entry in the catalog keeps its options in a text that cannot be read: {shown(entry)}. Somebody has "
            "changed it: drop the entry, which leaves the data, and enter the table again.",
            option="path",
        )
    refuse_private(options, _ENTRY)
    return options


def _refuse_contradictions(parsed: ReadOptions) -> None:
    """Raise InvalidOptionError for options that exclude each other."""
    has_version = parsed.version is not None or parsed.timestamp_ms is not None
    if parsed.version is not None and parsed.timestamp_ms is not None:
        raise InvalidOptionError(
            "Both versionAsOf and timestampAsOf are given. Each names a version by itself: give one of them.",
            error_class="DELTA_ONEOF_IN_TIMETRAVEL",
            sql_state="42601",
        )
    if has_version and parsed.changes is not None:
        raise InvalidOptionError(
            "versionAsOf and timestampAsOf read a table's rows at one version; readChangeFeed reads the changes over many. "
            "Bound the feed with startingVersion and endingVersion, or with startingTimestamp and endingTimestamp.",
            error_class="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
            sql_state="0AKDC",
        )
    if parsed.follow_latest and (has_version or parsed.changes is not None):
        raise InvalidOptionError(
            "followLatest reads the newest version each time; it cannot go with a version, a timestamp or a change feed.",
            option="followLatest",
        )
    if parsed.view not in ("table", "history", "detail"):
        raise InvalidOptionError(f"{VIEW} is {parsed.view!r}. It can be table, history or detail.", option=VIEW)


def _changes(options: Mapping[str, str], time_zone: str) -> ChangeRange | None:
    """Return the range of a change feed; None if the options request none. Raises InvalidOptionError for bounds without a change
    feed, ChangeDataFeedError for a change feed without a start.

    If a version and a timestamp bound the same side, the version takes precedence. delta-spark refuses both where the table is
    read by name (DELTA_MULTIPLE_CDC_BOUNDARY).
    """
    bounds = [name for name in ("startingVersion", "endingVersion", "startingTimestamp", "endingTimestamp") if name in options]
    if not any(flag(options, name) for name in CHANGE_FEED):
        if bounds:
            raise InvalidOptionError(
                f"{bounds[0]} bounds a change feed, and readChangeFeed is not set. Add option('readChangeFeed', 'true'), or "
                "use versionAsOf or timestampAsOf to read the table at one version.",
                option=bounds[0],
            )
        return None
    if not any(name.startswith("starting") for name in bounds):
        raise ChangeDataFeedError(
            "A change feed needs a start: give startingVersion or startingTimestamp.",
            error_class="DELTA_NO_START_FOR_CDC_READ",
            sql_state="42601",
        )
    first, last = version(options, "startingVersion"), version(options, "endingVersion")
    return ChangeRange(
        starting_version=first,
        ending_version=last,
        starting_timestamp_ms=_timestamp(options, "startingTimestamp", time_zone) if first is None else None,
        ending_timestamp_ms=_timestamp(options, "endingTimestamp", time_zone) if last is None else None,
        allow_out_of_range=_flag_or_setting(options, "feedOutOfRange"),
    )


def _column_list(options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Parse `a, b`, with backticks around names that contain commas or blanks, into the names, in order."""
    text = options.get("columns")
    if text is None:
        return None
    names = [unquoted(name) for name in split_list(text)]
    if not names:
        raise InvalidOptionError(
            "The option columns is empty. Name the columns with commas between them: 'id, day'.", option="columns"
        )
    lowercase_names = [name.lower() for name in names]
    repeated = sorted({name for name in names if lowercase_names.count(name.lower()) > 1})
    if repeated:
        raise InvalidOptionError(
            f"The option columns names a column twice (names that differ only in case are the same): {', '.join(repeated)}. "
            "Name it once.",
            error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            sql_state="42711",
            option="columns",
        )
    return tuple(names)


def _option_or_setting(options: Mapping[str, str], name: str) -> str:
    """Return the option's value, or the session's setting if the option is missing; `false` if there is neither."""
    settings = json.loads(options.get(SESSION, "{}"))
    text: str = {**settings, **options}.get(name, "false")
    return text


def _flag_or_setting(options: Mapping[str, str], name: str) -> bool:
    """Return an option that is true or false, or the session's setting for it; False if there is neither."""
    return flag({name: _option_or_setting(options, name)}, name)


def _lease_seconds(options: Mapping[str, str]) -> int | None:
    """Return how long a lease is valid after it was written: the option is `true`, `false`, or a time such as `2 hours`. None for
    no lease."""
    text = _option_or_setting(options, "readLease")
    if text.lower() in ("true", "false"):
        return DEFAULT_SECONDS if text.lower() == "true" else None
    try:
        seconds = parse_interval(text) // 1000
    except ValueError:
        seconds = 0  # too short, so the error below reports the text
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise InvalidOptionError(
            f"Invalid value {text!r} for option 'readLease': it must be 'true', 'false', or a time of {LEAST_SECONDS} seconds "
            "to a day, such as '2 hours'.",
            option="readLease",
            value=text,
        )
    return seconds


def _timestamp(options: Mapping[str, str], name: str, time_zone: str) -> int | None:
    """Return the time that an option names, in ms since 1970; None if it is not set. time_zone: of texts without one."""
    text = options.get(name)
    return None if text is None else parse_timestamp_ms(text, time_zone)
