"""The release of pydelta."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def own_version() -> str:
    """`0.1.0`; `unknown` if pydelta runs without being installed."""
    try:
        return version("pydelta")
    except PackageNotFoundError:
        return "unknown"
