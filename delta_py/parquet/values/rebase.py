"""Dates and times written in the hybrid calendar: Julian before 1582-10-15, as Spark 2 and Hive count days.

The footer of a file shows whether its values must be moved to the proleptic Gregorian calendar that Spark 3 and Arrow use:
the day keeps its year, month and day of month, and so gets another number. Values from 1582-10-15 on do not change (except that,
outside UTC, the JVM's old time zone rules have no local mean time and so differ until 1900).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_py.parquet.values.buffers import Ndarray, fixed_values, from_values
from delta_py.time_zones import offset_seconds, region_name, zone_rules

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_GREGORIAN_START_DAY = -141_427  # 1582-10-15
_MICROS_PER_DAY = 86_400_000_000
_BEGINNING = np.iinfo(np.int64).min
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_LEGACY_ZONE_RULE = -2_208_988_800_000_000  # 1900-01-01T00:00Z: from here on old and new zone rules agree

_VERSION_KEY = b"org.apache.spark.version"
_DATETIME_KEY = b"org.apache.spark.legacyDateTime"
_INT96_KEY = b"org.apache.spark.legacyINT96"
_ZONE_KEY = b"org.apache.spark.timeZone"


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """Which values of a file are in the hybrid calendar. datetime: DATE, and TIMESTAMP stored as INT64. int96: INT96.
    zone: the writer's time zone, in which timestamps were split into days."""

    datetime: bool = False
    int96: bool = False
    zone: str = "UTC"


PROLEPTIC = LegacyCalendar()


def legacy_calendar(footer: Mapping[bytes, bytes] | None, session_zone: str = "UTC") -> LegacyCalendar:
    """Spark's rule: a mark by the writer, or a Spark version with only the hybrid calendar (before 3.0, for INT96 before 3.1).
    Without a Spark version the values are not changed.

    session_zone: used if the footer does not contain the writer's time zone, as in Spark.
    """
    if not footer or _VERSION_KEY not in footer:
        return PROLEPTIC
    version = footer[_VERSION_KEY]
    datetime = version < b"3.0.0" or _DATETIME_KEY in footer
    int96 = version < b"3.1.0" or _INT96_KEY in footer
    if not (datetime or int96):
        return PROLEPTIC
    return LegacyCalendar(datetime, int96, footer[_ZONE_KEY].decode() if _ZONE_KEY in footer else session_zone)


def rebase_dates(dates: pa.Array) -> pa.Array:
    """date32 in the hybrid calendar -> date32 in the proleptic Gregorian calendar. A 29 February that exists only in the Julian
    calendar becomes 1 March."""
    days = fixed_values(dates, np.int32)
    if not (days < _GREGORIAN_START_DAY).any():
        return dates
    return from_values(dates.type, _rebase_days(days.astype(np.int64)).astype(np.int32), nulls_of=dates)


def rebase_timestamps(times: pa.Array, zone: str) -> pa.Array:
    """timestamp[us] in the hybrid calendar -> the instant with the same local date and time in `zone`.

    zone: a zone id or an offset, as Spark writes it into the footer.
    Raises ValueError if there are old times and the zone is not known.
    """
    micros = fixed_values(times, np.int64)
    is_old = micros < _LAST_LEGACY_ZONE_RULE
    if not is_old.any():
        return times
    rules = _zone(zone)
    if rules.is_fixed:  # only the calendars differ, so values from their change on are not moved
        is_old = micros < _GREGORIAN_START_DAY * _MICROS_PER_DAY - rules.legacy_offset
    rebased = micros.copy()
    rebased[is_old] = _rebase_micros(micros[is_old], rules)
    return from_values(times.type, rebased, nulls_of=times)


def _rebase_micros(micros: Ndarray, zone: _Zone) -> Ndarray:
    """Instants (microseconds since 1970) by the old rules -> the instants with the same local date and time by today's rules."""
    days, time_of_day = np.divmod(micros + zone.legacy_offset, _MICROS_PER_DAY)
    return zone.to_instants(_rebase_days(days) * _MICROS_PER_DAY + time_of_day)


def _rebase_days(days: Ndarray) -> Ndarray:
    """Day numbers in the hybrid calendar -> day numbers with the same year, month and day in the Gregorian one."""
    year, month, day = _julian_date(days)
    return np.where(days < _GREGORIAN_START_DAY, _gregorian_day(year, month, day), days)


