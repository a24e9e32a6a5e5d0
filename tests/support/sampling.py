"""Which of very many like cases a run takes: some by default, all with PYDELTA_ALL=1 (make spark ALL=1)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def sampled(cases: Iterable[T], every: int) -> list[T]:
    """Every so-manieth of the cases, in their order."""
    listed = list(cases)
    return listed if os.environ.get("PYDELTA_ALL") else listed[::every]
