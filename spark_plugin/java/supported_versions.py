"""The minor versions of Spark that have a jar, and how a version is read. It needs no pyspark."""

from __future__ import annotations

import re

from delta_py.errors import UnsupportedOperationError

SUPPORTED = ((4, 1), (4, 2), (4, 3))
"""The minor versions of Spark that pydelta is made for. Each has a jar."""


def minor_version(version: str) -> tuple[int, int]:
    """`4.2.1` -> (4, 2). Raises UnsupportedOperationError for a text that does not begin with two numbers."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None:
        raise UnsupportedOperationError(f"pydelta cannot tell which Spark this is: its version is {version!r}")
    return int(numbers[1]), int(numbers[2])


def supported_text() -> str:
    """`4.1, 4.2 and 4.3`."""
    *other_versions, newest = (f"{major}.{minor}" for major, minor in SUPPORTED)
    return f"{', '.join(other_versions)} and {newest}"


def refuse_older(version: str) -> None:
    """Raise UnsupportedOperationError for a Spark that is older than all supported versions. A newer one may work."""
    if minor_version(version) < SUPPORTED[0]:
        oldest = ".".join(map(str, SUPPORTED[0]))
        raise UnsupportedOperationError(
            f"pydelta supports Spark {supported_text()}, and this is Spark {version}. Nothing was read or written. Install a "
            f"supported version where Spark and its Python workers run: pip install 'pyspark[sql]>={oldest}'."
        )
