"""Time zones by Spark's names: offsets, regions and Java's short names of them. Regions' rules come from Python's zoneinfo."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

# The forms that ZoneId.of accepts, and `+h:mm` and `+hh:m`, which Spark has always accepted.
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(?:(\d\d?)(?::(\d\d?)|:(\d\d):(\d\d))?|(\d\d)(\d\d)(\d\d)?)", re.ASCII)
_MAX_OFFSET_SECONDS = 18 * 3600
_UTC_NAMES = frozenset({"UTC", "GMT", "UT", "Z", "UTC+0", "GMT+0", "GMT0", "Etc/UTC", "Etc/GMT", "Zulu", "Universal", "UCT"})
_SHORT_NAMES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}


def is_utc(zone: str) -> bool:
    return zone in _UTC_NAMES or offset_seconds(zone) == 0


@lru_cache(maxsize=256)
def offset_seconds(zone: str) -> int | None:
    """The offset from UTC, in seconds, of a zone that is written as an offset (`+01:00`, `UTC-2`, `Z`); None for a region or an
    invalid zone."""
    zone = region_name(zone)
    if zone in _UTC_NAMES:
        return 0
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return None
    sign, *parts = (part for part in offset.groups() if part is not None)
    hours, minutes, seconds = (*map(int, parts), 0, 0)[:3]
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > _MAX_OFFSET_SECONDS:
        return None
    return -total if sign == "-" else total


def region_name(zone: str) -> str:
    """`PST` -> `America/Los_Angeles`; any other name is returned unchanged, whether or not it is a region's."""
    return _SHORT_NAMES.get(zone, zone)


def zone_rules(region: str) -> ZoneInfo:
    """`Europe/Paris` -> its rules. Raises ValueError for a name that is not a region's: unknown, a directory's, or one that no
    file can have."""
    from zoneinfo import ZoneInfo  # few tasks need it

    try:
        return ZoneInfo(region)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"no time zone has the name {region[:100]!r}") from error


def is_region(name: str) -> bool:
    """Whether Python's zoneinfo has rules for a region of this name."""
    try:
        zone_rules(name)
    except ValueError:
        return False
    return True


def local_time_zone() -> str:
    """The machine's own zone, which is also the JVM's and so Spark's default; UTC if its name cannot be determined."""
    candidates = [os.environ.get("TZ", "").removeprefix(":"), _zone_of_etc_localtime()]
    return next((name for name in candidates if name and is_region(name)), "UTC")


def _zone_of_etc_localtime() -> str:
    """The zone of the machine, by the file that /etc/localtime links to; an empty text if the file is not that of a zone."""
    return str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
