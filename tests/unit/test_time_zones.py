"""Time zones by the names that Spark accepts: the results of Java's ZoneId.of, after Spark's own changes to the text."""

from __future__ import annotations

import pytest

from delta_py.time_zones import is_utc, offset_seconds, region_name, zone_rules


@pytest.mark.parametrize(
    ("zone", "seconds"),
    [
        ("Z", 0),
        ("UTC", 0),
        ("GMT0", 0),
        ("UTC+0", 0),
        ("+1", 3600),
        ("-12", -43_200),
        ("+1:30", 5400),
        ("+1:5", 3900),
        ("+01:5", 3900),
        ("+0130", 5400),
        ("+1:30:15", 5415),
        ("+01:00:30", 3630),
        ("+013015", 5415),
        ("-01:00:30", -3630),
        ("UTC+1", 3600),
        ("UTC+01:00:30", 3630),
        ("UT-2", -7200),
        ("-18:00", -64_800),
        ("EST", -18_000),
        ("MST", -25_200),
        ("HST", -36_000),
    ],
)
def test_offset_is_what_java_makes_of_it(zone: str, seconds: int) -> None:
    assert offset_seconds(zone) == seconds
    assert is_utc(zone) is (seconds == 0)


@pytest.mark.parametrize(
    "zone",
    [
        *("", "z", "utc", "UTC0", "Z+1", "+", "+123", "+530", "+01:5:15", "+01:0130", "+0130:15", "UTC+13015", "+1:", " +1"),
        *("+18:01", "+19", "-18:00:01", "+01:60", "+01:00:60", "+\u0661", "Etc/GMT+5", "Europe/Paris", "PST"),
    ],
)
def test_what_is_no_offset_in_java_is_none(zone: str) -> None:
    assert offset_seconds(zone) is None
    assert not is_utc(zone)


def test_short_names_are_regions() -> None:
    assert (region_name("PST"), region_name("CTT")) == ("America/Los_Angeles", "Asia/Shanghai")
    assert region_name("Europe/Paris") == "Europe/Paris"
    assert zone_rules(region_name("IST")).key == "Asia/Kolkata"
    with pytest.raises(ValueError, match="no time zone has the name 'Mars/Base'"):
        zone_rules("Mars/Base")
