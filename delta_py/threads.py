"""Runs the steps of one piece of work in threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_threads(steps: Sequence[Callable[[], T]], max_threads: int, name: str) -> list[T]:
    """Run the steps in at most `max_threads` threads, and return their results in order; a single step, or max_threads 1, needs
    no threads. If a step fails, the steps that have not started are skipped, and the error is raised after all running steps have
    ended. name: the beginning of the threads' names."""
    if len(steps) == 1 or max_threads == 1:
        return [step() for step in steps]
    with ThreadPoolExecutor(max_threads, name) as pool:
        futures = [pool.submit(step) for step in steps]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise
