"""Spark's string options -> ReadOptions and WriteOptions.

Names are the reference's, and case does not matter. A name that nobody knows is refused with the nearest known one, a
value that cannot be meant is refused too: an option that is silently dropped reads the wrong version or writes the wrong
rows. Session settings (time zone, sizes of partitions) come in the option SESSION, which `seam.py` adds; without it the
defaults of Spark and of this machine hold.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from delta_py.errors import ChangeDataFeedError, InvalidOptionError, UnsupportedOperationError
from delta_py.read.time_travel import parse_timestamp_ms

SESSION = "pydelta.session"
VIEW = "pydelta.view"
MODE = "pydelta.mode"
PARTITION_BY = "pydelta.partitionBy"
CLUSTER_BY = "pydelta.clusterBy"

# Each task costs some 40 ms of CPU whatever it reads, and a second task on each core evens out unequal ones.
PARTITIONS_PER_CORE = 2

_MIB = 1024 * 1024
_MAX_VERSION = 2**63 - 1

_READ_NAMES = (
    "path",
    "paths",
    "versionAsOf",
    "timestampAsOf",
    "readChangeFeed",
    "readChangeData",
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
    "filter",
    "columns",
    "metadataColumn",
    "ignoreMissingFiles",
    "followLatest",
    "timeZone",
    "pruning",
    SESSION,
    VIEW,
)
# Options of streaming reads. In a batch read they mean nothing, there as here.
_STREAM_NAMES = (
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "ignoreDeletes",
    "ignoreChanges",
    "skipChangeCommits",
    "ignoreFileDeletion",
    "excludeRegex",
    "failOnDataLoss",
    "schemaTrackingLocation",
    "schemaLocation",
    "streamingSourceTrackingId",
    "allowSourceColumnDrop",
    "allowSourceColumnRename",
    "allowSourceColumnTypeChange",
)
_WRITE_NAMES = (
    "path",
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "replaceUsing",
    "replaceOn",
    "targetAlias",
    "partitionOverwriteMode",
    "txnAppId",
    "txnVersion",
    "userMetadata",
    "dataChange",
    "optimizeWrite",
    "maxRecordsPerFile",
    "compression",
    "timeZone",
    SESSION,
    MODE,
    PARTITION_BY,
    CLUSTER_BY,
)
# Spark tells a source the options of a catalog's table only once, when the table is entered into the catalog with the
# schema that the source then gives. So they are kept in that schema, in the metadata of each field, under this key.
CATALOG_KEY = "pydelta.table"
# What a catalog table's entry adds to its options.
_CATALOG_NAMES = frozenset(
    {"location", "provider", "owner", "comment", "collation", "external", "is_managed_location", "table_type"}
)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a scan takes from the session. wanted_partitions: about so many while the table is small."""

    time_zone: str = "UTC"
    max_partition_bytes: int = 128 * _MIB
    open_cost_bytes: int = 4 * _MIB
    wanted_partitions: int = 4


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Bounds of a change feed, both included; exactly one start, at most one end."""

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None

    @property
    def bounds(self) -> dict[str, int | None]:
        """As keyword arguments."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """One batch read. version and timestamp_ms: at most one. view: `table`, `history` or `detail`.

    follow_latest: read the newest version in each planning. Spark plans a DataFrame once without the pruning rule, and so
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
    follow_latest: bool = False
    pruning: bool = True
    view: str = "table"
    session: SessionSettings = field(default_factory=SessionSettings)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """One batch write. mode: `append`, `error` or `ignore`. partition_by: None when the user named none. properties: of the
    table, names as Spark hands them over (lower case)."""

    path: str
    mode: str
    partition_by: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    user_metadata: str | None = None


# ---------------------------------------------------------------- reading


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises InvalidOptionError for an unknown name, a value that cannot be meant, or options that contradict each other."""
    given = _known(options, (*_READ_NAMES, *_STREAM_NAMES), "read")
    session = _session(given)
    parsed = ReadOptions(
        path=_single_path(given),
        version=_version(given, "versionAsOf"),
        timestamp_ms=_timestamp(given, "timestampAsOf", session.time_zone),
        changes=_changes(given, session.time_zone),
        filter=given.get("filter"),
        columns=_column_list(given),
        metadata_column=_flag(given, "metadataColumn"),
        ignore_missing_files=_flag(given, "ignoreMissingFiles"),
        follow_latest=_flag(given, "followLatest"),
        pruning=_flag(given, "pruning", default=True),
        view=given.get(VIEW, "table"),
        session=session,
    )
    _refuse_contradictions(parsed)
    return parsed


def catalog_entry(options: Mapping[str, str]) -> str | None:
    """For a table that is being entered into a catalog: its own options, as the text to keep under CATALOG_KEY. Else None."""
    given = {key.lower(): value for key, value in options.items()}
    if "provider" not in given:
        return None
    return json.dumps({key: value for key, value in given.items() if key not in _CATALOG_NAMES})


def with_catalog_entry(options: Mapping[str, str], entry: str | None) -> dict[str, str]:
    """The options, and from the entry those that they lack, when Spark has told no path."""
    given = {key.lower(): value for key, value in options.items()}
    return given if entry is None or has_path(given) else {**json.loads(entry), **given}


def has_path(options: Mapping[str, str]) -> bool:
    return any(key.lower() in ("path", "paths") for key in options)


def _refuse_contradictions(parsed: ReadOptions) -> None:
    travels = parsed.version is not None or parsed.timestamp_ms is not None
    if parsed.version is not None and parsed.timestamp_ms is not None:
        raise InvalidOptionError(
            "Both versionAsOf and timestampAsOf are given. Each names a version by itself: give one of them.",
            error_class="DELTA_ONEOF_IN_TIMETRAVEL",
            sql_state="42601",
        )
    if travels and parsed.changes is not None:
        raise InvalidOptionError(
            "versionAsOf and timestampAsOf read a table's rows at one version; readChangeFeed reads the changes over many. "
            "Bound the feed with startingVersion and endingVersion, or with startingTimestamp and endingTimestamp.",
            error_class="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
            sql_state="0AKDC",
        )
    if parsed.follow_latest and (travels or parsed.changes is not None):
        raise InvalidOptionError(
            "followLatest reads the newest version each time; it cannot go with a version, a timestamp or a change feed.",
            option="followLatest",
        )
    if parsed.view not in ("table", "history", "detail"):
        raise InvalidOptionError(f"{VIEW} is {parsed.view!r}. It can be table, history or detail.", option=VIEW)


def _changes(given: Mapping[str, str], time_zone: str) -> ChangeRange | None:
    bounds = [name for name in ("startingVersion", "endingVersion", "startingTimestamp", "endingTimestamp") if name in given]
    if not (_flag(given, "readChangeFeed") or _flag(given, "readChangeData")):
        if bounds:
            raise InvalidOptionError(
                f"{bounds[0]} bounds a change feed, and readChangeFeed is not set. Add option('readChangeFeed', 'true'), or "
                "use versionAsOf or timestampAsOf to read the table at one version.",
                option=bounds[0],
            )
        return None
    for start, end in (("startingVersion", "startingTimestamp"), ("endingVersion", "endingTimestamp")):
        if start in given and end in given:
            raise ChangeDataFeedError(
                f"Both {start} and {end} are given for a change feed. Give one of them.",
                error_class="DELTA_MULTIPLE_CDC_BOUNDARY",
                sql_state="42614",
            )
    if not any(name.startswith("starting") for name in bounds):
        raise ChangeDataFeedError(
            "A change feed needs a start: give startingVersion or startingTimestamp.",
            error_class="DELTA_NO_START_FOR_CDC_READ",
            sql_state="42601",
        )
    return ChangeRange(
        starting_version=_version(given, "startingVersion"),
        ending_version=_version(given, "endingVersion"),
        starting_timestamp_ms=_timestamp(given, "startingTimestamp", time_zone),
        ending_timestamp_ms=_timestamp(given, "endingTimestamp", time_zone),
    )


def _single_path(given: Mapping[str, str]) -> str:
    """The path as the user wrote it. Spark hands over several paths, or a list of one, as JSON in `paths`."""
    paths = [given["path"]] if given.get("path") else json.loads(given.get("paths", "[]"))
    if len(paths) == 1:
        return str(paths[0])
    if paths:
        raise InvalidOptionError(
            f"load() got {len(paths)} paths. pydelta reads one table at a time: load each, and union the DataFrames.",
            option="path",
        )
    raise InvalidOptionError(
        "'path' is not specified. Name the table's directory in load(path) or save(path). Spark does not tell the path of a "
        "catalog's table in INSERT INTO, insertInto, saveAsTable and CREATE TABLE ... AS SELECT, nor in reads when the table was "
        "entered with its columns named: write with df.write.format('pydelta').mode('append').save(path), and enter the table, "
        "once it is there, with CREATE TABLE t USING pydelta OPTIONS (path '...').",
        option="path",
    )


def _column_list(given: Mapping[str, str]) -> tuple[str, ...] | None:
    """`a, b`, with backticks around names that hold commas or blanks: the names, in order."""
    text = given.get("columns")
    if text is None:
        return None
    names = [name for name in _split_outside_backticks(text) if name]
    if not names:
        raise InvalidOptionError(
            "The option columns is empty. Name the columns with commas between them: 'id, day'.", option="columns"
        )
    return tuple(names)


def _split_outside_backticks(text: str) -> list[str]:
    pieces, quoted = [""], False
    for character in text:
        if character == "`":
            quoted = not quoted
        if character == "," and not quoted:
            pieces.append("")
        else:
            pieces[-1] += character
    return [_unquote(piece.strip()) for piece in pieces]


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if len(name) > 1 and name[0] == name[-1] == "`" else name


# ---------------------------------------------------------------- writing


def write_options(options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
    """overwrite: what Spark says; the option MODE, which the seam adds, says more.

    Raises InvalidOptionError as read_options; UnsupportedOperationError for what this version cannot write.
    """
    given = _known({key: value for key, value in options.items() if not _is_property(key)}, _WRITE_NAMES, "write")
    mode = _mode(given, overwrite)
    _refuse_unsupported(given, mode)
    return WriteOptions(
        path=_single_path(given),
        mode=mode,
        partition_by=_json_names(given, PARTITION_BY),
        properties={key: value for key, value in options.items() if _is_property(key)},
        user_metadata=given.get("userMetadata"),
    )


def _is_property(key: str) -> bool:
    return key.lower().startswith("delta.")


def _mode(given: Mapping[str, str], overwrite: bool) -> str:
    mode = given.get(MODE, "overwrite" if overwrite else "append").lower()
    mode = {"errorifexists": "error", "default": "error"}.get(mode, mode)
    if mode not in ("append", "overwrite", "error", "ignore"):
        raise InvalidOptionError(
            f"The save mode {mode!r} is unknown. It can be append, overwrite, error, errorifexists or ignore.", option="mode"
        )
    return mode


def _refuse_unsupported(given: Mapping[str, str], mode: str) -> None:
    if mode == "overwrite":
        raise UnsupportedOperationError(
            "Mode overwrite is not supported in this version; nothing was written. Use append, or write to a new path.", mode=mode
        )
    for name, harmless in _UNSUPPORTED_WRITE.items():
        value = given.get(name)
        if value is not None and value.lower() != harmless:
            raise UnsupportedOperationError(
                f"The write option {name} is not supported in this version; nothing was written. Leave it out.",
                option=name,
                value=value,
            )
    if _json_names(given, CLUSTER_BY):
        raise UnsupportedOperationError(
            "clusterBy is not supported in this version; nothing was written. Leave it out.", option="clusterBy"
        )


# The value with which an option asks for nothing; None where every value asks for something.
_UNSUPPORTED_WRITE: Mapping[str, str | None] = {
    "mergeSchema": "false",
    "overwriteSchema": "false",
    "replaceWhere": None,
    "replaceUsing": None,
    "replaceOn": None,
    "targetAlias": None,
    "partitionOverwriteMode": "static",
    "txnAppId": None,
    "txnVersion": None,
    "dataChange": "true",
    "optimizeWrite": "false",
    "maxRecordsPerFile": "0",
    "compression": None,
}


def _json_names(given: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    text = given.get(name)
    return None if text is None else tuple(json.loads(text))


# ---------------------------------------------------------------- single values


def _known(options: Mapping[str, str], names: tuple[str, ...], verb: str) -> dict[str, str]:
    """The options under the spelling of `names`.

    Raises InvalidOptionError (DELTA_UNKNOWN_OPTION) for a name that is not among them.
    """
    spelling = {name.lower(): name for name in names}
    of_catalog = "provider" in {key.lower() for key in options}
    known: dict[str, str] = {}
    for key, value in options.items():
        folded = key.lower()
        if folded in spelling:
            known[spelling[folded]] = value
        elif not (of_catalog and folded in _CATALOG_NAMES):
            raise _unknown(key, names, verb)
    return known


def _unknown(key: str, names: tuple[str, ...], verb: str) -> InvalidOptionError:
    public = [name for name in names if name not in (SESSION, VIEW, MODE, PARTITION_BY, CLUSTER_BY, "paths")]
    near = difflib.get_close_matches(key.lower(), [name.lower() for name in public], n=1, cutoff=0.0)
    nearest = next(name for name in public if name.lower() == near[0])
    return InvalidOptionError(
        f"The {verb} option {key!r} is unknown. The nearest known one is {nearest!r}. Correct the name or leave it out: "
        "an option that is ignored silently would give a result that was not asked for.",
        error_class="DELTA_UNKNOWN_OPTION",
        option=key,
        nearest=nearest,
    )


def _flag(given: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    value = given.get(name)
    if value is None:
        return default
    if value.lower() not in ("true", "false"):
        raise InvalidOptionError(
            f"Invalid value {value!r} for option {name!r}: it must be 'true' or 'false'.", option=name, value=value
        )
    return value.lower() == "true"


def _version(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    digits = text[1:] if text[:1] == "+" else text
    if not (digits.isascii() and digits.isdigit()) or int(digits) > _MAX_VERSION:
        travel = name == "versionAsOf"
        raise InvalidOptionError(
            f"{name} is {text!r}, which is no version. A version is a whole number from 0 to {_MAX_VERSION}; "
            "DeltaTable.history() lists them.",
            error_class="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE" if travel else "DELTA_VERSION_INVALID",
            sql_state="42604" if travel else "42815",
            option=name,
            value=text,
        )
    return int(digits)


def _timestamp(given: Mapping[str, str], name: str, time_zone: str) -> int | None:
    text = given.get(name)
    return None if text is None else parse_timestamp_ms(text, time_zone)


# ---------------------------------------------------------------- the session's settings


def _session(given: Mapping[str, str]) -> SessionSettings:
    told = json.loads(given.get(SESSION, "{}"))
    zone = given.get("timeZone") or told.get("timeZone") or local_time_zone()
    defaults = SessionSettings()
    return SessionSettings(
        time_zone=zone,
        max_partition_bytes=told.get("maxPartitionBytes", defaults.max_partition_bytes),
        open_cost_bytes=told.get("openCostInBytes", defaults.open_cost_bytes),
        wanted_partitions=told.get("wantedPartitions", PARTITIONS_PER_CORE * (os.cpu_count() or 1)),
    )


def local_time_zone() -> str:
    """The machine's own zone, which is also the JVM's and so Spark's default; UTC when its name cannot be found out."""
    candidates = [os.environ.get("TZ", "").removeprefix(":"), _linked_zone()]
    return next((name for name in candidates if name and _is_zone(name)), "UTC")


def _linked_zone() -> str:
    return str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return False
    return True
