"""Timestamps as text, and versions in a path."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from delta_py.errors import InvalidOptionError
from delta_py.scan.time_travel import TimeTravelPath, parse_path_suffix, parse_timestamp_ms, to_timestamp_ms


def ms(*parts: int) -> int:
    return int(datetime(*parts[:6], tzinfo=UTC).timestamp()) * 1000 + (parts[6] if len(parts) > 6 else 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2024", "UTC", ms(2024, 1, 1, 0, 0, 0)),
        ("2024-03", "UTC", ms(2024, 3, 1, 0, 0, 0)),
        ("2024-3-5", "UTC", ms(2024, 3, 5, 0, 0, 0)),
        ("2024-03-05 06:07", "UTC", ms(2024, 3, 5, 6, 7, 0)),
        ("2024-03-05T06:07:08", "UTC", ms(2024, 3, 5, 6, 7, 8)),
        ("2024-03-05 06:07:08.9", "UTC", ms(2024, 3, 5, 6, 7, 8, 900)),
        ("2024-03-05 06:07:08.123999999", "UTC", ms(2024, 3, 5, 6, 7, 8, 123)),
        (" 2024-03-05 06:07:08Z ", "Asia/Tokyo", ms(2024, 3, 5, 6, 7, 8)),
        ("2024-03-05 06:07:08 UTC", "Asia/Tokyo", ms(2024, 3, 5, 6, 7, 8)),
        ("2024-03-05T06:07:08+01:00", "UTC", ms(2024, 3, 5, 5, 7, 8)),
        ("2024-03-05T06:07:08 GMT-2", "UTC", ms(2024, 3, 5, 8, 7, 8)),
        ("2024-07-05 06:07:08 Europe/Paris", "UTC", ms(2024, 7, 5, 4, 7, 8)),
        ("2024-07-05 06:07:08", "Europe/Paris", ms(2024, 7, 5, 4, 7, 8)),
        ("2024-07-05 06:07:08", "PST", ms(2024, 7, 5, 13, 7, 8)),
        ("2024-07-05 06:07:08", "CTT", ms(2024, 7, 4, 22, 7, 8)),
        ("2024-07-05 06:07:08", "EST", ms(2024, 7, 5, 11, 7, 8)),
        ("2024-07-05 06:07:08 PST", "UTC", ms(2024, 7, 5, 13, 7, 8)),
        ("2024-07-05 06:07:08+01:00:30", "UTC", ms(2024, 7, 5, 5, 6, 38)),
        ("2024-07-05 06:07:08", "+1:5", ms(2024, 7, 5, 5, 2, 8)),
        ("2050-07-05 06:07:08", "America/New_York", ms(2050, 7, 5, 10, 7, 8)),
        ("1969-12-31 23:59:59.9995", "UTC", -1),
    ],
)
def test_timestamp_text_as_spark_casts_it_gives_ms(text: str, zone: str, expected: int) -> None:
    assert parse_timestamp_ms(text, zone) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2024-13-01",
        "2024-02-30",
        "2024-01-01 25:00",
        "2024-01-01 00:00 Nowhere/City",
        "2024-01-01 00:00 Europe",
        "2024-01-01 00:00 " + "x" * 300,
        "12-01-2024",
        "2024-01-01 00:00+19:00",
        "2024-01-01 00:00+123",
        "2024-01-01 00:00z",
    ],
)
def test_timestamp_text_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="DELTA_TIMESTAMP_INVALID"):
        parse_timestamp_ms(text)


def test_datetime_without_zone_is_read_in_the_session_zone() -> None:
    assert to_timestamp_ms(datetime(2024, 7, 5, 6, 7, 8), "Europe/Paris") == ms(2024, 7, 5, 4, 7, 8)
    assert to_timestamp_ms(datetime(2024, 7, 5, 6, 7, 8, tzinfo=UTC), "Europe/Paris") == ms(2024, 7, 5, 6, 7, 8)
    assert to_timestamp_ms(datetime(2024, 7, 5, 6, 7, 8), "PST") == ms(2024, 7, 5, 13, 7, 8)
    assert to_timestamp_ms(1234, "Europe/Paris") == to_timestamp_ms(np.int64(1234)) == 1234
    assert to_timestamp_ms(date(2024, 7, 5), "Europe/Paris") == ms(2024, 7, 4, 22, 0, 0)


@pytest.mark.parametrize("value", [1.5, b"2024-01-01", [2024]])
def test_time_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="DELTA_TIMESTAMP_INVALID"):
        to_timestamp_ms(value)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/t@v12", TimeTravelPath("/t", version=12)),
        ("s3://b/t@V0", TimeTravelPath("s3://b/t", version=0)),
        ("/t@20240305060708009", TimeTravelPath("/t", timestamp_ms=ms(2024, 3, 5, 6, 7, 8, 9))),
        ("/t", None),
        ("/t@v", None),
        ("/t@2024", None),
        ("/a@v1/t", None),
    ],
)
def test_path_suffix_names_a_version_or_a_time(path: str, expected: TimeTravelPath | None) -> None:
    assert parse_path_suffix(path) == expected
