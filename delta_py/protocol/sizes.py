"""Numbers of bytes as options and table properties write them: `134217728`, `128mb`, `64 KB`."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(?P<number>\d+)\s*(?P<unit>[kmgtp]?)b?", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int | None:
    """The bytes, with units of 1024; None for what is no size."""
    size = _SIZE.fullmatch(text.strip())
    return None if size is None else int(size["number"]) << 10 * " kmgtp".index(size["unit"].lower() or " ")
