"""Steps of one piece of work, in threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_threads(steps: Sequence[Callable[[], T]], most: int, name: str) -> list[T]:
    """What the steps give, at most so many of them at a time, without threads where that is one. When one fails, those that have
    not begun are left out; none runs any more when it is raised. name: of the threads."""
    if len(steps) == 1 or most == 1:
        return [step() for step in steps]
    with ThreadPoolExecutor(most, name) as pool:
        futures = [pool.submit(step) for step in steps]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise
