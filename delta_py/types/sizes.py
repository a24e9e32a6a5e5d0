"""Sizes in bytes as text, with units of 1024: in options and table properties (`134217728`, `128mb`, `64 KB`), and for people
(`1.5 MiB`). Every size that pydelta shows gets its unit here."""

from __future__ import annotations

import re

_SIZE = re.compile(r"0*(?P<number>\d{1,19})\s*(?P<unit>[kmgtp]?)b?", re.IGNORECASE | re.ASCII)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def parse_size(text: str) -> int | None:
    """The size in bytes, with units of 1024; None if the text is not a size, or the size does not fit into 64 bits."""
    size = _SIZE.fullmatch(text.strip())
    # Each unit is 10 bits more than the one before; a blank stands for bytes.
    size_bytes = None if size is None else int(size["number"]) << 10 * " kmgtp".index(size["unit"].lower() or " ")
    return None if size_bytes is None or size_bytes >= 2**63 else size_bytes


def byte_unit(size: float) -> tuple[int, str]:
    """How many bytes the unit has in which a size is shown, and its name. At most three digits stand before the point."""
    for power, name in enumerate(_UNITS):
        scale: int = 1_024**power
        # Three digits: 999.5 is shown as 1000. Bytes have no fraction, so they go up to 1023.
        if size / scale < (1_024 if power == 0 else 999.5):
            return scale, name
    return scale, name  # the largest unit


def bytes_text(size: float) -> str:
    """The size for people, such as `1.5 MiB`."""
    scale, name = byte_unit(size)
    if scale == 1:
        return f"{size:.0f} bytes" if size != 1 else "1 byte"
    return f"{size / scale:.3g} {name}" if size / scale < 999.5 else f"{size / scale:,.0f} {name}"
