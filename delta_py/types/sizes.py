"""Sizes in bytes, in the syntax of options and table properties: `134217728`, `128mb`, `64 KB`."""

from __future__ import annotations

import re

_SIZE = re.compile(r"0*(?P<number>\d{1,19})\s*(?P<unit>[kmgtp]?)b?", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int | None:
    """The size in bytes, with units of 1024; None if the text is not a size, or the size does not fit into 64 bits."""
    size = _SIZE.fullmatch(text.strip())
    size_bytes = None if size is None else int(size["number"]) << 10 * " kmgtp".index(size["unit"].lower() or " ")
    return None if size_bytes is None or size_bytes >= 2**63 else size_bytes
