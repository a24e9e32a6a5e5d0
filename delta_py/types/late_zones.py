"""Offsets of time zones from 2037 on. Compiled time zone data ends there, and the last rule of a zone continues for ever.

The clock changes come from Python's zoneinfo, year by year to 2128 (a few zones have exceptions until 2087). The last rule
depends only on a year's calendar: its length, and the weekday on which it begins. The 28 years up to 2128 have all 14 calendars,
so every later year has the calendar of one of them.
"""

from __future__ import annotations

import datetime
from functools import lru_cache
from typing import Any

import numpy as np

from delta_py.errors import ExpressionError
from delta_py.time_zones import zone_rules

_Int64 = np.ndarray[Any, np.dtype[np.int64]]

# The years for which zoneinfo gives the changes, and the first of the last 28, whose calendars later years repeat.
_FIRST_YEAR, _FIRST_OF_CYCLE, _LAST_YEAR = 2037, 2101, 2128
_SECOND_MICROS = 1_000_000
_DAY_SECONDS = 86_400
FIRST_LATE_MICROS = 67 * 365 * 86_400_000_000 + 17 * 86_400_000_000  # 2037-01-01, with the 17 leap days since 1970


def late_offsets(micros: _Int64, region: str, *, are_wall_clocks: bool) -> _Int64:
    """The offsets from UTC in microseconds at times from 2037 on.

    micros: the times, in microseconds since 1970. are_wall_clocks: whether they are wall clocks of the region, and not instants.
    A wall clock in a gap has the offset before the gap, and one in an overlap the first of its two offsets.
    Raises ExpressionError if the rules of the region cannot be read.
    """
    changes, thresholds, offsets = _clock_changes(region)
    seconds = micros // _SECOND_MICROS
    # The year is that of UTC or of the wall clock; no rule changes the clocks at the turn of a year.
    year = _years_of(seconds)
    # The same time of a year up to _LAST_YEAR, for which the changes are known.
    equivalent_seconds = seconds - (_year_start(year) - _year_start(_year_with_same_rule(year)))
    offset_numbers = np.searchsorted(thresholds if are_wall_clocks else changes, equivalent_seconds, side="right")
    offset_micros: _Int64 = offsets[offset_numbers] * _SECOND_MICROS
    return offset_micros


def _year_start(year: _Int64) -> _Int64:
    """Seconds from 1970 to the first day of the year."""
    year_before = year - 1
    # 365 days a year, and the leap days up to the year before, without those up to 1969.
    days = (
        (year - 1970) * 365
        + (year_before // 4 - year_before // 100 + year_before // 400)
        - (1969 // 4 - 1969 // 100 + 1969 // 400)
    )
    return np.asarray(days * _DAY_SECONDS)


def _years_of(seconds: _Int64) -> _Int64:
    """The years of times in seconds since 1970."""
    # 400 years have 146,097 days. The estimate is corrected by at most one year.
    year = 1970 + (seconds // _DAY_SECONDS * 400) // 146_097
    year = np.where(seconds < _year_start(year), year - 1, year)
    return np.where(seconds >= _year_start(year + 1), year + 1, year)


def _year_with_same_rule(year: _Int64) -> _Int64:
    """A year up to 2128 with the same rule: the year itself, or one of the last 28 years with the same calendar."""
    return np.where(year <= _LAST_YEAR, year, _calendar_table()[year % 400])


@lru_cache(maxsize=1)
def _calendar_table() -> _Int64:
    """For each year of the cycle of 400 years, by its remainder, a year from 2101 to 2128 with the same calendar."""
    years_by_calendar: dict[tuple[int, bool], int] = {}
    for year in range(_FIRST_OF_CYCLE, _LAST_YEAR + 1):
        years_by_calendar.setdefault(_calendar(year), year)
    return np.array([years_by_calendar[_calendar(2000 + offset)] for offset in range(400)], np.int64)


def _calendar(year: int) -> tuple[int, bool]:
    """The weekday on which the year begins, and whether it is a leap year."""
    return datetime.date(year, 1, 1).weekday(), year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@lru_cache(maxsize=64)
def _clock_changes(region: str) -> tuple[_Int64, _Int64, _Int64]:
    """Three arrays, in order of time: when the clocks change from 2037 to 2128 (seconds since 1970); the wall clocks from which
    the new offset holds; the offsets in seconds. There is one offset more than changes: it holds before the first change."""
    try:
        zone = zone_rules(region)
    except ValueError as error:
        raise ExpressionError(
            f"The rules of the time zone {region} after 2036 cannot be read. Install the package tzdata.", function=region
        ) from error

    def offset_at(second: int) -> int:
        offset = datetime.datetime.fromtimestamp(second, zone).utcoffset()
        assert offset is not None
        return int(offset.total_seconds())

    first_second = int(_year_start(np.array(_FIRST_YEAR)))
    end_second = int(_year_start(np.array(_LAST_YEAR + 1)))
    changes, offsets = [], [offset_at(first_second - 1)]
    # Compares the offsets at the ends of each day. This assumes that no region changes its clocks and back within a day.
    for begin in range(first_second - 1, end_second, _DAY_SECONDS):
        if offset_at(begin + _DAY_SECONDS) != offsets[-1]:
            # Halve the day until `high` is the first second with the new offset. `low` always has the old one.
            low, high = begin, begin + _DAY_SECONDS
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset_at(middle) == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(offset_at(high))
    # If the clocks go back, wall clocks that occur twice still have the old offset.
    thresholds = [change + max(offsets[n], offsets[n + 1]) for n, change in enumerate(changes)]
    return np.array(changes, np.int64), np.array(thresholds, np.int64), np.array(offsets, np.int64)
