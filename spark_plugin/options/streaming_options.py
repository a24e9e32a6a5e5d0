"""Options of streams: those that batches do not have, and those that have no meaning in streams; see common.py for all
options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.scan.time_travel import named_version, parse_timestamp_ms
from delta_py.storage.store_options import is_storage_option
from delta_py.streaming.batch_limits import Limits
from delta_py.streaming.commits import ChangeRules
from delta_py.streaming.schema_evolution import Allowed
from delta_py.streaming.stream_options import StreamStart
from delta_py.types.sizes import parse_size
from spark_plugin.options.common import (
    CHANGE_FEED,
    CONFS,
    SESSION,
    STREAM,
    WRITE_CONFS,
    flag,
    in_our_spelling,
    session_of,
    version,
    whole_number,
)
from spark_plugin.options.read_options import ReadOptions, read_options
from spark_plugin.options.storage import without_storage
from spark_plugin.options.write_options import WriteOptions, write_options

CHECKPOINT_LOCATION = "checkpointLocation"

# Options of DataStreamWriter itself, which Spark passes together with those of the sink.
_DATA_STREAM_WRITER_OPTIONS = (CHECKPOINT_LOCATION.lower(), "queryname")
# Options whose value a stream itself defines, or that it does not support, and what to do instead.
_NOT_IN_STREAMS = {
    "txnAppId": "The stream records its own query id and batch id in each commit. In foreachBatch the option works.",
    "txnVersion": "The stream records its own query id and batch id in each commit. In foreachBatch the option works.",
    "replaceWhere": "Output mode append adds rows, complete replaces all. Use foreachBatch to replace some.",
    "replaceUsing": "Output mode append adds rows, complete replaces all. Use foreachBatch to replace some.",
    "replaceOn": "Output mode append adds rows, complete replaces all. Use foreachBatch to replace some.",
    "targetAlias": "It goes with replaceOn, which streams do not have. Leave it out.",
    "partitionOverwriteMode": "Output mode append adds rows, complete replaces all. Use foreachBatch to replace partitions.",
    "dataChange": "The rows of a stream are new to the table. Leave it out.",
    "optimizeWrite": "Spark divides a stream's rows into tasks by itself. Use foreachBatch, where the option works, or "
    "repartition the stream before writeStream.",
}


def is_stream_write(options: Mapping[str, str]) -> bool:
    """Return whether a write is a stream: only streams have a checkpoint."""
    return any(key.lower() == CHECKPOINT_LOCATION.lower() for key in options)


def stream_write_options(options: Mapping[str, str], *, complete: bool) -> WriteOptions:
    """Parse the options of a stream's sink. complete: the output mode is complete, not append.

    Raises the same as write_options; UnsupportedOperationError for an option that streams do not have.
    """
    sink_options = {key: value for key, value in options.items() if key.lower() not in _DATA_STREAM_WRITER_OPTIONS}
    for key, value in sink_options.items():
        name = next((name for name in _NOT_IN_STREAMS if name.lower() == key.lower()), None)
        if name is not None and not _has_no_effect(name, value):
            raise UnsupportedOperationError(
                f"The write option {name} (={value}) has no meaning in a stream; nothing was written. {_NOT_IN_STREAMS[name]}",
                option=name,
                value=value,
            )
    return write_options(_without_batch_settings(sink_options), overwrite=complete)


def _has_no_effect(name: str, value: str) -> bool:
    """Return whether an option that streams do not have is set to what every stream does anyway."""
    return value.lower() == {"dataChange": "true", "optimizeWrite": "false", "partitionOverwriteMode": "static"}.get(name)


def _without_batch_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Remove the session's settings for options that streams do not have: these settings are for batches."""
    key = next((key for key in options if key.lower() == SESSION.lower()), None)
    if key is None:
        return dict(options)
    settings = json.loads(options[key])
    batch_confs = {WRITE_CONFS[name] for name in _NOT_IN_STREAMS if name in WRITE_CONFS}
    settings[CONFS] = {name: value for name, value in (settings.get(CONFS) or {}).items() if name not in batch_confs}
    return {**options, key: json.dumps(settings)}


# ---------------------------------------------------------------- reading

_DEFAULT_MAX_FILES = 1000
_MOST_FILES = 2**31 - 1  # of Spark's ReadMaxFiles
_STARTS = ("startingVersion", "startingTimestamp")
_SCHEMA_LOCATIONS = ("schemaTrackingLocation", "schemaLocation")
_TRACKING_ID = "streamingSourceTrackingId"
# For each kind of schema change, the option that allows a stream to follow it.
_ALLOW = {kind: f"allowSourceColumn{kind}" for kind in ("Rename", "Drop", "TypeChange")}
# Options that only streams have. _AS_IN_BATCHES are those that batches have too.
_STREAM_NAMES = (
    *_STARTS,
    *CHANGE_FEED,
    *_SCHEMA_LOCATIONS,
    _TRACKING_ID,
    *_ALLOW.values(),
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "ignoreDeletes",
    "ignoreChanges",
    "ignoreFileDeletion",
    "skipChangeCommits",
    "excludeRegex",
    "failOnDataLoss",
    "withEventTimeOrder",
    "eventTimeColumn",
    STREAM,
)
_AS_IN_BATCHES = (
    "path",
    "paths",
    "filter",
    "columns",
    "metadataColumn",
    "ignoreMissingFiles",
    "verifyChecksums",
    "readLease",
    "timeZone",
    "pruning",
    SESSION,
)
# Options of batches that a stream does not support, and why or what to do instead.
_REFUSED = {
    "versionAsOf": "A stream begins with the newest version, or with startingVersion.",
    "timestampAsOf": "A stream begins with the newest version, or with startingTimestamp.",
    "endingVersion": "A stream has no end. Trigger(availableNow=True) stops it at the newest version.",
    "endingTimestamp": "A stream has no end. Trigger(availableNow=True) stops it at the newest version.",
    "followLatest": "A stream follows the table by itself.",
    "logAnswers": "A stream reads rows.",
    "joinPlanning": "Joins of streams are planned before their rows are known.",
}


@dataclass(frozen=True, slots=True)
class SchemaTracking:
    """Where a stream keeps its log of the table's schemas, so that it can follow changes of the schema. location: the checkpoint
    or a directory in it. tracking_id: distinguishes the sources of one query. allowed: the changes that the stream may follow."""

    location: str
    tracking_id: str | None
    allowed: Allowed


@dataclass(frozen=True, slots=True)
class StreamReadOptions:
    """The options of one streaming read.

    batch: those that a batch read has too. start: where a new stream begins. limits: the most files and bytes of a batch. rules:
    what the stream does with commits that delete or change rows. exclude: an RE2 pattern; files whose paths match are left out;
    None to exclude none. fail_on_data_loss: whether it is an error if commits that the stream has not read are gone from the log.
    change_feed: read changes in place of rows. event_time: the column that orders the rows which exist at the start; None for no
    order. tracking: the log of schemas, with which the stream follows changes of the schema; None to read everything with one
    schema."""

    batch: ReadOptions
    start: StreamStart = field(default_factory=StreamStart)
    limits: Limits = field(default_factory=Limits)
    rules: ChangeRules = field(default_factory=ChangeRules)
    exclude: str | None = None
    fail_on_data_loss: bool = True
    change_feed: bool = False
    event_time: str | None = None
    tracking: SchemaTracking | None = None


def tracks_schema(options: Mapping[str, Any]) -> bool:
    """Return whether the options name a log of schemas, so that settings of the session say which changes the stream may
    follow."""
    return any(name.lower() in (key.lower() for key in options) for name in _SCHEMA_LOCATIONS)


def is_stream_read(options: Mapping[str, str]) -> bool:
    """Return whether a read is a stream. The patched methods of Spark mark it, and pass the session for batches too. Without
    these methods, options that have no meaning in a batch show it."""
    lowercase_options = {key.lower(): value for key, value in options.items()}
    if STREAM.lower() in lowercase_options or SESSION.lower() in lowercase_options:
        return STREAM.lower() in lowercase_options
    is_change_feed = any(lowercase_options.get(name.lower(), "false").lower() == "true" for name in CHANGE_FEED)
    has_start = any(name.lower() in lowercase_options for name in _STARTS)
    # A batch has a start if and only if it reads a change feed, and its start is never the version "latest".
    return has_start != is_change_feed or lowercase_options.get("startingversion", "").lower() == "latest"


def stream_read_options(options: Mapping[str, str]) -> StreamReadOptions:
    """Parse the options of a streaming read. Raises InvalidOptionError for an unknown name, an invalid value, or options that
    contradict each other; UnsupportedOperationError for an option that streams do not have."""
    known_options = in_our_spelling(without_storage(options), (*_STREAM_NAMES, *_AS_IN_BATCHES, *_REFUSED), "streaming read")
    for name, instead in _REFUSED.items():
        if name in known_options and known_options[name].lower() != "false":
            raise UnsupportedOperationError(
                f"The option {name} (={known_options[name]}) is not supported in a streaming read. {instead}",
                option=name,
                value=known_options[name],
            )
    store_options = {name: value for name, value in options.items() if is_storage_option(name)}
    batch_options = {name: value for name, value in known_options.items() if name in _AS_IN_BATCHES}
    batch = read_options({**batch_options, **store_options})
    _refuse_version_in_path(batch)
    rules = ChangeRules(
        ignore_deletes=flag(known_options, "ignoreDeletes"),
        ignore_changes=flag(known_options, "ignoreChanges") or flag(known_options, "ignoreFileDeletion"),
        skip_change_commits=flag(known_options, "skipChangeCommits"),
    )
    return StreamReadOptions(
        batch,
        start=_start(known_options),
        limits=_limits(known_options),
        rules=rules,
        exclude=_to_re2(known_options.get("excludeRegex")),
        fail_on_data_loss=flag(known_options, "failOnDataLoss", default=True),
        change_feed=any(flag(known_options, name) for name in CHANGE_FEED),
        event_time=_event_time(known_options),
        tracking=_tracking(known_options),
    )


