"""Which version a reader requests: timestamps as text, and the suffix of `path@v12` and `path@yyyyMMddHHmmssSSS`.

Texts are read as Spark casts a string to a timestamp: `yyyy`, `yyyy-MM`, `yyyy-MM-dd`, then a blank or `T`,
`HH[:mm[:ss[.f...]]]`, then nothing (the session's time zone) or an offset: `Z`, `UTC`, `GMT+1`, `+01:00`, `Europe/Paris`, `PST`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from operator import index
from typing import SupportsIndex

from delta_py.errors import InvalidOptionError, TableNotFoundError
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.paths import LOG_DIRECTORY
from delta_py.storage.store_options import NO_OPTIONS, StorageOptions
from delta_py.time_zones import offset_seconds, region_name, zone_rules

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP_TEXT = re.compile(
    r"(?P<year>[+-]?\d{4,6})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
    r"(?:[ T](?:(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{0,9}))?)?)?)?"
    r"\s*(?P<zone>[A-Za-z+\-][\w/+\-:]*)?)?)?)?"
)
_SUFFIX_VERSION = re.compile(r"(?P<path>.+)@[vV](?P<version>\d{1,19})/?")
_SUFFIX_TIME = re.compile(r"(?P<path>.+)@(?P<time>\d{17})/?")


@dataclass(frozen=True, slots=True)
class TimeTravelPath:
    """A path that names its version: exactly one of version and timestamp_ms is set."""

    path: str
    version: int | None = None
    timestamp_ms: int | None = None


def parse_path_suffix(path: str, session_timezone: str = "UTC") -> TimeTravelPath | None:
    """`/t@v12` or `/t@20240131235959000` -> the version or time in the suffix; None if the path has no such suffix."""
    by_version = _SUFFIX_VERSION.fullmatch(path)
    if by_version:
        return TimeTravelPath(by_version["path"], version=int(by_version["version"]))
    by_time = _SUFFIX_TIME.fullmatch(path)
    if not by_time:
        return None
    digits = by_time["time"]
    text = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:14]}.{digits[14:]}"
    return TimeTravelPath(by_time["path"], timestamp_ms=parse_timestamp_ms(text, session_timezone))


def named_version(path: str, session_timezone: str = "UTC", storage: StorageOptions = NO_OPTIONS) -> TimeTravelPath | None:
    """The version or time in the suffix, as parse_path_suffix returns it. None if the path has no suffix, or if a table exists at
    exactly this path: then `@v12` is a part of its name."""
    suffix = parse_path_suffix(path, session_timezone)
    return None if suffix is None or _is_table(path, storage) else suffix


def _is_table(path: str, storage: StorageOptions) -> bool:
    """Whether the path has a commit log with at least one file."""
    try:
        return any(True for _ in open_store(path, storage).list_from(LOG_DIRECTORY))
    except TableNotFoundError:  # by the catalog that the path names
        return False


def to_timestamp_ms(value: str | date | SupportsIndex, session_timezone: str = "UTC") -> int:
    """A time as ms since 1970. value: text as Spark casts it, a datetime (naive: in the session's zone), a date (midnight at its
    start in the session's zone), or ms. Raises InvalidOptionError."""
    if isinstance(value, datetime):
        zoned = value if value.tzinfo is not None else value.replace(tzinfo=_time_zone(session_timezone, session_timezone))
        return _floor_ms(zoned)
    if isinstance(value, SupportsIndex):
        return index(value)
    text: object = value.isoformat() if isinstance(value, date) else value
    if not isinstance(text, str):
        raise _invalid_timestamp(text)
    return parse_timestamp_ms(text, session_timezone)


def parse_timestamp_ms(text: str, session_timezone: str = "UTC") -> int:
    """Text -> ms since 1970; finer fractions are cut off.

    Raises InvalidOptionError (DELTA_TIMESTAMP_INVALID) for text that Spark would not cast.
    """
    fields = _TIMESTAMP_TEXT.fullmatch(text.strip())
    if fields is None:
        raise _invalid_timestamp(text)
    parts = {name: int(fields[name] or default) for name, default in _DEFAULTS.items()}
    micros = int((fields["fraction"] or "").ljust(6, "0")[:6])
    zone = _time_zone(fields["zone"] or session_timezone, text)
    try:
        return _floor_ms(datetime(**parts, microsecond=micros, tzinfo=zone))
    except (ValueError, OverflowError) as error:
        raise _invalid_timestamp(text) from error


# The values of parts that the text lacks.
_DEFAULTS = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}


def _floor_ms(moment: datetime) -> int:
    """ms since 1970, rounded down."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _time_zone(name: str, text: str) -> tzinfo:
    """The time zone of a name. Raises InvalidOptionError for an unknown one. name: an offset or the name of a zone. text: the
    user's text, for the error."""
    seconds = offset_seconds(name)
    if seconds is not None:
        return timezone(timedelta(seconds=seconds))
    try:
        return zone_rules(region_name(name))
    except ValueError as error:
        raise _invalid_timestamp(text) from error


def _invalid_timestamp(text: object) -> InvalidOptionError:
    return InvalidOptionError(
        f"The provided timestamp ({text!r}) cannot be converted to a valid timestamp. Write it as 'yyyy-MM-dd HH:mm:ss.SSS', "
        "with an offset such as +01:00 if it is not in the session's time zone.",
        error_class="DELTA_TIMESTAMP_INVALID",
        sql_state="42K09",
        expression=text,
    )
