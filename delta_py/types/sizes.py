"""Numbers of bytes as options and table properties write them: `134217728`, `128mb`, `64 KB`."""

from __future__ import annotations

import re

_SIZE = re.compile(r"0*(?P<number>\d{1,19})\s*(?P<unit>[kmgtp]?)b?", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int | None:
    """The bytes, with units of 1024; None for what is no size, or none of 64 bits."""
    size = _SIZE.fullmatch(text.strip())
    size_bytes = None if size is None else int(size["number"]) << 10 * " kmgtp".index(size["unit"].lower() or " ")
    return None if size_bytes is None or size_bytes >= 2**63 else size_bytes