def _refuse_version_in_path(batch: ReadOptions) -> None:
    """Raise UnsupportedOperationError for a path such as `table@v12`."""
    if named_version(batch.path, batch.session.time_zone, batch.storage) is not None:
        raise UnsupportedOperationError(
            f"The path {batch.path} names a version, and a stream reads a table on and on. Give the path without it, and "
            "startingVersion or startingTimestamp.",
            path=batch.path,
        )


def _start(options: Mapping[str, str]) -> StreamStart:
    """Return where the stream begins. Without an option it begins with all rows of the newest version."""
    if all(name in options for name in _STARTS):
        raise InvalidOptionError(
            "Both startingVersion and startingTimestamp are given. Each names a version by itself: give one of them.",
            error_class="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            sql_state="42613",
        )
    if options.get("startingVersion", "").lower() == "latest":
        return StreamStart(latest=True)
    text = options.get("startingTimestamp")
    timestamp_ms = None if text is None else parse_timestamp_ms(text, session_of(options).time_zone)
    return StreamStart(version=version(options, "startingVersion"), timestamp_ms=timestamp_ms)


def _event_time(options: Mapping[str, str]) -> str | None:
    """Return the column that orders the rows which exist at the start (withEventTimeOrder); None for no such order."""
    if not flag(options, "withEventTimeOrder"):
        return None
    column = options.get("eventTimeColumn")
    if column is None:
        raise InvalidOptionError(
            "withEventTimeOrder is set, and Spark tells a source nothing of the watermark: name its column in the option "
            "eventTimeColumn.",
            option="eventTimeColumn",
        )
    return column


def _tracking(stream_options: Mapping[str, str]) -> SchemaTracking | None:
    """Return the log of schemas that the options name; None if they name none. Raises InvalidOptionError and
    UnsupportedOperationError for options that do not go together."""
    location_names = [name for name in _SCHEMA_LOCATIONS if name in stream_options]
    if len({stream_options[name] for name in location_names}) > 1:
        raise InvalidOptionError(
            "Both schemaTrackingLocation and schemaLocation are given, and differ. They mean the same: give one of them.",
            option="schemaLocation",
        )
    # By the kind of change: `always`, or the version of the one change that the stream may follow.
    allowed = {kind: stream_options[name] for kind, name in _ALLOW.items() if name in stream_options}
    for kind, text in allowed.items():
        if text.lower() != "always" and not (text.isascii() and text.isdigit()):
            raise InvalidOptionError(
                f"Invalid value {text!r} for option {_ALLOW[kind]!r}: it must be 'always', or the version of the change.",
                option=_ALLOW[kind],
                value=text,
            )
    if not location_names:
        stray = next((name for name in (*_ALLOW.values(), _TRACKING_ID) if name in stream_options), None)
        if stray is not None:
            raise InvalidOptionError(
                f"The option {stray} is only for streams with a schema log: name its directory, below the query's checkpoint, in "
                "schemaTrackingLocation.",
                option=stray,
            )
        return None
    if not flag(stream_options, "failOnDataLoss", default=True):
        raise UnsupportedOperationError(
            "A stream with schemaTrackingLocation cannot go on after commits that are gone, which may have changed the schema. "
            "Leave out failOnDataLoss=false, or schemaTrackingLocation.",
            option="failOnDataLoss",
        )
    session = json.loads(stream_options.get(SESSION, "{}"))  # what load() of a registered session has added
    confs = session.get(CONFS) or {}
    location, tracking_id = stream_options[location_names[0]], stream_options.get(_TRACKING_ID)
    return SchemaTracking(location, tracking_id, Allowed(allowed, confs))


def _limits(options: Mapping[str, str]) -> Limits:
    """Return the limits of a batch. The default number of files applies only if the user sets neither limit."""
    max_files, max_bytes = _limit(options, "maxFilesPerTrigger"), _limit(options, "maxBytesPerTrigger")
    return Limits(_DEFAULT_MAX_FILES if max_files is None and max_bytes is None else max_files, max_bytes)


def _limit(options: Mapping[str, str], name: str) -> int | None:
    """Return a limit of a batch, in files or bytes; None if the option is not set. Raises InvalidOptionError unless it is a
    number greater than 0."""
    text = options.get(name)
    if text is None:
        return None
    # Spark holds the number of files in 32 bits. Bytes may have a unit.
    if name == "maxBytesPerTrigger":
        number, expected = parse_size(text), "a number of bytes greater than 0, such as 10485760 or 10mb"
    else:
        number, expected = whole_number(text, _MOST_FILES), f"a number from 1 to {_MOST_FILES}"
    if not number:
        raise InvalidOptionError(f"Invalid value {text!r} for option {name!r}: it must be {expected}.", option=name, value=text)
    return number


def _to_re2(pattern: str | None) -> str | None:
    """Translate the option excludeRegex, a regular expression of Java, to one of RE2, which Arrow understands."""
    if pattern is None:
        return None
    from delta_py.expressions.functions.regex import to_re2  # few streams use a regular expression

    return to_re2(pattern, only_tests=True)
