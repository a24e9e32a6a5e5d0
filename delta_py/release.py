"""Which release of pydelta this is."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def own_version() -> str:
    """`0.1.0`; `unknown` where pydelta runs without being installed."""
    try:
        return version("pydelta")
    except PackageNotFoundError:
        return "unknown"
