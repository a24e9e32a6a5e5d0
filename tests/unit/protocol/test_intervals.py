"""Lengths of time in table properties."""

from __future__ import annotations

import pytest

from delta_py.errors import CorruptTableError
from delta_py.protocol.features import Properties
from delta_py.protocol.intervals import LOG_RETENTION, interval_property, parse_interval, retention_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 1000000000 weeks", 604_800_000_000_000_000),
        ("interval 30 days", 30 * 86_400_000),
        ("30 days", 30 * 86_400_000),
        ("  INTERVAL 1 Week 2 HOURS ", 7 * 86_400_000 + 7_200_000),
        ("1 day 3 minutes 2 seconds 5 milliseconds 999 microseconds", 86_400_000 + 180_000 + 2_005),
        ("interval 0 hours", 0),
        ("interval 1.5 seconds", 1_500),
        ("2 days -1 day", 86_400_000),
    ],
)
def test_interval_is_read(text: str, milliseconds: int) -> None:
    assert parse_interval(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "interval", "5", "days", "1 month", "interval 1 year", "-1 day", "1 day x", "1day", "999999999999 weeks"]
)
def test_text_that_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="interval"):
        parse_interval(text)


def test_interval_property_has_a_default_and_names_bad_values() -> None:
    assert retention_ms(Properties({}), LOG_RETENTION) == 30 * 86_400_000
    assert interval_property(Properties({}), "x", None) is None
    with pytest.raises(CorruptTableError, match=r"delta\.logRetentionDuration.*'soon'"):
        retention_ms(Properties({"delta.logretentionduration": "soon"}), LOG_RETENTION)
