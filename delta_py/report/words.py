"""Numbers and times for people; sizes are in types/sizes.py."""

from __future__ import annotations

from delta_py.log.history import time_text

_LENGTHS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def count_text(count: int, noun: str) -> str:
    """`1 file`, `1,200 files`, `2 properties`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def percent_text(share: float) -> str:
    """`0.4 %`, `12 %`; never 0 % or 100 % for a share that is a little more or less."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.995 <= share < 1:
        return "over 99 %"
    # One decimal below 10 %; from 9.95 % on, one decimal would be rounded up to 10.0 %.
    return f"{share:.1%}".replace("%", " %").replace(".0 ", " ") if share < 0.0995 else f"{share:.0%}".replace("%", " %")


def length_text(length_ms: int, parts: int = 2) -> str:
    """`2 days 3 hours`: in this many of the largest units."""
    if length_ms < 0:
        return f"-{length_text(-length_ms, parts)}"
    unit_texts: list[str] = []
    for unit_ms, noun in _LENGTHS:
        count, length_ms = divmod(length_ms, unit_ms)
        if count:
            unit_texts.append(count_text(count, noun))
        # `2 days` is not followed by minutes: units that are left out in between would mislead.
        if len(unit_texts) == parts or (unit_texts and not count):
            break
    return " ".join(unit_texts) or f"{length_ms} ms"


def moment_text(timestamp_ms: int) -> str:
    """`2024-01-31 23:59:59 UTC`; a number if Python's calendar lacks the year."""
    text = time_text(timestamp_ms)  # ends with `.000 UTC`
    return text[:-8] + " UTC" if text.endswith(" UTC") else text


def day_text(timestamp_ms: int) -> str:
    """`2024-01-31`, or as moment_text."""
    text = moment_text(timestamp_ms)  # ends with ` 23:59:59 UTC`
    return text[:-13] if text.endswith(" UTC") else text
