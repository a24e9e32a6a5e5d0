"""Produces items in a thread while the previous items are in use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetch(items: Iterator[T]) -> Iterator[T]:
    """The same items. A thread produces each item while the caller uses the previous one. No item may be None: None marks the
    end."""
    with ThreadPoolExecutor(1, "delta_py-ahead") as pool:
        next_item = pool.submit(next, items, None)
        while (item := next_item.result()) is not None:
            next_item = pool.submit(next, items, None)
            yield item
