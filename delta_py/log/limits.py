"""The size limit for parts of the log that must be in memory at once. Larger parts count as damaged.

Commits, compactions and checkpoints are read in pieces, so their size has no limit. But a line of JSON is read as a whole, and so
is a version checksum. PYDELTA_LOG_LIMIT_MB (by default 256) is the maximum size of each.
"""

from __future__ import annotations

import os

from delta_py.types.sizes import bytes_text

# The size limit of `_last_checkpoint`. delta-spark leaves the schema out if it is longer than 20,000 characters.
HINT_BYTES = 256 * 1024
_DEFAULT_MB = 256


def limit_bytes() -> int:
    """The maximum size of a line of the log, or of a version checksum."""
    setting = os.environ.get("PYDELTA_LOG_LIMIT_MB", "")
    return (int(setting) if setting.isdigit() and int(setting) else _DEFAULT_MB) << 20


def beyond_limit(subject: str) -> str:
    """The reason why a part of the log is not read, without a full stop. subject: the thing that is too large."""
    return f"{subject} is larger than {bytes_text(limit_bytes())}. If that is intended, set PYDELTA_LOG_LIMIT_MB to more"
