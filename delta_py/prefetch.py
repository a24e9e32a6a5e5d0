"""Produces items in a thread while the previous items are in use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetch(items: Iterator[T]) -> Iterator[T]:
    """The same items, none of which is None. A thread produces each one while the previous one is in use."""
    with ThreadPoolExecutor(1, "delta_py-ahead") as pool:
        next_item = pool.submit(next, items, None)
        while (item := next_item.result()) is not None:
            next_item = pool.submit(next, items, None)
            yield item