def _julian_date(days: Ndarray) -> tuple[Ndarray, Ndarray, Ndarray]:
    """(year, month, day of month) in the Julian calendar. A year begins with March, so that a leap day comes last; March is month
    0, and the first day of a month is 0. days: numbers of days since 1970-01-01."""
    since_march_0 = days + 719_470  # days since 1 March of Julian year 0
    cycle, day_of_cycle = np.divmod(since_march_0, 1461)  # a cycle is four years; the last one has the leap day
    year_of_cycle = np.minimum(day_of_cycle // 365, 3)
    day_of_year = day_of_cycle - 365 * year_of_cycle
    # From March on, five months always have 153 days together: 31, 30, 31, 30, 31.
    month = (5 * day_of_year + 2) // 153
    return 4 * cycle + year_of_cycle, month, day_of_year - (153 * month + 2) // 5


def _gregorian_day(year: Ndarray, month: Ndarray, day: Ndarray) -> Ndarray:
    """The inverse for the proleptic Gregorian calendar; year and month count from March, day from 0."""
    leap_days = year // 4 - year // 100 + year // 400
    # 719,468 is the number of days from 1 March of year 0 to 1970-01-01.
    days: Ndarray = 365 * year + leap_days + (153 * month + 2) // 5 + day - 719_468
    return days


# ---------------------------------------------------------------- time zones


@dataclass(frozen=True, slots=True)
class _Zone:
    """Offsets are microseconds east of UTC.

    legacy_offset: before 1900 by the JVM's old rules, which use today's standard time for all earlier years.
    starts, offsets: by today's rules, offsets[i] applies from the local time starts[i] on (a local time that occurs twice
    is the later one, a skipped one keeps the offset before the gap).
    is_fixed: the zone has one offset for all times, by both rules.
    """

    legacy_offset: int
    starts: Ndarray
    offsets: Ndarray
    is_fixed: bool

    def to_instants(self, local: Ndarray) -> Ndarray:
        """Local times -> instants, by today's rules. Both are microseconds since 1970."""
        return local - self.offsets[np.searchsorted(self.starts, local, side="right") - 1]


@lru_cache(maxsize=16)
def _zone(name: str) -> _Zone:
    """The offsets of a time zone, by its id or as an offset. Raises ValueError for a zone that this machine's time zone data does
    not know."""
    seconds = offset_seconds(name)
    if seconds is not None:
        return _fixed_zone(seconds * 1_000_000)
    try:
        rules = zone_rules(region_name(name))
    except ValueError as error:
        raise ValueError(f"the time zone {name!r} that its writer worked in is not known on this machine") from error
    # The smallest offset of a year is standard time: summer time is ahead of it.
    standard = min(_offset(rules, datetime(2024, month, 1, tzinfo=UTC)) for month in range(1, 13))
    starts, offsets = _changes_before_1900(rules)
    return _Zone(standard, starts, offsets, False)


def _fixed_zone(offset: int) -> _Zone:
    """A zone with one offset for all times. offset: microseconds east of UTC."""
    return _Zone(offset, np.array([_BEGINNING]), np.array([offset]), True)


def _changes_before_1900(rules: ZoneInfo) -> tuple[Ndarray, Ndarray]:
    """The wall clock times at which the zone's offset changed between 1800 and 1900, and the offsets from then on."""
    years = [datetime(year, 1, 1, tzinfo=UTC) for year in range(1800, 1901)]
    starts, offsets = [_BEGINNING], [_offset(rules, years[0])]
    for first, last in pairwise(years):
        if _offset(rules, first) != _offset(rules, last):
            change = _find_change(rules, first, last)
            offsets.append(_offset(rules, last))
            starts.append((change - _EPOCH) // timedelta(microseconds=1) + offsets[-1])
    return np.array(starts), np.array(offsets)


def _find_change(rules: ZoneInfo, first: datetime, last: datetime) -> datetime:
    """The second in which the offset of `last` begins, if the offset changes once between the two."""
    while last - first > timedelta(seconds=1):
        middle = first + (last - first) // timedelta(seconds=2) * timedelta(seconds=1)
        if _offset(rules, middle) == _offset(rules, first):
            first = middle
        else:
            last = middle
    return last


def _offset(rules: ZoneInfo, instant: datetime) -> int:
    """Microseconds east of UTC at an instant."""
    offset = instant.astimezone(rules).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)
