"""How much of a log may have to be in memory at once. What is larger is taken for damaged.

Commits, compactions and checkpoints are read in pieces, so that their size has no limit, but a line of JSON is whole; and so is
a version checksum. PYDELTA_LOG_LIMIT_MB (by default 256) is the most that either may have.
"""

from __future__ import annotations

import os

# Of `_last_checkpoint`. The reference leaves the schema out of it where that is longer than 20,000 characters.
HINT_BYTES = 256 * 1024
_DEFAULT_MB = 256


def limit_bytes() -> int:
    """The most that a line of the log, or a version checksum, may have."""
    given = os.environ.get("PYDELTA_LOG_LIMIT_MB", "")
    return (int(given) if given.isdigit() and int(given) else _DEFAULT_MB) << 20


def beyond_limit(what: str) -> str:
    """Why something is not read. what: what is too large."""
    return f"{what} is larger than {limit_bytes() >> 20} MB. If that is meant, set PYDELTA_LOG_LIMIT_MB to more"
