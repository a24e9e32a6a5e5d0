"""Regions of time zones: their rules, by Python's zoneinfo."""

from __future__ import annotations

from zoneinfo import ZoneInfo


def zone_rules(region: str) -> ZoneInfo:
    """`Europe/Paris` -> its rules. Raises ValueError for a name that is no region's: unknown, a directory's, or one that no file
    can have."""
    try:
        return ZoneInfo(region)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"no time zone has the name {region[:100]!r}") from error
