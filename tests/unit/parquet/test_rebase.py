"""Days and instants of the hybrid calendar, and what a footer says about them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_py.errors import DataFileError
from delta_py.expressions.tree import Column, Comparison, Literal
from delta_py.parquet.values.rebase import PROLEPTIC, LegacyCalendar, legacy_calendar, rebase_dates, rebase_timestamps
from delta_py.scan.scan_state import ScanFile
from delta_py.types.schema import DATE, TIMESTAMP, TIMESTAMP_NTZ
from tests.support.tables.data_files import column, read_rows, scan_state, write_file

SPARK = b"org.apache.spark.version"
# Days since 1970-01-01 in the hybrid calendar, and the date that each means.
HYBRID_DAYS = [
    (-719_164, date(1, 1, 1)),
    (-682_945, date(100, 3, 1)),  # the Julian calendar has 0100-02-29, one day before
    (-682_946, date(100, 3, 1)),
    (-354_220, date(1000, 3, 1)),
    (-141_428, date(1582, 10, 4)),
    (-141_427, date(1582, 10, 15)),
    (0, date(1970, 1, 1)),
    (2_932_896, date(9999, 12, 31)),
]


def test_dates_keep_their_year_month_and_day() -> None:
    stored = pa.array([days for days, _ in HYBRID_DAYS] + [None], pa.int32()).view(pa.date32())
    assert rebase_dates(stored).to_pylist() == [day for _, day in HYBRID_DAYS] + [None]
    assert rebase_dates(stored.slice(2, 3)).to_pylist() == [day for _, day in HYBRID_DAYS[2:5]]


def test_dates_of_today_pass_untouched() -> None:
    stored = pa.array([date(1600, 1, 1), None, date(2024, 1, 1)])
    assert rebase_dates(stored) is stored


def test_timestamps_keep_their_local_date_and_time_in_utc() -> None:
    micros = [days * 86_400_000_000 + 3_723_000_001 for days, _ in HYBRID_DAYS]
    stored = pa.array([*micros, None], pa.timestamp("us", "UTC"))
    times = [datetime(d.year, d.month, d.day, 1, 2, 3, 1, tzinfo=UTC) for _, d in HYBRID_DAYS]
    assert rebase_timestamps(stored, "UTC").to_pylist() == [*times, None]


# (zone, stored microseconds, as the JVM's two calendars convert them)
ZONED = [
    ("America/Los_Angeles", -3_000_000_000_000_000, -3_000_000_422_000_000),
    ("America/Los_Angeles", -2_000_000_000_000_000, -2_000_000_000_000_000),
    ("GMT+01:00", -3_000_000_000_000_000, -3_000_000_000_000_000),
    ("PST", -3_000_000_000_000_000, -3_000_000_422_000_000),
    ("EST", -3_000_000_000_000_000, -3_000_000_000_000_000),
    ("GMT0", -3_000_000_000_000_000, -3_000_000_000_000_000),
]


@pytest.mark.parametrize(("zone", "stored", "expected"), ZONED)
def test_rebase_of_timestamps_follows_old_and_new_zone_rules(zone: str, stored: int, expected: int) -> None:
    """Before 1883 Los Angeles had local mean time, 422 seconds ahead of the time in the JVM's old rules."""
    rebased = rebase_timestamps(pa.array([stored], pa.timestamp("us", "UTC")), zone)
    assert rebased.cast(pa.int64()).to_pylist() == [expected]


def test_timestamps_of_unknown_zone_fail_only_if_they_are_old() -> None:
    recent = pa.array([0], pa.timestamp("us", "UTC"))
    assert rebase_timestamps(recent, "Mars/Olympus") is recent
    with pytest.raises(ValueError, match="Mars/Olympus"):
        rebase_timestamps(pa.array([-(10**17)], pa.timestamp("us", "UTC")), "Mars/Olympus")


@pytest.mark.parametrize(
    ("footer", "calendar"),
    [
        (None, PROLEPTIC),
        ({}, PROLEPTIC),
        ({b"org.apache.spark.legacyDateTime": b""}, PROLEPTIC),  # without a Spark version nothing is known
        ({SPARK: b"3.5.0"}, PROLEPTIC),
        ({SPARK: b"2.4.8"}, LegacyCalendar(True, True, "UTC")),
        ({SPARK: b"3.0.1"}, LegacyCalendar(False, True, "UTC")),
        ({SPARK: b"4.0.0", b"org.apache.spark.legacyINT96": b""}, LegacyCalendar(False, True, "UTC")),
        (
            {SPARK: b"3.4.1", b"org.apache.spark.legacyDateTime": b"", b"org.apache.spark.timeZone": b"Asia/Tokyo"},
            LegacyCalendar(True, False, "Asia/Tokyo"),
        ),
    ],
)
def test_footer_says_which_values_are_of_the_hybrid_calendar(footer: dict[bytes, bytes] | None, calendar: LegacyCalendar) -> None:
    assert legacy_calendar(footer) == calendar


def test_zone_that_a_footer_lacks_is_the_sessions() -> None:
    footer = {SPARK: b"2.4.0"}
    assert legacy_calendar(footer, "Asia/Tokyo").zone == "Asia/Tokyo"
    assert legacy_calendar({**footer, b"org.apache.spark.timeZone": b"UTC"}, "Asia/Tokyo").zone == "UTC"


def legacy_table(values: list[date | datetime | None], arrow: pa.DataType, **footer: str) -> pa.Table:
    table = pa.table({"v": pa.array(values, arrow)})
    return table.replace_schema_metadata({f"org.apache.spark.{key}": value for key, value in footer.items()})


def write_legacy(root: Path, name: str, table: pa.Table, **options: Any) -> ScanFile:
    return write_file(root, name, table, store_schema=True, **options)  # the footer's other keys come with it


def test_legacy_and_current_files_each_use_their_calendar(tmp_path: Path) -> None:
    stored = [date(1200, 1, 8), date(2000, 1, 1), None]
    files = [
        write_legacy(tmp_path, "old", legacy_table(stored, pa.date32(), version="3.2.0", legacyDateTime="")),
        write_legacy(tmp_path, "new", legacy_table(stored, pa.date32(), version="3.2.0")),
    ]
    rows = read_rows(scan_state(tmp_path, [column("v", DATE)]), files)
    assert [row["v"] for row in rows] == [date(1200, 1, 1), date(2000, 1, 1), None, *stored]


def test_legacy_dates_widened_to_timestamps_are_rebased_first(tmp_path: Path) -> None:
    file = write_legacy(tmp_path, "old", legacy_table([date(1200, 1, 8)], pa.date32(), version="2.4.0"))
    assert read_rows(scan_state(tmp_path, [column("v", TIMESTAMP_NTZ)]), file) == [{"v": datetime(1200, 1, 1)}]


@pytest.mark.parametrize("key", ["legacyINT96", "legacyDateTime"])
def test_int96_has_a_mark_of_its_own(tmp_path: Path, key: str) -> None:
    stored = datetime(1200, 1, 8, 12)
    table = legacy_table([stored], pa.timestamp("us"), version="3.2.0", **{key: ""})
    file = write_legacy(tmp_path, "old", table, use_deprecated_int96_timestamps=True)
    expected = stored - timedelta(days=7) if key == "legacyINT96" else stored
    assert read_rows(scan_state(tmp_path, [column("v", TIMESTAMP)]), file) == [{"v": expected.replace(tzinfo=UTC)}]


def test_statistics_of_a_legacy_file_skip_nothing(tmp_path: Path) -> None:
    """The footer's bounds are those of the stored days: by them the file would not have the date that it has."""
    file = write_legacy(tmp_path, "old", legacy_table([date(1200, 1, 8)], pa.date32(), version="2.4.0"))
    predicate = Comparison("=", Column(("v",)), Literal(date(1200, 1, 1), DATE))
    state = scan_state(tmp_path, [column("v", DATE)], predicate=predicate, drop_rows=True)
    assert read_rows(state, file) == [{"v": date(1200, 1, 1)}]


def test_legacy_timestamp_of_unknown_zone_fails_naming_the_file(tmp_path: Path) -> None:
    stored = [datetime(1200, 1, 8, tzinfo=UTC)]
    table = legacy_table(stored, pa.timestamp("us", "UTC"), version="3.2.0", legacyDateTime="", timeZone="Mars/Olympus")
    file = write_legacy(tmp_path, "old", table)
    with pytest.raises(DataFileError, match=r"old .*Mars/Olympus"):
        read_rows(scan_state(tmp_path, [column("v", TIMESTAMP)]), file)


def test_every_day_of_the_julian_years_maps_in_order() -> None:
    days = np.arange(-719_164, -141_427, dtype=np.int32)
    moved = rebase_dates(pa.array(days).view(pa.date32())).view(pa.int32()).to_numpy()
    steps = np.diff(moved)
    # A leap day that only the Julian calendar has shares its number with the next day: there are 12 such centuries up to 1500.
    assert set(steps) == {0, 1}
    assert (steps == 0).sum() == 12
